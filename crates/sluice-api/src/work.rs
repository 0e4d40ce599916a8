//! The work protocol: what an engine and a worker on another machine say to each other about a step.
//!
//! The engine sends [`ToWorker`] over the worker's WebSocket; the worker sends [`FromWorker`] there, and begins and
//! finishes a step with requests that have the same bodies. Fields are only added. A side ignores a field that it does not
//! know, and a field that the other side does not send has the value that it had before the field existed, so that each
//! side speaks the older of the two versions. A change that this cannot express raises [`OLDEST`], and then the two refuse
//! each other.

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Problem;
use crate::control::AttemptAnswer;

/// What the name of the group of a project's workers begins with.
pub const PROJECT_GROUP: &str = "project:";

/// The group of the workers of a project: what they register with in place of a colony.
pub fn project_group(project: &str) -> String {
    format!("{PROJECT_GROUP}{project}")
}

/// The version of this protocol that this build speaks. Version 1 had no number, and reports without exit code, standard
/// error, cached tokens and cost.
pub const PROTOCOL: u32 = 4;
/// The oldest version of the other side with which this build works.
pub const OLDEST: u32 = 1;
/// The first version in which each field of a report means just what it says; before, a missing value was read from the
/// summary.
pub const LITERAL: u32 = 2;
/// The first version in which a worker asks for its turn before it brings work into the branch of the run.
pub const MERGES: u32 = 3;
/// The first version in which a step says by a word where it works; before, all of them worked in worktrees. A step with
/// another word than `run` and `own` is not sent to an older worker.
pub const WORKSPACES: u32 = 4;

/// Bytes of one line of progress.
pub const LONGEST_PROGRESS: usize = 4 << 10;
/// Bytes of what a command wrote to its standard error.
pub const LONGEST_STDERR: usize = 1 << 20;
/// Bytes of a whole report, as it is sent.
pub const LARGEST_REPORT: usize = 6 << 20;
/// Bytes of a summary or of an error.
pub const LONGEST_SUMMARY: usize = 256 << 10;
/// Bytes of a word that conditions read, or of a name.
pub const LONGEST_WORD: usize = 4 << 10;
/// Bytes of the value that a step gives.
pub const LONGEST_VALUE: usize = 4 << 20;

/// Whether this build works with the other side, which says that it speaks this version. One that says nothing speaks 1.
pub fn works_with(theirs: Option<u32>) -> bool {
    theirs.unwrap_or(1) >= OLDEST
}

/// A message in its envelope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope<Kind> {
    /// The id of the message; a worker of ours sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The mission that the message is about.
    #[serde(default)]
    pub mission_id: Option<String>,
    /// The task that the message is about.
    #[serde(default)]
    pub task_id: Option<String>,
    /// The attempt that the message is about.
    #[serde(default)]
    pub run_id: Option<String>,
    /// What the message says.
    pub kind: Kind,
    /// When the engine sent it, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at_ms: Option<i64>,
}

/// What an engine says to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload")]
pub enum ToWorker {
    /// The worker is to perform this step.
    #[serde(rename = "task_assigned")]
    Assigned(Box<StepOrder>),
    /// The run wants this step ended: end it, and report.
    #[serde(rename = "task_stopped")]
    Stop(StepDispatch),
    /// This step is not the worker's any more: end it, and report nothing.
    #[serde(rename = "task_withdrawn")]
    Revoked(StepDispatch),
    /// Every step that the worker holds, in answer to a heartbeat.
    #[serde(rename = "tasks_held")]
    Held(HeldSteps),
}

/// What a worker says to its engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload")]
pub enum FromWorker {
    /// The worker lives, and is at these steps.
    #[serde(rename = "heartbeat")]
    Heartbeat(Heartbeat),
    /// The worker begins a step.
    #[serde(rename = "run_start")]
    Started(StepStart),
    /// How a step is going.
    #[serde(rename = "run_update")]
    Progress(StepProgress),
    /// How a step ended.
    #[serde(rename = "run_complete")]
    Finished(Box<StepReport>),
}

/// What an engine answers to a message of a worker.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", content = "payload")]
pub enum WorkerReply {
    /// The engine has accepted the message.
    #[serde(rename = "ack")]
    Ack(AttemptAnswer),
    /// The engine has refused the message, and why.
    #[serde(rename = "error")]
    Error(Problem),
}

