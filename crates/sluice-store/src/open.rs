//! From an address to a store: `sqlite:PATH`, `postgres://…`, `memory:`.
//!
//! The only place that knows which kinds of store there are.

use std::path::Path;

use crate::memory::Memory;
use crate::postgres::{Hazard, Postgres};
use crate::sqlite::{MissingLogPolicy, Sqlite};
use crate::{Damage, Meaning, Order, Query, Reader, StoreError, Writer};

/// A store that was opened. Clones are the same store.
#[derive(Clone)]
pub struct Store(StoreBackend);

#[derive(Clone)]
enum StoreBackend {
    Memory(Memory),
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

impl Store {
    /// Opens the store at an address, makes it if it is not there, and brings its schema up to date.
    pub fn open(address: &str) -> Result<Store, StoreError> {
        if address == "memory:" {
            return Ok(Store(StoreBackend::Memory(Memory::new())));
        }
        if let Some(path) = address.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
            return Ok(Store(StoreBackend::Sqlite(Sqlite::open(path.as_ref())?)));
        }
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            return Ok(Store(StoreBackend::Postgres(Box::new(Postgres::open(address)?))));
        }
        Err(StoreError::Address(address.to_owned()))
    }

    /// Opens the store in a file. It says whether one is taken whose log is missing.
    pub fn open_file(file: &std::path::Path, log: MissingLogPolicy) -> Result<Store, StoreError> {
        Ok(Store(StoreBackend::Sqlite(Sqlite::open_with(file, log)?)))
    }

    /// Whether its file is still there under its name. A server is asked whenever something is stored or read.
    pub fn present(&self) -> Result<(), StoreError> {
        match &self.0 {
            StoreBackend::Sqlite(store) => store.present(),
            StoreBackend::Memory(_) | StoreBackend::Postgres(_) => Ok(()),
        }
    }

    /// Whether processes on other machines can own it too.
    pub fn is_shared(&self) -> bool {
        match &self.0 {
            StoreBackend::Memory(_) | StoreBackend::Sqlite(_) => false,
            StoreBackend::Postgres(_) => true,
        }
    }

    /// What the store at an address is called in messages: where it is, never with a password. Opens nothing.
    pub fn name_of(address: &str) -> Result<String, StoreError> {
        if address == "memory:" || address.strip_prefix("sqlite:").is_some_and(|path| !path.is_empty()) {
            return Ok(address.to_owned());
        }
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            return Postgres::name_of(address);
        }
        Err(StoreError::Address(address.to_owned()))
    }

    /// An address without the password in it.
    pub fn without_password(address: &str) -> String {
        let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
        let (before, query) = rest.split_once('?').map_or((rest, None), |(before, query)| (before, Some(query)));
        let (user, place) = before.rsplit_once('@').map_or((None, before), |(user, place)| (Some(user), place));
        let user = user.map(|user| format!("{}@", user.split(':').next().unwrap_or_default())).unwrap_or_default();
        let kept: Vec<&str> =
            query.into_iter().flat_map(|it| it.split('&')).filter(|it| !it.starts_with("password=")).collect();
        let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
        format!("{scheme}://{user}{place}{query}")
    }

    /// A writer, which owns nothing yet.
    pub fn writer(&self) -> Result<Box<dyn Writer>, StoreError> {
        Ok(match &self.0 {
            StoreBackend::Memory(store) => Box::new(store.writer()),
            StoreBackend::Sqlite(store) => Box::new(store.writer()?),
            StoreBackend::Postgres(store) => Box::new(store.writer()?),
        })
    }

    /// Copies the store to a new file while it is used; see [`Sqlite::backup`]. A server is copied by its own means.
    pub fn backup(&self, to: &std::path::Path) -> Result<(), StoreError> {
        match &self.0 {
            StoreBackend::Sqlite(store) => store.backup(to),
            StoreBackend::Memory(_) => Err(StoreError::Address("memory:".to_owned())),
            StoreBackend::Postgres(_) => Err(StoreError::Misuse("a server's store is copied with pg_dump".to_owned())),
        }
    }

    /// Brings everything into the file itself, so that nothing of it stands in a log beside it. Nobody may use it.
    pub fn settle(&self) -> Result<(), StoreError> {
        match &self.0 {
            StoreBackend::Sqlite(store) => store.settle(),
            StoreBackend::Memory(_) | StoreBackend::Postgres(_) => Ok(()),
        }
    }

    /// Looks for damage that single answers cannot notice; see [`Sqlite::check`]. A server looks after itself.
    pub fn check(&self) -> Result<(), StoreError> {
        match &self.0 {
            StoreBackend::Sqlite(store) => store.check(),
            StoreBackend::Memory(_) | StoreBackend::Postgres(_) => Ok(()),
        }
    }

    /// Settings of a server with which it can lose what it said was stored. A file has none.
    pub fn hazards(&self) -> Result<Vec<Hazard>, StoreError> {
        match &self.0 {
            StoreBackend::Memory(_) | StoreBackend::Sqlite(_) => Ok(Vec::new()),
            StoreBackend::Postgres(store) => store.hazards(),
        }
    }

    /// Reads everything there is, compares it with its sums, and names all that is not as it was written. It takes
    /// longer the more there is.
    pub fn verify(&self) -> Result<Vec<Damage>, StoreError> {
        let mut found = match &self.0 {
            StoreBackend::Sqlite(store) => store.damage()?,
            StoreBackend::Memory(_) | StoreBackend::Postgres(_) => Vec::new(),
        };
        match read_all(&mut *self.reader()?, &mut found) {
            Err(error) if error.meaning() == Meaning::Damaged => {
                found.push(Damage { stream: None, why: error.to_string() });
                Ok(found)
            }
            read => read.map(|()| found),
        }
    }

    /// How many bytes a check of everything reads; `None` for a server, which looks after its own.
    pub fn bytes(&self) -> Option<u64> {
        match &self.0 {
            StoreBackend::Sqlite(store) => Some(store.bytes()),
            StoreBackend::Memory(_) | StoreBackend::Postgres(_) => None,
        }
    }

    /// How far the store in a file reaches, which nothing uses: see [`Store::reach`]. Nothing of it is changed.
    pub fn reach_of_file(path: &Path) -> Result<u64, StoreError> {
        Sqlite::reach_of(path)
    }

    /// The place in the log of what was ever stored last, for a store in a file.
    pub fn reach(&self) -> Result<Option<u64>, StoreError> {
        match &self.0 {
            StoreBackend::Sqlite(store) => store.reach().map(Some),
            StoreBackend::Memory(_) | StoreBackend::Postgres(_) => Ok(None),
        }
    }

    /// A reader with a connection of its own, which needs no ownership.
    pub fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(match &self.0 {
            StoreBackend::Memory(store) => Box::new(store.reader()),
            StoreBackend::Sqlite(store) => Box::new(store.reader()?),
            StoreBackend::Postgres(store) => Box::new(store.reader()?),
        })
    }
}

/// Reads every stream with its history. What is damaged is noted, and the rest read.
fn read_all(reader: &mut dyn Reader, found: &mut Vec<Damage>) -> Result<(), StoreError> {
    let mut query = Query { order: Order::Oldest, limit: PAGE, ..Query::default() };
    loop {
        let page = reader.list(&query)?;
        found.extend(page.damaged);
        for stream in page.items.into_iter().map(|it| it.stream) {
            let read = reader.load(&stream).and_then(|_| reader.history(&stream, 0, usize::MAX >> 1));
            match read {
                Ok(_) => {}
                Err(error) if error.meaning() == Meaning::Damaged => {
                    found.push(Damage { stream: Some(stream), why: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(()),
        }
    }
}

const PAGE: usize = 1000;

impl From<Memory> for Store {
    fn from(memory: Memory) -> Store {
        Store(StoreBackend::Memory(memory))
    }
}

impl From<Sqlite> for Store {
    fn from(sqlite: Sqlite) -> Store {
        Store(StoreBackend::Sqlite(sqlite))
    }
}

impl From<Postgres> for Store {
    fn from(postgres: Postgres) -> Store {
        Store(StoreBackend::Postgres(Box::new(postgres)))
    }
}
