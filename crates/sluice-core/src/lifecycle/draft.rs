//! A lifecycle as its file says it: names that may lead nowhere, guards that are still text, each with its place.

use crate::artifact::Verdict;
use crate::lifecycle::{By, FieldValue, HarnessChoice, Permissions};
use crate::span::{At, Span, Text};

/// A lifecycle before it is checked.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The whole file, for findings that have no better place.
    pub span: Span,
    /// `name`
    pub name: Option<At<String>>,
    /// `version`
    pub version: Option<u64>,
    /// `states`, by name.
    pub states: Vec<State>,
    /// `transitions`
    pub transitions: Vec<Transition>,
    /// `exit_monitoring.poll_interval`
    pub poll_interval: Option<u32>,
    /// `exit_monitoring.rules`
    pub rules: Vec<Rule>,
    /// `prompts`, by name.
    pub prompts: Vec<(At<String>, Text)>,
}

/// A state and what stands under it.
#[derive(Clone, Debug)]
pub struct State {
    /// Its name.
    pub name: At<String>,
    /// `terminal`
    pub terminal: bool,
    /// `respawn_prompt`
    pub respawn_prompt: Option<At<String>>,
    /// `enter_prompt`
    pub enter_prompt: Option<At<String>>,
    /// `run`
    pub run: Option<Run>,
}

/// The keys of `run`.
#[derive(Clone, Debug)]
pub struct Run {
    /// Where the key itself stands.
    pub span: Span,
    /// `recipe`
    pub recipe: At<String>,
    /// `inputs`, by name.
    pub inputs: Vec<(At<String>, Text)>,
    /// `completed`
    pub completed: Option<At<String>>,
    /// `failed`
    pub failed: Option<At<String>>,
}

/// An entry of `transitions`.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The whole entry.
    pub span: Span,
    /// `from`; `None` when it is missing, which has been reported.
    pub from: Option<At<String>>,
    /// `to`; likewise.
    pub to: Option<At<String>>,
    /// `gate`
    pub gate: Option<Gate>,
    /// `when`
    pub when: Option<Text>,
    /// `by`
    pub by: Option<By>,
    /// `hooks`
    pub hooks: Vec<At<Hook>>,
}

impl Transition {
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
pub struct Gate {
    /// `section`
    pub section: At<String>,
    /// `required`
    pub required: Option<bool>,
    /// `fields`
    pub fields: Vec<At<String>>,
    /// `verdict`
    pub verdict: Option<At<Verdict>>,
    /// `strict`
    pub strict: bool,
}

/// An entry of `hooks`, at the place of its `action`.
#[derive(Clone, Debug)]
pub enum Hook {
    /// `acquire_workspace`
    AcquireWorkspace,
    /// `release_workspace`
    ReleaseWorkspace,
    /// `spawn_agent`
    SpawnAgent(Spawn),
    /// `spawn_reviewer`
    SpawnReviewer(Spawn),
    /// `kill_session`
    KillSession,
    /// `kill_reviewer`
    KillReviewer,
    /// `notify_worker`
    NotifyWorker {
        /// `message`
        message: Option<Text>,
        /// `start`
        start: bool,
    },
    /// `increment_review_round`
    IncrementReviewRound,
    /// `spawn_next`
    SpawnNext,
    /// `push_branch`
    PushBranch,
    /// `create_pr`
    CreatePr,
    /// `delete_remote_branch`
    DeleteRemoteBranch,
    /// `notify`
    Notify(Text),
    /// `run_command`
    RunCommand(Text),
    /// `set_field`
    SetField(At<String>, At<FieldValue>),
}

/// The keys of `spawn_agent` and `spawn_reviewer`.
#[derive(Clone, Debug)]
pub struct Spawn {
    /// `prompt`
    pub prompt: At<String>,
    /// `harness`
    pub harness: HarnessChoice,
    /// `permissions`
    pub permissions: Permissions,
    /// `increment`
    pub increment: Option<At<String>>,
}

/// An entry of `exit_monitoring.rules`.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The whole entry.
    pub span: Span,
    /// `status`
    pub status: At<String>,
    /// `has_artifact`
    pub has_artifact: Option<Gate>,
    /// `no_artifact`, at its key.
    pub no_artifact: Option<Span>,
    /// `then`, `then_when` or `action`.
    pub reaction: Reaction,
}

/// What a rule leads to.
#[derive(Clone, Debug)]
pub enum Reaction {
    /// `then`
    Then(At<String>),
    /// `then_when`, at its key.
    ThenWhen(At<Vec<Clause>>),
    /// `action: crash`
    Crash {
        /// `stuck_after`
        stuck_after: Option<At<u32>>,
        /// `respawn`
        respawn: bool,
    },
    /// `action: mark_dead`
    MarkDead,
}

/// An entry of `then_when`.
#[derive(Clone, Debug)]
pub struct Clause {
    /// `when`
    pub when: Text,
    /// `then`
    pub then: At<String>,
}
