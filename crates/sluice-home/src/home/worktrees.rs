//! The worktree of a run: decided on when the run starts, and made when its first step needs it. Checking out a large
//! repository takes seconds, and whoever starts a run need not wait for that.
//!
//! Asked for again, after a crash or by the next step, it finds what is there and finishes what is not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, SystemTime};

use sluice_api::problem::Problem;
use sluice_core::id::RunId;
use sluice_core::machine::Moment;
use sluice_core::run::{RunConclusion, RunParameters};
use sluice_engine::host::EngineClock;
use sluice_os::git::{GitError, checked_out_commit, is_bare};
use sluice_os::passing::PassingError;
use sluice_os::process::lives_below;
use sluice_os::workspace::{WorkspaceBinding, WorkspaceName, WorkspacePool, WorkspaceRemoval};
use sluice_worker::names::run_branch;

use crate::background::locked;
use crate::home::spares::{self, SpareShelf};
use crate::home::{Home, room, setup};
use crate::read::runs::RunSnapshot;
use crate::settings::projects::open;
use crate::undone::PerformError;

/// The code of the refusal to start a run that gets no worktree.
pub(crate) const NO_WORKSPACE: &str = "no_workspace";
/// A checkout without a run that is younger than this may be that of a run which is being started.
pub(crate) const YOUNG: Duration = Duration::from_secs(600);
/// So many failed runs keep their checkout; of those before them the branch and what was not committed are kept.
const MOST_FAILED: usize = 100;
/// So many are remembered; then they are looked at again.
const MOST_REMEMBERED: usize = 10_000;

/// Since when this process carries out steps.
static OPENED: LazyLock<SystemTime> = LazyLock::new(SystemTime::now);

/// Whether a run may have begun before this process did.
pub(crate) fn is_older_than_engine(started: Moment) -> bool {
    let opened = OPENED.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    u128::try_from(started.0).unwrap_or_default() <= opened
}

#[derive(Default)]
pub(crate) struct RunWorktrees {
    /// The runs whose worktree is known to be there.
    ready: Mutex<BTreeSet<RunId>>,
    pub(super) shelf: SpareShelf,
}

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
pub(crate) fn plan(home: &Home, root: &Path, id: &RunId, of: Option<String>) -> Result<PlannedWorktree, Problem> {
    let none = PlannedWorktree { folder: String::new(), base: String::new() };
    if !root.join(".git").exists() && !is_bare(root) {
        return Ok(none);
    }
    let by_git = |error: GitError| PerformError::by(error).refusal(NO_WORKSPACE);
    let name = WorkspaceName::new(id.as_str()).map_err(by_git)?;
    let base = match of.or_else(|| checked_out_commit(root)) {
        Some(base) => base,
        None => match base_by_git(home, root).map_err(|undone| undone.refusal(NO_WORKSPACE))? {
            Some(base) => base,
            None => return Ok(none), // a repository without a commit has nothing to start from
        },
    };
    let folder = canonical(&folder(home)).map_err(|undone| undone.refusal(NO_WORKSPACE))?.join(name.as_str());
    Ok(PlannedWorktree { folder: folder.display().to_string(), base })
}

/// The commit to start from where the files of the repository do not say what is checked out.
fn base_by_git(home: &Home, root: &Path) -> Result<Option<String>, PerformError> {
    let repository = home.worktrees.shelf.repository(root)?;
    let default = match repository.default_commit() {
        Err(error) if !error.is_passing() => return Ok(None),
        default => default.map_err(PerformError::by)?,
    };
    match repository.commit("HEAD") {
        Err(error) if error.is_passing() => Err(PerformError::by(error)),
        read => Ok(Some(read.ok().flatten().unwrap_or(default))),
    }
}

/// Whether the worktree of a run is known to be there, or it has none of its own.
pub(crate) fn is_ready(home: &Home, given: &RunParameters) -> bool {
    // A link that stands in its place leads to a folder that is not ours.
    let is_there = || std::fs::symlink_metadata(&given.workspace).is_ok_and(|it| it.is_dir());
    let is_known = || locked(&home.worktrees.ready).contains(&given.id) && is_there();
    given.origin.base.is_empty() || is_known()
}

