//! Where Sluice keeps what happened: one small port, with memory, SQLite and PostgreSQL behind it.
//!
//! A *stream* is a log of events with a header (what the events add up to), rows (parts of that which change by
//! themselves), an outbox of effects, timers and blobs. One [`Append`] changes all of them at once, if the stream has
//! as many events as the asker believes. A [`Writer`] stores a whole batch of appends in one commit; a [`Reader`]
//! answers questions beside it.
//!
//! The port blocks: whoever drives it gives it a thread of its own. Nothing here knows what a task or a run is, reads
//! what the bytes mean, decides anything, or starts a thread.
//!
//! [`conformance`] is the one suite that all three pass (feature `testing`).

#![warn(missing_docs)]

mod admit;
mod answer;
mod codec;
#[cfg(feature = "testing")]
pub mod conformance;
mod error;
pub mod memory;
mod open;
mod ownership;
mod port;
pub mod postgres;
mod record;
pub mod sqlite;
#[cfg(feature = "testing")]
pub mod testing;

pub use admit::{MAX_APPEND_BYTES, MAX_BATCH_BYTES};
pub use answer::{Cursor, DAMAGED, Damage, LoggedEvent, Order, Ownership, Page, PageKey, Query, StreamSummary};
pub use error::{Meaning, StoreError};
pub use open::Store;
pub use port::{LARGEST_PAGE, Reader, Writer};
pub use postgres::Hazard;
pub use record::{
    Append, Card, Conflict, Digest, Effect, Event, Header, Lease, OpenEffect, RowKey, StoredStream, StreamId,
};
pub use sqlite::MissingLogPolicy;
