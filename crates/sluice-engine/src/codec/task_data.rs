//! The parts that stored events, states and effects of tasks share. Version 1.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sluice_core::artifact::Verdict;
use sluice_core::attention::{AttentionChannel, DialogKind, SessionSignal};
use sluice_core::lifecycle::{AgentPermissions, FieldValue, HarnessChoice};
use sluice_core::task::effect::Occasion;
use sluice_core::task::input::RunEnd;
use sluice_core::task::session::{SessionAgent, SessionExit, SessionNumber, SessionRole, TaskSessionPlace};
use sluice_core::task::state::{
    CommitId, RefusedVerdict, RunJudgement, StatePrompt, TaskSubject, TreeId, WorkSnapshot, WorkVerdict,
};
use sluice_core::task::{SectionDigest, SectionSnapshot, TaskAction, TaskAsker};

use super::UnreadableData;

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
pub(super) use twins;

twins! {
    StoredPlace of TaskSessionPlace { Main, Beside }
    StoredRole of SessionRole { Worker, Reviewer }
    StoredVerdict of Verdict { Pass, Fail }
    StoredHarness of HarnessChoice { Task, Review }
    StoredPermissions of AgentPermissions { Full, Reduced }
    StoredOccasion of Occasion { ReviewFailed, ReviewPassed, ChangesRequested, Answered }
    StoredPrompt of StatePrompt { Enter, Respawn }
    StoredRunEnd of RunEnd { Completed, Failed, Cancelled }
}

pub(super) fn action(word: &str) -> Result<TaskAction, UnreadableData> {
    let found = TaskAction::ALL.iter().copied().find(|action| action.word() == word);
    found.ok_or_else(|| UnreadableData(format!("no action is called `{word}`")))
}

/// What stands before the digest of a section in which a PASS was planted.
const PLANTED: &str = "planted:";

/// Sections and what their text was, in hexadecimal.
pub(super) fn write_seen(seen: &BTreeMap<String, SectionSnapshot>) -> BTreeMap<String, String> {
    let written = |(title, SectionSnapshot { digest, is_planted }): (&String, &SectionSnapshot)| {
        let mark = if *is_planted { PLANTED } else { "" };
        (title.clone(), format!("{mark}{}", sluice_store::Digest(digest.0)))
    };
    seen.iter().map(written).collect()
}

