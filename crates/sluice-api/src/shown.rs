//! Runs, processes and questions on the wire, as they are answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::attention::Attention;
use crate::words::words;

words! {
    /// As what a run was started.
    RunForm {
        /// By a recipe alone.
        Run = "run",
        /// For the workers of a colony.
        Mission = "mission",
        /// By a grimoire, through the routes for workflows.
        Workflow = "workflow",
        /// By a template, whose steps are done by hand.
        Process = "process",
    }
}

words! {
    /// How far a run is.
    RunStatus {
        /// It goes on by itself.
        Running = "running",
        /// It waits for a person.
        Held = "held",
        /// Its steps are done.
        Completed = "completed",
        /// A step failed for good.
        Failed = "failed",
        /// A person ended it.
        Cancelled = "cancelled",
    }
}

words! {
    /// How far a step of a run is. Of a workflow, `waiting` is `pending` and `held` is `blocked`.
    RunStepStatus {
        /// It waits for the steps before it.
        Waiting = "waiting",
        /// The same, of a workflow.
        Pending = "pending",
        /// It can be done.
        Ready = "ready",
        /// It is being done.
        Running = "running",
        /// It waits for a person.
        Held = "held",
        /// The same, of a workflow.
        Blocked = "blocked",
        /// The step is done, and its output can be read.
        Completed = "completed",
        /// All attempts failed, or a step before it did.
        Failed = "failed",
        /// It need not be done.
        Skipped = "skipped",
        /// The run ended first.
        Cancelled = "cancelled",
    }
}

words! {
    /// How far an item of a fan-out is.
    RunItemStatus {
        /// It has not begun.
        Waiting = "waiting",
        /// It is being done.
        Running = "running",
        /// The item is done.
        Completed = "completed",
        /// All attempts of the item failed.
        Failed = "failed",
    }
}

words! {
    /// Why a person is asked.
    QuestionCause {
        /// A gate did not let the run pass.
        Gate = "gate",
        /// A loop has used up its turns.
        MaxIterations = "max_iterations",
        /// Some items of a fan-out failed.
        PartialFailure = "partial_failure",
        /// A step has gone back as often as it may.
        LoopExhausted = "loop_exhausted",
        /// The agent of a step asks.
        Clarification = "clarification",
        /// An arbiter came to no decision.
        Undecided = "undecided",
    }
}

/// A run of a recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The id of the run, chosen by the engine.
    pub id: String,
    /// How often it has changed.
    pub version: u64,
    /// The name of the recipe that the run was started from.
    pub recipe: String,
    /// The kind of run.
    pub kind: RunForm,
    /// The status of the run.
    pub status: RunStatus,
    /// What is under way, else what comes next.
    pub current_step: Option<String>,
    /// The folder that the run works in, on the engine's machine.
    pub workspace: Option<String>,
    /// The branch that holds what the run has committed; null if it has none, or none any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The references under which work of the run is kept that no branch has: `sluice workspace restore` brings it back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// What is wanted, in words.
    pub prompt: String,
    /// The work order that the run is done for.
    pub work_order: Option<String>,
    /// The task whose state has started it.
    pub task: Option<String>,
    /// The recipes whose runs led to it, if an event has started it.
    pub cause: Option<Vec<String>>,
    /// Where its definition was read, if the engine started it by itself from a repository.
    pub definition: Option<String>,
    /// The values that `${…}` can read: the inputs, and the named outputs of steps.
    pub variables: Map<String, Value>,
    /// The steps of the run, in the order of its recipe.
    pub steps: Vec<RunStep>,
    /// The question that waits for a person; null if there is none.
    pub question: Option<Question>,
    /// Why it failed, or was cancelled.
    pub error: Option<String>,
    /// What the run waits for, if that takes long and passes by itself, such as too little room on the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention: Option<String>,
    /// When the next turn of a resting patrol begins.
    pub next_turn_at: Option<String>,
    /// When the run was started, in RFC 3339 (UTC).
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunStep {
    /// The name of the step, unique in its recipe.
    pub id: String,
    /// The title of the step, for people.
    pub title: Option<String>,
    /// What kind of work it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// The role that a worker needs for the step.
    pub role: String,
    /// The steps that come before it.
    pub needs: Vec<String>,
    /// The folder in which the step works; with `workspace: own` a worktree of its own while the step runs on this machine,
    /// and before and after that the one into which its work is merged. Null for a task.
    pub workspace: Option<String>,
    /// The name of the worker elsewhere that has the step, or did it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The status of the step.
    pub status: RunStepStatus,
    /// How often it was tried.
    pub attempt: u32,
    /// How many times a loop returned to this step.
    pub round: u32,
    /// The summary of the step.
    pub summary: Option<String>,
    /// The word that conditions read.
    pub result: Option<String>,
    /// The value that variables read; of a step that failed, what its last attempt printed.
    pub output: Value,
    /// The exit code of a command: 128 plus the signal's number if one ended it, -1 if its end was not seen.
    pub exit_code: Option<i32>,
    /// What a command printed as errors.
    pub stderr: Option<String>,
    /// What its agent used up, as far as it is known.
    pub usage: Option<StepUsage>,
    /// Why it failed, or what it waits for.
    pub error: Option<String>,
    /// The items of a fan-out.
    pub items: Option<Vec<RunItem>>,
    /// When the last attempt of the step began, in RFC 3339 (UTC); null before the first.
    pub started_at: Option<String>,
    /// When the step ended, in RFC 3339 (UTC); null before that.
    pub finished_at: Option<String>,
}

