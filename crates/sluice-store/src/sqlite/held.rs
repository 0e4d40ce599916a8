//! The file that a store was opened in: whether it still has its name, and what becomes of it when it has lost it.
//!
//! A file that is removed, moved or replaced under whoever uses it goes on to take what is written, and all of it is gone
//! when that process ends. So everything that is stored or read is only answered while the file and its log have their
//! names; otherwise what is in them is saved beside it, once, and the store is [`StoreError::Gone`]. The log counts from
//! the first commit of a writer on: it exists from then on for as long as the writer does.

use std::error::Error as _;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags, open, statx};

use super::fault::SqlitePath;
use super::schema;
use crate::StoreError;

/// Which file has a name, and how long it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct SqliteFileId {
    id: (u32, u32, u64),
    bytes: u64,
    /// How many names the file has, in any folder.
    names: u32,
}

impl SqliteFileId {
    fn at(path: &Path) -> io::Result<SqliteFileId> {
        Ok(SqliteFileId::of(statx(CWD, path, AtFlags::empty(), SqliteFileId::ASKED)?))
    }

    /// The same of a file that is held: no path is walked, which is most of what asking costs.
    fn held(file: &OwnedFd) -> io::Result<SqliteFileId> {
        Ok(SqliteFileId::of(statx(file, "", AtFlags::EMPTY_PATH, SqliteFileId::ASKED)?))
    }

    /// Asked for nothing else: a kernel that tells the time of a file's last change makes the next change of it a new time,
    /// and the sync after it a third longer.
    const ASKED: StatxFlags = StatxFlags::INO.union(StatxFlags::SIZE).union(StatxFlags::NLINK);

    fn of(about: Statx) -> SqliteFileId {
        let id = (about.stx_dev_major, about.stx_dev_minor, about.stx_ino);
        SqliteFileId { id, bytes: about.stx_size, names: about.stx_nlink }
    }

    fn is_at(&self, path: &Path) -> Option<SqliteFileId> {
        SqliteFileId::at(path).ok().filter(|now| now.id == self.id)
    }
}

/// Where the index of a log says how many frames of it count, and in how many bytes: SQLite documents its layout as the
/// WAL-index header.
const FRAMES_AT: u64 = 16;
const FRAMES: usize = 4;

/// The log that a writer writes to, held open by itself: a name that is taken away is seen in the file.
#[derive(Debug)]
pub(super) struct SqliteWal {
    file: OwnedFd,
    noted: SqliteFileId,
}

impl SqliteWal {
    fn open(path: &Path) -> io::Result<SqliteWal> {
        let file = hold(path)?;
        let noted = SqliteFileId::held(&file)?;
        Ok(SqliteWal { file, noted })
    }
}

/// A file that is not opened for anything: SQLite's locks on a file are gone when its process closes it once.
fn hold(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// The log that SQLite keeps beside a file.
pub(super) fn log_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", path.display()))
}

pub(super) fn has_log(path: &Path) -> bool {
    log_of(path).metadata().is_ok_and(|log| log.len() > 0)
}

/// What is known of the file. A caller locks this for a moment and never for as long as a copy takes: doors that wait for
/// one do not turn any more, and the watchdog of the engine would end it in the middle.
#[derive(Debug)]
enum SqliteFileState {
    /// It has its name as far as anything here knows, and so does this log, once a writer has seen it.
    Here { log: Option<SqliteFileId> },
    /// It has lost its name, and a writer copies what is in it.
    Saving,
    /// What became of what was stored.
    Saved(String),
}

/// A file that a store is in. Each user of it holds this, and the last to let go of it tidies up.
#[derive(Debug)]
pub(super) struct SqliteFile {
    path: PathBuf,
    log: PathBuf,
    file: OwnedFd,
    id: SqliteFileId,
    standing: Mutex<SqliteFileState>,
    /// The index of the log, once it had to be read.
    index: Mutex<Option<File>>,
    /// A reader has missed a name, which the next commit has to look at.
    is_missed: AtomicBool,
}

