//! The board on the wire: what every task and run does now, and whose turn it is, in one answer.
//!
//! A client asks for the board once, follows the events after its `cursor`, and asks again for the rows that events name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::attention::{Attention, AttentionNote};
use crate::usage::UsageSum;
use crate::words::words;

/// The most rows of a board. Rows that wait for a person are never left out, even if there are more of them.
pub const BOARD_ROWS: usize = 6000;

/// The most rows of tasks and runs that have ended today.
pub const BOARD_DONE_ROWS: usize = 200;

/// The most rows that can be asked for by their ids.
pub const BOARD_IDS: usize = 100;

/// The number of parts of `activity`.
pub const ACTIVITY_PARTS: usize = 8;

/// The length of each part of `activity`, in seconds.
pub const ACTIVITY_SECONDS: u64 = 30;

/// What every task and run does now, at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Board {
    /// The engine that answers.
    pub engine: BoardEngine,
    /// The position in the log that this answer includes: follow `GET /v1/events?after=CURSOR&follow=true` from here.
    pub cursor: u64,
    /// How many tasks and runs are in each group; those that `rows` leaves out are counted too.
    pub counts: BoardCounts,
    /// The projects and their worktrees, by name.
    pub projects: Vec<BoardProject>,
    /// What agents have used up since midnight (UTC).
    pub today: UsageSum,
    /// What the home itself needs a person for: a damaged store, a full disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub home: Vec<Attention>,
    /// The rows: by group, and the oldest of each group first; what has ended today comes last, the newest first.
    pub rows: Vec<BoardRow>,
    /// How many rows were left out, because there are more than fit; rows that wait for a person are never among them.
    pub left_out: usize,
    /// Why rows were left out, in one sentence; null when none were.
    pub cut: Option<String>,
}

/// The engine behind a board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoardEngine {
    /// The version of Sluice that it runs.
    pub version: String,
    /// When it was started, in RFC 3339 (UTC).
    pub started_at: String,
    /// When it made this answer, in RFC 3339 (UTC).
    pub now: String,
}

/// How many tasks and runs are in each group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoardCounts {
    /// They wait for a person, for another reason than to be merged.
    pub needs_you: usize,
    /// An agent or the engine works on them.
    pub working: usize,
    /// They wait for something that passes by itself, such as a free worktree.
    pub queued: usize,
    /// A reviewer works on them.
    pub in_review: usize,
    /// Their work has passed, and can be merged.
    pub ready_to_merge: usize,
    /// Tasks and runs that have ended since midnight (UTC).
    pub done_today: usize,
    /// Those of `done_today` that ended well: tasks that were merged, runs that were completed.
    pub merged_today: usize,
    /// Those of `done_today` that were cancelled.
    pub cancelled_today: usize,
    /// Things in the inbox: everything that waits for a person, of which one task or run may have several; absent in answers of
    /// engines that do not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<usize>,
}

impl BoardCounts {
    /// How much needs a person: what the inbox has. Every face that shows one number for that asks here.
    pub fn need_person(&self) -> usize {
        self.inbox.unwrap_or(self.needs_you + self.ready_to_merge)
    }
}

/// A project and its worktrees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoardProject {
    /// The name of the project.
    pub name: String,
    /// How many worktrees there are at most.
    pub pool_size: usize,
    /// How many of them a task has.
    pub used: usize,
    /// The ids of the tasks that wait for a worktree, the one that has waited longest first; at most 100.
    pub waiting: Vec<String>,
    /// How many tasks wait for a worktree.
    pub waiting_count: usize,
}

words! {
    /// Whether a row is a task or a run.
    BoardRowKind {
        /// A task of a lifecycle.
        Task = "task",
        /// A run of a recipe.
        Run = "run",
    }
}

words! {
    /// Whose turn it is. It is told by the lifecycle and by what is under way, not by the name of a state.
    BoardGroup {
        /// Nothing goes on before a person does something.
        NeedsYou = "needs_you",
        /// Its work has passed, and can be merged.
        ReadyToMerge = "ready_to_merge",
        /// A reviewer works on it.
        InReview = "in_review",
        /// An agent or the engine works on it.
        Working = "working",
        /// It waits for something that passes by itself, such as a free worktree.
        Queued = "queued",
        /// The task or run has ended.
        Done = "done",
    }
}

words! {
    /// What a person can do with a task or run.
    BoardAction {
        /// Merge its work into the default branch.
        Merge = "merge",
        /// Give the task or run up.
        Cancel = "cancel",
        /// Open a pull request for it.
        CreatePr = "create_pr",
        /// Start its agent for the first time.
        Spawn = "spawn",
        /// Start its agent again.
        Respawn = "respawn",
        /// Look at its terminal.
        Attach = "attach",
        /// Let the work pass, to where its lifecycle leads.
        Approve = "approve",
        /// Send it back with feedback.
        RequestChanges = "request_changes",
        /// Answer what it waits for: one of `choices` of its attention.
        Answer = "answer",
        /// Send its agent a message.
        Nudge = "nudge",
        /// Try the step of a run that failed again.
        Retry = "retry",
        /// Remove it from every list.
        Delete = "delete",
    }
}

