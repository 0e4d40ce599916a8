//! A task as an actor: decides, applies, and says what is to be stored.
//!
//! Its effects are performed in the order in which the machine asked for them, one after the other. That order stands
//! in the header, because after a restart the outbox no longer tells it.

use std::collections::BTreeSet;
use std::sync::Arc;

use sluice_core::lifecycle::Lifecycle;
use sluice_core::machine::{Decision, Moment, Refusal, RefusalCode};
use sluice_core::task::input::{TaskEffectOutcome, TaskEffectProduct};
use sluice_core::task::state::TaskPhase;
use sluice_core::task::{EffectKey, NewTask, TaskAsker, TaskEffect, TaskEvent, TaskInput, TaskState, create, decide};
use sluice_store::{Card, Effect, Event, Header, StoredStream};

use crate::actor::{Actor, ActorChange, ActorInput, EffectOutcome, Remark, misdirected};
use crate::codec::outbox::{self, OutboxNote};
use crate::codec::remark::{self, Remarks};
use crate::codec::task_state::TaskHeader;
use crate::codec::{UnreadableData, task_effect, task_event, task_state};
use crate::loader::pin;

pub struct TaskActor {
    lifecycle: Arc<Lifecycle>,
    kept: TaskHeader,
    created: i64,
}

impl TaskActor {
    pub const KIND: &str = "task";
    /// The status that its card shows when a person has removed it from every list.
    pub const DELETED: &str = "deleted";

    /// A task that begins now, by the lifecycle with this digest, and what is to be stored of it.
    pub fn create(
        lifecycle: Arc<Lifecycle>,
        definition: String,
        id: String,
        wanted: &NewTask,
        now: Moment,
    ) -> Result<(Self, ActorChange), Refusal> {
        let decision = create(&lifecycle, wanted, now)?;
        let state = TaskState::fold(&lifecycle, &decision.events).expect("a creation begins with the task");
        let kept = TaskHeader { id, definition, state, open: Vec::new(), remarks: Remarks::default() };
        let mut actor = TaskActor { lifecycle, kept, created: now.0 };
        let change = actor.change(decision, None, wanted.by, now);
        Ok((actor, change))
    }

    pub fn restore(lifecycle: Arc<Lifecycle>, stored: &StoredStream) -> Result<Self, UnreadableData> {
        let kept = task_state::read(&lifecycle, &stored.header.data)?;
        let known: BTreeSet<&str> = kept.open.iter().map(String::as_str).collect();
        let outbox: BTreeSet<&str> = stored.effects.iter().map(|open| open.effect.id.as_str()).collect();
        if known != outbox || known.len() != kept.open.len() {
            return Err(UnreadableData("the outbox of a task does not hold what its header says".into()));
        }
        Ok(TaskActor { lifecycle, kept, created: stored.header.card.created })
    }

    pub fn state(&self) -> &TaskState {
        &self.kept.state
    }

    pub fn lifecycle(&self) -> &Arc<Lifecycle> {
        &self.lifecycle
    }

    pub fn id(&self) -> &str {
        &self.kept.id
    }

    /// The ids of what was asked for and is not settled.
    pub fn open_effects(&self) -> &[String] {
        &self.kept.open
    }

    /// The bytes of its header, as they would be stored now: what a fold of its log must add up to.
    pub fn image(&self) -> Vec<u8> {
        task_state::write(&self.kept)
    }

    fn is_finished(&self) -> bool {
        match self.kept.state.phase(&self.lifecycle) {
            TaskPhase::Finished => true,
            TaskPhase::Waiting | TaskPhase::Standing | TaskPhase::Settling | TaskPhase::Closing => false,
        }
    }

    fn describe(&self, now: Moment) -> Header {
        let about = &self.kept.state.about;
        let card = Card {
            kind: Self::KIND.into(),
            status: match self.kept.remarks.deleted {
                true => Self::DELETED.into(),
                false => self.lifecycle.state_name(self.kept.state.status).into(),
            },
            group: shown(&about.project),
            title: shown(&about.summary),
            open: !self.is_finished(),
            created: self.created,
            updated: now.0,
        };
        Header { card, data: self.image() }
    }

    fn event(&self, kind: &str, version: u16, data: Vec<u8>, by: TaskAsker, now: Moment) -> Event {
        Event {
            kind: kind.into(),
            version,
            time: now.0,
            actor: match by {
                TaskAsker::Person => "person".into(),
                TaskAsker::Engine => "engine".into(),
                TaskAsker::Session(id) => format!("session {id}"),
                TaskAsker::Stranger => "stranger".into(),
            },
            correlation: self.kept.id.clone(),
            caused_by: None,
            data,
        }
    }

    fn change(
        &mut self,
        decision: Decision<TaskEvent, TaskEffect>,
        settled: Option<String>,
        by: TaskAsker,
        now: Moment,
    ) -> ActorChange {
        let store = |effect: &TaskEffect| Effect {
            id: effect.key.to_string(),
            kind: effect.instruction.kind().into(),
            data: task_effect::write(&effect.instruction),
        };
        let effects: Vec<Effect> = decision.effects.iter().map(store).collect();
        self.kept.open.retain(|id| Some(id) != settled.as_ref());
        self.kept.open.extend(effects.iter().map(|effect| effect.id.clone()));
        let stored =
            |event: &TaskEvent| self.event(event.type_name(), task_event::VERSION, task_event::write(event), by, now);
        let events = decision.events.iter().map(stored).collect();
        let settled = settled.into_iter().collect();
        ActorChange { effects, settled, ..ActorChange::new(events, self.describe(now)) }
    }

