//! A store in memory: the model that the others are compared with, and the disk of the simulation.
//!
//! [`Memory::new`] keeps everything until it is dropped. [`Memory::unsynced`] is a disk with a cache: what was appended
//! is lost by [`Memory::crash`] unless [`Memory::sync`] came in between. Nothing here is random, waits, or reads a clock
//! other than the one it was given.

mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::{
    Append, Conflict, Cursor, Digest, Event, LoggedEvent, Ownership, Page, Query, Reader, StoreError, StoredStream,
    StreamId, StreamSummary, Writer, admit,
};
use state::MemoryState;

/// Says the time in milliseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The time of this machine.
pub(crate) fn system_time() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A store in memory. Clones are the same store.
#[derive(Clone)]
pub struct Memory {
    disk: Arc<Mutex<MemoryDisk>>,
    clock: Clock,
}

struct MemoryDisk {
    /// The state that readers see, with changes that are not durable yet.
    now: MemoryState,
    /// What a crash leaves, and what has been done since; `None` if nothing is ever lost.
    cache: Option<MemoryCache>,
}

struct MemoryCache {
    durable: MemoryState,
    unsynced: Vec<MemoryChange>,
}

/// Changes are kept and done again at a sync. Copying the state instead was rejected: a simulation syncs at every step.
enum MemoryChange {
    Append(Vec<Append>),
    Forget(Vec<StreamId>),
}

impl MemoryDisk {
    fn keep(&mut self, change: impl FnOnce() -> MemoryChange) {
        if let Some(cache) = &mut self.cache {
            cache.unsynced.push(change());
        }
    }

