//! A recipe as its file says it, whatever the format: names that may lead nowhere, texts still unread, each with its place.

use std::sync::Arc;
use std::time::Duration;

use crate::lifecycle::Permissions;
use crate::recipe::{Data, Dialect, FailureKind, InputKind, Join, OnExhausted, OnLimit};
use crate::span::{At, Span, Text};

/// A recipe before it is checked.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The whole file, for findings that have no better place.
    pub span: Span,
    /// The format, for the words of messages.
    pub dialect: Dialect,
    /// `name` or `template`
    pub name: Option<At<String>>,
    /// `description`
    pub description: String,
    /// `version`
    pub version: String,
    /// `trigger`, when it is an event.
    pub trigger: Option<Trigger>,
    /// `input`
    pub inputs: Option<Vec<Input>>,
    /// `steps`
    pub steps: Vec<Step>,
    /// `max_parallel`
    pub max_parallel: Option<u32>,
    /// `repeat`: how long after the end, and how many ended runs are kept.
    pub repeat: Option<(Duration, u32)>,
    /// `timeout`
    pub timeout: Option<Duration>,
    /// `on_complete`
    pub on_complete: Vec<RunHook>,
    /// `on_fail`
    pub on_fail: Vec<RunHook>,
}

/// `trigger: {event, where}`
#[derive(Clone, Debug)]
pub struct Trigger {
    /// `event`
    pub event: At<String>,
    /// `where`
    pub filter: Option<Text>,
}

/// An entry of `input`.
#[derive(Clone, Debug)]
pub struct Input {
    /// `name`
    pub name: At<String>,
    /// `type`
    pub kind: InputKind,
    /// `required`
    pub required: Option<bool>,
    /// `default`
    pub default: Option<At<Data>>,
}

/// An entry of `steps`.
#[derive(Clone, Debug)]
pub struct Step {
    /// The whole entry.
    pub span: Span,
    /// `name` or `id`
    pub name: At<String>,
    /// `title`
    pub title: Option<String>,
    /// `role`
    pub role: Option<At<String>>,
    /// `needs` or `depends_on`
    pub needs: Option<Vec<At<String>>>,
    /// `when` or `condition`
    pub condition: Option<Text>,
    /// What it does; `None` when the file does not say it well enough, which has been reported.
    pub work: Option<Work>,
    /// `output`
    pub output: Option<At<String>>,
    /// `timeout`
    pub timeout: Option<Duration>,
    /// `retry`
    pub retry: Option<Retry>,
    /// `loop`, or `loop_to` with `max_retries`
    pub loop_back: Option<LoopBack>,
    /// `max_retries` of a manifest, which means a loop or retries, depending on the condition.
    pub max_retries: Option<At<u32>>,
    /// `workspace: own`
    pub own_workspace: bool,
    /// `join`
    pub join: Option<Join>,
    /// `always`
    pub always: bool,
    /// `harness`
    pub harness: Option<String>,
    /// `permissions`
    pub permissions: Option<Permissions>,
    /// `acts_as: person`
    pub acts_as_person: Option<At<()>>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Work {
    /// `type: agent`
    Agent {
        /// `prompt`, `prompt_file`, or a template's `description`
        prompt: Prompt,
    },
    /// `type: agent-loop`
    AgentLoop {
        /// `prompt`
        prompt: Prompt,
        /// `arbiter_prompt`
        arbiter: Prompt,
        /// `max_iterations`
        max_iterations: u32,
        /// `on_max_iterations`
        on_max: OnLimit,
    },
    /// `type: parallel-agents`
    ParallelAgents {
        /// `for_each`
        items: Items,
        /// `prompt`
        prompt: Prompt,
        /// `max_concurrent`
        max_concurrent: u32,
        /// `on_failure`
        on_failure: OnLimit,
    },
    /// `type: script`
    Script {
        /// `command`
        command: Text,
    },
    /// `type: gate`
    Gate {
        /// `command`
        command: Text,
        /// `message`
        message: Option<Text>,
    },
    /// `type: task`
    Task {
        /// `summary`
        summary: Text,
        /// `branch`
        branch: Option<Text>,
        /// `workflow`
        workflow: Option<String>,
        /// `project`
        project: Option<String>,
        /// `context`
        context: Option<Text>,
    },
}

/// What an agent is told.
#[derive(Clone, Debug)]
pub enum Prompt {
    /// In the file.
    Inline(Text),
    /// In a file of its own.
    File {
        /// As written.
        path: At<String>,
        /// What the reader found there.
        found: PromptFile,
    },
}

/// What the reader found where a prompt file should be.
#[derive(Clone, Debug)]
pub enum PromptFile {
    /// This text, which other steps may share.
    Read(Arc<Text>),
    /// Nothing that can be read, for this reason.
    Missing(String),
    /// A way out of the root, for this reason.
    Outside(String),
}

/// `for_each`
#[derive(Clone, Debug)]
pub enum Items {
    /// A variable, as text.
    Text(Text),
    /// A list in the file.
    Listed(Vec<Data>),
}

/// `retry`
#[derive(Clone, Debug)]
pub struct Retry {
    /// `max`
    pub max: u32,
    /// `backoff`
    pub backoff: Option<Duration>,
    /// `on`
    pub on: Vec<FailureKind>,
}

/// `loop` or `loop_to`
#[derive(Clone, Debug)]
pub struct LoopBack {
    /// `to`
    pub to: At<String>,
    /// `max`
    pub max: Option<u32>,
    /// `on_exhausted`
    pub on_exhausted: OnExhausted,
}

/// An entry of `on_complete` or `on_fail`.
#[derive(Clone, Debug)]
pub enum RunHook {
    /// `notify`
    Notify(Text),
    /// `run_command`
    RunCommand(Text),
    /// `start`
    Start(String),
}
