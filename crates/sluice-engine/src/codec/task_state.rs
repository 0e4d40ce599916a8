//! The stored form of where a task is: one header, no rows. Version 1.
//!
//! It stays small because the state keeps digests where the machine compares texts, and numbers where the pinned
//! definition says the rest; the body of TASK.md is in neither.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sluice_core::lifecycle::{Lifecycle, StateId};
use sluice_core::machine::Moment;
use sluice_core::name::FieldName;
use sluice_core::task::TaskState;
use sluice_core::task::session::{Death, Session};
use sluice_core::task::state::{Commit, EdgeId, Job, Start, TaskRun, Turn, Visit, Workspace, WorkspaceName};

use super::remark::Remarks;
use super::task_data::{
    StoredAbout, StoredAgent, StoredAsked, StoredAsker, StoredAttention, StoredChecked, StoredExit, StoredJudged,
    StoredPlace, StoredPrompt, StoredRunEnd, StoredStood, action, read_seen, write_seen,
};
use super::{Unreadable, bytes, known};

/// The version that is written.
pub const VERSION: u16 = 1;

/// What the header of a task keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub id: String,
    /// The digest of its lifecycle.
    pub definition: String,
    /// Where it stands.
    pub state: TaskState,
    /// The ids of the effects that are not settled, in the order in which they were asked for. The outbox does not
    /// know that order: it is sorted by id.
    pub open: Vec<String>,
    /// What was written down about it beside its events.
    pub remarks: Remarks,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredHeader {
    version: u16,
    definition: String,
    id: String,
    open: Vec<String>,
    state: StoredState,
    #[serde(default, skip_serializing_if = "Remarks::is_empty")]
    remarks: Remarks,
}

