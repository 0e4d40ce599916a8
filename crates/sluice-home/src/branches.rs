//! Which branches are spoken for by tasks that are being created, and are not to be seen among the open ones yet: two that
//! ask at the same time do not get the same, and neither does one that asks while another waits for the store.

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
    /// It is on its way to the store, and nobody waits for it any more.
    is_queued: bool,
}

impl Branches {
    fn claims(&self) -> MutexGuard<'_, BTreeMap<Branch, Claim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Speaks for a branch. Otherwise, the task that has it.
    pub(crate) fn claim(&self, ground: &Ground, project: &str, branch: &str, task: &str) -> Result<(), String> {
        self.look(ground);
        let mut claims = self.claims();
        let open = ground.tasks.open();
        let about = |seen: &&std::sync::Arc<crate::tasks::Seen>| {
            seen.state.about.project == project && seen.state.about.branch == branch
        };
        if let Some(other) = open.iter().find(about) {
            return Err(other.id.clone());
        }
        let key = (project.to_owned(), branch.to_owned());
        if let Some(other) = claims.get(&key) {
            return Err(other.task.clone());
        }
        claims.insert(key, Claim { task: task.to_owned(), is_queued: false });
        Ok(())
    }

    /// A task is among the open ones now, or never will be.
    pub(crate) fn settle(&self, task: &str) {
        self.claims().retain(|_, claim| claim.task != task);
    }

    /// A task will be among the open ones when the store answers.
    pub(crate) fn queue(&self, task: &str) {
        self.claims().values_mut().filter(|claim| claim.task == task).for_each(|claim| claim.is_queued = true);
    }

    /// Looks whether what was queued is there; then its worktree is its own, and no promise any more.
    pub(crate) fn look(&self, ground: &Ground) {
        let queued: Vec<String> =
            self.claims().values().filter(|claim| claim.is_queued).map(|claim| claim.task.clone()).collect();
        for task in queued {
            if matches!(ground.tasks.load(&task), Ok(Some(_))) {
                ground.tasks.refresh(&crate::tasks::stream(&task));
                self.settle(&task);
                ground.rooms.settle(&task);
            }
        }
    }
}
