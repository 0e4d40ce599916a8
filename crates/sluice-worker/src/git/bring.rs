//! Bringing work together in a worktree of the engine's: committing what lies there, and merging a branch into it.
//!
//! A merge is made in memory. Only what is merged without a conflict comes into the worktree, and what is being brought
//! there is noted first: an engine that is killed meanwhile finishes it at its next look. So no worktree ever holds
//! conflict markers of ours, and nothing that is half brought there is committed.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{GitError, Repository, path_of, shown};
use crate::merge::{commit_tree, merged_tree};

/// The note of what is being brought into a worktree: the commit it stood at and the one it will stand at.
const BRINGING: &str = "sluice-bringing";

impl Repository {
    /// Commits everything in a worktree, new files too; nothing if there is nothing to commit. Conflicts that somebody
    /// left there unresolved are refused. The user's own hooks are not run: this is bookkeeping.
    pub fn commit_all(&self, worktree: &Path, message: &str) -> Result<Option<String>, GitError> {
        self.finish_bringing(worktree)?;
        let unmerged =
            self.git().at(worktree).looking().args(["diff", "--name-only", "--diff-filter=U", "-z"]).bytes()?;
        let files: Vec<String> = unmerged.split(|byte| *byte == 0).filter(|it| !it.is_empty()).map(shown).collect();
        if !files.is_empty() {
            return Err(GitError::Unresolved { folder: worktree.to_owned(), files });
        }
        self.commit_as_it_is(worktree, message)
    }

    /// Commits everything, conflicts too: for what is only put away.
    pub(crate) fn commit_as_it_is(&self, worktree: &Path, message: &str) -> Result<Option<String>, GitError> {
        let call = || self.git().at(worktree);
        call().args(["add", "--all"]).text()?;
        if call().args(["diff", "--cached", "--quiet"]).answer()?.code == Some(0) {
            return Ok(None);
        }
        self.signed(call().args(["commit", "--quiet", "--no-verify", "--message", message]))?.text()?;
        call().args(["rev-parse", "HEAD"]).text().map(Some)
    }

    /// Puts a worktree back to a commit. What was changed since then is kept on `branch`.
    pub fn put_back(&self, worktree: &Path, commit: &str, branch: &str) -> Result<(), GitError> {
        self.check_branch(branch)?;
        self.commit_as_it_is(worktree, "changed by somebody who may not")?;
        let call = || self.git().at(worktree);
        call().args(["branch", "--force", "--", branch, "HEAD"]).text()?;
        call().args(["reset", "--quiet", "--hard", commit, "--"]).text().map(drop)
    }

    /// Merges a branch into what is checked out in a worktree; the error names the files that are in conflict, and
    /// then nothing is changed.
    pub fn merge_into(&self, worktree: &Path, branch: &str, message: &str) -> Result<(), GitError> {
        self.finish_bringing(worktree)?;
        let gone = || GitError::NoBranch { branch: branch.to_owned() };
        let theirs = self.branch_commit(branch)?.ok_or_else(gone)?;
        let call = || self.git().at(worktree);
        let ours = call().args(["rev-parse", "--verify", "HEAD^{commit}"]).text()?;
        if self.is_ancestor(&theirs, &ours)? {
            return Ok(());
        }
        let new = if self.is_ancestor(&ours, &theirs)? {
            theirs
        } else {
            let into = call().args(["symbolic-ref", "--quiet", "--short", "HEAD"]).maybe()?;
            let into = into.unwrap_or_else(|| worktree.display().to_string());
            let tree = merged_tree(self, branch, &into, &ours, &theirs)?;
            commit_tree(self, &tree, &[&ours, &theirs], message)?
        };
        let note = admin(worktree)?.join(BRINGING);
        fs::write(&note, format!("{ours} {new}")).map_err(GitError::file("cannot write", &note))?;
        // git looks at every file before it writes the first, so that what it refuses has changed nothing.
        let brought = call().args(["merge", "--ff-only", "--quiet", "--no-autostash", &new]).run();
        fs::remove_file(&note).map_err(GitError::file("cannot remove", &note))?;
        brought
    }

