//! Which branches are spoken for by tasks that are being created or given another branch, and are not to be seen with it
//! among the open ones yet: two that ask at the same time do not get the same, and neither does one that asks while
//! another waits for the store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use sluice_core::id::TaskId;

use crate::background::locked;
use crate::home::Home;
use crate::read::tasks::TaskSnapshot;

type ProjectBranch = (String, String);

#[derive(Debug, Default)]
pub(crate) struct BranchClaims {
    claims: Mutex<BTreeMap<ProjectBranch, BranchClaim>>,
    count: AtomicU64,
}

#[derive(Debug)]
struct BranchClaim {
    task: TaskId,
    /// How many ask for it, all for this task.
    askers: usize,
    /// It is on its way to the store, and nobody waits for it any more.
    is_queued: bool,
    /// The task is being created.
    is_new: bool,
    /// Which of all claims it is; a newer one has a larger number.
    number: u64,
}

/// A branch that is spoken for until this is dropped.
#[derive(Debug)]
pub(crate) struct BranchHold<'a> {
    branches: &'a BranchClaims,
    branch: ProjectBranch,
}

impl BranchHold<'_> {
    /// The task will be seen with it when the store answers; until then it stays spoken for.
    pub(crate) fn queue(self) {
        locked(&self.branches.claims).get_mut(&self.branch).into_iter().for_each(|claim| claim.is_queued = true);
    }

    /// The task has it now. What it was promised before has been, or was refused: it is stored in the order of asking.
    pub(crate) fn settle(self) {
        let mut claims = locked(&self.branches.claims);
        let Some((task, number)) = claims.get(&self.branch).map(|claim| (claim.task.clone(), claim.number)) else {
            return;
        };
        forget_older(&mut claims, &task, number);
    }
}

fn forget_older(claims: &mut BTreeMap<ProjectBranch, BranchClaim>, task: &TaskId, number: u64) {
    let is_older =
        |claim: &BranchClaim| claim.is_queued && !claim.is_new && claim.task == *task && claim.number < number;
    claims.values_mut().filter(|claim| is_older(claim)).for_each(|claim| claim.is_queued = false);
    claims.retain(|_, claim| claim.askers > 0 || claim.is_queued);
}

impl Drop for BranchHold<'_> {
    fn drop(&mut self) {
        let mut claims = locked(&self.branches.claims);
        let Some(claim) = claims.get_mut(&self.branch) else { return };
        claim.askers = claim.askers.saturating_sub(1);
        if claim.askers == 0 && !claim.is_queued {
            claims.remove(&self.branch);
        }
    }
}

impl BranchClaims {
    /// Speaks for a branch. Otherwise, the other task that has it.
    pub(crate) fn claim(
        &self,
        home: &Home,
        project: &str,
        branch: &str,
        task: &TaskId,
    ) -> Result<BranchHold<'_>, TaskId> {
        self.look(home);
        let claims = locked(&self.claims);
        let open = home.tasks.open();
        let has = |other: &TaskSnapshot| {
            other.state.about.project == project && other.state.about.branch == branch && other.id != *task
        };
        if let Some(other) = open.iter().find(|other| has(other)) {
            return Err(other.id.clone());
        }
        let is_new = !open.iter().any(|seen| seen.id == *task);
        self.speak(claims, (project.to_owned(), branch.to_owned()), task, is_new)
    }

    fn speak(
        &self,
        mut claims: MutexGuard<'_, BTreeMap<ProjectBranch, BranchClaim>>,
        branch: ProjectBranch,
        task: &TaskId,
        is_new: bool,
    ) -> Result<BranchHold<'_>, TaskId> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let claim = || BranchClaim { task: task.to_owned(), askers: 0, is_queued: false, is_new, number };
        let claim = claims.entry(branch.clone()).or_insert_with(claim);
        if claim.task != *task {
            return Err(claim.task.clone());
        }
        claim.askers += 1;
        claim.number = number;
        Ok(BranchHold { branches: self, branch })
    }

    /// Looks whether what was queued is there; then the worktree of a new task is its own, and no promise any more.
    pub(crate) fn look(&self, home: &Home) {
        let queued = |(branch, claim): (&ProjectBranch, &BranchClaim)| {
            claim.is_queued.then(|| (branch.clone(), claim.task.clone(), claim.is_new))
        };
        let queued: Vec<(ProjectBranch, TaskId, bool)> = locked(&self.claims).iter().filter_map(queued).collect();
        for (branch, task, is_new) in queued {
            let Ok(Some(seen)) = home.tasks.load(&task) else { continue };
            if seen.card.open && seen.state.about.branch != branch.1 {
                continue;
            }
            home.tasks.refresh(&task);
            self.stored(&branch);
            if is_new {
                home.reservations.settle(&task);
            }
        }
    }

    /// A task is seen with a branch that it was promised.
    fn stored(&self, branch: &ProjectBranch) {
        let mut claims = locked(&self.claims);
        if let Some(claim) = claims.remove(branch) {
            forget_older(&mut claims, &claim.task, claim.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(name: &str) -> ProjectBranch {
        ("coffee".to_owned(), name.to_owned())
    }

    #[test]
    fn a_branch_that_a_task_was_promised_is_free_once_it_has_a_newer_one() {
        let branches = BranchClaims::default();
        let task = |id: &str| -> TaskId { id.parse().expect("an id") };
        let of = |name: &str, id: &str| branches.speak(locked(&branches.claims), branch(name), &task(id), false);
        let speak = |name: &str, id: &str| of(name, id).unwrap();
        let taken = |name: &str| of(name, "other").err().map(String::from);
        // Both are on their way; the newer one is seen.
        speak("x", "task").queue();
        speak("y", "task").queue();
        assert_eq!((taken("x"), taken("y")), (Some("task".into()), Some("task".into())));
        branches.stored(&branch("y"));
        assert_eq!((taken("x"), taken("y")), (None, None));
        // The newer one is answered at once, or refused.
        speak("x", "task").queue();
        drop(speak("y", "task"));
        assert_eq!(taken("x"), Some("task".into()));
        speak("y", "task").settle();
        assert_eq!(taken("x"), None);
        // The older one is seen first, and what is asked for again is the newest.
        speak("x", "task").queue();
        speak("y", "task").queue();
        branches.stored(&branch("x"));
        assert_eq!((taken("x"), taken("y")), (None, Some("task".into())));
        speak("z", "task").queue();
        speak("y", "task").queue();
        branches.stored(&branch("z"));
        assert_eq!((taken("z"), taken("y")), (None, Some("task".into())));
        // Another task's are its own.
        speak("x", "another").queue();
        branches.stored(&branch("y"));
        assert_eq!(taken("x"), Some("another".into()));
    }
}
