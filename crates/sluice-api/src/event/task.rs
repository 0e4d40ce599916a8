//! What events of tasks say.

use serde::Serialize;
use serde_json::Value;

/// What an event of a task says, and of which task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskEventShown {
    /// What it says.
    #[serde(flatten)]
    pub data: TaskEventData,
    /// The task.
    pub task_id: String,
    /// The project of the task.
    pub project: String,
}

/// What an event of a task says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TaskEventData {
    /// A task was created.
    Created {
        /// The first status.
        status: String,
        /// The task in one line.
        summary: String,
        /// The git branch.
        branch: String,
        /// The harness that does the work.
        harness: String,
        /// The harness that reviews it.
        review_harness: String,
    },
    /// The status changed.
    Moved {
        /// The status before.
        from: String,
        /// The status now.
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
        /// `main` or `beside`.
        place: &'static str,
    },
    /// A session moved the task by what it left.
    Advanced {
        /// The session.
        session: String,
        /// The status now.
        to: String,
    },
    /// A reviewer asked for a verdict that its artifact does not have.
    VerdictRefused {
        /// The session.
        session: String,
        /// The verdict that was asked for.
        asked: &'static str,
        /// The verdict that was found.
        found: Option<&'static str>,
    },
    /// An agent ended without its artifact.
    Crashed {
        /// The session.
        session: String,
        /// How it ended.
        exit: String,
        /// How often that has happened.
        crash_count: u32,
    },
    /// The work was merged.
    Merged {
        /// The commit.
        commit: Option<String>,
        /// Whether it was forced.
        forced: bool,
    },
    /// The name of the event says all there is.
    Nothing {},
    /// The summary changed.
    Summary {
        /// The task in one line.
        summary: String,
    },
    /// The branch changed.
    Branch {
        /// The git branch.
        branch: String,
    },
    /// The task has a pull request.
    PullRequest {
        /// Where it is.
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
    /// A session changed.
    Session {
        /// `main` or `beside`.
        place: &'static str,
        /// The session.
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
        /// The action.
        action: &'static str,
        /// Why it was not done.
        error: Option<String>,
    },
    /// A state has started a run, or was left before that had ended.
    Run {
        /// The run.
        run_id: String,
    },
    /// The run of a state has ended.
    RunEnded {
        /// The run.
        run_id: String,
        /// How it ended.
        run_status: &'static str,
        /// Why.
        reason: String,
        /// What that is taken for.
        verdict: Option<&'static str>,
        /// The commit that was judged.
        commit: Option<String>,
    },
    /// TASK.md could not be written.
    NotWritten {
        /// The action.
        action: &'static str,
        /// Why.
        error: String,
    },
    /// A person should look.
    Attention {
        /// Why.
        attention: String,
    },
}
