//! Tasks on the wire. Scripts rely on the keys of a task: none goes away.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::attention::{AttentionCause, AttentionNote};
use crate::event::EventShown;
use crate::words::words;
use crate::workspace::Kept;

words! {
    /// How the session of a task is.
    SessionPulse {
        /// The agent of the task is running.
        Active = "active",
        /// Its agent has died.
        Crashed = "crashed",
        /// No agent is running, and none has died.
        Inactive = "inactive",
    }
}

words! {
    /// What became of a hook.
    EffectStatus {
        /// The hook did its work.
        Done = "done",
        /// There was nothing to do.
        Idle = "idle",
        /// It could not be tried.
        Skipped = "skipped",
        /// It was tried, and failed.
        Failed = "failed",
        /// It is under way.
        Running = "running",
    }
}

words! {
    /// Who usually takes a transition; a person may take every one.
    MoveBy {
        /// A person takes it, and no agent may.
        Person = "person",
        /// An agent of the task takes it when its work is done.
        Agent = "agent",
        /// The engine takes it: a run or an agent has ended.
        Engine = "engine",
    }
}

/// A transition from the present status, and whether the caller could take it now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MoveShown {
    /// The status that it leads to.
    pub to: String,
    /// Whether the caller could take it now.
    pub open: bool,
    /// Why the caller cannot take it now; null when it is open.
    pub why: Option<String>,
    /// The code of that refusal; null when it is open.
    #[serde(default)]
    pub code: Option<String>,
    /// Who usually takes it.
    pub by: MoveBy,
    /// Whether the task could be merged along it; only on the transition to `done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeShown>,
}

/// Whether the caller could merge a task now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergeShown {
    /// Whether nothing is in the way of a merge.
    pub open: bool,
    /// What is in the way; null when nothing is.
    pub why: Option<String>,
    /// The code of that refusal; null when nothing is in the way.
    #[serde(default)]
    pub code: Option<String>,
}

/// A task as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// The id of the task, chosen by the engine; requests may shorten it.
    pub id: String,
    /// The name of the project that the task belongs to.
    pub project: String,
    /// The git branch that holds the work of the task.
    pub branch: String,
    /// The name of the lifecycle that the task follows.
    pub workflow: String,
    /// The harness that does the work.
    pub harness: String,
    /// The harness that reviews it.
    pub review_harness: String,
    /// The status of the task: one of `statuses`.
    pub status: String,
    /// How often a review was begun.
    pub review_round: i64,
    /// How often an agent ended without its artifact.
    pub crash_count: u32,
    /// What is to be done, in one line; empty while the task needs to be clarified.
    pub summary: String,
    /// The name of the worktree that the task has; null while it has none.
    pub workspace: Option<String>,
    /// The worktree that was lent on while the task waits for a person; the task takes one up again when it moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lent: Option<LentWorkspace>,
    /// The name of its tmux session.
    pub tmux_session: Option<String>,
    /// The state of its session.
    pub session: SessionPulse,
    /// Whether it has ended, and everything has settled.
    #[serde(default)]
    pub ended: bool,
    /// How long its agent has been silent.
    pub idle_seconds: Option<u64>,
    /// Why a person should look, and what can be answered; null if nothing waits.
    pub attention: Option<AttentionNote>,
    /// What else a person should look at, behind `attention`: a hook that failed beside a review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also: Option<AttentionCause>,
    /// Whether nothing goes on before a person does something.
    #[serde(default)]
    pub needs_person: bool,
    /// The statuses that it can have, by its lifecycle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<String>,
    /// The last lines of an agent that has died; only where one task is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
    /// The transitions from its present status, and which of them the caller could take; only where one task is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<Vec<MoveShown>>,
    /// The work of the task that was put away and can be restored, the newest first; only where one task is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// Where the pull request is.
    pub pr_url: Option<String>,
    /// The run that its state has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The number of its last event: a follower of its events goes on after it.
    #[serde(default)]
    pub version: u64,
    /// When it was created.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
}

/// A worktree that was lent on, and where the work stood in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LentWorkspace {
    /// The name of the worktree that the task had.
    pub workspace: String,
    /// The commit of the task's branch that was checked out there.
    pub commit: String,
}

/// What the event `task.created` says of a task. It stands here, and not beside the other events, because what a task is
/// about is shown in both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreatedTask {
    /// The status that the task starts in.
    pub status: String,
    /// The task in one line.
    pub summary: String,
    /// The git branch that holds the work of the task.
    pub branch: String,
    /// The harness that does the work.
    pub harness: String,
    /// The harness that reviews it.
    pub review_harness: String,
}

