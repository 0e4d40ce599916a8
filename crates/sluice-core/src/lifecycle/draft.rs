//! A lifecycle as its file says it: names that may lead nowhere, guards that are still text, each with its place.

use crate::artifact::Verdict;
use crate::lifecycle::action::PlainAction;
use crate::lifecycle::{AgentPermissions, AssignedTaker, FieldValue, HarnessChoice, TransitionHook};
use crate::span::{SourceText, Span, SpannedValue};

/// A lifecycle before it is checked.
#[derive(Clone, Debug, Default)]
pub struct LifecycleDraft {
    /// The whole file, for findings that have no better place.
    pub span: Span,
    /// `name`; `None` when it is missing or no text, which has been reported.
    pub name: Option<SpannedValue<String>>,
    /// `version`, the author's own number; 1 when the file does not say.
    pub version: Option<u64>,
    /// `states`, in the order of the file.
    pub states: Vec<StateDraft>,
    /// `transitions`, in the order of the file.
    pub transitions: Vec<TransitionDraft>,
    /// `exit_monitoring.poll_interval`, in seconds; 30 when the file does not say.
    pub poll_interval: Option<u32>,
    /// `exit_monitoring.rules`, in the order of the file; the first that matches is applied.
    pub rules: Vec<ExitRuleDraft>,
    /// `prompts`: name and text of each, in the order of the file.
    pub prompts: Vec<(SpannedValue<String>, SourceText)>,
}

/// A state and what stands under it.
#[derive(Clone, Debug)]
pub struct StateDraft {
    /// The state's name: its key under `states`.
    pub name: SpannedValue<String>,
    /// `terminal`: whether the task ends in this state; false unless given.
    pub terminal: bool,
    /// `respawn_prompt`: the name of the prompt for an agent that is started here again.
    pub respawn_prompt: Option<SpannedValue<String>>,
    /// `enter_prompt`: the name of the prompt for an agent that is started on every entry.
    pub enter_prompt: Option<SpannedValue<String>>,
    /// `run`: the run that is started whenever the state is entered.
    pub run: Option<StateRunDraft>,
}

/// The keys of `run`.
#[derive(Clone, Debug)]
pub struct StateRunDraft {
    /// Where the key itself stands.
    pub span: Span,
    /// `recipe`: the name of the recipe, looked up when the run starts.
    pub recipe: SpannedValue<String>,
    /// `inputs`: name and text of each value that the run is given.
    pub inputs: Vec<(SpannedValue<String>, SourceText)>,
    /// `completed`: the state that the task moves to when the run has completed.
    pub completed: Option<SpannedValue<String>>,
    /// `failed`: the state that the task moves to when the run has failed.
    pub failed: Option<SpannedValue<String>>,
}

/// An entry of `transitions`.
#[derive(Clone, Debug)]
pub struct TransitionDraft {
    /// The whole entry, for findings that have no better place.
    pub span: Span,
    /// `from`; `None` when it is missing, which has been reported.
    pub from: Option<SpannedValue<String>>,
    /// `to`; `None` when it is missing, which has been reported.
    pub to: Option<SpannedValue<String>>,
    /// `gate`: what the artifact must satisfy; `None` when it is not read.
    pub gate: Option<GateDraft>,
    /// `when`: the guard over the task's counters, still unread.
    pub when: Option<SourceText>,
    /// `by`: who may take it; `None` leaves that to [`crate::lifecycle::Lifecycle::takers`].
    pub by: Option<AssignedTaker>,
    /// `hooks`, in the order in which they are carried out.
    pub hooks: Vec<SpannedValue<HookDraft>>,
}

impl TransitionDraft {
    /// Where it says what it leads to.
    pub fn to_span(&self) -> Span {
        self.to.as_ref().map_or(self.span, |to| to.span)
    }

