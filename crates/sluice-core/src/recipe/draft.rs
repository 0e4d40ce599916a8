//! A recipe as its file says it, whatever the format: names that may lead nowhere, texts still unread, each with its place.

use std::sync::Arc;
use std::time::Duration;

use crate::lifecycle::AgentPermissions;
use crate::recipe::{
    Data, FailureKind, Join, OnExhausted, OnLimit, RecipeDialect, RecipeInputKind, StepWorkspace, UnansweredGate,
};
use crate::span::{SourceText, Span, SpannedValue};

/// A recipe before it is checked.
#[derive(Clone, Debug)]
pub struct RecipeDraft {
    /// The whole file, for findings that have no better place.
    pub span: Span,
    /// The format, for the words of messages.
    pub dialect: RecipeDialect,
    /// `name`, or `template` in a process template; `None` when it is missing.
    pub name: Option<SpannedValue<String>>,
    /// `description`: what the recipe is for; may be empty.
    pub description: String,
    /// `version`, the author's own; `1` when the file does not say.
    pub version: String,
    /// `trigger`, when it is an event.
    pub trigger: Option<TriggerDraft>,
    /// `input` or `inputs`; `None` when the file declares none, and then anything is taken.
    pub inputs: Option<Vec<InputDraft>>,
    /// `steps`, in the order of the file.
    pub steps: Vec<StepDraft>,
    /// `max_parallel`: how many steps may run at once; 1 when the file does not say.
    pub max_parallel: Option<u32>,
    /// `repeat`: how long after the end, and how many ended runs are kept.
    pub repeat: Option<(Duration, u32)>,
    /// `timeout`: how long the whole run may take; `None` for no limit.
    pub timeout: Option<Duration>,
    /// `workspace`: where the steps work that do not say it themselves.
    pub workspace: Option<SpannedValue<StepWorkspace>>,
    /// `on_complete`: what is done when the run has completed.
    pub on_complete: Vec<RunHookDraft>,
    /// `on_fail`: what is done when the run has failed.
    pub on_fail: Vec<RunHookDraft>,
}

/// The keys of a trigger: `trigger: {event, where}`.
#[derive(Clone, Debug)]
pub struct TriggerDraft {
    /// `event`: the type of the event that starts the recipe.
    pub event: SpannedValue<String>,
    /// `where`: a condition on the event's data, still unread.
    pub filter: Option<SourceText>,
}

/// An entry of `input`.
#[derive(Clone, Debug)]
pub struct InputDraft {
    /// `name`: the name that variables use, as `${input.NAME}`.
    pub name: SpannedValue<String>,
    /// `type`: what the value must be; any type when the file does not say.
    pub kind: RecipeInputKind,
    /// `required`: whether it must be given; `None` means so if it has no default.
    pub required: Option<bool>,
    /// `default`: the value when the run is given none.
    pub default: Option<SpannedValue<Data>>,
}