/// What was done about a task, and where it stands now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskAnswer {
    /// The task, as it is after the request.
    pub task: Task,
    /// The change of status, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition: Option<Transition>,
    /// What else there is to say: a merge commit, a kept ref.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether its effects had not all settled when the answer was given.
    #[serde(default)]
    pub still_running: bool,
}

/// A change of status and what was done for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transition {
    /// The status before the change.
    pub from: String,
    /// The status after the change.
    pub to: String,
    /// What its hooks did.
    pub effects: Vec<EffectReport>,
}

/// What became of a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EffectReport {
    /// The turn, the step and the action of the hook, such as `turn-2/1 push_branch`.
    pub id: String,
    /// What was to be done.
    pub action: String,
    /// What became of it.
    pub status: EffectStatus,
    /// Why it could not be done.
    pub error: Option<String>,
}

/// A page of the list of tasks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskList {
    /// The tasks, oldest first.
    pub tasks: Vec<Task>,
    /// Where to go on (`after`), if more have ended than are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A task that is asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
// Not `anyOf`, which makers of clients take for a choice of types.
#[schemars(extend(
    "if" = { "not": { "required": ["cwd"], "properties": { "cwd": { "type": "string" } } } },
    "then" = { "required": ["project"], "properties": { "project": { "type": "string" } } },
))]
pub struct CreateTask {
    /// Its project; default: the one around `cwd`.
    #[serde(default)]
    pub project: Option<String>,
    /// The folder of the caller, by which the project is found unless it is given.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Its branch; default: one of its own.
    #[serde(default)]
    pub branch: Option<String>,
    /// What is to be done, in one line; if it is empty, the task needs to be clarified.
    #[serde(default)]
    pub summary: String,
    /// The lifecycle that the task follows; default: that of its project, else `default`.
    #[serde(default)]
    pub workflow: Option<String>,
    /// The harness that does the work.
    #[serde(default)]
    pub harness: Option<String>,
    /// The harness that reviews it.
    #[serde(default)]
    pub review_harness: Option<String>,
    /// What TASK.md says from the start.
    #[serde(default)]
    pub context: Option<String>,
    /// The status it starts in.
    #[serde(default)]
    pub status: Option<String>,
    /// Whether its agent is not to be started.
    #[serde(default)]
    pub no_spawn: bool,
}

/// What is changed of a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateTask {
    /// The status to move the task to.
    #[serde(default)]
    pub status: Option<String>,
    /// The branch that holds the work of the task from now on.
    #[serde(default)]
    pub branch: Option<Branch>,
    /// The new summary, in one line.
    #[serde(default)]
    pub summary: Option<String>,
}

/// Which branch: the checked-out one or a named one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Branch {
    /// The one that is checked out in its workspace.
    Current,
    /// The branch of this name.
    Named(String),
}

/// How a task is merged.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeTask {
    /// Merge in the repository of the project, even if the task has a pull request.
    #[serde(default)]
    pub local: bool,
    /// `ff`, `merge`, `squash` or `rebase`; default: a fast-forward if possible, else a merge commit.
    #[serde(default)]
    pub strategy: Option<String>,
    /// Merge even if the verdict is FAIL or older than the work, and without uncommitted changes.
    #[serde(default)]
    pub force: bool,
    /// Commit the uncommitted changes in its workspace first.
    #[serde(default)]
    pub commit: bool,
}

/// What a person says with an approval or a rejection.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// A text that is added to TASK.md as `## Feedback`.
    #[serde(default)]
    pub message: Option<String>,
}

/// A text to pass on: feedback, or a message for an agent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The text to pass on.
    pub message: String,
}

/// What happened to a task, a line for each.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// The events of the task, oldest first.
    pub events: Vec<EventShown>,
}

/// What stands below the frontmatter of a task's TASK.md, now or earlier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskFile {
    /// Which of the versions this is; null when it has not been kept yet.
    pub version: Option<usize>,
    /// The text below the frontmatter, in this version.
    pub text: String,
    /// Every version that was kept, oldest first.
    pub versions: Vec<FileVersion>,
}

/// A version of TASK.md that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileVersion {
    /// Its number, from 1.
    pub version: usize,
    /// When it was read.
    pub time: String,
    /// The length of the text, in bytes.
    pub bytes: u64,
    /// The digest of its bytes.
    pub digest: String,
}

/// Where a task's session can be looked at, on the engine's machine. The client runs tmux itself.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Attach {
    /// The socket of the tmux server.
    pub socket: String,
    /// The pane there: `%7`.
    pub target: String,
}
