//! What a board shows of a task without a look at its files: which commands its lifecycle and its state allow, whose turn it
//! is, and how often it may be reviewed. No name of a state decides it but those that commands themselves mean: `done` for a
//! merge and `cancelled` for a cancellation.
//!
//! A command that is offered here can still be refused: what stands in TASK.md and in git is looked at when it is given.

use super::attention::TaskAttention;
use super::commands::begins;
use super::moves::CANCELLED;
use super::runs;
use super::session::{TaskSession, TaskSessionPlace};
use super::spawn::SpawnManner;
use super::state::{TaskPhase, TaskState};
use super::ways::{leads_nearer, way_back};
use crate::artifact::Verdict;
use crate::expr::{CompareOp, Comparison, Expr, ExprValue, Number, ValuePath};
use crate::lifecycle::{DONE, ExitReaction, Lifecycle, LifecycleTransition, StateId};
use crate::words::words;

words! {
    /// A command that a person can give for a task.
    PersonCommand {
        /// Merge its work, by the transition to `done`.
        Merge = "merge",
        /// Give it up, by the transition to `cancelled`.
        Cancel = "cancel",
        /// Open a pull request for its branch.
        CreatePr = "create_pr",
        /// Start its agent for the first time.
        Spawn = "spawn",
        /// Start the agent or the run of its state again.
        Respawn = "respawn",
        /// Look at the terminal of its agent.
        Attach = "attach",
        /// Let the work pass, to where its lifecycle leads.
        Approve = "approve",
        /// Send it back to its worker.
        RequestChanges = "request_changes",
        /// Send its agent a message.
        Nudge = "nudge",
    }
}

words! {
    /// Whose turn it is.
    TaskTurnHolder {
        /// A person's: nothing goes on before.
        Person = "person",
        /// A person's, who can merge work that has passed.
        Merger = "merger",
        /// A reviewer's, who judges the work.
        Reviewer = "reviewer",
        /// An agent's or the engine's.
        Worker = "worker",
        /// It has not begun, or waits for a worktree.
        Queue = "queue",
        /// The task has ended.
        Ended = "ended",
    }
}

words! {
    /// How a task ended.
    TaskEnding {
        /// In the state in which its work is merged.
        Merged = "merged",
        /// It was given up.
        Cancelled = "cancelled",
        /// In another state that the lifecycle calls an end.
        Other = "other",
    }
}

impl Lifecycle {
    /// Whether a transition leads from one state to the one of this name.
    pub fn has_transition(&self, from: StateId, to: &str) -> bool {
        self.find(to).is_some_and(|to| self.transitions.iter().any(|edge| edge.from == from && edge.to == to))
    }

    /// How often a review may be begun: as often as its guards let `review_round` count.
    pub fn review_bound(&self) -> Option<i64> {
        let guards = self.transitions.iter().filter_map(|edge| edge.guard.as_ref());
        let clauses = self.exits.rules.iter().filter_map(|rule| match &rule.reaction {
            ExitReaction::Choose(clauses) => Some(clauses.iter().map(|(guard, _)| guard)),
            ExitReaction::Advance(_) | ExitReaction::Crash { .. } | ExitReaction::MarkDead => None,
        });
        guards.chain(clauses.flatten()).flat_map(Expr::comparisons).filter_map(bound).max()
    }
}

/// The count up to which a comparison lets a review be begun again.
fn bound(compare: &Comparison) -> Option<i64> {
    let ExprValue::Number(number) = &compare.value else { return None };
    let most = number.as_whole().filter(|_| compare.path.head() == "review_round" && compare.path.tail().is_empty())?;
    match compare.op {
        CompareOp::Less => Some(most),
        CompareOp::AtMost => most.checked_add(1),
        CompareOp::Equal | CompareOp::NotEqual | CompareOp::More | CompareOp::AtLeast => None,
    }
}