/// What an agent used up, as far as it is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepUsage {
    /// Tokens that the model read, from its cache or not.
    pub input_tokens: Option<u64>,
    /// Those of the input tokens that came from the cache.
    pub cached_tokens: Option<u64>,
    /// Tokens that the model wrote.
    pub output_tokens: Option<u64>,
    /// Input and output tokens together, as the agent program reports them.
    pub total_tokens: Option<u64>,
    /// What it cost, in US dollars.
    pub cost_usd: Option<f64>,
}

/// An item of a fan-out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunItem {
    /// Its number, from 0.
    pub index: u32,
    /// The item itself, as the list of the fan-out has it.
    pub item: Value,
    /// The status of the item.
    pub status: RunItemStatus,
    /// The summary of the item.
    pub summary: Option<String>,
    /// Why the item failed; null otherwise.
    pub error: Option<String>,
}

/// A question that waits for a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The id by which the question is answered: `RUN/NUMBER`.
    pub id: String,
    /// Why it is asked.
    pub kind: QuestionCause,
    /// The id of the run that asks.
    pub run: String,
    /// The name of the recipe of that run.
    pub recipe: String,
    /// The name of the step that asks.
    pub step: String,
    /// The question, in plain text.
    pub reason: String,
    /// The exit code of the command that it is about.
    pub exit_code: Option<i32>,
    /// The end of what that command printed.
    pub printed: Option<String>,
    /// What can be answered.
    pub options: Vec<String>,
    /// What is taken for the answer at the deadline.
    pub default: Option<String>,
    /// When `default` becomes the answer, in RFC 3339 (UTC); null if the question waits without end.
    pub deadline: Option<String>,
}

/// The answer with one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunAnswer {
    /// The run, as it is now.
    pub run: Run,
}

/// A page of the list of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunList {
    /// Those that are open and then those that have ended, each newest first.
    pub runs: Vec<Run>,
    /// Where to go on (`after`), if more have ended than are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What steps have printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLog {
    /// The text that the steps printed, in the order of the steps.
    pub log: String,
}

/// What the agent of a step is told about the steps before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunContext {
    /// The text that the agent's prompt contains about the steps before it.
    pub context: String,
}

/// Everything that waits for a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inbox {
    /// What waits, the oldest first: questions of runs, tasks, and the home itself.
    pub questions: Vec<Attention>,
}

words! {
    /// How far a process is.
    ProcessStatus {
        /// It is under way, or a step of it failed.
        Active = "active",
        /// Every step was completed or skipped, and the process was closed.
        Completed = "completed",
        /// A person ended it.
        Cancelled = "cancelled",
    }
}

words! {
    /// How far a step of a process is.
    ProcessStepStatus {
        /// It waits for the steps before it.
        Pending = "pending",
        /// It can be done.
        Ready = "ready",
        /// It is being done.
        InProgress = "in_progress",
        /// The step is reported as complete.
        Completed = "completed",
        /// The step is reported as failed.
        Failed = "failed",
        /// It need not be done.
        Skipped = "skipped",
        /// A step before it failed.
        Blocked = "blocked",
    }
}

/// A process: a run whose steps are reported by hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// The id of the process, chosen by the engine.
    pub id: String,
    /// The name of the template that the process was started from.
    pub template: String,
    /// The work order that the process is done for.
    pub wo_id: Option<String>,
    /// The status of the process.
    pub status: ProcessStatus,
    /// The summary of the process.
    pub summary: Option<String>,
    /// Why it cannot go on.
    pub error: Option<String>,
    /// When the process was started, in RFC 3339 (UTC).
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// The steps of the process, in the order of its template.
    pub steps: Vec<ProcessStep>,
}

/// A step of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessStep {
    /// The name of the step, unique in its template.
    pub id: String,
    /// The title of the step, for people.
    pub title: String,
    /// The status of the step.
    pub status: ProcessStepStatus,
    /// The steps that come before it.
    pub needs: Vec<String>,
    /// Those of `needs` that are not done yet.
    pub waits_for: Vec<String>,
    /// The summary of the step.
    pub summary: Option<String>,
    /// The word that conditions read.
    pub result: Option<String>,
    /// Why the step failed; null otherwise.
    pub error: Option<String>,
    /// When the last attempt of the step began, in RFC 3339 (UTC); null before the first.
    pub started_at: Option<String>,
    /// When the step ended, in RFC 3339 (UTC); null before that.
    pub completed_at: Option<String>,
    /// How long it took.
    pub duration_seconds: Option<f64>,
}

/// The answer with one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessAnswer {
    /// The process, as it is now.
    pub process: Process,
}

/// The answer with several processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessList {
    /// The processes, oldest first; cancelled ones are never listed.
    pub processes: Vec<Process>,
}
