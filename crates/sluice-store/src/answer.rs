//! What a store is asked for beyond single streams, and what it answers: ownership, places in the log, lists.
//!
//! Plain values, like those of `record`; nothing here asks or answers by itself.

use std::time::Duration;

use crate::{Card, Event, StreamId};

/// What a writer gets when it owns the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// A number that grows with every change of owner.
    pub epoch: u64,
    /// For how long no other writer can take the store over, counted from the call.
    pub ttl: Duration,
    /// The owner before this call, which may be the same writer; `None` if the store never had one.
    pub before: Option<String>,
}

/// A place in the log of all streams. Only good for going on from; 0 is before the first event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor(pub u64);

/// An event in the log of all streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Where it stands in the log.
    pub cursor: Cursor,
    /// The stream that the event belongs to.
    pub stream: StreamId,
    /// Its number in that stream, from 1.
    pub number: u64,
    /// The event as it was appended.
    pub event: Event,
}

/// Which cards to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only with this status.
    pub status: Option<String>,
    /// Only of this group.
    pub group: Option<String>,
    /// Only open ones, or only ended ones.
    pub open: Option<bool>,
    /// The order of the list, by creation time and name.
    pub order: Order,
    /// Where the page before ended.
    pub after: Option<PageKey>,
    /// At most so many.
    pub limit: usize,
}

impl Default for Query {
    fn default() -> Query {
        Query { kind: None, status: None, group: None, open: None, order: Order::Newest, after: None, limit: 100 }
    }
}

/// In which order to list; by when a stream was created, then by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The stream that was created last comes first.
    Newest,
    /// The stream that was created first comes first.
    Oldest,
}

/// Where a page ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageKey {
    /// When the last stream of the page was created.
    pub created: i64,
    /// The name of that stream, for streams created at the same time.
    pub stream: StreamId,
}

/// The kind of the event that stands in the log where a row of it cannot be read as it was written.
pub const DAMAGED: &str = "store.damaged";

impl LoggedEvent {
    /// What the log says in place of a row that is damaged: whose it was, as far as that is known, and what was found.
    pub(crate) fn damaged(cursor: Cursor, stream: Option<StreamId>, number: u64, why: &str) -> LoggedEvent {
        let stream = stream.unwrap_or_else(|| StreamId::new("unknown"));
        let correlation = stream.as_str().rsplit('/').next().unwrap_or_default().to_owned();
        let plain: String =
            why.chars().map(|it| if it == '"' || it == '\\' || it.is_control() { ' ' } else { it }).collect();
        let event = Event {
            kind: DAMAGED.to_owned(),
            version: 1,
            time: 0,
            actor: "store".to_owned(),
            correlation,
            caused_by: None,
            data: format!("{{\"error\": \"{plain}\"}}").into_bytes(),
        };
        LoggedEvent { cursor, stream, number, event }
    }
}

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The damaged stream; `None`: the store itself, or the stream is not known.
    pub stream: Option<StreamId>,
    /// What is wrong, as the backend or the codec describes it.
    pub why: String,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The streams that match the query, in its order.
    pub items: Vec<StreamSummary>,
    /// What stands there as well and cannot be read.
    pub damaged: Vec<Damage>,
    /// Where the next page goes on, if there may be one.
    pub next: Option<PageKey>,
}

impl Page {
    /// A page of what was found when `limit` were asked for: a full page may have another behind it.
    pub(crate) fn of(items: Vec<StreamSummary>, limit: usize) -> Page {
        let last = items.last().filter(|_| items.len() == limit);
        let next = last.map(|it| PageKey { created: it.card.created, stream: it.stream.clone() });
        Page { items, damaged: Vec::new(), next }
    }
}

/// A stream in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSummary {
    /// The name of the listed stream.
    pub stream: StreamId,
    /// How many events it has.
    pub version: u64,
    /// The card of the stream, as its last append left it.
    pub card: Card,
}
