//! Grimoires and the workflows made of them on the wire, as they are answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::shown::{Question, RunStep};
use crate::words::words;

/// The workflow to start, and its inputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartGrimoire {
    /// The name of the grimoire to start.
    pub grimoire: String,
    /// What it is given, by name.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// The project to work in; default: the folder in which the engine was started.
    #[serde(default)]
    pub project: Option<String>,
}

/// What a person decides about a workflow that is blocked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Intervention {
    /// The option to choose: one of `available_actions` but `cancel`.
    pub option: String,
    /// A comment to go with the option.
    #[serde(default)]
    pub message: Option<String>,
}

words! {
    /// What starts a grimoire.
    GrimoireTrigger {
        /// A person or a program starts it by a request.
        Manual = "manual",
        /// An event of the log starts it.
        Event = "event",
    }
}

/// A grimoire that can be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grimoire {
    /// The name by which the grimoire is started.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Where it comes from: a repository, the home, or Sluice itself.
    pub origin: String,
    /// Whether a request or an event starts the grimoire.
    pub trigger: GrimoireTrigger,
    /// The inputs that the grimoire declares.
    pub input: Vec<GrimoireInput>,
    /// The steps of the grimoire, in the order of its file.
    pub steps: Vec<GrimoireStep>,
}

/// An input that a grimoire declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrimoireInput {
    /// The name of the input, as `input` has it when the grimoire is started.
    pub name: String,
    /// The type that a value must have.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether a start without this input is refused.
    pub required: bool,
    /// The value of the input unless one is given; null if there is none.
    pub default: Value,
}

/// A step of a grimoire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrimoireStep {
    /// The name of the step, unique in its grimoire.
    pub name: String,
    /// What kind of work it is.
    #[serde(rename = "type")]
    pub kind: String,
}

/// All grimoires that can be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrimoireList {
    /// The grimoires, in the order of their names.
    pub grimoires: Vec<Grimoire>,
}

words! {
    /// How far a workflow is.
    WorkflowStatus {
        /// It goes on by itself.
        Running = "running",
        /// It needs a person.
        Blocked = "blocked",
        /// All its steps are done.
        Completed = "completed",
        /// A step failed for good.
        Failed = "failed",
        /// A person cancelled the workflow.
        Cancelled = "cancelled",
    }
}

/// A workflow that has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowStarted {
    /// The id of the workflow, chosen by the engine.
    pub workflow_id: String,
    /// The name of the grimoire that the workflow runs.
    pub grimoire: String,
    /// The status of the workflow.
    pub status: WorkflowStatus,
}

/// An error of a workflow or of one of its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowError {
    /// The step that failed; null when the workflow failed as a whole.
    pub step: Option<String>,
    /// The error message, in plain text.
    pub error: String,
}

/// A workflow: a run of a grimoire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workflow {
    /// The id of the workflow, chosen by the engine.
    pub workflow_id: String,
    /// The name of the grimoire that the workflow runs.
    pub grimoire: String,
    /// The status of the workflow.
    pub status: WorkflowStatus,
    /// What is under way, else what comes next.
    pub current_step: Option<String>,
    /// The values that `${…}` can read: the inputs, and the named outputs of steps.
    pub variables: Map<String, Value>,
    /// The steps of the workflow, in the order of its grimoire.
    pub steps: Vec<RunStep>,
    /// The errors of its steps; that of the whole workflow if no step has one.
    pub errors: Vec<WorkflowError>,
    /// The options of the open question, and `cancel`; empty once the workflow has ended.
    pub available_actions: Vec<String>,
    /// The question that waits for a person; null if there is none.
    pub question: Option<Question>,
    /// When the workflow was started, in RFC 3339 (UTC).
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
}

/// All workflows, those that have ended too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowList {
    /// The workflows, newest first.
    pub workflows: Vec<Workflow>,
}
