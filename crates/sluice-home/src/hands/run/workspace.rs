//! The worktree of a run: what a step did is committed when it has ended, and parts that write beside each other get
//! worktrees of their own, which are merged in the order of the items.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sluice_core::lifecycle::Permissions;
use sluice_core::run::state::ItemStatus;
use sluice_core::run::{CONFLICT, Part, Perform};
use sluice_worker::git::GitError;
use sluice_worker::workspace::{Binding, Pool, WorkspaceName};

use super::label;
use crate::ground::Ground;
use crate::projects::{described, open};
use crate::runs::SeenRun;
use crate::undone::{Failed, Undone};

/// How long an item waits for those before it to be merged, between two looks.
const LOOK: Duration = Duration::from_secs(600);

/// The branch that a run's work is on.
pub(crate) fn branch(run: &str) -> String {
    format!("sluice/run-{run}")
}

/// The worktrees of runs.
pub(crate) fn pool(ground: &Ground, root: &Path) -> Result<Pool, String> {
    let repository = open(root, None).map_err(|problem| problem.message)?;
    Pool::at(repository, &ground.places.home().join("runs")).map_err(|error| described(&error))
}

/// Whether a run has a worktree of its own, and does not work in the folder it was started in.
pub(super) fn has_worktree(seen: &SeenRun) -> bool {
    seen.state.given.workspace.starts_with('/')
}

/// Commits what was done in the run's worktree, after an agent, and before others start from there. What cannot be
/// committed stays there. Scripts are not followed by it: it would cost more than most of them do. In a task's worktree
/// nothing is committed for its agents: what belongs on the branch is for those to say who work there.
pub(super) fn save(ground: &Ground, seen: &SeenRun, wanted: &Perform) {
    if seen.state.given.origin.task.is_empty() {
        commit(ground, seen, wanted);
    }
}

fn commit(ground: &Ground, seen: &SeenRun, wanted: &Perform) {
    let root = Path::new(&seen.state.given.origin.root);
    if has_worktree(seen)
        && let Ok(pool) = pool(ground, root)
    {
        let message = format!("{}: {}", seen.plan.recipe.name, label(seen, wanted));
        let _ = pool.repository().commit_all(Path::new(seen.folder()), &message);
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
    commit(ground, seen, wanted);
    let pool = pool(ground, Path::new(&seen.state.given.origin.root))?;
    let (head, _) = pool.repository().standing(Path::new(seen.folder())).map_err(|error| described(&error))?;
    let name = name.replace('.', "-");
    let branch = format!("sluice/part-{name}");
    let name = WorkspaceName::new(&name).map_err(|error| described(&error))?;
    let binding = Binding { task: seen.id.clone(), branch: branch.clone() };
    let lent = pool.acquire(&name, &binding, Some(&head)).map_err(|error| described(&error))?;
    Ok(Own { pool, name, branch, folder: lent.folder })
}

impl Own {
    /// Commits what was done there and brings it into the run's worktree, after all items before it. A conflict leaves
    /// both as they are.
    pub(super) fn merge(self, ground: &Arc<Ground>, seen: &SeenRun, wanted: &Perform) -> Result<(), Undone> {
        let repository = self.pool.repository();
        let message = format!("{}: {}", seen.plan.recipe.name, label(seen, wanted));
        let unmerged = |error: &GitError| {
            let why = described(error);
            Failed::because(format!("{CONFLICT}its work is on `{}` and cannot be merged: {why}", self.branch))
        };
        match repository.commit_all(&self.folder, &message) {
            Err(error @ GitError::Unresolved { .. }) => return Err(unmerged(&error).into()),
            done => done.map_err(|error| described(&error))?,
        };
        if !wait_for_those_before(ground, seen, wanted) {
            return Err(format!("the run has ended; its work is on `{}`", self.branch).into());
        }
        repository.merge_into(Path::new(seen.folder()), &self.branch, &message).map_err(|error| unmerged(&error))?;
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