impl SqliteFile {
    /// The file at this path, which has just been opened.
    pub(super) fn new(path: &Path) -> io::Result<SqliteFile> {
        let (file, standing) = (hold(path)?, Mutex::new(SqliteFileState::Here { log: None }));
        let id = SqliteFileId::held(&file)?;
        let (index, is_missed) = (Mutex::new(None), AtomicBool::new(false));
        Ok(SqliteFile { path: path.to_owned(), log: log_of(path), file, id, standing, index, is_missed })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> u64 {
        self.path.metadata().map_or(0, |about| about.len())
    }

    pub(super) fn place(&self) -> SqlitePath {
        SqlitePath::new(&self.path)
    }

    fn standing(&self) -> MutexGuard<'_, SqliteFileState> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the file is still what its name says.
    fn has_its_name(&self) -> bool {
        self.id.is_at(&self.path).is_some_and(|now| now.bytes > 0)
    }

    /// Whether a log still holds what was written to it, as it is now. One that is shorter does, if all of it was brought into
    /// the file first, by whatever program.
    fn is_whole(&self, noted: &SqliteFileId, now: Option<SqliteFileId>) -> bool {
        now.is_some_and(|now| now.bytes >= noted.bytes || self.is_brought_in().unwrap_or(false))
    }

    /// Whether nothing stands in the log alone, as its index says. The index stays open: SQLite's locks on it would be gone if
    /// this process closed it.
    fn is_brought_in(&self) -> io::Result<bool> {
        let mut kept = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match &mut *kept {
            Some(index) => index,
            none => none.insert(File::open(format!("{}-shm", self.path.display()))?),
        };
        let mut frames = [0; FRAMES];
        index.read_exact_at(&mut frames, FRAMES_AT)?;
        Ok(frames == [0; FRAMES])
    }

    /// Whether what is read stands in the file of this name and its log. It answers at once, also while a copy is made.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let log = match &*self.standing() {
            SqliteFileState::Here { log } => *log,
            SqliteFileState::Saving => return Err(self.gone(SAVING.to_owned())),
            SqliteFileState::Saved(became) => return Err(self.gone(became.clone())),
        };
        let has_log = || log.is_none_or(|noted| self.is_whole(&noted, noted.is_at(&self.log)));
        if self.has_its_name() && has_log() {
            return Ok(());
        }
        self.is_missed.store(true, Ordering::Relaxed);
        Err(self.gone(SAVING.to_owned()))
    }

    /// Whether a writer may go on with its log: one that was emptied takes what is written next, and the file is ruined when
    /// that is brought into it.
    pub(super) fn check_log(&self, connection: &Connection, log: Option<&SqliteWal>) -> Result<(), StoreError> {
        let is_whole =
            |log: &SqliteWal| self.is_whole(&log.noted, SqliteFileId::held(&log.file).ok().filter(|now| now.names > 0));
        if log.is_none_or(is_whole) { Ok(()) } else { Err(self.lost(|| save(connection, &self.path))) }
    }

    /// Whether what was stored over this connection stands in a file and a log that have names; the log is noted, and stays
    /// for as long as the connection does. If it does not, it is saved, and this returns when it is.
    pub(super) fn check_stored(&self, connection: &Connection, log: &mut Option<SqliteWal>) -> Result<(), StoreError> {
        let noted = match log {
            Some(log) => SqliteFileId::held(&log.file).map(|now| log.noted = now),
            None => SqliteWal::open(&self.log).map(|opened| *log = Some(opened)),
        };
        let noted = noted.ok().and(log.as_ref()).map(|log| log.noted).filter(|noted| noted.names > 0);
        let is_there = || SqliteFileId::held(&self.file).is_ok_and(|now| now.names > 0 && now.bytes > 0);
        let is_here = match (noted, is_there(), &mut *self.standing()) {
            (Some(now), true, SqliteFileState::Here { log }) => {
                *log = Some(now);
                true
            }
            (_, _, SqliteFileState::Here { .. } | SqliteFileState::Saving | SqliteFileState::Saved(_)) => false,
        };
        if !is_here {
            return Err(self.lost(|| save(connection, &self.path)));
        }
        if self.is_missed.swap(false, Ordering::Relaxed) { self.check_names(connection) } else { Ok(()) }
    }

    /// Whether the file and its log have the names that they had: one that was moved has another. What is stored is saved if
    /// they have not.
    pub(super) fn check_names(&self, connection: &Connection) -> Result<(), StoreError> {
        self.check().map_err(|_| self.lost(|| save(connection, &self.path)))
    }

    /// The file has lost its name: what is in it is saved, once.
    fn lost(&self, save: impl FnOnce() -> Result<PathBuf, String>) -> StoreError {
        match &mut *self.standing() {
            standing @ SqliteFileState::Here { .. } => *standing = SqliteFileState::Saving,
            SqliteFileState::Saving => return self.gone(SAVING.to_owned()),
            SqliteFileState::Saved(became) => return self.gone(became.clone()),
        }
        let became = match save() {
            Ok(to) => format!("what was stored is saved in {}", to.display()),
            Err(why) => format!("what was stored cannot be saved beside it ({why})"),
        };
        *self.standing() = SqliteFileState::Saved(became.clone());
        self.gone(became)
    }

    /// A writer is gone. Without one the next to tidy up may take the log away.
    pub(super) fn without_writer(&self) {
        if let SqliteFileState::Here { log } = &mut *self.standing() {
            *log = None;
        }
    }

    fn gone(&self, saved: String) -> StoreError {
        StoreError::Gone { place: self.path.display().to_string(), saved }
    }
}

