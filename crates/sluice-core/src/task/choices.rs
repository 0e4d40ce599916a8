//! What can be done with a task from where it stands, without doing it: the moves, and what a person can answer to a task
//! that needs one.
//!
//! Every answer is a decision that is thrown away, so that what is told and what is decided never differ. Nothing is
//! recorded here. What a person can answer is told without a look at files: a transition whose gate reads TASK.md is not
//! among it.

use super::attention::{AttentionCure, TaskAttention};
use super::input::{Evidence, TaskAsker, TaskInput, WorkspaceReservation};
use super::moves::{CANCELLED, edges};
use super::state::TaskPhase;
pub use super::ways::{Approval, approval};
use super::{TaskState, decide};
use crate::lifecycle::{
    DONE, ExitReaction, Lifecycle, LifecycleTransition, PersonsOnlyReason, StateId, TransitionTakers,
};
use crate::machine::{Moment, Refusal};
use crate::name::StateName;
use crate::words::words;

words! {
    /// Who usually takes a transition. A person may take every one.
    MoveTaker {
        /// A person takes it, and no agent may.
        Person = "person",
        /// An agent of the task takes it when its work is done.
        Agent = "agent",
        /// The engine takes it: a run or an agent has ended.
        Engine = "engine",
    }
}

/// A transition from the present state, and whether the asker could take it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveChoice {
    /// The state that it leads to.
    pub to: StateId,
    /// Who usually takes it.
    pub taker: MoveTaker,
    /// Why the asker cannot take it now; `None` when it is open.
    pub refusal: Option<Refusal>,
    /// Whether the task can be merged along it; `None` where no merge takes it.
    pub merge: Option<MergeChoice>,
}

/// Whether a task could be merged now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeChoice {
    /// Why the asker cannot merge it now; `None` when nothing is in the way.
    pub refusal: Option<Refusal>,
}

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
    Retry(TaskRetry),
    /// Leave undone what failed.
    Skip,
    /// Move it to this state.
    Move(StateId),
    /// Look into the session of its agent, and talk with it.
    Attach,
    /// Take the mark away.
    Dismiss,
    /// Give the task up.
    Cancel,
}

/// What is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskRetry {
    /// The agent or the run of its state is started again.
    Respawn,
    /// The task begins again.
    Spawn,
    /// The hooks that failed are done again.
    Hooks,
    /// The merge is pushed again.
    Push,
}

impl TaskChoice {
    /// The word for it; of a move, the name of the state.
    pub fn word(self, lifecycle: &Lifecycle) -> &str {
        match self {
            TaskChoice::Approve => "approve",
            TaskChoice::RequestChanges => "request-changes",
            TaskChoice::Respawn => "respawn",
            TaskChoice::Retry(_) => "retry",
            TaskChoice::Skip => "skip",
            TaskChoice::Move(to) => lifecycle.state_name(to),
            TaskChoice::Attach => "attach",
            TaskChoice::Dismiss => "dismiss",
            TaskChoice::Cancel => "cancel",
        }
    }

