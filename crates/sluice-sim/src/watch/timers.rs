//! What is promised of timers: they come when the time that was given has gone by, not before and not much later, as long
//! as one process has seen to them; and none is left when its run has ended.

use sluice_core::recipe::FailureKind;
use sluice_core::run::{RunEvent, StepFailure};
use sluice_engine::codec::run_event;
use sluice_engine::run_actor::RunActor;
use sluice_store::Append;

use super::{SimCommitSource, SimWatch};
use crate::work::ELSEWHERE;

/// A timer may come so much earlier, in milliseconds: what is decided takes a while to be stored.
const EARLY: i64 = 1_000;
/// And so much later: a process may be stopped, and cut off from the store, again and again.
const LATE: i64 = 150_000;

pub(super) struct SimTimer {
    due: i64,
    /// The process that has set it.
    epoch: u64,
    /// It is the time limit of an attempt that no worker elsewhere has been given: it does not count yet.
    is_unassigned: bool,
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
            if timer.is_some_and(|timer| timer.is_unassigned) {
                return Err(format!("{stream}: step {} took too long, and no worker ever had it", step.0));
            }
            if let Some(timer) = timer.filter(|timer| timer.epoch == by.epoch && by.now + EARLY < timer.due) {
                return Err(format!("{stream}: step {} has {} ms of its time left", step.0, timer.due - by.now));
            }
        }
        let is_elsewhere = RunActor::group_of(&append.header.card) == ELSEWHERE;
        let mut begun = Vec::new();
        for event in append.events.iter().filter(|event| is_elsewhere && event.kind == "step.started") {
            let event = run_event::read(event.version, &event.data).map_err(|error| error.to_string())?;
            begun.extend(event.step().map(|step| format!("timeout.{}.", step.0)));
        }
        for (key, due) in &append.timers {
            let is_unassigned = begun.iter().any(|of_step| key.starts_with(of_step));
            let before = match due {
                Some(due) => {
                    timers.insert(key.clone(), SimTimer { due: due - by.ahead, epoch: by.epoch, is_unassigned })
                }
                None => timers.remove(key),
            };
            let is_late = |timer: &SimTimer| timer.epoch == by.epoch && timer.due + LATE < by.now;
            if before.is_some_and(|timer| !timer.is_unassigned && is_late(&timer)) {
                return Err(format!("{stream}: {key} comes too late"));
            }
        }
        match timers.keys().next().filter(|_| !append.header.card.open) {
            Some(key) => Err(format!("{stream} has ended, and the timer {key} is left")),
            None => Ok(()),
        }
    }
}
