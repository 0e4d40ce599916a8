//! What the machine asks to be done. Each effect is performed at least once and recognised by its key.
//!
//! The effects of one task are performed in the order in which they are asked for. The outcome of every effect comes
//! back as an input; hooks wait for it, writing TASK.md does not hold them up.

use std::collections::BTreeMap;
use std::fmt;

use super::session::{SessionNumber, SessionRole, TaskSessionPlace};
use super::state::WorktreePath;
use crate::id::RunId;
use crate::lifecycle::action::PlainAction;
pub use crate::lifecycle::action::{PlainEffect, TaskAction, WhenRepeated};
use crate::lifecycle::{AgentPermissions, FieldValue, HarnessChoice};

/// An instruction, and the name by which it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEffect {
    /// The same whenever the same is asked for.
    pub key: EffectKey,
    /// What is to be done.
    pub instruction: Instruction,
}

/// The name of an effect, unique in its task: `turn-7/2 kill_session`, `write-41`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKey {
    /// For a job of a turn.
    Job {
        /// The number of the turn, counted from 1 over the task's life.
        turn: u32,
        /// Which of its jobs, from 1.
        step: u32,
        /// What is done for it; one job may need two things.
        action: TaskAction,
    },
    /// Writing TASK.md as it is after so many events.
    Write {
        /// How many events had been applied when the write was asked for.
        events: u64,
    },
}

impl fmt::Display for EffectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EffectKey::Job { turn, step, action } => write!(f, "turn-{turn}/{step} {action}"),
            EffectKey::Write { events } => write!(f, "write-{events}"),
        }
    }
}

impl EffectKey {
    /// The key that is written like this.
    pub fn read(text: &str) -> Option<EffectKey> {
        if let Some(events) = text.strip_prefix("write-") {
            return Some(EffectKey::Write { events: events.parse().ok()? });
        }
        let (place, word) = text.strip_prefix("turn-")?.split_once(' ')?;
        let (turn, step) = place.split_once('/')?;
        let action = TaskAction::ALL.iter().copied().find(|action| action.word() == word)?;
        Some(EffectKey::Job { turn: turn.parse().ok()?, step: step.parse().ok()?, action })
    }
}

impl TaskAction {
    /// Starting an agent in `place`.
    pub fn starting(place: TaskSessionPlace) -> TaskAction {
        match place {
            TaskSessionPlace::Main => TaskAction::SpawnAgent,
            TaskSessionPlace::Beside => TaskAction::SpawnReviewer,
        }
    }

    /// Whether it starts an agent.
    pub fn starts_agent(self) -> bool {
        self == TaskAction::SpawnAgent || self == TaskAction::SpawnReviewer
    }

    /// Whether it starts an agent or a run, or gets the worktree for one: what a state needs to be worked on.
    pub fn is_start(self) -> bool {
        self.starts_agent() || self == TaskAction::AcquireWorkspace || self == TaskAction::StartRun
    }

    /// Ending the session in `place`, and only that.
    pub fn ending(place: TaskSessionPlace) -> TaskAction {
        match place {
            TaskSessionPlace::Main => TaskAction::KillSession,
            TaskSessionPlace::Beside => TaskAction::KillReviewer,
        }
    }
}

