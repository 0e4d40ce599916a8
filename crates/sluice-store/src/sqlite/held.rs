//! The file that a store was opened in: whether it still has its name, and what becomes of it when it has lost it.
//!
//! A file that is removed, moved or replaced under whoever uses it goes on to take what is written, and all of it is gone
//! when that process ends. So everything that is stored or read is only answered while the file and its log have their
//! names; otherwise what is in them is saved beside it, once, and the store is [`StoreError::Gone`].

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::fault::Place;
use super::schema;
use crate::StoreError;

/// Which file it is, whatever it is called.
pub(super) type Id = (u64, u64);

fn id(path: &Path) -> io::Result<Id> {
    path.metadata().map(|about| (about.dev(), about.ino()))
}

/// The log that SQLite keeps beside a file.
pub(super) fn log_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", path.display()))
}

/// Whether something stands in the log of a file.
pub(super) fn has_log(path: &Path) -> bool {
    log_of(path).metadata().is_ok_and(|log| log.len() > 0)
}

/// A file that a store is in. Whoever uses it holds this, and the last to let go of it tidies up.
#[derive(Debug)]
pub(super) struct Held {
    path: PathBuf,
    log: PathBuf,
    id: Id,
    /// What became of what was stored, once the file had lost its name.
    saved: Mutex<Option<String>>,
}

impl Held {
    /// The file at this path, which somebody has just opened.
    pub(super) fn new(path: &Path) -> io::Result<Held> {
        let (log, saved) = (log_of(path), Mutex::new(None));
        Ok(Held { path: path.to_owned(), log, id: id(path)?, saved })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> u64 {
        self.path.metadata().map_or(0, |about| about.len())
    }

    pub(super) fn place(&self) -> Place {
        Place::new(&self.path)
    }

    /// Whether the file is still what its name says.
    fn has_its_name(&self) -> bool {
        id(&self.path).is_ok_and(|now| now == self.id)
    }

    /// Whether what is read stands in the file of this name.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        match &*saved {
            None if self.has_its_name() => Ok(()),
            saved => Err(self.gone(saved.clone().unwrap_or_else(|| "the engine saves what was stored".to_owned()))),
        }
    }

    /// Whether what was stored over this connection stands in the file of this name and its log, which is noted at the first
    /// time: it stays for as long as the connection does. If it does not, it is saved.
    pub(super) fn check_stored(&self, connection: &Connection, log: &mut Option<Id>) -> Result<(), StoreError> {
        let now = id(&self.log).ok();
        *log = log.or(now);
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        if saved.is_none() && now.is_some() && now == *log && self.has_its_name() {
            return Ok(());
        }
        let became = saved.get_or_insert_with(|| match save(connection, &self.path) {
            Ok(to) => format!("what was stored is saved in {}", to.display()),
            Err(why) => format!("what was stored cannot be saved beside it ({why})"),
        });
        Err(self.gone(became.clone()))
    }

    fn gone(&self, saved: String) -> StoreError {
        StoreError::Gone { place: self.path.display().to_string(), saved }
    }
}

impl Drop for Held {
    /// Whoever closes the file last brings the log into it and removes the log, unless the store was not given up: then the
    /// next to open it wants to see that nothing is missing.
    fn drop(&mut self) {
        if !self.has_its_name() {
            return;
        }
        let Ok(connection) = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE) else { return };
        if !schema::is_in_use(&connection).is_ok_and(|is| !is) {
            let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

/// Copies everything to a new file beside this path, under the first name that is free.
fn save(connection: &Connection, path: &Path) -> Result<PathBuf, String> {
    let names = (1..MOST_SAVED).map(|number| PathBuf::from(format!("{}.saved-{number}", path.display())));
    for to in names {
        // Nobody else reads it: it holds what the home keeps from others.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to) {
            Ok(_) => return copy(connection, &to).map(|()| to).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("there are too many such files".to_owned())
}

/// So many saved files may stand beside a store.
const MOST_SAVED: u32 = 1000;

/// Copies everything as it is at this moment to a file that is new or empty, while others go on writing.
pub(super) fn copy(from: &Connection, to: &Path) -> Result<(), StoreError> {
    let place = Place::new(to);
    let target = to.to_str().ok_or_else(|| StoreError::Address(to.display().to_string()))?;
    // Not the page-by-page interface: it starts again whenever the writer commits, so it may never end.
    let made = from.execute("VACUUM INTO ?1", [target]).and_then(|_| {
        // The copy is whole without a log, whoever uses the store that it was made of.
        schema::give_up(&Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?)
    });
    made.map_err(|error| place.fault(error))
}
