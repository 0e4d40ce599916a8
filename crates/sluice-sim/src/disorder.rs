//! A task whose order of effects is forgotten over a restart, for an engine that is broken in that way.

use sluice_core::machine::{Moment, Refusal};
use sluice_engine::actor::{Actor, Change, Said, Wanted};
use sluice_engine::task_actor::TaskActor;
use sluice_store::{Effect, Header, Stored};

/// A task that takes the order of the outbox for the order asked for.
pub(crate) struct Disordered {
    actor: TaskActor,
    order: Vec<String>,
}

impl Disordered {
    pub(crate) fn new(actor: TaskActor, stored: &Stored) -> Disordered {
        Disordered { actor, order: stored.effects.iter().map(|open| open.effect.id.clone()).collect() }
    }
}

impl Actor for Disordered {
    fn take(&mut self, said: Said, now: Moment) -> Result<Option<Change>, Refusal> {
        self.actor.take(said, now)
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

    fn wants(&self, effect: &Effect) -> Option<Wanted> {
        self.actor.wants(effect)
    }

    fn in_order(&self) -> Option<&[String]> {
        Some(&self.order)
    }
}
