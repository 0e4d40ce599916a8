//! Why a store says no. Messages name the place and the way out; what the driver said is the source.
//!
//! Never a conflict: that is an answer to one append, not a failure of the store.

use std::time::Duration;

pub(crate) type StoreErrorCause = Box<dyn std::error::Error + Send + Sync>;

/// Why a store cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The server cannot be used at the moment. The same writer or reader goes on when it can be again.
    #[error("the store {place} {why}; it is asked again in {} ms", retry_after.as_millis())]
    Unavailable {
        /// The path or address of the store, without its password.
        place: String,
        /// What is the matter with it: `cannot be reached`.
        why: &'static str,
        /// When to ask again.
        retry_after: Duration,
        /// What the driver said.
        source: StoreErrorCause,
    },
    /// Another process keeps the store locked for longer than one waits for a commit.
    #[error("the store {place} is locked by another process; end that one, or try again")]
    Busy {
        /// The path of the store's file.
        place: String,
    },
    /// There is no room left.
    #[error("no room left to write the store {place}; free some space on its disk, then try again")]
    Full {
        /// The path or address of the store.
        place: String,
    },
    /// The store may be read but not written.
    #[error("the store {place} is read-only; make the file and its folder writable for this user")]
    ReadOnly {
        /// The path or address of the store.
        place: String,
    },
    /// There is no store and none can be made.
    #[error("the store {place} cannot be opened; its folder must exist and this user must be allowed to use it")]
    CannotOpen {
        /// The path or address of the store.
        place: String,
        /// What the driver said.
        source: StoreErrorCause,
    },
    /// What was read is not what was written.
    #[error("the store {place} is damaged ({detail}); stop the engine, keep a copy, restore the last backup")]
    Corrupt {
        /// The path or address of the store.
        place: String,
        /// What was read, and where it stands in the store.
        detail: String,
    },
    /// The file was removed, moved or replaced while it was used. What was asked for last may be stored in it.
    #[error(
        "the file of the store {place}, or its log, was removed, moved or replaced while the engine used it; {saved}; \
         the engine ends: put the file back, or restore what was saved or a backup (`sluice restore FILE`)"
    )]
    Gone {
        /// The path of the store's file.
        place: String,
        /// Where a copy of the store was saved, or why none could be.
        saved: String,
    },
    /// The engine that used it did not give it up, and the log beside it is not there.
    #[error(
        "the store {place} was in use when its engine ended, and its log {place}-wal is not there: what was stored last may \
         stand only in that; put that file back, or restore a backup (`sluice restore FILE`), or do without what is missing \
         (`sluice restore --without-log {place}`); if another program such as sqlite3 has opened the store since, it took the \
         log into the file and nothing is missing"
    )]
    NoLog {
        /// The path of the store's file.
        place: String,
    },
    /// There is something, and it is not a store of Sluice.
    #[error("{place} is not a store of Sluice ({detail}); give another place, or move that file away")]
    NotAStore {
        /// The path or address that was opened.
        place: String,
        /// What stands there in place of a store.
        detail: String,
    },
    /// A newer Sluice wrote it.
    #[error("the store {place} has schema {found}, and this Sluice knows up to {known}; use a newer Sluice")]
    TooNew {
        /// The path or address of the store.
        place: String,
        /// The schema it has.
        found: u32,
        /// The newest this program knows.
        known: u32,
    },
    /// Another writer owns the store.
    #[error("the store is owned by {by} for another {} ms; stop that engine, or wait", remaining.as_millis())]
    Owned {
        /// The name of the writer that owns the store.
        by: String,
        /// When its ownership expires, unless that writer renews it.
        remaining: Duration,
    },
    /// This writer does not own the store, or another took it over. Nothing was written.
    #[error("this writer does not own the store (any more); load everything again after owning it")]
    LostOwnership,
    /// The caller broke a rule of the port. Nothing was written.
    #[error("a batch that breaks a rule of the store: {0}")]
    Misuse(String),
    /// The address of a store that is none of the known kinds.
    #[error("`{0}` is not the address of a store; say sqlite:PATH, postgres://HOST/DATABASE or memory:")]
    Address(String),
    /// The driver failed in a way that has no name here.
    #[error("the store {place} failed")]
    Failed {
        /// The path or address of the store.
        place: String,
        /// What the driver said.
        source: StoreErrorCause,
    },
}

/// What an error means to the caller. There is nothing else that it can mean, so every caller matches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Ask again, after so long. It tells nothing about what was asked for, so nothing is ever concluded from it.
    Unavailable(Duration),
    /// What was read is not what was written. What it belongs to stops, and is named; the rest goes on.
    Damaged,
    /// The store is another's, or the caller broke a rule of the port. Nothing was written.
    Refused,
    /// This is no store, or none that this program can use. To ask again does not help.
    Unusable,
}

impl StoreError {
    /// What the error means to the caller.
    pub fn meaning(&self) -> Meaning {
        match self {
            StoreError::Unavailable { retry_after, .. } => Meaning::Unavailable(*retry_after),
            StoreError::Busy { .. } => Meaning::Unavailable(Duration::from_millis(100)),
            StoreError::Full { .. } => Meaning::Unavailable(Duration::from_secs(1)),
            StoreError::Corrupt { .. } => Meaning::Damaged,
            StoreError::Owned { .. } | StoreError::LostOwnership | StoreError::Misuse(_) => Meaning::Refused,
            StoreError::ReadOnly { .. }
            | StoreError::CannotOpen { .. }
            | StoreError::Gone { .. }
            | StoreError::NoLog { .. }
            | StoreError::NotAStore { .. }
            | StoreError::TooNew { .. }
            | StoreError::Address(_)
            | StoreError::Failed { .. } => Meaning::Unusable,
        }
    }
}
