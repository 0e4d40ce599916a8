//! The writing side on SQLite: one transaction per batch, and what the owner knows of streams it wrote before.
//!
//! No savepoints: an append can only fail on its version, and that is looked at before anything of it is written.
//! What is known of streams is true as long as the epoch is, and is thrown away when a transaction fails.

mod knowledge;
mod statements;

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::fault::SqlitePath;
use super::held::{SqliteFile, SqliteWal};
use crate::memory::system_time;
use crate::ownership::StoreOwner;
use crate::{Append, Conflict, Cursor, Ownership, StoreError, StreamId, Writer, admit};
use knowledge::WriterKnowledge;
use statements::SqliteStatements;

/// How many rows of the log its index may lag behind: a reader of a history looks through so many at most.
const MOST_BEHIND: u64 = 64;

/// The writing side of a [`super::Sqlite`].
pub struct SqliteWriter {
    connection: Connection,
    file: Arc<SqliteFile>,
    log: Option<SqliteWal>,
    place: SqlitePath,
    epoch: Option<u64>,
    knowledge: WriterKnowledge,
    /// The file itself says that it is in use, and not only its log.
    is_marked: bool,
}

impl SqliteWriter {
    pub(super) fn new(connection: Connection, file: Arc<SqliteFile>) -> SqliteWriter {
        let (place, knowledge) = (file.place(), WriterKnowledge::default());
        SqliteWriter { connection, file, log: None, place, epoch: None, knowledge, is_marked: false }
    }

    /// Brings into the file that it is in use. A reader may be in the way; then it is done the next time.
    fn mark(&mut self) {
        if !self.is_marked {
            let counts = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get(2)?));
            let done = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], counts);
            self.is_marked = done.is_ok_and(|(busy, log, brought)| busy == 0 && log == brought);
        }
    }

    /// Does something in one transaction that is durable afterwards, in the file of this name. Whatever fails, nothing is
    /// known any more.
    ///
    /// Not the driver's own transactions: they parse their statements anew each time.
    fn commit<T>(
        &mut self,
        work: impl FnOnce(&Connection, &mut WriterKnowledge) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (place, connection) = (&self.place, &self.connection);
        let say = |sql: &str| {
            let done = connection.prepare_cached(sql).and_then(|mut it| it.execute([]));
            done.map_err(|error| place.fault(error))
        };
        let sound = self.file.check_log(connection, self.log.as_ref());
        let done = sound.and_then(|()| say("BEGIN IMMEDIATE")).and_then(|_| {
            let answer = work(connection, &mut self.knowledge)?;
            say("COMMIT")?;
            self.file.check_stored(connection, &mut self.log)?;
            Ok(answer)
        });
        if done.is_err() {
            self.knowledge.clear();
            // A transaction that SQLite has not ended by itself. If it cannot be ended, the next one cannot begin.
            if !connection.is_autocommit() {
                let _ = say("ROLLBACK");
            }
        }
        done
    }

    fn mine(&self) -> Result<u64, StoreError> {
        self.epoch.ok_or(StoreError::LostOwnership)
    }
}

impl Drop for SqliteWriter {
    fn drop(&mut self) {
        self.file.without_writer();
    }
}

impl Writer for SqliteWriter {
    fn own(&mut self, owner: &str, ttl: Duration) -> Result<Ownership, StoreError> {
        let (place, mine) = (self.place.clone(), self.epoch);
        let ownership = self.commit(|connection, _| {
            let mut stored = read_owner(connection).map_err(|error| place.fault(error))?;
            let ownership = stored.take(mine, owner, system_time(), ttl)?;
            write_owner(connection, &stored).map_err(|error| place.fault(error))?;
            Ok(ownership)
        })?;
        // Not at each commit: a path costs more to ask, and the server asks it before each answer.
        self.file.check_names(&self.connection)?;
        if mine.is_none() {
            self.knowledge.clear();
            self.is_marked = false;
        }
        self.epoch = Some(ownership.epoch);
        self.mark();
        Ok(ownership)
    }

