//! The stored forms of what the machines know: JSON with a version, in types of their own.
//!
//! The core's types may change with every release; what stands in a store may not. So each stored form is written out
//! here and translated, and a golden sample of every version ever shipped is read by a test.
//!
//! # The version rule
//!
//! 1. What was ever stored can be read: a new key has a default that means what its absence meant, and no key, word or
//!    golden sample that is there changes its meaning.
//! 2. What an older engine does not know it never drops: a new key or word raises [`FORMAT`], at which an older engine leaves
//!    the whole home alone, and a record that reaches it all the same is refused (`deny_unknown_fields`).
//! 3. A form whose meaning must change gets a new `VERSION` of its own, is read in both and written in the new one, with new
//!    samples beside the old.

pub mod data;
pub mod outbox;
pub mod remark;
pub mod run_effect;
pub mod run_event;
pub mod run_state;
mod task_attention;
mod task_data;
pub mod task_effect;
pub mod task_event;
mod task_job;
pub mod task_state;

use std::fmt;

use serde::Deserialize;
use sluice_core::id::MalformedId;

/// The form of a home that this program writes. It is written into the home, and an engine that knows only lower numbers
/// says so and opens nothing. It grows with every key or word that a stored form gets; `tests/golden/format-N.json` has samples of
/// what number N brought.
///
/// 2: cards of runs name what a run is called beside the colony that it is for.
/// 3: runs say at which commit their work stands; tasks say which verdicts were planted.
/// 4: a run that has ended gives back its worktree (the effect `release`); steps work outside worktrees; a task that waits for a
///    person lends its worktree on (the event `workspace_lent`, the key `lent`).
/// 5: a person removes a run from every list (the event `run.deleted`, and the status `deleted` on its card) or merges its branch
///    (the event `run.merged`); a task numbers what it needs a person for, and says since when (`attention_number`, `attention_since`, `attentions`); the words for
///    what follows from its state; what is heard of its agent (the event `signalled`, the key `signal`).
/// 6: a task knows which hooks failed and are to be done again (the event `retrying`, the key `undone`), and whether a person
///    has had the agent of its status started again (`helped`).
/// 7: a mark of a task is kept behind what is more urgent (`behind`, `attention_behind`).
/// 8: a move says whether a person has written something with it (`said`), of which a living agent is told (the job `tell`, the
///    occasion `answered`).
pub const FORMAT: u32 = 8;

/// What was read is not what was written by any version of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableData(pub String);

impl fmt::Display for UnreadableData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a stored record cannot be read: {}", self.0)
    }
}

impl std::error::Error for UnreadableData {}

impl From<MalformedId> for UnreadableData {
    fn from(error: MalformedId) -> Self {
        UnreadableData(error.to_string())
    }
}

impl From<serde_json::Error> for UnreadableData {
    fn from(error: serde_json::Error) -> Self {
        UnreadableData(error.to_string())
    }
}

/// The bytes of a stored form. Writing to memory cannot fail, and none of the forms has a map with odd keys.
fn bytes(form: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(form).unwrap_or_default()
}

/// What every stored form with a version of its own has, whatever else a later one changes.
#[derive(Deserialize)]
struct StoredVersion {
    version: u16,
}

/// Refuses a form of another version than this program's, before it is read as one of this.
fn known(what: &str, bytes: &[u8], knows: u16) -> Result<(), UnreadableData> {
    match serde_json::from_slice(bytes)? {
        StoredVersion { version } if version == knows => Ok(()),
        StoredVersion { version } => {
            Err(UnreadableData(format!("{what} of version {version}; this program knows up to {knows}")))
        }
    }
}

/// The bytes of a digest, from its hexadecimal form.
pub fn digest(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0u8; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}
