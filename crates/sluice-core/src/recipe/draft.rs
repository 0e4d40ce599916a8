//! A recipe as its file says it, whatever the format: names that may lead nowhere, texts still unread, each with its place.

use std::sync::Arc;
use std::time::Duration;

use crate::lifecycle::AgentPermissions;
use crate::recipe::{Data, FailureKind, Join, OnExhausted, OnLimit, RecipeDialect, RecipeInputKind};
use crate::span::{SourceText, Span, SpannedValue};

/// A recipe before it is checked.
#[derive(Clone, Debug)]
pub struct RecipeDraft {
    /// The whole file, for findings that have no better place.
    pub span: Span,
    /// The format, for the words of messages.
    pub dialect: RecipeDialect,
    /// `name` or `template`
    pub name: Option<SpannedValue<String>>,
    /// `description`
    pub description: String,
    /// `version`
    pub version: String,
    /// `trigger`, when it is an event.
    pub trigger: Option<TriggerDraft>,
    /// `input`
    pub inputs: Option<Vec<InputDraft>>,
    /// `steps`
    pub steps: Vec<StepDraft>,
    /// `max_parallel`
    pub max_parallel: Option<u32>,
    /// `repeat`: how long after the end, and how many ended runs are kept.
    pub repeat: Option<(Duration, u32)>,
    /// `timeout`
    pub timeout: Option<Duration>,
    /// `on_complete`
    pub on_complete: Vec<RunHookDraft>,
    /// `on_fail`
    pub on_fail: Vec<RunHookDraft>,
}

/// `trigger: {event, where}`
#[derive(Clone, Debug)]
pub struct TriggerDraft {
    /// `event`
    pub event: SpannedValue<String>,
    /// `where`
    pub filter: Option<SourceText>,
}

/// An entry of `input`.
#[derive(Clone, Debug)]
pub struct InputDraft {
    /// `name`
    pub name: SpannedValue<String>,
    /// `type`
    pub kind: RecipeInputKind,
    /// `required`
    pub required: Option<bool>,
    /// `default`
    pub default: Option<SpannedValue<Data>>,
}

/// An entry of `steps`.
#[derive(Clone, Debug)]
pub struct StepDraft {
    /// The whole entry.
    pub span: Span,
    /// `name` or `id`
    pub name: SpannedValue<String>,
    /// `title`
    pub title: Option<String>,
    /// `role`
    pub role: Option<SpannedValue<String>>,
    /// `needs` or `depends_on`
    pub needs: Option<Vec<SpannedValue<String>>>,
    /// `when` or `condition`
    pub condition: Option<SourceText>,
    /// What it does; `None` when the file does not say it well enough, which has been reported.
    pub work: Option<StepWorkDraft>,
    /// `output`
    pub output: Option<SpannedValue<String>>,
    /// `timeout`
    pub timeout: Option<Duration>,
    /// `retry`
    pub retry: Option<RetryDraft>,
    /// `loop`, or `loop_to` with `max_retries`
    pub loop_back: Option<LoopBackDraft>,
    /// `max_retries` of a manifest, which means a loop or retries, depending on the condition.
    pub max_retries: Option<SpannedValue<u32>>,
    /// `workspace: own`
    pub own_workspace: bool,
    /// `join`
    pub join: Option<Join>,
    /// `always`
    pub always: bool,
    /// `harness`
    pub harness: Option<String>,
    /// `permissions`
    pub permissions: Option<AgentPermissions>,
    /// `acts_as: person`
    pub acts_as_person: Option<SpannedValue<()>>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum StepWorkDraft {
    /// `type: agent`
    Agent {
        /// `prompt`, `prompt_file`, or a template's `description`
        prompt: PromptDraft,
    },
    /// `type: agent-loop`
    AgentLoop {
        /// `prompt`
        prompt: PromptDraft,
        /// `arbiter_prompt`
        arbiter: PromptDraft,
        /// `max_iterations`
        max_iterations: u32,
        /// `on_max_iterations`
        on_max: OnLimit,
    },
    /// `type: parallel-agents`
    ParallelAgents {
        /// `for_each`
        items: ItemsDraft,
        /// `prompt`
        prompt: PromptDraft,
        /// `max_concurrent`
        max_concurrent: u32,
        /// `on_failure`
        on_failure: OnLimit,
    },
    /// `type: script`
    Script {
        /// `command`
        command: SourceText,
    },
    /// `type: gate`
    Gate {
        /// `command`
        command: SourceText,
        /// `message`
        message: Option<SourceText>,
    },
    /// `type: task`
    Task {
        /// `summary`
        summary: SourceText,
        /// `branch`
        branch: Option<SourceText>,
        /// `workflow`
        workflow: Option<String>,
        /// `project`
        project: Option<String>,
        /// `context`
        context: Option<SourceText>,
    },
}

/// What an agent is told.
#[derive(Clone, Debug)]
pub enum PromptDraft {
    /// In the file.
    Inline(SourceText),
    /// In a file of its own.
    File {
        /// As written.
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

/// `for_each`
#[derive(Clone, Debug)]
pub enum ItemsDraft {
    /// A variable, as text.
    Text(SourceText),
    /// A list in the file.
    Listed(Vec<Data>),
}

/// `retry`
#[derive(Clone, Debug)]
pub struct RetryDraft {
    /// `max`
    pub max: u32,
    /// `backoff`
    pub backoff: Option<Duration>,
    /// `on`
    pub on: Vec<FailureKind>,
}

/// `loop` or `loop_to`
#[derive(Clone, Debug)]
pub struct LoopBackDraft {
    /// `to`
    pub to: SpannedValue<String>,
    /// `max`
    pub max: Option<u32>,
    /// `on_exhausted`
    pub on_exhausted: OnExhausted,
}

/// An entry of `on_complete` or `on_fail`.
#[derive(Clone, Debug)]
pub enum RunHookDraft {
    /// `notify`
    Notify(SourceText),
    /// `run_command`
    RunCommand(SourceText),
    /// `start`
    Start(String),
}
