//! What SQLite says, as what one can do about it.
//!
//! Never decides whether to go on: it only gives things their names.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::StoreError;

/// The file that messages name.
#[derive(Clone, Debug)]
pub(super) struct Place(PathBuf);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.display())
    }
}

impl Place {
    pub(super) fn new(path: &Path) -> Place {
        Place(path.to_owned())
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
                ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                    StoreError::CannotOpen { place, source: error.into() }
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
