//! What can be asked of a task, and by whom.

use super::effect::EffectKey;
use super::session::{SessionExit, SessionNumber};
use super::state::{CommitId, TaskSubject, TreeId, WorkSnapshot, WorktreePath};
use crate::attention::SessionSignal;
use crate::id::RunId;
use crate::name::StateName;
use crate::words::words;

/// Who asks. The host finds that out; what each may do is decided here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskAsker {
    /// A person, or a program that a person trusts.
    Person,
    /// The engine itself, as its rules and runs demand.
    Engine,
    /// A session of this task.
    Session(SessionNumber),
    /// A session of another task, or of a step.
    Stranger,
}

/// What the task's files say when the input comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The body of TASK.md.
    pub body: String,
    /// Whether TASK.md has changed since the engine last wrote it. The engine writes it with every move.
    pub is_written: bool,
    /// What git says about the work.
    pub work: WorkEvidence,
}

/// What git says about a task's work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WorkEvidence {
    /// Nobody looked, or there is no branch to look at.
    #[default]
    Unseen,
    /// It could not be read, because of this. Nothing is known of it, and nothing is judged by it.
    Unreadable(String),
    /// The work was read, and stood like this.
    Read(WorkStanding),
}

/// How the work stood when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkStanding {
    /// What is checked out in the task's workspace; without one, the task's branch.
    pub head: WorkHead,
    /// The commit that is checked out there.
    pub commit: CommitId,
    /// The content of that commit.
    pub tree: TreeId,
    /// Files that differ from it, in words; empty when none does.
    pub dirty: String,
}

/// What is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkHead {
    /// A branch is checked out, of this name.
    Branch(String),
    /// A commit without a branch, because this branch is being rebased.
    Rebasing(String),
    /// A commit without a branch.
    Detached,
}

impl WorkEvidence {
    /// How it stood, if it was read.
    pub fn standing(&self) -> Option<&WorkStanding> {
        match self {
            WorkEvidence::Read(standing) => Some(standing),
            WorkEvidence::Unseen | WorkEvidence::Unreadable(_) => None,
        }
    }
}

/// Whether there is a workspace for a task that needs one. A reservation that no event takes up is the host's to
/// give back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceReservation {
    /// The host has not looked whether there is one.
    Unasked,
    /// This one is kept free.
    Reserved(WorktreePath),
    /// Every worktree of the pool is taken.
    Full,
}

/// How a task is created. Outside the lifecycle: no transition is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// In this state; `None`: the usual one, or `clarification` when the summary is empty.
    pub status: Option<StateName>,
    /// What it is about.
    pub about: TaskSubject,
    /// Who asks for the task.
    pub by: TaskAsker,
    /// Whether its agent is started at once.
    pub spawn: bool,
    /// What TASK.md says when the task is created.
    pub evidence: Evidence,
    /// Whether there is a workspace.
    pub room: WorkspaceReservation,
    /// How many sessions it had in a life of which the store knows nothing.
    pub sessions: u32,
}

