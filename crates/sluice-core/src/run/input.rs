//! What can be said to a run.

use std::time::Duration;

use super::effect::{AttemptPart, TimerKey};
use super::event::StepOutcome;
use crate::id::{RunId, TaskId};
use crate::recipe::{Data, FailureKind, StepId, StepWorkspace};
use crate::task::state::WorkSnapshot;
use crate::words::words;

/// Who carries out the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunMode {
    /// The engine and its workers.
    #[default]
    Engine,
    /// A person or a program that follows the instructions and reports each step.
    ByHand,
}

/// What a run is given when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunParameters {
    /// The run's id, which texts use as `${run.id}`.
    pub id: RunId,
    /// Who carries out the steps.
    pub mode: RunMode,
    /// `${input.NAME}`; defaults are filled in.
    pub inputs: Vec<(String, Data)>,
    /// What is wanted, in words: `${run.prompt}`, or `{{mission_prompt}}` in a manifest.
    pub prompt: String,
    /// The path of the run's worktree; empty: it has none.
    pub workspace: String,
    /// The path of the run's scratch folder; empty: no step works there.
    pub scratch: String,
    /// What the run is done for, as `${run.work_order}`; may be empty.
    pub work_order: String,
    /// As what it was started, and where.
    pub origin: RunOrigin,
}

impl RunParameters {
    /// A run of this id that is given nothing else.
    pub fn of(id: RunId) -> RunParameters {
        RunParameters {
            id,
            mode: RunMode::default(),
            inputs: Vec::new(),
            prompt: String::new(),
            workspace: String::new(),
            scratch: String::new(),
            work_order: String::new(),
            origin: RunOrigin::default(),
        }
    }

    /// The path of the folder that such a step works in: `${run.workspace}`, or `{{worktree_path}}` in a manifest.
    pub fn folder(&self, workspace: StepWorkspace) -> &str {
        match workspace {
            StepWorkspace::Run | StepWorkspace::Own => &self.workspace,
            StepWorkspace::Scratch => &self.scratch,
            StepWorkspace::Here => &self.origin.root,
        }
    }
}

/// As what a run was started, and where. Nothing is decided by it: it says in whose words the run is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOrigin {
    /// The word under which the run was started.
    pub kind: RunKind,
    /// The repository or folder it was started in.
    pub root: String,
    /// The commit that its worktree is made from when a step first needs it; empty: none is made.
    pub base: String,
    /// The agent program of steps that name none; empty: the home's.
    pub harness: String,
    /// The recipes whose runs led to this one, the first of them first; empty: a person started it.
    pub cause: Vec<String>,
    /// The task whose state started it; `None`: none did. It works in that task's worktree, if it has one.
    pub task: Option<TaskId>,
    /// Where its definition was read, for people, if the engine started it by itself from a repository.
    pub definition: String,
    /// The work of that task when the run was started, as far as it could be read. Older engines did not say.
    pub began: Option<WorkSnapshot>,
}

words! {
    /// What a run is called where it was started.
    #[derive(Default)]
    RunKind {
        /// A plain run, started under no other word.
        #[default]
        Run = "run",
        /// A mission, of a manifest.
        Mission = "mission",
        /// A workflow, of a grimoire.
        Workflow = "workflow",
        /// A process, of a template.
        Process = "process",
    }
}

/// Who says something to a run. The host finds that out; what each may say is decided here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunAsker {
    /// A person, or a program that a person trusts.
    Person,
    /// The agent of a step of this run.
    Agent(Speaker),
    /// A session of another run, or of a task.
    Stranger,
}

/// An agent that speaks for itself: the attempt it works on, and the part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// The step that the agent works on.
    pub step: StepId,
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// Which part of it.
    pub part: AttemptPart,
}

/// What an agent wants to know from a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionRequest {
    /// The question itself, in words for a person.
    pub text: String,
    /// What can be answered; none: any words.
    pub options: Vec<String>,
    /// What the answer is if nobody answers in time.
    pub default: Option<String>,
    /// How long it waits; `None`: as long as it takes.
    pub wait: Option<Duration>,
}

/// What can be said to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunInput {
    /// An input together with its asker, so that the run decides whether they may.
    By {
        /// The person or agent that says it, as the host found out.
        asker: RunAsker,
        /// The input that they want the run to take.
        input: Box<RunInput>,
    },
    /// An agent asks a person something about its work.
    Ask {
        /// The agent that asks, by its attempt.
        by: Speaker,
        /// The question, its options and how long it waits.
        ask: QuestionRequest,
    },
    /// An agent says how its work went, before its process ends.
    Said {
        /// The agent that reports, by its attempt.
        by: Speaker,
        /// Success or failure, as the agent sees it.
        report: AttemptReport,
    },
    /// An attempt, or a part of it, has ended.
    Ended {
        /// The step that the attempt belongs to.
        step: StepId,
        /// The number of the attempt, counted from 1.
        attempt: u32,
        /// Which part of it.
        part: AttemptPart,
        /// Success or failure, and what the attempt left behind.
        report: AttemptReport,
    },
    /// The worker of an attempt has gone away without a word.
    Lost {
        /// The step that the attempt belongs to.
        step: StepId,
        /// The number of the attempt, counted from 1.
        attempt: u32,
        /// Which part of it.
        part: AttemptPart,
    },
    /// A time has come that the run asked to be told of.
    Timer(TimerKey),
    /// A person answers a question.
    Answer {
        /// The number of the question within the run.
        question: u32,
        /// The option they choose; may be empty when `message` answers the question.
        option: String,
        /// What they say besides, or in place of an option.
        message: Option<String>,
    },
    /// A person wants a failed step to be tried again; the first that failed, unless they say which.
    Retry {
        /// The step to try again; `None` means the first that failed by itself.
        step: Option<StepId>,
        /// What the agent is told besides.
        guidance: Option<String>,
    },
    /// It is to end now.
    Cancel {
        /// Why the run is ended, in words for people.
        reason: String,
    },
    /// A report about a step of a run that is carried out by hand.
    ByHand {
        /// The step that the report is about.
        step: StepId,
        /// What is reported about the step.
        what: ManualStepInput,
    },
    /// A run by hand is over.
    Close {
        /// What came of it.
        summary: String,
    },
}

/// What is said about a step that is done by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManualStepInput {
    /// The step has begun, and counts as running.
    Start,
    /// The step is done, and gave this outcome.
    Complete(StepOutcome),
    /// It cannot be done.
    Fail(String),
    /// It is left out.
    Skip,
}

/// How an attempt, or a part of it, has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptReport {
    /// The work was done, and gave this outcome.
    Completed(StepOutcome),
    /// The work was not done, or not well enough.
    Failed {
        /// The kind of failure, which decides whether another attempt follows.
        kind: FailureKind,
        /// What went wrong, in words for people.
        error: String,
        /// What it left behind, such as a command's exit code and what it printed.
        outcome: StepOutcome,
    },
}
