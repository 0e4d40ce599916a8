//! Which branches are spoken for by tasks that are being created or given another branch, and are not to be seen with it
//! among the open ones yet: two that ask at the same time do not get the same, and neither does one that asks while
//! another waits for the store.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ground::Ground;

/// A branch of a project.
type Branch = (String, String);

/// Who has spoken for what.
#[derive(Debug, Default)]
pub(crate) struct Branches(Mutex<BTreeMap<Branch, Claim>>);

#[derive(Debug)]
struct Claim {
    task: String,
    /// How many ask for it, all for this task.
    askers: usize,
    /// It is on its way to the store, and nobody waits for it any more.
    is_queued: bool,
    /// The task is being created.
    is_new: bool,
}

/// A branch that is spoken for until this is dropped.
#[derive(Debug)]
pub(crate) struct Claimed<'a> {
    branches: &'a Branches,
    branch: Branch,
}

impl Claimed<'_> {
    /// The task will be seen with it when the store answers; until then it stays spoken for.
    pub(crate) fn queue(self) {
        self.branches.claims().get_mut(&self.branch).into_iter().for_each(|claim| claim.is_queued = true);
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        let mut claims = self.branches.claims();
        let Some(claim) = claims.get_mut(&self.branch) else { return };
        claim.askers = claim.askers.saturating_sub(1);
        if claim.askers == 0 && !claim.is_queued {
            claims.remove(&self.branch);
        }
    }
}

impl Branches {
    fn claims(&self) -> MutexGuard<'_, BTreeMap<Branch, Claim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Speaks for a branch. Otherwise, the other task that has it.
    pub(crate) fn claim(
        &self,
        ground: &Ground,
        project: &str,
        branch: &str,
        task: &str,
    ) -> Result<Claimed<'_>, String> {
        self.look(ground);
        let mut claims = self.claims();
        let open = ground.tasks.open();
        let has = |other: &crate::tasks::Seen| {
            other.state.about.project == project && other.state.about.branch == branch && other.id != task
        };
        if let Some(other) = open.iter().find(|other| has(other)) {
            return Err(other.id.clone());
        }
        let branch = (project.to_owned(), branch.to_owned());
        let is_new = !open.iter().any(|seen| seen.id == task);
        let claim = || Claim { task: task.to_owned(), askers: 0, is_queued: false, is_new };
        let claim = claims.entry(branch.clone()).or_insert_with(claim);
        if claim.task != task {
            return Err(claim.task.clone());
        }
        claim.askers += 1;
        Ok(Claimed { branches: self, branch })
    }

    /// Looks whether what was queued is there; then the worktree of a new task is its own, and no promise any more.
    pub(crate) fn look(&self, ground: &Ground) {
        let queued = |(branch, claim): (&Branch, &Claim)| {
            claim.is_queued.then(|| (branch.clone(), claim.task.clone(), claim.is_new))
        };
        let queued: Vec<(Branch, String, bool)> = self.claims().iter().filter_map(queued).collect();
        for (branch, task, is_new) in queued {
            let Ok(Some(seen)) = ground.tasks.load(&task) else { continue };
            if seen.card.open && seen.state.about.branch != branch.1 {
                continue;
            }
            ground.tasks.refresh(&crate::tasks::stream(&task));
            self.claims().remove(&branch);
            if is_new {
                ground.rooms.settle(&task);
            }
        }
    }
}
