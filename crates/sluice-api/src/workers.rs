//! Workers and pools on the wire, for people: what each worker does, who waits for what, and what work was kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::board::BoardProject;
use crate::words::words;
use crate::workspace::Kept;

/// The most steps that wait for a worker in one answer.
pub const WAITING_STEPS: usize = 200;

/// The most copies of kept work in one answer.
pub const KEPT_SHOWN: usize = 200;

/// What each worker does, who waits for what, and what work was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workers {
    /// The engine's own machine: the sessions and scripts that it has under way.
    pub here: WorkHere,
    /// The workers on other machines, by group and name.
    pub workers: Vec<WorkerShown>,
    /// The steps that wait for a worker, the one that has waited longest first; at most 200.
    pub waiting: Vec<WaitingStep>,
    /// How many steps wait for a worker.
    pub waiting_count: usize,
    /// The pools of worktrees, by project.
    pub pools: Vec<BoardProject>,
    /// Work that was put away before something was cleared, the newest first; at most 200.
    pub kept: Vec<Kept>,
    /// How many copies of such work there are.
    pub kept_count: usize,
}

/// What runs on the engine's own machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkHere {
    /// How many agents of tasks are alive.
    pub sessions: usize,
    /// How many steps of runs are under way here.
    pub steps: usize,
}

words! {
    /// Whether a worker can be given work.
    WorkerState {
        /// It is there and has no step.
        Idle = "idle",
        /// It is there and has a step.
        Busy = "busy",
        /// The worker is not connected.
        Away = "away",
    }
}

/// A worker on another machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerShown {
    /// The id of the worker.
    pub id: String,
    /// The name of the worker, for people.
    pub name: String,
    /// The role of the worker: it gets steps of this role; with `any`, of every role.
    pub role: String,
    /// The group or project that it works for.
    pub group: String,
    /// Whether it can be given work.
    pub state: WorkerState,
    /// For how long the engine has heard nothing from it, in seconds; null where it never connected to this engine.
    pub silent_seconds: Option<u64>,
    /// The step that it has; null while it has none.
    pub lease: Option<WorkerLease>,
    /// When it registered, in RFC 3339 (UTC).
    pub registered_at: String,
}

/// A step that a worker has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerLease {
    /// The run of the step.
    pub run: String,
    /// The step of the run.
    pub step: String,
    /// When the engine gave it to the worker, in RFC 3339 (UTC); null where that is not known.
    pub since: Option<String>,
    /// In how many seconds the engine gives it to another, if it hears nothing; null where it does not.
    pub ends_in_seconds: Option<u64>,
}

/// A step that waits for a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingStep {
    /// The run of the step.
    pub run: String,
    /// The step of the run.
    pub step: String,
    /// The role that a worker needs for the step.
    pub role: String,
    /// The group or project whose workers may do it.
    pub group: String,
    /// Since when it waits, in RFC 3339 (UTC); null where that is not known.
    pub since: Option<String>,
}