/// What is said of what was stored until it is known what became of it.
const SAVING: &str = "what was stored is being saved beside it";

impl Drop for SqliteFile {
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

/// Copies everything to a new file beside this path, under the first name that is free. It has that name when it is whole
/// and durable: a part of a copy is never taken for what was stored.
fn save(connection: &Connection, path: &Path) -> Result<PathBuf, String> {
    for number in 1..MOST_SAVED {
        let to = PathBuf::from(format!("{}.saved-{number}", path.display()));
        let draft = PathBuf::from(format!("{}.draft", to.display()));
        // Nobody else reads it: it holds what the home keeps from others.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft) {
            Ok(_) if to.exists() => drop(fs::remove_file(&draft)),
            Ok(_) => {
                let finished = finish(connection, &draft, &to);
                if finished.is_err() {
                    let all = ["", "-wal", "-shm", "-journal"].map(|end| format!("{}{end}", draft.display()));
                    all.iter().for_each(|file| drop(fs::remove_file(file)));
                }
                return finished.map(|()| to);
            }
            // Left behind by an engine that was killed, or being written by another.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("there are too many such files".to_owned())
}

/// Fills a draft, and gives it its name.
fn finish(connection: &Connection, draft: &Path, to: &Path) -> Result<(), String> {
    copy(connection, draft).map_err(|error| match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    })?;
    let name = || {
        File::open(draft)?.sync_all()?;
        fs::rename(draft, to)?;
        to.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    name().map_err(|error| error.to_string())
}

/// So many saved files may stand beside a store.
const MOST_SAVED: u32 = 1000;

/// Copies everything as it is at this moment to a file that is new or empty, while others go on writing.
pub(super) fn copy(from: &Connection, to: &Path) -> Result<(), StoreError> {
    let place = SqlitePath::new(to);
    let target = to.to_str().ok_or_else(|| StoreError::Address(to.display().to_string()))?;
    // Not the page-by-page interface: it starts again whenever the writer commits, so it may never end.
    let made = from.execute("VACUUM INTO ?1", [target]).and_then(|_| {
        // The copy is whole without a log, whoever uses the store that it was made of.
        schema::give_up(&Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?)
    });
    made.map_err(|error| place.fault(error))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn saved(error: &StoreError) -> &str {
        let StoreError::Gone { saved, .. } = error else { panic!("{error}") };
        saved
    }

    fn store(folder: &Path) -> (PathBuf, Connection) {
        let path = folder.join("store.db");
        let connection = Connection::open(&path).unwrap();
        schema::update(&mut Connection::open(&path).unwrap(), &SqlitePath::new(&path)).unwrap();
        (path, connection)
    }

    #[test]
    fn while_a_copy_is_made_every_check_answers_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = store(folder.path());
        let held = SqliteFile::new(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let ((begun, began), (go, let_go)) = (mpsc::channel(), mpsc::channel::<()>());
        std::thread::scope(|scope| {
            let save = move || {
                begun.send(()).unwrap();
                let_go.recv().unwrap();
                Ok(PathBuf::from("there"))
            };
            let saving = scope.spawn({
                let held = &held;
                move || held.lost(save)
            });
            began.recv().unwrap();
            assert_eq!(saved(&held.check().unwrap_err()), SAVING);
            assert_eq!(saved(&held.lost(|| panic!("it is saved once"))), SAVING);
            go.send(()).unwrap();
            assert_eq!(saved(&saving.join().unwrap()), "what was stored is saved in there");
        });
        assert_eq!(saved(&held.check().unwrap_err()), "what was stored is saved in there");
    }

    #[test]
    fn a_copy_that_fails_leaves_nothing_that_looks_like_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, connection) = store(folder.path());
        let saved = || {
            let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
            names.retain(|name| name.contains("saved"));
            names
        };
        // SQLite copies nothing inside a transaction.
        connection.execute_batch("BEGIN").unwrap();
        let why = save(&connection, &path).unwrap_err();
        assert!(why.contains("transaction"), "{why}");
        assert_eq!(saved(), [""; 0]);
        connection.execute_batch("COMMIT").unwrap();
        // What a kill in the middle left is not taken for a copy either.
        fs::write(folder.path().join("store.db.saved-1.draft"), "a part").unwrap();
        let to = save(&connection, &path).unwrap();
        assert_eq!(to, folder.path().join("store.db.saved-2"));
        assert!(to.metadata().unwrap().len() > 0 && saved().len() == 2, "{:?}", saved());
    }
}
