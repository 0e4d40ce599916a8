//! A lock that one process holds at a time, with its id inside.
//!
//! The system lets go of it when the process ends, however it ends, so there is never a stale one. The file stays:
//! removing it would let two processes lock two different files of the same name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::git::GitError;

/// How long one waits for another's work on the same workspace.
const PATIENCE: Duration = Duration::from_secs(60);

/// The right to work on something, until it is dropped.
#[derive(Debug)]
pub(crate) struct RepositoryLock {
    file: File,
}

impl RepositoryLock {
    /// Waits for the lock, for a bounded time.
    pub(crate) fn take(path: &Path, what: &str) -> Result<RepositoryLock, GitError> {
        RepositoryLock::take_within(path, what, PATIENCE)
    }

    /// Another hold on the same lock, for a program that we start: it is free when that has ended, too.
    pub(crate) fn handle(&self) -> Result<File, GitError> {
        self.file.try_clone().map_err(|source| GitError::NoProgram { program: "git".to_owned(), source })
    }

    /// Waits no longer than this.
    pub(crate) fn take_within(path: &Path, what: &str, patience: Duration) -> Result<RepositoryLock, GitError> {
        let failed = |source| GitError::File { what: "cannot lock", path: path.to_owned(), source };
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = open.map_err(failed)?;
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    // A file lock has no wait with a limit, so one asks again.
                    std::thread::park_timeout(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => {
                    let mut pid = String::new();
                    drop(file.read_to_string(&mut pid));
                    return Err(GitError::Busy { what: what.to_owned(), pid: pid.trim().to_owned() });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(RepositoryLock { file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_the_holder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.lock");
        let held = RepositoryLock::take(&path, "the workspace 1").unwrap();
        let refused = RepositoryLock::take_within(&path, "the workspace 1", Duration::from_millis(30)).unwrap_err();
        let expected =
            format!("the workspace 1 is in use by process {}; wait for it, then try again", std::process::id());
        assert_eq!(refused.to_string(), expected);
        drop(held);
        RepositoryLock::take_within(&path, "the workspace 1", Duration::ZERO).unwrap();
    }
}