    /// The choice of this word among `choices`. `move:STATE` always means a move; `reject` sends back, `abort` gives up, and
    /// what can be skipped is dismissed by that.
    pub fn read(word: &str, choices: &[TaskChoice], lifecycle: &Lifecycle) -> Option<TaskChoice> {
        let wanted = match word {
            "reject" => "request-changes",
            "abort" => "cancel",
            "dismiss" if choices.contains(&TaskChoice::Skip) => "skip",
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

/// Every transition from the present state, in the order of the file, and whether `by` could take it now. Transitions to
/// the same state are one: their guards decide between them.
pub fn choices(
    lifecycle: &Lifecycle,
    state: &TaskState,
    by: TaskAsker,
    evidence: &Evidence,
    now: Moment,
) -> Vec<MoveChoice> {
    let from = state.status;
    let mut found: Vec<MoveChoice> = Vec::new();
    for (_, edge) in edges(lifecycle).filter(|(_, edge)| edge.from == from && !lifecycle.state(from).terminal) {
        if found.iter().any(|choice| choice.to == edge.to) {
            continue;
        }
        let refused = |input: &TaskInput| decide(lifecycle, state, input, now).err();
        let is_merge = lifecycle.find(DONE) == Some(edge.to);
        let merge = || TaskInput::Merge { by, force: false, evidence: evidence.clone() };
        found.push(MoveChoice {
            to: edge.to,
            taker: taker(lifecycle, edge),
            refusal: refused(&asking(lifecycle, by, edge.to, evidence)),
            merge: is_merge.then(|| MergeChoice { refusal: refused(&merge()) }),
        });
    }
    found
}

/// What a person can answer now, the usual first; nothing if the task needs none.
pub fn answers(lifecycle: &Lifecycle, state: &TaskState) -> Vec<TaskChoice> {
    let Some(raised) = state.raised(lifecycle) else { return Vec::new() };
    let (by, now, evidence) = (TaskAsker::Person, raised.since, Evidence::default());
    let room = || WorkspaceReservation::Unasked;
    let accepts = |input: TaskInput| decide(lifecycle, state, &input, now).is_ok();
    let moves = choices(lifecycle, state, by, &evidence, now);
    let open: Vec<StateId> = moves.iter().filter(|choice| choice.refusal.is_none()).map(|choice| choice.to).collect();
    let (done, cancelled) = (lifecycle.find(DONE), lifecycle.find(CANCELLED));
    let leads_to = |end: Option<StateId>| end.is_some_and(|end| open.contains(&end));
    let merges = leads_to(done) && lifecycle.is_left_by_persons(state.status);
    let respawns = accepts(TaskInput::Respawn { by, room: room() });
    let begins = || accepts(TaskInput::Spawn { by, evidence: evidence.clone(), room: room() });
    let dismissed = raised.dismissed();
    let mut cures = [Some(&raised.why), dismissed].into_iter().flatten().map(TaskAttention::cure);
    let cure = cures.find(|cure| *cure != AttentionCure::Other).unwrap_or(AttentionCure::Other);
    let retry = match cure {
        AttentionCure::Start if respawns => Some(TaskRetry::Respawn),
        AttentionCure::Start if begins() => Some(TaskRetry::Spawn),
        AttentionCure::Push => Some(TaskRetry::Push),
        AttentionCure::Start | AttentionCure::Hooks | AttentionCure::Other => {
            accepts(TaskInput::Retry { by, room: room() }).then_some(TaskRetry::Hooks)
        }
    };
    let mut found = Vec::new();
    let has_ended = match state.phase(lifecycle) {
        TaskPhase::Waiting | TaskPhase::Standing | TaskPhase::Settling => false,
        TaskPhase::Closing | TaskPhase::Finished => true,
    };
    let mut offer = |is_open: bool, choice: TaskChoice| {
        if is_open && !found.contains(&choice) {
            found.push(choice);
        }
    };
    // Who waits is talked with first; to end it and start again is the way out where that does not help.
    let has_agent = state.has_living_agent() && !has_ended;
    offer(has_agent && raised.why.is_heard(), TaskChoice::Attach);
    offer(respawns && raised.why.is_heard(), TaskChoice::Respawn);
    offer(merges, TaskChoice::Approve);
    let changes = TaskInput::RequestChanges { by, message: String::new(), evidence: evidence.clone(), room: room() };
    offer(accepts(changes), TaskChoice::RequestChanges);
    offer(respawns, TaskChoice::Respawn);
    retry.into_iter().for_each(|what| offer(true, TaskChoice::Retry(what)));
    let can_skip = dismissed.is_some_and(|why| why.cure() == AttentionCure::Hooks);
    offer(can_skip, TaskChoice::Skip);
    for to in &open {
        let is_named = Some(*to) == cancelled || (merges && Some(*to) == done);
        offer(!is_named, TaskChoice::Move(*to));
    }
    offer(has_agent, TaskChoice::Attach);
    offer(dismissed.is_some() && !can_skip, TaskChoice::Dismiss);
    offer(leads_to(cancelled), TaskChoice::Cancel);
    found
}

pub(super) fn asking(lifecycle: &Lifecycle, by: TaskAsker, to: StateId, evidence: &Evidence) -> TaskInput {
    let (to, evidence) = (StateName::new(lifecycle.state_name(to)), evidence.clone());
    TaskInput::Move { by, to, evidence, room: WorkspaceReservation::Unasked, feedback: None }
}

fn taker(lifecycle: &Lifecycle, edge: &LifecycleTransition) -> MoveTaker {
    let leads = |reaction: &ExitReaction| match reaction {
        ExitReaction::Advance(to) => *to == edge.to,
        ExitReaction::Choose(clauses) => clauses.iter().any(|(_, to)| *to == edge.to),
        ExitReaction::Crash { .. } | ExitReaction::MarkDead => false,
    };
    let is_ruled = lifecycle.exits.rules.iter().any(|rule| rule.state == edge.from && leads(&rule.reaction));
    match lifecycle.takers(edge) {
        TransitionTakers::Agents | TransitionTakers::Reviewer => MoveTaker::Agent,
        TransitionTakers::Persons(PersonsOnlyReason::EndsRun) => MoveTaker::Engine,
        TransitionTakers::Persons(
            PersonsOnlyReason::Said | PersonsOnlyReason::StartsAgent | PersonsOnlyReason::EndsTask,
        ) if is_ruled => MoveTaker::Engine,
        TransitionTakers::Persons(
            PersonsOnlyReason::Said | PersonsOnlyReason::StartsAgent | PersonsOnlyReason::EndsTask,
        ) => MoveTaker::Person,
    }
}
