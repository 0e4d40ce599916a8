//! The time bars of a run on the wire: when each attempt of each step began and ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::words;

/// The most bars of a timeline.
pub const TIME_BARS: usize = 5000;

/// When each attempt of each step of a run began and ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// The id of the run.
    pub run: String,
    /// When the engine made this answer, in RFC 3339 (UTC): the end of bars that are under way.
    pub now: String,
    /// When the run was started, in RFC 3339 (UTC).
    pub started_at: String,
    /// When the run ended; null while it is open.
    pub finished_at: Option<String>,
    /// The attempts, in the order in which they began; the newest 5,000 if there are more.
    pub bars: Vec<TimeBar>,
    /// How many older attempts were left out.
    pub left_out: usize,
}

words! {
    /// How an attempt ended.
    BarEnd {
        /// It is under way.
        Running = "running",
        /// The attempt is done.
        Completed = "completed",
        /// The attempt has failed.
        Failed = "failed",
        /// It was given up: the run was cancelled, the step skipped, or the attempt's worker was lost.
        Ended = "ended",
    }
}

/// One attempt of a step, or of an item of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeBar {
    /// The name of the step.
    pub step: String,
    /// The item of a fan-out, from 0; null for the step itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// The turn of a loop of agent and arbiter, from 1; null where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Whether it is the arbiter's answer to that turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub arbiter: bool,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// How the attempt ended.
    pub end: BarEnd,
    /// When it began, in RFC 3339 (UTC).
    pub started_at: String,
    /// When it ended, in RFC 3339 (UTC); null while it is under way.
    pub finished_at: Option<String>,
}
