//! A decision while it is being made: a copy of the state that is moved on by each event as it is recorded, so that
//! what is decided next is decided on what will be folded.

use super::attention::TaskAttention;
use super::effect::{EffectKey, Instruction, TaskAction, TaskEffect};
use super::event::{Settlement, TaskEvent};
use super::input::WorkspaceReservation;
use super::keys::frontmatter;
use super::law::LawRow;
use super::session::{
    SessionAgent, SessionChange, SessionDeath, SessionNumber, SessionRole, SessionTransition, TaskSession,
    TaskSessionPlace,
};
use super::state::{TaskJob, TaskState};
use crate::lifecycle::action::PlainAction;
use crate::lifecycle::{FieldValue, Lifecycle, TransitionHook};
use crate::machine::{Decision, Moment};
use std::collections::BTreeMap;

pub(super) struct TaskPending<'a> {
    pub(super) lifecycle: &'a Lifecycle,
    pub(super) now: Moment,
    pub(super) state: TaskState,
    /// What TASK.md says; nothing of a task that is only now created.
    written: BTreeMap<String, FieldValue>,
    /// What a person writes with this decision: it is appended to TASK.md, and a living agent is told of it.
    pub(super) feedback: Option<String>,
    /// Whether there is a workspace, as far as the host has looked.
    pub(super) room: WorkspaceReservation,
    pub(super) rows: Vec<LawRow>,
    events: Vec<TaskEvent>,
    effects: Vec<TaskEffect>,
}

impl<'a> TaskPending<'a> {
    pub(super) fn new(lifecycle: &'a Lifecycle, state: TaskState, now: Moment) -> Self {
        let (rows, events, effects) = (Vec::new(), Vec::new(), Vec::new());
        let written = frontmatter(lifecycle, &state);
        let room = WorkspaceReservation::Unasked;
        TaskPending { lifecycle, now, state, written, feedback: None, room, rows, events, effects }
    }

    pub(super) fn record(&mut self, event: TaskEvent) {
        self.state.apply(self.lifecycle, &event);
        self.events.push(event);
    }

    /// The creation, which is already in the state.
    pub(super) fn record_creation(&mut self, event: TaskEvent) {
        self.events.push(event);
        self.written.clear();
    }

    /// TASK.md is written with this decision, whatever it says.
    pub(super) fn write_again(&mut self) {
        self.written.clear();
    }

    /// Whether nothing has happened yet.
    pub(super) fn is_unchanged(&self) -> bool {
        self.events.is_empty()
    }

    /// Asks for an effect on behalf of the job that is being done.
    pub(super) fn ask(&mut self, action: TaskAction, instruction: Instruction) {
        let Some(turn) = self.state.turns.front() else { return };
        let (turn, step) = (turn.number, turn.step);
        self.record(TaskEvent::HookAsked { turn, step, action });
        self.effects.push(TaskEffect { key: EffectKey::Job { turn, step, action }, instruction });
    }

    pub(super) fn settle(&mut self, settlement: Settlement) {
        let Some(turn) = self.state.turns.front() else { return };
        let Some(job) = turn.jobs.front() else { return };
        let (turn, step, action) = (turn.number, turn.step, self.action(*job));
        let failure = match &settlement {
            // The session itself tells it.
            Settlement::Failed(reason) if self.is_not_started(reason) => None,
            Settlement::Failed(reason) => Some(TaskAttention::HookFailed(action, reason.clone())),
            Settlement::Done | Settlement::Idle | Settlement::Skipped(_) => None,
        };
        self.record(TaskEvent::HookSettled { turn, step, action, settlement });
        failure.into_iter().for_each(|attention| self.mark(attention));
    }

    /// Whether the agent that the status watches could not be started, because of this.
    fn is_not_started(&self, reason: &str) -> bool {
        let watched = self.state.session(self.state.visit.watch);
        matches!(watched, TaskSession::Dead(_, SessionDeath::NotStarted(why)) if why == reason)
    }

    /// What a job does, in the words of the files.
    pub(super) fn action(&self, job: TaskJob) -> TaskAction {
        match job {
            TaskJob::Hook { edge, hook } => super::apply::edge(self.lifecycle, edge)
                .and_then(|edge| edge.hooks.get(hook as usize))
                // The definition is pinned, so the hook is there.
                .map_or(TaskAction::Plain(PlainAction::Notify), TransitionHook::action),
            TaskJob::Acquire => TaskAction::AcquireWorkspace,
            TaskJob::Start(start) => TaskAction::starting(start.place),
            TaskJob::StartRun(_) => TaskAction::StartRun,
            TaskJob::CancelRun => TaskAction::CancelRun,
            TaskJob::Tell => TaskAction::NotifyWorker,
        }
    }

    pub(super) fn next_turn(&self) -> u32 {
        self.state.turns_taken.saturating_add(1)
    }

    /// A new agent for `place`.
    pub(super) fn new_agent(&self, role: SessionRole) -> SessionAgent {
        SessionAgent { id: SessionNumber(self.state.sessions_asked.saturating_add(1)), role }
    }

    /// Something is heard of the session in `place`. Whether it ended by itself, so that the exit rules are asked.
    pub(super) fn heard(&mut self, place: TaskSessionPlace, change: SessionChange, again: bool) -> bool {
        let session = self.state.session(place);
        self.rows.push(LawRow::Session(session.word(), change.word()));
        let agent = if let SessionChange::Asked(agent) = &change { Some(agent) } else { session.agent() };
        let Some(id) = agent.map(|agent| agent.id) else { return false };
        let died = match session.after(&change) {
            SessionTransition::Becomes(_) => false,
            SessionTransition::Died(_) => true,
            SessionTransition::Stays | SessionTransition::Never => return false,
        };
        self.record(TaskEvent::Session { place, session: id, change, again });
        died
    }

    /// The place of session `id`, if it is one of the task's present ones.
    pub(super) fn place_of(&self, id: SessionNumber) -> Option<TaskSessionPlace> {
        let is_there =
            |place: &TaskSessionPlace| self.state.session(*place).agent().is_some_and(|agent| agent.id == id);
        TaskSessionPlace::ALL.into_iter().find(is_there)
    }

    pub(super) fn finish(mut self) -> (Decision<TaskEvent, TaskEffect>, Vec<LawRow>) {
        self.reconcile();
        // Only when it says something new: the agents write in that file too.
        let frontmatter = frontmatter(self.lifecycle, &self.state);
        if self.feedback.is_some() || frontmatter != self.written {
            let key = EffectKey::Write { events: self.state.events };
            let instruction = Instruction::WriteArtifact { frontmatter, feedback: self.feedback.take() };
            // First: an agent that this decision starts reads the file.
            self.effects.insert(0, TaskEffect { key, instruction });
        }
        (Decision { events: self.events, effects: self.effects }, self.rows)
    }
}
