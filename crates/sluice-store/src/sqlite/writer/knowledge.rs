//! What the owner knows without asking: numbers, versions and cards of streams it wrote, the end of the log, and how far
//! its index lags behind.
//!
//! A cache and nothing else: it may be emptied at any moment. It is right because only the owner writes.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

use crate::{Card, StreamId};

/// How many streams are remembered; beyond, all are forgotten and asked for again. At some 300 bytes each this is far
/// from mattering, and a better order of eviction would cost more than the question it saves.
const MOST: usize = 16_384;

pub(super) struct WrittenStream {
    pub(super) number: i64,
    pub(super) version: u64,
    pub(super) card: Card,
}

#[derive(Default)]
pub(super) struct WriterKnowledge {
    streams: HashMap<StreamId, WrittenStream>,
    end: Option<LogEnd>,
}

#[derive(Clone, Copy)]
struct LogEnd {
    /// The place of the last event in the log, forgotten ones included.
    last: u64,
    /// How many rows the index does not know.
    behind: u64,
}

impl WriterKnowledge {
    pub(super) fn clear(&mut self) {
        self.streams.clear();
        self.end = None;
    }

    pub(super) fn remove(&mut self, stream: &StreamId) {
        self.streams.remove(stream);
    }

    pub(super) fn stream(&mut self, stream: &StreamId) -> Option<&mut WrittenStream> {
        self.streams.get_mut(stream)
    }

    pub(super) fn learn(&mut self, stream: &StreamId, known: WrittenStream) {
        if self.streams.len() >= MOST {
            self.streams.clear();
        }
        self.streams.insert(stream.clone(), known);
    }

    /// Takes places for the events of one append, and says which is the first.
    pub(super) fn places(&mut self, connection: &Connection, count: u64) -> Result<u64, rusqlite::Error> {
        let LogEnd { last, behind } = self.end(connection)?;
        self.end = Some(LogEnd { last: last + count, behind: behind + 1 });
        Ok(last + 1)
    }

    /// Brings the index of the log up to date if it lags behind by more than so many rows. Gives the last place.
    pub(super) fn index(&mut self, connection: &Connection, most: u64) -> Result<u64, rusqlite::Error> {
        let LogEnd { last, behind } = self.end(connection)?;
        if behind > most {
            let index = "INSERT INTO log_index SELECT stream, first, position FROM log
                 WHERE position > (SELECT indexed FROM owner) ORDER BY stream, first";
            connection.prepare_cached(index)?.execute([])?;
            connection.prepare_cached("UPDATE owner SET indexed = ?1")?.execute([last as i64])?;
            self.end = Some(LogEnd { last, behind: 0 });
        }
        Ok(last)
    }

    fn end(&mut self, connection: &Connection) -> Result<LogEnd, rusqlite::Error> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        let row = "SELECT position + count - 1 FROM log ORDER BY position DESC LIMIT 1";
        let row: Option<i64> = connection.query_row(row, [], |row| row.get(0)).optional()?;
        let rest = "SELECT position, (SELECT count(*) FROM log WHERE log.position > indexed) FROM owner";
        let (forgotten, behind): (i64, i64) = connection.query_row(rest, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let end = LogEnd { last: row.unwrap_or(0).max(forgotten) as u64, behind: behind as u64 };
        self.end = Some(end);
        Ok(end)
    }
}
