//! A store in memory: the model that the others are compared with, and the disk of the simulation.
//!
//! It keeps everything until it is dropped. Nothing here is random, waits, or reads a clock other than the one it was given.

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

pub(crate) fn system_time() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A store in memory. Clones are the same store.
#[derive(Clone)]
pub struct Memory {
    state: Arc<Mutex<MemoryState>>,
    clock: Clock,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Memory {
    /// An empty store in which every write is durable at once.
    pub fn new() -> Memory {
        Memory::timed(Arc::new(system_time))
    }

    /// The same, which lives by the given clock.
    pub fn timed(clock: Clock) -> Memory {
        Memory { state: Arc::default(), clock }
    }

    /// A writer, which owns nothing yet.
    pub fn writer(&self) -> MemoryWriter {
        MemoryWriter { memory: self.clone(), epoch: None }
    }

    /// A reader of the state that was written last.
    pub fn reader(&self) -> MemoryReader {
        MemoryReader { memory: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writing side of a [`Memory`].
pub struct MemoryWriter {
    memory: Memory,
    epoch: Option<u64>,
}

impl MemoryWriter {
    fn owned(&self) -> Result<MutexGuard<'_, MemoryState>, StoreError> {
        let state = self.memory.lock();
        if self.epoch == Some(state.owner.epoch) { Ok(state) } else { Err(StoreError::LostOwnership) }
    }
}

impl Writer for MemoryWriter {
    fn own(&mut self, owner: &str, ttl: Duration) -> Result<Ownership, StoreError> {
        let now = (self.memory.clock)();
        let ownership = self.memory.lock().owner.take(self.epoch, owner, now, ttl)?;
        self.epoch = Some(ownership.epoch);
        Ok(ownership)
    }

    fn release(&mut self) -> Result<(), StoreError> {
        if let Some(epoch) = self.epoch.take() {
            self.memory.lock().owner.release(epoch);
        }
        Ok(())
    }

    fn append(&mut self, batch: &[Append]) -> Result<Vec<Result<u64, Conflict>>, StoreError> {
        admit::admit(batch)?;
        Ok(self.owned()?.append(batch))
    }

    fn follow(&mut self, upto: Cursor) -> Result<(), StoreError> {
        self.owned()?.followed = Some(upto);
        Ok(())
    }

    fn forget(&mut self, streams: &[StreamId]) -> Result<usize, StoreError> {
        Ok(self.owned()?.forget(streams))
    }
}

/// The reading side of a [`Memory`].
pub struct MemoryReader {
    memory: Memory,
}

impl Reader for MemoryReader {
    fn load(&mut self, stream: &StreamId) -> Result<Option<StoredStream>, StoreError> {
        Ok(self.memory.lock().load(stream))
    }

    fn history(&mut self, stream: &StreamId, after: u64, limit: usize) -> Result<Vec<(u64, Event)>, StoreError> {
        Ok(self.memory.lock().history(stream, after, limit))
    }

    fn log(&mut self, after: Cursor, limit: usize) -> Result<Vec<LoggedEvent>, StoreError> {
        Ok(self.memory.lock().log(after, limit))
    }

    fn summary(&mut self, stream: &StreamId) -> Result<Option<StreamSummary>, StoreError> {
        Ok(self.memory.lock().summary(stream))
    }

    fn end(&mut self) -> Result<Cursor, StoreError> {
        Ok(self.memory.lock().end())
    }

    fn followed(&mut self) -> Result<Option<Cursor>, StoreError> {
        Ok(self.memory.lock().followed)
    }

    fn open_streams(&mut self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamId>, StoreError> {
        Ok(self.memory.lock().open_streams(after, limit))
    }

    fn named(&mut self, begins: &str, limit: usize) -> Result<Vec<StreamId>, StoreError> {
        Ok(self.memory.lock().named(begins, limit))
    }

    fn list(&mut self, query: &Query) -> Result<Page, StoreError> {
        Ok(self.memory.lock().list(query))
    }

    fn blob(&mut self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.memory.lock().blob(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_given_clock_says_when_the_owners_time_is_up() {
        let time = Arc::new(Mutex::new(0_i64));
        let clock = Arc::clone(&time);
        let memory = Memory::timed(Arc::new(move || *clock.lock().unwrap()));
        let (mut first, mut second) = (memory.writer(), memory.writer());
        first.own("a", Duration::from_secs(1)).unwrap();
        assert!(matches!(second.own("b", Duration::from_secs(1)), Err(StoreError::Owned { .. })));
        *time.lock().unwrap() = 1000;
        assert_eq!(second.own("b", Duration::from_secs(1)).unwrap().epoch, 2);
    }
}