/// What is asked of a task, or told to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskInput {
    /// Begin: start the task's agent, by the first transition that does.
    Spawn {
        /// Who asks for the start.
        by: TaskAsker,
        /// What the files say.
        evidence: Evidence,
        /// Whether there is a workspace.
        room: WorkspaceReservation,
    },
    /// Go to this state.
    Move {
        /// Who asks for the move.
        by: TaskAsker,
        /// The name of the state to move to.
        to: StateName,
        /// What the files say.
        evidence: Evidence,
        /// Whether there is a workspace.
        room: WorkspaceReservation,
        /// What a person says about it, added to TASK.md as `## Feedback`.
        feedback: Option<String>,
    },
    /// A session is about to ask for this state. Comes before the move, with the same evidence: a refusal leaves nothing
    /// behind, and which verdict a reviewer has asked for is kept.
    Verdict {
        /// Who is about to ask for the move.
        by: TaskAsker,
        /// The name of the state that the asker wants.
        to: StateName,
        /// What the files say.
        evidence: Evidence,
    },
    /// Give the task up for good.
    Cancel {
        /// Who asks for the task to be given up.
        by: TaskAsker,
        /// What the files say.
        evidence: Evidence,
    },
    /// A person wants something changed.
    RequestChanges {
        /// Who asks for the changes.
        by: TaskAsker,
        /// What is to be changed, for the worker to read as `## Feedback`.
        message: String,
        /// What the files say.
        evidence: Evidence,
        /// Whether there is a workspace, for a task whose own was lent on.
        room: WorkspaceReservation,
    },
    /// May it be merged? Accepted or refused, and nothing else: the merge is a command.
    Merge {
        /// Who asks for the merge.
        by: TaskAsker,
        /// Even against its verdict, or if the verdict is older than its work, or if not all of it is committed.
        force: bool,
        /// What the files say.
        evidence: Evidence,
    },
    /// It has been merged.
    Merged {
        /// Who asked for the merge.
        by: TaskAsker,
        /// The commit of its work that is merged.
        commit: Option<CommitId>,
        /// Whether it was asked for with force.
        forced: bool,
        /// Why the remote does not know yet, if it should.
        push_failed: Option<String>,
        /// What the files say.
        evidence: Evidence,
        /// What a person says about it, added to TASK.md as `## Feedback`.
        feedback: Option<String>,
    },
    /// Start the agent of this state again.
    Respawn {
        /// Who asks for the restart.
        by: TaskAsker,
        /// Whether there is a workspace, for a task whose own was lent on.
        room: WorkspaceReservation,
    },
    /// Change what the task is about.
    Update {
        /// Who asks for the change.
        by: TaskAsker,
        /// The new summary, branch or pull request.
        update: TaskUpdate,
    },
    /// A person has looked at the task, and its mark is removed.
    ClearAttention {
        /// Who has looked at the task.
        by: TaskAsker,
    },
    /// Do again what failed since the task came to its state.
    Retry {
        /// Who asks for it.
        by: TaskAsker,
        /// Whether there is a workspace, for a task whose own was lent on.
        room: WorkspaceReservation,
    },
    /// Leave the worktree to another task, if this one can do without until it moves.
    Lend {
        /// The worktree that is lent on.
        workspace: WorktreePath,
        /// How many events the task had when the host looked at it.
        events: u64,
        /// What git says about the work in the worktree.
        work: WorkEvidence,
    },
    /// There is a worktree for a task whose own was lent on.
    TakeUp {
        /// The worktree that is kept free for the task.
        room: WorkspaceReservation,
    },
    /// A session's process ended by itself, as far as its watcher knows.
    SessionExited {
        /// The number of the session that ended.
        session: SessionNumber,
        /// How the process ended, as far as that is known.
        exit: SessionExit,
        /// What the files say.
        evidence: Evidence,
    },
    /// A session was found alive after a restart of the engine.
    SessionAdopted {
        /// The number of the session that was found.
        session: SessionNumber,
    },
    /// Something is heard of the agent in a session: that it waits for a person, is quiet, or works again.
    Signal {
        /// The number of the session that it is about.
        session: SessionNumber,
        /// What is heard, and by which channel.
        signal: SessionSignal,
    },
    /// The run of the present state, which had failed, goes on.
    RunReopened {
        /// The id of the run that goes on.
        run: RunId,
    },
    /// The run of the present state has ended, as far as its watcher knows.
    RunEnded {
        /// The id of the run that has ended.
        run: RunId,
        /// Whether the run completed, failed or was cancelled.
        end: RunEnd,
        /// What it says about that; may be empty.
        why: String,
        /// Whether every commit that the branch has got since the run was started is the run's own, and the work stood
        /// nowhere else in between.
        own: bool,
        /// What the files say.
        evidence: Evidence,
    },
    /// An effect has come to its end.
    EffectDone {
        /// The key under which the effect was asked for.
        key: EffectKey,
        /// Whether it succeeded, failed or was skipped, and what it brought back.
        outcome: TaskEffectOutcome,
    },
}

/// A change of what the task is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskUpdate {
    /// The task's summary, changed to this.
    Summary(String),
    /// Its branch, which has been renamed.
    Branch(String),
    /// A pull request was opened for it, by the command of that name.
    PullRequest(String),
}

/// How an effect went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEffectOutcome {
    /// The effect was done, and brought this back.
    Ok(TaskEffectProduct),
    /// It was tried, and this went wrong.
    Failed(String),
    /// It was not tried, because of this.
    Skipped(String),
}

