//! Which worktrees are free. A task that is about to begin reserves one first, so that no two get the same.
//!
//! What open tasks have is read from the tasks; only what has been promised and not been taken up yet is kept here.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sluice_core::task::input::Room;
use sluice_core::task::state::{Workspace, WorkspaceName};
use sluice_worker::workspace::{Pool, WorkspaceName as Number};

use crate::tasks::Tasks;

/// Promises: the worktree, and for which task.
#[derive(Debug, Default)]
pub struct Rooms {
    promised: Mutex<BTreeMap<String, String>>,
}

impl Rooms {
    fn promised(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Promises a free worktree of this pool to a task.
    pub fn reserve(&self, tasks: &Tasks, pool: &Pool, size: usize, task: &str) -> Room {
        let mut promised = self.promised();
        let open = tasks.open();
        let in_use: Vec<&str> = open.iter().filter_map(|seen| had(&seen.state.workspace)).collect();
        for number in (1..=u32::try_from(size).unwrap_or(u32::MAX)).map(Number::numbered) {
            let name = pool.folder(&number).display().to_string();
            let is_free = !in_use.contains(&name.as_str()) && !promised.contains_key(&name);
            if is_free && is_given_back(pool, &number, task) {
                promised.insert(name.clone(), task.to_owned());
                return Room::Reserved(WorkspaceName(name));
            }
        }
        Room::Full
    }

    /// The task has taken up its promise, or never will.
    pub fn settle(&self, task: &str) {
        self.promised().retain(|_, other| other != task);
    }
}

/// Whether nobody has a worktree that no open task has. A task that ended while its worktree could not be given back
/// still has it: then that is done now, and what is at risk is kept.
fn is_given_back(pool: &Pool, number: &Number, task: &str) -> bool {
    match pool.status(number) {
        Ok(None) => true,
        Ok(Some(state)) => match state.binding.filter(|binding| binding.task != task) {
            None => true,
            Some(binding) => pool.release(number, &binding.task).is_ok(),
        },
        // What is wrong with it is said when it is lent.
        Err(_) => true,
    }
}

/// The worktree that a task has or is about to have.
pub fn had(workspace: &Workspace) -> Option<&str> {
    match workspace {
        Workspace::Unbound => None,
        Workspace::Reserved(name) | Workspace::Bound(name) => Some(&name.0),
    }
}
