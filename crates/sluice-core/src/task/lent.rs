//! Worktrees that are lent on: a task that waits for a person, with all of its work in a commit, leaves its worktree to another
//! task, and takes one up again when something is to be done in one.
//!
//! The host finds the task and looks at its files; here it is decided whether the task can do without. A task that needs a
//! worktree again has moved already: only the first job of its turn waits until there is one.

use super::TaskInputResult;
use super::apply::edge as edge_at;
use super::event::TaskEvent;
use super::hooks;
use super::input::{WorkEvidence, WorkHead, WorkspaceReservation};
use super::pending::TaskPending;
use super::state::{CommitId, TaskAttention, TaskJob, TaskState, TaskWorkspace, WorktreePath};
use crate::lifecycle::{Lifecycle, TransitionHook};
use crate::machine::{Refusal, RefusalCode};

/// Where the work of a task stood when its worktree was lent on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LentWork {
    /// The worktree that was lent on.
    pub workspace: WorktreePath,
    /// The commit that was checked out there.
    pub commit: CommitId,
}

/// Lends the task's worktree on, if nothing in it is in use or would be lost. With `events` the host says how much of the
/// task's history it knew when it looked: what came since may have changed what it saw.
pub(super) fn lend(
    ledger: &mut TaskPending<'_>,
    workspace: &WorktreePath,
    events: u64,
    work: &WorkEvidence,
) -> TaskInputResult {
    let refuse = |code, why: &str| Err(Refusal::new(code, format!("The worktree cannot be lent on: {why}")));
    let state = &ledger.state;
    if state.workspace.bound() != Some(workspace) {
        return refuse(RefusalCode::NoWorkspace, "the task does not have it");
    }
    if state.has_living_agent() {
        return refuse(RefusalCode::SessionAlive, "a session of the task is alive or about to be");
    }
    if state.run.is_some() {
        return refuse(RefusalCode::NotReady, "the run of the task's state works in it, or can go on there");
    }
    if state.events != events {
        return refuse(RefusalCode::NotReady, "the task has changed meanwhile");
    }
    let standing = match work {
        WorkEvidence::Read(standing) => standing,
        WorkEvidence::Unseen | WorkEvidence::Unreadable(_) => {
            return refuse(RefusalCode::NotReady, "the work in it cannot be read");
        }
    };
    if standing.head != WorkHead::Branch(state.about.branch.clone()) {
        return refuse(RefusalCode::NotOnBranch, "the task's branch is not checked out in it");
    }
    if !standing.dirty.is_empty() {
        return refuse(RefusalCode::Uncommitted, "it holds changes that no commit has");
    }
    let (branch, commit) = (state.about.branch.clone(), standing.commit.clone());
    ledger.record(TaskEvent::WorkspaceLent { workspace: workspace.clone(), branch, commit });
    Ok(())
}

/// There is a worktree for a task whose own was lent on. One that waits for it goes on. One that stands still has it again at
/// once: the host says so only of the task's own worktree, which no other task has had.
pub(super) fn take_up(ledger: &mut TaskPending<'_>) {
    if ledger.state.waits_for_worktree() {
        return hooks::run(ledger);
    }
    let WorkspaceReservation::Reserved(name) = &ledger.room else { return };
    let own = ledger.state.lent.as_ref().is_some_and(|lent| lent.workspace == *name);
    if own && ledger.state.turns.is_empty() && ledger.state.workspace == TaskWorkspace::Unbound {
        ledger.record(TaskEvent::WorkspaceBound(name.clone()));
    }
}

/// The first job needs a worktree. Takes up what is kept free for the task, or marks the task as one that waits. Whether the
/// job can be done.
pub(super) fn has_room(ledger: &mut TaskPending<'_>) -> bool {
    match std::mem::replace(&mut ledger.room, WorkspaceReservation::Unasked) {
        WorkspaceReservation::Reserved(name) => {
            if ledger.state.marked() == Some(&TaskAttention::PoolFull) {
                ledger.clear_mark();
            }
            ledger.record(TaskEvent::WorkspaceReserved(name));
            true
        }
        // A host that did not look looks when it sees that the task waits.
        WorkspaceReservation::Full | WorkspaceReservation::Unasked => {
            ledger.mark(TaskAttention::PoolFull);
            false
        }
    }
}

