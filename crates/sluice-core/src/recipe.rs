//! A recipe: the graph of steps that a run carries out, once it has been checked.
//!
//! Manifests, grimoires and templates all become this. Only [`crate::check::recipe`] makes one, so the needs have
//! no cycle, and every loop has a bound. If no error was found, every condition also reads a step that comes before and
//! every variable is given by then; only then may a run be started with it.

pub mod draft;

use std::time::Duration;

use crate::expr::Expr;
use crate::lifecycle::AgentPermissions;
use crate::name::{DefinitionName, InputName, Role, StepName, VariableName};
use crate::text::{ShellCommand, Template};
use crate::words::words;

/// Which file format a recipe was written in. It decides the words that are used about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecipeDialect {
    /// A workflow manifest: missions and tasks.
    Manifest,
    /// A grimoire, and the native format, which extends it: workflows and steps.
    Grimoire,
    /// A process template: processes and steps.
    Template,
}

/// A checked recipe: the steps that a run carries out, in which order, and what starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The recipe's name, by which runs, triggers and hooks choose it.
    pub name: DefinitionName,
    /// What it is for.
    pub description: String,
    /// The author's own version, a number or text; `1` when the file does not say.
    pub version: String,
    /// The format it was written in.
    pub dialect: RecipeDialect,
    /// What starts it, besides a person.
    pub trigger: Trigger,
    /// What it must be given; `None` when the file does not say, and then it takes anything.
    pub inputs: Option<Vec<RecipeInput>>,
    /// The steps, in the order of the file.
    pub steps: Vec<Step>,
    /// How many steps may run at once.
    pub max_parallel: u32,
    /// Whether it starts again when it has completed.
    pub repeat: Option<Repeat>,
    /// How long the whole run may take.
    pub timeout: Option<Duration>,
    /// Where the hooks at its end work, and the folder that people are shown for a run.
    pub workspace: StepWorkspace,
    /// What is done when it has completed.
    pub on_complete: Vec<RunHook>,
    /// What is done when it has failed.
    pub on_fail: Vec<RunHook>,
}

/// What starts a recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A person or a program.
    Manual,
    /// An event of the engine's own log.
    Event {
        /// The type of the event that starts it, such as `status.changed`.
        event: String,
        /// A condition on its data.
        filter: Option<Expr>,
    },
}

/// An input that the recipe declares, and that a run is given when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeInput {
    /// The input's name, which texts use as `${input.NAME}`.
    pub name: InputName,
    /// What it must be.
    pub kind: RecipeInputKind,
    /// Whether it must be given.
    pub required: bool,
    /// What it is otherwise.
    pub default: Option<Data>,
}

words! {
    /// What an input must be.
    RecipeInputKind {
        /// A text of any length; `string` in files.
        Text = "string",
        /// A number, whole or with decimal places.
        Number = "number",
        /// A whole number that fits into 64 bits.
        Integer = "integer",
        /// A truth value: `true` or `false`.
        Boolean = "boolean",
        /// A list of values of any type.
        Array = "array",
        /// A table of names and values of any type.
        Object = "object",
        /// A value of any type; the default when a file names none.
        Any = "any",
    }
}

impl RecipeInputKind {
    /// Whether a value is of an input's type.
    pub fn admits(self, value: &Data) -> bool {
        match self {
            RecipeInputKind::Any => true,
            RecipeInputKind::Text => matches!(value, Data::Text(_)),
            RecipeInputKind::Number => matches!(value, Data::Number(_)),
            RecipeInputKind::Integer => matches!(value, Data::Number(number) if number.parse::<i64>().is_ok()),
            RecipeInputKind::Boolean => matches!(value, Data::Bool(_)),
            RecipeInputKind::Array => matches!(value, Data::List(_)),
            RecipeInputKind::Object => matches!(value, Data::Table(_)),
        }
    }
}

/// A value of any shape, as JSON knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Data {
    /// No value, as JSON's `null`.
    #[default]
    Null,
    /// A truth value: `true` or `false`.
    Bool(bool),
    /// A number, as written.
    Number(String),
    /// Text, without the quotes around it.
    Text(String),
    /// A list of values, in the order of the file.
    List(Vec<Data>),
    /// A table, in the order of the file.
    Table(Vec<(String, Data)>),
}

/// A step, by its place in [`Recipe::steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepId(pub u32);

