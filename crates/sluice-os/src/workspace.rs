//! Workspaces: git worktrees that are lent from a pool of a project.
//!
//! The caller says which workspace is lent for what; here it is done. A workspace is never emptied, removed or rebound
//! before everything at risk in it is kept. Which task is in which state is not known here.

mod bound;
mod cleanse;
mod create;
mod furnish;
mod keep;
mod leftovers;
mod lend;
mod listed;
mod made;
mod place;
mod release;
mod restore;
mod risk;
mod setup;
mod site;
mod spare;
mod state;
mod sweep;
mod unsynced;

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git::{GitError, Repository, slug};
use crate::lock::{FileLock, FileLockError};
pub use bound::BoundWorktree;
pub use furnish::{INCLUDE_FILE, WorktreeFurniture, must_stay_inside};
pub use keep::{KeepKind, KeepRef, keeps_of};
pub use leftovers::{LeftoverKind, PoolLeftover, is_empty, leftovers, remove_empty, remove_leftover};
pub use made::SetupTraces;
pub(crate) use place::break_stale_locks;
pub use release::BranchDeletion;
pub(crate) use release::keep_tip;
pub use restore::{RestoreTarget, RestoredKeep};
pub(crate) use risk::{ScratchIndex, entry};
pub use setup::{SetupNote, SetupSite};
pub use site::{WorkspaceBinding, task_file};
pub(crate) use site::{WorktreeSite, link_target, target};
pub use spare::{LendFailure, SPARE, SpareWorktree, is_own_spare};
pub use state::{BranchDistance, WorkspaceHead, WorkspaceState, WorkspaceTree};
pub use sweep::WorkspaceRemoval;

/// The file of a task at the root of its workspace. It is the engine's, and no part of the work.
pub(crate) const TASK_FILE: &[u8] = b"TASK.md";
/// The same in a project that has a file of that name.
pub(crate) const OTHER_TASK_FILE: &[u8] = b".sluice-task.md";

const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for the right to work on something, for a bounded time.
pub(crate) fn lock(path: &Path, what: &str) -> Result<FileLock, GitError> {
    lock_within(path, what, PATIENCE)
}

fn lock_within(path: &Path, what: &str, patience: Duration) -> Result<FileLock, GitError> {
    FileLock::take_within(path, patience).map_err(|no| match no {
        FileLockError::Held { pid } => {
            GitError::Busy { what: what.to_owned(), pid: pid.map_or_else(String::new, |pid| pid.to_string()) }
        }
        FileLockError::Broken(source) => GitError::File { what: "cannot lock", path: path.to_owned(), source },
    })
}

/// The lock of one workspace. Its file goes with the workspace: given up where no folder is, it leaves nothing, whatever was
/// asked of a workspace that is gone or was never made.
#[derive(Debug)]
struct WorkspaceLock {
    /// Taken only when it is dropped.
    lock: Option<FileLock>,
    path: PathBuf,
    folder: PathBuf,
}

impl Drop for WorkspaceLock {
    fn drop(&mut self) {
        let is_gone = fs::symlink_metadata(&self.folder).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if let Some(lock) = self.lock.take().filter(|_| is_gone) {
            let _ = lock.remove(&self.path); // one that stays does no harm, and the next sweep finds it
        }
    }
}

/// The name of a workspace in its pool: letters, digits and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspaceName(String);

impl WorkspaceName {
    pub fn new(name: &str) -> Result<WorkspaceName, GitError> {
        let fits = |it: char| it.is_ascii_alphanumeric() || it == '-';
        let is_name = !name.is_empty() && name.len() <= 64 && name.chars().all(fits) && !name.starts_with('-');
        // A folder of the pool has this name.
        if is_name && name != "aside" {
            return Ok(WorkspaceName(name.to_owned()));
        }
        Err(GitError::WorkspaceName { name: name.chars().take(200).collect() })
    }

