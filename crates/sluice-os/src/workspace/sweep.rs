//! Removing workspaces that nobody uses, branches whose work is merged, and keeps that are old enough, when asked.
//!
//! What would be lost is kept first, as everywhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::keep::{self, KEEPS, KeepKind, KeepRef};
use super::place::remove_tree;
use super::risk::WorkspaceRisk;
use super::site::{WorkspaceBinding, gone};
use super::{WorkspaceName, WorkspacePool};
use crate::git::{GitError, Repository};
use crate::lock::FileLock;

/// The repositories of submodules that were set aside begin with this, in what git keeps for the repository.
pub(super) const MODULES: &str = "modules-";

/// How a removal went that depends on a last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceRemoval {
    /// It is gone; this was kept of it.
    Gone(Option<KeepRef>),
    /// It may not go any more, or is no workspace.
    Stays,
}

impl WorkspacePool {
    /// The worktrees of this repository in the pool. A folder that is none is not ours to remove.
    pub fn made(&self) -> Result<Vec<WorkspaceName>, GitError> {
        let mut made = Vec::new();
        for name in self.names()? {
            if self.known(&name)?.is_some() {
                made.push(name);
            }
        }
        Ok(made)
    }

    /// Removes a workspace, and keeps what would be lost first: for the task or run that it is lent to, else for itself. The
    /// caller has made sure that nobody uses it.
    pub fn collect(&self, name: &WorkspaceName) -> Result<Option<KeepRef>, GitError> {
        let _lock = self.lock(name)?;
        let owner = self.known(name)?.map(|site| site.binding()).transpose()?.flatten();
        let kept = self.destroy_locked(name, &owner.map_or_else(|| name.as_owner(), |binding| binding.task))?;
        Ok(kept)
    }

    /// Removes a workspace as [`WorkspacePool::destroy`] does, if it still may go when nothing else is at it: what takes it up
    /// afterwards waits for the same lock, and finds it gone.
    pub fn destroy_if(
        &self,
        name: &WorkspaceName,
        task: &str,
        may_go: impl FnOnce() -> bool,
    ) -> Result<WorkspaceRemoval, GitError> {
        let _lock = self.lock(name)?;
        let Some(site) = self.known(name)?.filter(|_| may_go()) else { return Ok(WorkspaceRemoval::Stays) };
        if let Some(WorkspaceBinding { task, branch }) = site.binding()?.filter(|bound| bound.task != task) {
            return Err(GitError::Bound { workspace: name.to_string(), branch, task });
        }
        let kept = self.destroy_locked(name, task)?;
        Ok(WorkspaceRemoval::Gone(kept))
    }

    /// Removes the folder of a workspace that git does not know, if nothing is in it. Whether it is gone.
    pub fn remove_empty_place(root: &Path, name: &WorkspaceName) -> bool {
        let path = root.join(format!("{name}.lock"));
        // Held by another process, a worktree is being made there.
        let Ok(lock) = FileLock::take(&path) else { return false };
        let is_gone = fs::remove_dir(root.join(name.as_str())).is_ok();
        if is_gone {
            let _ = lock.remove(&path);
        }
        is_gone
    }

    /// Whether git knows a workspace. A folder that was copied, or whose repository has forgotten it, is none.
    pub fn knows(&self, name: &WorkspaceName) -> Result<bool, GitError> {
        self.known(name).map(|site| site.is_some())
    }

    /// What [`WorkspacePool::collect`] would keep of a workspace. Nothing is written.
    pub fn at_risk(&self, name: &WorkspaceName) -> Result<Vec<KeepKind>, GitError> {
        let Some(site) = self.known(name)? else { return Ok(Vec::new()) };
        let (risk, is_staged) = WorkspaceRisk::glance(&site)?;
        let mut kinds = keep::kinds(&risk);
        // A file in conflict is staged only as far as its index differs, which is known when it is stored.
        if is_staged && risk.changes.unmerged.is_empty() && !kinds.contains(&KeepKind::Staged) {
            kinds.insert(0, KeepKind::Staged);
        }
        Ok(kinds)
    }

    /// What is kept, of all tasks and runs.
    pub fn kept(&self) -> Result<Vec<KeepRef>, GitError> {
        self.repository().kept()
    }

    /// Removes kept work, with what was set aside for it in this pool.
    pub fn drop_kept(&self, kept: &KeepRef) -> Result<(), GitError> {
        self.repository().drop_kept(kept, &[self.root().to_owned()])
    }

    /// Whether a part of a keep that is not in git lies in this pool.
    pub fn has_aside(&self, kept: &KeepRef) -> bool {
        self.aside(kept).exists()
    }
}

impl Repository {
    /// What is kept, of all tasks and runs.
    pub fn kept(&self) -> Result<Vec<KeepRef>, GitError> {
        Ok(keep::stored(self, None)?.into_iter().map(|it| it.kept).collect())
    }

    /// Bytes in the repository that only keeps reach.
    pub fn kept_bytes(&self) -> Result<u64, GitError> {
        let call = self.call().looking().args(["rev-list", "--disk-usage", "--objects", &format!("--glob={KEEPS}")]);
        let call = call.args(["--not", "--branches", "--tags", "--remotes"]);
        let text = call.text()?;
        text.trim().parse().map_err(|_| call.odd(text))
    }

    /// The local branches that begin with this and whose commits the default branch has.
    pub fn merged_branches(&self, begins: &str) -> Result<Vec<String>, GitError> {
        let merged = format!("--merged={}", self.default_commit()?);
        let call = self.call().args(["for-each-ref", "--format=%(refname:short)", &merged]);
        let text = call.arg(format!("refs/heads/{begins}*")).text()?;
        Ok(text.lines().filter(|it| !it.is_empty()).map(str::to_owned).collect())
    }

    /// Removes a keep, with what was set aside for it in these pools. The reference goes last: what is broken off can be done
    /// again.
    fn drop_kept(&self, kept: &KeepRef, pools: &[PathBuf]) -> Result<(), GitError> {
        let place = |root: &PathBuf| root.join("aside").join(crate::git::slug(&kept.task));
        for folder in pools.iter().map(place) {
            let aside = folder.join(kept.number.to_string());
            gone(remove_tree(&aside)).map_err(GitError::file("cannot remove", &aside))?;
            let _ = fs::remove_dir(&folder); // only an empty one goes
        }
        self.call().args(["update-ref", "-d", &kept.reference, &kept.commit]).run()
    }

    /// Removes keeps of at least this age, with what was set aside for them in these pools, and repositories of submodules that
    /// were set aside as long ago.
    pub fn prune_keeps(&self, age: Duration, pools: &[PathBuf]) -> Result<Vec<KeepRef>, GitError> {
        let is_old = |since: SystemTime| SystemTime::now().duration_since(since).is_ok_and(|it| it >= age);
        let remove = |path: &Path| gone(remove_tree(path)).map_err(GitError::file("cannot remove", path));
        let mut pruned = Vec::new();
        for kept in self.kept()?.into_iter().filter(|kept| is_old(kept.time)) {
            self.drop_kept(&kept, pools)?;
            pruned.push(kept);
        }
        for entry in fs::read_dir(self.common().join("sluice")).into_iter().flatten().flatten() {
            let changed = entry.metadata().and_then(|about| about.modified());
            if entry.file_name().to_string_lossy().starts_with(MODULES) && changed.is_ok_and(is_old) {
                remove(&entry.path())?;
            }
        }
        Ok(pruned)
    }
}
