//! What a run wants done.

use std::fmt;

use crate::lifecycle::AgentPermissions;
use crate::machine::Moment;
use crate::name::Role;
use crate::recipe::{StepId, StepWorkspace};

/// A part of an attempt that is carried out by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttemptPart {
    /// The whole attempt, of a step that is done in one piece.
    Whole,
    /// One item of a fan-out.
    Item(u32),
    /// The agent's turn of a loop, counted from 1.
    Turn(u32),
    /// The arbiter's answer to that turn.
    Arbiter(u32),
}

/// What a run wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEffect {
    /// Carry out an attempt, or a part of it.
    Perform(Box<Perform>),
    /// End it, with everything it has started.
    Stop {
        /// The step that the attempt belongs to.
        step: StepId,
        /// The number of the attempt, counted from 1.
        attempt: u32,
        /// Which part of it.
        part: AttemptPart,
    },
    /// Say so when this moment has come.
    SetTimer(TimerKey, Moment),
    /// It need not be said any more.
    ClearTimer(TimerKey),
    /// Tell a person this text, by the home's notification program.
    Notify(String),
    /// Run a command at the end of the run.
    RunCommand(RunScript),
    /// Start a run of another recipe, as a hook asked.
    Start {
        /// The recipe's name, looked up when the run starts.
        recipe: String,
    },
    /// Give back the worktree and the scratch folder of the run, which has ended and cannot go on.
    Release,
    /// Start this recipe again.
    Repeat {
        /// The moment at which the next run begins.
        at: Moment,
    },
}

/// An attempt, or a part of it, with everything that is needed to carry it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Perform {
    /// The step that the attempt belongs to.
    pub step: StepId,
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// Which part of it.
    pub part: AttemptPart,
    /// What the worker must be.
    pub role: Role,
    /// What is to be done.
    pub job: RunJob,
    /// Where its work is done.
    pub workspace: StepWorkspace,
    /// Which agent program, if not the usual one.
    pub harness: Option<String>,
    /// What the agent may do.
    pub permissions: AgentPermissions,
}

/// What is to be done, with every value filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunJob {
    /// An agent is told this.
    Agent {
        /// The text that the agent is told, with all variables filled in.
        prompt: String,
        /// Where in it the folder of a run begins that is done elsewhere, in bytes: there it has another name.
        folder_at: Vec<usize>,
    },
    /// An arbiter is told this. It may not change the work.
    Arbiter {
        /// The text that the arbiter is told, with all variables filled in.
        prompt: String,
        /// Where in it the folder of a run begins that is done elsewhere.
        folder_at: Vec<usize>,
    },
    /// The shell runs this.
    Script(RunScript),
    /// The shell runs this, and a failure is a question.
    Gate(RunScript),
    /// A task is created, and its end is waited for.
    Task {
        /// What is wanted of the task, in one line.
        summary: String,
        /// The task's branch; `None` gives it one of its own.
        branch: Option<String>,
        /// The name of its lifecycle; `None` means the project's default.
        workflow: Option<String>,
        /// The project it belongs to; `None` means the project of the run.
        project: Option<String>,
        /// What else its agent should know.
        context: Option<String>,
    },
}

/// A script and the values in its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunScript {
    /// What the shell is given.
    pub script: String,
    /// Names and values of the environment variables that carry the script's variables.
    pub environment: Vec<(String, String)>,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKey {
    /// An attempt has taken too long.
    Timeout(StepId, u32),
    /// The next attempt may begin.
    Backoff(StepId, u32),
    /// The run has taken too long.
    Run,
    /// A question has not been answered in time.
    Question(u32),
}

/// The key of a performance: the same whenever the same is asked for.
pub fn key(step: StepId, attempt: u32, part: AttemptPart) -> String {
    format!("{}.{attempt}.{part}", step.0)
}

impl fmt::Display for AttemptPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttemptPart::Whole => f.write_str("whole"),
            AttemptPart::Item(item) => write!(f, "item-{item}"),
            AttemptPart::Turn(turn) => write!(f, "turn-{turn}"),
            AttemptPart::Arbiter(turn) => write!(f, "arbiter-{turn}"),
        }
    }
}

impl AttemptPart {
    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<AttemptPart> {
        match text.split_once('-') {
            None => (text == "whole").then_some(AttemptPart::Whole),
            Some((word, number)) => {
                let number = number.parse().ok()?;
                match word {
                    "item" => Some(AttemptPart::Item(number)),
                    "turn" => Some(AttemptPart::Turn(number)),
                    "arbiter" => Some(AttemptPart::Arbiter(number)),
                    _ => None,
                }
            }
        }
    }
}

impl fmt::Display for TimerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimerKey::Timeout(step, attempt) => write!(f, "timeout.{}.{attempt}", step.0),
            TimerKey::Backoff(step, attempt) => write!(f, "backoff.{}.{attempt}", step.0),
            TimerKey::Run => f.write_str("run"),
            TimerKey::Question(id) => write!(f, "question.{id}"),
        }
    }
}

impl TimerKey {
    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<TimerKey> {
        if text == "run" {
            return Some(TimerKey::Run);
        }
        if let Some(id) = text.strip_prefix("question.") {
            return id.parse().ok().map(TimerKey::Question);
        }
        let mut parts = text.split('.');
        let (word, step, attempt) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        match word {
            "timeout" => Some(TimerKey::Timeout(StepId(step), attempt)),
            "backoff" => Some(TimerKey::Backoff(StepId(step), attempt)),
            _ => None,
        }
    }
}
