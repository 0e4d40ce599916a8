//! A ledger: a stream of facts that no machine decides, with what stands in force now as one row per entry.
//!
//! What is neither a task nor a run but must not be lost is kept in one: who works for whom. Whoever writes into it has
//! decided before; a ledger takes every fact, in order, and never refuses one. What changes nothing is a
//! [`crate::record`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sluice_core::event_name::EventName;
use sluice_core::machine::{Moment, Refusal};
use sluice_store::{Card, Event, Header, RowKey, StoredStream};

use crate::actor::{Actor, ActorChange, ActorInput, misdirected};
use crate::codec::UnreadableData;

const VERSION: u16 = 1;

/// Something that happened, and the entries that it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub kind: String,
    pub actor: String,
    /// Its content: one JSON document.
    pub data: Vec<u8>,
    /// Entries to write, each one JSON document, or to remove.
    pub entries: Vec<(String, Option<Vec<u8>>)>,
}

#[derive(Serialize, Deserialize)]
struct KeyedFactRow {
    key: String,
    value: serde_json::Value,
}

pub struct KeyedFacts {
    name: String,
    created: i64,
    /// Where each entry stands, and what it says.
    entries: BTreeMap<String, (u32, Vec<u8>)>,
    /// Places that entries have left.
    free: Vec<u32>,
    /// Another one has taken its place, and what it holds is past.
    is_closed: bool,
}

impl KeyedFacts {
    pub const KIND: &str = "ledger";

    pub const CLOSED: &str = EventName::LedgerClosed.word();

    pub fn create(name: &str, fact: Fact, now: Moment) -> (Self, ActorChange) {
        let mut ledger = KeyedFacts {
            name: name.to_owned(),
            created: now.0,
            entries: BTreeMap::new(),
            free: Vec::new(),
            is_closed: false,
        };
        let change = ledger.write(fact, now);
        (ledger, change)
    }

    pub fn restore(stored: &StoredStream) -> Result<Self, UnreadableData> {
        let mut entries = BTreeMap::new();
        for (RowKey(place, _), bytes) in &stored.rows {
            let row: KeyedFactRow = serde_json::from_slice(bytes)?;
            entries.insert(row.key, (*place, serde_json::to_vec(&row.value)?));
        }
        let last = entries.values().map(|(place, _)| *place).max().unwrap_or(0);
        let taken: std::collections::BTreeSet<u32> = entries.values().map(|(place, _)| *place).collect();
        let free = (0..last).filter(|place| !taken.contains(place)).collect();
        let card = &stored.header.card;
        Ok(KeyedFacts { name: card.title.clone(), created: card.created, entries, free, is_closed: !card.open })
    }

    pub fn entries(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().map(|(key, (_, value))| (key.as_str(), value.as_slice()))
    }

    fn write(&mut self, fact: Fact, now: Moment) -> ActorChange {
        self.is_closed = self.is_closed || fact.kind == KeyedFacts::CLOSED;
        let Fact { kind, actor, data, entries } = fact;
        let rows = entries.into_iter().filter_map(|(key, value)| self.change(key, value)).collect();
        let event =
            Event { kind, version: VERSION, time: now.0, actor, correlation: self.name.clone(), caused_by: None, data };
        ActorChange { rows, ..ActorChange::new(vec![event], self.header(now)) }
    }

    /// Changes an entry, and gives what of it is to be stored.
    fn change(&mut self, key: String, value: Option<Vec<u8>>) -> Option<(RowKey, Option<Vec<u8>>)> {
        let Some(value) = value else {
            let (place, _) = self.entries.remove(&key)?;
            self.free.push(place);
            return Some((RowKey(place, 0), None));
        };
        let next = u32::try_from(self.entries.len() + self.free.len()).unwrap_or(u32::MAX);
        let place = match self.entries.get(&key) {
            Some((place, _)) => *place,
            None => self.free.pop().unwrap_or(next),
        };
        let row = KeyedFactRow { key: key.clone(), value: serde_json::from_slice(&value).unwrap_or_default() };
        self.entries.insert(key, (place, value));
        Some((RowKey(place, 0), Some(serde_json::to_vec(&row).unwrap_or_default())))
    }
}

impl Actor for KeyedFacts {
    fn take(&mut self, said: ActorInput, now: Moment) -> Result<Option<ActorChange>, Refusal> {
        match said {
            ActorInput::Fact(fact) => Ok(Some(self.write(fact, now))),
            ActorInput::Run(_) => Err(misdirected("ledger", "run")),
            ActorInput::Task(_) | ActorInput::Remark(_) => Err(misdirected("ledger", "task")),
            ActorInput::Outcome { .. } | ActorInput::Lost { .. } | ActorInput::Timer(_) => Ok(None),
        }
    }

    fn header(&self, now: Moment) -> Header {
        let card = Card {
            kind: Self::KIND.into(),
            status: if self.is_closed { "closed" } else { "open" }.into(),
            group: String::new(),
            title: self.name.clone(),
            open: !self.is_closed, // until then it is always wanted, and never forgotten
            created: self.created,
            updated: now.0,
        };
        Header { card, data: b"{}".to_vec() }
    }

    fn is_over(&self) -> bool {
        self.is_closed
    }

    fn is_open(&self, _: &str) -> bool {
        false
    }
}
