//! A store in one SQLite file: write-ahead log, every commit synced.
//!
//! The file is opened, checked and brought up to date here. Each writer and reader has a connection of its own; none
//! starts a thread. Nothing is repaired: a damaged file is reported and left as it is.

mod fault;
mod list;
mod reader;
mod schema;
mod writer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::StoreError;
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
        let place = self.place();
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let sql = "PRAGMA integrity_check(1)";
        let found: String = connection.query_row(sql, [], |row| row.get(0)).map_err(|error| place.fault(error))?;
        if found == "ok" { Ok(()) } else { Err(place.corrupt(found)) }
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

/// The page cache of a connection, in KiB; SQLite takes negative numbers as such. It is taken only as it is needed.
const CACHE_KIB: i64 = -16_384;
/// How many pages the write-ahead log collects before they go to the file. A checkpoint costs two syncs and
/// writes each page once however often it changed, so fewer of them than SQLite's usual one per 1,000 pages is cheaper.
const CHECKPOINT_PAGES: i64 = 4_000;
