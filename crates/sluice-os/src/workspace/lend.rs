//! Lending a workspace on while its task waits for a person: only one in which everything is in a commit of the task's branch.
//!
//! It is stricter than a release, which keeps what would be lost: here nothing may have to be kept or moved aside. What
//! cannot be read is an error, and the workspace stays as it is.

use super::release::{ignores_otherwise, overwritten};
use super::risk::WorkspaceRisk;
use super::site::{WorkspaceBinding, WorktreeSite};
use super::{WorkspaceName, WorkspacePool};
use crate::git::GitError;

impl WorkspacePool {
    /// Whether a workspace can be lent on: the task has it, with its branch checked out, and nothing in it is under way or
    /// would be lost.
    pub fn is_spotless(&self, name: &WorkspaceName, binding: &WorkspaceBinding) -> Result<bool, GitError> {
        let _lock = self.lock(name)?;
        Ok(self.spotless(name, binding)?.is_some())
    }

    /// Takes a workspace back if it can be lent on, and removes the file of its task, which the caller has copied. Whether it
    /// was taken back.
    pub fn hand_on(&self, name: &WorkspaceName, binding: &WorkspaceBinding) -> Result<bool, GitError> {
        let _lock = self.lock(name)?;
        let Some(site) = self.spotless(name, binding)? else { return Ok(false) };
        // What comes into it in this very moment is kept, as whenever a workspace is taken back.
        let (kept, risk, _) = self.clear(&site, &binding.task)?;
        site.forget_settings()?;
        self.leave(&site, &binding.task, kept, &risk, &self.repository().default_commit()?)?;
        site.forget_moves()?;
        site.unbind()?;
        Ok(true)
    }

    fn spotless(&self, name: &WorkspaceName, binding: &WorkspaceBinding) -> Result<Option<WorktreeSite>, GitError> {
        let Some(site) = self.known(name)?.filter(WorktreeSite::is_present) else { return Ok(None) };
        let has_it = site.binding()?.is_some_and(|bound| bound.task == binding.task);
        let at_work = ["index.lock", "HEAD.lock"].iter().any(|lock| site.admin.join(lock).exists());
        if !has_it || at_work {
            return Ok(None);
        }
        // A look costs the same however large the files are that somebody has left there.
        let (risk, is_staged) = WorkspaceRisk::glance(&site)?;
        let on_branch = risk.changes.branch.as_ref() == Some(&binding.branch);
        if !on_branch || is_staged || !risk.is_empty() || !risk.is_untouched(&site) {
            return Ok(None);
        }
        let commit = self.repository().default_commit()?;
        // What only the branch ignores may be work; what the default branch has is written over it.
        let may_hide = ignores_otherwise(&site, &risk, &commit)? && has_ignored(&site)?;
        Ok((!may_hide && overwritten(&site, &risk, &commit)?.is_empty()).then_some(site))
    }
}

/// Whether there is anything that git ignores, but for the file of the task.
fn has_ignored(site: &WorktreeSite) -> Result<bool, GitError> {
    let how = ["--others", "--ignored", "--exclude-standard", "--directory", "-z"];
    let bytes = site.call().arg("ls-files").args(how).bytes()?;
    let mut paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.any(|path| path != site.task_file()))
}
