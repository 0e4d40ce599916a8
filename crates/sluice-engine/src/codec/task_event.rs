//! The stored form of what happens to a task. Version 1.
//!
//! States and transitions are numbers: they mean places in the definition that the task is pinned to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sluice_core::lifecycle::StateId;
use sluice_core::machine::Moment;
use sluice_core::name::FieldName;
use sluice_core::task::Event;
use sluice_core::task::event::{Created, Moved, Settlement};
use sluice_core::task::input::Update;
use sluice_core::task::session::{Change, SessionId};
use sluice_core::task::state::{Commit, EdgeId, WorkspaceName};

use super::task_data::{
    StoredAbout, StoredAgent, StoredAsked, StoredAsker, StoredAttention, StoredChecked, StoredExit, StoredJudged,
    StoredPlace, StoredRunEnd, StoredStood, StoredValue, action, read_seen, write_seen,
};
use super::{Unreadable, bytes};

/// The version that is written.
pub const VERSION: u16 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Stored {
    Created(StoredCreated),
    Moved(StoredMoved),
    Began {
        turn: u32,
        edge: Option<u32>,
    },
    Respawning {
        turn: u32,
        place: StoredPlace,
        by: StoredAsker,
    },
    Advanced {
        session: u32,
        to: u32,
    },
    VerdictRefused {
        session: u32,
        asked: StoredAsked,
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
        update: StoredUpdate,
    },
    FieldSet {
        field: String,
        value: StoredValue,
    },
    WorkspaceReserved {
        workspace: String,
    },
    WorkspaceBound {
        workspace: String,
    },
    WorkspaceReleased,
    Session {
        place: StoredPlace,
        session: u32,
        change: StoredChange,
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
        began: Option<StoredStood>,
    },
    RunEnded {
        run: String,
        end: StoredRunEnd,
        why: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judged: Option<StoredStood>,
    },
    RunLeft {
        run: String,
    },
    NotWritten {
        reason: String,
    },
    AttentionSet {
        attention: StoredAttention,
    },
    AttentionCleared,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredCreated {
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
struct StoredMoved {
    turn: u32,
    from: u32,
    to: u32,
    edge: Option<u32>,
    by: StoredAsker,
    at: i64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judged: Option<StoredJudged>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unchecked: Option<StoredChecked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handed: Option<StoredStood>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
enum StoredUpdate {
    Summary { text: String },
    Branch { name: String },
    PullRequest { url: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum StoredChange {
    Asked { agent: StoredAgent },
    Started,
    NotStarted { reason: String },
    EndAsked,
    Ended,
    NotEnded,
    Exited { exit: StoredExit },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum StoredSettlement {
    Done,
    Idle,
    Skipped { reason: String },
    Failed { reason: String },
}

/// The bytes of an event.
pub fn write(event: &Event) -> Vec<u8> {
    let stored = match event {
        Event::Created(created) => Stored::Created(created.into()),
        Event::Moved(moved) => Stored::Moved(moved.into()),
        Event::Began { turn, edge } => Stored::Began { turn: *turn, edge: edge.map(|edge| edge.0) },
        Event::Respawning { turn, place, by } => {
            Stored::Respawning { turn: *turn, place: (*place).into(), by: (*by).into() }
        }
        Event::Advanced { session, to } => Stored::Advanced { session: session.0, to: to.0 },
        Event::VerdictRefused { session, asked } => {
            Stored::VerdictRefused { session: session.0, asked: (*asked).into() }
        }
        Event::Crashed { session, exit, count } => {
            Stored::Crashed { session: session.0, exit: (*exit).into(), count: *count }
        }
        Event::Merged { commit, forced } => {
            Stored::Merged { commit: commit.as_ref().map(|it| it.0.clone()), forced: *forced }
        }
        Event::Cancelled => Stored::Cancelled,
        Event::Updated(update) => Stored::Updated { update: update.into() },
        Event::FieldSet { field, value } => Stored::FieldSet { field: field.to_string(), value: value.into() },
        Event::WorkspaceReserved(name) => Stored::WorkspaceReserved { workspace: name.0.clone() },
        Event::WorkspaceBound(name) => Stored::WorkspaceBound { workspace: name.0.clone() },
        Event::WorkspaceReleased => Stored::WorkspaceReleased,
        Event::Session { place, session, change, again } => {
            Stored::Session { place: (*place).into(), session: session.0, change: change.into(), again: *again }
        }
        Event::PullRequestOpened(url) => Stored::PullRequestOpened { url: url.clone() },
        Event::HookAsked { turn, step, action } => {
            Stored::HookAsked { turn: *turn, step: *step, action: action.word().into() }
        }
        Event::HookSettled { turn, step, action, settlement } => Stored::HookSettled {
            turn: *turn,
            step: *step,
            action: action.word().into(),
            settlement: settlement.into(),
        },
        Event::TurnSettled { turn } => Stored::TurnSettled { turn: *turn },
        Event::RunStarted { turn, run, began } => {
            Stored::RunStarted { turn: *turn, run: run.clone(), began: began.as_ref().map(Into::into) }
        }
        Event::RunEnded { run, end, why, judged } => Stored::RunEnded {
            run: run.clone(),
            end: (*end).into(),
            why: why.clone(),
            judged: judged.as_ref().map(Into::into),
        },
        Event::RunLeft { run } => Stored::RunLeft { run: run.clone() },
        Event::NotWritten(reason) => Stored::NotWritten { reason: reason.clone() },
        Event::AttentionSet(attention) => Stored::AttentionSet { attention: attention.into() },
        Event::AttentionCleared => Stored::AttentionCleared,
    };
    bytes(&stored)
}

/// The event in `bytes`.
pub fn read(version: u16, bytes: &[u8]) -> Result<Event, Unreadable> {
    if version != VERSION {
        return Err(Unreadable(format!("an event of version {version}; this program knows up to {VERSION}")));
    }
    Ok(match serde_json::from_slice(bytes)? {
        Stored::Created(created) => Event::Created(created.try_into()?),
        Stored::Moved(moved) => Event::Moved(moved.try_into()?),
        Stored::Began { turn, edge } => Event::Began { turn, edge: edge.map(EdgeId) },
        Stored::Respawning { turn, place, by } => Event::Respawning { turn, place: place.into(), by: by.into() },
        Stored::Advanced { session, to } => Event::Advanced { session: SessionId(session), to: StateId(to) },
        Stored::VerdictRefused { session, asked } => {
            Event::VerdictRefused { session: SessionId(session), asked: asked.into() }
        }
        Stored::Crashed { session, exit, count } => {
            Event::Crashed { session: SessionId(session), exit: exit.into(), count }
        }
        Stored::Merged { commit, forced } => Event::Merged { commit: commit.map(Commit), forced },
        Stored::Cancelled => Event::Cancelled,
        Stored::Updated { update } => Event::Updated(update.into()),
        Stored::FieldSet { field, value } => Event::FieldSet { field: FieldName::new(field), value: value.into() },
        Stored::WorkspaceReserved { workspace } => Event::WorkspaceReserved(WorkspaceName(workspace)),
        Stored::WorkspaceBound { workspace } => Event::WorkspaceBound(WorkspaceName(workspace)),
        Stored::WorkspaceReleased => Event::WorkspaceReleased,
        Stored::Session { place, session, change, again } => {
            Event::Session { place: place.into(), session: SessionId(session), change: change.into(), again }
        }
        Stored::PullRequestOpened { url } => Event::PullRequestOpened(url),
        Stored::HookAsked { turn, step, action: word } => Event::HookAsked { turn, step, action: action(&word)? },
        Stored::HookSettled { turn, step, action: word, settlement } => {
            Event::HookSettled { turn, step, action: action(&word)?, settlement: settlement.into() }
        }
        Stored::TurnSettled { turn } => Event::TurnSettled { turn },
        Stored::RunStarted { turn, run, began } => Event::RunStarted { turn, run, began: began.map(Into::into) },
        Stored::RunEnded { run, end, why, judged } => {
            Event::RunEnded { run, end: end.into(), why, judged: judged.map(Into::into) }
        }
        Stored::RunLeft { run } => Event::RunLeft { run },
        Stored::NotWritten { reason } => Event::NotWritten(reason),
        Stored::AttentionSet { attention } => Event::AttentionSet(attention.try_into()?),
        Stored::AttentionCleared => Event::AttentionCleared,
    })
}

impl From<&Created> for StoredCreated {
    fn from(it: &Created) -> Self {
        StoredCreated {
            status: it.status.0,
            about: (&it.about).into(),
            by: it.by.into(),
            at: it.at.0,
            seen: write_seen(&it.seen),
            sessions: it.sessions,
        }
    }
}

impl TryFrom<StoredCreated> for Created {
    type Error = Unreadable;

    fn try_from(it: StoredCreated) -> Result<Self, Unreadable> {
        Ok(Created {
            status: StateId(it.status),
            about: it.about.into(),
            by: it.by.into(),
            at: Moment(it.at),
            seen: read_seen(it.seen)?,
            sessions: it.sessions,
        })
    }
}

impl From<&Moved> for StoredMoved {
    fn from(it: &Moved) -> Self {
        StoredMoved {
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
        }
    }
}

impl TryFrom<StoredMoved> for Moved {
    type Error = Unreadable;

    fn try_from(it: StoredMoved) -> Result<Self, Unreadable> {
        Ok(Moved {
            turn: it.turn,
            from: StateId(it.from),
            to: StateId(it.to),
            edge: it.edge.map(EdgeId),
            by: it.by.into(),
            at: Moment(it.at),
            seen: read_seen(it.seen)?,
            judged: it.judged.map(Into::into),
            unchecked: it.unchecked.map(Into::into),
            handed: it.handed.map(Into::into),
        })
    }
}

impl From<&Update> for StoredUpdate {
    fn from(it: &Update) -> Self {
        match it {
            Update::Summary(text) => StoredUpdate::Summary { text: text.clone() },
            Update::Branch(name) => StoredUpdate::Branch { name: name.clone() },
            Update::PullRequest(url) => StoredUpdate::PullRequest { url: url.clone() },
        }
    }
}

impl From<StoredUpdate> for Update {
    fn from(it: StoredUpdate) -> Self {
        match it {
            StoredUpdate::Summary { text } => Update::Summary(text),
            StoredUpdate::Branch { name } => Update::Branch(name),
            StoredUpdate::PullRequest { url } => Update::PullRequest(url),
        }
    }
}

impl From<&Change> for StoredChange {
    fn from(it: &Change) -> Self {
        match it {
            Change::Asked(agent) => StoredChange::Asked { agent: (*agent).into() },
            Change::Started => StoredChange::Started,
            Change::NotStarted(reason) => StoredChange::NotStarted { reason: reason.clone() },
            Change::EndAsked => StoredChange::EndAsked,
            Change::Ended => StoredChange::Ended,
            Change::NotEnded => StoredChange::NotEnded,
            Change::Exited(exit) => StoredChange::Exited { exit: (*exit).into() },
        }
    }
}

impl From<StoredChange> for Change {
    fn from(it: StoredChange) -> Self {
        match it {
            StoredChange::Asked { agent } => Change::Asked(agent.into()),
            StoredChange::Started => Change::Started,
            StoredChange::NotStarted { reason } => Change::NotStarted(reason),
            StoredChange::EndAsked => Change::EndAsked,
            StoredChange::Ended => Change::Ended,
            StoredChange::NotEnded => Change::NotEnded,
            StoredChange::Exited { exit } => Change::Exited(exit.into()),
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
