//! What stands in the files of a session's folder: what is to be run, who runs, how it ended.
//!
//! A shim of an older version may live beside a newer engine: fields are added, never changed, and unknown ones ignored.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::process::ProcessIdentity;

const LONGEST_ID: usize = 100;

/// The name of a session, which is also the name of its folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct SessionId(String);

impl SessionId {
    /// A name of letters, digits, `-`, `_` and `.`, which does not begin with a dot.
    pub fn new(text: impl Into<String>) -> Result<Self, String> {
        let text = text.into();
        let fits = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        if text.is_empty() || text.len() > LONGEST_ID || text.starts_with('.') || !text.chars().all(fits) {
            return Err(format!("`{text}` cannot name a session: use up to {LONGEST_ID} letters, digits, `-`, `_`"));
        }
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for SessionId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// Its name. A second start under the same name adopts the first.
    pub id: SessionId,
    /// The agent and its arguments. No shell sees them.
    pub arguments: Vec<String>,
    /// The agent's whole environment. In a terminal `TERM` is set by the shim, because only it knows.
    pub environment: BTreeMap<String, String>,
    pub folder: PathBuf,
    pub place: SessionPlace,
    /// What is typed into its terminal first, by the shim: no caller has to wait until the agent reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<TypedText>,
    pub limits: SessionLimits,
    /// The keeper that must be there for it to go on; none unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<SessionKeeper>,
    /// Whose work it is; it goes on while that is said for all of a home together. Nothing has to be said unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<OwnershipLease>,
    /// What has left its terminal session may go on when it has ended by itself: a server, perhaps. Otherwise nothing of
    /// it does.
    #[serde(default)]
    pub may_leave: bool,
}

/// A text that is typed once the agent reads its terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypedText {
    /// The text; Enter follows.
    pub text: String,
    /// Milliseconds that the agent may take to read keys. After that it is taken for one that reads lines.
    pub ready_within_ms: u64,
}

/// The process without which an agent is not to go on. It also says until when the session is kept
/// ([`super::Sessions::keep`]); after that the agent is paused until it says more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionKeeper {
    /// The file that names it, as an [`ProcessIdentity`] in JSON. Another process takes its place by writing itself there.
    pub file: PathBuf,
    /// Milliseconds for which none may be there before the agent is ended.
    pub away_ms: u64,
    /// Until when it is kept at first, by [`boot_ms`].
    #[serde(default)]
    pub until_ms: u64,
}

/// Under which ownership of a store something was started. It goes on while the folder says so ([`super::LeaseFolder`]), is
/// paused when that is over, and ends when the store has had another owner since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnershipLease {
    /// Where it is said, for all sessions and scripts of a home together.
    pub folder: PathBuf,
    pub epoch: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionPlace {
    /// No terminal: the input is a file or nothing, output and errors are kept apart.
    Headless { input: Option<PathBuf> },
    /// A terminal of its own, which takes text while the agent runs.
    Terminal {
        /// Lines of the terminal as long as no person looks at it.
        rows: u16,
        /// Columns of the terminal as long as no person looks at it.
        columns: u16,
        /// The tmux window that shows it. Without one, or without tmux, it only is in the log.
        window: Option<SessionWindow>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionWindow {
    /// By what the tmux session is known to us: windows of the same key are beside each other. Letters, digits, `-`, `_`.
    pub key: String,
    /// What people see as the tmux session's name, `<project>/<branch>`. Any text.
    pub session: String,
    /// The window's name: `worker`, `review-1`.
    pub name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLimits {
    /// Bytes kept of the beginning of the output.
    pub output_head: u64,
    /// Bytes kept of the end of the output, at most; at least half as many.
    pub output_tail: u64,
    /// Milliseconds after which the agent is ended.
    pub run_for_ms: Option<u64>,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { output_head: 8 << 20, output_tail: 8 << 20, run_for_ms: None }
    }
}

/// Who has the one right to start the agent of a session. The first claim stands for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum SessionClaim {
    /// This shim starts it.
    Shim { shim: ProcessIdentity },
    /// No shim starts it any more: it was given up before a shim came.
    Nobody,
}

/// Written before the agent runs its first instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartRecord {
    pub(crate) version: u32,
    pub(crate) shim: ProcessIdentity,
    pub(crate) agent: ProcessIdentity,
    /// The assignment in the environment of the agent and of what it starts.
    pub(crate) mark: String,
    pub(crate) at_ms: u64,
    pub(crate) pane: Option<SessionPane>,
}

/// A place in a tmux server, by the server's own names, which no person chooses and nothing alters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPane {
    pub session: String,
    /// The pane, `%1`. It also names its window.
    pub pane: String,
    /// The server: its names mean something else in another one.
    pub server: ProcessIdentity,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub version: u32,
    pub end: AgentEnd,
    pub cause: AgentEndCause,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    pub duration_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEnd {
    Code(i32),
    Signal(i32),
    NotStarted(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEndCause {
    /// By itself, or by a process that the shim does not know.
    Itself,
    /// The shim was told to end it.
    Asked,
    /// The tmux window or its server went away.
    TerminalGone,
    TimeLimit,
    /// Its keeper was away for too long.
    Unkept,
}

/// Until when a session is kept, or all of a home.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperTerm {
    pub until_ms: u64,
    /// Of a home: the first ownership since which the store has had no other owner. What was started before ends.
    #[serde(default)]
    pub since: u64,
    /// Of a home: its last ownership.
    #[serde(default)]
    pub epoch: u64,
}

/// That the engine wanted a session to end; written before anything is done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEndRequest {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// How long the agent may take before it is killed, in milliseconds.
    pub grace_ms: u64,
    pub why: String,
}

pub(crate) const VERSION: u32 = 1;

pub(crate) fn now_ms() -> u64 {
    milliseconds(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// Milliseconds since the machine started, also those in which it slept: what others do meanwhile they do all the same.
pub fn boot_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    u64::try_from(now.tv_sec * 1000 + now.tv_nsec / 1_000_000).unwrap_or_default()
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
