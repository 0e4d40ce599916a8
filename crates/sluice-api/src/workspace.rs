//! Workspaces: the worktrees that tasks are lent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A worktree of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workspace {
    /// Its name.
    pub name: String,
    /// Whose pool it belongs to.
    pub project: String,
    /// Where it is.
    pub path: String,
    /// The task that has it.
    pub task: Option<String>,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// Whether there is something in it that no commit holds.
    pub dirty: bool,
    /// Whether it has been made yet.
    pub exists: bool,
    /// What is wrong with it, if something is: it cannot be looked at, or nobody who is known has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// A living session that no open task and no run knows: the store was lost, or is older than the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stray {
    /// Its name.
    pub session: String,
    /// The folder that it works in.
    pub path: String,
}

/// Which session to end.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndStray {
    /// Its name.
    pub session: String,
}

/// Which session to give a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdoptStray {
    /// Its name.
    pub session: String,
    /// The workflow of the task; that of its project unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The harness that reviews it; that of the home unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_harness: Option<String>,
}

/// Work that was put away before something was cleared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kept {
    /// Whose project it was.
    pub project: String,
    /// Whose work it was.
    pub task: String,
    /// The number of the keeping.
    pub number: u32,
    /// The ref that holds it.
    pub reference: String,
    /// What it was.
    pub what: String,
    /// When it was kept.
    pub at: String,
}

/// All of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceList {
    /// The worktrees.
    pub workspaces: Vec<Workspace>,
    /// What was put away.
    pub kept: Vec<Kept>,
    /// Living sessions that nobody knows. The worktrees in which they live are lent to nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strays: Vec<Stray>,
}

/// What to bring back, and where to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// Whose work.
    pub task: String,
    /// Which keeping; the newest unless given.
    #[serde(default)]
    pub number: Option<u32>,
    /// The folder to put it into.
    pub into: String,
}
