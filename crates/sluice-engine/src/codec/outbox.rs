//! The stored form of what the loop itself notes in a stream about effects: that one was settled and nothing else
//! followed, and that one is held by a worker. Version 1. The machines know nothing of these.

use serde::{Deserialize, Serialize};

use super::{Unreadable, bytes};

/// The version that is written.
pub const VERSION: u16 = 1;

/// A note about an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// It was settled, and nothing else followed.
    Settled {
        /// Which.
        effect: String,
        /// Why it could not be done, if it could not.
        error: Option<String>,
    },
    /// A worker holds it.
    Leased {
        /// Which.
        effect: String,
        /// Who.
        worker: String,
        /// Until when that is believed, in milliseconds since 1970.
        until: i64,
    },
}

impl Note {
    /// Its name in the log that people read. No event of a machine has one of these names.
    pub fn kind(&self) -> &'static str {
        match self {
            Note::Settled { .. } => SETTLED,
            Note::Leased { .. } => LEASED,
        }
    }
}

const SETTLED: &str = "effect.settled";
const LEASED: &str = "effect.leased";

#[derive(Debug, Serialize, Deserialize)]
struct StoredSettled {
    effect: String,
    error: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredLeased {
    effect: String,
    worker: String,
    until: i64,
}

/// The bytes of a note.
pub fn write(note: &Note) -> Vec<u8> {
    match note.clone() {
        Note::Settled { effect, error } => bytes(&StoredSettled { effect, error }),
        Note::Leased { effect, worker, until } => bytes(&StoredLeased { effect, worker, until }),
    }
}

/// The note in an event of this kind; `None` when it is an event of a machine.
pub fn read(kind: &str, version: u16, bytes: &[u8]) -> Result<Option<Note>, Unreadable> {
    let is_note = kind == SETTLED || kind == LEASED;
    if is_note && version != VERSION {
        return Err(Unreadable(format!("a note of version {version}; this program knows up to {VERSION}")));
    }
    if kind == SETTLED {
        let StoredSettled { effect, error } = serde_json::from_slice(bytes)?;
        return Ok(Some(Note::Settled { effect, error }));
    }
    if kind == LEASED {
        let StoredLeased { effect, worker, until } = serde_json::from_slice(bytes)?;
        return Ok(Some(Note::Leased { effect, worker, until }));
    }
    Ok(None)
}
