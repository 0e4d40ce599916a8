//! Bringing work together in a worktree of the engine's: committing what lies there, and merging a branch into it.
//!
//! A merge is made in memory. Only what is merged without a conflict comes into the worktree, in the same way as into the
//! user's checkout: what an engine that is killed meanwhile leaves half done is made good at the next look. So no
//! worktree ever holds conflict markers of ours, and nothing that is half brought there is committed.

use std::path::Path;

use super::{GitError, Repository, shown};
use crate::merge::{BranchTurn, advance, commit_tree, merged_tree, unused_drivers};

impl Repository {
    /// Commits everything in a worktree, new files too; nothing if there is nothing to commit. Conflicts that somebody
    /// left there unresolved are refused. The user's own hooks are not run: this is bookkeeping.
    pub fn commit_all(&self, worktree: &Path, message: &str) -> Result<Option<String>, GitError> {
        let _turn = BranchTurn::of(self, worktree)?;
        let unmerged = self.git().at(worktree).args(["ls-files", "--unmerged", "-z"]).bytes()?;
        let path = |entry: &[u8]| entry.split(|byte| *byte == b'\t').nth(1).map(shown);
        let mut files: Vec<String> = unmerged.split(|byte| *byte == 0).filter_map(path).collect();
        files.dedup(); // one for each side
        if !files.is_empty() {
            return Err(GitError::Unresolved { folder: worktree.to_owned(), files });
        }
        self.commit_as_it_is(worktree, message)
    }

    /// Commits everything, conflicts too: for what is only put away.
    fn commit_as_it_is(&self, worktree: &Path, message: &str) -> Result<Option<String>, GitError> {
        let call = || self.git().at(worktree);
        crate::workspace::hide_in(self, worktree)?;
        call().args(["add", "--all"]).text()?;
        // What set-up made is not work while nothing has changed it; a file of the last commit stays as it is staged.
        let made = crate::workspace::as_made(worktree);
        if !made.is_empty() {
            let how = ["--pathspec-from-file=-", "--pathspec-file-nul"];
            let reset = call().option("--literal-pathspecs").args(["reset", "--quiet"]).args(how);
            reset.input(made.join(&0)).text()?;
        }
        if call().args(["diff", "--cached", "--quiet", "--no-ext-diff"]).answer()?.code == Some(0) {
            return Ok(None);
        }
        self.signed(call().args(["commit", "--quiet", "--no-verify", "--message", message]))?.text()?;
        call().args(["rev-parse", "HEAD"]).text().map(Some)
    }

    /// Puts a worktree back to a commit. What was changed since then is kept on `branch`.
    pub fn put_back(&self, worktree: &Path, commit: &str, branch: &str) -> Result<(), GitError> {
        self.check_branch(branch)?;
        self.commit_as_it_is(worktree, "changed by a step that may not")?;
        let call = || self.git().at(worktree);
        call().args(["branch", "--force", "--", branch, "HEAD"]).text()?;
        call().args(["reset", "--quiet", "--hard", commit, "--"]).text().map(drop)
    }

    /// Merges a branch into what is checked out in a worktree; the error names the files that are in conflict, and
    /// then nothing is changed. What else one should know of it.
    pub fn merge_into(&self, worktree: &Path, branch: &str, message: &str) -> Result<Option<String>, GitError> {
        let turn = BranchTurn::of(self, worktree)?;
        let gone = || GitError::NoBranch { branch: branch.to_owned() };
        let theirs = self.branch_commit(branch)?.ok_or_else(gone)?;
        let call = || self.git().at(worktree);
        let ours = call().args(["rev-parse", "--verify", "HEAD^{commit}"]).text()?;
        if self.is_ancestor(&theirs, &ours)? {
            return Ok(None);
        }
        let (new, note) = if self.is_ancestor(&ours, &theirs)? {
            (theirs, None)
        } else {
            let into = call().args(["symbolic-ref", "--quiet", "--short", "HEAD"]).maybe()?;
            let into = into.unwrap_or_else(|| worktree.display().to_string());
            let tree = merged_tree(&turn, (branch, &into), None, &ours, &theirs)?;
            let new = commit_tree(self, &tree, &[&ours, &theirs], message)?;
            (new, unused_drivers(self, &ours, &theirs))
        };
        advance(&turn, Some(&ours), &new).map(|()| note)
    }
}
