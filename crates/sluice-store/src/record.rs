//! What is stored: events, headers, rows, effects, timers, and the append that changes them together.
//!
//! Plain values. Nothing here checks, encodes or stores itself.

use std::fmt;

/// The name of a stream: `run-01j…`, `task-42`. Streams are ordered by the bytes of their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub String);

impl StreamId {
    /// The stream of this name.
    pub fn new(name: impl Into<String>) -> StreamId {
        StreamId(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that comes after every name which begins like this, and before all later ones, byte by byte.
pub(crate) fn beyond(begins: &str) -> String {
    format!("{begins}{}", char::MAX)
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One change of one stream: everything in it is stored, or nothing is.
///
/// Within an append, `settled` is done before `effects`, and `effects` before `leases`. Settling, freeing or clearing
/// what is not there does nothing; an effect whose id is still open is replaced and its lease freed. So the version is
/// the only thing an append can fail on, and it is looked at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The stream to append to, or to create.
    pub stream: StreamId,
    /// How many events the stream has now; 0: it must not exist yet.
    pub expected: u64,
    /// At least one; they get the numbers from `expected + 1`.
    pub events: Vec<Event>,
    /// Replaces the stored header.
    pub header: Header,
    /// Rows to write or, with `None`, to remove.
    pub rows: Vec<(RowKey, Option<Vec<u8>>)>,
    /// New entries of the outbox.
    pub effects: Vec<Effect>,
    /// Ids of effects that leave the outbox.
    pub settled: Vec<String>,
    /// Leases to set on effects, by their ids, or with `None` to free.
    pub leases: Vec<(String, Option<Lease>)>,
    /// Timers to set, in milliseconds since 1970, or to clear.
    pub timers: Vec<(String, Option<i64>)>,
    /// Bodies that the stream needs, by their digest. A body that is there already is kept; it goes when the last
    /// stream that brought it is forgotten.
    pub blobs: Vec<(Digest, Vec<u8>)>,
}

impl Append {
    /// An append of events and a header, and nothing else yet.
    pub fn new(stream: StreamId, expected: u64, events: Vec<Event>, header: Header) -> Append {
        Append {
            stream,
            expected,
            events,
            header,
            rows: Vec::new(),
            effects: Vec::new(),
            settled: Vec::new(),
            leases: Vec::new(),
            timers: Vec::new(),
            blobs: Vec::new(),
        }
    }

    /// How many events the stream has afterwards.
    pub(crate) fn version(&self) -> u64 {
        self.expected + self.events.len() as u64
    }
}

/// Something that happened. Only `data` means anything to the machines; the rest is for people and audits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// What kind of event.
    pub kind: String,
    /// Which version of that kind, so that old ones can still be read.
    pub version: u16,
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// Who caused the event: `person`, `engine`, `session s2`.
    pub actor: String,
    /// What it belongs to, across streams.
    pub correlation: String,
    /// The event or command that led to it.
    pub caused_by: Option<String>,
    /// The content of the event, encoded by the stream's codec.
    pub data: Vec<u8>,
}

/// What a stream's events add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// What lists show and filter.
    pub card: Card,
    /// The state, less what stands in rows.
    pub data: Vec<u8>,
}

/// What lists are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// The kind of stream.
    pub kind: String,
    /// Its status, in its own words.
    pub status: String,
    /// What it belongs to: a project, a parent.
    pub group: String,
    /// A line for people.
    pub title: String,
    /// Whether it is still going on.
    pub open: bool,
    /// When it began, in milliseconds since 1970. Lists are ordered by it.
    pub created: i64,
    /// When it last changed.
    pub updated: i64,
}

/// Where a row stands in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey(pub u32, pub u32);

/// Something that is to be done in the world, in the outbox until it is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Unique in its stream.
    pub id: String,
    /// What is to be done.
    pub kind: String,
    /// What the performer needs, encoded by the stream's codec.
    pub data: Vec<u8>,
}

/// Who performs an effect, and until when that is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The performer of the effect, in the engine's notation; opaque to the store.
    pub holder: String,
    /// When the lease expires, in milliseconds since 1970.
    pub until: i64,
}

/// The digest under which a blob is found: SHA-256 by convention; the store does not compute it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The stream does not have as many events as the append expected. Nothing of that append is stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stream {stream} has {found} events, not {expected}")]
pub struct Conflict {
    /// The stream that the append was for.
    pub stream: StreamId,
    /// How many events the append expected the stream to have.
    pub expected: u64,
    /// How many it has.
    pub found: u64,
}

/// A stream as it stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredStream {
    /// How many events it has.
    pub version: u64,
    /// What they add up to.
    pub header: Header,
    /// The rows of the stream, ordered by key.
    pub rows: Vec<(RowKey, Vec<u8>)>,
    /// The outbox, by id.
    pub effects: Vec<OpenEffect>,
    /// When each timer is due, by key.
    pub timers: Vec<(String, i64)>,
}

/// An effect that is not settled yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEffect {
    /// What is to be done.
    pub effect: Effect,
    /// Who is doing it.
    pub lease: Option<Lease>,
}
