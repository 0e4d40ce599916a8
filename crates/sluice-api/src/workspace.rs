//! Workspaces: the worktrees that tasks are lent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A worktree of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workspace {
    /// The name of the worktree, unique in the home.
    pub name: String,
    /// Whose pool it belongs to.
    pub project: String,
    /// The folder of the worktree, on the engine's machine.
    pub path: String,
    /// The task that has it.
    pub task: Option<String>,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// Whether there is something in it that no commit holds.
    pub dirty: bool,
    /// Whether it has been made yet.
    pub exists: bool,
    /// What is wrong with the worktree, if anything: it cannot be read, or no known task has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// A living session that no open task and no run knows: the store was lost, or is older than the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stray {
    /// The name of the session, such as `k3f9.2`.
    pub session: String,
    /// The folder that it works in.
    pub path: String,
}

/// Which session to end.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndStray {
    /// The name of the session to end, as the list of workspaces shows it.
    pub session: String,
}

/// Which session to give a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdoptStray {
    /// The name of the session to adopt, as the list of workspaces shows it.
    pub session: String,
    /// The workflow of the task; default: that of its project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The harness that reviews it; default: that of the home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_harness: Option<String>,
}

/// Work that was put away before something was cleared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kept {
    /// The name of the project that the work belongs to.
    pub project: String,
    /// The id of the task that the work belongs to.
    pub task: String,
    /// The number of this copy among those of the task.
    pub number: u32,
    /// The ref that holds it.
    pub reference: String,
    /// What the copy holds, such as `staged changes, new files`.
    pub what: String,
    /// When it was kept.
    pub at: String,
}

/// The worktrees of a home, and the work and sessions left over from others.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceList {
    /// The worktrees of all pools, or of one project.
    pub workspaces: Vec<Workspace>,
    /// The work that was saved before a worktree was cleared.
    pub kept: Vec<Kept>,
    /// Living sessions that belong to no known task. Their worktrees are not lent meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strays: Vec<Stray>,
}

/// What to bring back, and where to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// The id of the task whose work to restore.
    pub task: String,
    /// The number of the copy to restore; default: the newest.
    #[serde(default)]
    pub number: Option<u32>,
    /// The folder to put it into.
    pub into: String,
}
