//! What is done on a remote: a branch pushed, a branch deleted.
//!
//! Nothing is ever forced over commits that were not seen: a push that is not a fast-forward is refused by the remote,
//! and a branch is deleted only where it was last seen, with its commits safe.

use super::{GitError, Repository, said};
use crate::workspace::{Deleted, keep_tip};

impl Repository {
    /// Pushes a branch to the remote and makes the remote's its upstream. Pushed already, it changes nothing.
    pub fn push_branch(&self, branch: &str) -> Result<(), GitError> {
        if self.branch_commit(branch)?.is_none() {
            return Err(GitError::NoBranch { branch: branch.to_owned() });
        }
        let remote = self.remote()?.ok_or(GitError::NoRemote)?;
        self.push(&remote, branch, true)
    }

    /// Pushes a branch, with the user's hooks: that of LFS brings the files along.
    pub(crate) fn push(&self, remote: &str, branch: &str, upstream: bool) -> Result<(), GitError> {
        let mut call = self.call().network().hooks().args(["push", "--quiet"]);
        if upstream {
            call = call.arg("--set-upstream");
        }
        let refspec = format!("refs/heads/{branch}:refs/heads/{branch}");
        let ended = call.args(["--", remote, &refspec]).answer()?;
        if ended.code == Some(0) {
            return Ok(());
        }
        Err(GitError::Push { remote: remote.to_owned(), what: format!("`{branch}`"), said: said(&ended) })
    }

    /// Deletes a branch on the remote. Commits that nothing here reaches are fetched and kept for this task first.
    pub fn delete_remote_branch(&self, branch: &str, task: &str) -> Result<Deleted, GitError> {
        self.check_branch(branch)?;
        if branch == self.default_branch() {
            return Err(GitError::DefaultBranch { branch: branch.to_owned() });
        }
        let Some(remote) = self.remote()? else { return Ok(Deleted::NotThere) };
        let failed = |said| {
            let what = format!("the deletion of `{branch}`");
            GitError::Push { remote: remote.clone(), what, said }
        };
        let reference = format!("refs/heads/{branch}");
        let ended = self.call().network().args(["ls-remote", "--quiet", "--", &remote, &reference]).answer()?;
        if ended.code != Some(0) {
            return Err(failed(said(&ended)));
        }
        let listed = String::from_utf8_lossy(&ended.stdout).into_owned();
        let tip = listed.lines().filter_map(|line| line.split_once('\t')).find(|(_, name)| *name == reference);
        let Some((tip, _)) = tip else { return Ok(Deleted::NotThere) };
        let tracking = format!("refs/remotes/{remote}/{branch}");
        if self.commit(tip)?.is_none() {
            let refspec = format!("+{reference}:{tracking}");
            let ended =
                self.call().network().args(["fetch", "--quiet", "--no-tags", "--", &remote, &refspec]).answer()?;
            if ended.code != Some(0) {
                return Err(failed(said(&ended)));
            }
        }
        let kept = keep_tip(self, &tracking, branch, tip, task)?;
        let lease = format!("--force-with-lease={reference}:{tip}");
        let call = self.call().network().hooks().args(["push", "--quiet", &lease, "--", &remote]);
        let ended = call.arg(format!(":{reference}")).answer()?;
        if ended.code != Some(0) {
            return Err(failed(said(&ended)));
        }
        Ok(kept.map_or(Deleted::Deleted, Deleted::Kept))
    }

    /// Looks where a branch is on the remote. That it cannot be seen is for the push to say.
    pub(crate) fn refresh(&self, remote: &str, branch: &str) -> Result<(), GitError> {
        let refspec = format!("+refs/heads/{branch}:refs/remotes/{remote}/{branch}");
        self.call().network().args(["fetch", "--quiet", "--no-tags", "--", remote, &refspec]).answer().map(drop)
    }
}
