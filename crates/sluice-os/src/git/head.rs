//! What is checked out, as the files of the repository say it: a start of a run needs nothing else, and need not wait for a
//! process. Where the files do not say it plainly, git has to be asked.

use std::fs;
use std::path::{Path, PathBuf};

use super::path_of;

/// A name that means another name, which means another: so far it is followed.
const MOST_NAMES: usize = 5;

/// The commit that is checked out in this folder. Nothing if the files do not say it; that it is there is not looked at.
pub fn checked_out_commit(folder: &Path) -> Option<String> {
    let own = git_folder(folder)?;
    let common = match fs::read(own.join("commondir")) {
        Ok(named) => path_of(&own, named.strip_suffix(b"\n").unwrap_or(&named)),
        Err(_) => own.clone(),
    };
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

/// The folder that git keeps for the checkout in this folder.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let link = folder.join(".git");
    match link.is_dir() {
        true => Some(link),
        false => crate::workspace::link_target(&fs::read(link).ok()?).map(|named| folder.join(named)),
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
