//! Where a whole run is, as it is listed and shown.

use super::state::{RunConclusion, RunState};

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// It goes on by itself.
    Running,
    /// Nothing goes on before a person answers.
    Held,
    /// Its steps are done.
    Completed,
    /// A step failed for good.
    Failed,
    /// A person ended it.
    Cancelled,
}

impl RunPhase {
    /// Every phase, in the order of a run's life.
    pub const ALL: [RunPhase; 5] =
        [RunPhase::Running, RunPhase::Held, RunPhase::Completed, RunPhase::Failed, RunPhase::Cancelled];

    /// The word outside, which cards store.
    pub const fn word(self) -> &'static str {
        match self {
            RunPhase::Running => "running",
            RunPhase::Held => "held",
            RunPhase::Completed => "completed",
            RunPhase::Failed => "failed",
            RunPhase::Cancelled => "cancelled",
        }
    }
}

impl RunState {
    /// Where the run is.
    pub fn phase(&self) -> RunPhase {
        match &self.end {
            Some(RunConclusion::Completed { .. }) => RunPhase::Completed,
            Some(RunConclusion::Failed { .. }) => RunPhase::Failed,
            Some(RunConclusion::Cancelled { .. }) => RunPhase::Cancelled,
            None if self.at_hand.busy == 0 && !self.at_hand.asking.is_empty() => RunPhase::Held,
            None => RunPhase::Running,
        }
    }

    /// The word for that.
    pub fn status(&self) -> &'static str {
        self.phase().word()
    }
}
