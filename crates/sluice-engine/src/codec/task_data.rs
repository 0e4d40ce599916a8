//! The parts that stored events, states and effects of tasks share. Version 1.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sluice_core::artifact::Verdict;
use sluice_core::lifecycle::{FieldValue, HarnessChoice, Permissions};
use sluice_core::task::effect::Occasion;
use sluice_core::task::input::RunEnd;
use sluice_core::task::session::{Agent, Exit, Place, Role, SessionId};
use sluice_core::task::state::{About, Asked, Attention, Checked, Commit, Judged, StatePrompt, Stood, Tree};
use sluice_core::task::{Action, Asker, Digest, Seen};

use super::Unreadable;

/// Stored twins of enums without data. The words are those of version 1, whatever the core calls them later.
macro_rules! twins {
    ($($stored:ident of $core:ident { $($variant:ident),+ })+) => {$(
        #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(super) enum $stored { $($variant,)+ }

        impl From<$core> for $stored {
            fn from(it: $core) -> Self {
                match it { $($core::$variant => $stored::$variant,)+ }
            }
        }

        impl From<$stored> for $core {
            fn from(it: $stored) -> Self {
                match it { $($stored::$variant => $core::$variant,)+ }
            }
        }
    )+};
}

twins! {
    StoredPlace of Place { Main, Beside }
    StoredRole of Role { Worker, Reviewer }
    StoredVerdict of Verdict { Pass, Fail }
    StoredHarness of HarnessChoice { Task, Review }
    StoredPermissions of Permissions { Full, Reduced }
    StoredOccasion of Occasion { ReviewFailed, ReviewPassed, ChangesRequested }
    StoredPrompt of StatePrompt { Enter, Respawn }
    StoredRunEnd of RunEnd { Completed, Failed, Cancelled }
}

/// The action whose word was stored.
pub(super) fn action(word: &str) -> Result<Action, Unreadable> {
    let found = Action::ALL.iter().copied().find(|action| action.word() == word);
    found.ok_or_else(|| Unreadable(format!("no action is called `{word}`")))
}

/// What stands before the digest of a section in which a PASS was planted.
const PLANTED: &str = "planted:";

/// Sections and what their text was, in hexadecimal.
pub(super) fn write_seen(seen: &BTreeMap<String, Seen>) -> BTreeMap<String, String> {
    let written = |(title, Seen { digest, is_planted }): (&String, &Seen)| {
        let mark = if *is_planted { PLANTED } else { "" };
        (title.clone(), format!("{mark}{}", sluice_store::Digest(digest.0)))
    };
    seen.iter().map(written).collect()
}

pub(super) fn read_seen(seen: BTreeMap<String, String>) -> Result<BTreeMap<String, Seen>, Unreadable> {
    let read = |(title, text): (String, String)| {
        let planted = text.strip_prefix(PLANTED);
        match super::digest(planted.unwrap_or(&text)) {
            Some(bytes) => Ok((title, Seen { digest: Digest(bytes), is_planted: planted.is_some() })),
            None => Err(Unreadable(format!("no digest: {text}"))),
        }
    };
    seen.into_iter().map(read).collect()
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(tag = "who", rename_all = "snake_case")]
pub(super) enum StoredAsker {
    Person,
    Engine,
    Session { session: u32 },
    Stranger,
}

impl From<Asker> for StoredAsker {
    fn from(it: Asker) -> Self {
        match it {
            Asker::Person => StoredAsker::Person,
            Asker::Engine => StoredAsker::Engine,
            Asker::Session(id) => StoredAsker::Session { session: id.0 },
            Asker::Stranger => StoredAsker::Stranger,
        }
    }
}

