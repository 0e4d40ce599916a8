//! What a store holds, as maps, and what each verb of the port does to it.
//!
//! This is the model: written to be read, not to be fast. It never fails for a reason of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::ownership::StoreOwner;
use crate::{
    Append, Conflict, Cursor, Digest, Effect, Event, Header, LARGEST_PAGE, Lease, LoggedEvent, OpenEffect, Order, Page,
    PageKey, Query, RowKey, StoredStream, StreamId, StreamSummary,
};

#[derive(Default)]
pub(super) struct MemoryState {
    streams: BTreeMap<StreamId, MemoryStream>,
    /// Where in its stream each event of the log stands.
    log: BTreeMap<u64, (StreamId, u64)>,
    /// The last place in the log that was given away; it outlives what is forgotten.
    last: u64,
    /// Each body, and the streams that brought it.
    blobs: BTreeMap<Digest, (Vec<u8>, BTreeSet<StreamId>)>,
    pub(super) owner: StoreOwner,
    /// How far the log has been acted upon.
    pub(super) followed: Option<Cursor>,
}

struct MemoryStream {
    events: Vec<Event>,
    header: Header,
    rows: BTreeMap<RowKey, Vec<u8>>,
    effects: BTreeMap<String, (Effect, Option<Lease>)>,
    timers: BTreeMap<String, i64>,
}

impl MemoryStream {
    fn is_live(&self) -> bool {
        self.header.card.open || !self.effects.is_empty() || !self.timers.is_empty()
    }

    fn change(&mut self, append: Append) {
        self.events.extend(append.events);
        self.header = append.header;
        for (key, row) in append.rows {
            match row {
                Some(row) => drop(self.rows.insert(key, row)),
                None => drop(self.rows.remove(&key)),
            }
        }
        for id in append.settled {
            self.effects.remove(&id);
        }
        for effect in append.effects {
            self.effects.insert(effect.id.clone(), (effect, None));
        }
        for (id, lease) in append.leases {
            if let Some((_, held)) = self.effects.get_mut(&id) {
                *held = lease;
            }
        }
        for (key, due) in append.timers {
            match due {
                Some(due) => drop(self.timers.insert(key, due)),
                None => drop(self.timers.remove(&key)),
            }
        }
    }
}

impl MemoryState {
    pub(super) fn append(&mut self, batch: &[Append]) -> Vec<Result<u64, Conflict>> {
        batch.iter().map(|append| self.append_one(append.clone())).collect()
    }

    fn append_one(&mut self, append: Append) -> Result<u64, Conflict> {
        let found = self.streams.get(&append.stream).map_or(0, |it| it.events.len() as u64);
        if found != append.expected {
            return Err(Conflict { stream: append.stream, expected: append.expected, found });
        }
        let version = append.version();
        for number in found + 1..=version {
            self.last += 1;
            self.log.insert(self.last, (append.stream.clone(), number));
        }
        for (digest, body) in &append.blobs {
            let (_, users) = self.blobs.entry(*digest).or_insert_with(|| (body.clone(), BTreeSet::new()));
            users.insert(append.stream.clone());
        }
        let empty = || MemoryStream {
            events: Vec::new(),
            header: append.header.clone(),
            rows: BTreeMap::new(),
            effects: BTreeMap::new(),
            timers: BTreeMap::new(),
        };
        self.streams.entry(append.stream.clone()).or_insert_with(empty).change(append);
        Ok(version)
    }

    pub(super) fn forget(&mut self, streams: &[StreamId]) -> usize {
        let mut gone = BTreeSet::new();
        for id in streams {
            if self.streams.get(id).is_some_and(|it| !it.is_live()) {
                self.streams.remove(id);
                gone.insert(id);
            }
        }
        self.log.retain(|_, (stream, _)| !gone.contains(stream));
        for (_, users) in self.blobs.values_mut() {
            users.retain(|stream| !gone.contains(stream));
        }
        self.blobs.retain(|_, (_, users)| !users.is_empty());
        gone.len()
    }

