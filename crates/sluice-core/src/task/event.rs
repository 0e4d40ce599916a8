//! What has happened to a task. Facts, in order; the state is their fold.

use std::collections::BTreeMap;

use super::effect::Action;
use super::input::{Asker, RunEnd, Update};
use super::seen::Seen;
use super::session::{Change, Exit, Place, SessionId};
use super::state::{About, Asked, Attention, Checked, Commit, EdgeId, Judged, Stood, WorkspaceName};
use crate::lifecycle::{FieldValue, StateId};
use crate::machine::Moment;
use crate::name::FieldName;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The task was created. Always the first, and only the first.
    Created(Created),
    /// The status changed. What its hooks are follows from the transition.
    Moved(Moved),
    /// A task that was created in another state than the usual one began there.
    Began {
        /// The turn's number.
        turn: u32,
        /// The transition whose agent it gets; without one, the state's own prompt is used.
        edge: Option<EdgeId>,
    },
    /// The agent of the present state is to be started again.
    Respawning {
        /// The turn's number.
        turn: u32,
        /// Where.
        place: Place,
        /// Who asked; the engine, after a crash.
        by: Asker,
    },
    /// The engine moves the task on, because a session ended and left its artifact.
    Advanced {
        /// The session that ended.
        session: SessionId,
        /// Where to.
        to: StateId,
    },
    /// A reviewer asked for a transition that gives a verdict, and is refused.
    VerdictRefused {
        /// Its session.
        session: SessionId,
        /// What it asked for, and what TASK.md said.
        asked: Asked,
    },
    /// An agent ended without its artifact.
    Crashed {
        /// Its session.
        session: SessionId,
        /// How.
        exit: Exit,
        /// The crash count after it.
        count: u32,
    },
    /// The branch was merged.
    Merged {
        /// Up to this commit of it; older engines did not say.
        commit: Option<Commit>,
        /// Whether a person said that it is to be merged against its verdict, or without what is not committed.
        forced: bool,
    },
    /// The task was given up.
    Cancelled,
    /// What the task is about changed.
    Updated(Update),
    /// A hook set a field.
    FieldSet {
        /// Which.
        field: FieldName,
        /// To what.
        value: FieldValue,
    },
    /// A workspace is kept free for it.
    WorkspaceReserved(WorkspaceName),
    /// It has a workspace.
    WorkspaceBound(WorkspaceName),
    /// It has none any more.
    WorkspaceReleased,
    /// Something was heard of a session.
    Session {
        /// Where it is.
        place: Place,
        /// Which.
        session: SessionId,
        /// What was heard.
        change: Change,
        /// Whether it is one that was started again; of `Started` only.
        again: bool,
    },
    /// A pull request was opened.
    PullRequestOpened(String),
    /// An effect was asked for, on behalf of the first job of the first turn.
    HookAsked {
        /// The turn.
        turn: u32,
        /// The job.
        step: u32,
        /// What is done.
        action: Action,
    },
    /// The first job of the first turn is over.
    HookSettled {
        /// The turn.
        turn: u32,
        /// The job.
        step: u32,
        /// What was to be done.
        action: Action,
        /// How it went.
        settlement: Settlement,
    },
    /// Everything that the first turn had to do is over.
    TurnSettled {
        /// The turn.
        turn: u32,
    },
    /// The run of a state was started.
    RunStarted {
        /// By this turn.
        turn: u32,
        /// Its id.
        run: String,
        /// The work at that time, if the run judges it.
        began: Option<Stood>,
    },
    /// The run of the present state has ended.
    RunEnded {
        /// Which.
        run: String,
        /// How.
        end: RunEnd,
        /// What it says about that.
        why: String,
        /// The work that it has judged, if it judges.
        judged: Option<Stood>,
    },
    /// The task has left the state of a run, which was cancelled if it had not ended.
    RunLeft {
        /// Which.
        run: String,
    },
    /// Writing TASK.md failed.
    NotWritten(String),
    /// A person should look.
    AttentionSet(Attention),
    /// It is no longer so.
    AttentionCleared,
}

/// The creation of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// In this state.
    pub status: StateId,
    /// What it is about.
    pub about: About,
    /// Who asked.
    pub by: Asker,
    /// When.
    pub at: Moment,
    /// The sections that this state's gates and exit rules read.
    pub seen: BTreeMap<String, Seen>,
    /// How many sessions it had in a life of which the store knows nothing.
    pub sessions: u32,
}

/// A change of status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The turn's number.
    pub turn: u32,
    /// From this state
    pub from: StateId,
    /// to this one,
    pub to: StateId,
    /// along this transition; `None` when the engine escalates where there is none.
    pub edge: Option<EdgeId>,
    /// Who asked.
    pub by: Asker,
    /// When.
    pub at: Moment,
    /// The sections that the new state's gates and exit rules read.
    pub seen: BTreeMap<String, Seen>,
    /// The verdict that the transition asked for, and what it was given for.
    pub judged: Option<Judged>,
    /// The run that was to judge the work, if the task goes on before it has ended.
    pub unchecked: Option<Checked>,
    /// The work as it is handed to a reviewer beside whom its worker may live on.
    pub handed: Option<Stood>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It was done.
    Done,
    /// There was nothing to do.
    Idle,
    /// It could not be tried.
    Skipped(String),
    /// It was tried, and failed.
    Failed(String),
}

impl Event {
    /// Its type, as logs and subscribers see it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Event::Created(_) => "task.created",
            Event::Moved(_) => "status.changed",
            Event::Began { .. } => "task.began",
            Event::Respawning { .. } => "agent.respawning",
            Event::Advanced { .. } => "auto.advanced",
            Event::VerdictRefused { .. } => "verdict.refused",
            Event::Crashed { .. } => "agent.crashed",
            Event::Merged { .. } => "task.merged",
            Event::Cancelled => "task.cancelled",
            Event::Updated(_) => "task.updated",
            Event::FieldSet { .. } => "field.set",
            Event::WorkspaceReserved(_) => "workspace.reserved",
            Event::WorkspaceBound(_) => "workspace.bound",
            Event::WorkspaceReleased => "workspace.released",
            Event::Session { change, again, .. } => match change {
                Change::Asked(_) => "session.asked",
                Change::Started if *again => "agent.respawned",
                Change::Started => "agent.spawned",
                Change::NotStarted(_) => "session.not_started",
                Change::EndAsked => "session.ending",
                Change::Ended => "session.ended",
                Change::NotEnded => "session.not_ended",
                Change::Exited(_) => "session.exited",
            },
            Event::PullRequestOpened(_) => "pr.created",
            Event::HookAsked { .. } => "hook.asked",
            Event::HookSettled { settlement, .. } => match settlement {
                Settlement::Done => "hook.done",
                Settlement::Idle => "hook.idle",
                Settlement::Skipped(_) => "hook.skipped",
                Settlement::Failed(_) => "hook.failed",
            },
            Event::TurnSettled { .. } => "turn.settled",
            Event::RunStarted { .. } => "task.run_started",
            Event::RunEnded { .. } => "task.run_ended",
            Event::RunLeft { .. } => "task.run_left",
            Event::NotWritten(_) => "hook.failed",
            Event::AttentionSet(_) => "attention.set",
            Event::AttentionCleared => "attention.cleared",
        }
    }
}
