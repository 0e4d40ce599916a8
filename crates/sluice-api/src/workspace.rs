//! Workspaces: the worktrees that tasks and runs work in, and what is left of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shown::RunStatus;
use crate::words::words;

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
    /// Bytes that it takes on disk; null if sizes were not asked for, or not all of it could be counted.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// The bytes that were counted, where that is not all: it takes at least so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_over_bytes: Option<u64>,
}

/// The worktree of a run, or of a step of a run that has one of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunWorktree {
    /// The id of the run.
    pub run: String,
    /// The name of the part of the run that has the worktree to itself; null: it is the run's.
    pub part: Option<String>,
    /// The status of the run.
    pub status: RunStatus,
    /// The repository that it is a worktree of.
    pub repository: String,
    /// The folder of the worktree, on the engine's machine.
    pub path: String,
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// Whether there is something in it that no commit holds.
    pub dirty: bool,
    /// When it is removed; null: not as long as the run can go on, or it cannot be removed.
    pub goes_at: Option<String>,
    /// Why it cannot be read or removed, such as that its repository is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// Bytes that it takes on disk; null if sizes were not asked for, or not all of it could be counted.
    pub size_bytes: Option<u64>,
    /// The bytes that were counted, where that is not all: it takes at least so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_over_bytes: Option<u64>,
}

/// The scratch folder of a run, in which steps with `workspace: none` work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunScratch {
    /// The id of the run.
    pub run: String,
    /// The status of the run; null: no such run is known.
    pub status: Option<RunStatus>,
    /// The folder, on the engine's machine.
    pub path: String,
    /// When it is removed; null: not as long as the run can go on.
    pub goes_at: Option<String>,
    /// Bytes that it takes on disk; null if sizes were not asked for, or not all of it could be counted.
    pub size_bytes: Option<u64>,
    /// The bytes that were counted, where that is not all: it takes at least so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_over_bytes: Option<u64>,
}

words! {
    /// What a removal or a crash can leave behind.
    LeftoverForm {
        /// A checkout whose task or run is not known, or whose project was removed.
        Checkout = "checkout",
        /// A checkout that was removed half-way. Its work was kept before.
        Removed = "removed",
        /// A folder that stood where a worktree was made, and that git did not know.
        Aside = "aside",
        /// A lock file without a worktree.
        Lock = "lock",
        /// A folder without anything in it.
        Empty = "empty",
    }
}

/// Something that no task and no run has any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leftover {
    /// What kind of leftover it is.
    pub kind: LeftoverForm,
    /// The file or folder, on the engine's machine.
    pub path: String,
    /// The task or run that it was lent to, as far as that is known.
    pub owner: Option<String>,
    /// Why it is still there, or what is to be done about it.
    pub note: String,
    /// Bytes that it takes on disk; null if sizes were not asked for, or not all of it could be counted.
    pub size_bytes: Option<u64>,
    /// The bytes that were counted, where that is not all: it takes at least so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_over_bytes: Option<u64>,
}

/// The room on a file system that worktrees are on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskRoom {
    /// A folder on it.
    pub path: String,
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Whether that is less than `low_disk` of the settings.
    pub is_low: bool,
    /// Whether that is less than `least_free` of the settings: no new worktree is made there.
    pub is_short: bool,
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
    /// The name of the project that the work belongs to; empty for a repository that is no project.
    pub project: String,
    /// The id of the task or run that the work belongs to.
    pub task: String,
    /// The repository that has it.
    #[serde(default)]
    pub repository: String,
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
    /// The worktrees of runs, and of their parts.
    #[serde(default)]
    pub runs: Vec<RunWorktree>,
    /// The scratch folders of runs.
    #[serde(default)]
    pub scratch: Vec<RunScratch>,
    /// What no task and no run has any more.
    #[serde(default)]
    pub leftovers: Vec<Leftover>,
    /// The file systems that worktrees are on.
    #[serde(default)]
    pub disk: Vec<DiskRoom>,
    /// Bytes that only kept work takes, in its repositories and beside them; null if sizes were not asked for.
    #[serde(default)]
    pub kept_bytes: Option<u64>,
    /// What was removed, or would be; only in the answer to a request to remove.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collected: Option<Collected>,
}

/// What to remove, and how much of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CollectWorkspaces {
    /// The name of the project; default: the whole home.
    pub project: Option<String>,
    /// Only say what would be removed.
    pub dry_run: bool,
    /// Remove the checkouts of failed runs too. A retry makes a new one from the run's branch.
    pub failed: bool,
    /// Taken for the sake of older clients, and not used.
    pub cwd: Option<String>,
}

/// What was removed, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collected {
    /// Whether nothing was changed: this is what would happen.
    pub dry_run: bool,
    /// What is gone, or would be.
    pub removed: Vec<CollectedItem>,
    /// What should be gone and is not.
    pub failed: Vec<NotCollected>,
    /// What may go later, and why not now.
    #[serde(default)]
    pub later: Vec<NotCollected>,
    /// Bytes on disk that this frees; at least, where a size could not be counted whole.
    pub freed_bytes: u64,
}

/// A file or folder that was removed, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CollectedItem {
    /// What it is: `worktree`, `run`, `scratch`, or a kind of leftover.
    pub kind: String,
    /// The file or folder, on the engine's machine.
    pub path: String,
    /// The task or run that it was lent to, as far as that is known.
    pub owner: Option<String>,
    /// What was kept of it, such as `changes, new files`; null: nothing would have been lost.
    pub kept: Option<String>,
    /// The number under which `sluice workspace restore` finds what was kept.
    pub number: Option<u32>,
    /// Bytes that it took on disk; null if not all of it could be counted.
    pub size_bytes: Option<u64>,
    /// The bytes that were counted, where that is not all: it took at least so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_over_bytes: Option<u64>,
}

/// A file or folder that could not be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotCollected {
    /// The file or folder, on the engine's machine.
    pub path: String,
    /// Why it is still there.
    pub why: String,
}

/// Which kept work is not wanted any more.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropKept {
    /// The id of the task or run whose work it is, or how it begins.
    pub task: String,
    /// The number of the copy; it must be named if there is more than one.
    #[serde(default)]
    pub number: Option<u32>,
}

/// Kept work that was dropped.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DroppedKept {
    /// What it was, and the reference that is gone.
    pub dropped: Kept,
    /// The commit that held it. git has it for a while, until it clears away what nothing leads to.
    pub commit: String,
}

/// What to bring back, and where to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// The id of the task or run whose work to restore, or how it begins.
    pub task: String,
    /// The number of the copy to restore; default: the newest.
    #[serde(default)]
    pub number: Option<u32>,
    /// The new folder to put it into; default: one in the engine's home.
    #[serde(default)]
    pub into: String,
}