    /// Finishes what an engine that was killed has begun to bring into a worktree. What stands in a file that it writes
    /// is the old or the new, or half of the new; anything else was written by somebody else, and stays: git may never
    /// have begun, or have refused because of it.
    fn finish_bringing(&self, worktree: &Path) -> Result<(), GitError> {
        let admin = admin(worktree)?;
        let note = admin.join(BRINGING);
        let Ok(text) = fs::read_to_string(&note) else { return Ok(()) };
        let call = || self.git().at(worktree);
        let head = call().args(["rev-parse", "--verify", "HEAD^{commit}"]).text()?;
        if let Some((old, new)) = text.split_once(' ').filter(|(old, _)| *old == head) {
            crate::workspace::break_stale_locks(&admin);
            self.bring(worktree, old, new)?;
        }
        fs::remove_file(&note).map_err(GitError::file("cannot remove", &note))
    }

    fn bring(&self, worktree: &Path, old: &str, new: &str) -> Result<(), GitError> {
        let call = || self.git().at(worktree);
        let paths = call().args(["diff-tree", "-r", "-z", "--no-renames", "--name-only", old, new]).bytes()?;
        let mut files = Vec::new();
        for path in paths.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            if self.is_anothers(worktree, path, old, new)? {
                files.push(shown(path));
            }
        }
        if !files.is_empty() {
            return Err(GitError::Unresolved { folder: worktree.to_owned(), files });
        }
        if !paths.is_empty() {
            let restore = call().option("--literal-pathspecs").args(["restore", "--staged", "--worktree"]);
            let from = format!("--source={new}");
            restore.args([&from, "--pathspec-from-file=-", "--pathspec-file-nul"]).input(paths).run()?;
        }
        call().args(["update-ref", "-m", "sluice: merge", "HEAD", new, old]).run()
    }

    /// Whether a file holds something that is neither its old nor its new content, nor the beginning of the new.
    fn is_anothers(&self, worktree: &Path, path: &[u8], old: &str, new: &str) -> Result<bool, GitError> {
        let file = path_of(worktree, path);
        let found = match fs::symlink_metadata(&file) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(false),
            Err(error) => return Err(GitError::file("cannot read", &file)(error)),
            Ok(found) => found,
        };
        if found.is_symlink() {
            let here = fs::read_link(&file).map_err(GitError::file("cannot read", &file))?;
            let here = here.as_os_str().as_encoded_bytes();
            let of = |commit| self.content(worktree, commit, path, "blob");
            return Ok(of(old)?.as_deref() != Some(here) && of(new)?.as_deref() != Some(here));
        }
        if !found.is_file() {
            return Ok(true);
        }
        // As it would be checked out, so that line ends and filters do not matter.
        let here = fs::read(&file).map_err(GitError::file("cannot read", &file))?;
        let is_old = self.content(worktree, old, path, "--filters")?.is_some_and(|old| old == here);
        let is_new = self.content(worktree, new, path, "--filters")?.is_some_and(|new| new.starts_with(&here));
        Ok(!is_old && !is_new)
    }

    /// A file as a commit has it.
    fn content(&self, worktree: &Path, commit: &str, path: &[u8], how: &str) -> Result<Option<Vec<u8>>, GitError> {
        let name = [commit.as_bytes(), b":", path].concat();
        let call = self.git().at(worktree).looking().args(["cat-file", how]).args([OsStr::from_bytes(&name)]);
        let ended = call.answer()?;
        Ok((ended.code == Some(0)).then_some(ended.stdout))
    }
}

/// What git keeps for a worktree.
fn admin(worktree: &Path) -> Result<PathBuf, GitError> {
    let link = worktree.join(".git");
    if link.is_dir() {
        return Ok(link);
    }
    let text = fs::read(&link).map_err(GitError::file("cannot read", &link))?;
    let named = text.strip_prefix(b"gitdir: ").map(|named| named.strip_suffix(b"\n").unwrap_or(named));
    let odd = || GitError::Answer { what: format!("reading {}", link.display()), said: shown(&text) };
    Ok(path_of(worktree, named.ok_or_else(odd)?))
}
