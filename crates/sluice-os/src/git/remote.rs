//! What is done on a remote: a branch pushed, a branch deleted.
//!
//! Nothing is ever forced over commits that were not seen: a push that is not a fast-forward is refused by the remote,
//! and a branch is deleted only where it was last seen, with all its commits merged.

use super::{GitCall, GitError, Repository, said};
use crate::merge::{BranchTurn, merged_tree};
use crate::workspace::keep_tip;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteBranchDeletion {
    /// There is nothing to delete.
    NotThere,
    /// It is gone; its commits are merged.
    Deleted,
    /// It stays: its newest commit is not merged.
    Stays { remote: String, tip: String },
}

impl Repository {
    /// Pushes a branch to the remote and makes the remote's its upstream. Pushed already, it changes nothing.
    pub fn push_branch(&self, branch: &str) -> Result<(), GitError> {
        if self.branch_commit(branch)?.is_none() {
            return Err(GitError::NoBranch { branch: branch.to_owned() });
        }
        let remote = self.remote()?.ok_or(GitError::NoRemote)?;
        let call = self.call().network().args(["push", "--quiet", "--set-upstream"]);
        pushed(call, &remote, (&format!("refs/heads/{branch}"), branch))
    }

    /// Whether the remote has all of the default branch, as last seen here: a push notes what the remote has then.
    pub fn is_pushed(&self) -> Result<bool, GitError> {
        let default = self.default_branch();
        let Some(remote) = self.remote()? else { return Ok(false) };
        match (self.branch_commit(default)?, self.commit(&format!("refs/remotes/{remote}/{default}"))?) {
            (Some(here), Some(there)) => self.is_ancestor(&here, &there),
            (Some(_) | None, _) => Ok(false),
        }
    }

    /// Brings the remote's branch to this commit: what a hook or a person has put on the branch here since is not pushed.
    pub(crate) fn push_commit(&self, remote: &str, commit: &str, branch: &str) -> Result<(), GitError> {
        pushed(self.call().network().args(["push", "--quiet"]), remote, (commit, branch))
    }

    /// Deletes a branch on the remote if all of it is merged there: the default branch of the remote has its newest
    /// commit, or that commit is known to be merged and the default branch of the remote has all it changes, as after a
    /// squash. It is kept for this task first. What a colleague has pushed since stays, and so does what was merged only
    /// here.
    pub fn delete_remote_branch(
        &self,
        branch: &str,
        task: &str,
        merged: Option<&str>,
    ) -> Result<RemoteBranchDeletion, GitError> {
        self.check_branch(branch)?;
        if branch == self.default_branch() {
            return Err(GitError::DefaultBranch { branch: branch.to_owned() });
        }
        let Some(remote) = self.remote()? else { return Ok(RemoteBranchDeletion::NotThere) };
        let failed = |said| {
            let what = format!("the deletion of `{branch}`");
            GitError::Push { remote: remote.clone(), what, said }
        };
        let (reference, default) = (format!("refs/heads/{branch}"), format!("refs/heads/{}", self.default_branch()));
        let call = self.call().network().args(["ls-remote", "--quiet", "--", &remote, &reference, &default]);
        let ended = call.answer()?;
        if ended.code != Some(0) {
            return Err(failed(said(&ended)));
        }
        let listed = String::from_utf8_lossy(&ended.stdout).into_owned();
        let at = |wanted: &str| {
            let mut refs = listed.lines().filter_map(|line| line.split_once('\t'));
            refs.find(|(_, name)| *name == wanted).map(|(commit, _)| commit)
        };
        let Some(tip) = at(&reference) else { return Ok(RemoteBranchDeletion::NotThere) };
        let is_in = match at(&default) {
            Some(into) => self.is_merged_there(&remote, branch, (tip, into), merged)?,
            None => false,
        };
        if !is_in {
            return Ok(RemoteBranchDeletion::Stays { remote, tip: tip.to_owned() });
        }
        keep_tip(self, &format!("refs/remotes/{remote}/{branch}"), branch, tip, task)?;
        let lease = format!("--force-with-lease={reference}:{tip}");
        let call = self.call().network().hooks().args(["push", "--quiet", &lease, "--", &remote]);
        let ended = call.arg(format!(":{reference}")).answer()?;
        if ended.code != Some(0) {
            return Err(failed(said(&ended)));
        }
        Ok(RemoteBranchDeletion::Deleted)
    }

    /// Whether the default branch of the remote, which is at `into`, has all of a branch that is at `tip`.
    fn is_merged_there(
        &self,
        remote: &str,
        branch: &str,
        (tip, into): (&str, &str),
        merged: Option<&str>,
    ) -> Result<bool, GitError> {
        if self.commit(into)?.is_none() {
            self.refresh(remote, self.default_branch())?;
        }
        // What is not known here cannot be in a default branch that is.
        if self.commit(into)?.is_none() || self.commit(tip)?.is_none() {
            return Ok(false);
        }
        if self.is_ancestor(tip, into)? {
            return Ok(true);
        }
        if merged != Some(tip) || self.call().args(["merge-base", tip, into]).maybe()?.is_none() {
            return Ok(false);
        }
        // Merged there as other commits, it changes nothing any more.
        let turn = BranchTurn::take(self)?;
        match merged_tree(&turn, (branch, self.default_branch()), None, into, tip) {
            Ok(tree) => Ok(tree == self.tree(into)?),
            Err(GitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Looks where a branch is on the remote. That it cannot be seen is for the push to say.
    pub(crate) fn refresh(&self, remote: &str, branch: &str) -> Result<(), GitError> {
        let refspec = format!("+refs/heads/{branch}:refs/remotes/{remote}/{branch}");
        self.call().network().args(["fetch", "--quiet", "--no-tags", "--", remote, &refspec]).answer().map(drop)
    }
}

/// Pushes, with the user's hooks: that of LFS brings the files along.
fn pushed(call: GitCall, remote: &str, (from, branch): (&str, &str)) -> Result<(), GitError> {
    let refspec = format!("{from}:refs/heads/{branch}");
    let ended = call.hooks().args(["--", remote, &refspec]).answer()?;
    match ended.code {
        Some(0) => Ok(()),
        _ => Err(GitError::Push { remote: remote.to_owned(), what: format!("`{branch}`"), said: said(&ended) }),
    }
}
