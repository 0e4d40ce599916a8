//! What the machine asks to be done. Each effect is performed at least once and recognised by its key.
//!
//! The effects of one task are performed in the order in which they are asked for. The outcome of every effect comes
//! back as an input; hooks wait for it, writing TASK.md does not hold them up.

use std::collections::BTreeMap;
use std::fmt;

use super::session::{SessionNumber, SessionRole, TaskSessionPlace};
use super::state::WorktreePath;
use crate::lifecycle::{AgentPermissions, FieldValue, HarnessChoice, TransitionHook};

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
        /// Which turn.
        turn: u32,
        /// Which of its jobs, from 1.
        step: u32,
        /// What is done for it; one job may need two things.
        action: TaskAction,
    },
    /// Writing TASK.md as it is after so many events.
    Write {
        /// So many.
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

macro_rules! actions {
    ($($name:ident = $word:literal,)+) => {
        /// What is done, in the words of the files.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum TaskAction {
            $(#[doc = $word] $name,)+
        }

        impl TaskAction {
            /// Every action.
            pub const ALL: &[TaskAction] = &[$(TaskAction::$name,)+];

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self { $(TaskAction::$name => $word,)+ }
            }
        }
    };
}

actions! {
    AcquireWorkspace = "acquire_workspace",
    ReleaseWorkspace = "release_workspace",
    SpawnAgent = "spawn_agent",
    SpawnReviewer = "spawn_reviewer",
    KillSession = "kill_session",
    KillReviewer = "kill_reviewer",
    NotifyWorker = "notify_worker",
    Increment = "increment_review_round",
    SpawnNext = "spawn_next",
    PushBranch = "push_branch",
    CreatePr = "create_pr",
    DeleteRemoteBranch = "delete_remote_branch",
    Notify = "notify",
    RunCommand = "run_command",
    SetField = "set_field",
    StartRun = "start_run",
    CancelRun = "cancel_run",
    WriteArtifact = "write_artifact",
}

impl fmt::Display for TaskAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl TaskAction {
    /// What a hook does.
    pub fn of(hook: &TransitionHook) -> TaskAction {
        match hook {
            TransitionHook::AcquireWorkspace => TaskAction::AcquireWorkspace,
            TransitionHook::ReleaseWorkspace => TaskAction::ReleaseWorkspace,
            TransitionHook::SpawnAgent(_) => TaskAction::SpawnAgent,
            TransitionHook::SpawnReviewer(_) => TaskAction::SpawnReviewer,
            TransitionHook::KillSession => TaskAction::KillSession,
            TransitionHook::KillReviewer => TaskAction::KillReviewer,
            TransitionHook::NotifyWorker { .. } => TaskAction::NotifyWorker,
            TransitionHook::Increment(_) => TaskAction::Increment,
            TransitionHook::SpawnNext => TaskAction::SpawnNext,
            TransitionHook::PushBranch => TaskAction::PushBranch,
            TransitionHook::CreatePr => TaskAction::CreatePr,
            TransitionHook::DeleteRemoteBranch => TaskAction::DeleteRemoteBranch,
            TransitionHook::Notify { .. } => TaskAction::Notify,
            TransitionHook::RunCommand(_) => TaskAction::RunCommand,
            TransitionHook::SetField { .. } => TaskAction::SetField,
        }
    }

    /// Starting an agent in `place`.
    pub fn starting(place: TaskSessionPlace) -> TaskAction {
        match place {
            TaskSessionPlace::Main => TaskAction::SpawnAgent,
            TaskSessionPlace::Beside => TaskAction::SpawnReviewer,
        }
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Bind a worktree, the reserved one if there is one, and put TASK.md into it.
    AcquireWorkspace {
        /// Kept free for this.
        reserved: Option<WorktreePath>,
    },
    /// Unbind the worktree.
    ReleaseWorkspace {
        /// This one.
        workspace: WorktreePath,
    },
    /// Start an agent.
    StartSession(StartSession),
    /// End sessions, dead ones included: their windows may still be there.
    EndSession {
        /// These.
        sessions: Vec<SessionNumber>,
        /// With everything that runs beside them.
        whole: bool,
    },
    /// Type a message to the worker, and press Enter.
    TypeToWorker {
        /// Its session.
        session: SessionNumber,
        /// What it is about.
        occasion: Occasion,
        /// What is typed.
        text: String,
    },
    /// Start the project's next pending task.
    SpawnNext,
    /// Push the task's branch.
    PushBranch,
    /// Push it and open a pull request.
    CreatePr,
    /// Remove it from the remote.
    DeleteRemoteBranch,
    /// Tell a person.
    Notify {
        /// What.
        message: String,
    },
    /// Run a command in the workspace.
    RunCommand {
        /// Where.
        workspace: WorktreePath,
        /// What the shell is given.
        script: String,
        /// The values in it.
        environment: Vec<(String, String)>,
    },
    /// Start a run, of a recipe that is looked up now.
    StartRun {
        /// Its recipe.
        recipe: String,
        /// What it is given.
        inputs: Vec<(String, String)>,
        /// The task's own worktree, if it has one: the run works there.
        workspace: Option<WorktreePath>,
    },
    /// Cancel a run, if it has not ended.
    CancelRun {
        /// Which.
        run: String,
    },
    /// Write TASK.md: the engine's keys, and perhaps a person's feedback below the body.
    WriteArtifact {
        /// What the frontmatter says.
        frontmatter: BTreeMap<String, FieldValue>,
        /// To be appended as `## Feedback`.
        feedback: Option<String>,
    },
}

/// How an agent is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartSession {
    /// The number it is given.
    pub session: SessionNumber,
    /// Where.
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
    /// Where it works.
    pub workspace: WorktreePath,
}

/// What a message to the worker is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A review failed.
    ReviewFailed,
    /// A review passed.
    ReviewPassed,
    /// A person asks for changes.
    ChangesRequested,
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
        }
    }
}
