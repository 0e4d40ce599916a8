//! The two sides of the port, and what every implementation promises.
//!
//! Five verbs write, ten read. Whoever needs more writes it above the port, so that there is one of it, not three.

use std::time::Duration;

use crate::{
    Append, Conflict, Cursor, Digest, Event, LoggedEvent, Ownership, Page, Query, StoreError, StoredStream, StreamId,
    StreamSummary,
};

/// A page of the log ends when it has so many bytes.
pub const LARGEST_PAGE: usize = 2 << 20;

/// The writing side. One writer owns the store at a time; the others are refused.
pub trait Writer: Send {
    /// Takes the store, or keeps it for another `ttl`.
    ///
    /// - This writer owns it: the epoch stays, and with it everything the owner knows about the store stays true.
    /// - This writer owned it, and another has taken it since: [`StoreError::LostOwnership`], also when that one is
    ///   gone. Only a writer that has given it up ([`Writer::release`]), or a new one, can own it again: under what an
    ///   earlier owner remembers nothing may be written.
    /// - Nobody does, the owner's time is up, or the owner has the same name (it was started again): a new epoch.
    /// - Otherwise [`StoreError::Owned`].
    ///
    /// The time says when another may take over; for what is written the epoch alone is the fence. An owner that slept
    /// through its time and was not replaced goes on. Refusing it was rejected: it would stop an engine whenever a laptop
    /// wakes up and make nothing safer, since whoever takes over changes the epoch. What an owner does outside of the
    /// store it may only do in its time.
    fn own(&mut self, owner: &str, ttl: Duration) -> Result<Ownership, StoreError>;

    /// Gives the store up, so that the next owner need not wait. Does nothing if it is not owned by this writer.
    fn release(&mut self) -> Result<(), StoreError>;

    /// Stores a batch in one commit, which is durable when this returns.
    ///
    /// The appends are looked at in order, so one may build on another of the same stream. Each is stored (the
    /// stream's new version) or conflicts, and a conflict spoils no other. Reading the log gives the stored ones in
    /// this order.
    ///
    /// With an error, no reader sees a part of the batch without the rest, and:
    /// - [`StoreError::Misuse`] and [`StoreError::LostOwnership`]: nothing is stored by this call.
    /// - [`StoreError::UnavailableReason`] and the others: it is not known whether the batch is stored (a connection may
    ///   break while a commit is on its way; a disk may fail after the write). Hand in the same appends again, in the
    ///   same order, alone or among others: the writer finds out first, answers those that were stored with their
    ///   version and stores the others now. A new process simply loads the streams.
    fn append(&mut self, batch: &[Append]) -> Result<Vec<Result<u64, Conflict>>, StoreError>;

    /// Writes down how far the log has been acted upon. It stands in the store, so that a copy of the store that is put
    /// back is in step with itself.
    fn follow(&mut self, upto: Cursor) -> Result<(), StoreError>;

    /// Removes streams with everything of theirs, and the blobs that no other stream brought. A stream that
    /// [`Reader::open_streams`] would name stays. Says how many are gone.
    fn forget(&mut self, streams: &[StreamId]) -> Result<usize, StoreError>;
}

/// The reading side. There may be many; none keeps the writer waiting. Each answer is of one moment: everything that
/// was durable when it was asked, and no half of a batch.
pub trait Reader: Send {
    /// A stream as it stands now.
    fn load(&mut self, stream: &StreamId) -> Result<Option<StoredStream>, StoreError>;

    /// What lists show of a stream, and whether it has changed, without reading where it stands.
    fn summary(&mut self, stream: &StreamId) -> Result<Option<StreamSummary>, StoreError>;

    /// The events of a stream with a number above `after`, in order, at most `limit`.
    fn history(&mut self, stream: &StreamId, after: u64, limit: usize) -> Result<Vec<(u64, Event)>, StoreError>;

    /// The events of all streams after a place in the log, in the order of their commits, at most `limit`, and fewer where
    /// they are large: once [`LARGEST_PAGE`] bytes are read the page ends, or a row later. It has none only at the end of
    /// the log. Whoever goes on from the last cursor misses none: no event ever appears before one that was already read.
    fn log(&mut self, after: Cursor, limit: usize) -> Result<Vec<LoggedEvent>, StoreError>;

    /// The place of the last event of the log: what happens from now on comes after it.
    fn end(&mut self) -> Result<Cursor, StoreError>;

    /// How far the log has been acted upon, if that was ever written down.
    fn followed(&mut self) -> Result<Option<Cursor>, StoreError>;

    /// The streams that are open or have effects or timers left, by name, after `after`, at most `limit`. What this
    /// costs does not depend on how many others there are.
    fn open_streams(&mut self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamId>, StoreError>;

    /// The streams whose names begin like this, by name, at most `limit`: how a shortened id is found.
    fn named(&mut self, begins: &str, limit: usize) -> Result<Vec<StreamId>, StoreError>;

    /// Cards, filtered and in pages.
    ///
    /// An index serves: no filter, `kind`, `kind` with `status`, `group`, and `open: Some(true)`. Further filters are
    /// applied while walking along it.
    fn list(&mut self, query: &Query) -> Result<Page, StoreError>;

    /// The blob with this digest.
    fn blob(&mut self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError>;
}
