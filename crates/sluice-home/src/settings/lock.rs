//! One engine for a home: a file that is locked while it runs, and says who holds it.
//!
//! The lock is the kernel's and ends with its process, however that ends. So there is no stale lock: what a dead engine
//! left in the file is only read when somebody wants to know who holds it now.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// The engine's hold on its home.
#[derive(Debug)]
pub struct HomeLock {
    file: File,
}

/// Why there is none.
#[derive(Debug)]
pub enum HomeLockFailure {
    /// Another engine has it.
    Held {
        /// Its process.
        pid: Option<u32>,
    },
    /// The file cannot be used.
    Broken(std::io::Error),
}

impl HomeLock {
    /// Takes the lock, or says who has it.
    pub fn take(path: &Path) -> Result<HomeLock, HomeLockFailure> {
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = open.map_err(HomeLockFailure::Broken)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            return Err(HomeLockFailure::Held { pid: text.split_whitespace().next().and_then(|pid| pid.parse().ok()) });
        }
        let written = file.set_len(0).and_then(|()| file.rewind());
        written.and_then(|()| file.write_all(whoami().as_bytes())).map_err(HomeLockFailure::Broken)?;
        Ok(HomeLock { file })
    }

    /// Whether the file that is locked is the one at this path: the home may have been moved or replaced.
    pub fn is_at(&self, path: &Path) -> bool {
        let id = |about: Metadata| (about.dev(), about.ino());
        path.metadata().is_ok_and(|there| self.file.metadata().is_ok_and(|own| id(own) == id(there)))
    }

    /// Waits until no engine has the lock, or for so long. Whether none has it.
    pub fn wait_until_free(path: &Path, within: Duration) -> bool {
        let began = Instant::now();
        let Ok(file) = OpenOptions::new().read(true).open(path) else { return true };
        loop {
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                return true;
            }
            if began.elapsed() >= within {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Waits until nobody else has it.
    pub fn wait(path: &Path) -> std::io::Result<HomeLock> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(HomeLock { file })
    }
}

/// This process and when it began, so that another that is given the same number later is not taken for it.
fn whoami() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name may hold anything, brackets and spaces too; what follows its last bracket does not.
    let began = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)).unwrap_or("0").to_owned();
    format!("{} {began}\n", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_has_one_engine() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("engine.lock");
        let held = HomeLock::take(&path).expect("nobody has it");
        match HomeLock::take(&path) {
            Err(HomeLockFailure::Held { pid }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        assert!(!HomeLock::wait_until_free(&path, Duration::from_millis(1)));
        drop(held);
        assert!(HomeLock::wait_until_free(&path, Duration::ZERO));
        HomeLock::take(&path).expect("it is free again, whatever the file says");
    }
}
