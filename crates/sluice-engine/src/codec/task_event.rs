//! The stored form of what happens to a task. Version 1.
//!
//! States and transitions are numbers: they mean places in the definition that the task is pinned to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sluice_core::lifecycle::StateId;
use sluice_core::machine::Moment;
use sluice_core::name::FieldName;
use sluice_core::task::TaskEvent;
use sluice_core::task::event::{Settlement, TaskCreation, TaskMove};
use sluice_core::task::input::TaskUpdate;
use sluice_core::task::session::{SessionChange, SessionNumber};
use sluice_core::task::state::{CommitId, EdgeId, RaisedAttention, WorktreePath};

use super::task_attention::{StoredAttention, StoredMark};
use super::task_data::{
    StoredAbout, StoredAgent, StoredAsker, StoredCheckResult, StoredExit, StoredFieldValue, StoredJudgement,
    StoredPlace, StoredRefusedVerdict, StoredRunEnd, StoredSignal, StoredWorkState, action, is_never, read_seen,
    write_seen,
};
use super::task_state::is_none;
use super::{UnreadableData, bytes};

pub const VERSION: u16 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
enum StoredTaskEvent {
    Created(StoredTaskCreation),
    Moved(StoredTaskMove),
    Began {
        turn: u32,
        edge: Option<u32>,
    },
    Respawning {
        turn: u32,
        place: StoredPlace,
        by: StoredAsker,
    },
    Retrying {
        turn: u32,
        by: StoredAsker,
    },
    Advanced {
        session: u32,
        to: u32,
    },
    VerdictRefused {
        session: u32,
        asked: StoredRefusedVerdict,
    },
    Crashed {
        session: u32,
        exit: StoredExit,
        count: u32,
    },
    Merged {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        forced: bool,
    },
    Cancelled,
    Updated {
        update: StoredTaskUpdate,
    },
    FieldSet {
        field: String,
        value: StoredFieldValue,
    },
    WorkspaceReserved {
        workspace: String,
    },
    WorkspaceBound {
        workspace: String,
    },
    WorkspaceReleased,
    WorkspaceLent {
        workspace: String,
        branch: String,
        commit: String,
    },
    Session {
        place: StoredPlace,
        session: u32,
        change: StoredSessionChange,
        again: bool,
    },
    PullRequestOpened {
        url: String,
    },
    HookAsked {
        turn: u32,
        step: u32,
        action: String,
    },
    HookSettled {
        turn: u32,
        step: u32,
        action: String,
        settlement: StoredSettlement,
    },
    TurnSettled {
        turn: u32,
    },
    RunStarted {
        turn: u32,
        run: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        began: Option<StoredWorkState>,
    },
    RunEnded {
        run: String,
        end: StoredRunEnd,
        why: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judged: Option<StoredWorkState>,
    },
    RunLeft {
        run: String,
    },
    NotWritten {
        reason: String,
    },
    Signalled {
        session: u32,
        signal: StoredSignal,
    },
    AttentionSet {
        attention: StoredAttention,
        #[serde(default, skip_serializing_if = "is_none")]
        number: u32,
        #[serde(default, skip_serializing_if = "is_never")]
        since: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        behind: Option<StoredMark>,
    },
    AttentionCleared,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTaskCreation {
    status: u32,
    about: StoredAbout,
    by: StoredAsker,
    at: i64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "super::task_state::is_none")]
    sessions: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTaskMove {
    turn: u32,
    from: u32,
    to: u32,
    edge: Option<u32>,
    by: StoredAsker,
    at: i64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judged: Option<StoredJudgement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unchecked: Option<StoredCheckResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handed: Option<StoredWorkState>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    said: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case", deny_unknown_fields)]
enum StoredTaskUpdate {
    Summary { text: String },
    Branch { name: String },
    PullRequest { url: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
enum StoredSessionChange {
    Asked { agent: StoredAgent },
    Started,
    NotStarted { reason: String },
    EndAsked,
    Ended,
    NotEnded,
    Exited { exit: StoredExit },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
enum StoredSettlement {
    Done,
    Idle,
    Skipped { reason: String },
    Failed { reason: String },
}

pub fn write(event: &TaskEvent) -> Vec<u8> {
    let stored = match event {
        TaskEvent::Created(created) => StoredTaskEvent::Created(created.into()),
        TaskEvent::Moved(moved) => StoredTaskEvent::Moved(moved.into()),
        TaskEvent::Began { turn, edge } => StoredTaskEvent::Began { turn: *turn, edge: edge.map(|edge| edge.0) },
        TaskEvent::Respawning { turn, place, by } => {
            StoredTaskEvent::Respawning { turn: *turn, place: (*place).into(), by: (*by).into() }
        }
        TaskEvent::Retrying { turn, by } => StoredTaskEvent::Retrying { turn: *turn, by: (*by).into() },
        TaskEvent::Advanced { session, to } => StoredTaskEvent::Advanced { session: session.0, to: to.0 },
        TaskEvent::VerdictRefused { session, asked } => {
            StoredTaskEvent::VerdictRefused { session: session.0, asked: (*asked).into() }
        }
        TaskEvent::Crashed { session, exit, count } => {
            StoredTaskEvent::Crashed { session: session.0, exit: (*exit).into(), count: *count }
        }
        TaskEvent::Merged { commit, forced } => {
            StoredTaskEvent::Merged { commit: commit.as_ref().map(|it| it.0.clone()), forced: *forced }
        }
        TaskEvent::Cancelled => StoredTaskEvent::Cancelled,
        TaskEvent::Updated(update) => StoredTaskEvent::Updated { update: update.into() },
        TaskEvent::FieldSet { field, value } => {
            StoredTaskEvent::FieldSet { field: field.to_string(), value: value.into() }
        }
        TaskEvent::WorkspaceReserved(name) => StoredTaskEvent::WorkspaceReserved { workspace: name.0.clone() },
        TaskEvent::WorkspaceBound(name) => StoredTaskEvent::WorkspaceBound { workspace: name.0.clone() },
        TaskEvent::WorkspaceReleased => StoredTaskEvent::WorkspaceReleased,
        TaskEvent::WorkspaceLent { workspace, branch, commit } => StoredTaskEvent::WorkspaceLent {
            workspace: workspace.0.clone(),
            branch: branch.clone(),
            commit: commit.0.clone(),
        },
        TaskEvent::Session { place, session, change, again } => StoredTaskEvent::Session {
            place: (*place).into(),
            session: session.0,
            change: change.into(),
            again: *again,
        },
        TaskEvent::PullRequestOpened(url) => StoredTaskEvent::PullRequestOpened { url: url.clone() },
        TaskEvent::HookAsked { turn, step, action } => {
            StoredTaskEvent::HookAsked { turn: *turn, step: *step, action: action.word().into() }
        }
        TaskEvent::HookSettled { turn, step, action, settlement } => StoredTaskEvent::HookSettled {
            turn: *turn,
            step: *step,
            action: action.word().into(),
            settlement: settlement.into(),
        },
        TaskEvent::TurnSettled { turn } => StoredTaskEvent::TurnSettled { turn: *turn },
        TaskEvent::RunStarted { turn, run, began } => {
            StoredTaskEvent::RunStarted { turn: *turn, run: run.to_string(), began: began.as_ref().map(Into::into) }
        }
        TaskEvent::RunEnded { run, end, why, judged } => StoredTaskEvent::RunEnded {
            run: run.to_string(),
            end: (*end).into(),
            why: why.clone(),
            judged: judged.as_ref().map(Into::into),
        },
        TaskEvent::RunLeft { run } => StoredTaskEvent::RunLeft { run: run.to_string() },
        TaskEvent::NotWritten(reason) => StoredTaskEvent::NotWritten { reason: reason.clone() },
        TaskEvent::Signalled { session, signal } => {
            StoredTaskEvent::Signalled { session: session.0, signal: signal.into() }
        }
        TaskEvent::AttentionSet(raised) => set(raised),
        TaskEvent::AttentionCleared => StoredTaskEvent::AttentionCleared,
    };
    bytes(&stored)
}

fn set(raised: &RaisedAttention) -> StoredTaskEvent {
    let RaisedAttention { number, since, why, behind } = raised;
    let behind = behind.as_ref().map(Into::into);
    StoredTaskEvent::AttentionSet { attention: why.into(), number: *number, since: since.0, behind }
}

pub fn read(version: u16, bytes: &[u8]) -> Result<TaskEvent, UnreadableData> {
    if version != VERSION {
        return Err(UnreadableData(format!("an event of version {version}; this program knows up to {VERSION}")));
    }
    Ok(match serde_json::from_slice(bytes)? {
        StoredTaskEvent::Created(created) => TaskEvent::Created(created.try_into()?),
        StoredTaskEvent::Moved(moved) => TaskEvent::Moved(moved.try_into()?),
        StoredTaskEvent::Began { turn, edge } => TaskEvent::Began { turn, edge: edge.map(EdgeId) },
        StoredTaskEvent::Respawning { turn, place, by } => {
            TaskEvent::Respawning { turn, place: place.into(), by: by.into() }
        }
        StoredTaskEvent::Retrying { turn, by } => TaskEvent::Retrying { turn, by: by.into() },
        StoredTaskEvent::Advanced { session, to } => {
            TaskEvent::Advanced { session: SessionNumber(session), to: StateId(to) }
        }
        StoredTaskEvent::VerdictRefused { session, asked } => {
            TaskEvent::VerdictRefused { session: SessionNumber(session), asked: asked.into() }
        }
        StoredTaskEvent::Crashed { session, exit, count } => {
            TaskEvent::Crashed { session: SessionNumber(session), exit: exit.into(), count }
        }
        StoredTaskEvent::Merged { commit, forced } => TaskEvent::Merged { commit: commit.map(CommitId), forced },
        StoredTaskEvent::Cancelled => TaskEvent::Cancelled,
        StoredTaskEvent::Updated { update } => TaskEvent::Updated(update.into()),
        StoredTaskEvent::FieldSet { field, value } => {
            TaskEvent::FieldSet { field: FieldName::new(field), value: value.into() }
        }
        StoredTaskEvent::WorkspaceReserved { workspace } => TaskEvent::WorkspaceReserved(WorktreePath(workspace)),
        StoredTaskEvent::WorkspaceBound { workspace } => TaskEvent::WorkspaceBound(WorktreePath(workspace)),
        StoredTaskEvent::WorkspaceReleased => TaskEvent::WorkspaceReleased,
        StoredTaskEvent::WorkspaceLent { workspace, branch, commit } => {
            TaskEvent::WorkspaceLent { workspace: WorktreePath(workspace), branch, commit: CommitId(commit) }
        }
        StoredTaskEvent::Session { place, session, change, again } => {
            TaskEvent::Session { place: place.into(), session: SessionNumber(session), change: change.into(), again }
        }
        StoredTaskEvent::PullRequestOpened { url } => TaskEvent::PullRequestOpened(url),
        StoredTaskEvent::HookAsked { turn, step, action: word } => {
            TaskEvent::HookAsked { turn, step, action: action(&word)? }
        }
        StoredTaskEvent::HookSettled { turn, step, action: word, settlement } => {
            TaskEvent::HookSettled { turn, step, action: action(&word)?, settlement: settlement.into() }
        }
        StoredTaskEvent::TurnSettled { turn } => TaskEvent::TurnSettled { turn },
        StoredTaskEvent::RunStarted { turn, run, began } => {
            TaskEvent::RunStarted { turn, run: run.parse()?, began: began.map(Into::into) }
        }
        StoredTaskEvent::RunEnded { run, end, why, judged } => {
            TaskEvent::RunEnded { run: run.parse()?, end: end.into(), why, judged: judged.map(Into::into) }
        }
        StoredTaskEvent::RunLeft { run } => TaskEvent::RunLeft { run: run.parse()? },
        StoredTaskEvent::NotWritten { reason } => TaskEvent::NotWritten(reason),
        StoredTaskEvent::Signalled { session, signal } => {
            TaskEvent::Signalled { session: SessionNumber(session), signal: signal.try_into()? }
        }
        StoredTaskEvent::AttentionSet { attention, number, since, behind } => {
            let (why, behind) = (attention.try_into()?, behind.map(TryInto::try_into).transpose()?);
            TaskEvent::AttentionSet(RaisedAttention { number, since: Moment(since), why, behind })
        }
        StoredTaskEvent::AttentionCleared => TaskEvent::AttentionCleared,
    })
}

impl From<&TaskCreation> for StoredTaskCreation {
    fn from(it: &TaskCreation) -> Self {
        StoredTaskCreation {
            status: it.status.0,
            about: (&it.about).into(),
            by: it.by.into(),
            at: it.at.0,
            seen: write_seen(&it.seen),
            sessions: it.sessions,
        }
    }
}

impl TryFrom<StoredTaskCreation> for TaskCreation {
    type Error = UnreadableData;

    fn try_from(it: StoredTaskCreation) -> Result<Self, UnreadableData> {
        Ok(TaskCreation {
            status: StateId(it.status),
            about: it.about.into(),
            by: it.by.into(),
            at: Moment(it.at),
            seen: read_seen(it.seen)?,
            sessions: it.sessions,
        })
    }
}

impl From<&TaskMove> for StoredTaskMove {
    fn from(it: &TaskMove) -> Self {
        StoredTaskMove {
            turn: it.turn,
            from: it.from.0,
            to: it.to.0,
            edge: it.edge.map(|edge| edge.0),
            by: it.by.into(),
            at: it.at.0,
            seen: write_seen(&it.seen),
            judged: it.judged.as_ref().map(Into::into),
            unchecked: it.unchecked.as_ref().map(Into::into),
            handed: it.handed.as_ref().map(Into::into),
            said: it.said,
        }
    }
}

impl TryFrom<StoredTaskMove> for TaskMove {
    type Error = UnreadableData;

    fn try_from(it: StoredTaskMove) -> Result<Self, UnreadableData> {
        Ok(TaskMove {
            turn: it.turn,
            from: StateId(it.from),
            to: StateId(it.to),
            edge: it.edge.map(EdgeId),
            by: it.by.into(),
            at: Moment(it.at),
            seen: read_seen(it.seen)?,
            judged: it.judged.map(Into::into),
            unchecked: it.unchecked.map(TryInto::try_into).transpose()?,
            handed: it.handed.map(Into::into),
            said: it.said,
        })
    }
}

impl From<&TaskUpdate> for StoredTaskUpdate {
    fn from(it: &TaskUpdate) -> Self {
        match it {
            TaskUpdate::Summary(text) => StoredTaskUpdate::Summary { text: text.clone() },
            TaskUpdate::Branch(name) => StoredTaskUpdate::Branch { name: name.clone() },
            TaskUpdate::PullRequest(url) => StoredTaskUpdate::PullRequest { url: url.clone() },
        }
    }
}

impl From<StoredTaskUpdate> for TaskUpdate {
    fn from(it: StoredTaskUpdate) -> Self {
        match it {
            StoredTaskUpdate::Summary { text } => TaskUpdate::Summary(text),
            StoredTaskUpdate::Branch { name } => TaskUpdate::Branch(name),
            StoredTaskUpdate::PullRequest { url } => TaskUpdate::PullRequest(url),
        }
    }
}

impl From<&SessionChange> for StoredSessionChange {
    fn from(it: &SessionChange) -> Self {
        match it {
            SessionChange::Asked(agent) => StoredSessionChange::Asked { agent: (*agent).into() },
            SessionChange::Started => StoredSessionChange::Started,
            SessionChange::NotStarted(reason) => StoredSessionChange::NotStarted { reason: reason.clone() },
            SessionChange::EndAsked => StoredSessionChange::EndAsked,
            SessionChange::Ended => StoredSessionChange::Ended,
            SessionChange::NotEnded => StoredSessionChange::NotEnded,
            SessionChange::Exited(exit) => StoredSessionChange::Exited { exit: (*exit).into() },
        }
    }
}

impl From<StoredSessionChange> for SessionChange {
    fn from(it: StoredSessionChange) -> Self {
        match it {
            StoredSessionChange::Asked { agent } => SessionChange::Asked(agent.into()),
            StoredSessionChange::Started => SessionChange::Started,
            StoredSessionChange::NotStarted { reason } => SessionChange::NotStarted(reason),
            StoredSessionChange::EndAsked => SessionChange::EndAsked,
            StoredSessionChange::Ended => SessionChange::Ended,
            StoredSessionChange::NotEnded => SessionChange::NotEnded,
            StoredSessionChange::Exited { exit } => SessionChange::Exited(exit.into()),
        }
    }
}

impl From<&Settlement> for StoredSettlement {
    fn from(it: &Settlement) -> Self {
        match it {
            Settlement::Done => StoredSettlement::Done,
            Settlement::Idle => StoredSettlement::Idle,
            Settlement::Skipped(reason) => StoredSettlement::Skipped { reason: reason.clone() },
            Settlement::Failed(reason) => StoredSettlement::Failed { reason: reason.clone() },
        }
    }
}

impl From<StoredSettlement> for Settlement {
    fn from(it: StoredSettlement) -> Self {
        match it {
            StoredSettlement::Done => Settlement::Done,
            StoredSettlement::Idle => Settlement::Idle,
            StoredSettlement::Skipped { reason } => Settlement::Skipped(reason),
            StoredSettlement::Failed { reason } => Settlement::Failed(reason),
        }
    }
}
