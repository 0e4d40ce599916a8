//! A store in one SQLite file: write-ahead log, every commit synced.
//!
//! The file is opened, checked and brought up to date here. Each writer and reader has a connection of its own; none
//! starts a thread. Nothing is repaired: a damaged file is reported and left as it is.

mod fault;
mod list;
mod reader;
mod schema;
mod sums;
mod writer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::{Damage, StoreError, StreamId};
use fault::Place;
pub use reader::SqliteReader;
pub use writer::SqliteWriter;

/// How long a commit waits for another process before it gives up.
const PATIENCE: Duration = Duration::from_secs(5);

/// A store in one SQLite file. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Sqlite {
    path: PathBuf,
}

impl Sqlite {
    /// Opens the store in this file, makes it if it is not there, and brings its schema up to date.
    pub fn open(path: &Path) -> Result<Sqlite, StoreError> {
        let sqlite = Sqlite { path: path.to_owned() };
        let place = sqlite.place();
        let mut connection = sqlite.connect(OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        // SQLite opens a file that it may not write without a word, and says so at the first write.
        if connection.is_readonly("main").map_err(|error| place.fault(error))? {
            return Err(StoreError::ReadOnly { place: place.to_string() });
        }
        schema::update(&mut connection, &place)?;
        Ok(sqlite)
    }

    /// A writer, which owns nothing yet.
    pub fn writer(&self) -> Result<SqliteWriter, StoreError> {
        Ok(SqliteWriter::new(self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?, self.place()))
    }

    /// A reader.
    pub fn reader(&self) -> Result<SqliteReader, StoreError> {
        Ok(SqliteReader::new(self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?, self.place()))
    }

    /// Writes a copy of the store as it is at this moment to a new file, while others go on writing.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let from = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let target = to.to_str().ok_or_else(|| StoreError::Address(to.display().to_string()))?;
        // Not the page-by-page interface: it starts again whenever the writer commits, so it may never end.
        from.execute("VACUUM INTO ?1", [target]).map_err(|error| Place::new(to).fault(error))?;
        Ok(())
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

    /// Brings what stands in the write-ahead log into the file, and empties the log.
    pub(crate) fn settle(&self) -> Result<(), StoreError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let settled = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        match settled.map_err(|error| self.place().fault(error))? {
            0 => Ok(()),
            _ => Err(StoreError::Busy { place: self.place().to_string() }),
        }
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |about| about.len())
    }

    fn place(&self) -> Place {
        Place::new(&self.path)
    }

    fn connect(&self, flags: OpenFlags) -> Result<Connection, StoreError> {
        let open = || {
            let connection = Connection::open_with_flags(&self.path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
            connection.busy_timeout(PATIENCE)?;
            connection.set_prepared_statement_cache_capacity(64);
            connection.pragma_update(None, "synchronous", "FULL")?;
            // Only macOS looks at this one: its plain fsync does not reach the disk.
            connection.pragma_update(None, "fullfsync", true)?;
            connection.pragma_update(None, "foreign_keys", false)?;
            // Looks at each page's structure when it is read, so that damage is an error and not an odd answer.
            connection.pragma_update(None, "cell_size_check", true)?;
            connection.pragma_update(None, "cache_size", CACHE_KIB)?;
            connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
            Ok(connection)
        };
        open().map_err(|error| self.place().fault(error))
    }
}

/// What is wrong with the structure of the file.
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

/// So many findings about the structure are told.
const MOST_TOLD: u32 = 20;
/// The page cache of a connection, in KiB; SQLite takes negative numbers as such. It is taken only as it is needed.
const CACHE_KIB: i64 = -16_384;
/// How many pages the write-ahead log collects before they go to the file. A checkpoint costs two syncs and
/// writes each page once however often it changed, so fewer of them than SQLite's usual one per 1,000 pages is cheaper.
const CHECKPOINT_PAGES: i64 = 4_000;