/// A task or a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardRow {
    /// Whether it is a task or a run.
    pub kind: BoardRowKind,
    /// The id of the task or run.
    pub id: String,
    /// What a person calls it: the branch of a task, the recipe of a run.
    pub name: String,
    /// What is to be done, in one line; empty when it is not said.
    #[serde(default)]
    pub summary: String,
    /// The name of the project; null for a run whose repository is no project.
    pub project: Option<String>,
    /// The lifecycle of the task, or the recipe of the run.
    pub workflow: String,
    /// Whose turn it is.
    pub group: BoardGroup,
    /// The status of the task or run, in the words of its lifecycle.
    pub status: String,
    /// How often a review was begun, and how often that may be; null where the lifecycle bounds no review and none was begun.
    pub round: Option<BoardRound>,
    /// Why a person should look, and what can be answered; null if nothing waits.
    pub attention: Option<AttentionNote>,
    /// One line for people, without escapes: why it waits, what the run does, or the last line of the terminal.
    pub text: String,
    /// Whether an agent of it is alive.
    pub alive: bool,
    /// The program of the agent that works on it, or worked on it last.
    pub harness: Option<String>,
    /// The model of the agent, where the settings of its program name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How busy the terminal was of late, the oldest part first: a number from 0 to 8 for each part of
    /// `ACTIVITY_SECONDS`; empty when no agent is alive.
    pub activity: Vec<u8>,
    /// What its agents have used up, at least since midnight (UTC); null where nothing is known of it. The usage of a task or
    /// run has all of it.
    pub usage: Option<UsageSum>,
    /// Since when it has this status, in RFC 3339 (UTC).
    pub since: String,
    /// The task that the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The run that the state of the task has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The step of the run that is under way, else that comes next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Where the pull request is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_url: Option<String>,
    /// How large the change is; null where it is not known without work. Asked for its diff, the engine knows it.
    pub diff: Option<DiffSize>,
    /// What a person can do with it now: what its lifecycle has a transition for, and its state allows.
    pub actions: Vec<BoardAction>,
}

/// How often a review was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoardRound {
    /// How often a review was begun.
    pub round: i64,
    /// How often it may be; null where the lifecycle sets no bound.
    pub bound: Option<i64>,
}

/// How large a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffSize {
    /// How many files differ.
    pub files: usize,
    /// How many lines were added.
    pub added: u64,
    /// How many lines were removed.
    pub removed: u64,
}

/// Some rows of the board, as they are now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardRows {
    /// The position in the log that this answer includes.
    pub cursor: u64,
    /// The rows that were asked for.
    pub rows: Vec<BoardRow>,
    /// The ids that are on no board: unknown, deleted, or ended before today.
    pub gone: Vec<String>,
}

/// Views that a person has saved: the first stands on the key 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Views {
    /// The views, at most 9.
    #[schemars(length(max = MOST_VIEWS))]
    pub views: Vec<SavedView>,
}

/// The most views that are kept.
pub const MOST_VIEWS: usize = 9;

/// The longest name of a view, in characters.
pub const LONGEST_VIEW_NAME: usize = 60;

/// The longest filter of a view, in characters.
pub const LONGEST_VIEW_FILTER: usize = 400;

/// A view of the board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SavedView {
    /// Its name, for people.
    #[schemars(length(max = LONGEST_VIEW_NAME))]
    pub name: String,
    /// Only rows of this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Only rows of these groups; none: of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<BoardGroup>,
    /// Only rows in which these words stand; absent: all rows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = LONGEST_VIEW_FILTER))]
    pub filter: String,
}

impl SavedView {
    /// Whether the view hides nothing.
    pub fn shows_everything(&self) -> bool {
        self.project.is_none() && self.groups.is_empty() && self.filter.trim().is_empty()
    }

    /// Whether the view shows a row. The page and the dashboard both ask here, so that a view means the same in both.
    pub fn shows(&self, row: &BoardRow) -> bool {
        let of_project = self.project.as_ref().is_none_or(|project| row.project.as_ref() == Some(project));
        let of_group = self.groups.is_empty() || self.groups.contains(&row.group);
        of_project && of_group && self.filter.split_whitespace().all(|word| row.has_word(&word.to_lowercase()))
    }
}

impl BoardRow {
    /// Whether one of the row's texts holds this word, which is in small letters.
    fn has_word(&self, word: &str) -> bool {
        let reason = self.attention.as_ref().map(|note| note.reason.word());
        let texts = [self.name.as_str(), &self.id, &self.status, &self.workflow, &self.text, &self.summary];
        let more = [self.project.as_deref(), self.harness.as_deref(), self.step.as_deref(), reason];
        texts.into_iter().chain(more.into_iter().flatten()).any(|text| text.to_lowercase().contains(word))
    }
}
