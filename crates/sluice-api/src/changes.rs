//! What a branch changes on the wire, in parts that a screen can show: files, hunks and lines with their numbers; and the
//! comments that a person writes at those lines.

use std::hash::{DefaultHasher, Hash, Hasher};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::words;

/// The most files of a part.
pub const CHANGED_FILES: usize = 2000;

/// The most lines of all hunks of a part.
pub const CHANGED_LINES: usize = 20_000;

/// The longest line of a hunk, in bytes; what is longer is cut, and ends with `…`.
pub const CHANGED_LINE_BYTES: usize = 2000;

/// The most commits of a part.
pub const CHANGED_COMMITS: usize = 200;

/// What a branch changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// The branch that holds the work.
    pub branch: String,
    /// The branch that it is compared with.
    pub default_branch: String,
    /// The commit where the work left the default branch; null when there is none.
    pub base: Option<String>,
    /// The newest commit of the work; null when the branch is gone.
    pub commit: Option<String>,
    /// The commits of the branch, the newest first; at most 200.
    pub commits: Vec<ChangeCommit>,
    /// What the commits of the branch change.
    pub committed: ChangePart,
    /// What the worktree changes that no commit has; null when there is no worktree.
    pub uncommitted: Option<ChangePart>,
    /// What has come since the last verdict; null when there was no verdict, or its commit is gone.
    pub since_verdict: Option<ChangesSince>,
    /// What else there is to say, such as that lines were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What has come since the last verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangesSince {
    /// The commit that the last verdict was given for.
    pub verdict_commit: String,
    /// The last verdict, such as `PASS`.
    pub verdict: Option<String>,
    /// The commits since then, the newest first; at most 200.
    pub commits: Vec<ChangeCommit>,
    /// What those commits change.
    pub committed: ChangePart,
}

/// A commit of the branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeCommit {
    /// The id of the commit.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// The name of its author.
    pub author: String,
    /// When it was made, in RFC 3339.
    pub at: String,
}

/// One difference: its files, in the order of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePart {
    /// The files that differ, folder by folder; at most 2,000.
    pub files: Vec<ChangedFile>,
    /// How many files differ.
    pub count: usize,
    /// How many lines were added.
    pub added: u64,
    /// How many lines were removed.
    pub removed: u64,
    /// Whether files or lines were left out.
    pub cut: bool,
}

words! {
    /// What happened to a file.
    FileChange {
        /// The file is new.
        Added = "added",
        /// The text of the file differs.
        Changed = "changed",
        /// The file is gone.
        Removed = "removed",
        /// It has another path.
        Renamed = "renamed",
        /// It is a copy of another file.
        Copied = "copied",
    }
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// The path of the file in the repository.
    pub path: String,
    /// Its path before it was renamed; null when it was not.
    pub before: Option<String>,
    /// What happened to it.
    pub change: FileChange,
    /// How many lines were added; null for a file that is no text.
    pub added: Option<u64>,
    /// How many lines were removed; null for a file that is no text.
    pub removed: Option<u64>,
    /// The places where it differs, from the top; none for a file that is no text, or whose lines were left out.
    pub hunks: Vec<Hunk>,
    /// Whether lines of it were left out.
    pub cut: bool,
}

impl ChangedFile {
    /// What the file says, as a number: a file that was viewed and changes has another.
    pub fn mark(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.change.word(), &self.before, self.added, self.removed).hash(&mut hasher);
        for line in self.hunks.iter().flat_map(|hunk| &hunk.lines) {
            (line.change.word(), line.old, line.new, &line.text).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// A place where a file differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    /// The first line in the old file.
    pub old_start: u32,
    /// How many lines of the old file it has.
    pub old_lines: u32,
    /// The first line in the new file.
    pub new_start: u32,
    /// How many lines of the new file it has.
    pub new_lines: u32,
    /// What git found above it, such as the name of a function; empty where it found nothing.
    pub heading: String,
    /// Its lines, from the top.
    pub lines: Vec<HunkLine>,
}

words! {
    /// What happened to a line.
    LineChange {
        /// It stands in both files.
        Same = "same",
        /// It stands in the new file alone.
        Added = "added",
        /// It stands in the old file alone.
        Removed = "removed",
    }
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HunkLine {
    /// What happened to it.
    pub change: LineChange,
    /// Its number in the old file; null for one that was added.
    pub old: Option<u32>,
    /// Its number in the new file; null for one that was removed.
    pub new: Option<u32>,
    /// The line, without its end. A character that is a command to a terminal is shown as a picture of it.
    pub text: String,
}

/// The most comments of one request for changes.
pub const MOST_COMMENTS: usize = 200;

/// The longest comment, in bytes.
pub const LONGEST_COMMENT: usize = 8192;

/// A request for changes: a text, comments at lines, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
// Not `anyOf`, which makers of clients take for a choice of types.
#[schemars(extend(
    "if" = { "not": { "required": ["comments"], "properties": { "comments": { "minItems": 1 } } } },
    "then" = { "required": ["message"], "properties": { "message": { "minLength": 1 } } },
))]
pub struct RequestChanges {
    /// A text for the worker.
    #[serde(default)]
    pub message: String,
    /// Comments at lines of files; they stand below the text, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MOST_COMMENTS))]
    pub comments: Vec<LineComment>,
}

/// A comment at a line of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LineComment {
    /// The path of the file in the repository.
    pub file: String,
    /// The number of the line in the new file; in the old one for a line that was removed; null for the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Whether `line` is a line of the old file, which was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// The part of the changes in which the line has this number; null where that does not matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<CommentedPart>,
    /// The comment, in plain text.
    pub text: String,
}

/// A part of the changes: a line may have another number in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommentedPart {
    /// What the commits of the branch change.
    Committed,
    /// What no commit has.
    Uncommitted,
    /// What came since the last verdict.
    SinceVerdict,
}

impl CommentedPart {
    /// All parts of the changes.
    pub const ALL: [CommentedPart; 3] =
        [CommentedPart::Committed, CommentedPart::Uncommitted, CommentedPart::SinceVerdict];

    /// As the API writes it.
    pub const fn word(self) -> &'static str {
        match self {
            CommentedPart::Committed => "committed",
            CommentedPart::Uncommitted => "uncommitted",
            CommentedPart::SinceVerdict => "since_verdict",
        }
    }

    /// As a person reads it behind the number of a line.
    pub const fn spoken(self) -> &'static str {
        match self {
            CommentedPart::Committed => "committed",
            CommentedPart::Uncommitted => "not committed",
            CommentedPart::SinceVerdict => "since the last verdict",
        }
    }
}
