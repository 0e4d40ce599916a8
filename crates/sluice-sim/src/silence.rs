//! A run that settles a performance without a word about how it ended, for an engine that is broken in that way.

use sluice_core::machine::{Moment, Refusal};
use sluice_engine::actor::{Actor, ActorChange, ActorInput, EffectOutcome, WorkerRequirement};
use sluice_engine::codec::outbox::{self, OutboxNote};
use sluice_engine::run_actor::{RunActor, performed};
use sluice_store::{Effect, Event, Header};

/// A run whose step waits for ever when its performance could not be made.
pub(crate) struct SilentRun {
    pub(crate) actor: RunActor,
}

impl Actor for SilentRun {
    fn take(&mut self, said: ActorInput, now: Moment) -> Result<Option<ActorChange>, Refusal> {
        let effect = match &said {
            ActorInput::Outcome { effect, outcome: EffectOutcome::Failed(_) } if performed(effect).is_some() => {
                effect.clone()
            }
            _ => return self.actor.take(said, now),
        };
        let note = OutboxNote::Settled { effect: effect.clone(), error: None };
        let (kind, version, data) = (note.kind().into(), outbox::VERSION, outbox::write(&note));
        let event = Event { kind, version, time: now.0, actor: "engine".into(), data, ..Event::default() };
        self.actor.noted(1);
        Ok(Some(ActorChange { settled: vec![effect], ..ActorChange::new(vec![event], self.actor.header(now)) }))
    }

    fn header(&self, now: Moment) -> Header {
        self.actor.header(now)
    }

    fn noted(&mut self, events: u64) {
        self.actor.noted(events);
    }

    fn is_over(&self) -> bool {
        self.actor.is_over()
    }

    fn is_open(&self, effect: &str) -> bool {
        self.actor.is_open(effect)
    }

    fn wants(&self, effect: &Effect) -> Option<WorkerRequirement> {
        self.actor.wants(effect)
    }
}
