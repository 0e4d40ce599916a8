//! What removals and kills leave in the folder of a pool: worktrees that are removed half-way, locks without a worktree, empty
//! folders of what was set aside. None of it holds work.
//!
//! A pool whose repository is gone has them too: so they are found by the folder alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::place::{REMOVED, remove_tree};
use super::site::gone;
use crate::git::GitError;
use crate::lock::FileLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftoverKind {
    /// A worktree whose work was kept, and whose removal was broken off.
    Removed,
    /// The lock of a worktree that is not there.
    Lock,
    /// A folder without anything in it.
    Empty,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLeftover {
    pub kind: LeftoverKind,
    pub path: PathBuf,
}

/// What can go from the folder of a pool at once. What a process is at work on now is not among it.
pub fn leftovers(root: &Path) -> Vec<PoolLeftover> {
    let is_free = |path: &Path| FileLock::wait_until_free(path, Duration::ZERO);
    let is_quiet = is_free(&root.join(ALL));
    let kind = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        match name.strip_suffix(".lock") {
            _ if name.starts_with(REMOVED) => is_quiet.then_some(LeftoverKind::Removed),
            Some(of) if !of.is_empty() => {
                let is_stale = !fs::exists(root.join(of)).unwrap_or(true) && is_free(path);
                is_stale.then_some(LeftoverKind::Lock)
            }
            Some(_) | None => None,
        }
    };
    let mut found: Vec<PoolLeftover> =
        entries(root).into_iter().filter_map(|path| Some(PoolLeftover { kind: kind(&path)?, path })).collect();
    let aside = entries(&root.join("aside")).into_iter().filter(|path| is_empty(path));
    found.extend(aside.map(|path| PoolLeftover { kind: LeftoverKind::Empty, path }));
    found
}

/// Removes a leftover, if it still is one when its turn comes. Whether it is gone.
pub fn remove_leftover(root: &Path, leftover: &PoolLeftover) -> Result<bool, GitError> {
    let path = &leftover.path;
    let failed = GitError::file("cannot remove", path);
    match leftover.kind {
        LeftoverKind::Removed => {
            let _lock = super::lock(&root.join(ALL), "the pool of workspaces")?;
            gone(remove_tree(path)).map_err(failed).map(|()| true)
        }
        LeftoverKind::Lock => {
            // Held by another process, it is no leftover any more.
            let Ok(lock) = FileLock::take(path) else { return Ok(false) };
            if fs::exists(path.with_extension("")).unwrap_or(true) {
                return Ok(false);
            }
            gone(lock.remove(path)).map_err(failed).map(|()| true)
        }
        LeftoverKind::Empty => Ok(remove_empty(path)),
    }
}

/// The lock of a pool as a whole.
pub(super) const ALL: &str = ".lock";

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Whether nothing is in a folder but the lock of a pool.
pub fn is_empty(folder: &Path) -> bool {
    let is_lock = |entry: fs::DirEntry| entry.file_name() == ALL;
    fs::read_dir(folder).is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(is_lock)))
}

/// Removes a folder in which nothing is but the lock of a pool. Whether it is gone.
pub fn remove_empty(folder: &Path) -> bool {
    let path = folder.join(ALL);
    if is_empty(folder) && path.exists() {
        // Held by another process, it is in use.
        let Ok(lock) = FileLock::take(&path) else { return false };
        drop(lock.remove(&path));
    }
    fs::remove_dir(folder).is_ok()
}
