//! The worktree of a run: decided on when the run starts, and made when its first step needs it. Checking out a large
//! repository takes seconds, and whoever starts a run need not wait for that.
//!
//! Asked for again, after a crash or by the next step, it finds what is there and finishes what is not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use sluice_api::problem::Problem;
use sluice_core::machine::Moment;
use sluice_core::run::{RunConclusion, RunParameters};
use sluice_engine::host::EngineClock;
use sluice_os::git::GitError;
use sluice_os::passing::PassingError;
use sluice_os::workspace::{WorkspaceBinding, WorkspaceName, WorkspacePool};
use sluice_worker::names::run_branch;

use crate::background::locked;
use crate::home::{Home, setup};
use crate::read::runs::RunSnapshot;
use crate::settings::projects::open;
use crate::undone::PerformError;

/// The code of the refusal to start a run that gets no worktree.
pub(crate) const NO_WORKSPACE: &str = "no_workspace";
/// A checkout without a run that is younger than this may be that of a run which is being started.
const YOUNG: Duration = Duration::from_secs(600);
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
    let is_known = || locked(&home.worktrees.0).contains(&given.id) && Path::new(&given.workspace).exists();
    given.origin.base.is_empty() || is_known()
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

/// How giving back a worktree went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorktreeReturn {
    /// It is removed, or stays for its time.
    Over,
    /// It is to be removed when its project's command has torn down what was set up; then it is given back again.
    TearDown,
}

/// Gives back the worktree of a run that has ended. One in which nothing is new goes, with its branch. Otherwise the branch
/// stays, what is not committed is kept as well, and the checkout stays for a while ([`sweep`]).
pub(crate) fn give_back(home: &Home, given: &RunParameters) -> Result<WorktreeReturn, PerformError> {
    if given.origin.base.is_empty() || !given.workspace.starts_with('/') {
        return Ok(WorktreeReturn::Over); // it has none of its own, or not on this machine
    }
    let pool = pool_of(home, given)?;
    let name = WorkspaceName::new(&given.id).map_err(PerformError::by)?;
    let branch = run_branch(&given.id);
    let tip = pool.repository().branch_commit(&branch).map_err(PerformError::by)?;
    let is_new = tip.as_ref().is_some_and(|tip| *tip != given.origin.base);
    let kept = pool.keep(&name, &given.id).map_err(PerformError::by)?;
    if is_new || kept.is_some() {
        return Ok(WorktreeReturn::Over);
    }
    if setup::must_leave(home, pool.repository().folder(), &pool.folder(&name))? {
        return Ok(WorktreeReturn::TearDown);
    }
    remove(home, &pool, &name, &given.id)?;
    pool.delete_branch(&branch, &given.id).map_err(PerformError::by)?;
    Ok(WorktreeReturn::Over)
}

/// Removes a checkout; what would be lost with it is kept.
fn remove(home: &Home, pool: &WorkspacePool, name: &WorkspaceName, run: &str) -> Result<(), PerformError> {
    setup::tear_down(home, pool.repository().folder(), &pool.folder(name))?;
    locked(&home.worktrees.0).remove(run);
    pool.destroy(name, run).map(drop).map_err(PerformError::by)
}

/// Removes the checkouts of runs that ended long enough ago, and as old ones whose run the store does not know: the engine
/// was killed before the run began, or the store is an older one. What would be lost with a checkout is kept. What failed
/// stays, as it may be tried again, and so does a checkout in which an agent lives.
pub(crate) fn sweep(home: &Home) {
    let Ok(folders) = std::fs::read_dir(folder(home)) else { return };
    let stays = home.context.config().workspaces.keep;
    let names = folders.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<WorkspaceName> = names.filter_map(|name| WorkspaceName::new(&name).ok()).collect();
    names.sort();
    for name in names {
        if let Err(undone) = sweep_one(home, &name, stays) {
            tracing::warn!(run = name.as_str(), "its checkout stays: {undone}");
        }
    }
}

fn sweep_one(home: &Home, name: &WorkspaceName, stays: Duration) -> Result<(), PerformError> {
    let is_over = |seen: &RunSnapshot| match &seen.state.end {
        Some(RunConclusion::Completed { .. } | RunConclusion::Cancelled { .. }) => {
            home.clock.now() > Moment(seen.card.updated).after(stays)
        }
        Some(RunConclusion::Failed { .. }) | None => false,
    };
    if home.tasks.load_run(name.as_str())?.is_some_and(|seen| !is_over(&seen)) {
        return Ok(());
    }
    let place = folder(home).join(name.as_str());
    let pool = WorkspacePool::at(open(&place, None)?, &folder(home)).map_err(PerformError::by)?;
    // The worktree of a part is lent to its run.
    let lent = pool.lent_to(name).map_err(PerformError::by)?.map_or_else(|| name.to_string(), |bound| bound.task);
    let goes = match home.tasks.load_run(&lent)? {
        Some(seen) => is_over(&seen),
        None => is_older(&place, stays.max(YOUNG)),
    };
    let has_agent = || home.context.sessions.at_work().iter().any(|(_, folder)| folder.starts_with(&place));
    if goes && !has_agent() { remove(home, &pool, name, &lent) } else { Ok(()) }
}

fn is_older(place: &Path, age: Duration) -> bool {
    let changed = place.metadata().and_then(|about| about.modified()).ok();
    changed.and_then(|at| at.elapsed().ok()).is_some_and(|since| since >= age)
}

/// Where the worktrees are of runs that are started here.
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
