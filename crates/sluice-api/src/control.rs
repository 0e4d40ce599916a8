//! The control plane on the wire: colonies, crabs and missions, as they are answered.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::words;

/// A colony: a group of workers with the missions they work on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Colony {
    /// The id of the colony, chosen by the engine; crabs and missions name it.
    pub colony_id: String,
    /// The name of the colony, for people.
    pub name: String,
    /// What the colony is for.
    pub description: Option<String>,
    /// Where its repository is, as git understands it.
    pub repo: Option<String>,
    /// When the colony was created, in milliseconds since 1970.
    pub created_at_ms: i64,
}

/// A colony that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewColony {
    /// The name of the colony, for people.
    pub name: String,
    /// What the colony is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Where its repository is, as git understands it.
    #[serde(default)]
    pub repo: Option<String>,
}

words! {
    /// Whether a crab can be given work.
    CrabState {
        /// The crab is connected and has no task.
        Idle = "idle",
        /// The crab is connected and has a task.
        Busy = "busy",
        /// The crab is not connected.
        Offline = "offline",
    }
}

/// A crab: a worker of a colony.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Crab {
    /// The id of the crab: the one that it registered with, else one that the engine chose.
    pub crab_id: String,
    /// The id of the colony whose missions the crab works on; `project:NAME` for a worker of a project, which works on the
    /// runs that are started with `workers`.
    pub colony_id: String,
    /// The name of the crab, for people.
    pub name: String,
    /// The role of the crab: it gets steps of this role; with `any`, of every role.
    pub role: String,
    /// Whether it can be given work.
    pub state: CrabState,
    /// The attempt that the crab works on; null while it has none.
    pub current_run_id: Option<String>,
    /// When the crab registered, in milliseconds since 1970.
    pub registered_at_ms: i64,
    /// The version of the work protocol that the engine speaks.
    #[serde(default)]
    pub protocol: Option<u32>,
}

/// A crab that registers, or registers again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Register {
    /// The id of a crab that was registered before; default: a new one that the engine chooses.
    #[serde(default)]
    pub crab_id: Option<String>,
    /// The id of the colony whose missions the crab works on; `project:NAME` for a worker of a project, which works on the
    /// runs that are started with `workers`.
    pub colony_id: String,
    /// The name of the crab, for people.
    pub name: String,
    /// The role of the crab: it gets steps of this role; with `any`, of every role.
    pub role: String,
    /// The process that registers: while one instance of a crab is connected, the engine refuses another.
    #[serde(default)]
    pub instance: Option<String>,
    /// The version of the work protocol that the crab speaks; default: 1.
    #[serde(default)]
    pub protocol: Option<u32>,
}

words! {
    /// How far a mission is.
    MissionStatus {
        /// The mission has no workflow, so no crab works on it.
        Pending = "pending",
        /// It is worked on.
        Running = "running",
        /// All its steps are done.
        Completed = "completed",
        /// A step failed for good.
        Failed = "failed",
        /// A person cancelled the mission.
        Cancelled = "cancelled",
    }
}

/// A mission that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewMission {
    /// The id of the colony whose crabs do the work.
    pub colony_id: String,
    /// What the crabs are to do, in plain text.
    pub prompt: String,
    /// The workflow; without one the mission is recorded and not started.
    #[serde(default)]
    pub workflow: Option<String>,
}

/// A mission: a run that the crabs of a colony work on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mission {
    /// The id of the mission, chosen by the engine.
    pub mission_id: String,
    /// The id of the colony whose crabs do the work.
    pub colony_id: String,
    /// What the crabs are to do, in plain text.
    pub prompt: String,
    /// The workflow; without one the mission is recorded and not started.
    pub workflow_name: Option<String>,
    /// The status of the mission.
    pub status: MissionStatus,
    /// The name of the worktree in which each crab works, as prompts contain it.
    pub worktree_path: String,
    /// Why the mission failed or was cancelled; null otherwise.
    #[serde(default)]
    pub error: Option<String>,
    /// When it was created.
    pub created_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
}

/// A mission with its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissionShown {
    /// The mission itself; its fields stand beside `tasks`.
    #[serde(flatten)]
    pub mission: Mission,
    /// The tasks of the mission, in the order of the steps of its workflow.
    pub tasks: Vec<MissionTask>,
}

