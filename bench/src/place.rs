//! Where it is measured: a folder on one disk, and a PostgreSQL of one's own if there is one on this machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use sluice_store::Store;
use sluice_store::testing::Cluster;
use tempfile::TempDir;

use crate::floor::{BarePostgres, BareSqlite, Floor};
use crate::table::Table;

/// What is printed where PostgreSQL would be.
const NO_POSTGRES: &str = "PostgreSQL is not installed";

/// A place to measure in. It is gone afterwards.
pub struct Place {
    folder: TempDir,
    folders: AtomicU32,
    cluster: OnceLock<Option<Cluster>>,
    /// The addresses that were given out.
    databases: Mutex<Vec<String>>,
    only: Option<Kind>,
}

/// The stores that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    Sqlite,
    /// A server.
    Postgres,
}

impl Kind {
    /// The word that asks for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Sqlite => "sqlite",
            Kind::Postgres => "postgres",
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Sqlite => "SQLite",
            Kind::Postgres => "PostgreSQL",
        }
    }
}

impl Place {
    /// A place inside this folder, for stores of all kinds or of one.
    pub fn new(folder: &Path, only: Option<Kind>) -> Place {
        let folder = tempfile::tempdir_in(folder).unwrap();
        Place { folder, folders: AtomicU32::new(0), cluster: OnceLock::new(), databases: Mutex::default(), only }
    }

    /// The kinds that are measured. For a kind that is wanted and not there, the table says so in this line.
    pub fn kinds(&self, table: &Table, line: impl Fn(Kind) -> String) -> Vec<Kind> {
        let wanted = [Kind::Sqlite, Kind::Postgres].into_iter().filter(|kind| self.wants(*kind));
        let (there, missing): (Vec<Kind>, Vec<Kind>) = wanted.partition(|kind| self.has(*kind));
        missing.iter().for_each(|kind| table.missing(&line(*kind), NO_POSTGRES));
        there
    }

    /// Whether stores of this kind are to be measured.
    pub fn wants(&self, kind: Kind) -> bool {
        self.only.is_none_or(|only| only == kind)
    }

    /// A new folder.
    pub fn folder(&self) -> PathBuf {
        let path = self.folder.path().join(self.folders.fetch_add(1, Ordering::Relaxed).to_string());
        std::fs::create_dir(&path).unwrap();
        path
    }

    /// Whether stores of this kind can be had. The server is started when it is first asked for.
    fn has(&self, kind: Kind) -> bool {
        match kind {
            Kind::Sqlite => true,
            Kind::Postgres => self.cluster().is_some(),
        }
    }

    /// A new, empty store.
    pub fn store(&self, kind: Kind) -> Store {
        let address = match kind {
            Kind::Sqlite => format!("sqlite:{}", self.folder().join("bench.db").display()),
            Kind::Postgres => self.database(),
        };
        Store::open(&address).unwrap()
    }

    /// A new floor for stores of this kind, as it is after some use.
    pub fn floor(&self, kind: Kind) -> Box<dyn Floor> {
        match kind {
            Kind::Sqlite => Box::new(BareSqlite::new(&self.folder()).settled()),
            Kind::Postgres => Box::new(BarePostgres::new(&self.database())),
        }
    }

    /// Lets the stores of this kind tidy up, as they do by themselves some time after much has changed.
    pub fn tidy(&self, kind: Kind) {
        let (Kind::Postgres, Some(cluster)) = (kind, self.cluster()) else { return };
        for address in self.databases.lock().unwrap().iter() {
            cluster.execute(address, "VACUUM ANALYZE");
        }
    }

    fn database(&self) -> String {
        let cluster = self.cluster().expect("whoever asks for a database has asked whether there are any");
        let address = cluster.database();
        self.databases.lock().unwrap().push(address.clone());
        address
    }

    fn cluster(&self) -> Option<&Cluster> {
        self.cluster.get_or_init(|| Cluster::is_installed().then(Cluster::start)).as_ref()
    }
}
