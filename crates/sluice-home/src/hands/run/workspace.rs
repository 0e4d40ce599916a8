//! The worktree of a run: what a step did is committed when it has ended, and parts that write beside each other get
//! worktrees of their own, which are merged in the order of the items.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sluice_core::lifecycle::Permissions;
use sluice_core::run::state::ItemStatus;
use sluice_core::run::{CONFLICT, Given, Part, Perform};
use sluice_worker::git::GitError;
use sluice_worker::passing::Passing;
use sluice_worker::workspace::{Binding, Pool, WorkspaceName};

use super::label;
use crate::ground::Ground;
use crate::projects::{described, open};
use crate::runs::SeenRun;
use crate::undone::Undone;

/// How long an item waits for those before it to be merged, between two looks.
const LOOK: Duration = Duration::from_secs(600);

/// The branch that a run's work is on.
pub(crate) fn branch(run: &str) -> String {
    format!("sluice/run-{run}")
}

/// Where the worktrees are of runs that are started here.
pub(crate) fn pool(ground: &Ground, root: &Path) -> Result<Pool, Undone> {
    Pool::at(open(root, None)?, &folder(ground)).map_err(Undone::by)
}

/// Where the worktree of this run is, with those of its parts. The engine of another home may have started it: then its
/// work is there, and its branches are checked out there.
pub(crate) fn pool_of(ground: &Ground, given: &Given) -> Result<Pool, Undone> {
    let repository = open(Path::new(&given.origin.root), None)?;
    let own = Path::new(&given.workspace).parent().filter(|_| !given.origin.base.is_empty());
    Pool::at(repository, own.unwrap_or(&folder(ground))).map_err(Undone::by)
}

fn folder(ground: &Ground) -> PathBuf {
    ground.places.home().join("runs")
}

/// Whether a run has a worktree of its own, and does not work in the folder it was started in.
pub(super) fn has_worktree(seen: &SeenRun) -> bool {
    seen.state.given.workspace.starts_with('/')
}

/// Commits what was done in the run's worktree, after an agent, and before others start from there. What cannot be
/// committed stays there; what only cannot be committed now is an error. Scripts are not followed by it: it would cost more than most of them do. In a task's worktree
/// nothing is committed for its agents: what belongs on the branch is for those to say who work there.
pub(super) fn save(ground: &Ground, seen: &SeenRun, wanted: &Perform) -> Result<(), Undone> {
    match seen.state.given.origin.task.is_empty() {
        true => commit(ground, seen, wanted),
        false => Ok(()),
    }
}

fn commit(ground: &Ground, seen: &SeenRun, wanted: &Perform) -> Result<(), Undone> {
    if !has_worktree(seen) {
        return Ok(());
    }
    let message = format!("{}: {}", seen.plan.recipe.name, label(seen, wanted));
    let committed = pool_of(ground, &seen.state.given).and_then(|pool| {
        pool.repository().commit_all(Path::new(seen.folder()), &message).map(drop).map_err(Undone::by)
    });
    match committed {
        Ok(()) | Err(Undone::Failed(_)) => Ok(()),
        Err(unavailable) => Err(unavailable),
    }
}

/// A worktree of a part's own.
pub(super) struct Own {
    pool: Pool,
    name: WorkspaceName,
    branch: String,
    pub(super) folder: PathBuf,
}

/// Whether a part gets a worktree of its own: it writes, and others may write at the same time.
pub(super) fn wants_own(seen: &SeenRun, wanted: &Perform) -> bool {
    let beside_others = wanted.own_workspace || matches!(wanted.part, Part::Item(_));
    has_worktree(seen) && beside_others && wanted.permissions == Permissions::Full
}

/// Lends a worktree that starts where the run's own is now.
pub(super) fn own(ground: &Ground, seen: &SeenRun, wanted: &Perform, name: &str) -> Result<Own, Undone> {
    commit(ground, seen, wanted)?;
    let pool = pool_of(ground, &seen.state.given)?;
    let head = pool.repository().head(Path::new(seen.folder())).map_err(Undone::by)?;
    let name = name.replace('.', "-");
    let branch = format!("sluice/part-{name}");
    let name = WorkspaceName::new(&name).map_err(Undone::by)?;
    let binding = Binding { task: seen.id.clone(), branch: branch.clone() };
    let lent = pool.acquire(&name, &binding, Some(&head)).map_err(Undone::by)?;
    Ok(Own { pool, name, branch, folder: lent.folder })
}

impl Own {
    /// Commits what was done there and brings it into the run's worktree, after all items before it. A conflict leaves
    /// both as they are.
    pub(super) fn merge(self, ground: &Arc<Ground>, seen: &SeenRun, wanted: &Perform) -> Result<(), Undone> {
        let repository = self.pool.repository();
        let message = format!("{}: {}", seen.plan.recipe.name, label(seen, wanted));
        let unmerged = |error: GitError| match error.is_passing() {
            true => Undone::by(error),
            false => {
                let why = described(&error);
                format!("{CONFLICT}its work is on `{}` and cannot be merged: {why}", self.branch).into()
            }
        };
        match repository.commit_all(&self.folder, &message) {
            Err(error @ GitError::Unresolved { .. }) => return Err(unmerged(error)),
            done => done.map_err(Undone::by)?,
        };
        if !wait_for_those_before(ground, seen, wanted) {
            return Err(format!("the run has ended; its work is on `{}`", self.branch).into());
        }
        let told = repository.merge_into(Path::new(seen.folder()), &self.branch, &message).map_err(unmerged)?;
        if let Some(told) = told {
            ground.log.line(&format!("{} of {}: {told}", label(seen, wanted), seen.id));
        }
        self.discard(seen);
        Ok(())
    }

    /// Removes the worktree; what is at risk is kept.
    pub(super) fn discard(self, seen: &SeenRun) {
        let _ = self.pool.destroy(&self.name, &seen.id);
        let _ = self.pool.delete_branch(&self.branch, &seen.id);
    }
}

/// Waits until every item before this one has ended; false if the run ended first.
fn wait_for_those_before(ground: &Arc<Ground>, seen: &SeenRun, wanted: &Perform) -> bool {
    let own = if let Part::Item(item) = wanted.part { item } else { 0 };
    let have_ended = || {
        let now = ground.tasks.load_run(&seen.id).ok().flatten()?;
        let is_open = |(_, item): (_, &sluice_core::run::state::ItemState)| {
            matches!(item.status, ItemStatus::Waiting | ItemStatus::Running)
        };
        let mut before = now.state.items.range((wanted.step, 0)..(wanted.step, own));
        match (&now.state.end, before.any(is_open)) {
            (Some(_), _) => Some(false),
            (None, false) => Some(true),
            (None, true) => None,
        }
    };
    loop {
        if let Some(goes_on) = ground.tasks.wait(LOOK, have_ended) {
            return goes_on;
        }
    }
}
