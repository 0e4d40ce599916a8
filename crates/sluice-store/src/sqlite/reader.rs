//! The reading side on SQLite: a connection that only reads, and a snapshot for every answer.
//!
//! Everything that is read is compared with its checksum ([`super::sums`]).

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::fault::SqlitePath;
use super::held::SqliteFile;
use super::list;
use super::sums::{LogRow, effect_sum, header_sum, lease_sum, row_sum, sum, timer_sum};
use crate::record::beyond;
use crate::{
    Card, Cursor, Digest, Effect, Event, Header, LARGEST_PAGE, Lease, LoggedEvent, OpenEffect, Page, Query, Reader,
    RowKey, StoreError, StoredStream, StreamId, StreamSummary, codec,
};

/// The columns that make a card, in the order in which [`card`] takes them.
pub(super) const CARD_COLUMNS: &str =
    "stream.kind, stream.status, stream.belongs, stream.title, stream.open, stream.created, header.time";

/// Puts the header beside a stream. One that is missing is damage, and reads as values that cannot be.
pub(super) const HEADER_OF_STREAM: &str =
    "LEFT JOIN part AS header ON header.stream = stream.number AND header.what = 3 AND header.key = 0";

pub(super) fn card(row: &Row<'_>, from: usize) -> Result<Card, rusqlite::Error> {
    Ok(Card {
        kind: row.get(from)?,
        status: row.get(from + 1)?,
        group: row.get(from + 2)?,
        title: row.get(from + 3)?,
        open: row.get(from + 4)?,
        created: row.get(from + 5)?,
        updated: row.get(from + 6)?,
    })
}

/// The key of a row as one number, in the same order.
pub(super) fn row_key(key: RowKey) -> i64 {
    ((u64::from(key.0) << 32 | u64::from(key.1)) ^ 1 << 63) as i64
}

fn read_row_key(key: i64) -> RowKey {
    let key = key as u64 ^ 1 << 63;
    RowKey((key >> 32) as u32, key as u32)
}

/// The events of a stream as far as the index knows them. Starts at the row that holds the one that is asked for, which
/// may begin before it.
const INDEXED_EVENTS: &str = "SELECT log.position, log.stream, log.first, log.count, log.events, log.sum
     FROM log_index AS place
     CROSS JOIN log ON log.position = place.position AND log.stream = place.stream AND log.first = place.first
     WHERE place.stream = ?1 AND place.first >= coalesce(
         (SELECT max(first) FROM log_index WHERE stream = ?1 AND first <= ?2), 0)
     ORDER BY place.first";
/// The events of a stream that the index does not know yet.
const LATEST_EVENTS: &str = "SELECT position, stream, first, count, events, sum FROM log
     WHERE position > (SELECT indexed FROM owner) AND stream = ?1 AND first + count > ?2 ORDER BY position";

/// The reading side of a [`super::Sqlite`].
pub struct SqliteReader {
    connection: Connection,
    _file: Arc<SqliteFile>,
    place: SqlitePath,
}

impl SqliteReader {
    pub(super) fn new(connection: Connection, file: Arc<SqliteFile>) -> SqliteReader {
        SqliteReader { connection, place: file.place(), _file: file }
    }

    fn fault(&self) -> impl Fn(rusqlite::Error) -> StoreError {
        |error| self.place.fault(error)
    }

    fn check(&self, what: &str, is: i64, should: i64) -> Result<(), StoreError> {
        if is == should { Ok(()) } else { Err(self.place.corrupt(format!("{what} with a wrong checksum"))) }
    }

    /// Rows, effects and timers of a stream, in the order in which they stand.
    fn parts(&self, number: i64, stored: &mut StoredStream) -> Result<(), StoreError> {
        let sql = "SELECT what, key, data, sum, time, kind, holder, version FROM part WHERE stream = ?1 AND what < 3
             ORDER BY what, key";
        let mut statement = self.connection.prepare_cached(sql).map_err(self.fault())?;
        let mut found = statement.query([number]).map_err(self.fault())?;
        while let Some(row) = found.next().map_err(self.fault())? {
            match row.get::<_, i64>(0).map_err(self.fault())? {
                0 => {
                    let read = || Ok((read_row_key(row.get(1)?), row.get::<_, Vec<u8>>(2)?, row.get(3)?));
                    let (key, data, should) = read().map_err(self.fault())?;
                    self.check("a row", row_sum(number, key, &data), should)?;
                    stored.rows.push((key, data));
                }
                1 => {
                    let (open, should, held) = effect(row).map_err(self.fault())?;
                    self.check("an effect", effect_sum(number, &open.effect), should)?;
                    let holds = open.lease.as_ref().map(|lease| lease_sum(number, &open.effect.id, lease));
                    self.check("a lease", holds.unwrap_or_default(), held.or(holds).unwrap_or_default())?;
                    stored.effects.push(open);
                }
                2 => {
                    let read = || Ok((row.get::<_, String>(1)?, row.get(4)?, row.get::<_, Option<i64>>(3)?));
                    let (key, due, should) = read().map_err(self.fault())?;
                    let is = timer_sum(number, &key, due);
                    self.check("a timer", is, should.unwrap_or(is))?;
                    stored.timers.push((key, due));
                }
                other => return Err(self.place.corrupt(format!("a part of kind {other}"))),
            }
        }
        Ok(())
    }