/// One step of a recipe: what is done, when, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The step's name, unique in the recipe; conditions and variables refer to it.
    pub name: StepName,
    /// Its name for people.
    pub title: Option<String>,
    /// What its worker must be.
    pub role: Role,
    /// The steps that must have ended before.
    pub needs: Vec<StepId>,
    /// Whether it runs, once they have.
    pub condition: Option<Expr>,
    /// What the step does when it runs.
    pub work: StepWork,
    /// Where its output is stored.
    pub output: Option<VariableName>,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// What follows a failed attempt.
    pub retry: Retry,
    /// Where the run goes back to when it has completed.
    pub loop_back: Option<LoopBack>,
    /// Where its work is done.
    pub workspace: StepWorkspace,
    /// When its needs are satisfied.
    pub join: Join,
    /// It runs even after a failure.
    pub always: bool,
    /// The agent program it uses; `None` means the run's own.
    pub harness: Option<String>,
    /// What the agent may do.
    pub permissions: AgentPermissions,
    /// The processes of its command may do what a person may.
    pub acts_as_person: bool,
}

words! {
    /// Where a step works, as `workspace` says in files.
    #[derive(Default)]
    StepWorkspace {
        /// In the worktree of the run, as the other steps do.
        #[default]
        Run = "run",
        /// In a worktree of its own, whose work is merged into that of the run.
        Own = "own",
        /// In the scratch folder of the run, outside git.
        Scratch = "none",
        /// In the checkout, or the folder outside git, that the run was started in.
        Here = "here",
    }
}

impl StepWorkspace {
    /// Whether a worktree is made for it.
    pub fn is_worktree(self) -> bool {
        match self {
            StepWorkspace::Run | StepWorkspace::Own => true,
            StepWorkspace::Scratch | StepWorkspace::Here => false,
        }
    }
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepWork {
    /// One agent works until its process ends.
    Agent {
        /// What it is told.
        prompt: StepPrompt,
    },
    /// An agent again and again, until an arbiter is content.
    AgentLoop {
        /// What the agent is told.
        prompt: StepPrompt,
        /// What the arbiter is told.
        arbiter: StepPrompt,
        /// How often at most.
        max_iterations: u32,
        /// Whether the run then goes on or asks.
        on_max: OnLimit,
    },
    /// An agent for each item of a list.
    ParallelAgents {
        /// The list whose items are given to one agent each.
        items: FanOutItems,
        /// What each agent is told.
        prompt: StepPrompt,
        /// How many at once.
        max_concurrent: u32,
        /// Whether the run goes on or asks when some have failed.
        on_failure: OnLimit,
    },
    /// A shell command, whose failure is a failure of the step.
    Script {
        /// What the shell is given.
        command: ShellCommand,
    },
    /// A command that holds the run when it fails.
    Gate {
        /// What the shell is given.
        command: ShellCommand,
        /// What a person is told when it fails.
        message: Option<Template>,
        /// What is taken for the answer if no person answers; `None`: the gate waits without end.
        unanswered: Option<UnansweredGate>,
    },
    /// A task with a lifecycle of its own, whose end is waited for.
    Task(Box<TaskWork>),
}

impl StepWork {
    /// What its agents are told; `None` where no agent works.
    pub fn prompt(&self) -> Option<&StepPrompt> {
        match self {
            StepWork::Agent { prompt }
            | StepWork::AgentLoop { prompt, .. }
            | StepWork::ParallelAgents { prompt, .. } => Some(prompt),
            StepWork::Script { .. } | StepWork::Gate { .. } | StepWork::Task(_) => None,
        }
    }

    /// Whether it is a command for the shell.
    pub fn is_command(&self) -> bool {
        matches!(self, StepWork::Script { .. } | StepWork::Gate { .. })
    }

    /// The word in files.
    pub fn kind(&self) -> &'static str {
        match self {
            StepWork::Agent { .. } => "agent",
            StepWork::AgentLoop { .. } => "agent-loop",
            StepWork::ParallelAgents { .. } => "parallel-agents",
            StepWork::Script { .. } => "script",
            StepWork::Gate { .. } => "gate",
            StepWork::Task(_) => "task",
        }
    }
}

