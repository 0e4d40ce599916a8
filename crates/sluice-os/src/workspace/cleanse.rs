//! What whoever had a worktree leaves in what git keeps for it: settings, hooks, rules, references, a damaged index.
//!
//! None of it comes to the next who is lent the worktree. Commits that only such a reference reaches are kept before.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::furnish;
use super::place;
use super::site::{WorktreeSite, gone};
use crate::git::{GitError, path_of, remove_file};

/// What stays when a worktree is given back: git's own, our notes, and the repositories of submodules.
const STAYS: [&str; 10] =
    ["HEAD", "commondir", "gitdir", "index", "locked", "logs", "modules", "ORIG_HEAD", "refs", "sluice"];

/// What our notes begin with, and what the parts of a split index do.
const OURS: [&str; 2] = ["sluice-", "sharedindex."];

/// What git says of an index that it cannot read.
const DAMAGE: [&str; 4] = ["index file", "bad signature", "index entry", "bad index"];

impl WorktreeSite {
    /// Removes the settings of a worktree, and what else was put there: everything that git does not need and that is not ours.
    /// Files that a sparse checkout left out are written again. What was under way has been ended.
    pub(super) fn forget_settings(&self) -> Result<(), GitError> {
        let entries = fs::read_dir(&self.admin).map_err(GitError::file("cannot read", &self.admin))?;
        let mut was_sparse = false;
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if STAYS.contains(&name.as_str()) || OURS.iter().any(|ours| name.starts_with(ours)) {
                continue;
            }
            was_sparse |= matches!(name.as_str(), "config.worktree" | "info");
            remove(&entry.path())?;
        }
        if self.has_own_references() {
            let refs = self.admin.join("refs");
            remove(&refs)?;
            fs::create_dir(&refs).map_err(GitError::file("cannot make", &refs))?;
        }
        self.forget_links()?;
        if was_sparse && self.head()?.is_some() {
            // The index remembers what was left out.
            remove_file(&self.admin.join("index"))?;
            self.call().args(["reset", "--quiet", "--hard"]).run()?;
        }
        Ok(())
    }

    /// Removes links that stand where files of the main checkout were brought to, and lead elsewhere than the person said: the next
    /// who has the worktree would read and write there. What is missing is brought again.
    fn forget_links(&self) -> Result<(), GitError> {
        for path in furnish::brought(&self.admin) {
            let (here, there) = (path_of(&self.folder, &path), path_of(self.repository.folder(), &path));
            let Ok(target) = fs::read_link(&here) else { continue };
            // A link to the file itself, or a copy of a link.
            let is_brought = target == there || fs::read_link(&there).is_ok_and(|same| same == target);
            if !is_brought {
                remove_file(&here)?;
            }
        }
        Ok(())
    }

    /// Forgets where the worktree has been: the next who has it would be asked about commits that it never saw.
    pub(super) fn forget_moves(&self) -> Result<(), GitError> {
        remove_file(&self.admin.join("ORIG_HEAD"))?;
        remove(&self.admin.join("logs"))
    }

    /// Whether the worktree has references that no other one sees.
    pub(super) fn has_own_references(&self) -> bool {
        let mut open = vec![self.admin.join("refs")];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(it) if it.is_dir() => open.push(entry.path()),
                    Ok(_) | Err(_) => return true,
                }
            }
        }
        false
    }

    /// Makes an index that git cannot read, or a HEAD, anew: from the last commit, and from the branch that the worktree was lent
    /// on. The files stay as they are, so that what differs is work and is kept. Whether there was one.
    pub(super) fn mend_damage(&self) -> Result<bool, GitError> {
        let is_head_read = is_sound_head(&self.admin.join("HEAD"))?;
        if !is_head_read {
            let branch = self.binding()?.map(|bound| bound.branch);
            let branch = branch.filter(|branch| self.repository.branch_commit(branch).is_ok_and(|tip| tip.is_some()));
            let text = match branch {
                Some(branch) => format!("ref: refs/heads/{branch}\n"),
                None => format!("{}\n", self.repository.default_commit()?),
            };
            self.put_away("HEAD")?;
            let head = self.admin.join("HEAD");
            fs::write(&head, text).map_err(GitError::file("cannot write", &head))?;
        }
        // A git that could not look has not said that the index is damaged.
        let ended = self.call().args(["ls-files", "--stage", "-z"]).answer()?;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let is_index_read = ended.code != Some(128) || !DAMAGE.iter().any(|damage| said.contains(damage));
        if !is_index_read {
            self.put_away("index")?;
            self.call().args(["read-tree", "HEAD"]).run()?;
        }
        Ok(!is_head_read || !is_index_read)
    }

    /// Moves a file that cannot be understood to where a person finds it.
    fn put_away(&self, name: &str) -> Result<(), GitError> {
        let pool = self.folder.parent().unwrap_or(&self.folder);
        super::release::move_to(&self.admin.join(name), &pool.join("aside").join(format!("{name}-{}", self.name())))
    }
}

/// Whether a HEAD names a reference or a commit.
fn is_sound_head(path: &Path) -> Result<bool, GitError> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        text => text.map_err(GitError::file("cannot read", path))?,
    };
    let text = String::from_utf8_lossy(&text);
    let text = text.trim_end();
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|it| it.is_ascii_hexdigit());
    Ok(is_id || text.strip_prefix("ref:").is_some_and(|name| name.trim().starts_with("refs/")))
}

fn remove(path: &Path) -> Result<(), GitError> {
    match fs::symlink_metadata(path) {
        Ok(it) if it.is_dir() => gone(place::remove_tree(path)).map_err(GitError::file("cannot remove", path)),
        Ok(_) | Err(_) => remove_file(path),
    }
}
