//! A lock that one process holds at a time: a file that is locked, and says who holds it.
//!
//! The lock is the kernel's and ends with its process, however that ends. So there is no stale lock: what a dead process
//! left in the file is only read while another holds it. A file that is removed while it is locked ([`FileLock::remove`])
//! locks nothing any more: a lock counts only while its file has its name.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::process::ProcessIdentity;

/// How long until a lock that another process holds is tried again: the system has no wait with a limit.
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

#[derive(Debug)]
pub enum FileLockError {
    Held {
        /// The process, if the file says so.
        pid: Option<u32>,
    },
    Broken(io::Error),
}

impl FileLock {
    /// Takes the lock if it is free.
    pub fn take(path: &Path) -> Result<FileLock, FileLockError> {
        FileLock::take_within(path, Duration::ZERO)
    }

    /// Waits for the lock no longer than this.
    pub fn take_within(path: &Path, patience: Duration) -> Result<FileLock, FileLockError> {
        let give_up = Instant::now() + patience;
        loop {
            let mut file = open(path).map_err(FileLockError::Broken)?;
            let left = give_up.saturating_duration_since(Instant::now());
            if !is_locked_within(&file, left).map_err(FileLockError::Broken)? {
                let mut text = String::new();
                drop(file.read_to_string(&mut text));
                let pid = text.split_whitespace().next().and_then(|pid| pid.parse().ok());
                return Err(FileLockError::Held { pid });
            }
            let lock = FileLock { file };
            if lock.is_at(path) {
                return lock.held().map_err(FileLockError::Broken);
            }
        }
    }

    /// Waits for the lock, however long that takes.
    pub fn wait(path: &Path) -> io::Result<FileLock> {
        loop {
            let lock = FileLock { file: open(path)? };
            lock.file.lock()?;
            if lock.is_at(path) {
                return lock.held();
            }
        }
    }

    /// Waits until no process holds the lock, or for so long. Whether none holds it.
    pub fn wait_until_free(path: &Path, within: Duration) -> bool {
        // No process holds a lock whose file is not there.
        let Ok(file) = File::open(path) else { return true };
        is_locked_within(&file, within).unwrap_or(false)
    }

    /// Whether the file that is locked is the one at this path: its folder may have been moved or replaced.
    pub fn is_at(&self, path: &Path) -> bool {
        let id = |about: Metadata| (about.dev(), about.ino());
        path.metadata().is_ok_and(|there| self.file.metadata().is_ok_and(|own| id(own) == id(there)))
    }

    /// Another hold on the same lock, for a program that is started: the lock is free when that has ended, too.
    pub fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Writes down that this process holds it.
    fn held(mut self) -> io::Result<FileLock> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(whoami().as_bytes())?;
        Ok(self)
    }

    /// Gives the lock up, and removes its file. A process that waited for it meanwhile makes a new one.
    pub fn remove(self, path: &Path) -> io::Result<()> {
        if self.is_at(path) { std::fs::remove_file(path) } else { Ok(()) }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn is_locked_within(file: &File, patience: Duration) -> io::Result<bool> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if began.elapsed() < patience => std::thread::park_timeout(TRY_AGAIN),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// This process and when it began, so that another that is given the same number later is not taken for it.
fn whoami() -> String {
    format!("{} {}\n", std::process::id(), ProcessIdentity::own().map_or(0, |own| own.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_and_the_holder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.lock");
        assert!(FileLock::wait_until_free(&path, Duration::ZERO), "there is no file");
        let held = FileLock::take(&path).unwrap();
        let own = std::process::id();
        for patience in [Duration::ZERO, Duration::from_millis(20)] {
            let refused = FileLock::take_within(&path, patience);
            assert!(matches!(refused, Err(FileLockError::Held { pid: Some(pid) }) if pid == own), "{refused:?}");
        }
        assert!(!FileLock::wait_until_free(&path, Duration::from_millis(1)));
        drop(held);
        assert!(FileLock::wait_until_free(&path, Duration::ZERO));
        FileLock::take(&path).expect("it is free again, whatever the file says");
    }

    #[test]
    fn a_lock_whose_file_is_removed_is_had_by_one_at_a_time_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.lock");
        let inside = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for turn in 0..200 {
                        let lock = match turn % 2 {
                            0 => FileLock::wait(&path).unwrap(),
                            _ => FileLock::take_within(&path, Duration::from_secs(60)).unwrap(),
                        };
                        assert!(!inside.swap(true, std::sync::atomic::Ordering::SeqCst), "two have it");
                        inside.store(false, std::sync::atomic::Ordering::SeqCst);
                        lock.remove(&path).unwrap();
                    }
                });
            }
        });
        assert!(!path.exists());
    }

    #[test]
    fn a_lock_outlives_its_process_with_a_program_that_has_a_handle() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("merge.lock");
        let lock = FileLock::wait(&path).unwrap();
        let handle = lock.handle().unwrap();
        drop(lock);
        assert!(matches!(FileLock::take(&path), Err(FileLockError::Held { .. })));
        drop(handle);
        FileLock::take(&path).unwrap();
    }

    #[test]
    fn a_lock_whose_file_was_moved_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("engine.lock"), folder.path().join("moved.lock"));
        let lock = FileLock::take(&path).unwrap();
        assert!(lock.is_at(&path));
        std::fs::rename(&path, &moved).unwrap();
        assert!(lock.is_at(&moved) && !lock.is_at(&path));
        let broken = FileLock::take(&folder.path().join("nowhere/engine.lock"));
        assert!(matches!(broken, Err(FileLockError::Broken(_))), "{broken:?}");
    }
}
