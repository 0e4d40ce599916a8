//! A fact that belongs to no task and no run, such as a request that was turned away: a stream of one event, which is
//! over as soon as it is stored. It goes through the same loop and the same commit as everything else, shows up in the
//! same log, and is forgotten like ended work. It decides nothing.

use sluice_core::machine::{Moment, Refusal};
use sluice_store::{Card, Event, Header};

use crate::actor::{Actor, ActorChange, ActorInput, misdirected};

/// A fact that stands alone.
pub struct RecordActor {
    header: Header,
}

impl RecordActor {
    /// A fact of this kind, and what is to be stored of it.
    pub fn create(kind: &str, event: Event) -> (Self, ActorChange) {
        RecordActor::holding(kind, event, Vec::new())
    }

    /// The same, with something beside the event that no log shows.
    pub fn holding(kind: &str, event: Event, data: Vec<u8>) -> (Self, ActorChange) {
        let card = Card {
            kind: kind.to_owned(),
            status: "recorded".into(),
            group: String::new(),
            title: event.kind.clone(),
            open: false,
            created: event.time,
            updated: event.time,
        };
        let header = Header { card, data };
        let change = ActorChange::new(vec![event], header.clone());
        (RecordActor { header }, change)
    }
}

impl Actor for RecordActor {
    fn take(&mut self, _: ActorInput, _: Moment) -> Result<Option<ActorChange>, Refusal> {
        Err(misdirected("record", "task or run"))
    }

    fn header(&self, _: Moment) -> Header {
        self.header.clone()
    }

    fn is_over(&self) -> bool {
        true
    }

    fn is_open(&self, _: &str) -> bool {
        false
    }
}
