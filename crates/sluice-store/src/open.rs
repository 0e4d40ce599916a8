//! From an address to a store: `sqlite:PATH`, `postgres://…`, `memory:`.
//!
//! The only place that knows which kinds of store there are.

use crate::memory::Memory;
use crate::postgres::{Hazard, Postgres};
use crate::sqlite::Sqlite;
use crate::{Reader, StoreError, Writer};

/// A store that was opened. Clones are the same store.
#[derive(Clone)]
pub struct Store(Kind);

#[derive(Clone)]
enum Kind {
    Memory(Memory),
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Store {
    /// Opens the store at an address, makes it if it is not there, and brings its schema up to date.
    pub fn open(address: &str) -> Result<Store, StoreError> {
        if address == "memory:" {
            return Ok(Store(Kind::Memory(Memory::new())));
        }
        if let Some(path) = address.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
            return Ok(Store(Kind::Sqlite(Sqlite::open(path.as_ref())?)));
        }
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            return Ok(Store(Kind::Postgres(Box::new(Postgres::open(address)?))));
        }
        Err(StoreError::Address(address.to_owned()))
    }

    /// Whether processes on other machines can own it too.
    pub fn is_shared(&self) -> bool {
        match &self.0 {
            Kind::Memory(_) | Kind::Sqlite(_) => false,
            Kind::Postgres(_) => true,
        }
    }

    /// A writer, which owns nothing yet.
    pub fn writer(&self) -> Result<Box<dyn Writer>, StoreError> {
        Ok(match &self.0 {
            Kind::Memory(store) => Box::new(store.writer()),
            Kind::Sqlite(store) => Box::new(store.writer()?),
            Kind::Postgres(store) => Box::new(store.writer()?),
        })
    }

    /// Copies the store to a new file while it is used; see [`Sqlite::backup`]. A server is copied by its own means.
    pub fn backup(&self, to: &std::path::Path) -> Result<(), StoreError> {
        match &self.0 {
            Kind::Sqlite(store) => store.backup(to),
            Kind::Memory(_) => Err(StoreError::Address("memory:".to_owned())),
            Kind::Postgres(_) => Err(StoreError::Misuse("a server's store is copied with pg_dump".to_owned())),
        }
    }

    /// Looks for damage that single answers cannot notice; see [`Sqlite::check`]. A server looks after itself.
    pub fn check(&self) -> Result<(), StoreError> {
        match &self.0 {
            Kind::Sqlite(store) => store.check(),
            Kind::Memory(_) | Kind::Postgres(_) => Ok(()),
        }
    }

    /// Settings of a server with which it can lose what it said was stored. A file has none.
    pub fn hazards(&self) -> Result<Vec<Hazard>, StoreError> {
        match &self.0 {
            Kind::Memory(_) | Kind::Sqlite(_) => Ok(Vec::new()),
            Kind::Postgres(store) => store.hazards(),
        }
    }

    /// A reader.
    pub fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(match &self.0 {
            Kind::Memory(store) => Box::new(store.reader()),
            Kind::Sqlite(store) => Box::new(store.reader()?),
            Kind::Postgres(store) => Box::new(store.reader()?),
        })
    }
}

impl From<Memory> for Store {
    fn from(memory: Memory) -> Store {
        Store(Kind::Memory(memory))
    }
}

impl From<Sqlite> for Store {
    fn from(sqlite: Sqlite) -> Store {
        Store(Kind::Sqlite(sqlite))
    }
}

impl From<Postgres> for Store {
    fn from(postgres: Postgres) -> Store {
        Store(Kind::Postgres(Box::new(postgres)))
    }
}