    fn release(&mut self) -> Result<(), StoreError> {
        let Some(epoch) = self.epoch.take() else { return Ok(()) };
        let place = self.place.clone();
        self.knowledge.clear();
        self.commit(|connection, _| {
            let sql = "UPDATE owner SET until = 0, in_use = NULL WHERE epoch = ?1";
            connection.execute(sql, [epoch as i64]).map_err(|error| place.fault(error))?;
            Ok(())
        })?;
        self.file.check_names(&self.connection)?;
        self.file.without_writer();
        // So that the file alone is the whole store: people copy it. A reader may be in the way, and then it is not.
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        Ok(())
    }

    fn append(&mut self, batch: &[Append]) -> Result<Vec<Result<u64, Conflict>>, StoreError> {
        admit::admit(batch)?;
        let (place, mine) = (self.place.clone(), self.mine()?);
        self.commit(|connection, knowledge| {
            check_epoch(connection, mine, &place)?;
            let mut statements = SqliteStatements::new(connection);
            let mut answers = Vec::with_capacity(batch.len());
            for append in batch {
                answers.push(statements.append(append, knowledge, &place)?);
            }
            knowledge.index(connection, MOST_BEHIND).map_err(|error| place.fault(error))?;
            Ok(answers)
        })
    }

    fn follow(&mut self, upto: Cursor) -> Result<(), StoreError> {
        let (place, mine) = (self.place.clone(), self.mine()?);
        self.commit(|connection, _| {
            check_epoch(connection, mine, &place)?;
            let sql = "UPDATE owner SET followed = ?1";
            connection.execute(sql, [upto.0 as i64]).map_err(|error| place.fault(error))?;
            Ok(())
        })
    }

    fn forget(&mut self, streams: &[StreamId]) -> Result<usize, StoreError> {
        let (place, mine) = (self.place.clone(), self.mine()?);
        self.commit(|connection, knowledge| {
            check_epoch(connection, mine, &place)?;
            let mut forget = || {
                let last = knowledge.index(connection, 0)?;
                // Before the last row of the log may go, its place must be written down.
                connection.execute("UPDATE owner SET position = max(position, ?1)", [last as i64])?;
                let mut gone = 0;
                for stream in streams {
                    gone += usize::from(forget_one(connection, stream)?);
                    knowledge.remove(stream);
                }
                Ok(gone)
            };
            forget().map_err(|error| place.fault(error))
        })
    }
}

fn read_owner(connection: &Connection) -> Result<StoreOwner, rusqlite::Error> {
    connection.query_row("SELECT epoch, name, until FROM owner", [], |row| {
        Ok(StoreOwner { epoch: row.get::<_, i64>(0)? as u64, name: row.get(1)?, until: row.get(2)? })
    })
}

fn write_owner(connection: &Connection, owner: &StoreOwner) -> Result<(), rusqlite::Error> {
    let sql = "UPDATE owner SET epoch = ?1, name = ?2, until = ?3, in_use = 1";
    connection.execute(sql, params![owner.epoch as i64, owner.name, owner.until])?;
    Ok(())
}

fn check_epoch(connection: &Connection, mine: u64, place: &SqlitePath) -> Result<(), StoreError> {
    let epoch = || connection.prepare_cached("SELECT epoch FROM owner")?.query_row([], |row| row.get::<_, i64>(0));
    let epoch = epoch().map_err(|error| place.fault(error))?;
    if epoch as u64 == mine { Ok(()) } else { Err(StoreError::LostOwnership) }
}

fn forget_one(connection: &Connection, stream: &StreamId) -> Result<bool, rusqlite::Error> {
    let find = "DELETE FROM stream WHERE id = ?1 AND live = 0 RETURNING number";
    let number: Option<i64> =
        connection.prepare_cached(find)?.query_row([stream.as_str()], |row| row.get(0)).optional()?;
    let Some(number) = number else { return Ok(false) };
    let log = "DELETE FROM log WHERE position IN (SELECT position FROM log_index WHERE stream = ?1)";
    for sql in [log, "DELETE FROM log_index WHERE stream = ?1", "DELETE FROM part WHERE stream = ?1"] {
        connection.prepare_cached(sql)?.execute([number])?;
    }
    let mut used = connection.prepare_cached("DELETE FROM blob_use WHERE stream = ?1 RETURNING digest")?;
    let digests: Vec<Vec<u8>> = used.query_map([number], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let unused = "DELETE FROM blob WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM blob_use WHERE digest = ?1)";
    let mut unused = connection.prepare_cached(unused)?;
    for digest in digests {
        unused.execute([digest])?;
    }
    Ok(true)
}
