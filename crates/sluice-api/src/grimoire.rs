//! Grimoires and the workflows made of them on the wire, as they are answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::shown::{Question, RunStep};
use crate::words::words;

/// A workflow that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartGrimoire {
    /// By which grimoire.
    pub grimoire: String,
    /// What it is given, by name.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// In which project; where the engine was started unless given.
    #[serde(default)]
    pub project: Option<String>,
}

/// What a person decides about a workflow that is blocked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Intervention {
    /// One of the options.
    pub option: String,
    /// And what is said with it.
    #[serde(default)]
    pub message: Option<String>,
}

words! {
    /// What starts a grimoire.
    GrimoireTrigger {
        /// A person.
        Manual = "manual",
        /// Something that happens.
        Event = "event",
    }
}

/// A grimoire that can be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grimoire {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Where it comes from: a repository, the home, or Sluice itself.
    pub origin: String,
    /// What starts it.
    pub trigger: GrimoireTrigger,
    /// What it is given.
    pub input: Vec<GrimoireInput>,
    /// What is done.
    pub steps: Vec<GrimoireStep>,
}

/// Something that a grimoire is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrimoireInput {
    /// Its name.
    pub name: String,
    /// What it must be.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it must be there.
    pub required: bool,
    /// What it is unless it is given.
    pub default: Value,
}

/// A step of a grimoire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrimoireStep {
    /// Its name.
    pub name: String,
    /// What kind of work it is.
    #[serde(rename = "type")]
    pub kind: String,
}

/// All grimoires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrimoireList {
    /// By name.
    pub grimoires: Vec<Grimoire>,
}

words! {
    /// How far a workflow is.
    WorkflowStatus {
        /// It goes on by itself.
        Running = "running",
        /// It needs a person.
        Blocked = "blocked",
        /// It is done.
        Completed = "completed",
        /// It cannot be done.
        Failed = "failed",
        /// It is not wanted any more.
        Cancelled = "cancelled",
    }
}

/// A workflow that has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowStarted {
    /// Its id.
    pub workflow_id: String,
    /// By which grimoire.
    pub grimoire: String,
    /// How far it is.
    pub status: WorkflowStatus,
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowError {
    /// In which step; none when it was the whole.
    pub step: Option<String>,
    /// What it was.
    pub error: String,
}

/// A workflow: a run of a grimoire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workflow {
    /// Its id.
    pub workflow_id: String,
    /// By which grimoire.
    pub grimoire: String,
    /// How far it is.
    pub status: WorkflowStatus,
    /// What is under way, else what comes next.
    pub current_step: Option<String>,
    /// What variables read.
    pub variables: Map<String, Value>,
    /// Its steps.
    pub steps: Vec<RunStep>,
    /// What went wrong.
    pub errors: Vec<WorkflowError>,
    /// What a person can do about it.
    pub available_actions: Vec<String>,
    /// What waits for a person.
    pub question: Option<Question>,
    /// When it began.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
}

/// All workflows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowList {
    /// Newest first.
    pub workflows: Vec<Workflow>,
}
