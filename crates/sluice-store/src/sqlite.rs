//! A store in one SQLite file: write-ahead log, every commit synced.
//!
//! The file is opened, checked and brought up to date here. Each writer and reader has a connection of its own; none
//! starts a thread. Nothing is repaired: a damaged file is reported and left as it is.

mod fault;
mod held;
mod list;
mod reader;
mod schema;
mod sums;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::{Damage, StoreError, StreamId};
use fault::SqlitePath;
use held::SqliteFile;
pub use reader::SqliteReader;
pub use writer::SqliteWriter;

/// How long a commit waits for another process before it gives up.
const PATIENCE: Duration = Duration::from_secs(5);

/// A store in one SQLite file. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Sqlite {
    file: Arc<SqliteFile>,
}

/// Whether a file is opened whose log is missing though its engine had not given it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingLogPolicy {
    /// It is refused: what was stored last may only have stood in the log.
    Needed,
    /// It is taken as it is, by somebody who knows.
    MayBeMissing,
}

impl Sqlite {
    /// Opens the store in this file, makes it if it is not there, and brings its schema up to date.
    pub fn open(path: &Path) -> Result<Sqlite, StoreError> {
        Sqlite::open_with(path, MissingLogPolicy::Needed)
    }

    pub(crate) fn open_with(path: &Path, log: MissingLogPolicy) -> Result<Sqlite, StoreError> {
        let place = SqlitePath::new(path);
        // Whoever opens the file makes a log that is empty.
        let had_log = held::has_log(path);
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        // SQLite opens a file that it may not write without a word, and says so at the first write.
        if connection.is_readonly("main").map_err(|error| place.fault(error))? {
            return Err(StoreError::ReadOnly { place: place.to_string() });
        }
        let cannot = |error: std::io::Error| StoreError::CannotOpen { place: place.to_string(), source: error.into() };
        let file = Arc::new(SqliteFile::new(path).map_err(cannot)?);
        schema::update(&mut connection, &place)?;
        let is_in_use = schema::is_in_use(&connection).map_err(|error| place.fault(error))?;
        // One that an engine has taken meanwhile has a log by now.
        if log == MissingLogPolicy::Needed && is_in_use && !had_log && !held::has_log(path) {
            return Err(StoreError::NoLog { place: place.to_string() });
        }
        Ok(Sqlite { file })
    }

    /// A writer, which owns nothing yet.
    pub fn writer(&self) -> Result<SqliteWriter, StoreError> {
        Ok(SqliteWriter::new(self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?, self.file.clone()))
    }

    /// A reader with a read-only connection of its own, which needs no ownership.
    pub fn reader(&self) -> Result<SqliteReader, StoreError> {
        Ok(SqliteReader::new(self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?, self.file.clone()))
    }

    /// Whether the file is still there under its name.
    pub(crate) fn present(&self) -> Result<(), StoreError> {
        self.file.check()
    }

    /// The place in the log of what was ever stored last: it never falls, whatever is forgotten.
    pub(crate) fn reach(&self) -> Result<u64, StoreError> {
        reach(&self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?).map_err(|error| self.place().fault(error))
    }

    /// The same of a file that nothing uses. Nothing of it is changed by the look, nor anything beside it.
    pub(crate) fn reach_of(path: &Path) -> Result<u64, StoreError> {
        let escape = |letter: char| match letter {
            '%' | '?' | '#' => format!("%{:02x}", u32::from(letter)),
            other => other.to_string(),
        };
        let name: String = path.display().to_string().chars().map(escape).collect();
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let opened = Connection::open_with_flags(format!("file:{name}?immutable=1"), flags);
        opened.and_then(|connection| reach(&connection)).map_err(|error| SqlitePath::new(path).fault(error))
    }