/// The task that a step creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskWork {
    /// What is wanted of the task, in one line.
    pub summary: Template,
    /// The task's branch; `None` gives it one of its own.
    pub branch: Option<Template>,
    /// The name of its lifecycle; `None` means the project's default.
    pub workflow: Option<String>,
    /// The project it belongs to; `None` means the project of the run.
    pub project: Option<String>,
    /// What else its agent should know.
    pub context: Option<Template>,
}

/// What an agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepPrompt {
    /// A text that stands in the recipe itself.
    Text(Template),
    /// What a file said when the definition was read; `None` if it was missing then.
    File {
        /// Below the prompts' root.
        path: String,
        /// The text of the file; `None` if it was missing when the definition was read.
        content: Option<Template>,
    },
}

/// What a fan-out goes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FanOutItems {
    /// The list that a variable holds.
    Variable(Template),
    /// A list in the file.
    Listed(Vec<Data>),
}

words! {
    /// What can be answered to a gate that holds its run.
    GateAnswer {
        /// The command is run again.
        Retry = "retry",
        /// The step is skipped.
        Skip = "skip",
        /// The run fails, and what it had left to do is not done.
        Abort = "abort",
    }
}

/// What becomes of a gate that no person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnansweredGate {
    /// How long a person has to answer.
    pub after: Duration,
    /// What is taken for the answer then.
    pub answer: GateAnswer,
}

/// What happens at a limit or a partial failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// A person is asked.
    Block,
    /// The run goes on.
    Continue,
}

/// How often a failed attempt is followed by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// At most this often.
    pub max: u32,
    /// After this long, doubled each time.
    pub backoff: Duration,
    /// Only after these kinds of failure; all when empty.
    pub on: Vec<FailureKind>,
}

words! {
    /// Why an attempt failed.
    FailureKind {
        /// It ended and said so, or its command returned an error.
        Failed = "failed",
        /// It took too long.
        Timeout = "timeout",
        /// A signal ended its process.
        Crashed = "crashed",
        /// Its worker or machine went away, which is no fault of its own.
        Lost = "lost",
    }
}

impl FailureKind {
    /// Those that `retry` can name. What is lost is started again in any case.
    pub const NAMED: [FailureKind; 3] = [FailureKind::Failed, FailureKind::Timeout, FailureKind::Crashed];
}

/// A bounded way back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopBack {
    /// To this step, which runs again with all that lies between.
    pub to: StepId,
    /// At most so often.
    pub max: u32,
    /// What happens when the loop has gone round `max` times.
    pub on_exhausted: OnExhausted,
}

/// What happens when a loop has used up its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExhausted {
    /// The step whose loop is used up fails, and so does the run.
    Fail,
    /// A person is asked.
    Hold,
}

words! {
    /// When the needs of a step are satisfied.
    Join {
        /// All have ended and none has failed.
        NoneFailed = "none_failed",
        /// All have completed; a skipped one skips this step too.
        AllCompleted = "all_completed",
        /// All have ended and at least one has completed.
        AnyCompleted = "any_completed",
    }
}

/// Starting again at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// How long after the end.
    pub every: Duration,
    /// How many ended runs are kept.
    pub keep: u32,
}

/// What is done at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunHook {
    /// Tell a person this text, by the home's notification program.
    Notify(Template),
    /// Run this shell command when the run has ended.
    RunCommand(ShellCommand),
    /// Start a run of the recipe of this name.
    Start(String),
}

impl Recipe {
    /// The step that `id` refers to; panics when the recipe has no such step.
    pub fn step(&self, id: StepId) -> &Step {
        &self.steps[id.0 as usize]
    }

    /// The ids of all steps, in the order of the file.
    pub fn ids(&self) -> impl Iterator<Item = StepId> + use<> {
        (0u32..).map(StepId).take(self.steps.len())
    }

    /// The first step that works there.
    pub fn working(&self, is_there: impl Fn(StepWorkspace) -> bool) -> Option<&Step> {
        self.steps.iter().find(|step| is_there(step.workspace))
    }

    /// Whether a run of it gets a worktree.
    pub fn has_worktree(&self) -> bool {
        self.working(StepWorkspace::is_worktree).is_some()
    }

    /// The step called `name`.
    pub fn find(&self, name: &str) -> Option<StepId> {
        let index = self.steps.iter().position(|step| step.name.as_str() == name)?;
        u32::try_from(index).ok().map(StepId)
    }
}
