//! What has happened to a task. Facts, in order; the state is their fold.

use std::collections::BTreeMap;

use super::effect::TaskAction;
use super::input::{RunEnd, TaskAsker, TaskUpdate};
use super::seen::SectionSnapshot;
use super::session::{SessionChange, SessionExit, SessionNumber, TaskSessionPlace};
use super::state::{
    CommitId, EdgeId, RaisedAttention, RefusedVerdict, RunJudgement, TaskSubject, WorkSnapshot, WorkVerdict,
    WorktreePath,
};
use crate::attention::SessionSignal;
use crate::event_name::EventName;
use crate::id::RunId;
use crate::lifecycle::{FieldValue, StateId};
use crate::machine::Moment;
use crate::name::FieldName;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEvent {
    /// The task was created. Always the first, and only the first.
    Created(TaskCreation),
    /// The status changed. What its hooks are follows from the transition.
    Moved(TaskMove),
    /// A task that was created in another state than the usual one began there.
    Began {
        /// The number of the turn that this begins.
        turn: u32,
        /// The transition whose agent it gets; without one, the state's own prompt is used.
        edge: Option<EdgeId>,
    },
    /// The agent of the present state is to be started again.
    Respawning {
        /// The number of the turn that this begins.
        turn: u32,
        /// The place of the agent: the task's own, or the one beside it.
        place: TaskSessionPlace,
        /// Who asked; the engine, after a crash.
        by: TaskAsker,
    },
    /// What failed in this stay is to be done again.
    Retrying {
        /// The number of the turn that this begins.
        turn: u32,
        /// Who asked for it.
        by: TaskAsker,
    },
    /// The engine moves the task on, because a session ended and left its artifact.
    Advanced {
        /// The session that ended.
        session: SessionNumber,
        /// The state that the task moves to.
        to: StateId,
    },
    /// A reviewer asked for a transition that gives a verdict, and is refused.
    VerdictRefused {
        /// The session of the reviewer that asked.
        session: SessionNumber,
        /// What it asked for, and what TASK.md said.
        asked: RefusedVerdict,
    },
    /// An agent ended without its artifact.
    Crashed {
        /// The session of the agent that ended.
        session: SessionNumber,
        /// How the agent's process ended.
        exit: SessionExit,
        /// The crash count after it.
        count: u32,
    },
    /// The branch was merged.
    Merged {
        /// Up to this commit of it; older engines did not say.
        commit: Option<CommitId>,
        /// Whether a person said that it is to be merged against its verdict, or without what is not committed.
        forced: bool,
    },
    /// The task was given up.
    Cancelled,
    /// What the task is about changed.
    Updated(TaskUpdate),
    /// A hook set a field.
    FieldSet {
        /// The name of the field that was set.
        field: FieldName,
        /// The value that the field has now.
        value: FieldValue,
    },
    /// A workspace is kept free for it.
    WorkspaceReserved(WorktreePath),
    /// It has a workspace.
    WorkspaceBound(WorktreePath),
    /// It has none any more.
    WorkspaceReleased,
    /// Its workspace was lent on, and it takes one up again when it moves.
    WorkspaceLent {
        /// The worktree that was lent on.
        workspace: WorktreePath,
        /// The branch that was checked out there.
        branch: String,
        /// The commit that was checked out there, with all of the work in it.
        commit: CommitId,
    },
    /// Something was heard of a session.
    Session {
        /// The place of the session: the task's own, or the one beside it.
        place: TaskSessionPlace,
        /// The number of the session that the change is about.
        session: SessionNumber,
        /// What was heard: that it started, ended or could not.
        change: SessionChange,
        /// Whether it is one that was started again; of `Started` only.
        again: bool,
    },
    /// A pull request was opened.
    PullRequestOpened(String),
    /// An effect was asked for, on behalf of the first job of the first turn.
    HookAsked {
        /// The number of the turn that the job belongs to.
        turn: u32,
        /// The place of the job in its turn, counted from 1.
        step: u32,
        /// The action that the effect carries out.
        action: TaskAction,
    },
    /// The first job of the first turn is over.
    HookSettled {
        /// The number of the turn that the job belongs to.
        turn: u32,
        /// The place of the job in its turn, counted from 1.
        step: u32,
        /// What was to be done.
        action: TaskAction,
        /// Whether it was done, idle, skipped or failed.
        settlement: Settlement,
    },
    /// Everything that the first turn had to do is over.
    TurnSettled {
        /// The number of the turn that is over.
        turn: u32,
    },
    /// The run of a state was started.
    RunStarted {
        /// The number of the turn that started it.
        turn: u32,
        /// The id of the run that was started.
        run: RunId,
        /// The work at that time, if the run judges it.
        began: Option<WorkSnapshot>,
    },
    /// The run of the present state has ended.
    RunEnded {
        /// The id of the run that has ended.
        run: RunId,
        /// Whether the run completed, failed or was cancelled.
        end: RunEnd,
        /// What it says about that.
        why: String,
        /// The work that it has judged, if it judges.
        judged: Option<WorkSnapshot>,
    },
    /// The task has left the state of a run, which was cancelled if it had not ended.
    RunLeft {
        /// The id of the run that the task has left.
        run: RunId,
    },
    /// Writing TASK.md failed, for this reason.
    NotWritten(String),
    /// Something was heard of the agent in a living session: that it waits, is quiet, or works again.
    Signalled {
        /// The session that it is about.
        session: SessionNumber,
        /// What is true of it from now on.
        signal: SessionSignal,
    },
    /// A person should look.
    AttentionSet(RaisedAttention),
    /// It is no longer so.
    AttentionCleared,
}

