//! What is promised of timers: they come when the time that was given has gone by, not before and not much later, as long
//! as one process has seen to them; and none is left when its run has ended.

use sluice_core::recipe::FailureKind;
use sluice_core::run::{RunEvent, StepFailure};
use sluice_engine::codec::run_event;
use sluice_store::Append;

use super::{SimCommitSource, SimWatch};

/// A timer may come so much earlier, in milliseconds: what is decided takes a while to be stored.
const EARLY: i64 = 1_000;
/// And so much later: a process may be stopped, and cut off from the store, again and again.
const LATE: i64 = 150_000;

pub(super) struct SimTimer {
    due: i64,
    /// The process that has set it.
    epoch: u64,
}

impl SimWatch {
    pub(super) fn timers_stored(&mut self, append: &Append, by: SimCommitSource) -> Result<(), String> {
        let stream = &append.stream;
        let timers = self.timers.entry(stream.clone()).or_default();
        for event in &append.events {
            if event.kind != "step.stopping" {
                continue;
            }
            let event = run_event::read(event.version, &event.data).map_err(|error| error.to_string())?;
            let RunEvent::StepStopping { step, failure: StepFailure::Attempt { kind: FailureKind::Timeout, .. } } =
                event
            else {
                continue;
            };
            let of_step = format!("timeout.{}.", step.0);
            let timer = timers.iter().find(|(key, _)| key.starts_with(&of_step)).map(|(_, timer)| timer);
            if let Some(timer) = timer.filter(|timer| timer.epoch == by.epoch && by.now + EARLY < timer.due) {
                return Err(format!("{stream}: step {} has {} ms of its time left", step.0, timer.due - by.now));
            }
        }
        for (key, due) in &append.timers {
            let before = match due {
                Some(due) => timers.insert(key.clone(), SimTimer { due: due - by.ahead, epoch: by.epoch }),
                None => timers.remove(key),
            };
            if before.is_some_and(|timer| timer.epoch == by.epoch && timer.due + LATE < by.now) {
                return Err(format!("{stream}: {key} comes too late"));
            }
        }
        match timers.keys().next().filter(|_| !append.header.card.open) {
            Some(key) => Err(format!("{stream} has ended, and the timer {key} is left")),
            None => Ok(()),
        }
    }
}
