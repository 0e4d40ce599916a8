//! Events of the log on the wire: the envelope that all of them have, and what each kind says.
//!
//! The names of events stand in `sluice-core`, because they are stored; what an event says in names and words stands here.

mod run;
mod task;

pub use run::{ProcessSubject, RunEventData, RunEventShown, RunSubject, StepCompleted, StepStarted, StepSubject};
pub use task::{TaskEventData, TaskEventShown};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::control::AttemptStatus;
use crate::token::Scope;
use crate::work::TokenUsage;

/// An event of the log, as it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventShown {
    /// Its place in the log; in the log of one run, its number there.
    pub seq: u64,
    /// The stream that it belongs to and its number there.
    pub id: String,
    /// The name of the event, such as `task.created`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When the event was recorded, in RFC 3339 (UTC).
    pub time: String,
    /// Who caused the event, such as `person`, `engine`, `session s2`, `step build`, or the id of a crab.
    pub actor: String,
    /// The task, run or token that it belongs to.
    pub correlation_id: String,
    /// Whose it is, for people: `project/branch` of a task, the recipe of a run; null where neither is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The event or command that led to it.
    pub caused_by: Option<String>,
    /// What it says, by its name; as it was stored where this build cannot read it.
    pub data: Value,
}

/// A token was made, has expired or was revoked. Its secret is never told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenChanged {
    /// The id of the token.
    pub token: String,
    /// What the token allows its bearer to do.
    pub scope: Scope,
    /// The name of the token, for people.
    pub name: Option<String>,
    /// The task that it speaks for.
    pub task: Option<String>,
    /// The colony that it is bound to.
    pub colony: Option<String>,
    /// The only role that it can register as.
    pub role: Option<String>,
    /// When the token expires, in RFC 3339; null if it never does.
    pub expires_at: Option<String>,
}

/// A request was turned away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccessDenied {
    /// Why, as a code.
    pub reason: String,
    /// By what the token is known, if it is.
    pub token: Option<String>,
    /// Who that is, if it is known.
    pub who: Option<String>,
    /// The HTTP method of the request.
    pub method: String,
    /// The path of the request, with secrets removed.
    pub path: String,
    /// The network address of the caller; at the socket, its process.
    pub peer: String,
    /// How many before it were not written down.
    #[serde(skip_serializing_if = "is_zero")]
    pub unrecorded: u64,
    /// When, if it was written down later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A crab registered with the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CrabRegistered {
    /// The id of the crab.
    pub crab_id: String,
    /// The id of the colony that the crab belongs to.
    pub colony_id: String,
    /// The name of the crab, for people.
    pub name: String,
    /// The role of the crab: it gets steps of this role; with `any`, of every role.
    pub role: String,
}

/// A crab listens, left, or was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CrabChanged {
    /// The id of the crab.
    pub crab_id: String,
    /// The id of the colony that the crab belongs to.
    pub colony_id: String,
    /// The name of the crab, for people.
    pub name: String,
}

/// A crab began with a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AttemptBegan {
    /// The name of the attempt.
    pub run_id: String,
    /// The id of the crab that makes the attempt.
    pub crab_id: String,
    /// The id of the mission that the task belongs to.
    pub mission_id: String,
    /// The id of the task that the crab works on.
    pub task_id: String,
    /// Where the crab works.
    pub burrow_path: Option<String>,
}

/// A crab said how it is going.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptProgressed {
    /// The name of the attempt.
    pub run_id: String,
    /// The id of the mission that the task belongs to.
    pub mission_id: String,
    /// The id of the task that the crab works on.
    pub task_id: String,
    /// A line from the crab about its progress; null if it sent none.
    pub progress_message: Option<String>,
    /// What the model used so far.
    pub token_usage: Option<TokenUsage>,
}

/// A crab said how it ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptFinished {
    /// The name of the attempt.
    pub run_id: String,
    /// The id of the mission that the task belongs to.
    pub mission_id: String,
    /// The id of the task that the crab works on.
    pub task_id: String,
    /// What the crab reported: `completed` or `failed`.
    pub status: AttemptStatus,
    /// What the model used.
    pub token_usage: Option<TokenUsage>,
    /// The commit at which the work stands.
    pub commit: Option<String>,
}

/// A request came with a key, or was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyNoted {
    /// The stream that the key is kept in.
    pub key: String,
}
