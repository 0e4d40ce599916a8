//! What starts again by itself on the wire: recipes that repeat, and when each begins next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shown::RunStatus;

/// The most repeats in one answer.
pub const SCHEDULES_SHOWN: usize = 200;

/// The recipes that repeat and have been started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Schedules {
    /// The repeats, the one that begins next first and those that are under way last; at most 200.
    pub repeats: Vec<ScheduledRepeat>,
    /// How many repeats there are.
    pub count: usize,
}

/// A recipe that starts again after each run of it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduledRepeat {
    /// The id of its newest run: cancel that to end the repeat.
    pub run: String,
    /// The name of the recipe.
    pub recipe: String,
    /// The project in whose folder it was started; null if that is no project.
    pub project: Option<String>,
    /// The status of its newest run.
    pub status: RunStatus,
    /// Why its newest run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How many runs of it have begun, this one included.
    pub turn: u64,
    /// How long after the end of a run the next one begins, in seconds.
    pub every_seconds: u64,
    /// How many ended runs are kept.
    pub keep: u32,
    /// When the next run begins, in RFC 3339 (UTC); null while one is under way.
    pub next_at: Option<String>,
}
