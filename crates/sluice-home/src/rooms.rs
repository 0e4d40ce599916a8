//! Which worktrees are free. A task that is about to begin reserves one first, so that no two get the same.
//!
//! What open tasks have is read from the tasks; only what has been promised and not been taken up yet is kept here. A
//! worktree in which an agent lives is not free, whatever the tasks say: the store may be older than the agent. Nor is one
//! that was lent to a task which cannot be read: it may be open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sluice_api::problem::{Problem, Status};
use sluice_core::task::input::Room;
use sluice_core::task::state::{Workspace, WorkspaceName};
use sluice_worker::git::GitError;
use sluice_worker::session::SessionId;
use sluice_worker::workspace::{Pool, WorkspaceName as Number};

use crate::ground::{Ground, session_of};

/// For which task a worktree is promised, and to how many who ask for it.
#[derive(Debug)]
struct Promise {
    task: String,
    askers: usize,
    /// What takes it up is on its way to the store, and nobody waits for it any more.
    is_queued: bool,
}

/// Promises, by worktree.
#[derive(Debug, Default)]
pub struct Rooms {
    promised: Mutex<BTreeMap<String, Promise>>,
}

impl Rooms {
    fn promised(&self) -> MutexGuard<'_, BTreeMap<String, Promise>> {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Promises a free worktree of this pool to a task: its own, if it has left one, else the first.
    pub fn reserve(&self, ground: &Ground, pool: &Pool, size: usize, task: &str) -> Room {
        let mut promised = self.promised();
        if let Some((name, promise)) = promised.iter_mut().find(|(_, promise)| promise.task == task) {
            promise.askers += 1;
            return Room::Reserved(WorkspaceName(name.clone()));
        }
        let open = ground.tasks.open();
        // What was on its way is there, or its task is over: then the worktree is the task's own, or free.
        let waits = |task: &str| open.iter().any(|seen| seen.id == task && had(&seen.state.workspace).is_none());
        promised.retain(|_, promise| promise.askers > 0 || waits(&promise.task));
        let in_use: Vec<&str> = open.iter().filter_map(|seen| had(&seen.state.workspace)).collect();
        let living = ground.sessions.at_work();
        let mut numbers: Vec<Number> = (1..=u32::try_from(size).unwrap_or(u32::MAX)).map(Number::numbered).collect();
        numbers.sort_by_key(|number| !is_lent_to(pool, number, task));
        for number in numbers {
            let folder = pool.folder(&number);
            let name = folder.display().to_string();
            let is_free = !in_use.contains(&name.as_str()) && !promised.contains_key(&name);
            if is_free && !has_other_agents(&living, &folder, task) && is_given_back(ground, pool, &number, task) {
                promised.insert(name.clone(), Promise { task: task.to_owned(), askers: 1, is_queued: false });
                return Room::Reserved(WorkspaceName(name));
            }
        }
        Room::Full
    }

    /// Somebody who asked for a task's worktree has taken it up, or never will.
    pub fn settle(&self, task: &str) {
        self.promised().retain(|_, promise| {
            let is_its = promise.task == task;
            promise.askers = promise.askers.saturating_sub(usize::from(is_its));
            !is_its || promise.askers > 0 || promise.is_queued
        });
    }

    /// The same, after what was asked for with it was answered. What is still on its way keeps its worktree.
    pub(crate) fn answered<T>(&self, task: &str, room: &Room, answer: &Result<T, Problem>) {
        if !matches!(room, Room::Reserved(_)) {
            return; // it was promised nothing
        }
        if answer.as_ref().is_err_and(|problem| problem.status == Status::Accepted) {
            self.promised().values_mut().filter(|it| it.task == task).for_each(|it| it.is_queued = true);
        }
        self.settle(task);
    }
}

/// Whether a worktree is still lent to this task.
fn is_lent_to(pool: &Pool, number: &Number, task: &str) -> bool {
    pool.lent_to(number).is_ok_and(|binding| binding.is_some_and(|binding| binding.task == task))
}

/// Whether an agent lives in a folder that is not this task's.
fn has_other_agents(living: &[(SessionId, PathBuf)], folder: &Path, task: &str) -> bool {
    let is_others = |id: &SessionId| session_of(id).is_none_or(|(owner, _)| owner != task);
    living.iter().any(|(id, works_in)| works_in.starts_with(folder) && is_others(id))
}

/// Whether nobody has a worktree that no open task has. A task that ended while its worktree could not be given back
/// still has it: then that is done now, and what is at risk is kept.
fn is_given_back(ground: &Ground, pool: &Pool, number: &Number, task: &str) -> bool {
    match pool.lent_to(number) {
        Ok(None) => true,
        Ok(Some(binding)) if binding.task == task => true,
        Ok(Some(binding)) => is_over(ground, &binding.task) && pool.release(number, &binding.task).is_ok(),
        // What is wrong with it is said when it is lent.
        Err(_) => true,
    }
}

/// Whether a task to which a worktree was lent is known not to be open. One that cannot be read may be.
pub(crate) fn is_over(ground: &Ground, task: &str) -> bool {
    ground.tasks.load(task).is_ok_and(|seen| seen.is_none_or(|seen| !seen.card.open))
}

/// The worktrees of a pool that a task may have which is not among the open ones, because it cannot be read.
pub(crate) fn in_doubt(ground: &Ground, pool: &Pool) -> Result<Vec<Number>, GitError> {
    let may_be_had = |number: &Number| match pool.lent_to(number) {
        Ok(binding) => binding.is_some_and(|binding| !is_over(ground, &binding.task)),
        Err(_) => true,
    };
    Ok(pool.names()?.into_iter().filter(may_be_had).collect())
}

/// The worktree that a task has or is about to have.
pub fn had(workspace: &Workspace) -> Option<&str> {
    match workspace {
        Workspace::Unbound => None,
        Workspace::Reserved(name) | Workspace::Bound(name) => Some(&name.0),
    }
}
