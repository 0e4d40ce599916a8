//! A task whose order of effects is forgotten over a restart, for an engine that is broken in that way.

use sluice_core::machine::{Moment, Refusal};
use sluice_engine::actor::{Actor, ActorChange, ActorInput};
use sluice_engine::task_actor::TaskActor;
use sluice_store::{Header, StoredStream};

/// A task that takes the order of the outbox for the order asked for; in all else it is one.
pub(crate) struct DisorderedTask {
    actor: TaskActor,
    order: Vec<String>,
}

impl DisorderedTask {
    pub(crate) fn new(actor: TaskActor, stored: &StoredStream) -> DisorderedTask {
        DisorderedTask { actor, order: stored.effects.iter().map(|open| open.effect.id.clone()).collect() }
    }
}

impl Actor for DisorderedTask {
    fn take(&mut self, said: ActorInput, now: Moment) -> Result<Option<ActorChange>, Refusal> {
        self.actor.take(said, now)
    }

    fn header(&self, now: Moment) -> Header {
        self.actor.header(now)
    }

    fn is_over(&self) -> bool {
        self.actor.is_over()
    }

    fn is_open(&self, effect: &str) -> bool {
        self.actor.is_open(effect)
    }

    fn in_order(&self) -> Option<&[String]> {
        Some(&self.order)
    }
}