/// Makes the worktree of a run, unless that has been done or it has none of its own.
pub(crate) fn ready(home: &Arc<Home>, given: &RunParameters) -> Result<(), PerformError> {
    if is_ready(home, given) {
        return Ok(());
    }
    let pool = pool_of(home, given)?;
    let name = WorkspaceName::new(given.id.as_str()).map_err(PerformError::by)?;
    room::must_be_there(home, &pool.folder(&name))?;
    home.repositories.remember([given.origin.root.as_str()]);
    lend(home, &pool, &name, given)?;
    let mut known = locked(&home.worktrees.ready);
    if known.len() >= MOST_REMEMBERED {
        known.clear();
    }
    known.insert(given.id.clone());
    Ok(())
}

/// Lends a run its worktree: a spare one, if nothing is in the place.
fn lend(
    home: &Arc<Home>,
    pool: &WorkspacePool,
    name: &WorkspaceName,
    given: &RunParameters,
) -> Result<(), PerformError> {
    let is_free = std::fs::symlink_metadata(pool.folder(name)).is_err();
    let spare = if is_free { home.worktrees.shelf.take(pool, &given.id) } else { None };
    let lent = pool.lend(spare, name, &binding(given), &given.origin.base);
    lent.map_err(|failure| spares::failed(home, pool, failure))
}