    /// Where it says when it may be taken: its guard, else its target.
    pub fn clause_span(&self) -> Span {
        self.when.as_ref().map_or(self.to_span(), |when| when.span)
    }
}

/// What stands under `gate` or `has_artifact`.
#[derive(Clone, Debug)]
pub struct GateDraft {
    /// `section`: the heading in TASK.md, with its `## `.
    pub section: SpannedValue<String>,
    /// `required`: whether the section must have content; true when the file does not say.
    pub required: Option<bool>,
    /// `fields`: names of which one must stand in the section as `NAME: something`.
    pub fields: Vec<SpannedValue<String>>,
    /// `verdict`: the verdict that the section must give, if any.
    pub verdict: Option<SpannedValue<Verdict>>,
    /// `strict`: whether the verdict must be the first line, as `Verdict: PASS`; false unless given.
    pub strict: bool,
}

/// An entry of `hooks`, at the place of its `action`.
#[derive(Clone, Debug)]
pub enum HookDraft {
    /// One that names nothing and has no texts: it is what it will be.
    Ready(TransitionHook),
    /// `spawn_agent`: starts the task's own agent.
    SpawnAgent(SpawnDraft),
    /// `spawn_reviewer`: starts a reviewer beside the living agent.
    SpawnReviewer(SpawnDraft),
    /// `notify_worker`: types a message to the worker.
    NotifyWorker {
        /// `message`: what the worker is told; the engine's own words when absent.
        message: Option<SourceText>,
        /// `start`: whether a worker is started where none is alive; true unless given.
        start: bool,
    },
    /// `run_command`: the command that runs in the task's workspace.
    RunCommand(SourceText),
    /// `set_field`: the field that is set, and its new value.
    SetField(SpannedValue<String>, SpannedValue<FieldValue>),
    /// One that only asks for an effect, and what stands under its keys.
    Plain(PlainAction, Vec<(&'static str, SourceText)>),
}

/// The keys of `spawn_agent` and `spawn_reviewer`.
#[derive(Clone, Debug)]
pub struct SpawnDraft {
    /// `prompt`: the name of the prompt that the agent is told.
    pub prompt: SpannedValue<String>,
    /// `harness`: which of the task's two agent programs is used.
    pub harness: HarnessChoice,
    /// `permissions`: what the agent may do without asking.
    pub permissions: AgentPermissions,
    /// `increment`: the counter that goes up before the agent starts.
    pub increment: Option<SpannedValue<String>>,
}

/// An entry of `exit_monitoring.rules`.
#[derive(Clone, Debug)]
pub struct ExitRuleDraft {
    /// `status`: the name of the state that the rule watches.
    pub status: SpannedValue<String>,
    /// `has_artifact`: the rule applies if the artifact satisfies this.
    pub has_artifact: Option<GateDraft>,
    /// `no_artifact`, at its key.
    pub no_artifact: Option<Span>,
    /// `then`, `then_when` or `action`.
    pub reaction: ReactionDraft,
}

/// What a rule leads to.
#[derive(Clone, Debug)]
pub enum ReactionDraft {
    /// `then`: the name of the state that the task advances to.
    Then(SpannedValue<String>),
    /// `then_when`, at its key.
    ThenWhen(SpannedValue<Vec<ClauseDraft>>),
    /// `action: crash`: the end counts as a crash.
    Crash {
        /// `stuck_after`: the number of crashes after which the task is stuck.
        stuck_after: Option<SpannedValue<u32>>,
        /// `respawn`: whether the agent is started again at once; false unless given.
        respawn: bool,
    },
    /// `action: mark_dead`: the dead session is shown, and a person decides.
    MarkDead,
}

/// An entry of `then_when`.
#[derive(Clone, Debug)]
pub struct ClauseDraft {
    /// `when`: the guard of this clause, still unread.
    pub when: SourceText,
    /// `then`: the name of the state that the task advances to if the guard holds.
    pub then: SpannedValue<String>,
}
