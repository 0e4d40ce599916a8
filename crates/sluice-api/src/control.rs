//! The control plane on the wire: colonies, crabs and missions, as they are answered.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::words;

/// A colony: a group of workers with the missions they work on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Colony {
    /// Its id.
    pub colony_id: String,
    /// What people call it.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Where its repository is, as git understands it.
    pub repo: Option<String>,
    /// When it was founded.
    pub created_at_ms: i64,
}

/// A colony that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewColony {
    /// What people call it.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Where its repository is, as git understands it.
    #[serde(default)]
    pub repo: Option<String>,
}

words! {
    /// Whether a crab can be given work.
    CrabState {
        /// It can.
        Idle = "idle",
        /// It has some.
        Busy = "busy",
        /// It is not there.
        Offline = "offline",
    }
}

/// A crab: a worker of a colony.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Crab {
    /// Its id.
    pub crab_id: String,
    /// Whose work it does.
    pub colony_id: String,
    /// What people call it.
    pub name: String,
    /// What it is; `any` does anything.
    pub role: String,
    /// Whether it can be given work.
    pub state: CrabState,
    /// What it works on.
    pub current_run_id: Option<String>,
    /// When it came.
    pub registered_at_ms: i64,
    /// The version of the work protocol that the engine speaks.
    #[serde(default)]
    pub protocol: Option<u32>,
}

/// A crab that comes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Register {
    /// Its id, if it has one.
    #[serde(default)]
    pub crab_id: Option<String>,
    /// Whose work it does.
    pub colony_id: String,
    /// What people call it.
    pub name: String,
    /// What it is; `any` does anything.
    pub role: String,
    /// Which of those that have this id: while one is there, another is refused.
    #[serde(default)]
    pub instance: Option<String>,
    /// The version of the work protocol that it speaks; 1 unless given.
    #[serde(default)]
    pub protocol: Option<u32>,
}

words! {
    /// How far a mission is.
    MissionStatus {
        /// Nobody works on it: it has no workflow.
        Pending = "pending",
        /// It is worked on.
        Running = "running",
        /// It is done.
        Completed = "completed",
        /// It cannot be done.
        Failed = "failed",
        /// It is not wanted any more.
        Cancelled = "cancelled",
    }
}

/// A mission that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewMission {
    /// Whose it is.
    pub colony_id: String,
    /// What is wanted.
    pub prompt: String,
    /// By which workflow; without one it is only written down.
    #[serde(default)]
    pub workflow: Option<String>,
}

/// A mission: a run that the crabs of a colony work on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mission {
    /// Its id.
    pub mission_id: String,
    /// Whose it is.
    pub colony_id: String,
    /// What is wanted.
    pub prompt: String,
    /// By which workflow; without one it is only written down.
    pub workflow_name: Option<String>,
    /// How far it is.
    pub status: MissionStatus,
    /// Where crabs work on it.
    pub worktree_path: String,
    /// Why it failed.
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
    /// The mission.
    #[serde(flatten)]
    pub mission: Mission,
    /// Its steps.
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
        /// It is done.
        Completed = "completed",
        /// It cannot be done.
        Failed = "failed",
        /// It need not be done.
        Skipped = "skipped",
    }
}

/// A task of a mission: a step of its workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissionTask {
    /// Its id.
    pub task_id: String,
    /// Of which mission.
    pub mission_id: String,
    /// What people call it.
    pub title: String,
    /// The step of the workflow.
    pub step_id: String,
    /// Who can do it.
    pub role: String,
    /// How far it is.
    pub status: MissionTaskStatus,
    /// Who has it, or did it.
    pub assigned_crab_id: Option<String>,
    /// The tasks that come before it.
    pub depends_on: Vec<String>,
    /// What its crab is told; none while a value is missing, or if it has no agent.
    pub prompt: Option<String>,
    /// What came of the tasks before it.
    pub context: String,
    /// What came of it.
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
    /// What the attempt is called.
    pub run_id: String,
    /// Which task.
    pub task_id: String,
    /// Of which mission.
    pub mission_id: String,
    /// Which crab.
    pub crab_id: String,
    /// `running`.
    pub status: AttemptStatus,
}

/// A crab has said how it is going.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptUpdated {
    /// Which attempt.
    pub run_id: String,
    /// Which task.
    pub task_id: String,
    /// `running`.
    pub status: AttemptStatus,
}

/// A crab has said how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptEnded {
    /// Which attempt.
    pub run_id: String,
    /// Which task; not when it had been said before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// `completed` or `failed`.
    pub status: AttemptStatus,
    /// It counts.
    pub ok: bool,
}

/// What an engine answers to a crab that speaks of an attempt on its connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AttemptAnswer {
    /// It has begun.
    Started(AttemptStarted),
    /// It is under way.
    Updated(AttemptUpdated),
    /// It has ended.
    Ended(AttemptEnded),
}

/// The scheduler has gone round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ticked {
    /// It has.
    pub ok: bool,
    /// How many tasks were assigned since somebody last asked.
    pub assigned: usize,
}

/// What stands where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlStatus {
    /// When this was so.
    pub generated_at_ms: i64,
    /// In numbers.
    pub summary: Summary,
    /// All colonies.
    pub colonies: Vec<Colony>,
    /// All crabs.
    pub crabs: Vec<Crab>,
    /// All missions.
    pub missions: Vec<Mission>,
    /// The tasks of missions that have not ended.
    pub tasks: Vec<MissionTask>,
}

/// What stands where, in numbers.
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
