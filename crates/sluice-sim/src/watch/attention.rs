//! What is promised of tasks that need a person, and an engine that forgets to record it.

use sluice_core::lifecycle::STUCK;
use sluice_core::task::state::TaskAttention;
use sluice_core::task::{TaskEvent, TaskState};
use sluice_engine::codec::task_state::{self, TaskHeader};
use sluice_engine::codec::{outbox, task_event};
use sluice_engine::task_actor::TaskActor;
use sluice_store::Append;

use super::{SimWatch, TaskWatch};
use crate::definitions;

impl TaskWatch {
    /// A task at rest that nothing but a person can move says why; one that is worked on does not say that it rests.
    pub(super) fn tells_a_person(&self) -> Result<(), String> {
        let (state, lifecycle) = (&self.state, &self.lifecycle);
        let why = state.attention.as_ref().map(|raised| &raised.why);
        let is_new = state.turns_taken == 0 && lifecycle.initial.first() == Some(&state.status);
        let is_worked_on = state.has_living_agent() || state.has_open_run();
        let was_started_here = state.has_living_agent() && state.turns_taken > state.visit.turn;
        let is_persons = lifecycle.is_left_by_persons(state.status) && !was_started_here;
        // What waits for a worktree gets one when it is its turn.
        let goes_on = is_new || state.has_open_run() || state.waits_for_worktree();
        if why.is_none() && !goes_on && (!is_worked_on || is_persons) {
            return Err("only a person can move it, and no person is told".into());
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

impl SimWatch {
    /// What a broken engine stores: as if nothing followed from where a task stands.
    pub(crate) fn forgets_attention(&self, append: &mut Append) -> Result<(), String> {
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
            if matches!(&read, TaskEvent::AttentionSet(raised) if !raised.why.is_mark()) {
                read = TaskEvent::AttentionCleared;
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