    fn sync(&mut self) {
        let Some(cache) = &mut self.cache else { return };
        for change in cache.unsynced.drain(..) {
            match change {
                MemoryChange::Append(batch) => drop(cache.durable.append(batch)),
                MemoryChange::Forget(streams) => drop(cache.durable.forget(&streams)),
            }
        }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Memory {
    /// An empty store in which every write is durable at once.
    pub fn new() -> Memory {
        Memory::with(Arc::new(system_time), None)
    }

    /// The same, which lives by the given clock.
    pub fn timed(clock: Clock) -> Memory {
        Memory::with(clock, None)
    }

    /// An empty store that lives by the given clock and in which a write is durable only after [`Memory::sync`].
    /// Taking the store over syncs too: no epoch is ever given twice.
    pub fn unsynced(clock: Clock) -> Memory {
        Memory::with(clock, Some(MemoryCache { durable: MemoryState::default(), unsynced: Vec::new() }))
    }

    fn with(clock: Clock, cache: Option<MemoryCache>) -> Memory {
        Memory { disk: Arc::new(Mutex::new(MemoryDisk { now: MemoryState::default(), cache })), clock }
    }

    /// Makes everything written so far durable.
    pub fn sync(&self) {
        self.lock().sync();
    }

    /// Loses everything that is not durable. Writers and readers stay usable, as programs that were not told.
    pub fn crash(&self) {
        let disk = &mut *self.lock();
        if let Some(cache) = &mut disk.cache {
            cache.unsynced.clear();
            disk.now = cache.durable.clone();
        }
    }

    /// A writer, which owns nothing yet.
    pub fn writer(&self) -> MemoryWriter {
        MemoryWriter { memory: self.clone(), epoch: None }
    }

    /// A reader of the state that was written last.
    pub fn reader(&self) -> MemoryReader {
        MemoryReader { memory: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, MemoryDisk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writing side of a [`Memory`].
pub struct MemoryWriter {
    memory: Memory,
    epoch: Option<u64>,
}

impl MemoryWriter {
    fn owned(&self) -> Result<MutexGuard<'_, MemoryDisk>, StoreError> {
        let disk = self.memory.lock();
        if self.epoch == Some(disk.now.epoch()) { Ok(disk) } else { Err(StoreError::LostOwnership) }
    }
}

impl Writer for MemoryWriter {
    fn own(&mut self, owner: &str, ttl: Duration) -> Result<Ownership, StoreError> {
        let now = (self.memory.clock)();
        let disk = &mut *self.memory.lock();
        disk.sync();
        let ownership = disk.now.own(self.epoch, owner, now, ttl)?;
        if let Some(cache) = &mut disk.cache {
            cache.durable.own(self.epoch, owner, now, ttl)?;
        }
        self.epoch = Some(ownership.epoch);
        Ok(ownership)
    }

    fn release(&mut self) -> Result<(), StoreError> {
        let Some(epoch) = self.epoch.take() else { return Ok(()) };
        let disk = &mut *self.memory.lock();
        disk.sync();
        disk.now.release(epoch);
        if let Some(cache) = &mut disk.cache {
            cache.durable.release(epoch);
        }
        Ok(())
    }

    fn append(&mut self, batch: Vec<Append>) -> Result<Vec<Result<u64, Conflict>>, StoreError> {
        admit::admit(&batch)?;
        let mut disk = self.owned()?;
        disk.keep(|| MemoryChange::Append(batch.clone()));
        Ok(disk.now.append(batch))
    }

    /// Durable at once: what is forgotten of it in a crash is only read again.
    fn follow(&mut self, upto: Cursor) -> Result<(), StoreError> {
        self.owned()?.now.followed = Some(upto);
        Ok(())
    }

    fn forget(&mut self, streams: &[StreamId]) -> Result<usize, StoreError> {
        let mut disk = self.owned()?;
        disk.keep(|| MemoryChange::Forget(streams.to_vec()));
        Ok(disk.now.forget(streams))
    }
}

/// The reading side of a [`Memory`].
pub struct MemoryReader {
    memory: Memory,
}

impl Reader for MemoryReader {
    fn load(&mut self, stream: &StreamId) -> Result<Option<StoredStream>, StoreError> {
        Ok(self.memory.lock().now.load(stream))
    }

    fn history(&mut self, stream: &StreamId, after: u64, limit: usize) -> Result<Vec<(u64, Event)>, StoreError> {
        Ok(self.memory.lock().now.history(stream, after, limit))
    }

    fn log(&mut self, after: Cursor, limit: usize) -> Result<Vec<LoggedEvent>, StoreError> {
        Ok(self.memory.lock().now.log(after, limit))
    }

    fn summary(&mut self, stream: &StreamId) -> Result<Option<StreamSummary>, StoreError> {
        Ok(self.memory.lock().now.summary(stream))
    }

    fn end(&mut self) -> Result<Cursor, StoreError> {
        Ok(self.memory.lock().now.end())
    }

    fn followed(&mut self) -> Result<Option<Cursor>, StoreError> {
        Ok(self.memory.lock().now.followed)
    }

    fn open_streams(&mut self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamId>, StoreError> {
        Ok(self.memory.lock().now.open_streams(after, limit))
    }

    fn named(&mut self, begins: &str, limit: usize) -> Result<Vec<StreamId>, StoreError> {
        Ok(self.memory.lock().now.named(begins, limit))
    }

    fn list(&mut self, query: &Query) -> Result<Page, StoreError> {
        Ok(self.memory.lock().now.list(query))
    }

    fn blob(&mut self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.memory.lock().now.blob(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Card, Header};

    fn append(stream: &str, expected: u64) -> Append {
        let event = Event {
            kind: "e".to_owned(),
            version: 1,
            time: 0,
            actor: String::new(),
            correlation: String::new(),
            caused_by: None,
            data: Vec::new(),
        };
        let card = Card {
            kind: String::new(),
            status: String::new(),
            group: String::new(),
            title: String::new(),
            open: true,
            created: 0,
            updated: 0,
        };
        Append::new(StreamId::new(stream), expected, vec![event], Header { card, data: Vec::new() })
    }

    #[test]
    fn a_crash_loses_what_was_not_synced_and_nothing_else() {
        let memory = Memory::unsynced(Arc::new(|| 0));
        let mut writer = memory.writer();
        let first = writer.own("a", Duration::from_secs(1)).unwrap();
        assert_eq!(writer.append(vec![append("s", 0)]).unwrap(), [Ok(1)]);
        memory.sync();
        assert_eq!(writer.append(vec![append("s", 1), append("t", 0)]).unwrap(), [Ok(2), Ok(1)]);
        memory.crash();
        let mut reader = memory.reader();
        assert_eq!(reader.load(&StreamId::new("s")).unwrap().unwrap().version, 1);
        assert_eq!(reader.load(&StreamId::new("t")).unwrap(), None);
        assert_eq!(reader.log(Cursor(0), 10).unwrap().len(), 1);
        let mut next = memory.writer();
        assert!(next.own("a", Duration::from_secs(1)).unwrap().epoch > first.epoch);
        assert!(matches!(writer.append(vec![append("s", 1)]), Err(StoreError::LostOwnership)));
    }

    #[test]
    fn the_given_clock_says_when_the_owners_time_is_up() {
        let time = Arc::new(Mutex::new(0_i64));
        let clock = Arc::clone(&time);
        let memory = Memory::unsynced(Arc::new(move || *clock.lock().unwrap()));
        let (mut first, mut second) = (memory.writer(), memory.writer());
        first.own("a", Duration::from_secs(1)).unwrap();
        assert!(matches!(second.own("b", Duration::from_secs(1)), Err(StoreError::Owned { .. })));
        *time.lock().unwrap() = 1000;
        assert_eq!(second.own("b", Duration::from_secs(1)).unwrap().epoch, 2);
    }
}
