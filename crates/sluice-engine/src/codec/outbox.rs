//! The stored form of what the loop itself notes in a stream about effects: that one was settled and nothing else
//! followed, and that one is held by a worker. Version 1. The machines know nothing of these.

use serde::{Deserialize, Serialize};
use sluice_core::event_name::EventName;

use super::{UnreadableData, bytes};

pub const VERSION: u16 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboxNote {
    /// It was settled, and nothing else followed.
    Settled {
        effect: String,
        /// Why it could not be done, if it could not.
        error: Option<String>,
    },
    Leased {
        effect: String,
        worker: String,
        /// Until when that is believed, in milliseconds since 1970.
        until: i64,
    },
}

impl OutboxNote {
    /// Its name in the log that people read. No event of a machine has one of these names.
    pub fn kind(&self) -> &'static str {
        match self {
            OutboxNote::Settled { .. } => SETTLED,
            OutboxNote::Leased { .. } => LEASED,
        }
    }
}

const SETTLED: &str = EventName::EffectSettled.word();
const LEASED: &str = EventName::EffectLeased.word();

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSettleNote {
    effect: String,
    error: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLeaseNote {
    effect: String,
    worker: String,
    until: i64,
}

pub fn write(note: &OutboxNote) -> Vec<u8> {
    match note.clone() {
        OutboxNote::Settled { effect, error } => bytes(&StoredSettleNote { effect, error }),
        OutboxNote::Leased { effect, worker, until } => bytes(&StoredLeaseNote { effect, worker, until }),
    }
}

/// The note in an event of this kind; `None` when it is an event of a machine.
pub fn read(kind: &str, version: u16, bytes: &[u8]) -> Result<Option<OutboxNote>, UnreadableData> {
    let is_note = kind == SETTLED || kind == LEASED;
    if is_note && version != VERSION {
        return Err(UnreadableData(format!("a note of version {version}; this program knows up to {VERSION}")));
    }
    if kind == SETTLED {
        let StoredSettleNote { effect, error } = serde_json::from_slice(bytes)?;
        return Ok(Some(OutboxNote::Settled { effect, error }));
    }
    if kind == LEASED {
        let StoredLeaseNote { effect, worker, until } = serde_json::from_slice(bytes)?;
        return Ok(Some(OutboxNote::Leased { effect, worker, until }));
    }
    Ok(None)
}