    /// Applies a decision. `None`: it changes nothing.
    fn record(
        &mut self,
        decision: Decision<TaskEvent, TaskEffect>,
        settled: Option<String>,
        by: TaskAsker,
        now: Moment,
    ) -> Option<ActorChange> {
        debug_assert!(!decision.events.is_empty() || decision.effects.is_empty(), "an effect for no reason");
        if decision.events.is_empty() {
            return None;
        }
        decision.events.iter().for_each(|event| self.kept.state.apply(&self.lifecycle, event));
        Some(self.change(decision, settled, by, now))
    }

    /// An effect has come to its end. One that the task waits for no more comes late, and changes nothing.
    fn ended(&mut self, effect: String, outcome: TaskEffectOutcome, now: Moment) -> Option<ActorChange> {
        let key = EffectKey::read(&effect).filter(|_| self.kept.open.contains(&effect))?;
        let error = match &outcome {
            TaskEffectOutcome::Ok(_) => None,
            TaskEffectOutcome::Failed(reason) | TaskEffectOutcome::Skipped(reason) => Some(reason.clone()),
        };
        let input = TaskInput::EffectDone { key, outcome };
        let decided = decide(&self.lifecycle, &self.kept.state, &input, now).unwrap_or_else(|_| Decision::nothing());
        match self.record(decided, Some(effect.clone()), TaskAsker::Engine, now) {
            Some(change) => Some(change),
            None => Some(self.settle(effect, error, now)),
        }
    }

    /// An effect is settled, and nothing else follows from it.
    fn settle(&mut self, effect: String, error: Option<String>, now: Moment) -> ActorChange {
        let note = OutboxNote::Settled { effect: effect.clone(), error };
        self.kept.open.retain(|id| *id != effect);
        let event = self.event(note.kind(), outbox::VERSION, outbox::write(&note), TaskAsker::Engine, now);
        ActorChange { settled: vec![effect], ..ActorChange::new(vec![event], self.describe(now)) }
    }

    /// Writes a remark down, unless it says what the last of its kind said.
    fn remark(&mut self, remark: &Remark, now: Moment) -> Result<Option<ActorChange>, Refusal> {
        let remarks = &mut self.kept.remarks;
        let mut digest = String::new();
        let is_new = match remark {
            Remark::Read { body } => {
                digest = pin(body).to_string();
                remarks.body.replace(digest.clone()).as_ref() != Some(&digest)
            }
            Remark::Forged { key, found, .. } => {
                let claim = format!("{key}: {found}");
                remarks.forged.replace(claim.clone()) != Some(claim)
            }
            Remark::Leak { .. } => true,
            Remark::Deleted if !self.is_finished() => {
                return Err(
                    Refusal::new(RefusalCode::StepOpen, "Not deleted: the task is still open").hint("cancel it first")
                );
            }
            Remark::Deleted => !std::mem::replace(&mut self.kept.remarks.deleted, true),
            Remark::Merged { .. } => return Err(misdirected("task", "run")),
        };
        if !is_new {
            return Ok(None);
        }
        let data = remark::write(remark, &digest);
        let by = match remark {
            Remark::Read { .. } | Remark::Forged { .. } | Remark::Leak { .. } => TaskAsker::Engine,
            Remark::Deleted | Remark::Merged { .. } => TaskAsker::Person,
        };
        let event = self.event(remark::kind(remark), remark::VERSION, data, by, now);
        Ok(Some(ActorChange::new(vec![event], self.describe(now))))
    }
}

/// A text for lists. No store keeps a NUL there, and a batch that holds one would be refused as a whole.
fn shown(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn heard(outcome: EffectOutcome) -> TaskEffectOutcome {
    match outcome {
        EffectOutcome::Task(outcome) => outcome,
        EffectOutcome::Done => TaskEffectOutcome::Ok(TaskEffectProduct::Nothing),
        EffectOutcome::Failed(reason) => TaskEffectOutcome::Failed(reason),
        EffectOutcome::Run(_) => TaskEffectOutcome::Failed("it was answered as if it were a step of a run".into()),
    }
}

impl Actor for TaskActor {
    fn take(&mut self, said: ActorInput, now: Moment) -> Result<Option<ActorChange>, Refusal> {
        match said {
            ActorInput::Task(TaskInput::EffectDone { key, outcome }) => Ok(self.ended(key.to_string(), outcome, now)),
            ActorInput::Task(input) => {
                let decision = decide(&self.lifecycle, &self.kept.state, &input, now)?;
                Ok(self.record(decision, None, input.asker(), now))
            }
            ActorInput::Outcome { effect, outcome } => Ok(self.ended(effect, heard(outcome), now)),
            ActorInput::Lost { effect } => {
                Ok(self.ended(effect, TaskEffectOutcome::Failed("its worker went away without a report".into()), now))
            }
            ActorInput::Timer(_) => Ok(None),
            ActorInput::Remark(remark) => self.remark(&remark, now),
            ActorInput::Run(_) => Err(misdirected("task", "run")),
            ActorInput::Fact(_) => Err(misdirected("task", "ledger")),
        }
    }

    fn header(&self, now: Moment) -> Header {
        self.describe(now)
    }

    fn is_open(&self, effect: &str) -> bool {
        self.kept.open.iter().any(|id| id == effect)
    }

    fn is_over(&self) -> bool {
        self.is_finished() && self.kept.open.is_empty()
    }

    fn in_order(&self) -> Option<&[String]> {
        Some(&self.kept.open)
    }
}
