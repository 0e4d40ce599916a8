//! The reading side on SQLite: a connection that only reads, and a snapshot for every answer.
//!
//! Every payload is compared with its checksum: SQLite notices damaged structure, not damaged content.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::fault::Place;
use super::list;
use crate::record::beyond;
use crate::{
    Card, Cursor, Digest, Effect, Event, Header, LARGEST_PAGE, Lease, Logged, OpenEffect, Page, Query, Reader, RowKey,
    StoreError, Stored, StreamId, Summary, codec,
};

/// The columns that make a card, in the order in which [`card`] takes them.
pub(super) const CARD_COLUMNS: &str =
    "stream.kind, stream.status, stream.belongs, stream.title, stream.open, stream.created, header.time";

/// Puts the header beside a stream. One that is missing is damage, and reads as values that cannot be.
pub(super) const HEADER_OF_STREAM: &str =
    "LEFT JOIN part AS header ON header.stream = stream.number AND header.what = 3 AND header.key = 0";

/// The card that stands in a row from this column on.
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

/// The checksum of some bytes.
pub(super) fn sum(parts: &[&[u8]]) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    i64::from(hasher.finalize())
}

/// The checksum of a header, with its stream, its version and its card.
pub(super) fn header_sum(stream: &StreamId, version: u64, header: &Header) -> i64 {
    let card = &header.card;
    sum(&[
        stream.as_str().as_bytes(),
        &version.to_le_bytes(),
        card.kind.as_bytes(),
        card.status.as_bytes(),
        card.group.as_bytes(),
        card.title.as_bytes(),
        &[u8::from(card.open)],
        &card.created.to_le_bytes(),
        &card.updated.to_le_bytes(),
        &header.data,
    ])
}

/// The key of a row as one number, in the same order.
pub(super) fn row_key(key: RowKey) -> i64 {
    ((u64::from(key.0) << 32 | u64::from(key.1)) ^ 1 << 63) as i64
}

fn read_row_key(key: i64) -> RowKey {
    let key = key as u64 ^ 1 << 63;
    RowKey((key >> 32) as u32, key as u32)
}

/// The checksum of a row, with its key.
pub(super) fn row_sum(stream: i64, key: RowKey, data: &[u8]) -> i64 {
    sum(&[&stream.to_le_bytes(), &key.0.to_le_bytes(), &key.1.to_le_bytes(), data])
}

/// The checksum of an effect, with its key. Who holds it is not in it, because that changes alone.
pub(super) fn effect_sum(stream: i64, effect: &Effect) -> i64 {
    sum(&[&stream.to_le_bytes(), effect.id.as_bytes(), effect.kind.as_bytes(), &effect.data])
}

/// The events of a stream as far as the index knows them. Starts at the row that holds the one that is asked for, which
/// may begin before it.
const INDEXED_EVENTS: &str = "SELECT log.first, log.events FROM log_index AS place
     CROSS JOIN log ON log.position = place.position AND log.stream = place.stream AND log.first = place.first
     WHERE place.stream = ?1 AND place.first >= coalesce(
         (SELECT max(first) FROM log_index WHERE stream = ?1 AND first <= ?2), 0)
     ORDER BY place.first";
/// The events of a stream that the index does not know yet.
const LATEST_EVENTS: &str = "SELECT first, events FROM log
     WHERE position > (SELECT indexed FROM owner) AND stream = ?1 AND first + count > ?2 ORDER BY position";

/// The reading side of a [`super::Sqlite`].
pub struct SqliteReader {
    connection: Connection,
    place: Place,
}

impl SqliteReader {
    pub(super) fn new(connection: Connection, place: Place) -> SqliteReader {
        SqliteReader { connection, place }
    }

    fn fault(&self) -> impl Fn(rusqlite::Error) -> StoreError {
        |error| self.place.fault(error)
    }

    fn check(&self, what: &str, is: i64, should: i64) -> Result<(), StoreError> {
        if is == should { Ok(()) } else { Err(self.place.corrupt(format!("{what} with a wrong checksum"))) }
    }