impl From<StoredAsker> for Asker {
    fn from(it: StoredAsker) -> Self {
        match it {
            StoredAsker::Person => Asker::Person,
            StoredAsker::Engine => Asker::Engine,
            StoredAsker::Session { session } => Asker::Session(SessionId(session)),
            StoredAsker::Stranger => Asker::Stranger,
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub(super) enum StoredExit {
    Code { code: i32 },
    Signal { signal: i32 },
    Lost,
    Uprooted,
}

impl From<Exit> for StoredExit {
    fn from(it: Exit) -> Self {
        match it {
            Exit::Code(code) => StoredExit::Code { code },
            Exit::Signal(signal) => StoredExit::Signal { signal },
            Exit::Lost => StoredExit::Lost,
            Exit::Uprooted => StoredExit::Uprooted,
        }
    }
}

impl From<StoredExit> for Exit {
    fn from(it: StoredExit) -> Self {
        match it {
            StoredExit::Code { code } => Exit::Code(code),
            StoredExit::Signal { signal } => Exit::Signal(signal),
            StoredExit::Lost => Exit::Lost,
            StoredExit::Uprooted => Exit::Uprooted,
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct StoredAgent {
    session: u32,
    role: StoredRole,
}

impl From<Agent> for StoredAgent {
    fn from(it: Agent) -> Self {
        StoredAgent { session: it.id.0, role: it.role.into() }
    }
}

impl From<StoredAgent> for Agent {
    fn from(it: StoredAgent) -> Self {
        Agent { id: SessionId(it.session), role: it.role.into() }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredValue {
    Number(i64),
    Text(String),
}

impl From<&FieldValue> for StoredValue {
    fn from(it: &FieldValue) -> Self {
        match it {
            FieldValue::Number(number) => StoredValue::Number(*number),
            FieldValue::Text(text) => StoredValue::Text(text.clone()),
        }
    }
}

impl From<StoredValue> for FieldValue {
    fn from(it: StoredValue) -> Self {
        match it {
            StoredValue::Number(number) => FieldValue::Number(number),
            StoredValue::Text(text) => FieldValue::Text(text),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredAbout {
    summary: String,
    project: String,
    branch: String,
    harness: String,
    review_harness: String,
}

impl From<&About> for StoredAbout {
    fn from(it: &About) -> Self {
        StoredAbout {
            summary: it.summary.clone(),
            project: it.project.clone(),
            branch: it.branch.clone(),
            harness: it.harness.clone(),
            review_harness: it.review_harness.clone(),
        }
    }
}

impl From<StoredAbout> for About {
    fn from(it: StoredAbout) -> Self {
        About {
            summary: it.summary,
            project: it.project,
            branch: it.branch,
            harness: it.harness,
            review_harness: it.review_harness,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredJudged {
    verdict: StoredVerdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dirty: bool,
}

/// A verdict that a reviewer asked for and was refused.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct StoredAsked {
    verdict: StoredVerdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found: Option<StoredVerdict>,
}

impl From<Asked> for StoredAsked {
    fn from(it: Asked) -> Self {
        StoredAsked { verdict: it.verdict.into(), found: it.found.map(Into::into) }
    }
}

impl From<StoredAsked> for Asked {
    fn from(it: StoredAsked) -> Self {
        Asked { verdict: it.verdict.into(), found: it.found.map(Into::into) }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredStood {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dirty: bool,
}

impl From<&Judged> for StoredJudged {
    fn from(it: &Judged) -> Self {
        let StoredStood { commit, tree, dirty } = (&it.work).into();
        StoredJudged { verdict: it.verdict.into(), commit, tree, dirty }
    }
}

impl From<StoredJudged> for Judged {
    fn from(it: StoredJudged) -> Self {
        let work = StoredStood { commit: it.commit, tree: it.tree, dirty: it.dirty };
        Judged { verdict: it.verdict.into(), work: work.into() }
    }
}

impl From<&Stood> for StoredStood {
    fn from(it: &Stood) -> Self {
        StoredStood {
            commit: it.commit.as_ref().map(|commit| commit.0.clone()),
            tree: it.tree.as_ref().map(|tree| tree.0.clone()),
            dirty: it.dirty,
        }
    }
}

impl From<StoredStood> for Stood {
    fn from(it: StoredStood) -> Self {
        Stood { commit: it.commit.map(Commit), tree: it.tree.map(Tree), dirty: it.dirty }
    }
}

/// What became of a run that judges the work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredChecked {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<StoredRunEnd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dirty: bool,
}

impl From<&Checked> for StoredChecked {
    fn from(it: &Checked) -> Self {
        let StoredStood { commit, tree, dirty } = (&it.work).into();
        StoredChecked { run: it.run.clone(), end: it.end.map(Into::into), commit, tree, dirty }
    }
}

impl From<StoredChecked> for Checked {
    fn from(it: StoredChecked) -> Self {
        let work = StoredStood { commit: it.commit, tree: it.tree, dirty: it.dirty };
        Checked { run: it.run, end: it.end.map(Into::into), work: work.into() }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub(super) enum StoredAttention {
    PoolFull,
    HookFailed { action: String, reason: String },
    Crashed { count: u32 },
    NoWorkspace,
    NoWorker,
    NoPrompt,
    Uprooted,
    WorkerGone,
    Disputed { found: StoredVerdict, asked: StoredVerdict },
    NotPushed { reason: String },
    NotClosed { reason: String },
    RunEnded { run: String, end: StoredRunEnd, reason: String },
}

impl From<&Attention> for StoredAttention {
    fn from(it: &Attention) -> Self {
        match it {
            Attention::PoolFull => StoredAttention::PoolFull,
            Attention::HookFailed(action, reason) => {
                StoredAttention::HookFailed { action: action.word().into(), reason: reason.clone() }
            }
            Attention::Crashed(count) => StoredAttention::Crashed { count: *count },
            Attention::NoWorkspace => StoredAttention::NoWorkspace,
            Attention::NoWorker => StoredAttention::NoWorker,
            Attention::NoPrompt => StoredAttention::NoPrompt,
            Attention::Uprooted => StoredAttention::Uprooted,
            Attention::WorkerGone => StoredAttention::WorkerGone,
            Attention::Disputed { found, asked } => {
                StoredAttention::Disputed { found: (*found).into(), asked: (*asked).into() }
            }
            Attention::NotPushed(reason) => StoredAttention::NotPushed { reason: reason.clone() },
            Attention::NotClosed(reason) => StoredAttention::NotClosed { reason: reason.clone() },
            Attention::RunEnded { run, end, why } => {
                StoredAttention::RunEnded { run: run.clone(), end: (*end).into(), reason: why.clone() }
            }
        }
    }
}

impl TryFrom<StoredAttention> for Attention {
    type Error = Unreadable;

    fn try_from(it: StoredAttention) -> Result<Self, Unreadable> {
        Ok(match it {
            StoredAttention::PoolFull => Attention::PoolFull,
            StoredAttention::HookFailed { action: word, reason } => Attention::HookFailed(action(&word)?, reason),
            StoredAttention::Crashed { count } => Attention::Crashed(count),
            StoredAttention::NoWorkspace => Attention::NoWorkspace,
            StoredAttention::NoWorker => Attention::NoWorker,
            StoredAttention::NoPrompt => Attention::NoPrompt,
            StoredAttention::Uprooted => Attention::Uprooted,
            StoredAttention::WorkerGone => Attention::WorkerGone,
            StoredAttention::Disputed { found, asked } => {
                Attention::Disputed { found: found.into(), asked: asked.into() }
            }
            StoredAttention::NotPushed { reason } => Attention::NotPushed(reason),
            StoredAttention::NotClosed { reason } => Attention::NotClosed(reason),
            StoredAttention::RunEnded { run, end, reason } => Attention::RunEnded { run, end: end.into(), why: reason },
        })
    }
}
