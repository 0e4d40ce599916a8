//! Which worktrees are free. A task that is about to begin reserves one first, so that no two get the same.
//!
//! What open tasks have is read from the tasks; only what has been promised and not been taken up yet is kept here. A
//! worktree in which an agent lives is not free, whatever the tasks say: the store may be older than the agent. Nor is one
//! that was lent to a task which cannot be read: it may be open. Where none is free, one is lent on that its task can do without.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_core::id::TaskId;
use sluice_core::task::input::WorkspaceReservation;
use sluice_core::task::state::WorktreePath;
use sluice_os::session::SessionId;
use sluice_os::workspace::{WorkspaceBinding, WorkspaceName, WorkspacePool};

use crate::background::locked;
use crate::home::{Home, judged, lending, pool_names, session_of};
use crate::read::tasks::{TaskSnapshot, had};

/// The shortest time between two looks whether a task that has not changed can do without its worktree.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// For whom a worktree is promised, and to how many who ask for it.
#[derive(Debug)]
struct Reservation {
    /// The task; none: it is being removed.
    task: Option<TaskId>,
    askers: usize,
    /// The task that asked first is still looking whether it can be had.
    is_doubtful: bool,
    /// What takes it up is on its way to the store, and nobody waits for it any more.
    is_queued: bool,
}

impl Reservation {
    fn is_for(&self, task: &TaskId) -> bool {
        self.task.as_ref() == Some(task)
    }
}

/// Promises, by worktree. No git is waited for with them locked: every task of every project needs them.
#[derive(Debug, Default)]
pub struct Reservations {
    promised: Mutex<BTreeMap<String, Reservation>>,
    decided: Condvar,
    /// Tasks that could not do without their worktree: when they were looked at, and after how many events.
    looked: Mutex<BTreeMap<TaskId, (Instant, u64)>>,
}

/// A worktree that no other task is promised until this is dropped.
#[derive(Debug)]
pub(crate) struct ReservationHold<'a> {
    all: &'a Reservations,
    name: String,
}

impl ReservationHold<'_> {
    /// It can be had: from now on it is promised.
    fn promise(self) -> WorkspaceReservation {
        let name = self.name.clone();
        locked(&self.all.promised).get_mut(&name).into_iter().for_each(|promise| promise.is_doubtful = false);
        WorkspaceReservation::Reserved(WorktreePath(name))
    }
}

impl Drop for ReservationHold<'_> {
    fn drop(&mut self) {
        let mut promised = locked(&self.all.promised);
        if promised.get(&self.name).is_some_and(|promise| promise.is_doubtful) {
            promised.remove(&self.name);
        }
        self.all.decided.notify_all();
    }
}

impl Reservations {
    /// Promises a worktree of this pool to a task: its own, if it has left one, else the first that is free, else one that
    /// another task can do without.
    pub fn reserve(&self, home: &Home, pool: &WorkspacePool, size: usize, task: &TaskId) -> WorkspaceReservation {
        let mut numbers = pool_names(size);
        let former = home.tasks.open_task(task).and_then(|seen| seen.state.lent.clone());
        let is_former = |number: &WorkspaceName| {
            former.as_ref().is_some_and(|lent| Path::new(&lent.workspace.0) == pool.folder(number))
        };
        numbers.sort_by_cached_key(|number| !is_lent_to(pool, number, task) && !is_former(number));
        for number in numbers {
            let promised = locked(&self.promised);
            let is_doubtful =
                |promised: &mut BTreeMap<_, Reservation>| promised.values().any(|it| it.is_doubtful && it.is_for(task));
            let mut promised = self.decided.wait_while(promised, is_doubtful).unwrap_or_else(PoisonError::into_inner);
            if let Some((name, promise)) = promised.iter_mut().find(|(_, promise)| promise.is_for(task)) {
                promise.askers += 1;
                return WorkspaceReservation::Reserved(WorktreePath(name.clone()));
            }
            let held = self.hold(home, &mut promised, &pool.folder(&number), Some(task), None);
            drop(promised);
            if let Some(held) = held
                && is_given_back(home, pool, &number, task)
            {
                return held.promise();
            }
        }
        for (number, lender) in lending::lenders(home, pool, size).into_iter().filter(|(_, seen)| seen.id != *task) {
            let folder = pool.folder(&number);
            let held = self.hold(home, &mut locked(&self.promised), &folder, Some(task), Some(&lender.id));
            if let Some(held) = held
                && self.lends(home, pool, &number, &lender)
            {
                return held.promise();
            }
        }
        WorkspaceReservation::Full
    }

    /// Whether a task leaves its worktree. To look costs processes of git, so that a task which has just been looked at, and has
    /// not changed since, is left alone for a moment.
    fn lends(&self, home: &Home, pool: &WorkspacePool, number: &WorkspaceName, lender: &TaskSnapshot) -> bool {
        let events = lender.state.events;
        let is_known = |(at, seen): &(Instant, u64)| *seen == events && at.elapsed() < LOOK_AGAIN;
        if locked(&self.looked).get(&lender.id).is_some_and(is_known) {
            return false;
        }
        let lent = lending::lend(home, pool, number, &lender.id);
        let mut looked = locked(&self.looked);
        looked.retain(|_, (at, _)| at.elapsed() < LOOK_AGAIN);
        if !lent {
            looked.insert(lender.id.clone(), (Instant::now(), events));
        }
        lent
    }

