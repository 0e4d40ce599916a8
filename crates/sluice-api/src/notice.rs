//! What a person is told with: the message about what waits, and what came of a test of the channels.
//!
//! Nothing here decides who is told or when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::attention::AttentionCause;
use crate::words::words;

/// What a webhook of the kind `json` gets, and a command finds in `SLUICE_ATTENTION`: one thing that waits, or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttentionMessage {
    /// The id of what waits; of several, one that is the same each time for the same things.
    pub id: String,
    /// Why a person is needed; absent for several things.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<AttentionCause>,
    /// What needs a person, in one line.
    pub title: String,
    /// What is the matter; of several things, one line each.
    pub text: String,
    /// The name of the project that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The id of the task that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The id of the run that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Since when it waits, in RFC 3339 (UTC); of several things, the oldest.
    pub since: String,
    /// The command that answers it, if anything can be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Where the page shows the task or run; absent where `[notify] page` names no address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The single things, if this is about several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub things: Vec<AttentionMessage>,
    /// How many more things there are than the message has room for.
    #[serde(default, skip_serializing_if = "is_none")]
    pub more: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

words! {
    /// What came of a message for a channel.
    ChannelOutcome {
        /// The channel has taken the message.
        Sent = "sent",
        /// The channel is not there on this machine.
        Absent = "absent",
        /// The channel did not take the message.
        Failed = "failed",
    }
}

/// What came of a test message on one channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelReport {
    /// The channel: `desktop`, `command`, or `webhook` and its host.
    pub channel: String,
    /// What came of the message.
    pub outcome: ChannelOutcome,
    /// Why it was not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What came of a test message on every channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotifyReport {
    /// The channels, in the order in which they are asked.
    pub channels: Vec<ChannelReport>,
    /// The newest messages that a channel refused so often that the engine gave them up, the oldest first.
    #[serde(default)]
    pub given_up: Vec<RefusedNotice>,
}

/// A message that a channel refused so often that the engine gave it up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedNotice {
    /// The channel: `desktop`, `command`, or `webhook` and its host.
    pub channel: String,
    /// The id of what a person should have been told.
    pub id: String,
    /// What the channel said at last.
    pub why: String,
}

/// What an incoming webhook of Slack takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlackMessage {
    /// The message, in Slack's own markup.
    pub text: String,
}

/// What is written down about a message that a channel has taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AttentionTold {
    /// The ids of what a person was told.
    pub ids: Vec<String>,
    /// The channel; of a webhook only its host.
    pub to: String,
}

/// What is written down when something that a person was told waits no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AttentionOver {
    /// The ids of what waits no more.
    pub ids: Vec<String>,
}
