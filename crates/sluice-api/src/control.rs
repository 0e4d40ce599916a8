//! The control plane on the wire: colonies, crabs and missions, as they are answered.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// Whether a crab can be given work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CrabState {
    /// It can.
    Idle,
    /// It has some.
    Busy,
    /// It is not there.
    Offline,
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

/// How far a mission is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MissionStatus {
    /// Nobody works on it: it has no workflow.
    Pending,
    /// It is worked on.
    Running,
    /// It is done.
    Completed,
    /// It cannot be done.
    Failed,
    /// It is not wanted any more.
    Cancelled,
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

/// How far a task of a mission is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MissionTaskStatus {
    /// It waits for others, or for a person.
    Blocked,
    /// It can be done.
    Queued,
    /// A crab has it.
    Assigned,
    /// A crab has begun.
    Running,
    /// It is done.
    Completed,
    /// It cannot be done.
    Failed,
    /// It need not be done.
    Skipped,
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
    /// What its crab is told.
    pub prompt: String,
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
    pub status: String,
}

/// A crab has said how it is going.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptUpdated {
    /// Which attempt.
    pub run_id: String,
    /// Which task.
    pub task_id: String,
    /// `running`.
    pub status: String,
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
    pub status: String,
    /// It counts.
    pub ok: bool,
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