words! {
    /// How far a task of a mission is.
    MissionTaskStatus {
        /// It waits for others, or for a person.
        Blocked = "blocked",
        /// It can be done.
        Queued = "queued",
        /// A crab has it.
        Assigned = "assigned",
        /// A crab has begun.
        Running = "running",
        /// A crab has completed the task.
        Completed = "completed",
        /// All attempts or a task before it failed, or the mission was cancelled meanwhile.
        Failed = "failed",
        /// It need not be done.
        Skipped = "skipped",
    }
}

/// A task of a mission: a step of its workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissionTask {
    /// The id of the task, made of mission and step: `MISSION.STEP`.
    pub task_id: String,
    /// The id of the mission that the task belongs to.
    pub mission_id: String,
    /// The title of the task, for people.
    pub title: String,
    /// The step of the workflow.
    pub step_id: String,
    /// The role that a crab needs for the task.
    pub role: String,
    /// The status of the task.
    pub status: MissionTaskStatus,
    /// The id of the crab that has the task or has done it.
    pub assigned_crab_id: Option<String>,
    /// The tasks that come before it.
    pub depends_on: Vec<String>,
    /// What its crab is told; null until all its values are known, or if the step has no agent.
    pub prompt: Option<String>,
    /// The summaries of the tasks before it.
    pub context: String,
    /// The summary of the task.
    pub summary: Option<String>,
    /// The word that conditions read.
    pub result: Option<String>,
    /// How often it was tried.
    pub attempt: u32,
    /// When its mission was created.
    pub created_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
}

words! {
    /// How far an attempt of a crab is.
    AttemptStatus {
        /// It is under way.
        Running = "running",
        /// Its crab reports that it is done.
        Completed = "completed",
        /// Its crab reports that it failed.
        Failed = "failed",
    }
}

/// A crab has begun with a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptStarted {
    /// The id of the attempt.
    pub run_id: String,
    /// The id of the task that the crab works on.
    pub task_id: String,
    /// The id of the mission that the task belongs to.
    pub mission_id: String,
    /// The id of the crab that makes the attempt.
    pub crab_id: String,
    /// Always `running` in this answer.
    pub status: AttemptStatus,
}

/// The answer to a worker's progress report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptUpdated {
    /// The id of the attempt, as its start was answered.
    pub run_id: String,
    /// The id of the task that the crab works on.
    pub task_id: String,
    /// Always `running` in this answer.
    pub status: AttemptStatus,
}

/// The answer to a worker's final report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptEnded {
    /// The id of the attempt, as its start was answered.
    pub run_id: String,
    /// The id of the task; absent when the same report had been accepted before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// How the attempt ended: `completed` or `failed`.
    pub status: AttemptStatus,
    /// Always true: the report is accepted.
    pub ok: bool,
}

/// What an engine answers to a crab that speaks of an attempt on its connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AttemptAnswer {
    /// The answer to the start of an attempt.
    Started(AttemptStarted),
    /// The answer to a report of progress.
    Updated(AttemptUpdated),
    /// The answer to the report that ends an attempt.
    Ended(AttemptEnded),
}

/// The scheduler has processed all pending work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ticked {
    /// Always true: the scheduler has handled all changes so far.
    pub ok: bool,
    /// How many tasks the scheduler assigned since the request before this one.
    pub assigned: usize,
}

/// The status of all colonies, crabs, missions and open tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlStatus {
    /// When the engine made this answer, in milliseconds since 1970.
    pub generated_at_ms: i64,
    /// The number of crabs, missions and tasks, by status.
    pub summary: Summary,
    /// The colonies that the caller may see.
    pub colonies: Vec<Colony>,
    /// The crabs that the caller may see.
    pub crabs: Vec<Crab>,
    /// The missions that the caller may see, oldest first; those that have ended too.
    pub missions: Vec<Mission>,
    /// The tasks of missions that have not ended.
    pub tasks: Vec<MissionTask>,
}

/// How many crabs, missions and tasks there are, by status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// How many crabs there are.
    pub total_crabs: usize,
    /// How many crabs are in each state.
    pub crabs: BTreeMap<String, usize>,
    /// How many missions have each status.
    pub missions: BTreeMap<String, usize>,
    /// How many tasks have each status.
    pub tasks: BTreeMap<String, usize>,
}
