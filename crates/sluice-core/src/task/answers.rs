//! What a person can answer to a task that needs one: only what the task would accept now, as far as that does not depend on
//! its files.

use super::TaskAction;
use super::attention::TaskAttention;
use super::commands::way_back;
use super::moves::CANCELLED;
use super::runs;
use super::session::TaskSessionPlace;
use super::spawn::SpawnManner;
use super::state::{TaskPhase, TaskState};
use crate::expr::{Expr, ExprValue, Number, ValuePath};
use crate::lifecycle::{DONE, Lifecycle, LifecycleTransition, StateId};

/// One answer to a task that needs a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskChoice {
    /// Merge its work, as the command does without options.
    Approve,
    /// Send it back to the worker, with words.
    RequestChanges,
    /// Start the agent or the run of its state again.
    Respawn,
    /// Try again what failed.
    Retry,
    /// Move it to this state.
    Move(StateId),
    /// Look into the session of its agent, and talk with it.
    Attach,
    /// Take the mark away.
    Dismiss,
    /// Give the task up.
    Cancel,
}

impl TaskChoice {
    /// The word for it; of a move, the name of the state.
    pub fn word(self, lifecycle: &Lifecycle) -> &str {
        match self {
            TaskChoice::Approve => "approve",
            TaskChoice::RequestChanges => "request-changes",
            TaskChoice::Respawn => "respawn",
            TaskChoice::Retry => "retry",
            TaskChoice::Move(to) => lifecycle.state_name(to),
            TaskChoice::Attach => "attach",
            TaskChoice::Dismiss => "dismiss",
            TaskChoice::Cancel => "cancel",
        }
    }

    /// The choice of this word among `choices`. `move:STATE` always means a move; `reject` sends back, `abort` gives up.
    pub fn read(word: &str, choices: &[TaskChoice], lifecycle: &Lifecycle) -> Option<TaskChoice> {
        let wanted = match word {
            "reject" => "request-changes",
            "abort" => "cancel",
            other => other,
        };
        let found = |choice: &&TaskChoice| match (choice, wanted.strip_prefix("move:")) {
            (TaskChoice::Move(to), Some(state)) => lifecycle.state_name(*to) == state,
            (_, Some(_)) => false,
            (choice, None) => choice.word(lifecycle) == wanted,
        };
        choices.iter().find(found).copied()
    }
}

impl TaskState {
    /// What a person can answer now, the usual first; nothing if the task needs none.
    pub fn choices(&self, lifecycle: &Lifecycle) -> Vec<TaskChoice> {
        let Some(raised) = self.raised(lifecycle) else { return Vec::new() };
        let mut choices = Vec::new();
        let mut offer = |is_open: bool, choice: TaskChoice| {
            if is_open && !choices.contains(&choice) {
                choices.push(choice);
            }
        };
        let is_open = match self.phase(lifecycle) {
            TaskPhase::Waiting | TaskPhase::Standing | TaskPhase::Settling => true,
            TaskPhase::Closing | TaskPhase::Finished => false,
        };
        let ways: Vec<&LifecycleTransition> = self.open_ways(lifecycle).filter(|_| is_open).collect();
        let (done, cancelled) = (lifecycle.find(DONE), lifecycle.find(CANCELLED));
        let merges = ways.iter().any(|edge| Some(edge.to) == done) && lifecycle.is_left_by_persons(self.status);
        let starts = is_open && self.can_respawn(lifecycle);
        offer(merges, TaskChoice::Approve);
        let back = way_back(lifecycle, self.status);
        offer(ways.iter().any(|edge| back == Some(edge)), TaskChoice::RequestChanges);
        offer(starts, TaskChoice::Respawn);
        let begins = is_open && self.phase(lifecycle) == TaskPhase::Waiting;
        offer(raised.why.is_about_a_start() && (starts || begins), TaskChoice::Retry);
        for edge in &ways {
            let is_named = Some(edge.to) == cancelled || (merges && Some(edge.to) == done);
            offer(!is_named, TaskChoice::Move(edge.to));
        }
        offer(is_open && self.has_living_agent(), TaskChoice::Attach);
        offer(self.phase(lifecycle) != TaskPhase::Finished && raised.why.is_dismissible(), TaskChoice::Dismiss);
        offer(ways.iter().any(|edge| Some(edge.to) == cancelled), TaskChoice::Cancel);
        choices
    }

    /// The transitions that a person can take now whatever stands in TASK.md.
    fn open_ways<'a>(&'a self, lifecycle: &'a Lifecycle) -> impl Iterator<Item = &'a LifecycleTransition> {
        let holds = |guard: &Expr| {
            guard.holds(&|path: &ValuePath| Some(ExprValue::Number(Number::whole(self.number(path.head())))))
        };
        let is_open = move |edge: &&LifecycleTransition| {
            edge.from == self.status && edge.gate.is_none() && edge.guard.as_ref().is_none_or(holds)
        };
        lifecycle.transitions.iter().filter(is_open)
    }

    /// Whether the agent or the run of this state can be started again, as [`super::commands::respawn`] asks it.
    fn can_respawn(&self, lifecycle: &Lifecycle) -> bool {
        if runs::only(lifecycle, self.status) {
            return !self.has_open_run() && !self.starts_run();
        }
        let place = match self.visit.watch {
            TaskSessionPlace::Beside => TaskSessionPlace::Beside,
            TaskSessionPlace::Main => SpawnManner::of(lifecycle, self.status).place,
        };
        lifecycle.state(self.status).respawn_prompt.is_some()
            && (self.workspace.bound().is_some() || self.lent.is_some())
            && !self.session(place).is_living()
            && self.turns.is_empty()
    }
}

impl TaskAttention {
    /// Whether an agent, a run or a worktree could not be had.
    fn is_about_a_start(&self) -> bool {
        match self {
            TaskAttention::NoWorkspace | TaskAttention::CannotStart(_) => true,
            TaskAttention::HookFailed(action, _) => match action {
                TaskAction::AcquireWorkspace
                | TaskAction::SpawnAgent
                | TaskAction::SpawnReviewer
                | TaskAction::StartRun => true,
                TaskAction::ReleaseWorkspace
                | TaskAction::KillSession
                | TaskAction::KillReviewer
                | TaskAction::NotifyWorker
                | TaskAction::Increment
                | TaskAction::RunCommand
                | TaskAction::SetField
                | TaskAction::CancelRun
                | TaskAction::WriteArtifact
                | TaskAction::Plain(_) => false,
            },
            TaskAttention::PoolFull
            | TaskAttention::Crashed(_)
            | TaskAttention::NoWorker
            | TaskAttention::NoPrompt
            | TaskAttention::Uprooted
            | TaskAttention::WorkerGone
            | TaskAttention::Disputed { .. }
            | TaskAttention::NotPushed(_)
            | TaskAttention::NotClosed(_)
            | TaskAttention::RunEnded { .. }
            | TaskAttention::Review
            | TaskAttention::Clarification
            | TaskAttention::Stuck(_)
            | TaskAttention::Decision
            | TaskAttention::Unattended
            | TaskAttention::Died(_)
            | TaskAttention::Dialog { .. }
            | TaskAttention::Quiet { .. } => false,
        }
    }
}
