//! The stored form of remarks: facts about a task's files and surroundings that are written down in its stream and
//! move nothing. Version 1. The machines know nothing of these.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_core::event_name::EventName;

use super::bytes;
use crate::actor::Remark;

pub const VERSION: u16 = 1;

/// What a header keeps of the remarks, so that the same is not written down again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remarks {
    /// The digest of the body that was read last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// What was last found forged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forged: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

impl Remarks {
    pub fn is_empty(&self) -> bool {
        *self == Remarks::default()
    }
}

/// Its name in the log that people read. No event of a machine has one of these names.
pub fn kind(remark: &Remark) -> &'static str {
    match remark {
        Remark::Read { .. } => EventName::ArtifactRead.word(),
        Remark::Forged { .. } => EventName::ArtifactForged.word(),
        Remark::Leak { .. } => EventName::CheckoutLeaked.word(),
        Remark::Deleted => EventName::TaskDeleted.word(),
        Remark::Merged { .. } => EventName::RunMerged.word(),
    }
}

/// The bytes of a remark; of a body only its digest, under which it is kept.
pub fn write(remark: &Remark, digest: &str) -> Vec<u8> {
    bytes(&match remark {
        Remark::Read { body } => json!({ "digest": digest, "bytes": body.len() }),
        Remark::Forged { key, found, truth } => json!({ "key": key, "found": found, "truth": truth }),
        Remark::Leak { what, session } => json!({ "what": what, "session": session }),
        Remark::Deleted => json!({}),
        Remark::Merged { branch, commit } => json!({ "branch": branch, "commit": commit }),
    })
}
