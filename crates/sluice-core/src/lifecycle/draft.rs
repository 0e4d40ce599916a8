//! A lifecycle as its file says it: names that may lead nowhere, guards that are still text, each with its place.

use crate::artifact::Verdict;
use crate::lifecycle::action::PlainAction;
use crate::lifecycle::{AgentPermissions, AssignedTaker, FieldValue, HarnessChoice};
use crate::span::{SourceText, Span, SpannedValue};

/// A lifecycle before it is checked.
#[derive(Clone, Debug, Default)]
pub struct LifecycleDraft {
    /// The whole file, for findings that have no better place.
    pub span: Span,
    /// `name`
    pub name: Option<SpannedValue<String>>,
    /// `version`
    pub version: Option<u64>,
    /// `states`, by name.
    pub states: Vec<StateDraft>,
    /// `transitions`
    pub transitions: Vec<TransitionDraft>,
    /// `exit_monitoring.poll_interval`
    pub poll_interval: Option<u32>,
    /// `exit_monitoring.rules`
    pub rules: Vec<ExitRuleDraft>,
    /// `prompts`, by name.
    pub prompts: Vec<(SpannedValue<String>, SourceText)>,
}

/// A state and what stands under it.
#[derive(Clone, Debug)]
pub struct StateDraft {
    /// Its name.
    pub name: SpannedValue<String>,
    /// `terminal`
    pub terminal: bool,
    /// `respawn_prompt`
    pub respawn_prompt: Option<SpannedValue<String>>,
    /// `enter_prompt`
    pub enter_prompt: Option<SpannedValue<String>>,
    /// `run`
    pub run: Option<StateRunDraft>,
}

/// The keys of `run`.
#[derive(Clone, Debug)]
pub struct StateRunDraft {
    /// Where the key itself stands.
    pub span: Span,
    /// `recipe`
    pub recipe: SpannedValue<String>,
    /// `inputs`, by name.
    pub inputs: Vec<(SpannedValue<String>, SourceText)>,
    /// `completed`
    pub completed: Option<SpannedValue<String>>,
    /// `failed`
    pub failed: Option<SpannedValue<String>>,
}

/// An entry of `transitions`.
#[derive(Clone, Debug)]
pub struct TransitionDraft {
    /// The whole entry.
    pub span: Span,
    /// `from`; `None` when it is missing, which has been reported.
    pub from: Option<SpannedValue<String>>,
    /// `to`; likewise.
    pub to: Option<SpannedValue<String>>,
    /// `gate`
    pub gate: Option<GateDraft>,
    /// `when`
    pub when: Option<SourceText>,
    /// `by`
    pub by: Option<AssignedTaker>,
    /// `hooks`
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

/// `gate` or `has_artifact`.
#[derive(Clone, Debug)]
pub struct GateDraft {
    /// `section`
    pub section: SpannedValue<String>,
    /// `required`
    pub required: Option<bool>,
    /// `fields`
    pub fields: Vec<SpannedValue<String>>,
    /// `verdict`
    pub verdict: Option<SpannedValue<Verdict>>,
    /// `strict`
    pub strict: bool,
}

/// An entry of `hooks`, at the place of its `action`.
#[derive(Clone, Debug)]
pub enum HookDraft {
    /// `acquire_workspace`
    AcquireWorkspace,
    /// `release_workspace`
    ReleaseWorkspace,
    /// `spawn_agent`
    SpawnAgent(SpawnDraft),
    /// `spawn_reviewer`
    SpawnReviewer(SpawnDraft),
    /// `kill_session`
    KillSession,
    /// `kill_reviewer`
    KillReviewer,
    /// `notify_worker`
    NotifyWorker {
        /// `message`
        message: Option<SourceText>,
        /// `start`
        start: bool,
    },
    /// `increment_review_round`
    IncrementReviewRound,
    /// `run_command`
    RunCommand(SourceText),
    /// `set_field`
    SetField(SpannedValue<String>, SpannedValue<FieldValue>),
    /// One that only asks for an effect, and what stands under its keys.
    Plain(PlainAction, Vec<(&'static str, SourceText)>),
}

/// The keys of `spawn_agent` and `spawn_reviewer`.
#[derive(Clone, Debug)]
pub struct SpawnDraft {
    /// `prompt`
    pub prompt: SpannedValue<String>,
    /// `harness`
    pub harness: HarnessChoice,
    /// `permissions`
    pub permissions: AgentPermissions,
    /// `increment`
    pub increment: Option<SpannedValue<String>>,
}

/// An entry of `exit_monitoring.rules`.
#[derive(Clone, Debug)]
pub struct ExitRuleDraft {
    /// The whole entry.
    pub span: Span,
    /// `status`
    pub status: SpannedValue<String>,
    /// `has_artifact`
    pub has_artifact: Option<GateDraft>,
    /// `no_artifact`, at its key.
    pub no_artifact: Option<Span>,
    /// `then`, `then_when` or `action`.
    pub reaction: ReactionDraft,
}

/// What a rule leads to.
#[derive(Clone, Debug)]
pub enum ReactionDraft {
    /// `then`
    Then(SpannedValue<String>),
    /// `then_when`, at its key.
    ThenWhen(SpannedValue<Vec<ClauseDraft>>),
    /// `action: crash`
    Crash {
        /// `stuck_after`
        stuck_after: Option<SpannedValue<u32>>,
        /// `respawn`
        respawn: bool,
    },
    /// `action: mark_dead`
    MarkDead,
}

/// An entry of `then_when`.
#[derive(Clone, Debug)]
pub struct ClauseDraft {
    /// `when`
    pub when: SourceText,
    /// `then`
    pub then: SpannedValue<String>,
}