/// What an effect brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEffectProduct {
    /// Nothing that the task needs to know.
    Nothing,
    /// The workspace that is bound now.
    Workspace(WorktreePath),
    /// The address of the pull request.
    PullRequest(String),
    /// The run that was started.
    Run {
        /// The id of the run, by which its end is recognised.
        id: RunId,
        /// The work at that time, where it was looked at.
        began: Option<WorkSnapshot>,
    },
}

words! {
    /// How a run ended.
    RunEnd {
        /// Every step that was to be done has been.
        Completed = "completed",
        /// A step failed, and nothing could go on.
        Failed = "failed",
        /// The run was cancelled before it had completed.
        Cancelled = "cancelled",
    }
}

macro_rules! kinds {
    ($($kind:ident = $words:literal,)+) => {
        /// The kinds of input. One half of the law; see [`super::law`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum TaskInputKind {
            $(#[doc = $words] $kind,)+
        }

        impl TaskInputKind {
            /// Every kind, in order.
            pub const ALL: &[TaskInputKind] = &[$(TaskInputKind::$kind,)+];

            /// The kind in words, for the tables of `docs/machines/task.md`.
            pub fn words(self) -> &'static str {
                match self { $(TaskInputKind::$kind => $words,)+ }
            }
        }

        impl TaskInput {
            /// Its kind, without its data.
            pub fn kind(&self) -> TaskInputKind {
                match self { $(TaskInput::$kind { .. } => TaskInputKind::$kind,)+ }
            }
        }
    };
}

kinds! {
    Spawn = "spawn",
    Move = "move",
    Verdict = "verdict",
    Cancel = "cancel",
    RequestChanges = "request changes",
    Merge = "merge",
    Merged = "merged",
    Respawn = "respawn",
    Update = "update",
    ClearAttention = "clear attention",
    Retry = "retry",
    Lend = "lend",
    TakeUp = "take up",
    SessionExited = "session exited",
    SessionAdopted = "session adopted",
    Signal = "signal of a session",
    RunReopened = "run reopened",
    RunEnded = "run ended",
    EffectDone = "effect done",
}

impl TaskInput {
    /// Who asks, where somebody does.
    pub fn asker(&self) -> TaskAsker {
        match self {
            TaskInput::Spawn { by, .. }
            | TaskInput::Move { by, .. }
            | TaskInput::Verdict { by, .. }
            | TaskInput::Cancel { by, .. }
            | TaskInput::RequestChanges { by, .. }
            | TaskInput::Merge { by, .. }
            | TaskInput::Merged { by, .. }
            | TaskInput::Respawn { by, .. }
            | TaskInput::Update { by, .. }
            | TaskInput::ClearAttention { by }
            | TaskInput::Retry { by, .. } => *by,
            TaskInput::Lend { .. }
            | TaskInput::TakeUp { .. }
            | TaskInput::SessionExited { .. }
            | TaskInput::SessionAdopted { .. }
            | TaskInput::Signal { .. }
            | TaskInput::RunReopened { .. }
            | TaskInput::RunEnded { .. }
            | TaskInput::EffectDone { .. } => TaskAsker::Engine,
        }
    }

    /// Whether there is a workspace, as far as the host has looked.
    pub(super) fn room(&self) -> WorkspaceReservation {
        match self {
            TaskInput::Spawn { room, .. }
            | TaskInput::Move { room, .. }
            | TaskInput::RequestChanges { room, .. }
            | TaskInput::Respawn { room, .. }
            | TaskInput::Retry { room, .. }
            | TaskInput::TakeUp { room } => room.clone(),
            TaskInput::Verdict { .. }
            | TaskInput::Cancel { .. }
            | TaskInput::Merge { .. }
            | TaskInput::Merged { .. }
            | TaskInput::Update { .. }
            | TaskInput::ClearAttention { .. }
            | TaskInput::Lend { .. }
            | TaskInput::SessionExited { .. }
            | TaskInput::SessionAdopted { .. }
            | TaskInput::Signal { .. }
            | TaskInput::RunReopened { .. }
            | TaskInput::RunEnded { .. }
            | TaskInput::EffectDone { .. } => WorkspaceReservation::Unasked,
        }
    }
}