impl TaskState {
    /// The commands that the lifecycle has a transition for, and that the state allows.
    pub fn commands(&self, lifecycle: &Lifecycle) -> Vec<PersonCommand> {
        let phase = self.phase(lifecycle);
        match phase {
            TaskPhase::Waiting | TaskPhase::Standing | TaskPhase::Settling => {}
            TaskPhase::Closing | TaskPhase::Finished => return Vec::new(),
        }
        let has_place = self.workspace.bound().is_some() || self.lent.is_some();
        let is_alive = [&self.main, &self.beside].into_iter().any(|session| matches!(session, TaskSession::Alive(_)));
        let can_merge = lifecycle.has_transition(self.status, DONE);
        let has_begun = lifecycle.initial.first() != Some(&self.status);
        let leads_on = || open_ways(self, lifecycle).any(|edge| leads_nearer(lifecycle, self.status, edge.to));
        let is_open = |command: &PersonCommand| match command {
            PersonCommand::Merge => can_merge,
            PersonCommand::Cancel => lifecycle.has_transition(self.status, CANCELLED),
            PersonCommand::CreatePr => has_place,
            PersonCommand::Spawn => phase == TaskPhase::Waiting && begins(lifecycle, self.status),
            PersonCommand::Respawn => self.can_respawn(lifecycle),
            PersonCommand::Attach | PersonCommand::Nudge => is_alive,
            PersonCommand::Approve => can_merge || (has_begun && leads_on()),
            PersonCommand::RequestChanges => way_back(lifecycle, self.status).is_some(),
        };
        PersonCommand::ALL.into_iter().filter(is_open).collect()
    }

    /// Whose turn it is.
    pub fn turn_holder(&self, lifecycle: &Lifecycle) -> TaskTurnHolder {
        match self.phase(lifecycle) {
            TaskPhase::Closing | TaskPhase::Finished => return TaskTurnHolder::Ended,
            TaskPhase::Waiting | TaskPhase::Standing | TaskPhase::Settling => {}
        }
        match self.raised(lifecycle).map(|raised| raised.why) {
            Some(TaskAttention::PoolFull) => TaskTurnHolder::Queue,
            Some(TaskAttention::Review) if self.has_passed() => TaskTurnHolder::Merger,
            Some(_) => TaskTurnHolder::Person,
            None if self.waits_for_worktree() || (self.turns_taken == 0 && self.turns.is_empty()) => {
                TaskTurnHolder::Queue
            }
            None if self.beside.is_living() || lifecycle.is_reviewed(self.status) || lifecycle.judges(self.status) => {
                TaskTurnHolder::Reviewer
            }
            None => TaskTurnHolder::Worker,
        }
    }

    /// How the task has ended, if its state is an end.
    pub fn ending(&self, lifecycle: &Lifecycle) -> Option<TaskEnding> {
        let state = lifecycle.state(self.status);
        let ending = match state.name.as_str() {
            DONE => TaskEnding::Merged,
            CANCELLED => TaskEnding::Cancelled,
            _ => TaskEnding::Other,
        };
        state.terminal.then_some(ending)
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
            && (!self.session(place).is_living() || self.waits_in(place))
            && self.turns.is_empty()
    }
    /// Whether the newest verdict is a good one, of a reviewer or of a run. Whether it is about the work as it is now is told
    /// when it is merged.
    fn has_passed(&self) -> bool {
        let judged = self.judged.as_ref().map(|judged| judged.verdict);
        let checked = self.checked.as_ref().map(|checked| checked.verdict());
        [judged, checked].into_iter().flatten().all(|verdict| verdict == Verdict::Pass)
            && (judged.is_some() || checked.is_some())
    }
}

/// The transitions that a person can take now whatever stands in TASK.md.
fn open_ways<'a>(state: &'a TaskState, lifecycle: &'a Lifecycle) -> impl Iterator<Item = &'a LifecycleTransition> {
    let holds = |guard: &Expr| {
        guard.holds(&|path: &ValuePath| Some(ExprValue::Number(Number::whole(state.number(path.head())))))
    };
    let is_open = move |edge: &&LifecycleTransition| {
        edge.from == state.status && edge.gate.is_none() && edge.guard.as_ref().is_none_or(holds)
    };
    lifecycle.transitions.iter().filter(is_open)
}
