//! Removing workspaces that nobody uses, and keeps that are old enough, when asked.
//!
//! What would be lost is kept first, as everywhere. A workspace that cannot be removed is reported and left alone, and
//! the others still are.

use std::fs;
use std::time::{Duration, SystemTime};

use super::keep::{self, KeepRef};
use super::{WorkspaceName, WorkspacePool};
use crate::git::GitError;

#[derive(Debug)]
pub struct SweptWorkspace {
    pub name: WorkspaceName,
    /// What was kept of it; or why it is still there.
    pub outcome: Result<Option<KeepRef>, GitError>,
}

#[derive(Debug, Default)]
pub struct WorkspaceSweep {
    /// The workspaces that no task used.
    pub removed: Vec<SweptWorkspace>,
    /// The keeps that were old enough to go, and are gone.
    pub pruned: Vec<KeepRef>,
}

impl WorkspacePool {
    /// Removes workspaces, each if it is not in use when its turn comes: then it is kept from everybody by what
    /// `removal` gives, until it is gone. With `older_than` keeps of at least that age go too.
    pub fn gc<T>(
        &self,
        removal: impl Fn(&WorkspaceName) -> Option<T>,
        older_than: Option<Duration>,
    ) -> Result<WorkspaceSweep, GitError> {
        let mut sweep = WorkspaceSweep::default();
        for name in self.names()? {
            // A folder that is no worktree of this repository is not ours to remove.
            if self.known(&name)?.is_some()
                && let Some(_held) = removal(&name)
            {
                let outcome = self.sweep(&name);
                sweep.removed.push(SweptWorkspace { name, outcome });
            }
        }
        self.remove_remains()?;
        if let Some(age) = older_than {
            sweep.pruned = self.prune(age)?;
        }
        Ok(sweep)
    }

    /// What is kept, of all tasks.
    pub fn kept(&self) -> Result<Vec<KeepRef>, GitError> {
        Ok(keep::stored(self.repository(), None)?.into_iter().map(|it| it.kept).collect())
    }

    fn sweep(&self, name: &WorkspaceName) -> Result<Option<KeepRef>, GitError> {
        let _lock = self.lock(name)?;
        let owner = self.known(name)?.map(|site| site.binding()).transpose()?.flatten();
        self.destroy_locked(name, &owner.map_or_else(|| name.as_owner(), |binding| binding.task))
    }

    /// What a removal that was broken off has left. It was kept before it was renamed.
    fn remove_remains(&self) -> Result<(), GitError> {
        let _lock = self.lock_all()?;
        let entries = fs::read_dir(self.root()).map_err(GitError::file("cannot read", self.root()))?;
        for entry in entries.filter_map(Result::ok) {
            if entry.file_name().to_string_lossy().starts_with(".removed-") {
                fs::remove_dir_all(entry.path()).map_err(GitError::file("cannot remove", &entry.path()))?;
            }
        }
        Ok(())
    }

    fn prune(&self, age: Duration) -> Result<Vec<KeepRef>, GitError> {
        let now = SystemTime::now();
        let mut pruned = Vec::new();
        for kept in self.kept()? {
            if now.duration_since(kept.time).is_ok_and(|it| it >= age) {
                self.repository().call().args(["update-ref", "-d", &kept.reference, &kept.commit]).run()?;
                let aside = self.aside(&kept);
                super::site::gone(fs::remove_dir_all(&aside)).map_err(GitError::file("cannot remove", &aside))?;
                pruned.push(kept);
            }
        }
        Ok(pruned)
    }
}
