//! How long something waits before it is tried again, and how long a timer can be.

use std::time::Duration;

use super::effect::TimerKey;
use super::event::StepFailure;
use super::finish::LONGEST_ENDING;
use super::plan::RunPlan;
use super::record::{MOST_LOSSES, is_loss};
use super::state::{RunState, StepState, StepStatus};
use crate::recipe::{FailureKind, Step, StepId};

/// How long the engine waits before it starts again what went away a second time with its worker; then twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// And at most so long.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long the engine waits before it starts again what went away with its worker: the first time not at all.
pub(super) fn pause_after(losses: u32) -> Duration {
    match losses {
        0 => Duration::ZERO,
        more => FIRST_PAUSE.saturating_mul(1u32.checked_shl(more - 1).unwrap_or(u32::MAX)).min(LONGEST_PAUSE),
    }
}

/// How long it is until a step is tried again; `None`: it is not.
pub(super) fn again_after(step: &Step, state: &StepState, failure: &StepFailure) -> Option<Duration> {
    let kind = match failure {
        StepFailure::Attempt { kind: FailureKind::Lost, .. } if state.losses < MOST_LOSSES => {
            return Some(pause_after(state.losses));
        }
        // A worker that goes away again and again is a crash of what it does.
        StepFailure::Attempt { kind: FailureKind::Lost, .. } => FailureKind::Crashed,
        StepFailure::Attempt { kind, .. } => *kind,
        StepFailure::Upstream(_) | StepFailure::Undefined(_) | StepFailure::LoopExhausted | StepFailure::Aborted => {
            FailureKind::Failed
        }
    };
    let allowed = step.retry.on.is_empty() || step.retry.on.contains(&kind);
    (allowed && state.failures < step.retry.max).then(|| backoff(step, state.failures))
}

/// How long a step waits that has failed so often before.
fn backoff(step: &Step, failures: u32) -> Duration {
    step.retry.backoff.saturating_mul(1u32.checked_shl(failures).unwrap_or(u32::MAX))
}

impl RunState {
    /// The longest time for which a timer that is set now can have been set. One that is due later than that was set under
    /// a clock that was ahead. `None`: any time.
    pub fn longest(&self, plan: &RunPlan, key: TimerKey) -> Option<Duration> {
        let is_step = |id: StepId| usize::try_from(id.0).is_ok_and(|id| id < plan.recipe.steps.len());
        match key {
            TimerKey::Timeout(id, _) if is_step(id) => plan.recipe.step(id).timeout,
            TimerKey::Backoff(id, _) if is_step(id) => {
                let state = self.step(id);
                let is_failure = matches!(&state.status, StepStatus::Retrying { failure, .. } if !is_loss(failure));
                // The failure that it waits after has been counted.
                let backoff = backoff(plan.recipe.step(id), state.failures.saturating_sub(1));
                Some(match is_failure {
                    true => backoff,
                    false if state.losses < MOST_LOSSES => LONGEST_PAUSE,
                    // It waits after the last loss that counts as one, or after one that counts as a failure.
                    false => backoff.max(LONGEST_PAUSE),
                })
            }
            TimerKey::Timeout(..) | TimerKey::Backoff(..) => None,
            TimerKey::Run if self.ending.is_some() => Some(LONGEST_ENDING),
            TimerKey::Run => plan.recipe.timeout,
            TimerKey::Question(_) => None,
        }
    }
}
