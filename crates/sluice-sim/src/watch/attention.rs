//! What is promised of tasks that need a person, and an engine that forgets to record it.

use sluice_core::event_name::EventName;
use sluice_core::lifecycle::STUCK;
use sluice_core::task::state::{RaisedAttention, TaskAttention};
use sluice_core::task::{TaskEvent, TaskState};
use sluice_engine::codec::task_state::{self, TaskHeader};
use sluice_engine::codec::{outbox, task_event};
use sluice_engine::task_actor::TaskActor;
use sluice_store::Append;

use super::{SimWatch, TaskWatch};
use crate::definitions;

/// The state in which an agent asks what is wanted.
const CLARIFICATION: &str = "clarification";

impl TaskWatch {
    /// A task at rest that nothing but a person can move says why; one that is worked on does not say that it rests.
    pub(super) fn tells_a_person(&self) -> Result<(), String> {
        let (state, lifecycle) = (&self.state, &self.lifecycle);
        let why = state.attention.as_ref().map(|raised| &raised.why);
        let is_new = state.turns_taken == 0 && lifecycle.initial.first() == Some(&state.status);
        let is_worked_on = state.has_living_agent() || state.has_open_run();
        let is_clarified = self.status() == CLARIFICATION;
        let is_persons = is_clarified || lifecycle.is_left_by_persons(state.status) && !self.works_for_a_person();
        // What waits for a worktree gets one when it is its turn.
        let goes_on = is_new || state.has_open_run() || state.waits_for_worktree();
        if why.is_none() && !goes_on && (!is_worked_on || is_persons) {
            return Err("only a person can move it, and no person is told".into());
        }
        // Neither a hook that failed nor a worker that has gone keeps a task from going on.
        let is_beside = match why {
            Some(TaskAttention::HookFailed(action, _)) => !action.starts_agent() && !action.is_start(),
            other => other == Some(&TaskAttention::WorkerGone),
        };
        if is_beside && is_persons && !goes_on {
            return Err("only a person can move it, and a mark hides that".into());
        }
        let says_it_rests = matches!(why, Some(TaskAttention::Unattended));
        let says_it_waits =
            matches!(why, Some(TaskAttention::Review | TaskAttention::Decision | TaskAttention::Stuck(_)));
        let may_wait = is_persons || self.status() == STUCK;
        if is_worked_on && (says_it_rests || says_it_waits && !may_wait) {
            return Err(format!("it is worked on, and says `{}`", why.map(ToString::to_string).unwrap_or_default()));
        }
        Ok(())
    }
}

impl TaskWatch {
    /// Whether an agent works that a person has had started again in this stay, in the world's own book.
    fn works_for_a_person(&self) -> bool {
        self.helped.is_some_and(|(stay, place)| stay == self.state.visit.turn && self.state.session(place).is_living())
    }
}

impl SimWatch {
    /// What an engine stores that tells of where a task stands only when it comes there.
    pub(crate) fn tells_at_the_move(&self, append: &mut Append) -> Result<(), String> {
        let comes = |kind: &str| kind == EventName::StatusChanged.word() || kind == EventName::TaskCreated.word();
        match append.events.iter().any(|event| comes(&event.kind)) {
            true => Ok(()),
            false => self.forgets_attention(append),
        }
    }

    /// What a broken engine stores: as if nothing followed from where a task stands.
    pub(crate) fn forgets_attention(&self, append: &mut Append) -> Result<(), String> {
        self.rewrites(append, |event| match event {
            TaskEvent::AttentionSet(raised) if !raised.why.is_mark() => Some(TaskEvent::AttentionCleared),
            _ => None,
        })
    }

    /// What a broken engine stores: a mark in front of what is more urgent.
    pub(crate) fn hides_behind_marks(&self, append: &mut Append) -> Result<(), String> {
        self.rewrites(append, |event| match event {
            TaskEvent::AttentionSet(raised) => {
                raised.behind.clone().map(|mark| TaskEvent::AttentionSet(RaisedAttention::from(mark)))
            }
            _ => None,
        })
    }

    /// Stores other events of a task in the place of some, and the state that follows from them.
    fn rewrites(&self, append: &mut Append, instead: impl Fn(&TaskEvent) -> Option<TaskEvent>) -> Result<(), String> {
        if append.header.card.kind != TaskActor::KIND {
            return Ok(());
        }
        let mut events = Vec::new();
        for event in &mut append.events {
            let note = outbox::read(&event.kind, event.version, &event.data).map_err(|error| error.to_string())?;
            if note.is_some() {
                continue;
            }
            let mut read = task_event::read(event.version, &event.data).map_err(|error| error.to_string())?;
            if let Some(other) = instead(&read) {
                read = other;
                event.kind = read.type_name().to_owned();
                event.data = task_event::write(&read);
            }
            events.push(read);
        }
        let definition = task_state::definition_of(&append.header.data).map_err(|error| error.to_string())?;
        let lifecycle = definitions::lifecycle(&definition)?;
        let known = self.tasks.get(&append.stream).map(|task| task.state.clone());
        let state = match known {
            Some(mut state) => {
                events.iter().for_each(|event| state.apply(lifecycle, event));
                Some(state)
            }
            None => TaskState::fold(lifecycle, &events),
        };
        let kept = task_state::read(lifecycle, &append.header.data).map_err(|error| error.to_string())?;
        if let Some(state) = state {
            append.header.data = task_state::write(&TaskHeader { state, ..kept });
        }
        Ok(())
    }
}
