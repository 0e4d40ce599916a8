//! What the owner knows without asking: numbers, versions and cards of streams it wrote, and the end of the log.
//!
//! A cache and nothing else: it may be emptied at any moment. It is right because only the owner writes.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

use crate::{Card, StreamId};

/// How many streams are remembered; beyond, all are forgotten and asked for again. At some 300 bytes each this is far
/// from mattering, and a better order of eviction would cost more than the question it saves.
const MOST: usize = 16_384;

/// A stream as it was written last.
pub(super) struct Known {
    pub(super) number: i64,
    pub(super) version: u64,
    pub(super) card: Card,
}

#[derive(Default)]
pub(super) struct Knowledge {
    streams: HashMap<StreamId, Known>,
    last: Option<u64>,
}

impl Knowledge {
    pub(super) fn clear(&mut self) {
        self.streams.clear();
        self.last = None;
    }

    pub(super) fn remove(&mut self, stream: &StreamId) {
        self.streams.remove(stream);
    }

    pub(super) fn stream(&mut self, stream: &StreamId) -> Option<&mut Known> {
        self.streams.get_mut(stream)
    }

    pub(super) fn learn(&mut self, stream: &StreamId, known: Known) {
        if self.streams.len() >= MOST {
            self.streams.clear();
        }
        self.streams.insert(stream.clone(), known);
    }

    /// The last place in the log.
    pub(super) fn last(&mut self, connection: &Connection) -> Result<u64, rusqlite::Error> {
        if let Some(last) = self.last {
            return Ok(last);
        }
        let row = "SELECT position + count - 1 FROM log ORDER BY position DESC LIMIT 1";
        let row: Option<i64> = connection.query_row(row, [], |row| row.get(0)).optional()?;
        let forgotten: i64 = connection.query_row("SELECT position FROM owner", [], |row| row.get(0))?;
        let last = row.unwrap_or(0).max(forgotten) as u64;
        self.last = Some(last);
        Ok(last)
    }

    /// Takes places for so many events, and says which is the first.
    pub(super) fn places(&mut self, connection: &Connection, count: u64) -> Result<u64, rusqlite::Error> {
        let last = self.last(connection)?;
        self.last = Some(last + count);
        Ok(last + 1)
    }
}