    fn stored(&self, stream: &StreamId) -> Result<Option<StoredStream>, StoreError> {
        let find = || {
            let sql = format!(
                "SELECT number, header.version, {CARD_COLUMNS}, header.data, header.sum
                 FROM stream {HEADER_OF_STREAM} WHERE id = ?1"
            );
            let read = |row: &Row<'_>| {
                let header = Header { card: card(row, 2)?, data: row.get(9)? };
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)? as u64, header, row.get::<_, i64>(10)?))
            };
            self.connection.prepare_cached(&sql)?.query_row([stream.as_str()], read).optional()
        };
        let Some((number, version, header, should)) = find().map_err(self.fault())? else { return Ok(None) };
        self.check("a header", header_sum(stream, version, &header), should)?;
        let mut stored = StoredStream { version, header, rows: Vec::new(), effects: Vec::new(), timers: Vec::new() };
        self.parts(number, &mut stored)?;
        Ok(Some(stored))
    }

    fn events(&self, stream: &StreamId, after: u64, limit: usize) -> Result<Vec<(u64, Event)>, StoreError> {
        let find = || {
            let sql = format!("SELECT number, header.version FROM stream {HEADER_OF_STREAM} WHERE id = ?1");
            let read = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)? as u64));
            self.connection.prepare_cached(&sql)?.query_row([stream.as_str()], read).optional()
        };
        let Some((number, version)) = find().map_err(self.fault())? else { return Ok(Vec::new()) };
        let start = i64::try_from(after.saturating_add(1)).unwrap_or(i64::MAX);
        let mut history: Vec<(u64, Event)> = Vec::new();
        let wanted = usize::try_from(version.saturating_sub(after)).map_or(limit, |left| left.min(limit));
        for sql in [INDEXED_EVENTS, LATEST_EVENTS] {
            let mut statement = self.connection.prepare_cached(sql).map_err(self.fault())?;
            let mut found = statement.query(params![number, start]).map_err(self.fault())?;
            while history.len() < wanted
                && let Some(row) = found.next().map_err(self.fault())?
            {
                let (first, events) = self.log_row(row)?;
                history.extend((first..).zip(events).filter(|(number, _)| *number > after));
            }
        }
        history.truncate(wanted);
        if history.len() == wanted && history.iter().zip(1..).all(|((number, _), at)| *number == after + at) {
            Ok(history)
        } else {
            Err(self.place.corrupt(format!("events of stream {stream} are missing")))
        }
    }

    /// The number of the first event of a row of the log, and the events: columns position, stream, first, count,
    /// events, sum.
    fn log_row(&self, row: &Row<'_>) -> Result<(u64, Vec<Event>), StoreError> {
        let read = || {
            let place = LogRow { position: row.get(0)?, stream: row.get(1)?, first: row.get(2)?, count: row.get(3)? };
            Ok((place, row.get::<_, Vec<u8>>(4)?, row.get::<_, Option<i64>>(5)?))
        };
        let (place, events, should) = read().map_err(self.fault())?;
        let is = place.sum(&events);
        self.check("a row of the log", is, should.unwrap_or(is))?;
        let events = codec::decode(&events).map_err(|detail| self.place.corrupt(detail))?;
        match events.len() as i64 == place.count {
            true => Ok((place.first as u64, events)),
            false => Err(self.place.corrupt("a row of the log with another number of events")),
        }
    }

    /// Names the stream that is damaged.
    fn of<T>(&self, stream: &StreamId, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        answer.map_err(|error| match error {
            StoreError::Corrupt { place, detail } => {
                StoreError::Corrupt { place, detail: format!("stream {stream}: {detail}") }
            }
            other => other,
        })
    }

    /// Does something in which every question sees the same moment.
    fn snapshot<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let transaction = self.connection.unchecked_transaction().map_err(self.fault())?;
        let answer = work()?;
        transaction.finish().map_err(self.fault())?;
        Ok(answer)
    }
}

impl Reader for SqliteReader {
    fn load(&mut self, stream: &StreamId) -> Result<Option<StoredStream>, StoreError> {
        self.of(stream, self.snapshot(|| self.stored(stream)))
    }

