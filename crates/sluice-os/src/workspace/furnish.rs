//! What a fresh worktree gets from the main checkout beside what git has: copies of files such as `.env`, and links to folders
//! that are costly to make, such as `node_modules`.
//!
//! Nothing that lies in a worktree is replaced, and no path leads out of either folder. None of it is work: its names are
//! noted, and git is told to ignore those that it would show.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::site::{WorktreeSite, admin_of};
use super::{made, place};
use crate::file::{Durability, FileDraft, write_atomically};
use crate::git::{CheckoutChanges, GitCall, GitError, Repository, path_of, quote, shown, unquote};

/// The file in a repository that names ignored files which its worktrees get.
pub const INCLUDE_FILE: &str = ".worktreeinclude";
/// So many files a worktree gets at most: more is a mistake, or should be linked.
const MOST_FURNISHED: usize = 50_000;
/// The note of what a worktree got.
const BROUGHT: &str = "sluice-brought";
/// The rules by which git ignores what a worktree got.
const RULES: &str = "sluice-exclude";
/// Where our own rules begin in it.
const OWN_RULES: &str = "# what this worktree got from the main checkout\n";
/// Letters that mean more than themselves in a pattern.
const WILD: [char; 4] = ['*', '?', '[', '\\'];

/// What of the main checkout a worktree gets, beside what [`INCLUDE_FILE`] names: paths or patterns, relative to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorktreeFurniture {
    /// What is copied, with all that is below it.
    pub copy: Vec<String>,
    /// What is linked to, a folder as a whole.
    pub link: Vec<String>,
}

impl WorktreeFurniture {
    /// Brings it into a worktree. Asked again, it brings what is missing.
    pub fn bring(&self, repository: &Repository, worktree: &Path) -> Result<(), GitError> {
        let main = repository.folder();
        let Some(admin) = admin_of(worktree).filter(|_| main != repository.common()) else { return Ok(()) };
        let site = WorktreeSite { repository: repository.clone(), folder: worktree.to_owned(), admin };
        for path in self.copy.iter().chain(&self.link) {
            must_stay_inside(main, path)?;
        }
        let links = self.links(repository)?;
        let mut copies = self.copies(repository)?;
        self.must_lead_inside(repository, links.iter().chain(&copies))?;
        copies.extend(included(repository)?);
        if links.len() + copies.len() > MOST_FURNISHED {
            return Err(GitError::TooManyFiles { most: MOST_FURNISHED });
        }
        let is_missing = |path: &&Vec<u8>| fs::symlink_metadata(path_of(worktree, path)).is_err();
        // Noted first: what a crash leaves half brought is known for what it is.
        let missing: Vec<&Vec<u8>> = links.iter().chain(&copies).filter(is_missing).collect();
        note(&site, &missing)?;
        for path in &links {
            place_in(worktree, path, |to| symlink(path_of(main, path), to))?;
        }
        for path in &copies {
            let from = path_of(main, path);
            place_in(worktree, path, |to| copied(&from, to))?;
        }
        hide(&site)
    }

