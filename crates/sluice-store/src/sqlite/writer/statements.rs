//! One append as rows: the statements, each prepared once per batch if it is needed, and the order in which they run.
//!
//! The header goes first, because it alone can conflict. Never begins or ends a transaction.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, params};

use super::knowledge::{WriterKnowledge, WrittenStream};
use crate::sqlite::fault::SqlitePath;
use crate::sqlite::reader::{CARD_COLUMNS, HEADER_OF_STREAM, card, row_key};
use crate::sqlite::sums::{LogRow, effect_sum, header_sum, lease_sum, row_sum, sum, timer_sum};
use crate::{Append, Card, Conflict, StoreError, codec};

/// A statement of a batch. Most steps need few of them, and taking one out of the cache and putting it back is not
/// free.
struct SqliteStatement<'c> {
    connection: &'c Connection,
    sql: &'static str,
    prepared: Option<CachedStatement<'c>>,
}

impl SqliteStatement<'_> {
    /// Runs it, and says how many rows it changed.
    fn execute(&mut self, values: impl Params) -> Result<usize, rusqlite::Error> {
        let prepared = match &mut self.prepared {
            Some(prepared) => prepared,
            none => none.insert(self.connection.prepare_cached(self.sql)?),
        };
        prepared.execute(values)
    }
}

pub(super) struct SqliteStatements<'c> {
    connection: &'c Connection,
    create: SqliteStatement<'c>,
    replace: SqliteStatement<'c>,
    rest: SqliteStatement<'c>,
    put_header: SqliteStatement<'c>,
    touch: SqliteStatement<'c>,
    log: SqliteStatement<'c>,
    put_row: SqliteStatement<'c>,
    drop_row: SqliteStatement<'c>,
    put_effect: SqliteStatement<'c>,
    drop_effect: SqliteStatement<'c>,
    hold: SqliteStatement<'c>,
    put_timer: SqliteStatement<'c>,
    drop_timer: SqliteStatement<'c>,
    put_blob: SqliteStatement<'c>,
    use_blob: SqliteStatement<'c>,
}