    fn summary(&mut self, stream: &StreamId) -> Result<Option<StreamSummary>, StoreError> {
        let read = || {
            let sql = format!("SELECT header.version, {CARD_COLUMNS} FROM stream {HEADER_OF_STREAM} WHERE id = ?1");
            let summary = |row: &Row<'_>| {
                let version = row.get::<_, i64>(0)? as u64;
                Ok(StreamSummary { stream: stream.clone(), version, card: card(row, 1)? })
            };
            self.connection.prepare_cached(&sql)?.query_row([stream.as_str()], summary).optional()
        };
        read().map_err(self.fault())
    }

    fn history(&mut self, stream: &StreamId, after: u64, limit: usize) -> Result<Vec<(u64, Event)>, StoreError> {
        self.of(stream, self.snapshot(|| self.events(stream, after, limit)))
    }

    fn log(&mut self, after: Cursor, limit: usize) -> Result<Vec<LoggedEvent>, StoreError> {
        let sql = "SELECT log.position, log.stream, log.first, log.count, log.events, log.sum, stream.id
             FROM log LEFT JOIN stream ON stream.number = log.stream
             WHERE position >= coalesce((SELECT max(position) FROM log WHERE position <= ?1), 0) ORDER BY position";
        let mut statement = self.connection.prepare_cached(sql).map_err(self.fault())?;
        let start = i64::try_from(after.0.saturating_add(1)).unwrap_or(i64::MAX);
        let mut found = statement.query([start]).map_err(self.fault())?;
        let (mut log, mut bytes) = (Vec::new(), 0);
        while log.len() < limit
            && (bytes < LARGEST_PAGE || log.is_empty())
            && let Some(row) = found.next().map_err(self.fault())?
        {
            let position = row.get::<_, i64>(0).map_err(self.fault())? as u64;
            let stream = row.get(6).ok().map(StreamId);
            bytes += row.get_ref(4).ok().and_then(|it| it.as_blob().ok()).map_or(0, <[u8]>::len);
            let read = self.log_row(row).map_err(|error| match &stream {
                Some(_) => error.to_string(),
                None => format!("a row of no stream ({error})"),
            });
            match (read, stream) {
                (Ok((first, events)), Some(stream)) => {
                    let places = (position..).zip(first..).zip(events);
                    log.extend(places.filter(|((place, _), _)| *place > after.0).map(|((place, number), event)| {
                        LoggedEvent { cursor: Cursor(place), stream: stream.clone(), number, event }
                    }));
                }
                // It is named, and whoever reads goes on behind it.
                (read, stream) if position > after.0 => {
                    let why = read.err().unwrap_or_else(|| "a row of no stream".to_owned());
                    let number = row.get::<_, i64>(2).unwrap_or_default() as u64;
                    log.push(LoggedEvent::damaged(Cursor(position), stream, number, &why));
                }
                (_, _) => {}
            }
        }
        log.truncate(limit);
        Ok(log)
    }

    fn end(&mut self) -> Result<Cursor, StoreError> {
        let sql = "SELECT position + count - 1 FROM log ORDER BY position DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql).map_err(self.fault())?;
        let last: Option<i64> = statement.query_row([], |row| row.get(0)).optional().map_err(self.fault())?;
        Ok(Cursor(last.unwrap_or_default() as u64))
    }

    fn followed(&mut self) -> Result<Option<Cursor>, StoreError> {
        let read: Option<i64> =
            self.connection.query_row("SELECT followed FROM owner", [], |row| row.get(0)).map_err(self.fault())?;
        Ok(read.map(|place| Cursor(place as u64)))
    }

    fn open_streams(&mut self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamId>, StoreError> {
        let read = || {
            let sql = "SELECT id FROM stream INDEXED BY stream_live WHERE live = 1 AND id > ?1 ORDER BY id LIMIT ?2";
            let mut statement = self.connection.prepare_cached(sql)?;
            let start = after.map_or("", StreamId::as_str);
            statement
                .query_map(params![start, limit as i64], |row| Ok(StreamId(row.get(0)?)))?
                .collect::<Result<Vec<_>, _>>()
        };
        read().map_err(self.fault())
    }

    fn named(&mut self, begins: &str, limit: usize) -> Result<Vec<StreamId>, StoreError> {
        let read = || {
            let sql = "SELECT id FROM stream WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3";
            let mut statement = self.connection.prepare_cached(sql)?;
            let found =
                statement.query_map(params![begins, beyond(begins), limit as i64], |row| Ok(StreamId(row.get(0)?)));
            found?.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(self.fault())
    }

    fn list(&mut self, query: &Query) -> Result<Page, StoreError> {
        list::list(&self.connection, query).map_err(self.fault())
    }

    fn blob(&mut self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare_cached("SELECT body, sum FROM blob WHERE digest = ?1")?;
            statement.query_row([digest.0], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?))).optional()
        };
        let Some((body, should)) = read().map_err(self.fault())? else { return Ok(None) };
        self.check("a blob", sum(&[&body]), should)?;
        Ok(Some(body))
    }
}

fn effect(row: &Row<'_>) -> Result<(OpenEffect, i64, Option<i64>), rusqlite::Error> {
    let effect = Effect { id: row.get(1)?, kind: row.get(5)?, data: row.get(2)? };
    let (holder, until): (Option<String>, Option<i64>) = (row.get(6)?, row.get(4)?);
    let lease = holder.zip(until).map(|(holder, until)| Lease { holder, until });
    Ok((OpenEffect { effect, lease }, row.get(3)?, row.get(7)?))
}