    pub(super) fn load(&self, stream: &StreamId) -> Option<StoredStream> {
        let it = self.streams.get(stream)?;
        let effects = it.effects.values();
        Some(StoredStream {
            version: it.events.len() as u64,
            header: it.header.clone(),
            rows: it.rows.iter().map(|(key, row)| (*key, row.clone())).collect(),
            effects: effects.map(|(it, lease)| OpenEffect { effect: it.clone(), lease: lease.clone() }).collect(),
            timers: it.timers.iter().map(|(key, due)| (key.clone(), *due)).collect(),
        })
    }

    pub(super) fn summary(&self, stream: &StreamId) -> Option<StreamSummary> {
        let it = self.streams.get(stream)?;
        Some(StreamSummary { stream: stream.clone(), version: it.events.len() as u64, card: it.header.card.clone() })
    }

    pub(super) fn history(&self, stream: &StreamId, after: u64, limit: usize) -> Vec<(u64, Event)> {
        let events = self.streams.get(stream).map_or(&[][..], |it| &it.events);
        let numbered = (1..).zip(events).filter(|(number, _)| *number > after);
        numbered.take(limit).map(|(number, event)| (number, event.clone())).collect()
    }

    pub(super) fn log(&self, after: Cursor, limit: usize) -> Vec<LoggedEvent> {
        let places = self.log.range((Bound::Excluded(after.0), Bound::Unbounded));
        let found = places.filter_map(|(place, (stream, number))| {
            let event = self.streams.get(stream)?.events.get(usize::try_from(*number - 1).ok()?)?.clone();
            Some(LoggedEvent { cursor: Cursor(*place), stream: stream.clone(), number: *number, event })
        });
        let mut bytes = 0;
        let fits = found.take_while(|logged| {
            let before = bytes;
            bytes += logged.event.data.len();
            before < LARGEST_PAGE
        });
        fits.take(limit).collect()
    }

    pub(super) fn end(&self) -> Cursor {
        self.log.last_key_value().map_or(Cursor::default(), |(place, _)| Cursor(*place))
    }

    pub(super) fn open_streams(&self, after: Option<&StreamId>, limit: usize) -> Vec<StreamId> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let live = self.streams.range((start, Bound::Unbounded)).filter(|(_, it)| it.is_live());
        live.map(|(id, _)| id.clone()).take(limit).collect()
    }

    pub(super) fn named(&self, begins: &str, limit: usize) -> Vec<StreamId> {
        let from = self.streams.range(StreamId::new(begins)..).map(|(id, _)| id);
        from.take_while(|id| id.as_str().starts_with(begins)).take(limit).cloned().collect()
    }

    pub(super) fn list(&self, query: &Query) -> Page {
        let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        let mut found: BTreeMap<PageKey, StreamSummary> = BTreeMap::new();
        for (stream, it) in &self.streams {
            let card = &it.header.card;
            let matches = is(&query.kind, &card.kind)
                && is(&query.status, &card.status)
                && is(&query.group, &card.group)
                && query.open.is_none_or(|open| open == card.open);
            if matches {
                let key = PageKey { created: card.created, stream: stream.clone() };
                found.extend(self.summary(stream).map(|summary| (key, summary)));
            }
        }
        let beyond = query.after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let items: Vec<StreamSummary> = match query.order {
            Order::Oldest => {
                found.range((beyond, Bound::Unbounded)).map(|(_, it)| it.clone()).take(query.limit).collect()
            }
            Order::Newest => {
                found.range((Bound::Unbounded, beyond)).rev().map(|(_, it)| it.clone()).take(query.limit).collect()
            }
        };
        Page::of(items, query.limit)
    }

    pub(super) fn blob(&self, digest: &Digest) -> Option<Vec<u8>> {
        self.blobs.get(digest).map(|(body, _)| body.clone())
    }
}