impl<'c> SqliteStatements<'c> {
    pub(super) fn new(connection: &'c Connection) -> SqliteStatements<'c> {
        let statement = |sql: &'static str| SqliteStatement { connection, sql, prepared: None };
        SqliteStatements {
            connection,
            create: statement(
                "INSERT INTO stream (id, kind, status, belongs, title, open, live, created)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7)",
            ),
            replace: statement(
                "UPDATE stream SET kind = ?2, status = ?3, belongs = ?4, title = ?5, open = ?6, live = 1, created = ?7
                 WHERE number = ?1",
            ),
            rest: statement(
                "UPDATE stream SET live = 0 WHERE number = ?1
                 AND NOT EXISTS (SELECT 1 FROM part WHERE stream = ?1 AND what BETWEEN 1 AND 2)",
            ),
            put_header: statement(
                "INSERT INTO part (stream, what, key, version, time, data, sum) VALUES (?1, 3, 0, ?2, ?3, ?4, ?5)",
            ),
            touch: statement(
                "UPDATE part SET version = ?2, time = ?3, data = ?4, sum = ?5
                 WHERE stream = ?1 AND what = 3 AND key = 0 AND version = ?6",
            ),
            log: statement(
                "INSERT INTO log (position, stream, first, count, events, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            ),
            put_row: statement("INSERT OR REPLACE INTO part (stream, what, key, data, sum) VALUES (?1, 0, ?2, ?3, ?4)"),
            drop_row: statement("DELETE FROM part WHERE stream = ?1 AND what = 0 AND key = ?2"),
            put_effect: statement(
                "INSERT OR REPLACE INTO part (stream, what, key, kind, data, sum) VALUES (?1, 1, ?2, ?3, ?4, ?5)",
            ),
            drop_effect: statement("DELETE FROM part WHERE stream = ?1 AND what = 1 AND key = ?2"),
            hold: statement(
                "UPDATE part SET holder = ?3, time = ?4, version = ?5 WHERE stream = ?1 AND what = 1 AND key = ?2",
            ),
            put_timer: statement(
                "INSERT OR REPLACE INTO part (stream, what, key, time, sum) VALUES (?1, 2, ?2, ?3, ?4)",
            ),
            drop_timer: statement("DELETE FROM part WHERE stream = ?1 AND what = 2 AND key = ?2"),
            put_blob: statement("INSERT OR IGNORE INTO blob (digest, body, sum) VALUES (?1, ?2, ?3)"),
            use_blob: statement("INSERT OR IGNORE INTO blob_use (stream, digest) VALUES (?1, ?2)"),
        }
    }

    /// Stores one append, or says that it conflicts and has changed nothing.
    pub(super) fn append(
        &mut self,
        append: &Append,
        knowledge: &mut WriterKnowledge,
        place: &SqlitePath,
    ) -> Result<Result<u64, Conflict>, StoreError> {
        let fault = |error| place.fault(error);
        if knowledge.stream(&append.stream).is_none()
            && let Some(known) = self.find(append).map_err(fault)?
        {
            knowledge.learn(&append.stream, known);
        }
        let found = knowledge.stream(&append.stream).map_or(0, |known| known.version);
        if found != append.expected {
            return Ok(Err(Conflict { stream: append.stream.clone(), expected: append.expected, found }));
        }
        let number = match knowledge.stream(&append.stream) {
            None => {
                let number = self.create(append).map_err(fault)?;
                let card = append.header.card.clone();
                knowledge.learn(&append.stream, WrittenStream { number, version: append.version(), card });
                number
            }
            Some(known) => {
                if self.header(append, known).map_err(fault)? != 1 {
                    return Err(place.corrupt(format!("stream {} changed beside its owner", append.stream)));
                }
                known.version = append.version();
                if known.card != append.header.card {
                    known.card.clone_from(&append.header.card);
                }
                known.number
            }
        };
        let first = knowledge.places(self.connection, append.events.len() as u64).map_err(fault)?;
        self.contents(append, number, first).map_err(fault)?;
        if !append.header.card.open {
            self.rest.execute([number]).map_err(fault)?;
            // Ended streams are seldom written again, and there may be very many.
            knowledge.remove(&append.stream);
        }
        Ok(Ok(append.version()))
    }

    fn find(&self, append: &Append) -> Result<Option<WrittenStream>, rusqlite::Error> {
        let sql = format!("SELECT number, header.version, {CARD_COLUMNS} FROM stream {HEADER_OF_STREAM} WHERE id = ?1");
        let known = |row: &rusqlite::Row<'_>| {
            Ok(WrittenStream { number: row.get(0)?, version: row.get::<_, i64>(1)? as u64, card: card(row, 2)? })
        };
        self.connection.prepare_cached(&sql)?.query_row([append.stream.as_str()], known).optional()
    }

    fn create(&mut self, append: &Append) -> Result<i64, rusqlite::Error> {
        let header = &append.header;
        let card = &header.card;
        self.create.execute(params![
            append.stream.as_str(),
            card.kind,
            card.status,
            card.group,
            card.title,
            card.open,
            card.created,
        ])?;
        let number = self.connection.last_insert_rowid();
        let (version, sum) = (append.version(), header_sum(&append.stream, append.version(), header));
        self.put_header.execute(params![number, version as i64, card.updated, header.data, sum])?;
        Ok(number)
    }

    /// Writes the header, and what stands in an index only if it changed.
    fn header(&mut self, append: &Append, known: &WrittenStream) -> Result<usize, rusqlite::Error> {
        let header = &append.header;
        let card = &header.card;
        if !card.open || !same_but_time(card, &known.card) {
            self.replace.execute(params![
                known.number,
                card.kind,
                card.status,
                card.group,
                card.title,
                card.open,
                card.created
            ])?;
        }
        let (version, sum) = (append.version(), header_sum(&append.stream, append.version(), header));
        self.touch.execute(params![
            known.number,
            version as i64,
            card.updated,
            header.data,
            sum,
            append.expected as i64
        ])
    }

    fn contents(&mut self, append: &Append, number: i64, first: u64) -> Result<(), rusqlite::Error> {
        let count = append.events.len() as i64;
        let events = codec::encode(&append.events);
        let row = LogRow { position: first as i64, stream: number, first: append.expected as i64 + 1, count };
        self.log.execute(params![row.position, number, row.first, count, events, row.sum(&events)])?;
        for (key, row) in &append.rows {
            match row {
                Some(row) => self.put_row.execute(params![number, row_key(*key), row, row_sum(number, *key, row)])?,
                None => self.drop_row.execute(params![number, row_key(*key)])?,
            };
        }
        for id in &append.settled {
            self.drop_effect.execute(params![number, id])?;
        }
        for it in &append.effects {
            self.put_effect.execute(params![number, it.id, it.kind, it.data, effect_sum(number, it)])?;
        }
        for (id, lease) in &append.leases {
            let (holder, until) = (lease.as_ref().map(|it| &it.holder), lease.as_ref().map(|it| it.until));
            let sum = lease.as_ref().map(|it| lease_sum(number, id, it));
            self.hold.execute(params![number, id, holder, until, sum])?;
        }
        for (key, due) in &append.timers {
            match due {
                Some(due) => self.put_timer.execute(params![number, key, due, timer_sum(number, key, *due)])?,
                None => self.drop_timer.execute(params![number, key])?,
            };
        }
        for (digest, body) in &append.blobs {
            self.put_blob.execute(params![digest.0, body, sum(&[body])])?;
            self.use_blob.execute(params![number, digest.0])?;
        }
        Ok(())
    }
}

/// Whether two cards differ in nothing but when they were updated, which no index holds.
fn same_but_time(new: &Card, old: &Card) -> bool {
    new.status == old.status
        && new.open == old.open
        && new.title == old.title
        && new.kind == old.kind
        && new.group == old.group
        && new.created == old.created
}