    /// Keeps a worktree from everybody so that it can be removed, if nobody has it, is about to have it, or lives in it.
    pub(crate) fn removal(
        &self,
        home: &Home,
        pool: &WorkspacePool,
        number: &WorkspaceName,
    ) -> Option<ReservationHold<'_>> {
        let held = self.hold(home, &mut locked(&self.promised), &pool.folder(number), None, None)?;
        let is_nobodys = match pool.lent_to(number) {
            Ok(binding) => binding.is_none_or(|binding| is_over(home, &binding.task)),
            Err(_) => false,
        };
        is_nobodys.then_some(held)
    }

    /// Keeps a worktree from everybody else, if no open task but the lender has it, nobody is promised it, and no other agent
    /// lives in it.
    fn hold(
        &self,
        home: &Home,
        promised: &mut BTreeMap<String, Reservation>,
        folder: &Path,
        task: Option<&TaskId>,
        lender: Option<&TaskId>,
    ) -> Option<ReservationHold<'_>> {
        // What was on its way is there, or its task is over: then the worktree is the task's own, or free.
        let waits = |promise: &Reservation| {
            let seen = promise.task.as_ref().and_then(|task| home.tasks.open_task(task));
            seen.is_some_and(|seen| had(&seen.state.workspace).is_none())
        };
        promised.retain(|_, promise| promise.askers > 0 || waits(promise));
        let name = folder.display().to_string();
        let is_had = home.tasks.that_have(&name).iter().any(|seen| lender != Some(&seen.id));
        if is_had || promised.contains_key(&name) || has_other_agents(&home.context.sessions.at_work(), folder, task) {
            return None;
        }
        let task = task.cloned();
        promised.insert(name.clone(), Reservation { task, askers: 1, is_doubtful: true, is_queued: false });
        Some(ReservationHold { all: self, name })
    }

    /// Somebody who asked for a task's worktree has taken it up, or never will.
    pub fn settle(&self, task: &TaskId) {
        locked(&self.promised).retain(|_, promise| {
            let is_its = promise.is_for(task);
            promise.askers = promise.askers.saturating_sub(usize::from(is_its));
            !is_its || promise.askers > 0 || promise.is_queued
        });
    }

    /// The same, after what was asked for with it was answered. What is still on its way keeps its worktree.
    pub(crate) fn answered<T>(&self, task: &TaskId, room: &WorkspaceReservation, answer: &Result<T, Problem>) {
        if !matches!(room, WorkspaceReservation::Reserved(_)) {
            return; // it was promised nothing
        }
        if answer.as_ref().is_err_and(|problem| problem.status == ProblemStatus::Accepted) {
            locked(&self.promised).values_mut().filter(|it| it.is_for(task)).for_each(|it| it.is_queued = true);
        }
        self.settle(task);
    }
}

fn is_lent_to(pool: &WorkspacePool, number: &WorkspaceName, task: &TaskId) -> bool {
    pool.lent_to(number).is_ok_and(|binding| binding.is_some_and(|binding| binding.task == task.as_str()))
}

/// Whether an agent lives in a folder that is not this task's.
fn has_other_agents(living: &[(SessionId, PathBuf)], folder: &Path, task: Option<&TaskId>) -> bool {
    let is_others = |id: &SessionId| session_of(id).is_none_or(|(owner, _)| task != Some(&owner));
    living.iter().any(|(id, works_in)| works_in.starts_with(folder) && is_others(id))
}

/// Whether nobody has a worktree that no open task has. A task that ended, or lent it on, while its worktree could not be given
/// back still has it: then that is done now, and what is at risk is kept.
fn is_given_back(home: &Home, pool: &WorkspacePool, number: &WorkspaceName, task: &TaskId) -> bool {
    match pool.lent_to(number) {
        Ok(None) => true,
        Ok(Some(binding)) if binding.task == task.as_str() => true,
        Ok(Some(WorkspaceBinding { task, .. })) => {
            let is_ended = is_over(home, &task) && is_kept(home, &task) && pool.release(number, &task).is_ok();
            is_ended || task.parse().is_ok_and(|task| lending::is_left(home, pool, number, &task))
        }
        // What is wrong with it is said when it is lent.
        Err(_) => true,
    }
}

/// Whether nothing of a task that was judged is lost with its worktree.
fn is_kept(home: &Home, task: &str) -> bool {
    home.tasks.named(task).and_then(|seen| seen.map_or(Ok(()), |seen| judged::keep(home, &seen))).is_ok()
}

/// Whether a task to which a worktree was lent is known not to be open. One that cannot be read may be.
pub(crate) fn is_over(home: &Home, task: &str) -> bool {
    home.tasks.named(task).is_ok_and(|seen| seen.is_none_or(|seen| !seen.card.open))
}