    pub fn numbered(number: u32) -> WorkspaceName {
        WorkspaceName(number.to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// For whom work is kept that lies in a workspace which no task has.
    fn as_owner(&self) -> String {
        format!("workspace-{}", slug(&self.0))
    }
}

impl fmt::Display for WorkspaceName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceOrigin {
    /// It was bound to it already; nothing was changed.
    Bound,
    /// The branch was there.
    Local,
    /// The branch was made from the remote's.
    Remote,
    /// The branch was made from the base.
    New,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquiredWorkspace {
    pub folder: PathBuf,
    pub origin: WorkspaceOrigin,
    pub commit: String,
    /// Work that lay in the workspace although no task had it.
    pub kept: Option<KeepRef>,
    /// A folder that was in the way and could not be understood: where it is now.
    pub set_aside: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct WorkspacePool {
    repository: Repository,
    root: PathBuf,
}

impl WorkspacePool {
    /// The pool of a project, in the home. Nothing but its folder is made.
    pub fn new(repository: Repository, home: &Path, project: &str) -> Result<WorkspacePool, GitError> {
        WorkspacePool::at(repository, &home.join("workspaces").join(slug(project)))
    }

    /// A pool with a folder of its own, for worktrees that are not lent to tasks. Several repositories may share it, as
    /// long as names do not meet.
    pub fn at(repository: Repository, root: &Path) -> Result<WorkspacePool, GitError> {
        fs::create_dir_all(root).map_err(GitError::file("cannot make", root))?;
        // git writes down real paths, and ours are compared with them.
        let root = fs::canonicalize(root).map_err(GitError::file("cannot find", root))?;
        Ok(WorkspacePool { repository, root })
    }

    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a workspace, whether or not it is there.
    pub fn folder(&self, name: &WorkspaceName) -> PathBuf {
        self.root.join(name.as_str())
    }

    /// Makes workspaces that are not there yet. They are made when they are first lent, too.
    pub fn init(&self, names: &[WorkspaceName]) -> Result<(), GitError> {
        for name in names {
            let _lock = self.lock(name)?;
            let placed = self.place(name)?;
            if placed.is_new {
                break_stale_locks(&placed.site.admin);
                self.detach(&placed.site, &self.repository.default_commit()?)?;
                placed.site.finish()?;
            }
        }
        Ok(())
    }

    /// Lends a workspace: it is made if need be and put on the branch. A branch that is not there is made from the
    /// remote's, else from `base`, a commit; without one from the default branch. Asked again for the same it changes
    /// nothing, whatever has happened in the workspace since.
    pub fn acquire(
        &self,
        name: &WorkspaceName,
        binding: &WorkspaceBinding,
        base: Option<&str>,
    ) -> Result<AcquiredWorkspace, GitError> {
        self.repository.check_branch(&binding.branch)?;
        let _lock = self.lock(name)?;
        let placed = self.place(name)?;
        let site = placed.site;
        let mut acquired = AcquiredWorkspace {
            folder: site.folder.clone(),
            origin: WorkspaceOrigin::Bound,
            commit: String::new(),
            kept: placed.kept,
            set_aside: placed.set_aside,
        };
        match site.binding()? {
            Some(bound) if bound == *binding => {}
            // The agent renamed its branch, and the caller has been told.
            Some(bound) if bound.task == binding.task && site.branch()?.as_ref() == Some(&binding.branch) => {
                site.bind(binding, None)?;
            }
            Some(WorkspaceBinding { task, branch }) => {
                return Err(GitError::Bound { workspace: name.to_string(), branch, task });
            }
            None => {
                if placed.is_new {
                    break_stale_locks(&site.admin);
                    acquired.origin = self.check_out(&site, &binding.branch, base, true)?;
                } else if site.branch()?.as_ref() != Some(&binding.branch) {
                    let kept = self.make_ready(&site, &name.as_owner())?;
                    acquired.kept = kept.or(acquired.kept);
                    acquired.origin = self.check_out(&site, &binding.branch, base, false)?;
                }
                site.finish()?;
                site.choose_task_file()?;
                site.bind(binding, site.head()?.as_deref())?;
            }
        }
        let none = || GitError::NoCommit { missing: format!("a commit on `{}`", binding.branch) };
        acquired.commit = match (site.head()?, acquired.origin) {
            (Some(commit), _) => commit,
            // An agent may be about to make the first commit of a branch without history.
            (None, WorkspaceOrigin::Bound) => String::new(),
            (None, WorkspaceOrigin::Local | WorkspaceOrigin::Remote | WorkspaceOrigin::New) => return Err(none()),
        };
        Ok(acquired)
    }

    fn check_out(
        &self,
        site: &WorktreeSite,
        branch: &str,
        base: Option<&str>,
        force: bool,
    ) -> Result<WorkspaceOrigin, GitError> {
        let repository = &self.repository;
        let _writes = site.begin_writing()?;
        repository.drop_broken_branch(branch)?;
        let elsewhere = |folder| GitError::BranchElsewhere { branch: branch.to_owned(), folder };
        let force = if force { "--force" } else { "--no-force" };
        let call = || site.call().args(["checkout", "--quiet", "--no-guess", force]);
        let reference = format!("refs/heads/{branch}");
        let (call, origin, upstream) = if repository.commit(&reference)?.is_some() {
            if let Some(folder) = repository.checked_out(branch)? {
                return Err(elsewhere(folder));
            }
            (call().args([branch, "--"]), WorkspaceOrigin::Local, None)
        } else if let Some((_, reference)) = repository.tracking(branch)? {
            let short = reference.trim_start_matches("refs/remotes/").to_owned();
            (call().args(["--no-track", "-b", branch, &reference, "--"]), WorkspaceOrigin::Remote, Some(short))
        } else {
            let commit = match base {
                Some(base) => {
                    let missing = || GitError::NoCommit { missing: format!("`{base}`") };
                    repository.commit(base)?.ok_or_else(missing)?
                }
                None => repository.default_commit()?,
            };
            (call().args(["--no-track", "-b", branch, &commit, "--"]), WorkspaceOrigin::New, None)
        };
        let ended = call.answer()?;
        if ended.code != Some(0) {
            // git knows of more places than its list shows: a branch that is being rebased there.
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            let place = said.split_once(" used by worktree at '").or_else(|| said.split_once(" checked out at '"));
            let place = place.and_then(|(_, rest)| rest.rsplit_once('\'')).map(|(folder, _)| PathBuf::from(folder));
            return Err(place.map_or_else(|| call.failed(&ended), elsewhere));
        }
        // A name that git takes for something else, such as a commit's id, leaves HEAD without the branch.
        if site.branch()?.as_deref() != Some(branch) {
            return Err(GitError::BranchName { name: branch.to_owned() });
        }
        if let Some(upstream) = upstream {
            repository.call().args(["branch", "--quiet", "--set-upstream-to", &upstream, "--", branch]).run()?;
        }
        Ok(origin)
    }

    fn lock(&self, name: &WorkspaceName) -> Result<WorkspaceLock, GitError> {
        let path = self.root.join(format!("{name}.lock"));
        let lock = lock(&path, &format!("the workspace {name}"))?;
        Ok(WorkspaceLock { lock: Some(lock), path, folder: self.folder(name) })
    }

    /// For what concerns the pool as a whole; always taken after a workspace's own.
    fn lock_all(&self) -> Result<FileLock, GitError> {
        lock(&self.root.join(leftovers::ALL), "the pool of workspaces")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_on_something_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.lock");
        let _held = lock(&path, "the workspace 1").unwrap();
        let refused = lock_within(&path, "the workspace 1", Duration::ZERO).unwrap_err();
        let expected =
            format!("the workspace 1 is in use by process {}; wait for it, then try again", std::process::id());
        assert_eq!(refused.to_string(), expected);
    }
}