    /// Refuses a link that a pattern matches and that leads out of the checkout, as its own name is refused. Links below a
    /// folder that is copied, such as those of a virtual environment, are the folder's own.
    fn must_lead_inside<'a>(
        &self,
        repository: &Repository,
        found: impl Iterator<Item = &'a Vec<u8>>,
    ) -> Result<(), GitError> {
        let Ok(root) = repository.folder().canonicalize() else { return Ok(()) };
        let leads_out = |path: &&Vec<u8>| {
            let full = path_of(&root, path);
            let is_link = fs::symlink_metadata(&full).is_ok_and(|it| it.is_symlink());
            is_link && full.canonicalize().map_or(true, |real| !real.starts_with(&root))
        };
        let outward: Vec<&Vec<u8>> = found.filter(leads_out).collect();
        if outward.is_empty() {
            return Ok(());
        }
        let patterns = self.copy.iter().chain(&self.link).map(|it| format!(":(glob){}", it.trim_end_matches('/')));
        let named = listed(repository.call().args(["ls-files", "--others", "-z", "--"]).args(patterns))?;
        match outward.into_iter().find(|path| named.contains(*path)) {
            Some(path) => {
                let why = "it is a link that leads out of the checkout; name the others, or copy what it leads to";
                Err(GitError::OutsidePath { path: shown(path), why: why.into() })
            }
            None => Ok(()),
        }
    }

    fn copies(&self, repository: &Repository) -> Result<BTreeSet<Vec<u8>>, GitError> {
        match self.copy.is_empty() {
            true => Ok(BTreeSet::new()),
            false => listed(repository.call().args(["ls-files", "--others", "-z", "--"]).args(pathspecs(&self.copy))),
        }
    }

    fn links(&self, repository: &Repository) -> Result<BTreeSet<Vec<u8>>, GitError> {
        if self.link.is_empty() {
            return Ok(BTreeSet::new());
        }
        let call = repository.call().args(["ls-files", "--others", "--directory", "-z", "--"]);
        let found = records(&call.args(pathspecs(&self.link)).looking().bytes()?);
        Ok(found.into_iter().map(|path| path.strip_suffix(b"/").map(<[u8]>::to_vec).unwrap_or(path)).collect())
    }
}

/// The files that the repository itself wants in its worktrees: those that git ignores and [`INCLUDE_FILE`] names.
fn included(repository: &Repository) -> Result<BTreeSet<Vec<u8>>, GitError> {
    if !repository.folder().join(INCLUDE_FILE).is_file() {
        return Ok(BTreeSet::new());
    }
    let named = format!("--exclude-from={INCLUDE_FILE}");
    let named = listed(repository.call().args(["ls-files", "--others", "--ignored", "-z"]).arg(named))?;
    if named.is_empty() {
        return Ok(named);
    }
    let input: Vec<u8> = named.iter().flat_map(|path| path.iter().copied().chain([0])).collect();
    let call = repository.call().args(["check-ignore", "-z", "--stdin"]).input(input);
    let ended = call.answer()?;
    match ended.code {
        Some(0) => Ok(records(&ended.stdout).into_iter().collect()),
        Some(1) => Ok(BTreeSet::new()), // it ignores none of them
        _ => Err(call.failed(&ended)),
    }
}

/// A pattern, and what is below the folders that it names.
fn pathspecs(patterns: &[String]) -> impl Iterator<Item = String> + '_ {
    patterns
        .iter()
        .map(|pattern| pattern.trim_end_matches('/'))
        .flat_map(|pattern| [format!(":(glob){pattern}"), format!(":(glob){pattern}/**")])
}

fn records(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty()).map(<[u8]>::to_vec).collect()
}

/// The files that git lists. A repository inside is listed as a folder, and is not copied.
fn listed(call: GitCall) -> Result<BTreeSet<Vec<u8>>, GitError> {
    Ok(records(&call.looking().bytes()?).into_iter().filter(|path| !path.ends_with(b"/")).collect())
}

/// Refuses a path of the main checkout that leads out of it, as far as it names something before its first pattern.
pub fn must_stay_inside(main: &Path, path: &str) -> Result<(), GitError> {
    let refused = |why: String| Err(GitError::OutsidePath { path: shown(path.as_bytes()), why });
    let mut plain = PathBuf::new();
    let mut is_plain = true;
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) if name == ".git" => return refused("`.git` is git's own".into()),
            Component::Normal(name) => {
                is_plain = is_plain && !name.to_string_lossy().contains(WILD);
                if is_plain {
                    plain.push(name);
                }
            }
            Component::CurDir => {}
            Component::ParentDir => return refused("`..` leads out of the checkout".into()),
            Component::RootDir | Component::Prefix(_) => {
                return refused("name it relative to the checkout".into());
            }
        }
    }
    // What is not there yet stands below something that is.
    let there = plain.ancestors().find_map(|part| main.join(part).canonicalize().ok());
    let (Some(real), Ok(root)) = (there, main.canonicalize()) else { return Ok(()) };
    match real.starts_with(root) {
        true => Ok(()),
        false => refused(format!("a link on its way leads out of the checkout, to {}", real.display())),
    }
}

