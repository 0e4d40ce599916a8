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
        let all = (1..=u32::try_from(size).unwrap_or(u32::MAX)).map(Number::numbered);
        let mut names = all.map(|number| pool.folder(&number).display().to_string());
        match names.find(|name| !in_use.contains(&name.as_str()) && !promised.contains_key(name)) {
            None => Room::Full,
            Some(name) => {
                promised.insert(name.clone(), task.to_owned());
                Room::Reserved(WorkspaceName(name))
            }
        }
    }

    /// The task has taken up its promise, or never will.
    pub fn settle(&self, task: &str) {
        self.promised().retain(|_, other| other != task);
    }
}

/// The worktree that a task has or is about to have.
pub fn had(workspace: &Workspace) -> Option<&str> {
    match workspace {
        Workspace::Unbound => None,
        Workspace::Reserved(name) | Workspace::Bound(name) => Some(&name.0),
    }
}