/// What is to be done.
///
/// # What an effect promises
///
/// An effect is done *at least once*: the engine can die after it was done and before its outcome is stored, and then the
/// next engine does it again. So performing one that was done must leave the world as it is, and give the same outcome.
/// [`WhenRepeated`] says how, and [`Instruction::promises`] has the promise of every kind. The patterns, best first:
///
/// 1. **Say what is to be so, not what is to change** (`Same`). A file gets its whole content, a branch is pushed, a
///    session is ended. Nothing is appended, counted up or toggled without a look at what is there. `WriteArtifact` appends
///    feedback only if the section does not say it already.
/// 2. **Look for it first, by a name that repeats** (`Found`). The effect's key, the number of a session and the branch of a
///    pull request are the same the second time. What has that name was done: give it back.
/// 3. **Note it under the effect's key** (`Noted`), where the world cannot be asked. Where the choice matters, write the note
///    *before* the deed and let the deed be a `Same` (`SpawnNext` notes which task it begins). Where not doing it is worse than
///    doing it twice, write it *after* the deed, make it durable before the outcome is reported, and say beside it what the
///    moment between the two means (`Notify`).
/// 4. **Do it again** (`Again`): only `RunCommand`, because only its author knows what it does. End what the dead engine left
///    running first.
///
/// `crates/sluice/tests/e2e/effect_kills.rs` kills the engine between doing and reporting, once for every kind. A kind that its
/// lifecycle does not ask for fails there by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Bind a worktree, the reserved one if there is one, and put TASK.md into it.
    AcquireWorkspace {
        /// The worktree that is kept free for this task; `None` when none was reserved.
        reserved: Option<WorktreePath>,
    },
    /// Unbind the worktree, which goes back to the pool.
    ReleaseWorkspace {
        /// The worktree that is unbound.
        workspace: WorktreePath,
    },
    /// Start an agent in a session of its own.
    StartSession(StartSession),
    /// End sessions, dead ones included: their windows may still be there.
    EndSession {
        /// The numbers of the sessions that are ended.
        sessions: Vec<SessionNumber>,
        /// With everything that runs beside them.
        whole: bool,
    },
    /// Type a message to the worker, and press Enter.
    TypeToWorker {
        /// The number of the worker's session.
        session: SessionNumber,
        /// What it is about.
        occasion: Occasion,
        /// The text that is typed, before Enter is pressed.
        text: String,
    },
    /// Run a command in the workspace.
    RunCommand {
        /// The worktree in which the command runs.
        workspace: WorktreePath,
        /// What the shell is given.
        script: String,
        /// Names and values of the environment variables that carry the script's variables.
        environment: Vec<(String, String)>,
    },
    /// Start a run, of a recipe that is looked up now.
    StartRun {
        /// The recipe's name, as the state's `run` says it.
        recipe: String,
        /// What it is given.
        inputs: Vec<(String, String)>,
        /// The task's own worktree, if it has one: the run works there.
        workspace: Option<WorktreePath>,
    },
    /// Cancel a run, if it has not ended.
    CancelRun {
        /// The id of the run that is cancelled.
        run: RunId,
    },
    /// Write TASK.md: the engine's keys, and perhaps a person's feedback below the body.
    WriteArtifact {
        /// What the frontmatter says.
        frontmatter: BTreeMap<String, FieldValue>,
        /// To be appended as `## Feedback`.
        feedback: Option<String>,
    },
    /// What a plain action asks for.
    Plain(PlainEffect),
}

macro_rules! promises {
    ($($name:ident = $kind:literal $when:ident,)+) => {
        impl Instruction {
            /// What it is called in the store.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Instruction::$name { .. } => $kind,)+
                    Instruction::Plain(plain) => plain.action().word(),
                }
            }

            /// Every kind, and what it promises when it is asked for again.
            pub fn promises() -> Vec<(&'static str, WhenRepeated)> {
                let plain = PlainAction::ALL.iter().map(|action| (action.word(), action.when_repeated()));
                [$(($kind, WhenRepeated::$when),)+].into_iter().chain(plain).collect()
            }
        }
    };
}

promises! {
    AcquireWorkspace = "acquire_workspace" Found,
    ReleaseWorkspace = "release_workspace" Same,
    StartSession = "start_session" Found,
    EndSession = "end_session" Same,
    TypeToWorker = "type_to_worker" Noted,
    RunCommand = "run_command" Again,
    StartRun = "start_run" Found,
    CancelRun = "cancel_run" Same,
    WriteArtifact = "write_artifact" Same,
}

/// How an agent is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartSession {
    /// The number it is given.
    pub session: SessionNumber,
    /// The task's own place, or the one beside it.
    pub place: TaskSessionPlace,
    /// What it is asked to be.
    pub role: SessionRole,
    /// The name of its window.
    pub window: String,
    /// What it is told.
    pub prompt: String,
    /// Whose harness it uses.
    pub harness: HarnessChoice,
    /// What it may do.
    pub permissions: AgentPermissions,
    /// The worktree in which the agent works.
    pub workspace: WorktreePath,
}

/// What a message to the worker is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A reviewer gave the verdict FAIL.
    ReviewFailed,
    /// A reviewer gave the verdict PASS.
    ReviewPassed,
    /// A person asks for changes.
    ChangesRequested,
    /// A person has answered.
    Answered,
}

impl Occasion {
    /// What the worker is told where the lifecycle has no words of its own.
    pub fn words(self) -> &'static str {
        match self {
            Occasion::ReviewFailed => "The review failed. Read ## Review in TASK.md, fix every finding, and go on.",
            Occasion::ReviewPassed => "The review passed. Nothing is left to do; a person reads the work now.",
            Occasion::ChangesRequested => {
                "A person asks for changes. Read ## Feedback in TASK.md, make the changes, and go on."
            }
            Occasion::Answered => "A person has answered. Read ## Feedback in TASK.md, and go on.",
        }
    }
}
