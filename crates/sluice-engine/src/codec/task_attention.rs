//! The stored forms of why a task needs a person.

use serde::{Deserialize, Serialize};
use sluice_core::machine::Moment;
use sluice_core::task::state::{MarkBehind, TaskAttention};

use super::UnreadableData;
use super::task_data::{StoredExit, StoredRunEnd, StoredVerdict, action, channel, dialog, is_never};
use super::task_state::is_none;

/// A mark behind what is more urgent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredMark {
    attention: StoredAttention,
    #[serde(default, skip_serializing_if = "is_none")]
    number: u32,
    #[serde(default, skip_serializing_if = "is_never")]
    since: i64,
}

impl From<&MarkBehind> for StoredMark {
    fn from(it: &MarkBehind) -> Self {
        StoredMark { attention: (&it.why).into(), number: it.number, since: it.since.0 }
    }
}

impl TryFrom<StoredMark> for MarkBehind {
    type Error = UnreadableData;

    fn try_from(it: StoredMark) -> Result<Self, UnreadableData> {
        Ok(MarkBehind { number: it.number, since: Moment(it.since), why: it.attention.try_into()? })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum StoredAttention {
    PoolFull,
    HookFailed {
        action: String,
        reason: String,
    },
    Crashed {
        count: u32,
    },
    NoWorkspace,
    NoWorker,
    NoPrompt,
    Uprooted,
    WorkerGone,
    Disputed {
        found: StoredVerdict,
        asked: StoredVerdict,
    },
    NotPushed {
        reason: String,
    },
    NotClosed {
        reason: String,
    },
    RunEnded {
        run: String,
        end: StoredRunEnd,
        reason: String,
    },
    Review,
    Clarification,
    Stuck {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<StoredExit>,
    },
    Decision,
    Unattended,
    Died {
        exit: StoredExit,
    },
    CannotStart {
        reason: String,
    },
    Dialog {
        what: String,
        text: String,
        by: String,
    },
    Quiet {
        seconds: u64,
    },
}

impl From<&TaskAttention> for StoredAttention {
    fn from(it: &TaskAttention) -> Self {
        match it {
            TaskAttention::PoolFull => StoredAttention::PoolFull,
            TaskAttention::HookFailed(action, reason) => {
                StoredAttention::HookFailed { action: action.word().into(), reason: reason.clone() }
            }
            TaskAttention::Crashed(count) => StoredAttention::Crashed { count: *count },
            TaskAttention::NoWorkspace => StoredAttention::NoWorkspace,
            TaskAttention::NoWorker => StoredAttention::NoWorker,
            TaskAttention::NoPrompt => StoredAttention::NoPrompt,
            TaskAttention::Uprooted => StoredAttention::Uprooted,
            TaskAttention::WorkerGone => StoredAttention::WorkerGone,
            TaskAttention::Disputed { found, asked } => {
                StoredAttention::Disputed { found: (*found).into(), asked: (*asked).into() }
            }
            TaskAttention::NotPushed(reason) => StoredAttention::NotPushed { reason: reason.clone() },
            TaskAttention::NotClosed(reason) => StoredAttention::NotClosed { reason: reason.clone() },
            TaskAttention::RunEnded { run, end, why } => {
                StoredAttention::RunEnded { run: run.to_string(), end: (*end).into(), reason: why.clone() }
            }
            TaskAttention::Review => StoredAttention::Review,
            TaskAttention::Clarification => StoredAttention::Clarification,
            TaskAttention::Stuck(exit) => StoredAttention::Stuck { exit: exit.map(Into::into) },
            TaskAttention::Decision => StoredAttention::Decision,
            TaskAttention::Unattended => StoredAttention::Unattended,
            TaskAttention::Died(exit) => StoredAttention::Died { exit: (*exit).into() },
            TaskAttention::CannotStart(reason) => StoredAttention::CannotStart { reason: reason.clone() },
            TaskAttention::Dialog { what, text, by } => {
                StoredAttention::Dialog { what: what.word().into(), text: text.clone(), by: by.word().into() }
            }
            TaskAttention::Quiet { seconds } => StoredAttention::Quiet { seconds: *seconds },
        }
    }
}

impl TryFrom<StoredAttention> for TaskAttention {
    type Error = UnreadableData;

    fn try_from(it: StoredAttention) -> Result<Self, UnreadableData> {
        Ok(match it {
            StoredAttention::PoolFull => TaskAttention::PoolFull,
            StoredAttention::HookFailed { action: word, reason } => TaskAttention::HookFailed(action(&word)?, reason),
            StoredAttention::Crashed { count } => TaskAttention::Crashed(count),
            StoredAttention::NoWorkspace => TaskAttention::NoWorkspace,
            StoredAttention::NoWorker => TaskAttention::NoWorker,
            StoredAttention::NoPrompt => TaskAttention::NoPrompt,
            StoredAttention::Uprooted => TaskAttention::Uprooted,
            StoredAttention::WorkerGone => TaskAttention::WorkerGone,
            StoredAttention::Disputed { found, asked } => {
                TaskAttention::Disputed { found: found.into(), asked: asked.into() }
            }
            StoredAttention::NotPushed { reason } => TaskAttention::NotPushed(reason),
            StoredAttention::NotClosed { reason } => TaskAttention::NotClosed(reason),
            StoredAttention::RunEnded { run, end, reason } => {
                TaskAttention::RunEnded { run: run.parse()?, end: end.into(), why: reason }
            }
            StoredAttention::Review => TaskAttention::Review,
            StoredAttention::Clarification => TaskAttention::Clarification,
            StoredAttention::Stuck { exit } => TaskAttention::Stuck(exit.map(Into::into)),
            StoredAttention::Decision => TaskAttention::Decision,
            StoredAttention::Unattended => TaskAttention::Unattended,
            StoredAttention::Died { exit } => TaskAttention::Died(exit.into()),
            StoredAttention::CannotStart { reason } => TaskAttention::CannotStart(reason),
            StoredAttention::Dialog { what, text, by } => {
                TaskAttention::Dialog { what: dialog(&what)?, text, by: channel(&by)? }
            }
            StoredAttention::Quiet { seconds } => TaskAttention::Quiet { seconds },
        })
    }
}
