//! Keeping sessions: it is said until when their agents may go on. After that the shims pause them, until more is said.

use std::path::{Path, PathBuf};

use super::folder::SessionFolder;
use super::record::{KeeperTerm, OwnershipLease, SessionId, boot_ms};
use super::{SessionFailure, Sessions, reading, system};

impl Sessions {
    /// Says until when a session is kept, by [`boot_ms`]. If it was paused it goes on.
    pub fn keep(&self, id: &SessionId, until_ms: u64) -> Result<(), SessionFailure> {
        let kept = KeeperTerm { until_ms, ..KeeperTerm::default() };
        self.known(id)?.write_kept(kept).map_err(|source| reading(id, source))
    }

    /// Whether its agent is paused, or about to be, because no keeper has said that it may go on.
    pub fn is_paused(&self, id: &SessionId) -> bool {
        self.known(id).is_ok_and(|folder| is_held(&folder))
    }
}

/// Whether no keeper says that the agent of a session may go on, though one has to.
pub(super) fn is_held(folder: &SessionFolder) -> bool {
    let lease = folder.spec().ok().flatten().and_then(|spec| spec.lease);
    let kept = match lease {
        Some(lease) => Some(SessionFolder(lease.folder).kept_until().ok().flatten().unwrap_or_default()),
        None => folder.kept_until().ok().flatten(),
    };
    kept.is_some_and(|kept| kept.until_ms <= boot_ms())
}

/// The folder in which it is said for all sessions and scripts of a home together until when they may go on. They watch
/// it themselves, so that they stop whatever becomes of who says it.
#[derive(Debug, Clone)]
pub struct LeaseFolder(SessionFolder);

impl LeaseFolder {
    /// In a folder of its own, which is made if it is not there.
    pub fn new(folder: PathBuf) -> Result<LeaseFolder, SessionFailure> {
        let doing = || format!("opening {}", folder.display());
        let leases = LeaseFolder(SessionFolder(folder.clone()));
        leases.0.create().map_err(|source| system(doing(), source))?;
        Ok(leases)
    }

    /// What was said last; nothing if that cannot be read.
    pub fn said(&self) -> KeeperTerm {
        self.0.kept_until().ok().flatten().unwrap_or_default()
    }

    /// Says until when everything may go on, and since which ownership.
    pub fn say(&self, kept: KeeperTerm) -> Result<(), SessionFailure> {
        self.0.write_kept(kept).map_err(|source| system(format!("writing in {}", self.0.path().display()), source))
    }

    pub fn of(&self, epoch: u64) -> OwnershipLease {
        OwnershipLease { folder: self.path().to_owned(), epoch }
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