/// Puts something at a path of a worktree, unless something is there or stands in its way.
fn place_in(worktree: &Path, path: &[u8], put: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), GitError> {
    let to = path_of(worktree, path);
    let failed = GitError::file("cannot make", &to);
    let put = || -> io::Result<()> {
        let mut folder = worktree.to_owned();
        let parent = path_of(Path::new(""), path).parent().map(Path::to_owned).unwrap_or_default();
        for part in parent.components() {
            folder.push(part);
            match fs::symlink_metadata(&folder) {
                // What is written through a link of the branch's would be written elsewhere.
                Ok(there) if !there.is_dir() => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => fs::create_dir(&folder)?,
                Err(error) => return Err(error),
            }
        }
        if fs::symlink_metadata(&to).is_ok() { Ok(()) } else { put(&to) }
    };
    match put() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        done => done.map_err(failed),
    }
}

/// Copies a file with its mode and its time, whole or not at all. A link is copied as a link; what is neither, or is gone by
/// now, is left out.
fn copied(from: &Path, to: &Path) -> io::Result<()> {
    let about = match fs::symlink_metadata(from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        about => about?,
    };
    if about.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if !about.is_file() {
        return Ok(());
    }
    // Only its owner reads it before it has the mode of the other.
    let draft = FileDraft::private(to, Durability::Cached)?;
    io::copy(&mut fs::File::open(from)?, &mut draft.file())?;
    draft.file().set_permissions(Permissions::from_mode(about.permissions().mode() & 0o777))?;
    draft.file().set_modified(about.modified()?)?;
    draft.claim().map(drop)
}

/// Adds to the note of what a worktree got.
fn note(site: &WorktreeSite, new: &[&Vec<u8>]) -> Result<(), GitError> {
    let known = brought(&site.admin);
    let mut all: BTreeSet<&Vec<u8>> = known.iter().collect();
    all.extend(new);
    if all.len() == known.len() {
        return Ok(());
    }
    let path = site.admin.join(BROUGHT);
    let text: String = all.into_iter().map(|it| quote(it) + "\n").collect();
    write_atomically(&path, text.as_bytes(), Durability::Synced).map_err(GitError::file("cannot write", &path))
}

/// What a worktree got. A note that cannot be read is none: then what it names counts as work, and is kept.
pub(super) fn brought(admin: &Path) -> BTreeSet<Vec<u8>> {
    let text = fs::read_to_string(admin.join(BROUGHT)).unwrap_or_default();
    text.lines().filter_map(unquote).collect()
}

/// Takes what a worktree got, and what its set-up made, out of what has changed there.
pub(super) fn forget(site: &WorktreeSite, changes: &mut CheckoutChanges) -> Result<(), GitError> {
    let got = brought(&site.admin);
    changes.untracked.retain(|path| !got.contains(path));
    made::forget(site, changes)
}

/// Tells git to ignore what a worktree got, as far as it would show it: a rule such as `node_modules/` does not hold for a link,
/// and a branch may have other rules than the main checkout.
///
/// The rules hold in this worktree alone and go with it: `info/exclude` holds for all of a repository's checkouts, and would hide
/// files of the main checkout from the person who works there.
pub(super) fn hide(site: &WorktreeSite) -> Result<(), GitError> {
    let got = brought(&site.admin);
    if got.is_empty() {
        return Ok(());
    }
    let unknown = site.call().looking().args(["ls-files", "--others", "--exclude-standard", "-z"]).bytes()?;
    let shown = records(&unknown);
    let mut lines: BTreeSet<String> = shown.iter().filter(|path| got.contains(*path)).map(|path| rule(path)).collect();
    if lines.is_empty() {
        return Ok(());
    }
    if site.repository.call().args(["config", "--get", "core.worktree"]).maybe()?.is_some() {
        // With settings of its own, a worktree would take this one for its own place.
        return place::exclude(&site.repository, &lines.into_iter().collect::<Vec<String>>());
    }
    let _turn = place::exclude_turn(&site.repository)?;
    let file = site.admin.join(RULES);
    let before = fs::read_to_string(&file).unwrap_or_default();
    let (_, own) = before.split_once(OWN_RULES).unwrap_or_default();
    lines.extend(own.lines().filter(|line| !line.is_empty()).map(str::to_owned));
    let own: String = lines.into_iter().map(|line| line + "\n").collect();
    // One file is read in place of the person's own: so it has what that has.
    let persons = persons_rules(site)?;
    let start = if persons.is_empty() || persons.ends_with('\n') { "" } else { "\n" };
    let text = format!("{persons}{start}{OWN_RULES}{own}");
    write_atomically(&file, text.as_bytes(), Durability::Cached).map_err(GitError::file("cannot write", &file))?;
    let is_on = site.call().args(["config", "--type=bool", "--get", "extensions.worktreeConfig"]).maybe()?;
    if is_on.as_deref() != Some("true") {
        site.repository.call().args(["config", "extensions.worktreeConfig", "true"]).run()?;
    }
    site.call().args(["config", "--worktree", "core.excludesFile"]).arg(&file).run()
}

