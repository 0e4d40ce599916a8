//! What events of tasks say.

use serde::Serialize;
use serde_json::Value;

use crate::attention::{AttentionCause, AttentionSource};
use crate::task::CreatedTask;

/// What an event of a task says, and of which task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskEventShown {
    /// What the kind of event says; its fields stand beside `task_id`.
    #[serde(flatten)]
    pub data: TaskEventData,
    /// The id of the task that the event is about.
    pub task_id: String,
    /// The project of the task.
    pub project: String,
}

/// What an event of a task says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TaskEventData {
    /// A task was created.
    Created(CreatedTask),
    /// The status of the task changed.
    Moved {
        /// The status before the change.
        from: String,
        /// The status after the change.
        to: String,
        /// The verdict that led to it.
        verdict: Option<&'static str>,
        /// The commit that was judged.
        commit: Option<String>,
    },
    /// Hooks began, or all of them have settled.
    Turn {
        /// The number of the turn.
        turn: u32,
    },
    /// An agent is started again.
    Place {
        /// The place of the session: `main`, or `beside` for a reviewer next to a living worker.
        place: &'static str,
    },
    /// A session moved the task by what it left.
    Advanced {
        /// The number of the session that moved the task, such as `s2`.
        session: String,
        /// The status after the move.
        to: String,
    },
    /// A reviewer asked for a verdict that its artifact does not have.
    VerdictRefused {
        /// The number of the reviewer's session, such as `s2`.
        session: String,
        /// The verdict that was asked for.
        asked: &'static str,
        /// The verdict that was found.
        found: Option<&'static str>,
    },
    /// An agent ended without its artifact.
    Crashed {
        /// The number of the session that ended, such as `s2`.
        session: String,
        /// How the agent ended, such as `exit code 1` or `signal 9`.
        exit: String,
        /// How often that has happened.
        crash_count: u32,
        /// The end of what the agent printed, as long as that is kept.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        last_lines: Vec<String>,
    },
    /// The work was merged.
    Merged {
        /// The last commit of the branch that was merged; null in events of older engines.
        commit: Option<String>,
        /// Whether it was forced.
        forced: bool,
    },
    /// The name of the event says all there is.
    Nothing {},
    /// The summary of the task changed.
    Summary {
        /// The task in one line.
        summary: String,
    },
    /// The branch of the task changed.
    Branch {
        /// The git branch that holds the work from now on.
        branch: String,
    },
    /// The task has a pull request.
    PullRequest {
        /// The address of the pull request.
        pr_url: String,
    },
    /// A field was set.
    Field {
        /// The name of the field.
        field: String,
        /// A number or a text.
        value: Value,
    },
    /// A workspace was reserved or bound.
    Workspace {
        /// The name of the workspace.
        workspace: String,
    },
    /// The workspace was lent on to another task.
    WorkspaceLent {
        /// The name of the workspace.
        workspace: String,
        /// The branch that was checked out there.
        branch: String,
        /// The commit that was checked out there, with all of the work in it.
        commit: String,
    },
    /// A session was started or ended, or could not be.
    Session {
        /// The place of the session: `main`, or `beside` for a reviewer next to a living worker.
        place: &'static str,
        /// The number of the session that changed, such as `s2`.
        session: String,
        /// How it ended, or why it was not started.
        how: Option<String>,
    },
    /// A hook was begun.
    HookAsked {
        /// The turn, the step and the action.
        hook: String,
    },
    /// A hook has settled.
    HookSettled {
        /// The turn, the step and the action.
        hook: String,
        /// The action of the hook, as lifecycles name it.
        action: &'static str,
        /// Why it was not done.
        error: Option<String>,
    },
    /// A state has started a run, or was left before that had ended.
    Run {
        /// The id of the run that the state started.
        run_id: String,
    },
    /// The run of a state has ended.
    RunEnded {
        /// The id of the run that ended.
        run_id: String,
        /// How the run ended: `completed`, `failed` or `cancelled`.
        run_status: &'static str,
        /// Why the run ended in that way, in plain text.
        reason: String,
        /// What that is taken for.
        verdict: Option<&'static str>,
        /// The commit that was judged.
        commit: Option<String>,
    },
    /// TASK.md could not be written.
    NotWritten {
        /// Always the action that writes TASK.md.
        action: &'static str,
        /// Why the file could not be written.
        error: String,
    },
    /// Something was heard of the agent in a session.
    Signalled {
        /// The number of the session, such as `s2`.
        session: String,
        /// The channel that says so.
        said_by: AttentionSource,
        /// What was heard, in plain text.
        text: String,
    },
    /// A person should look.
    Attention {
        /// The id by which it is answered.
        id: String,
        /// Why a person is needed, in one word.
        reason: AttentionCause,
        /// What the person should look at, in plain text.
        attention: String,
        /// The channel that says so.
        said_by: AttentionSource,
    },
}
