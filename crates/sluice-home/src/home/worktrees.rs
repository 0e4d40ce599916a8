//! The worktree of a run: decided on when the run starts, and made when its first step needs it. Checking out a large
//! repository takes seconds, and whoever starts a run need not wait for that.
//!
//! Asked for again, after a crash or by the next step, it finds what is there and finishes what is not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sluice_api::problem::Problem;
use sluice_core::run::RunParameters;
use sluice_os::git::GitError;
use sluice_os::passing::PassingError;
use sluice_os::workspace::{WorkspaceBinding, WorkspaceName, WorkspacePool};
use sluice_worker::names::run_branch;

use crate::background::locked;
use crate::home::Home;
use crate::settings::projects::open;
use crate::undone::PerformError;

/// The code of the refusal to start a run that gets no worktree.
pub(crate) const NO_WORKSPACE: &str = "no_workspace";
/// So many are remembered; then they are looked at again.
const MOST_REMEMBERED: usize = 10_000;

#[derive(Default)]
pub(crate) struct RunWorktrees(Mutex<BTreeSet<String>>);

/// Where a run will work, and from which commit it starts.
pub(crate) struct PlannedWorktree {
    /// The folder; empty: the run works where it was started.
    pub(crate) folder: String,
    /// The commit; empty: no worktree is to be made.
    pub(crate) base: String,
}

/// The worktree of a run that is started in a git repository; elsewhere it works where it was started. What the engine
/// starts by itself begins at the commit `of` the default branch in which it looked for the definition: what somebody has
/// checked out is theirs. What a person starts begins where they stand.
pub(crate) fn plan(home: &Home, root: &Path, id: &str, of: Option<String>) -> Result<PlannedWorktree, Problem> {
    let none = PlannedWorktree { folder: String::new(), base: String::new() };
    if !root.join(".git").exists() {
        return Ok(none);
    }
    let by_git = |error: GitError| PerformError::by(error).refusal(NO_WORKSPACE);
    let pool = pool(home, root).map_err(|undone| undone.refusal(NO_WORKSPACE))?;
    let default = match pool.repository().default_commit() {
        Ok(default) => default,
        Err(error) if error.is_passing() => return Err(by_git(error)),
        Err(_) => return Ok(none), // a repository without a commit has nothing to start from
    };
    let name = WorkspaceName::new(id).map_err(by_git)?;
    let base = match of {
        Some(_) => of,
        None => match pool.repository().commit("HEAD") {
            Err(error) if error.is_passing() => return Err(by_git(error)),
            read => read.ok().flatten(),
        },
    };
    Ok(PlannedWorktree { folder: pool.folder(&name).display().to_string(), base: base.unwrap_or(default) })
}

/// Whether the worktree of a run is known to be there, or it has none of its own.
pub(crate) fn is_ready(home: &Home, given: &RunParameters) -> bool {
    given.origin.base.is_empty() || locked(&home.worktrees.0).contains(&given.id)
}

/// Makes the worktree of a run, unless that has been done or it has none of its own.
pub(crate) fn ready(home: &Home, given: &RunParameters) -> Result<(), PerformError> {
    if is_ready(home, given) {
        return Ok(());
    }
    let pool = pool_of(home, given)?;
    let name = WorkspaceName::new(&given.id).map_err(PerformError::by)?;
    let binding = WorkspaceBinding { task: given.id.clone(), branch: run_branch(&given.id) };
    pool.acquire(&name, &binding, Some(&given.origin.base)).map_err(PerformError::by)?;
    let mut known = locked(&home.worktrees.0);
    if known.len() >= MOST_REMEMBERED {
        known.clear();
    }
    known.insert(given.id.clone());
    Ok(())
}

pub(crate) fn pool(home: &Home, root: &Path) -> Result<WorkspacePool, PerformError> {
    WorkspacePool::at(open(root, None)?, &folder(home)).map_err(PerformError::by)
}

/// Where the worktree of this run is, with those of its parts. The engine of another home may have started it: then its
/// work is there, and its branches are checked out there.
pub(crate) fn pool_of(home: &Home, given: &RunParameters) -> Result<WorkspacePool, PerformError> {
    let repository = open(Path::new(&given.origin.root), None)?;
    let own = Path::new(&given.workspace).parent().filter(|_| !given.origin.base.is_empty());
    WorkspacePool::at(repository, own.unwrap_or(&folder(home))).map_err(PerformError::by)
}

fn folder(home: &Home) -> PathBuf {
    home.context.places.home().join("runs")
}
