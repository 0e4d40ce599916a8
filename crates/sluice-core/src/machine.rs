//! What the two machines (task, run) have in common: an input comes in, `decide` answers with events and effects or
//! with a refusal, `apply` records an event.
//!
//! `decide` may refuse and changes nothing; `apply` changes and may not refuse. Neither knows a clock: the time is part
//! of the input. Effects are instructions that are committed together with the events and performed at least once; each
//! has a key that is the same whenever the same thing is asked for, so that performing it twice can be recognised.

pub mod environment;

use std::fmt;

/// A moment, in milliseconds since 1970. It comes in with an input; the core never asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub i64);

impl Moment {
    /// The moment that lies `wait` after this one; saturates instead of overflowing.
    pub fn after(self, wait: std::time::Duration) -> Moment {
        Moment(self.0.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// What `decide` answers when it does not refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision<Event, Effect> {
    /// What happened, in order. None: the input changes nothing, and that is fine (it came late, or twice).
    pub events: Vec<Event>,
    /// What is to be done because of it, in order.
    pub effects: Vec<Effect>,
}

impl<Event, Effect> Decision<Event, Effect> {
    /// A decision without events and effects: the input changes nothing.
    pub fn nothing() -> Self {
        Decision { events: Vec::new(), effects: Vec::new() }
    }
}

macro_rules! refusals {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal;)+) => {
        /// Why an input is refused. The asker can mend it. Each code has a page in `docs/refusals/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum RefusalCode {
            $($(#[doc = $doc])+ $name,)+
        }

        impl RefusalCode {
            /// Every code there is.
            pub const ALL: &[RefusalCode] = &[$(RefusalCode::$name,)+];

            /// The code as people and programs see it.
            pub fn as_str(self) -> &'static str {
                match self { $(RefusalCode::$name => $code,)+ }
            }

            /// One line: what this code says about what was asked.
            pub fn title(self) -> &'static str {
                match self { $(RefusalCode::$name => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// The code that is written like this, in any case.
            pub fn parse(text: &str) -> Option<RefusalCode> {
                RefusalCode::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(text))
            }
        }
    };
}

refusals! {
    /// No transition leads from here to there.
    NoTransition = "no_transition";
    /// A transition exists, but its guard does not hold.
    GuardFailed = "guard_failed";
    /// The artifact does not satisfy the transition's gate.
    GateFailed = "gate_failed";
    /// The verdict is older than the work it judges.
    StaleVerdict = "stale_verdict";
    /// The last verdict is FAIL, and nothing has changed since.
    FailedVerdict = "failed_verdict";
    /// The workspace holds changes that no commit has.
    Uncommitted = "uncommitted";
    /// The workspace does not stand on the task's branch.
    NotOnBranch = "not_on_branch";
    /// The branch has no commit of its own.
    NothingToMerge = "nothing_to_merge";
    /// The default branch is checked out with changes, or with files in the way.
    CheckoutChanged = "checkout_changed";
    /// The branch and the default branch conflict.
    MergeConflict = "merge_conflict";
    /// The default branch cannot be fast-forwarded to the branch.
    NotFastForward = "not_fast_forward";
    /// A pull request for the branch is open.
    PrOpen = "pr_open";
    /// A pull request for the branch was closed, or merged without this work or into another branch.
    PrElsewhere = "pr_elsewhere";
    /// The caller may not do this.
    NotYours = "not_yours";
    /// The task or run has ended.
    Finished = "finished";
    /// No agent can be started again in this state.
    NotRespawnable = "not_respawnable";
    /// There is no workspace to work in.
    NoWorkspace = "no_workspace";
    /// The session is still alive.
    SessionAlive = "session_alive";
    /// The loop has used up its turns.
    LoopExhausted = "loop_exhausted";
    /// A step is still open.
    StepOpen = "step_open";
    /// What is asked for cannot be done now.
    NotReady = "not_ready";
    /// The work was given to another, because its lease ran out.
    LeaseLost = "lease_lost";
}

/// What stands in a message or a hint for the id of what was asked, which a machine does not know. The host puts it in.
pub const ASKED: &str = "<id>";

/// An input that is refused: why, and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its kind, with a page of its own.
    pub code: RefusalCode,
    /// What was asked of what, and why not; one line, no full stop.
    pub message: String,
    /// How the asker can mend it, in one line; `None` when there is nothing to say.
    pub hint: Option<String>,
}

impl Refusal {
    /// A refusal without a way out to tell.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Refusal { code, message: message.into(), hint: None }
    }

    /// With the way out.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}
