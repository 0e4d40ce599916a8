//! What SQLite says, as what one can do about it.
//!
//! Never decides whether to go on: it only gives things their names.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{ErrorCode, ffi};

use crate::StoreError;

/// When to ask again after a failure of the system.
const PAUSE: Duration = Duration::from_secs(1);
/// Failures of a read that another read of the same place would meet again.
const UNREADABLE: [i32; 4] =
    [ffi::SQLITE_IOERR_READ, ffi::SQLITE_IOERR_SHORT_READ, ffi::SQLITE_IOERR_DATA, ffi::SQLITE_IOERR_CORRUPTFS];

#[derive(Clone, Debug)]
pub(super) struct SqlitePath(PathBuf);

impl fmt::Display for SqlitePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.display())
    }
}

impl SqlitePath {
    pub(super) fn new(path: &Path) -> SqlitePath {
        SqlitePath(path.to_owned())
    }

    pub(super) fn corrupt(&self, detail: impl Into<String>) -> StoreError {
        StoreError::Corrupt { place: self.to_string(), detail: detail.into() }
    }

    pub(super) fn fault(&self, error: rusqlite::Error) -> StoreError {
        let place = self.to_string();
        match &error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DiskFull => StoreError::Full { place },
                ErrorCode::ReadOnly => StoreError::ReadOnly { place },
                ErrorCode::CannotOpen if has_no_descriptor_left() => {
                    let why = "cannot be opened: this process has no file descriptor left (ulimit -n)";
                    StoreError::Unavailable { place, why, retry_after: PAUSE, source: error.into() }
                }
                ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                    StoreError::CannotOpen { place, source: error.into() }
                }
                // A disk that cannot give back what it was given.
                ErrorCode::SystemIoFailure if UNREADABLE.contains(&failure.extended_code) => {
                    self.corrupt(error.to_string())
                }
                ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory => {
                    let why = "cannot be read or written at the moment";
                    StoreError::Unavailable { place, why, retry_after: PAUSE, source: error.into() }
                }
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy { place },
                ErrorCode::DatabaseCorrupt => self.corrupt(error.to_string()),
                ErrorCode::NotADatabase => StoreError::NotAStore { place, detail: error.to_string() },
                _ => StoreError::Failed { place, source: error.into() },
            },
            // A value of another type than the schema has, or a text that is not UTF-8: not what was written.
            rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..) => self.corrupt(error.to_string()),
            _ => StoreError::Failed { place, source: error.into() },
        }
    }
}

/// SQLite says only that a file cannot be opened. Whether any file could be is tried with one that is always there.
fn has_no_descriptor_left() -> bool {
    std::fs::File::open("/dev/null").is_err_and(|error| matches!(error.raw_os_error(), Some(23 | 24)))
}