pub(super) fn read_seen(seen: BTreeMap<String, String>) -> Result<BTreeMap<String, SectionSnapshot>, UnreadableData> {
    let read = |(title, text): (String, String)| {
        let planted = text.strip_prefix(PLANTED);
        match super::digest(planted.unwrap_or(&text)) {
            Some(bytes) => Ok((title, SectionSnapshot { digest: SectionDigest(bytes), is_planted: planted.is_some() })),
            None => Err(UnreadableData(format!("no digest: {text}"))),
        }
    };
    seen.into_iter().map(read).collect()
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(tag = "who", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum StoredAsker {
    Person,
    Engine,
    Session { session: u32 },
    Stranger,
}

impl From<TaskAsker> for StoredAsker {
    fn from(it: TaskAsker) -> Self {
        match it {
            TaskAsker::Person => StoredAsker::Person,
            TaskAsker::Engine => StoredAsker::Engine,
            TaskAsker::Session(id) => StoredAsker::Session { session: id.0 },
            TaskAsker::Stranger => StoredAsker::Stranger,
        }
    }
}

impl From<StoredAsker> for TaskAsker {
    fn from(it: StoredAsker) -> Self {
        match it {
            StoredAsker::Person => TaskAsker::Person,
            StoredAsker::Engine => TaskAsker::Engine,
            StoredAsker::Session { session } => TaskAsker::Session(SessionNumber(session)),
            StoredAsker::Stranger => TaskAsker::Stranger,
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum StoredExit {
    Code { code: i32 },
    Signal { signal: i32 },
    Lost,
    Uprooted,
}

impl From<SessionExit> for StoredExit {
    fn from(it: SessionExit) -> Self {
        match it {
            SessionExit::Code(code) => StoredExit::Code { code },
            SessionExit::Signal(signal) => StoredExit::Signal { signal },
            SessionExit::Lost => StoredExit::Lost,
            SessionExit::Uprooted => StoredExit::Uprooted,
        }
    }
}

impl From<StoredExit> for SessionExit {
    fn from(it: StoredExit) -> Self {
        match it {
            StoredExit::Code { code } => SessionExit::Code(code),
            StoredExit::Signal { signal } => SessionExit::Signal(signal),
            StoredExit::Lost => SessionExit::Lost,
            StoredExit::Uprooted => SessionExit::Uprooted,
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredAgent {
    session: u32,
    role: StoredRole,
}

impl From<SessionAgent> for StoredAgent {
    fn from(it: SessionAgent) -> Self {
        StoredAgent { session: it.id.0, role: it.role.into() }
    }
}

impl From<StoredAgent> for SessionAgent {
    fn from(it: StoredAgent) -> Self {
        SessionAgent { id: SessionNumber(it.session), role: it.role.into() }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredFieldValue {
    Number(i64),
    Text(String),
}

impl From<&FieldValue> for StoredFieldValue {
    fn from(it: &FieldValue) -> Self {
        match it {
            FieldValue::Number(number) => StoredFieldValue::Number(*number),
            FieldValue::Text(text) => StoredFieldValue::Text(text.clone()),
        }
    }
}

impl From<StoredFieldValue> for FieldValue {
    fn from(it: StoredFieldValue) -> Self {
        match it {
            StoredFieldValue::Number(number) => FieldValue::Number(number),
            StoredFieldValue::Text(text) => FieldValue::Text(text),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredAbout {
    summary: String,
    project: String,
    branch: String,
    harness: String,
    review_harness: String,
}

impl From<&TaskSubject> for StoredAbout {
    fn from(it: &TaskSubject) -> Self {
        let TaskSubject { summary, project, branch, harness, review_harness } = it.clone();
        StoredAbout { summary, project, branch, harness, review_harness }
    }
}

impl From<StoredAbout> for TaskSubject {
    fn from(it: StoredAbout) -> Self {
        let StoredAbout { summary, project, branch, harness, review_harness } = it;
        TaskSubject { summary, project, branch, harness, review_harness }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredJudgement {
    verdict: StoredVerdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dirty: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredRefusedVerdict {
    verdict: StoredVerdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found: Option<StoredVerdict>,
}

impl From<RefusedVerdict> for StoredRefusedVerdict {
    fn from(it: RefusedVerdict) -> Self {
        StoredRefusedVerdict { verdict: it.verdict.into(), found: it.found.map(Into::into) }
    }
}

impl From<StoredRefusedVerdict> for RefusedVerdict {
    fn from(it: StoredRefusedVerdict) -> Self {
        RefusedVerdict { verdict: it.verdict.into(), found: it.found.map(Into::into) }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredWorkState {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dirty: bool,
}

impl From<&WorkVerdict> for StoredJudgement {
    fn from(it: &WorkVerdict) -> Self {
        let StoredWorkState { commit, tree, dirty } = (&it.work).into();
        StoredJudgement { verdict: it.verdict.into(), commit, tree, dirty }
    }
}

impl From<StoredJudgement> for WorkVerdict {
    fn from(it: StoredJudgement) -> Self {
        let work = StoredWorkState { commit: it.commit, tree: it.tree, dirty: it.dirty };
        WorkVerdict { verdict: it.verdict.into(), work: work.into() }
    }
}

impl From<&WorkSnapshot> for StoredWorkState {
    fn from(it: &WorkSnapshot) -> Self {
        StoredWorkState {
            commit: it.commit.as_ref().map(|commit| commit.0.clone()),
            tree: it.tree.as_ref().map(|tree| tree.0.clone()),
            dirty: it.dirty,
        }
    }
}

impl From<StoredWorkState> for WorkSnapshot {
    fn from(it: StoredWorkState) -> Self {
        WorkSnapshot { commit: it.commit.map(CommitId), tree: it.tree.map(TreeId), dirty: it.dirty }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredCheckResult {
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

impl From<&RunJudgement> for StoredCheckResult {
    fn from(it: &RunJudgement) -> Self {
        let StoredWorkState { commit, tree, dirty } = (&it.work).into();
        StoredCheckResult {
            run: it.run.as_ref().map(ToString::to_string),
            end: it.end.map(Into::into),
            commit,
            tree,
            dirty,
        }
    }
}

impl TryFrom<StoredCheckResult> for RunJudgement {
    type Error = UnreadableData;

    fn try_from(it: StoredCheckResult) -> Result<Self, UnreadableData> {
        let run = it.run.map(|run| run.parse()).transpose()?;
        let work = StoredWorkState { commit: it.commit, tree: it.tree, dirty: it.dirty };
        Ok(RunJudgement { run, end: it.end.map(Into::into), work: work.into() })
    }
}

/// What is heard of an agent, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum StoredSignal {
    Waits { what: String, text: String, by: String },
    Quiet { seconds: u64 },
    Works { by: String },
}

impl From<&SessionSignal> for StoredSignal {
    fn from(it: &SessionSignal) -> Self {
        match it {
            SessionSignal::Waits { what, text, by } => {
                StoredSignal::Waits { what: what.word().into(), text: text.clone(), by: by.word().into() }
            }
            SessionSignal::Quiet { seconds } => StoredSignal::Quiet { seconds: *seconds },
            SessionSignal::Works { by } => StoredSignal::Works { by: by.word().into() },
        }
    }
}

impl TryFrom<StoredSignal> for SessionSignal {
    type Error = UnreadableData;

    fn try_from(it: StoredSignal) -> Result<Self, UnreadableData> {
        Ok(match it {
            StoredSignal::Waits { what, text, by } => {
                SessionSignal::Waits { what: dialog(&what)?, text, by: channel(&by)? }
            }
            StoredSignal::Quiet { seconds } => SessionSignal::Quiet { seconds },
            StoredSignal::Works { by } => SessionSignal::Works { by: channel(&by)? },
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(super) fn is_never(moment: &i64) -> bool {
    *moment == 0
}

pub(super) fn dialog(word: &str) -> Result<DialogKind, UnreadableData> {
    let found = DialogKind::ALL.into_iter().find(|kind| kind.word() == word);
    found.ok_or_else(|| UnreadableData(format!("`{word}` is no kind of dialog")))
}

pub(super) fn channel(word: &str) -> Result<AttentionChannel, UnreadableData> {
    let found = AttentionChannel::ALL.into_iter().find(|channel| channel.word() == word);
    found.ok_or_else(|| UnreadableData(format!("`{word}` is no channel")))
}