/// An entry of `steps`.
#[derive(Clone, Debug)]
pub struct StepDraft {
    /// `name`, or `id` in formats that call it so.
    pub name: SpannedValue<String>,
    /// `title`: the step's name for people.
    pub title: Option<String>,
    /// `role`: what the step's worker must be; `any` when the file does not say.
    pub role: Option<SpannedValue<String>>,
    /// `needs` or `depends_on`: the names of the steps to wait for.
    pub needs: Option<Vec<SpannedValue<String>>>,
    /// `when` or `condition`: whether the step runs, still unread.
    pub condition: Option<SourceText>,
    /// What it does; `None` when the file does not say it well enough, which has been reported.
    pub work: Option<StepWorkDraft>,
    /// `output`: the name of the variable that the step's output is stored under.
    pub output: Option<SpannedValue<String>>,
    /// `timeout`: how long one attempt may take; `None` for no limit.
    pub timeout: Option<Duration>,
    /// `retry`: how often a failed attempt is followed by another.
    pub retry: Option<RetryDraft>,
    /// `loop`, or `loop_to` with `max_retries`
    pub loop_back: Option<LoopBackDraft>,
    /// `max_retries` of a manifest, which means a loop or retries, depending on the condition.
    pub max_retries: Option<SpannedValue<u32>>,
    /// `workspace`: where the step works; `None` means where the recipe says.
    pub workspace: Option<SpannedValue<StepWorkspace>>,
    /// `join`: when the needs are satisfied; `none_failed` when the file does not say.
    pub join: Option<Join>,
    /// `always`: whether the step runs even after a failure.
    pub always: bool,
    /// `harness`: the agent program; `None` means the run's own.
    pub harness: Option<String>,
    /// `permissions`: what the agent may do; everything when the file does not say.
    pub permissions: Option<AgentPermissions>,
    /// `acts_as: person`, at its place: the step's command may do what a person may.
    pub acts_as_person: Option<SpannedValue<()>>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum StepWorkDraft {
    /// `type: agent`, which is also the default: one agent works.
    Agent {
        /// `prompt`, `prompt_file`, or a template's `description`
        prompt: PromptDraft,
    },
    /// `type: agent-loop`: an agent works until an arbiter is content.
    AgentLoop {
        /// `prompt` or `prompt_file`: what the agent is told.
        prompt: PromptDraft,
        /// `arbiter_prompt`: what the arbiter is told about the agent's work.
        arbiter: PromptDraft,
        /// `max_iterations`: the number of turns before `on_max_iterations` applies.
        max_iterations: u32,
        /// `on_max_iterations`: whether the run then goes on or a person is asked.
        on_max: OnLimit,
    },
    /// `type: parallel-agents`: an agent for each item of a list.
    ParallelAgents {
        /// `for_each`: the list whose items are given to one agent each.
        items: ItemsDraft,
        /// `prompt` or `prompt_file`: what each agent is told.
        prompt: PromptDraft,
        /// `max_concurrent`: how many of the agents may work at once.
        max_concurrent: u32,
        /// `on_failure`: whether the run goes on or asks a person when some have failed.
        on_failure: OnLimit,
    },
    /// `type: script`: a shell command, whose failure is a failure of the step.
    Script {
        /// `command`: what the shell runs, with its variables still unread.
        command: SourceText,
    },
    /// `type: gate`: a shell command that holds the run when it fails.
    Gate {
        /// `command`: what the shell runs, with its variables still unread.
        command: SourceText,
        /// `message`: what a person is told when the command fails.
        message: Option<SourceText>,
        /// `answer_timeout` and `default`: what is taken for the answer if no person answers in time.
        unanswered: Option<UnansweredGate>,
    },
    /// `type: task`: a task with a lifecycle of its own, whose end is waited for.
    Task {
        /// `summary`: what is wanted of the task.
        summary: SourceText,
        /// `branch`: the task's branch; `None` gives it one of its own.
        branch: Option<SourceText>,
        /// `workflow`: the name of the task's lifecycle; `None` means the project's default.
        workflow: Option<String>,
        /// `project`: the task's project; `None` means the project of the run.
        project: Option<String>,
        /// `context`: what else the task's agent should know.
        context: Option<SourceText>,
    },
}

/// What an agent is told.
#[derive(Clone, Debug)]
pub enum PromptDraft {
    /// A text that stands in the recipe itself.
    Inline(SourceText),
    /// In a file of its own.
    File {
        /// The path as it is written, below the root of the prompts.
        path: SpannedValue<String>,
        /// What the reader found there.
        found: PromptFileDraft,
    },
}

/// What the reader found where a prompt file should be.
#[derive(Clone, Debug)]
pub enum PromptFileDraft {
    /// This text, which other steps may share.
    Read(Arc<SourceText>),
    /// Nothing that can be read, for this reason.
    Missing(String),
    /// A way out of the root, for this reason.
    Outside(String),
}

/// What stands under `for_each`: the items of a fan-out.
#[derive(Clone, Debug)]
pub enum ItemsDraft {
    /// A variable, as text.
    Text(SourceText),
    /// A list in the file.
    Listed(Vec<Data>),
}

/// What stands under `retry`: how often a failed attempt is followed by another.
#[derive(Clone, Debug)]
pub struct RetryDraft {
    /// `max`: the number of further attempts after the first.
    pub max: u32,
    /// `backoff`: the wait before the next attempt, doubled each time; `None` means the default.
    pub backoff: Option<Duration>,
    /// `on`: the kinds of failure that are retried; all when empty.
    pub on: Vec<FailureKind>,
}

/// What stands under `loop`, or `loop_to` with `max_retries`.
#[derive(Clone, Debug)]
pub struct LoopBackDraft {
    /// `to`: the name of the step that runs again.
    pub to: SpannedValue<String>,
    /// `max`: how often the run goes back; `None` when a manifest does not say.
    pub max: Option<u32>,
    /// `on_exhausted`: what happens when the loop is used up; the run fails unless given.
    pub on_exhausted: OnExhausted,
}

/// An entry of `on_complete` or `on_fail`.
#[derive(Clone, Debug)]
pub enum RunHookDraft {
    /// `notify`: the text that a person is told.
    Notify(SourceText),
    /// `run_command`: the command that the shell runs.
    RunCommand(SourceText),
    /// `start`: the name of the recipe that is started.
    Start(String),
}
