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
use sluice_core::task::session::{SessionDeath, SessionNumber, TaskSession};
use sluice_core::task::state::{
    AgentStart, CommitId, HeardSignal, LentWork, RaisedAttention, StatusVisit, TaskJob, TaskRun, TaskTurn,
    TaskWorkspace, WorktreePath,
};

use super::remark::Remarks;
use super::task_attention::{StoredAttention, StoredMark};
use super::task_data::{
    StoredAbout, StoredAgent, StoredAsker, StoredCheckResult, StoredExit, StoredJudgement, StoredPlace,
    StoredRefusedVerdict, StoredRunEnd, StoredSignal, StoredWorkState, action, is_never, read_seen, write_seen,
};
use super::task_job::StoredTaskJob;
use super::{UnreadableData, bytes, known};

pub const VERSION: u16 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskHeader {
    pub id: String,
    /// The digest of its lifecycle.
    pub definition: String,
    pub state: TaskState,
    /// The ids of the effects that are not settled, in the order in which they were asked for. The outbox does not
    /// know that order: it is sorted by id.
    pub open: Vec<String>,
    pub remarks: Remarks,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTaskHeader {
    version: u16,
    definition: String,
    id: String,
    open: Vec<String>,
    state: StoredTaskState,
    #[serde(default, skip_serializing_if = "Remarks::is_empty")]
    remarks: Remarks,
}

/// What is asked first of a header: by which definition it is read.
#[derive(Debug, Deserialize)]
struct StoredDefinitionRef {
    definition: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTaskState {
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lent: Option<StoredLentWork>,
    main: StoredSession,
    beside: StoredSession,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    turns: Vec<StoredTaskTurn>,
    turns_taken: u32,
    sessions_asked: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attention: Option<StoredAttention>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    undone: Vec<StoredTaskJob>,
    #[serde(default, skip_serializing_if = "is_none")]
    attention_number: u32,
    #[serde(default, skip_serializing_if = "is_never")]
    attention_since: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attention_behind: Option<StoredMark>,
    #[serde(default, skip_serializing_if = "is_none")]
    attentions: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signal: Option<StoredHeardSignal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judged: Option<StoredJudgement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checked: Option<StoredCheckResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pull_request: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    merged: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<StoredTaskRun>,
    events: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredHeardSignal {
    session: u32,
    signal: StoredSignal,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLentWork {
    workspace: String,
    commit: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTaskRun {
    id: String,
    turn: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<StoredRunEnd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    began: Option<StoredWorkState>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    accompanied: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    asked: Option<StoredRefusedVerdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handed: Option<StoredWorkState>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    helped: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
enum StoredWorkspace {
    Unbound,
    Reserved { name: String },
    Bound { name: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
enum StoredSession {
    Absent,
    Starting { agent: StoredAgent },
    Alive { agent: StoredAgent },
    Ending { agent: StoredAgent },
    Dead { agent: StoredAgent, death: StoredDeath },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case", deny_unknown_fields)]
enum StoredDeath {
    NotStarted { reason: String },
    Exited { exit: StoredExit },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTaskTurn {
    number: u32,
    crashes: u32,
    step: u32,
    jobs: Vec<StoredTaskJob>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting: Option<String>,
}

pub fn write(kept: &TaskHeader) -> Vec<u8> {
    bytes(&StoredTaskHeader {
        version: VERSION,
        definition: kept.definition.clone(),
        id: kept.id.clone(),
        open: kept.open.clone(),
        state: (&kept.state).into(),
        remarks: kept.remarks.clone(),
    })
}

pub fn definition_of(header: &[u8]) -> Result<String, UnreadableData> {
    known("a task", header, VERSION)?;
    Ok(serde_json::from_slice::<StoredDefinitionRef>(header)?.definition)
}

/// What a header keeps. A state that no history of this lifecycle leads to is refused, so that the machine need not
/// look twice.
pub fn read(lifecycle: &Lifecycle, header: &[u8]) -> Result<TaskHeader, UnreadableData> {
    definition_of(header)?;
    let StoredTaskHeader { version: _, definition, id, open, state, remarks } = serde_json::from_slice(header)?;
    let state = TaskState::try_from(state)?;
    state.check_invariants(lifecycle).map_err(UnreadableData)?;
    let unknown = state.turns.iter().flat_map(|turn| &turn.jobs).chain(&state.undone).any(|job| match job {
        TaskJob::Start(AgentStart { state, .. }) | TaskJob::StartRun(state) => {
            state.0 as usize >= lifecycle.states.len()
        }
        TaskJob::Hook { .. } | TaskJob::Acquire | TaskJob::CancelRun | TaskJob::Tell => false,
    });
    if unknown {
        return Err(UnreadableData("something is to be started for a state that the lifecycle does not have".into()));
    }
    Ok(TaskHeader { id, definition, state, open, remarks })
}

impl From<&TaskState> for StoredTaskState {
    fn from(it: &TaskState) -> Self {
        StoredTaskState {
            status: it.status.0,
            visit: (&it.visit).into(),
            about: (&it.about).into(),
            review_round: it.review_round,
            crash_count: it.crash_count,
            numbers: it.numbers.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
            texts: it.texts.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
            workspace: (&it.workspace).into(),
            lent: it.lent.as_ref().map(Into::into),
            main: (&it.main).into(),
            beside: (&it.beside).into(),
            turns: it.turns.iter().map(Into::into).collect(),
            turns_taken: it.turns_taken,
            sessions_asked: it.sessions_asked,
            attention: it.attention.as_ref().map(|raised| (&raised.why).into()),
            undone: it.undone.iter().map(|job| (*job).into()).collect(),
            attention_number: it.attention.as_ref().map_or(0, |raised| raised.number),
            attention_since: it.attention.as_ref().map_or(0, |raised| raised.since.0),
            attention_behind: it.attention.as_ref().and_then(|raised| raised.behind.as_ref()).map(Into::into),
            attentions: it.attentions,
            signal: it
                .signal
                .as_ref()
                .map(|heard| StoredHeardSignal { session: heard.session.0, signal: (&heard.signal).into() }),
            judged: it.judged.as_ref().map(Into::into),
            checked: it.checked.as_ref().map(Into::into),
            pull_request: it.pull_request.clone(),
            merged: it.merged.as_ref().map(|commit| commit.0.clone()),
            run: it.run.as_ref().map(Into::into),
            events: it.events,
        }
    }
}

impl TryFrom<StoredTaskState> for TaskState {
    type Error = UnreadableData;

    fn try_from(it: StoredTaskState) -> Result<Self, UnreadableData> {
        Ok(TaskState {
            status: StateId(it.status),
            visit: it.visit.try_into()?,
            about: it.about.into(),
            review_round: it.review_round,
            crash_count: it.crash_count,
            numbers: it.numbers.into_iter().map(|(name, value)| (FieldName::new(name), value)).collect(),
            texts: it.texts.into_iter().map(|(name, value)| (FieldName::new(name), value)).collect(),
            workspace: it.workspace.into(),
            lent: it.lent.map(Into::into),
            main: it.main.into(),
            beside: it.beside.into(),
            turns: it.turns.into_iter().map(TaskTurn::try_from).collect::<Result<_, _>>()?,
            turns_taken: it.turns_taken,
            sessions_asked: it.sessions_asked,
            attention: match it.attention {
                Some(why) => Some(RaisedAttention {
                    number: it.attention_number,
                    since: Moment(it.attention_since),
                    why: why.try_into()?,
                    behind: it.attention_behind.map(TryInto::try_into).transpose()?,
                }),
                None => None,
            },
            undone: it.undone.into_iter().map(Into::into).collect(),
            attentions: it.attentions,
            signal: match it.signal {
                Some(heard) => {
                    Some(HeardSignal { session: SessionNumber(heard.session), signal: heard.signal.try_into()? })
                }
                None => None,
            },
            judged: it.judged.map(Into::into),
            checked: it.checked.map(TryInto::try_into).transpose()?,
            pull_request: it.pull_request,
            merged: it.merged.map(CommitId),
            run: it.run.map(TryInto::try_into).transpose()?,
            events: it.events,
        })
    }
}

impl From<&LentWork> for StoredLentWork {
    fn from(it: &LentWork) -> Self {
        StoredLentWork { workspace: it.workspace.0.clone(), commit: it.commit.0.clone() }
    }
}

impl From<StoredLentWork> for LentWork {
    fn from(it: StoredLentWork) -> Self {
        LentWork { workspace: WorktreePath(it.workspace), commit: CommitId(it.commit) }
    }
}

impl From<&TaskRun> for StoredTaskRun {
    fn from(it: &TaskRun) -> Self {
        StoredTaskRun {
            id: it.id.to_string(),
            turn: it.turn,
            end: it.end.map(Into::into),
            began: it.began.as_ref().map(Into::into),
            accompanied: it.accompanied,
        }
    }
}

impl TryFrom<StoredTaskRun> for TaskRun {
    type Error = UnreadableData;

    fn try_from(it: StoredTaskRun) -> Result<Self, UnreadableData> {
        let (end, began) = (it.end.map(Into::into), it.began.map(Into::into));
        Ok(TaskRun { id: it.id.parse()?, turn: it.turn, end, began, accompanied: it.accompanied })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(super) fn is_none(count: &u32) -> bool {
    *count == 0
}

impl From<&StatusVisit> for StoredVisit {
    fn from(it: &StatusVisit) -> Self {
        StoredVisit {
            turn: it.turn,
            since: it.since.0,
            by: it.by.into(),
            watch: it.watch.into(),
            seen: write_seen(&it.seen),
            uprooted: it.uprooted,
            asked: it.asked.map(Into::into),
            handed: it.handed.as_ref().map(Into::into),
            helped: it.helped,
        }
    }
}

impl TryFrom<StoredVisit> for StatusVisit {
    type Error = UnreadableData;

    fn try_from(it: StoredVisit) -> Result<Self, UnreadableData> {
        Ok(StatusVisit {
            turn: it.turn,
            since: Moment(it.since),
            by: it.by.into(),
            watch: it.watch.into(),
            seen: read_seen(it.seen)?,
            uprooted: it.uprooted,
            asked: it.asked.map(Into::into),
            handed: it.handed.map(Into::into),
            helped: it.helped,
        })
    }
}

impl From<&TaskWorkspace> for StoredWorkspace {
    fn from(it: &TaskWorkspace) -> Self {
        match it {
            TaskWorkspace::Unbound => StoredWorkspace::Unbound,
            TaskWorkspace::Reserved(name) => StoredWorkspace::Reserved { name: name.0.clone() },
            TaskWorkspace::Bound(name) => StoredWorkspace::Bound { name: name.0.clone() },
        }
    }
}

impl From<StoredWorkspace> for TaskWorkspace {
    fn from(it: StoredWorkspace) -> Self {
        match it {
            StoredWorkspace::Unbound => TaskWorkspace::Unbound,
            StoredWorkspace::Reserved { name } => TaskWorkspace::Reserved(WorktreePath(name)),
            StoredWorkspace::Bound { name } => TaskWorkspace::Bound(WorktreePath(name)),
        }
    }
}

impl From<&TaskSession> for StoredSession {
    fn from(it: &TaskSession) -> Self {
        match it {
            TaskSession::Absent => StoredSession::Absent,
            TaskSession::Starting(agent) => StoredSession::Starting { agent: (*agent).into() },
            TaskSession::Alive(agent) => StoredSession::Alive { agent: (*agent).into() },
            TaskSession::Ending(agent) => StoredSession::Ending { agent: (*agent).into() },
            TaskSession::Dead(agent, death) => StoredSession::Dead { agent: (*agent).into(), death: death.into() },
        }
    }
}

impl From<StoredSession> for TaskSession {
    fn from(it: StoredSession) -> Self {
        match it {
            StoredSession::Absent => TaskSession::Absent,
            StoredSession::Starting { agent } => TaskSession::Starting(agent.into()),
            StoredSession::Alive { agent } => TaskSession::Alive(agent.into()),
            StoredSession::Ending { agent } => TaskSession::Ending(agent.into()),
            StoredSession::Dead { agent, death } => TaskSession::Dead(agent.into(), death.into()),
        }
    }
}

impl From<&SessionDeath> for StoredDeath {
    fn from(it: &SessionDeath) -> Self {
        match it {
            SessionDeath::NotStarted(reason) => StoredDeath::NotStarted { reason: reason.clone() },
            SessionDeath::Exited(exit) => StoredDeath::Exited { exit: (*exit).into() },
        }
    }
}

impl From<StoredDeath> for SessionDeath {
    fn from(it: StoredDeath) -> Self {
        match it {
            StoredDeath::NotStarted { reason } => SessionDeath::NotStarted(reason),
            StoredDeath::Exited { exit } => SessionDeath::Exited(exit.into()),
        }
    }
}

impl From<&TaskTurn> for StoredTaskTurn {
    fn from(it: &TaskTurn) -> Self {
        StoredTaskTurn {
            number: it.number,
            crashes: it.crashes,
            step: it.step,
            jobs: it.jobs.iter().map(|job| (*job).into()).collect(),
            waiting: it.waiting.map(|action| action.word().into()),
        }
    }
}

impl TryFrom<StoredTaskTurn> for TaskTurn {
    type Error = UnreadableData;

    fn try_from(it: StoredTaskTurn) -> Result<Self, UnreadableData> {
        Ok(TaskTurn {
            number: it.number,
            crashes: it.crashes,
            step: it.step,
            jobs: it.jobs.into_iter().map(Into::into).collect(),
            waiting: it.waiting.as_deref().map(action).transpose()?,
        })
    }
}
