//! What is checked out, as the files of the repository say it: a start of a run needs nothing else, and need not wait for a
//! process. Where the files do not say it plainly, git has to be asked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::path_of;

/// A name that means another name, which means another: so far it is followed.
const MOST_NAMES: usize = 5;

/// The commit that is checked out in this folder. Nothing if the files do not say it; that it is there is not looked at.
pub fn checked_out_commit(folder: &Path) -> Option<String> {
    let own = git_folder(folder)?;
    let common = common_of(&own);
    let mut said = fs::read_to_string(own.join("HEAD")).ok()?;
    for _ in 0..MOST_NAMES {
        let Some(name) = said.trim_end().strip_prefix("ref: ") else { return commit_id(&said) };
        // What other names mean is kept in other places.
        let is_plain = name.starts_with("refs/heads/") && !name.contains("..");
        said =
            fs::read_to_string(common.join(Some(name).filter(|_| is_plain)?)).ok().or_else(|| packed(&common, name))?;
    }
    None
}

/// Whether a folder is a repository without a checkout: nothing may be written there but by git.
pub fn is_bare(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && ["objects", "refs"].iter().all(|name| folder.join(name).is_dir())
}

/// The folder that git keeps for the checkout in this folder; a bare repository is it itself.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let link = folder.join(".git");
    if link.is_dir() {
        return Some(link);
    }
    match fs::read(link) {
        Ok(link) => crate::workspace::link_target(&link).map(|named| folder.join(named)),
        Err(_) => is_bare(folder).then(|| folder.to_owned()),
    }
}

/// Whether there is a branch of this name, as the files of the repository around this folder say it.
pub fn has_branch(folder: &Path, branch: &str) -> bool {
    let name = format!("refs/heads/{branch}");
    let has = |common: PathBuf| common.join(&name).is_file() || packed(&common, &name).is_some();
    git_folder(folder).is_some_and(|own| has(common_of(&own)))
}

/// The references below this name, as the files of the repository around this folder say it; nothing where they do not.
pub(crate) fn references_below(folder: &Path, below: &str) -> Vec<String> {
    let Some(own) = git_folder(folder) else { return Vec::new() };
    let common = common_of(&own);
    let entries = fs::read_dir(common.join(below)).into_iter().flatten().flatten();
    let loose = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_file()));
    let loose = loose.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| !name.ends_with(".lock"));
    let gathered = fs::read_to_string(common.join("packed-refs")).unwrap_or_default();
    let gathered = gathered.lines().filter_map(|line| line.split_once(' ')?.1.strip_prefix(below)?.strip_prefix('/'));
    let names: BTreeSet<String> = loose.chain(gathered.map(str::to_owned)).collect();
    names.into_iter().map(|name| format!("{below}/{name}")).collect()
}

/// What the worktrees of a repository share, by what git keeps for one of them.
fn common_of(own: &Path) -> PathBuf {
    match fs::read(own.join("commondir")) {
        Ok(named) => path_of(own, named.strip_suffix(b"\n").unwrap_or(&named)),
        Err(_) => own.to_owned(),
    }
}

/// The commit of a branch among those that git has gathered in one file.
fn packed(common: &Path, name: &str) -> Option<String> {
    let all = fs::read_to_string(common.join("packed-refs")).ok()?;
    all.lines().find_map(|line| line.split_once(' ').filter(|(_, named)| *named == name)).map(|(id, _)| id.to_owned())
}

fn commit_id(text: &str) -> Option<String> {
    let text = text.trim_end();
    (matches!(text.len(), 40 | 64) && text.bytes().all(|it| it.is_ascii_hexdigit())).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(folder: &Path, words: &[&str]) -> String {
        let words = [&["-c", "user.name=a", "-c", "user.email=a@b"], words].concat();
        let ended = Command::new("git").current_dir(folder).args(words).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn the_files_say_what_git_says() {
        let place = tempfile::tempdir().unwrap();
        let (main, other) = (place.path().join("main"), place.path().join("other"));
        fs::create_dir(&main).unwrap();
        git(&main, &["init", "-q", "-b", "main"]);
        assert_eq!(checked_out_commit(&main), None, "there is no commit yet");
        git(&main, &["commit", "-q", "--allow-empty", "-m", "one"]);
        let says_the_same = |folder: &Path| {
            assert_eq!(checked_out_commit(folder), Some(git(folder, &["rev-parse", "HEAD"])));
        };
        says_the_same(&main);
        git(&main, &["worktree", "add", "-q", "-b", "side/way", other.to_str().unwrap()]);
        git(&other, &["commit", "-q", "--allow-empty", "-m", "two"]);
        says_the_same(&other);
        git(&main, &["pack-refs", "--all"]);
        [&main, &other].into_iter().for_each(|folder| says_the_same(folder));
        git(&main, &["symbolic-ref", "refs/heads/also", "refs/heads/main"]);
        git(&main, &["symbolic-ref", "HEAD", "refs/heads/also"]);
        says_the_same(&main);
        git(&main, &["checkout", "-q", "--detach"]);
        says_the_same(&main);
        fs::write(main.join(".git/HEAD"), "ref: refs/heads/../../../etc/passwd\n").unwrap();
        assert_eq!(checked_out_commit(&main), None);
    }
}
