//! The tables of a SQLite store, and the steps from each version of them to the next.
//!
//! A version that has been shipped is never edited; a change is a new step. A file of a newer version is refused.

use rusqlite::{Connection, TransactionBehavior};

use super::fault::SqlitePath;
use crate::StoreError;

/// Says in the file that it is ours: `SLUC`.
const APPLICATION: i64 = 0x534c_5543;

/// The steps; the version of a file says how many it has behind it.
const STEPS: [&str; 3] = [VERSION_1, VERSION_2, VERSION_3];

// Streams have a number, because their names would stand in every key of every table.
//
// A commit writes whole pages, so what a step changes stands side by side. `part` holds all of a stream that changes
// with every append, in the order rows, effects, timers, header: a run that goes forward writes its last row, its
// effects and its header on one page. What stands in `stream` changes seldom, and so do its indexes. `log_index` lags
// behind: the writer brings it up to date every so many appends, and whoever reads looks through the rest of the log.
// A table for each of these with every index kept up was measured first: five pages for a step instead of two.
const VERSION_1: &str = "
CREATE TABLE owner (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    epoch    INTEGER NOT NULL,
    name     TEXT,
    until    INTEGER NOT NULL,
    -- The last place in the log whose row may have been forgotten; places are never given twice.
    position INTEGER NOT NULL,
    -- The last place in the log that log_index knows.
    indexed  INTEGER NOT NULL
) STRICT;
INSERT INTO owner VALUES (1, 0, NULL, 0, 0, 0);

CREATE TABLE stream (
    number  INTEGER PRIMARY KEY,
    id      TEXT NOT NULL UNIQUE,
    kind    TEXT NOT NULL,
    status  TEXT NOT NULL,
    belongs TEXT NOT NULL,
    title   TEXT NOT NULL,
    open    INTEGER NOT NULL,
    live    INTEGER NOT NULL,
    created INTEGER NOT NULL
) STRICT;
CREATE INDEX stream_created ON stream (created, id);
CREATE INDEX stream_kind ON stream (kind, created, id);
CREATE INDEX stream_status ON stream (kind, status, created, id);
CREATE INDEX stream_belongs ON stream (belongs, created, id);
CREATE INDEX stream_open ON stream (created, id) WHERE open = 1;
CREATE INDEX stream_live ON stream (id) WHERE live = 1;

CREATE TABLE log (
    position INTEGER PRIMARY KEY,
    stream   INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    events   BLOB NOT NULL
) STRICT;
CREATE TABLE log_index (
    stream   INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (stream, first)
) STRICT, WITHOUT ROWID;

-- what  key            kind  version  time     holder   data  sum
-- 0     of a row       -     -        -        -        yes   yes
-- 1     of an effect   yes   -        until    or null  yes   yes
-- 2     of a timer     -     -        due      -        -     -
-- 3     0, the header  -     yes      updated  -        yes   yes
CREATE TABLE part (
    stream  INTEGER NOT NULL,
    what    INTEGER NOT NULL,
    key     ANY NOT NULL,
    kind    TEXT,
    version INTEGER,
    time    INTEGER,
    holder  TEXT,
    data    BLOB,
    sum     INTEGER,
    PRIMARY KEY (stream, what, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE blob (
    digest BLOB NOT NULL PRIMARY KEY,
    body   BLOB NOT NULL,
    sum    INTEGER NOT NULL
) STRICT;
CREATE TABLE blob_use (
    stream INTEGER NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (stream, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_use_digest ON blob_use (digest);
";

// Sums for what had none: rows of the log with their place and stream, and, in columns that stood empty, timers (`sum`)
// and leases (`version`). What was written before has none, and is believed.
const VERSION_2: &str = "
ALTER TABLE log ADD COLUMN sum INTEGER;
-- How far the log has been acted upon.
ALTER TABLE owner ADD COLUMN followed INTEGER;
";

// Whether somebody has taken the store and not given it up: then what was stored last may only stand in the log beside the
// file, and a file without its log is not whole. It is brought into the file when the store is taken.
const VERSION_3: &str = "
ALTER TABLE owner ADD COLUMN in_use INTEGER;
";

/// Whether an owner has taken the store and not given it up.
pub(super) fn is_in_use(connection: &Connection) -> Result<bool, rusqlite::Error> {
    connection.query_row("SELECT in_use IS NOT NULL FROM owner", [], |row| row.get(0))
}

/// The file alone is the whole store, once this has come from the log into it.
pub(super) fn give_up(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute("UPDATE owner SET in_use = NULL", []).map(drop)
}

/// Brings a file up to date, or says why it cannot be used.
pub(super) fn update(connection: &mut Connection, place: &SqlitePath) -> Result<(), StoreError> {
    let fault = |error| place.fault(error);
    let known = STEPS.len() as u32;
    let found = version(connection, place)?;
    if found > known {
        return Err(StoreError::TooNew { place: place.to_string(), found, known });
    }
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(fault)?;
    if mode != "wal" {
        let detail = format!("its journal is `{mode}`, and cannot be made `wal`; use a local disk");
        return Err(StoreError::NotAStore { place: place.to_string(), detail });
    }
    if found == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
    // Another process may have been quicker.
    let found = version(&transaction, place)?;
    for (step, text) in (1_u32..).zip(STEPS).skip(found as usize) {
        transaction.execute_batch(text).map_err(fault)?;
        transaction.pragma_update(None, "user_version", step).map_err(fault)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(fault)?;
    transaction.commit().map_err(fault)
}

/// The version of the schema; 0 for an empty file.
fn version(connection: &Connection, place: &SqlitePath) -> Result<u32, StoreError> {
    let number =
        |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(|error| place.fault(error));
    let application = number("PRAGMA application_id")?;
    if application == APPLICATION {
        return Ok(u32::try_from(number("PRAGMA user_version")?).unwrap_or(u32::MAX));
    }
    if application == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0 {
        return Ok(0);
    }
    Err(StoreError::NotAStore { place: place.to_string(), detail: "a database of another program".to_owned() })
}
