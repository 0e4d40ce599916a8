//! One append as rows: the statements, prepared once per batch, and the order in which they run.
//!
//! The header goes first, because it alone can conflict. Never begins or ends a transaction.

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::knowledge::{Knowledge, Known};
use crate::sqlite::fault::Place;
use crate::sqlite::reader::{CARD_COLUMNS, card, effect_sum, header_sum, row_sum, sum};
use crate::{Append, Card, Conflict, StoreError, codec};

pub(super) struct Statements<'c> {
    connection: &'c Connection,
    find: CachedStatement<'c>,
    create: CachedStatement<'c>,
    touch: CachedStatement<'c>,
    replace: CachedStatement<'c>,
    rest: CachedStatement<'c>,
    log: CachedStatement<'c>,
    put_row: CachedStatement<'c>,
    drop_row: CachedStatement<'c>,
    put_effect: CachedStatement<'c>,
    drop_effect: CachedStatement<'c>,
    hold: CachedStatement<'c>,
    put_timer: CachedStatement<'c>,
    drop_timer: CachedStatement<'c>,
    put_blob: CachedStatement<'c>,
    use_blob: CachedStatement<'c>,
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Statements<'c>, rusqlite::Error> {
        let prepare = |sql: &str| connection.prepare_cached(sql);
        Ok(Statements {
            connection,
            find: prepare(&format!("SELECT number, version, {CARD_COLUMNS} FROM stream WHERE id = ?1"))?,
            create: prepare(
                "INSERT INTO stream (id, version, kind, status, belongs, title, open, live, created, updated, data, sum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?9, ?10, ?11)",
            )?,
            touch: prepare(
                "UPDATE stream SET version = ?2, updated = ?3, data = ?4, sum = ?5 WHERE number = ?1 AND version = ?6",
            )?,
            replace: prepare(
                "UPDATE stream SET version = ?2, kind = ?3, status = ?4, belongs = ?5, title = ?6, open = ?7, live = 1,
                 created = ?8, updated = ?9, data = ?10, sum = ?11 WHERE number = ?1 AND version = ?12",
            )?,
            rest: prepare(
                "UPDATE stream SET live = 0 WHERE number = ?1
                 AND NOT EXISTS (SELECT 1 FROM effect WHERE stream = ?1)
                 AND NOT EXISTS (SELECT 1 FROM timer WHERE stream = ?1)",
            )?,
            log: prepare("INSERT INTO log (position, stream, first, count, events) VALUES (?1, ?2, ?3, ?4, ?5)")?,
            put_row: prepare("INSERT OR REPLACE INTO piece (stream, major, minor, data, sum) VALUES (?1, ?2, ?3, ?4, ?5)")?,
            drop_row: prepare("DELETE FROM piece WHERE stream = ?1 AND major = ?2 AND minor = ?3")?,
            put_effect: prepare("INSERT OR REPLACE INTO effect (stream, id, kind, data, sum) VALUES (?1, ?2, ?3, ?4, ?5)")?,
            drop_effect: prepare("DELETE FROM effect WHERE stream = ?1 AND id = ?2")?,
            hold: prepare("UPDATE effect SET holder = ?3, until = ?4 WHERE stream = ?1 AND id = ?2")?,
            put_timer: prepare("INSERT OR REPLACE INTO timer (stream, key, due) VALUES (?1, ?2, ?3)")?,
            drop_timer: prepare("DELETE FROM timer WHERE stream = ?1 AND key = ?2")?,
            put_blob: prepare("INSERT OR IGNORE INTO blob (digest, body, sum) VALUES (?1, ?2, ?3)")?,
            use_blob: prepare("INSERT OR IGNORE INTO blob_use (stream, digest) VALUES (?1, ?2)")?,
        })
    }

    /// Stores one append, or says that it conflicts and has changed nothing.
    pub(super) fn append(
        &mut self,
        append: &Append,
        knowledge: &mut Knowledge,
        place: &Place,
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
                knowledge.learn(&append.stream, Known { number, version: append.version(), card });
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

    fn find(&mut self, append: &Append) -> Result<Option<Known>, rusqlite::Error> {
        let known = |row: &rusqlite::Row<'_>| {
            Ok(Known { number: row.get(0)?, version: row.get::<_, i64>(1)? as u64, card: card(row, 2)? })
        };
        self.find.query_row([append.stream.as_str()], known).optional()
    }

    fn create(&mut self, append: &Append) -> Result<i64, rusqlite::Error> {
        let card = &append.header.card;
        self.create.insert(params![
            append.stream.as_str(),
            append.version() as i64,
            card.kind,
            card.status,
            card.group,
            card.title,
            card.open,
            card.created,
            card.updated,
            append.header.data,
            header_sum(&append.stream, append.version(), &append.header),
        ])
    }

    /// Writes the header; the cheap way if nothing changed that stands in an index.
    fn header(&mut self, append: &Append, known: &Known) -> Result<usize, rusqlite::Error> {
        let header = &append.header;
        let (new, old) = (append.version() as i64, append.expected as i64);
        let card = &header.card;
        if card.open && same_but_time(card, &known.card) {
            return self.touch.execute(params![
                known.number,
                new,
                card.updated,
                header.data,
                header_sum(&append.stream, append.version(), header),
                old
            ]);
        }
        self.replace.execute(params![
            known.number,
            new,
            card.kind,
            card.status,
            card.group,
            card.title,
            card.open,
            card.created,
            card.updated,
            header.data,
            header_sum(&append.stream, append.version(), header),
            old
        ])
    }

    fn contents(&mut self, append: &Append, number: i64, first: u64) -> Result<(), rusqlite::Error> {
        let count = append.events.len() as i64;
        let events = codec::encode(&append.events);
        self.log.execute(params![first as i64, number, append.expected as i64 + 1, count, events])?;
        for (key, row) in &append.rows {
            match row {
                Some(row) => self.put_row.execute(params![number, key.0, key.1, row, row_sum(number, *key, row)])?,
                None => self.drop_row.execute(params![number, key.0, key.1])?,
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
            self.hold.execute(params![number, id, holder, until])?;
        }
        for (key, due) in &append.timers {
            match due {
                Some(due) => self.put_timer.execute(params![number, key, due])?,
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