    /// Writes a copy of the store as it is at this moment to a new file, while others go on writing.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        held::copy(&self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?, to)
    }

    /// Reads the whole file and compares every index with its table. Damage that hits a key can make something seem not
    /// to be there, which no single answer can notice; this does. It takes longer
    /// the larger the file is, so it is nothing for every start.
    pub fn check(&self) -> Result<(), StoreError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        match structure(&connection).map_err(|error| self.place().fault(error))?.pop() {
            None => Ok(()),
            Some(found) => Err(self.place().corrupt(found)),
        }
    }

    /// Everything that [`Sqlite::check`] notices and that is not in a stream, and bodies that are damaged or missing.
    pub(crate) fn damage(&self) -> Result<Vec<Damage>, StoreError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let look = || {
            let of_store = structure(&connection)?.into_iter().map(|why| Damage { stream: None, why });
            Ok(of_store.chain(bodies(&connection)?).collect())
        };
        look().map_err(|error| self.place().fault(error))
    }

    /// Brings what stands in the write-ahead log into the file, and empties the log: the file alone is the store.
    pub(crate) fn settle(&self) -> Result<(), StoreError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        schema::give_up(&connection).map_err(|error| self.place().fault(error))?;
        let settled = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        match settled.map_err(|error| self.place().fault(error))? {
            0 => Ok(()),
            _ => Err(StoreError::Busy { place: self.place().to_string() }),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    fn place(&self) -> SqlitePath {
        self.file.place()
    }

    fn connect(&self, flags: OpenFlags) -> Result<Connection, StoreError> {
        self.file.check()?;
        connect(self.file.path(), flags)
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let open = || {
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(64);
        // The last of all who hold the file removes its log, and not the last connection: see `Held`.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // Only macOS looks at this one: its plain fsync does not reach the disk.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "foreign_keys", false)?;
        // Looks at each page's structure when it is read, so that damage is an error and not an odd answer.
        connection.pragma_update(None, "cell_size_check", true)?;
        let writes = flags.contains(OpenFlags::SQLITE_OPEN_READ_WRITE);
        connection.pragma_update(None, "cache_size", if writes { WRITER_CACHE_KIB } else { READER_CACHE_KIB })?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        Ok(connection)
    };
    open().map_err(|error| SqlitePath::new(path).fault(error))
}

fn reach(connection: &Connection) -> rusqlite::Result<u64> {
    let last = "SELECT position + count - 1 FROM log ORDER BY position DESC LIMIT 1";
    let sql = format!("SELECT max(position, coalesce(({last}), 0)) FROM owner");
    connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).map(|reach| reach as u64)
}

fn structure(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({MOST_TOLD})"))?;
    let found: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(found.into_iter().filter(|line| line != "ok").collect())
}

/// Bodies whose bytes are not those that were written, and bodies that are not there, with the streams that need them.
fn bodies(connection: &Connection) -> Result<Vec<Damage>, rusqlite::Error> {
    let mut found = Vec::new();
    let mut statement = connection.prepare("SELECT digest, body, sum FROM blob")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let read = || Ok::<_, rusqlite::Error>((row.get::<_, Vec<u8>>(1)?, row.get::<_, i64>(2)?));
        if read().is_ok_and(|(body, should)| sums::sum(&[&body]) == should) {
            continue;
        }
        let digest: Vec<u8> = row.get(0)?;
        let of = "SELECT stream.id FROM blob_use JOIN stream ON stream.number = blob_use.stream WHERE digest = ?1";
        let streams = named(connection, of, &[&digest])?;
        let why = || "a body with a wrong checksum".to_owned();
        match streams.is_empty() {
            true => found.push(Damage { stream: None, why: why() }),
            false => found.extend(streams.into_iter().map(|it| Damage { stream: Some(it), why: why() })),
        }
    }
    let missing = "SELECT DISTINCT stream.id FROM blob_use JOIN stream ON stream.number = blob_use.stream
        WHERE NOT EXISTS (SELECT 1 FROM blob WHERE blob.digest = blob_use.digest)";
    let streams = named(connection, missing, &[])?;
    found.extend(streams.into_iter().map(|it| Damage { stream: Some(it), why: "a body is missing".to_owned() }));
    Ok(found)
}

fn named(
    connection: &Connection,
    sql: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<Vec<StreamId>, rusqlite::Error> {
    connection.prepare(sql)?.query_map(values, |row| Ok(StreamId(row.get(0)?)))?.collect()
}

const MOST_TOLD: u32 = 20;
/// The page cache of a writer, in KiB; SQLite takes negative numbers as such. It is taken as it is needed, and kept.
const WRITER_CACHE_KIB: i64 = -2_048;
/// The page cache of a reader. There are several of them in an engine, each keeps its own, and the system keeps the pages of
/// the file as well.
const READER_CACHE_KIB: i64 = -1_024;
/// How many pages the write-ahead log collects before they go to the file. A checkpoint costs two syncs and
/// writes each page once however often it changed, so fewer of them than SQLite's usual one per 1,000 pages is cheaper.
const CHECKPOINT_PAGES: i64 = 4_000;