/// An answer in its envelope.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplyEnvelope {
    /// The answer and its envelope, whose fields stand beside `reply_to`.
    #[serde(flatten)]
    pub envelope: Envelope<WorkerReply>,
    /// The `message_id` of the message that is answered, whatever that is.
    pub reply_to: Value,
}

/// A step that an engine hands to a worker, with all that the worker needs for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepOrder {
    /// The version that the engine speaks.
    #[serde(default)]
    pub protocol: Option<u32>,
    /// The number of this hand-out: another attempt, or the same one given to another worker, has another.
    pub dispatch: u64,
    /// The task of the mission.
    pub task_id: String,
    /// The id of the mission that the task belongs to.
    pub mission_id: String,
    /// The step of the workflow.
    pub step_id: String,
    /// The role that the step wants.
    pub role: String,
    /// What people call the step.
    #[serde(default)]
    pub title: String,
    /// What an agent is told; empty for a command.
    #[serde(default)]
    pub prompt: String,
    /// What came of the steps before it.
    #[serde(default)]
    pub context: String,
    /// The engine's name for the worktree.
    #[serde(default)]
    pub worktree_path: String,
    /// Where that name begins in the prompt, in bytes. `None`: the engine does not tell, so it may stand anywhere.
    #[serde(default)]
    pub worktree_at: Option<Vec<usize>>,
    /// The variables of a command's environment that hold that name. `None`: any of them.
    #[serde(default)]
    pub worktree_in: Option<Vec<String>>,
    /// The kind of the step, as recipes name it.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// Whether the step judges other work, and may not change it.
    #[serde(default)]
    pub is_arbiter: bool,
    /// The command; `None` for an agent.
    #[serde(default)]
    pub script: Option<String>,
    /// The variables that the command is given.
    #[serde(default)]
    pub environment: Option<Vec<(String, String)>>,
    /// Which attempt of the step this is, from 1.
    #[serde(default = "first")]
    pub attempt: u32,
    /// The part of the step: the whole, an item, a turn.
    #[serde(default)]
    pub part: String,
    /// The name of this part of this attempt, the same however often it is handed out.
    pub performance: String,
    /// The agent program; default: the worker's own.
    #[serde(default)]
    pub harness: Option<String>,
    /// What the agent may do.
    #[serde(default)]
    pub permissions: StepPermissions,
    /// Whether the step works in a worktree of its own, for workers that do not know `workspace`.
    #[serde(default)]
    pub own_workspace: bool,
    /// Where the step works. `None`: an engine of an earlier version, of which `own_workspace` tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<OrderWorkspace>,
    /// Where the repository is, as git understands it.
    #[serde(default)]
    pub repo: Option<String>,
    /// The commit that the step starts from.
    #[serde(default)]
    pub commit: Option<String>,
    /// How long the step is the worker's after a sign of life, in milliseconds.
    #[serde(default)]
    pub lease_ms: Option<u64>,
    /// How long the engine waits for a worker whose connection is gone, in milliseconds.
    #[serde(default)]
    pub away_ms: Option<u64>,
    /// The token with which the agent speaks for its step.
    #[serde(default)]
    pub agent_token: Option<String>,
}

/// The number of a first attempt.
fn first() -> u32 {
    1
}

/// Where a step works on the worker's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderWorkspace {
    /// In the worktree of the run, made from the repository.
    Run,
    /// In a worktree of its own, made from the repository.
    Own,
    /// In a scratch folder of the run, outside git: no repository is needed.
    #[serde(rename = "none")]
    Scratch,
    /// In the checkout that the run was started in, which no worker has: a worker refuses it.
    Here,
}

/// What an agent may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepPermissions {
    /// What its harness allows.
    #[default]
    Full,
    /// Only what a reviewer needs: a reviewer writes its artifact, an arbiter nothing.
    Reduced,
}

/// A hand-out that a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDispatch {
    /// The number of the hand-out, as [`StepOrder::dispatch`] has it.
    pub dispatch: u64,
}

/// Every step that a worker holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldSteps {
    /// The numbers of their hand-outs, as [`StepOrder::dispatch`] has them.
    #[serde(default)]
    pub dispatches: Vec<u64>,
    /// The names of the parts of attempts, as [`StepOrder::performance`] has them.
    #[serde(default)]
    pub performances: Vec<String>,
    /// The heartbeat that this answers. `None`: an engine that heard everything, just now.
    #[serde(default)]
    pub answers: Option<HeartbeatAnswer>,
}

