//! What tasks and runs have changed, and what their agents printed, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shown::Run;

/// What a branch has over the default branch, and what lies uncommitted beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkDiff {
    /// The branch that holds the work.
    pub branch: String,
    /// The branch that it is compared with.
    pub default_branch: String,
    /// The commit where the work left the default branch; null when there is none.
    pub base: Option<String>,
    /// The newest commit of the work; null when the branch is gone.
    pub commit: Option<String>,
    /// What the commits of the branch change.
    pub committed: WorkDiffPart,
    /// What the worktree changes that no commit has; null when there is no worktree.
    pub uncommitted: Option<WorkDiffPart>,
    /// What else there is to say, such as that a patch was cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One difference: its files, and its patch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkDiffPart {
    /// The files that differ, at most 2,000 of them.
    pub files: Vec<WorkDiffFile>,
    /// How many files differ.
    pub count: usize,
    /// The patch, at most 1 MiB of it; null when only the files were asked for.
    pub patch: Option<String>,
    /// Whether the patch was longer, and is cut.
    pub cut: bool,
}

/// A file that differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkDiffFile {
    /// The path of the file in the repository.
    pub path: String,
    /// Its path before it was renamed; null when it was not.
    pub before: Option<String>,
    /// How many lines were added; null for a file that is no text.
    pub added: Option<u64>,
    /// How many lines were removed; null for a file that is no text.
    pub removed: Option<u64>,
}

/// What the agent of a task printed in its terminal, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskLog {
    /// The session whose output this is; null when the task never had one.
    pub session: Option<String>,
    /// Whether that session is alive.
    pub alive: bool,
    /// The last lines that it printed, without what only a terminal obeys; of a living one that draws a screen, the screen.
    pub log: String,
    /// Whether it printed more before that.
    pub cut: bool,
    /// Whether this is what stands on its screen now.
    #[serde(default)]
    pub screen: bool,
}

/// A piece of what the agents of a task or run print, as it comes: one line of JSON each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogPiece {
    /// The session that printed it; null for what a script printed, and at the end.
    pub session: Option<String>,
    /// The text, without what only a terminal obeys.
    pub text: String,
    /// Whether this is the end: the agents have ended, and all that they printed was sent.
    pub ended: bool,
    /// Where the next piece begins: `STREAM:PLACE` of each stream that this piece is of. The newest of every stream, given back
    /// as `from`, let the next engine go on after what was read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
}

/// How the branch of a run is merged.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeRun {
    /// Merge in the repository of the run, even if its branch has a pull request.
    #[serde(default)]
    pub local: bool,
    /// `ff`, `merge`, `squash` or `rebase`; default: a fast-forward if possible, else a merge commit.
    #[serde(default)]
    pub strategy: Option<String>,
    /// Merge without uncommitted changes, and even if the run failed or was cancelled.
    #[serde(default)]
    pub force: bool,
}

/// What was done about a run, and where it stands now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunMergeAnswer {
    /// The run, as it is after the request.
    pub run: Run,
    /// The commit that the default branch is at.
    pub commit: String,
    /// What else there is to say: a merge commit, a push that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A run that was removed from every list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDeleteAnswer {
    /// The run, as it was.
    pub run: Run,
    /// What stays of it: commits on its branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