/// The creation of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCreation {
    /// The state that the task was created in.
    pub status: StateId,
    /// What it is about.
    pub about: TaskSubject,
    /// Who asked for the task.
    pub by: TaskAsker,
    /// The moment at which the task was created.
    pub at: Moment,
    /// The sections that this state's gates and exit rules read.
    pub seen: BTreeMap<String, SectionSnapshot>,
    /// How many sessions it had in a life of which the store knows nothing.
    pub sessions: u32,
}

/// A change of status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskMove {
    /// The number of the turn that the move begins.
    pub turn: u32,
    /// The state that the task was in.
    pub from: StateId,
    /// The state that the task is in now.
    pub to: StateId,
    /// The transition that was taken; `None` when the engine escalates where there is none.
    pub edge: Option<EdgeId>,
    /// Who asked for the move.
    pub by: TaskAsker,
    /// The moment at which the status changed.
    pub at: Moment,
    /// The sections that the new state's gates and exit rules read.
    pub seen: BTreeMap<String, SectionSnapshot>,
    /// The verdict that the transition asked for, and what it was given for.
    pub judged: Option<WorkVerdict>,
    /// The run that was to judge the work, if the task goes on before it has ended.
    pub unchecked: Option<RunJudgement>,
    /// The work as it is handed to a reviewer beside whom its worker may live on.
    pub handed: Option<WorkSnapshot>,
    /// Whether a person has written something to the agent with it, which TASK.md has as `## Feedback`.
    pub said: bool,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The job was done, and its effect succeeded.
    Done,
    /// There was nothing to do.
    Idle,
    /// It could not be tried.
    Skipped(String),
    /// It was tried, and failed.
    Failed(String),
}

impl TaskEvent {
    /// Its type, as logs and subscribers see it.
    pub fn name(&self) -> EventName {
        match self {
            TaskEvent::Created(_) => EventName::TaskCreated,
            TaskEvent::Moved(_) => EventName::StatusChanged,
            TaskEvent::Began { .. } => EventName::TaskBegan,
            TaskEvent::Respawning { .. } => EventName::AgentRespawning,
            TaskEvent::Retrying { .. } => EventName::HookRetrying,
            TaskEvent::Advanced { .. } => EventName::AutoAdvanced,
            TaskEvent::VerdictRefused { .. } => EventName::VerdictRefused,
            TaskEvent::Crashed { .. } => EventName::AgentCrashed,
            TaskEvent::Merged { .. } => EventName::TaskMerged,
            TaskEvent::Cancelled => EventName::TaskCancelled,
            TaskEvent::Updated(_) => EventName::TaskUpdated,
            TaskEvent::FieldSet { .. } => EventName::FieldSet,
            TaskEvent::WorkspaceReserved(_) => EventName::WorkspaceReserved,
            TaskEvent::WorkspaceBound(_) => EventName::WorkspaceBound,
            TaskEvent::WorkspaceReleased => EventName::WorkspaceReleased,
            TaskEvent::WorkspaceLent { .. } => EventName::WorkspaceLent,
            TaskEvent::Session { change, again, .. } => match change {
                SessionChange::Asked(_) => EventName::SessionAsked,
                SessionChange::Started if *again => EventName::AgentRespawned,
                SessionChange::Started => EventName::AgentSpawned,
                SessionChange::NotStarted(_) => EventName::SessionNotStarted,
                SessionChange::EndAsked => EventName::SessionEnding,
                SessionChange::Ended => EventName::SessionEnded,
                SessionChange::NotEnded => EventName::SessionNotEnded,
                SessionChange::Exited(_) => EventName::SessionExited,
            },
            TaskEvent::PullRequestOpened(_) => EventName::PullRequestCreated,
            TaskEvent::HookAsked { .. } => EventName::HookAsked,
            TaskEvent::HookSettled { settlement, .. } => match settlement {
                Settlement::Done => EventName::HookDone,
                Settlement::Idle => EventName::HookIdle,
                Settlement::Skipped(_) => EventName::HookSkipped,
                Settlement::Failed(_) => EventName::HookFailed,
            },
            TaskEvent::TurnSettled { .. } => EventName::TurnSettled,
            TaskEvent::RunStarted { .. } => EventName::TaskRunStarted,
            TaskEvent::RunEnded { .. } => EventName::TaskRunEnded,
            TaskEvent::RunLeft { .. } => EventName::TaskRunLeft,
            TaskEvent::NotWritten(_) => EventName::HookFailed,
            TaskEvent::Signalled { signal, .. } => match signal {
                SessionSignal::Waits { .. } => EventName::SessionWaits,
                SessionSignal::Quiet { .. } => EventName::SessionQuiet,
                SessionSignal::Works { .. } => EventName::SessionWorks,
            },
            TaskEvent::AttentionSet(_) => EventName::AttentionSet,
            TaskEvent::AttentionCleared => EventName::AttentionCleared,
        }
    }

    /// The word for that.
    pub fn type_name(&self) -> &'static str {
        self.name().word()
    }
}