fn binding(given: &RunParameters) -> WorkspaceBinding {
    WorkspaceBinding { task: given.id.to_string(), branch: run_branch(&given.id) }
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
pub(crate) fn give_back(home: &Arc<Home>, given: &RunParameters) -> Result<WorktreeReturn, PerformError> {
    if given.origin.base.is_empty() || !given.workspace.starts_with('/') {
        return Ok(WorktreeReturn::Over); // it has none of its own, or not on this machine
    }
    let pool = pool_of(home, given)?;
    let name = WorkspaceName::new(given.id.as_str()).map_err(PerformError::by)?;
    // The engine of another home removes what it finds in its own folder, and knows nothing of our spares.
    let is_ours = folder(home).canonicalize().is_ok_and(|own| own == pool.root());
    // Whoever works there still would work in the worktree of the next run.
    let is_free = is_ours && !lives_below(&pool.folder(&name));
    let parked = if is_free { pool.park(&name, &binding(given), &given.origin.base) } else { Ok(None) };
    if let Some(spare) = parked.map_err(PerformError::by)? {
        locked(&home.worktrees.ready).remove(&given.id);
        match home.worktrees.shelf.put(&pool, &given.id, spare) {
            Some(unwanted) => pool.discard(unwanted).map_err(|failure| spares::failed(home, &pool, failure))?,
            None => spares::remove_when_idle(home, pool),
        }
        return Ok(WorktreeReturn::Over);
    }
    let branch = run_branch(&given.id);
    let tip = pool.repository().branch_commit(&branch).map_err(PerformError::by)?;
    let is_new = tip.as_ref().is_some_and(|tip| *tip != given.origin.base);
    let kept = pool.keep(&name, given.id.as_str()).map_err(PerformError::by)?;
    if is_new || kept.is_some() {
        return Ok(WorktreeReturn::Over);
    }
    if setup::must_leave(home, pool.repository().folder(), &pool.folder(&name))? {
        return Ok(WorktreeReturn::TearDown);
    }
    pool.keep_reset(&branch, given.id.as_str()).map_err(PerformError::by)?;
    remove(home, &pool, &name, given.id.as_str(), || true)?;
    pool.drop_branch(&branch, &given.origin.base).map_err(PerformError::by)?;
    Ok(WorktreeReturn::Over)
}

/// Removes a checkout of a run, or of what was a project's, if it still may go when nothing else is at it; what would be lost with
/// it is kept. A person's `gc` and retention both take this way.
pub(crate) fn remove(
    home: &Home,
    pool: &WorkspacePool,
    name: &WorkspaceName,
    owner: &str,
    may_go: impl FnOnce() -> bool,
) -> Result<WorkspaceRemoval, PerformError> {
    setup::tear_down(home, pool.repository().folder(), &pool.folder(name))?;
    // Who needs it from now on makes it again, and waits for that.
    locked(&home.worktrees.ready).remove(owner);
    pool.destroy_if(name, owner, may_go).map_err(PerformError::by)
}

/// Removes the spare worktrees that an engine before this one has left, before a run can want a branch that one is on.
pub(crate) fn sweep_spares(home: &Home) {
    LazyLock::force(&OPENED);
    spares::sweep(&folder(home));
}

/// Removes the checkouts of runs that ended long enough ago, and as old ones whose run the store does not know: the engine
/// was killed before the run began, or the store is an older one. What would be lost with a checkout is kept. What failed
/// stays, as it may be tried again, unless many others have failed since; so does a checkout in which an agent lives.
pub(crate) fn sweep(home: &Home) {
    let Ok(folders) = std::fs::read_dir(folder(home)) else { return };
    let stays = home.context.config().workspaces.keep;
    let names = folders.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<WorkspaceName> = names.filter_map(|name| WorkspaceName::new(&name).ok()).collect();
    names.sort();
    let too_many = failed_beyond(home, &names, MOST_FAILED);
    for name in names {
        let rule = SweepRule { stays, failed: too_many.contains(&name) };
        if let Err(undone) = sweep_one(home, &name, rule) {
            tracing::warn!(run = name.as_str(), "its checkout stays: {undone}");
        }
    }
}

/// Which checkout of a run may go.
#[derive(Clone, Copy)]
struct SweepRule {
    /// How long it stays after the end of the run.
    stays: Duration,
    /// Whether it goes although its run failed.
    failed: bool,
}

/// The checkouts of failed runs, but for so many of those that failed last.
fn failed_beyond(home: &Home, names: &[WorkspaceName], most: usize) -> BTreeSet<WorkspaceName> {
    let failed_at = |name: &WorkspaceName| {
        let seen = home.tasks.run_named(name.as_str()).ok().flatten()?;
        matches!(seen.state.end, Some(RunConclusion::Failed { .. })).then_some(seen.card.updated)
    };
    let mut failed: Vec<(i64, &WorkspaceName)> =
        names.iter().filter_map(|name| Some((failed_at(name)?, name))).collect();
    failed.sort();
    failed.iter().rev().skip(most).map(|(_, name)| (*name).clone()).collect()
}

fn sweep_one(home: &Home, name: &WorkspaceName, rule: SweepRule) -> Result<(), PerformError> {
    let is_over = |home: &Home, seen: &RunSnapshot, stays| {
        let has_failed = matches!(seen.state.end, Some(RunConclusion::Failed { .. }));
        (rule.failed && has_failed) || is_over(home, seen, stays)
    };
    let stays = rule.stays;
    if home.tasks.run_named(name.as_str())?.is_some_and(|seen| !is_over(home, &seen, stays)) {
        return Ok(());
    }
    let place = folder(home).join(name.as_str());
    let pool = WorkspacePool::at(open(&place, None)?, &folder(home)).map_err(PerformError::by)?;
    // The worktree of a part is lent to its run.
    let lent = pool.lent_to(name).map_err(PerformError::by)?.map_or_else(|| name.to_string(), |bound| bound.task);
    let goes = || match home.tasks.run_named(&lent) {
        Ok(Some(seen)) => is_over(home, &seen, stays),
        Ok(None) => is_older(&place, stays.max(YOUNG)),
        Err(_) => false,
    };
    let has_agent = || home.context.sessions.at_work().iter().any(|(_, folder)| folder.starts_with(&place));
    // Its run may be retried at any moment until it is gone.
    let may_go = || goes() && !has_agent();
    if may_go() { remove(home, &pool, name, &lent, may_go).map(drop) } else { Ok(()) }
}

/// Whether a run has ended for good so long ago.
pub(crate) fn is_over(home: &Home, seen: &RunSnapshot, stays: Duration) -> bool {
    match &seen.state.end {
        Some(RunConclusion::Completed { .. } | RunConclusion::Cancelled { .. }) => {
            home.clock.now() > Moment(seen.card.updated).after(stays)
        }
        Some(RunConclusion::Failed { .. }) | None => false,
    }
}

pub(crate) fn is_older(place: &Path, age: Duration) -> bool {
    let changed = place.metadata().and_then(|about| about.modified()).ok();
    changed.and_then(|at| at.elapsed().ok()).is_some_and(|since| since >= age)
}

/// Where the worktree of this run is, with those of its parts. The engine of another home may have started it: then its
/// work is there, and its branches are checked out there.
pub(crate) fn pool_of(home: &Home, given: &RunParameters) -> Result<WorkspacePool, PerformError> {
    let repository = home.worktrees.shelf.repository(Path::new(&given.origin.root))?;
    let own = Path::new(&given.workspace).parent().filter(|_| !given.origin.base.is_empty());
    WorkspacePool::at(repository, own.unwrap_or(&folder(home))).map_err(PerformError::by)
}

fn folder(home: &Home) -> PathBuf {
    home.context.places.runs()
}

/// The folder, made if need be, by the name that git writes down.
fn canonical(folder: &Path) -> Result<PathBuf, PerformError> {
    std::fs::create_dir_all(folder).map_err(PerformError::at("cannot make", folder))?;
    std::fs::canonicalize(folder).map_err(PerformError::at("cannot find", folder))
}
