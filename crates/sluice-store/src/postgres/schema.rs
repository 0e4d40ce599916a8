//! The tables of a PostgreSQL store, and the steps from each version of them to the next.
//!
//! A version that has been shipped is never edited; a change is a new step. Tables of a newer version are refused.

use super::link::{PostgresLink, PostgresSession, PostgresTrouble};
use crate::StoreError;

/// The steps; the stored version says how many are behind.
const STEPS: [&str; 2] = [VERSION_1, VERSION_2];

/// Keeps two engines from making the tables at once: `sluice` in ASCII.
const LOCK: i64 = 0x0073_6c75_6963_6500;

/// Into how many parts streams are divided, for the day when several engines share a store. Must never change.
const PARTS: u32 = 256;

/// The part of a stream. Must never change.
pub(super) fn part(stream: &str) -> i16 {
    (crc32fast::hash(stream.as_bytes()) % PARTS) as i16
}

// - Names are ordered by their bytes, as everywhere else, so nothing depends on the locale of the server.
// - `owner` has one row, for all parts. Its `position` is the end of the log: taken under the row's lock, which is held
//   until the commit, so places become visible in their order. A sequence would hand them out before.
// - `log` has a row per append. `epoch` with `position` says which writer's batch it was, so a writer whose commit was
//   cut off can find out what became of it.
const VERSION_1: &str = r#"
CREATE TABLE owner (
    one      boolean PRIMARY KEY CHECK (one),
    epoch    bigint NOT NULL,
    name     text,
    until    bigint NOT NULL,
    position bigint NOT NULL
);
INSERT INTO owner VALUES (true, 0, NULL, 0, 0);

CREATE TABLE stream (
    id      text COLLATE "C" PRIMARY KEY,
    part    smallint NOT NULL,
    version bigint NOT NULL,
    kind    text NOT NULL,
    status  text NOT NULL,
    belongs text NOT NULL,
    title   text NOT NULL,
    open    boolean NOT NULL,
    live    boolean NOT NULL,
    created bigint NOT NULL,
    updated bigint NOT NULL,
    data    bytea NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX stream_created ON stream (created, id);
CREATE INDEX stream_kind ON stream (kind, created, id);
CREATE INDEX stream_status ON stream (kind, status, created, id);
CREATE INDEX stream_belongs ON stream (belongs, created, id);
CREATE INDEX stream_open ON stream (created, id) WHERE open;
CREATE INDEX stream_live ON stream (id) WHERE live;

CREATE TABLE log (
    position bigint PRIMARY KEY,
    epoch    bigint NOT NULL,
    part     smallint NOT NULL,
    stream   text COLLATE "C" NOT NULL,
    first    bigint NOT NULL,
    events   bytea NOT NULL,
    UNIQUE (stream, first)
);

CREATE TABLE piece (
    stream text COLLATE "C" NOT NULL,
    major  bigint NOT NULL,
    minor  bigint NOT NULL,
    data   bytea NOT NULL,
    PRIMARY KEY (stream, major, minor)
) WITH (fillfactor = 70);

CREATE TABLE effect (
    stream text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL,
    kind   text NOT NULL,
    data   bytea NOT NULL,
    holder text,
    until  bigint,
    PRIMARY KEY (stream, id)
) WITH (fillfactor = 70);

CREATE TABLE timer (
    stream text COLLATE "C" NOT NULL,
    key    text COLLATE "C" NOT NULL,
    due    bigint NOT NULL,
    PRIMARY KEY (stream, key)
);

CREATE TABLE blob (
    digest bytea PRIMARY KEY,
    body   bytea NOT NULL
);
CREATE TABLE blob_use (
    stream text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    PRIMARY KEY (stream, digest)
);
CREATE INDEX blob_use_digest ON blob_use (digest);
"#;

/// How far the log has been acted upon.
const VERSION_2: &str = "ALTER TABLE owner ADD COLUMN followed bigint";

/// Brings the tables up to date, or says why they cannot be used.
pub(super) fn update(link: &mut PostgresLink) -> Result<(), StoreError> {
    let place = link.place().to_owned();
    let known = STEPS.len() as u32;
    let check = |found: u32| {
        let too_new = StoreError::TooNew { place: place.clone(), found, known };
        if found > known { Err(PostgresTrouble::Store(too_new)) } else { Ok(found) }
    };
    // Asked first without changing anything: an engine may run as a role that must not make tables.
    if link.run(async |session| check(version(session).await?))? == known {
        return Ok(());
    }
    link.run(async |session| {
        session.client.batch_execute("BEGIN").await?;
        session.client.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        let found = match check(version(session).await?) {
            Ok(found) => found,
            Err(refusal) => {
                session.client.batch_execute("ROLLBACK").await?;
                return Err(refusal);
            }
        };
        if found == 0 {
            let first = "CREATE SCHEMA IF NOT EXISTS sluice;
                CREATE TABLE schema_version (version integer NOT NULL);
                INSERT INTO schema_version VALUES (0)";
            session.client.batch_execute(first).await?;
        }
        for step in STEPS.iter().skip(found as usize) {
            session.client.batch_execute(step).await?;
        }
        session.client.execute("UPDATE schema_version SET version = $1", &[&(known as i32)]).await?;
        session.client.batch_execute("COMMIT").await?;
        Ok(())
    })
}

/// The version of the tables; 0 if there are none.
async fn version(session: &PostgresSession) -> Result<u32, PostgresTrouble> {
    let there = "SELECT to_regclass('sluice.schema_version') IS NOT NULL";
    if !session.client.query_one(there, &[]).await?.get::<_, bool>(0) {
        return Ok(0);
    }
    let row = session.client.query_one("SELECT version FROM sluice.schema_version", &[]).await?;
    Ok(row.get::<_, i32>(0).unsigned_abs())
}
