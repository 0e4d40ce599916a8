//! What agents have used up, on the wire: of a task, of a run, and added up.
//!
//! What is not known is not zero: a sum says how many of its attempts told no tokens or no cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shown::StepUsage;
use crate::words::words;

/// The most rows of a table of costs.
pub const COST_ROWS: usize = 500;

/// The most attempts that the usage of a task or run lists.
pub const USAGE_ATTEMPTS: usize = 1000;

/// What several attempts of agents have used up together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageSum {
    /// How many attempts of agents this adds up.
    pub attempts: u64,
    /// Tokens that models read, from their cache or not; null where no attempt tells.
    pub input_tokens: Option<u64>,
    /// Those of the input tokens that came from the cache.
    pub cached_tokens: Option<u64>,
    /// Tokens that models wrote.
    pub output_tokens: Option<u64>,
    /// Input and output tokens together, as the agent programs report them.
    pub total_tokens: Option<u64>,
    /// What it cost, in US dollars; null where no attempt tells.
    pub cost_usd: Option<f64>,
    /// How many of the attempts told no tokens: their part is missing in the sum.
    pub without_tokens: u64,
    /// How many of the attempts told no cost: their part is missing in the sum.
    pub without_cost: u64,
}

/// What the agents of a task or run have used up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageShown {
    /// All attempts added up.
    pub total: UsageSum,
    /// The same by program and model.
    pub by: Vec<UsageBy>,
    /// The attempts, the oldest first; the newest 1,000 if there are more.
    pub attempts: Vec<UsageAttempt>,
    /// What else there is to say, such as that attempts were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What one program with one model has used up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageBy {
    /// The agent program; null where it is not known.
    pub harness: Option<String>,
    /// The model, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What they have used up.
    #[serde(flatten)]
    pub sum: UsageSum,
}

/// What one attempt has used up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageAttempt {
    /// The run that the attempt belongs to; null for a session of a task.
    pub run: Option<String>,
    /// The step of the run, or the session of the task.
    pub step: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The item of a fan-out; null where the step is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// The turn of a loop of agent and arbiter, from 1; null where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The agent program; null where it is not known.
    pub harness: Option<String>,
    /// The model, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it has used up; null where the program tells nothing, or the attempt is under way.
    pub usage: Option<StepUsage>,
    /// When it began, in RFC 3339 (UTC).
    pub started_at: Option<String>,
    /// When it ended, in RFC 3339 (UTC); null while it is under way.
    pub finished_at: Option<String>,
}

words! {
    /// By what costs are added up.
    CostsBy {
        /// By task: the runs that its states have started.
        Task = "task",
        /// By run of a recipe.
        Run = "run",
        /// By project of the home.
        Project = "project",
        /// By day, in UTC.
        Day = "day",
        /// By program of the agent.
        Harness = "harness",
        /// By model of the agent.
        Model = "model",
    }
}

/// A table of what agents have used up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Costs {
    /// By what it is added up.
    pub by: CostsBy,
    /// The first day that it counts, such as `2026-11-18` (UTC).
    pub since: String,
    /// All rows together, those that were left out too.
    pub total: UsageSum,
    /// The rows: days with the newest first, all others by cost and then by tokens, the greatest first; at most 500.
    pub rows: Vec<CostRow>,
    /// What else there is to say, such as that rows were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One row of a table of costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostRow {
    /// The id of the task or run, the name of the project, program or model, or the day; null where it is not known.
    pub key: Option<String>,
    /// What a person calls it: the branch of a task, the recipe of a run, else the key; empty where it is not known.
    pub name: String,
    /// What it has used up.
    #[serde(flatten)]
    pub sum: UsageSum,
}

/// A number of tokens as people read it: `812`, `38k`, `1.2M`.
pub fn short_tokens(count: u64) -> String {
    match count {
        0..=999 => count.to_string(),
        1_000..=999_999 => format!("{}k", count / 1_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// US dollars, to the cent: `$4.12`.
pub fn dollars(amount: f64) -> String {
    format!("${amount:.2}")
}