/// What the person's own file of rules says, for all of their repositories.
fn persons_rules(site: &WorktreeSite) -> Result<String, GitError> {
    let named = site.repository.call().args(["config", "--type=path", "--get", "core.excludesFile"]).maybe()?;
    let usual = || {
        let folder = std::env::var_os("XDG_CONFIG_HOME").filter(|it| !it.is_empty()).map(PathBuf::from);
        let folder = folder.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".config")))?;
        Some(folder.join("git/ignore"))
    };
    let path = named.filter(|it| !it.is_empty()).map(PathBuf::from).or_else(usual);
    Ok(path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default())
}

/// The rule by which git ignores just this path. It cannot hold an end of line, but a letter that stands for every other.
pub(super) fn rule(path: &[u8]) -> String {
    let mut text = String::from("/");
    for letter in String::from_utf8_lossy(path).chars() {
        match letter {
            '*' | '?' | '[' | '\\' | ' ' => text.extend(['\\', letter]),
            letter if letter.is_control() || letter == char::REPLACEMENT_CHARACTER => text.push('?'),
            letter => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_out_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("main");
        fs::create_dir_all(main.join("inside/deep")).unwrap();
        symlink("/etc", main.join("out")).unwrap();
        symlink("inside", main.join("in")).unwrap();
        for fine in [".env", "inside/*.key", "in/deep", "./inside", "nowhere/at/all", "*/out.txt"] {
            must_stay_inside(&main, fine).unwrap();
        }
        for wrong in ["/etc/passwd", "../other", "inside/../../x", "out", "out/none/x", "out/*", ".git/config"] {
            assert!(matches!(must_stay_inside(&main, wrong), Err(GitError::OutsidePath { .. })), "{wrong}");
        }
    }

    #[test]
    fn nothing_is_written_through_a_link_or_over_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (from, worktree, other) =
            (folder.path().join("env"), folder.path().join("work"), folder.path().join("other"));
        fs::write(&from, "secret").unwrap();
        fs::set_permissions(&from, Permissions::from_mode(0o640)).unwrap();
        [&worktree, &other].iter().for_each(|it| fs::create_dir(it).unwrap());
        symlink(&other, worktree.join("led")).unwrap();
        fs::write(worktree.join("own"), "own").unwrap();
        for path in ["led/env", "own/env", "own", "new/deep/env"] {
            place_in(&worktree, path.as_bytes(), |to| copied(&from, to)).unwrap();
        }
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(worktree.join("own")).unwrap(), "own");
        let new = worktree.join("new/deep/env");
        assert_eq!(fs::read_to_string(&new).unwrap(), "secret");
        assert_eq!(new.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(new.metadata().unwrap().modified().unwrap(), from.metadata().unwrap().modified().unwrap());
    }

    #[test]
    fn a_rule_names_one_path() {
        assert_eq!(rule(b"node_modules"), "/node_modules");
        assert_eq!(rule(b"a*b/c [1].txt"), "/a\\*b/c\\ \\[1].txt");
        assert_eq!(rule(b"a\nb"), "/a?b");
    }
}
