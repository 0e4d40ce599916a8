//! Where a whole run is, as it is listed and shown.

use super::state::{RunConclusion, RunState};
use crate::words::words;

words! {
    /// Where a run is. Cards store its word.
    RunPhase {
        /// It goes on by itself.
        Running = "running",
        /// Nothing goes on before a person answers.
        Held = "held",
        /// Its steps are done.
        Completed = "completed",
        /// A step failed for good.
        Failed = "failed",
        /// A person ended it.
        Cancelled = "cancelled",
    }
}

impl RunState {
    /// Where the run is.
    pub fn phase(&self) -> RunPhase {
        match &self.end {
            Some(RunConclusion::Completed { .. }) => RunPhase::Completed,
            Some(RunConclusion::Failed { .. }) => RunPhase::Failed,
            Some(RunConclusion::Cancelled { .. }) => RunPhase::Cancelled,
            None if self.at_hand.counts.busy == 0 && self.question().is_some() => RunPhase::Held,
            None => RunPhase::Running,
        }
    }

    /// The word for that.
    pub fn status(&self) -> &'static str {
        self.phase().word()
    }
}