impl TaskState {
    /// The worktree that was lent on, until the task has one again.
    pub fn lent_on(&self) -> Option<&LentWork> {
        self.lent.as_ref().filter(|_| self.workspace == TaskWorkspace::Unbound)
    }

    /// Whether the task's worktree was lent on, and what is to be done next waits until it has one again. A task that has
    /// moved on meanwhile does not wait for what was to be done before.
    pub fn waits_for_worktree(&self) -> bool {
        let waits = self.turns.front().is_some_and(|turn| {
            self.turns.len() == 1 && turn.waiting.is_none() && turn.jobs.front() == Some(&TaskJob::Acquire)
        });
        waits && self.lent_on().is_some()
    }

    /// Whether the task works in a worktree although its own was lent on: that never happens.
    pub(super) fn uses_what_is_lent(&self) -> bool {
        let works = self.workspace.bound().is_some() || self.has_living_agent() || self.run.is_some();
        self.lent.is_some() && works
    }

    pub(super) fn bind(&mut self, workspace: &WorktreePath) {
        self.workspace = TaskWorkspace::Bound(workspace.clone());
        self.lent = None;
    }

    pub(super) fn lend(&mut self, workspace: &WorktreePath, commit: &CommitId) {
        self.workspace = TaskWorkspace::Unbound;
        self.lent = Some(LentWork { workspace: workspace.clone(), commit: commit.clone() });
    }

    /// What is left undone and can be done again: what needs a worktree only if the task has one or takes its own up again, and
    /// no start, because a person starts agents and runs by other ways, which look at more.
    pub(super) fn redoable<'a>(&'a self, lifecycle: &'a Lifecycle) -> impl Iterator<Item = TaskJob> + 'a {
        let takes_up = self.lent.is_some() && !lifecycle.state(self.status).terminal;
        let has_room = self.workspace.bound().is_some() || takes_up;
        let can = move |job: &TaskJob| {
            let is_start = match job {
                TaskJob::Acquire | TaskJob::Start(_) | TaskJob::StartRun(_) => true,
                TaskJob::CancelRun | TaskJob::Tell => false,
                TaskJob::Hook { edge, hook } => edge_at(lifecycle, *edge)
                    .and_then(|edge| edge.hooks.get(*hook as usize))
                    .is_none_or(|hook| hook.action().is_start()),
            };
            !is_start && (has_room || !needs_worktree(lifecycle, *job))
        };
        self.undone.iter().copied().filter(can)
    }

    /// Whether the task has no worktree because it was lent on, and one of these jobs needs one.
    pub(super) fn must_take_up<'a>(&self, lifecycle: &Lifecycle, mut jobs: impl Iterator<Item = &'a TaskJob>) -> bool {
        self.lent.is_some() && jobs.any(|job| needs_worktree(lifecycle, *job))
    }
}

fn needs_worktree(lifecycle: &Lifecycle, job: TaskJob) -> bool {
    match job {
        TaskJob::Acquire | TaskJob::Start(_) | TaskJob::StartRun(_) => true,
        TaskJob::CancelRun | TaskJob::Tell => false,
        TaskJob::Hook { edge, hook } => {
            let hook = edge_at(lifecycle, edge).and_then(|edge| edge.hooks.get(hook as usize));
            hook.is_some_and(|hook| match hook {
                TransitionHook::AcquireWorkspace
                | TransitionHook::SpawnAgent(_)
                | TransitionHook::SpawnReviewer(_)
                | TransitionHook::RunCommand(_)
                // No worker lives beside a worktree that was lent on: one is started to be told.
                | TransitionHook::NotifyWorker { start: true, .. } => true,
                TransitionHook::NotifyWorker { start: false, .. }
                | TransitionHook::ReleaseWorkspace
                | TransitionHook::KillSession
                | TransitionHook::KillReviewer
                | TransitionHook::Increment(_)
                | TransitionHook::SetField { .. }
                | TransitionHook::Plain(_) => false,
            })
        }
    }
}