/// What is asked first of a header: by which definition it is read.
#[derive(Debug, Deserialize)]
struct StoredHead {
    definition: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredState {
    status: u32,
    visit: StoredVisit,
    about: StoredAbout,
    review_round: i64,
    crash_count: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    numbers: BTreeMap<String, i64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    texts: BTreeMap<String, String>,
    workspace: StoredWorkspace,
    main: StoredSession,
    beside: StoredSession,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    turns: Vec<StoredTurn>,
    turns_taken: u32,
    sessions_asked: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attention: Option<StoredAttention>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judged: Option<StoredJudged>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checked: Option<StoredChecked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pull_request: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    merged: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<StoredRun>,
    events: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredRun {
    id: String,
    turn: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<StoredRunEnd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    began: Option<StoredStood>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    accompanied: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredVisit {
    turn: u32,
    since: i64,
    by: StoredAsker,
    watch: StoredPlace,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "is_none")]
    uprooted: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<StoredAsked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handed: Option<StoredStood>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum StoredWorkspace {
    Unbound,
    Reserved { name: String },
    Bound { name: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum StoredSession {
    Absent,
    Starting { agent: StoredAgent },
    Alive { agent: StoredAgent },
    Ending { agent: StoredAgent },
    Dead { agent: StoredAgent, death: StoredDeath },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
enum StoredDeath {
    NotStarted { reason: String },
    Exited { exit: StoredExit },
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredTurn {
    number: u32,
    crashes: u32,
    step: u32,
    jobs: Vec<StoredJob>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum StoredJob {
    Hook { edge: u32, hook: u32 },
    Acquire,
    Start { state: u32, prompt: StoredPrompt, place: StoredPlace, again: bool },
    StartRun { state: u32 },
    CancelRun,
}

/// The bytes of the header.
pub fn write(kept: &Kept) -> Vec<u8> {
    bytes(&StoredHeader {
        version: VERSION,
        definition: kept.definition.clone(),
        id: kept.id.clone(),
        open: kept.open.clone(),
        state: (&kept.state).into(),
        remarks: kept.remarks.clone(),
    })
}

/// The digest of the lifecycle that a header names.
pub fn definition_of(header: &[u8]) -> Result<String, Unreadable> {
    known("a task", header, VERSION)?;
    Ok(serde_json::from_slice::<StoredHead>(header)?.definition)
}

/// What a header keeps. A state that no history of this lifecycle leads to is refused, so that the machine need not
/// look twice.
pub fn read(lifecycle: &Lifecycle, header: &[u8]) -> Result<Kept, Unreadable> {
    definition_of(header)?;
    let StoredHeader { version: _, definition, id, open, state, remarks } = serde_json::from_slice(header)?;
    let state = TaskState::try_from(state)?;
    state.check_invariants(lifecycle).map_err(Unreadable)?;
    let unknown = state.turns.iter().flat_map(|turn| &turn.jobs).any(|job| match job {
        Job::Start(Start { state, .. }) | Job::StartRun(state) => state.0 as usize >= lifecycle.states.len(),
        Job::Hook { .. } | Job::Acquire | Job::CancelRun => false,
    });
    if unknown {
        return Err(Unreadable("something is to be started for a state that the lifecycle does not have".into()));
    }
    Ok(Kept { id, definition, state, open, remarks })
}

impl From<&TaskState> for StoredState {
    fn from(it: &TaskState) -> Self {
        StoredState {
            status: it.status.0,
            visit: (&it.visit).into(),
            about: (&it.about).into(),
            review_round: it.review_round,
            crash_count: it.crash_count,
            numbers: it.numbers.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
            texts: it.texts.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
            workspace: (&it.workspace).into(),
            main: (&it.main).into(),
            beside: (&it.beside).into(),
            turns: it.turns.iter().map(Into::into).collect(),
            turns_taken: it.turns_taken,
            sessions_asked: it.sessions_asked,
            attention: it.attention.as_ref().map(Into::into),
            judged: it.judged.as_ref().map(Into::into),
            checked: it.checked.as_ref().map(Into::into),
            pull_request: it.pull_request.clone(),
            merged: it.merged.as_ref().map(|commit| commit.0.clone()),
            run: it.run.as_ref().map(Into::into),
            events: it.events,
        }
    }
}

impl TryFrom<StoredState> for TaskState {
    type Error = Unreadable;

    fn try_from(it: StoredState) -> Result<Self, Unreadable> {
        Ok(TaskState {
            status: StateId(it.status),
            visit: it.visit.try_into()?,
            about: it.about.into(),
            review_round: it.review_round,
            crash_count: it.crash_count,
            numbers: it.numbers.into_iter().map(|(name, value)| (FieldName::new(name), value)).collect(),
            texts: it.texts.into_iter().map(|(name, value)| (FieldName::new(name), value)).collect(),
            workspace: it.workspace.into(),
            main: it.main.into(),
            beside: it.beside.into(),
            turns: it.turns.into_iter().map(Turn::try_from).collect::<Result<_, _>>()?,
            turns_taken: it.turns_taken,
            sessions_asked: it.sessions_asked,
            attention: it.attention.map(TryInto::try_into).transpose()?,
            judged: it.judged.map(Into::into),
            checked: it.checked.map(Into::into),
            pull_request: it.pull_request,
            merged: it.merged.map(Commit),
            run: it.run.map(Into::into),
            events: it.events,
        })
    }
}

impl From<&TaskRun> for StoredRun {
    fn from(it: &TaskRun) -> Self {
        StoredRun {
            id: it.id.clone(),
            turn: it.turn,
            end: it.end.map(Into::into),
            began: it.began.as_ref().map(Into::into),
            accompanied: it.accompanied,
        }
    }
}

impl From<StoredRun> for TaskRun {
    fn from(it: StoredRun) -> Self {
        let (end, began) = (it.end.map(Into::into), it.began.map(Into::into));
        TaskRun { id: it.id, turn: it.turn, end, began, accompanied: it.accompanied }
    }
}

/// Whether there is nothing to count.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(super) fn is_none(count: &u32) -> bool {
    *count == 0
}

impl From<&Visit> for StoredVisit {
    fn from(it: &Visit) -> Self {
        StoredVisit {
            turn: it.turn,
            since: it.since.0,
            by: it.by.into(),
            watch: it.watch.into(),
            seen: write_seen(&it.seen),
            uprooted: it.uprooted,
            asked: it.asked.map(Into::into),
            handed: it.handed.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<StoredVisit> for Visit {
    type Error = Unreadable;

    fn try_from(it: StoredVisit) -> Result<Self, Unreadable> {
        Ok(Visit {
            turn: it.turn,
            since: Moment(it.since),
            by: it.by.into(),
            watch: it.watch.into(),
            seen: read_seen(it.seen)?,
            uprooted: it.uprooted,
            asked: it.asked.map(Into::into),
            handed: it.handed.map(Into::into),
        })
    }
}

impl From<&Workspace> for StoredWorkspace {
    fn from(it: &Workspace) -> Self {
        match it {
            Workspace::Unbound => StoredWorkspace::Unbound,
            Workspace::Reserved(name) => StoredWorkspace::Reserved { name: name.0.clone() },
            Workspace::Bound(name) => StoredWorkspace::Bound { name: name.0.clone() },
        }
    }
}

impl From<StoredWorkspace> for Workspace {
    fn from(it: StoredWorkspace) -> Self {
        match it {
            StoredWorkspace::Unbound => Workspace::Unbound,
            StoredWorkspace::Reserved { name } => Workspace::Reserved(WorkspaceName(name)),
            StoredWorkspace::Bound { name } => Workspace::Bound(WorkspaceName(name)),
        }
    }
}

impl From<&Session> for StoredSession {
    fn from(it: &Session) -> Self {
        match it {
            Session::Absent => StoredSession::Absent,
            Session::Starting(agent) => StoredSession::Starting { agent: (*agent).into() },
            Session::Alive(agent) => StoredSession::Alive { agent: (*agent).into() },
            Session::Ending(agent) => StoredSession::Ending { agent: (*agent).into() },
            Session::Dead(agent, death) => StoredSession::Dead { agent: (*agent).into(), death: death.into() },
        }
    }
}

impl From<StoredSession> for Session {
    fn from(it: StoredSession) -> Self {
        match it {
            StoredSession::Absent => Session::Absent,
            StoredSession::Starting { agent } => Session::Starting(agent.into()),
            StoredSession::Alive { agent } => Session::Alive(agent.into()),
            StoredSession::Ending { agent } => Session::Ending(agent.into()),
            StoredSession::Dead { agent, death } => Session::Dead(agent.into(), death.into()),
        }
    }
}

impl From<&Death> for StoredDeath {
    fn from(it: &Death) -> Self {
        match it {
            Death::NotStarted(reason) => StoredDeath::NotStarted { reason: reason.clone() },
            Death::Exited(exit) => StoredDeath::Exited { exit: (*exit).into() },
        }
    }
}

impl From<StoredDeath> for Death {
    fn from(it: StoredDeath) -> Self {
        match it {
            StoredDeath::NotStarted { reason } => Death::NotStarted(reason),
            StoredDeath::Exited { exit } => Death::Exited(exit.into()),
        }
    }
}

impl From<&Turn> for StoredTurn {
    fn from(it: &Turn) -> Self {
        StoredTurn {
            number: it.number,
            crashes: it.crashes,
            step: it.step,
            jobs: it.jobs.iter().map(|job| (*job).into()).collect(),
            waiting: it.waiting.map(|action| action.word().into()),
        }
    }
}

impl TryFrom<StoredTurn> for Turn {
    type Error = Unreadable;

    fn try_from(it: StoredTurn) -> Result<Self, Unreadable> {
        Ok(Turn {
            number: it.number,
            crashes: it.crashes,
            step: it.step,
            jobs: it.jobs.into_iter().map(Into::into).collect(),
            waiting: it.waiting.as_deref().map(action).transpose()?,
        })
    }
}

impl From<Job> for StoredJob {
    fn from(it: Job) -> Self {
        match it {
            Job::Hook { edge, hook } => StoredJob::Hook { edge: edge.0, hook },
            Job::Acquire => StoredJob::Acquire,
            Job::Start(start) => StoredJob::Start {
                state: start.state.0,
                prompt: start.prompt.into(),
                place: start.place.into(),
                again: start.again,
            },
            Job::StartRun(state) => StoredJob::StartRun { state: state.0 },
            Job::CancelRun => StoredJob::CancelRun,
        }
    }
}

impl From<StoredJob> for Job {
    fn from(it: StoredJob) -> Self {
        match it {
            StoredJob::Hook { edge, hook } => Job::Hook { edge: EdgeId(edge), hook },
            StoredJob::Acquire => Job::Acquire,
            StoredJob::Start { state, prompt, place, again } => {
                Job::Start(Start { state: StateId(state), prompt: prompt.into(), place: place.into(), again })
            }
            StoredJob::StartRun { state } => Job::StartRun(StateId(state)),
            StoredJob::CancelRun => Job::CancelRun,
        }
    }
}