/// What an answered heartbeat said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatAnswer {
    /// The hand-outs that it named.
    #[serde(default)]
    pub dispatches: Vec<u64>,
    /// When it was sent, by the worker's clock.
    #[serde(default)]
    pub sent_ms: Option<u64>,
}

/// A worker's sign of life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The hand-outs that the worker is at; unless it says, all that it was given.
    #[serde(default)]
    pub dispatches: Option<Vec<u64>>,
    /// The worker finishes what it is at, and takes no more.
    #[serde(default)]
    pub finishing: bool,
    /// When it was sent, by the worker's clock: the answer repeats it.
    #[serde(default)]
    pub sent_ms: Option<u64>,
    /// The worker's disk has too little room for another step; it takes no more until it has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// A worker begins a step that was assigned to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepStart {
    /// The name of this attempt; default: the engine chooses one.
    #[serde(default)]
    pub run_id: Option<String>,
    /// The id of the mission that the task belongs to.
    pub mission_id: String,
    /// The id of the task that was assigned to the worker.
    pub task_id: String,
    /// The id that the worker registered with.
    pub crab_id: String,
    /// The folder of the worktree on the worker's machine.
    #[serde(default)]
    pub burrow_path: Option<String>,
}

/// A worker says how a step is going.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepProgress {
    /// The id of the attempt, as the answer to its start has it.
    pub run_id: String,
    /// A line about the progress, for people; absent if only the usage is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_message: Option<String>,
    /// What the model used so far.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub token_usage: Option<TokenUsage>,
}

/// A worker has work to bring into the branch of the run, and asks whether it is its turn. One worker has it at a time, until
/// it has reported, and those of a fan-out in the order of their items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskMergeTurn {
    /// The id of the attempt, as the answer to its start has it.
    pub run_id: String,
}

/// Whether it is a worker's turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergeTurn {
    /// The id of the attempt that asked.
    pub run_id: String,
    /// Whether it is the worker's turn; if not, ask again in a moment.
    pub ready: bool,
    /// The commit at which the work of the run stands now, to be merged with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// The code of the refusal of a copy: another worker has this name.
pub const WORKER_ELSEWHERE: &str = "crab_elsewhere";

/// The code of the refusal of a report whose worker does not have the turn.
pub const NO_MERGE_TURN: &str = "no_merge_turn";

/// Reads an object, and no list of the values of its fields, which serde would take as well.
fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let fields = Option::<serde_json::Map<String, Value>>::deserialize(deserializer)?;
    fields.map(|fields| serde_json::from_value(Value::Object(fields)).map_err(D::Error::custom)).transpose()
}

/// What a model used. A number that is missing is not known, and not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    /// Tokens in, from the cache or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Those of them that came from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Tokens that the model wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Input and output tokens together, as the agent program reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// What the model cost, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// A worker says how a step ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepReport {
    /// The version of the work protocol that the worker speaks; default: 1, where a missing `output` is the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
    /// The id of the attempt, as the answer to its start has it.
    pub run_id: String,
    /// Whether the step is done (`completed`) or not (`failed`).
    #[schemars(extend("enum" = ["completed", "failed"]))]
    pub status: String,
    /// What came of the step, in a few words.
    #[serde(default)]
    pub summary: Option<String>,
    /// The word that conditions read.
    #[serde(default)]
    pub result: Option<String>,
    /// What the model used.
    #[serde(default, deserialize_with = "object")]
    pub token_usage: Option<TokenUsage>,
    /// The value that variables read; default: none, and the summary in version 1 of the protocol.
    #[serde(default)]
    pub output: Option<Value>,
    /// The exit code of a command.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// What a command wrote to its standard error.
    #[serde(default)]
    pub stderr: Option<String>,
    /// The commit at which the work stands now, where the next step starts.
    #[serde(default)]
    pub commit: Option<String>,
    /// The commit of the run with which the work was merged, as the answer to `POST /v1/runs/merge-turn` named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onto: Option<String>,
    /// How it failed: `failed`, `timeout`, `crashed` or `lost`.
    #[serde(default)]
    pub failure: Option<String>,
    /// Why it failed; default: the summary.
    #[serde(default)]
    pub error: Option<String>,
}