    /// Rows, effects and timers of a stream, in the order in which they stand.
    fn parts(&self, number: i64, stored: &mut Stored) -> Result<(), StoreError> {
        let sql = "SELECT what, key, data, sum, time, kind, holder FROM part WHERE stream = ?1 AND what < 3
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
                    let (open, should) = effect(row).map_err(self.fault())?;
                    self.check("an effect", effect_sum(number, &open.effect), should)?;
                    stored.effects.push(open);
                }
                2 => {
                    let read = || Ok((row.get(1)?, row.get(4)?));
                    stored.timers.push(read().map_err(self.fault())?);
                }
                other => return Err(self.place.corrupt(format!("a part of kind {other}"))),
            }
        }
        Ok(())
    }

    fn stored(&self, stream: &StreamId) -> Result<Option<Stored>, StoreError> {
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
        let mut stored = Stored { version, header, rows: Vec::new(), effects: Vec::new(), timers: Vec::new() };
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
                let (first, events): (i64, Vec<u8>) = both(row).map_err(self.fault())?;
                let events = codec::decode(&events).map_err(|detail| self.place.corrupt(detail))?;
                history.extend((first as u64..).zip(events).filter(|(number, _)| *number > after));
            }
        }
        history.truncate(wanted);
        if history.len() == wanted && history.iter().zip(1..).all(|((number, _), at)| *number == after + at) {
            Ok(history)
        } else {
            Err(self.place.corrupt(format!("events of stream {stream} are missing")))
        }
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
    fn load(&mut self, stream: &StreamId) -> Result<Option<Stored>, StoreError> {
        self.snapshot(|| self.stored(stream))
    }

    fn summary(&mut self, stream: &StreamId) -> Result<Option<Summary>, StoreError> {
        let read = || {
            let sql = format!("SELECT header.version, {CARD_COLUMNS} FROM stream {HEADER_OF_STREAM} WHERE id = ?1");
            let summary = |row: &Row<'_>| {
                let version = row.get::<_, i64>(0)? as u64;
                Ok(Summary { stream: stream.clone(), version, card: card(row, 1)? })
            };
            self.connection.prepare_cached(&sql)?.query_row([stream.as_str()], summary).optional()
        };
        read().map_err(self.fault())
    }

    fn history(&mut self, stream: &StreamId, after: u64, limit: usize) -> Result<Vec<(u64, Event)>, StoreError> {
        self.snapshot(|| self.events(stream, after, limit))
    }

    fn log(&mut self, after: Cursor, limit: usize) -> Result<Vec<Logged>, StoreError> {
        let sql = "SELECT log.position, log.events, stream.id, log.first
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
            let (position, events): (i64, Vec<u8>) = both(row).map_err(self.fault())?;
            bytes += events.len();
            let read = || Ok((StreamId(row.get(2)?), row.get::<_, i64>(3)? as u64));
            let (stream, first) = read().map_err(self.fault())?;
            let events = codec::decode(&events).map_err(|detail| self.place.corrupt(detail))?;
            let places = (position as u64..).zip(first..).zip(events);
            log.extend(places.filter(|((place, _), _)| *place > after.0).map(|((place, number), event)| Logged {
                cursor: Cursor(place),
                stream: stream.clone(),
                number,
                event,
            }));
        }
        log.truncate(limit);
        Ok(log)
    }

    fn end(&mut self) -> Result<Cursor, StoreError> {
        let sql = "SELECT position, events FROM log ORDER BY position DESC LIMIT 1";
        let mut statement = self.connection.prepare_cached(sql).map_err(self.fault())?;
        let last = statement.query_row([], both).optional().map_err(self.fault())?;
        let Some((position, events)) = last else { return Ok(Cursor::default()) };
        let events = codec::decode(&events).map_err(|detail| self.place.corrupt(detail))?;
        Ok(Cursor((position as u64 + events.len() as u64).saturating_sub(1)))
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

fn effect(row: &Row<'_>) -> Result<(OpenEffect, i64), rusqlite::Error> {
    let effect = Effect { id: row.get(1)?, kind: row.get(5)?, data: row.get(2)? };
    let (holder, until): (Option<String>, Option<i64>) = (row.get(6)?, row.get(4)?);
    let lease = holder.zip(until).map(|(holder, until)| Lease { holder, until });
    Ok((OpenEffect { effect, lease }, row.get(3)?))
}

fn both(row: &Row<'_>) -> Result<(i64, Vec<u8>), rusqlite::Error> {
    Ok((row.get(0)?, row.get(1)?))
}
