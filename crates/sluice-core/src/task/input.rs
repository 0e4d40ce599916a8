//! What can be asked of a task, and by whom.

use super::effect::EffectKey;
use super::session::{Exit, SessionId};
use super::state::{About, Commit, Stood, Tree, WorkspaceName};
use crate::name::StateName;

/// Who asks. The host finds that out; what each may do is decided here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A person, or a program that a person trusts.
    Person,
    /// The engine itself.
    Engine,
    /// A session of this task.
    Session(SessionId),
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
    pub work: Work,
}

/// What git says about a task's work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// Nobody looked, or there is no branch to look at.
    #[default]
    Unseen,
    /// It could not be read, because of this. Nothing is known of it, and nothing is judged by it.
    Unreadable(String),
    /// It was read.
    Read(Standing),
}

/// How the work stood when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What is checked out in the task's workspace; without one, the task's branch.
    pub head: Head,
    /// The commit there.
    pub commit: Commit,
    /// The content of that commit.
    pub tree: Tree,
    /// Files that differ from it, in words; empty when none does.
    pub dirty: String,
}

/// What is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// This branch.
    Branch(String),
    /// A commit without a branch, because this branch is being rebased.
    Rebasing(String),
    /// A commit without a branch.
    Detached,
}

impl Work {
    /// How it stood, if it was read.
    pub fn standing(&self) -> Option<&Standing> {
        match self {
            Work::Read(standing) => Some(standing),
            Work::Unseen | Work::Unreadable(_) => None,
        }
    }
}

/// Whether there is a workspace for a task that needs one. A reservation that no event takes up is the host's to
/// give back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// Nobody looked.
    Unasked,
    /// This one is kept free.
    Reserved(WorkspaceName),
    /// There is none.
    Full,
}

/// How a task is created. Outside the lifecycle: no transition is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Create {
    /// In this state; `None`: the usual one, or `clarification` when the summary is empty.
    pub status: Option<StateName>,
    /// What it is about.
    pub about: About,
    /// Who asks.
    pub by: Asker,
    /// Whether its agent is started at once.
    pub spawn: bool,
    /// What TASK.md says.
    pub evidence: Evidence,
    /// Whether there is a workspace.
    pub room: Room,
    /// How many sessions it had in a life of which the store knows nothing.
    pub sessions: u32,
}

/// What is asked of a task, or told to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Begin.
    Spawn {
        /// Who asks.
        by: Asker,
        /// What the files say.
        evidence: Evidence,
        /// Whether there is a workspace.
        room: Room,
    },
    /// Go to this state.
    Move {
        /// Who asks.
        by: Asker,
        /// Where to.
        to: StateName,
        /// What the files say.
        evidence: Evidence,
        /// Whether there is a workspace.
        room: Room,
    },
    /// A session is about to ask for this state. Comes before the move, with the same evidence: a refusal leaves nothing
    /// behind, and which verdict a reviewer has asked for is kept.
    Verdict {
        /// Who asks.
        by: Asker,
        /// Where to.
        to: StateName,
        /// What the files say.
        evidence: Evidence,
    },
    /// Give up.
    Cancel {
        /// Who asks.
        by: Asker,
        /// What the files say.
        evidence: Evidence,
    },
    /// A person wants something changed.
    RequestChanges {
        /// Who asks.
        by: Asker,
        /// What.
        message: String,
        /// What the files say.
        evidence: Evidence,
    },
    /// May it be merged? Accepted or refused, and nothing else: the merge is a command.
    Merge {
        /// Who asks.
        by: Asker,
        /// Even against its verdict, or if the verdict is older than its work, or if not all of it is committed.
        force: bool,
        /// What the files say.
        evidence: Evidence,
    },
    /// It has been merged.
    Merged {
        /// Who asked.
        by: Asker,
        /// The commit of its work that is merged.
        commit: Option<Commit>,
        /// Whether it was asked for with force.
        forced: bool,
        /// Why the remote does not know yet, if it should.
        push_failed: Option<String>,
        /// What the files say.
        evidence: Evidence,
    },
    /// Start the agent of this state again.
    Respawn {
        /// Who asks.
        by: Asker,
    },
    /// Change what the task is about.
    Update {
        /// Who asks.
        by: Asker,
        /// What changes.
        update: Update,
    },
    /// Somebody has looked.
    ClearAttention {
        /// Who.
        by: Asker,
    },
    /// A session's process ended by itself, as far as its watcher knows.
    SessionExited {
        /// Which.
        session: SessionId,
        /// How.
        exit: Exit,
        /// What the files say.
        evidence: Evidence,
    },
    /// A session was found alive after a restart of the engine.
    SessionAdopted {
        /// Which.
        session: SessionId,
    },
    /// The run of the present state, which had failed, goes on.
    RunReopened {
        /// Which.
        run: String,
    },
    /// The run of the present state has ended, as far as its watcher knows.
    RunEnded {
        /// Which.
        run: String,
        /// How.
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
        /// Which.
        key: EffectKey,
        /// How it went.
        outcome: Outcome,
    },
}

/// A change of what the task is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Its summary.
    Summary(String),
    /// Its branch, which has been renamed.
    Branch(String),
    /// A pull request was opened for it, by the command of that name.
    PullRequest(String),
}

/// How an effect went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Well.
    Ok(Found),
    /// It was tried, and this went wrong.
    Failed(String),
    /// It was not tried, because of this.
    Skipped(String),
}

/// What an effect brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// The workspace that is bound now.
    Workspace(WorkspaceName),
    /// The address of the pull request.
    PullRequest(String),
    /// The run that was started.
    Run {
        /// Its id.
        id: String,
        /// The work at that time, where it was looked at.
        began: Option<Stood>,
    },
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Well.
    Completed,
    /// A step failed, and nothing could go on.
    Failed,
    /// Somebody gave it up.
    Cancelled,
}

impl RunEnd {
    /// As people see it.
    pub fn word(self) -> &'static str {
        match self {
            RunEnd::Completed => "completed",
            RunEnd::Failed => "failed",
            RunEnd::Cancelled => "cancelled",
        }
    }
}

macro_rules! kinds {
    ($($kind:ident = $words:literal,)+) => {
        /// The kinds of input. One half of the law; see [`super::law`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum InputKind {
            $(#[doc = $words] $kind,)+
        }

        impl InputKind {
            /// Every kind, in order.
            pub const ALL: &[InputKind] = &[$(InputKind::$kind,)+];

            /// In words.
            pub fn words(self) -> &'static str {
                match self { $(InputKind::$kind => $words,)+ }
            }
        }

        impl Input {
            /// Its kind, without its data.
            pub fn kind(&self) -> InputKind {
                match self { $(Input::$kind { .. } => InputKind::$kind,)+ }
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
    SessionExited = "session exited",
    SessionAdopted = "session adopted",
    RunReopened = "run reopened",
    RunEnded = "run ended",
    EffectDone = "effect done",
}

impl Input {
    /// Who asks, where somebody does.
    pub fn asker(&self) -> Asker {
        match self {
            Input::Spawn { by, .. }
            | Input::Move { by, .. }
            | Input::Verdict { by, .. }
            | Input::Cancel { by, .. }
            | Input::RequestChanges { by, .. }
            | Input::Merge { by, .. }
            | Input::Merged { by, .. }
            | Input::Respawn { by }
            | Input::Update { by, .. }
            | Input::ClearAttention { by } => *by,
            Input::SessionExited { .. }
            | Input::SessionAdopted { .. }
            | Input::RunReopened { .. }
            | Input::RunEnded { .. }
            | Input::EffectDone { .. } => Asker::Engine,
        }
    }
}
