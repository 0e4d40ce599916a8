//! What a task or run waits for that is asked for again and again: told when a person looks, because nothing of it is recorded.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sluice_engine::reactor::Assignment;
use sluice_store::StreamId;

use super::errand::ErrandPending;
use crate::background::locked;
use crate::read::tasks::ReadModel;
use crate::undone::UnavailableReason;

/// What takes less is not worth a word.
const WORTH_A_WORD: Duration = Duration::from_secs(5);

/// Why effects are not done yet, by the task or run and the effect.
#[derive(Debug, Default)]
pub(crate) struct EffectWaits(Mutex<BTreeMap<(StreamId, String), String>>);

impl EffectWaits {
    /// An effect was tried once more, and this came of it.
    pub(crate) fn note(
        &self,
        tasks: &ReadModel,
        assignment: &Assignment,
        began: Instant,
        not_yet: Option<&ErrandPending>,
    ) {
        let key = (assignment.stream.clone(), assignment.effect.id.clone());
        match not_yet {
            Some(ErrandPending::Unavailable(UnavailableReason(why))) if began.elapsed() >= WORTH_A_WORD => {
                if locked(&self.0).insert(key, why.clone()).is_none() {
                    tasks.stir_stream(&assignment.stream); // whoever waits for it is told what it waits for
                }
            }
            Some(ErrandPending::Unavailable(_) | ErrandPending::On(_)) => {}
            Some(ErrandPending::At(_) | ErrandPending::Told) | None => drop(locked(&self.0).remove(&key)),
        }
    }

    /// What a task or run waits for, if that takes long.
    pub(crate) fn of(&self, stream: &StreamId) -> Option<String> {
        let known = locked(&self.0);
        let why = known.range((stream.clone(), String::new())..).next();
        why.filter(|((of, _), _)| of == stream).map(|(_, why)| format!("it waits, and is tried again: {why}"))
    }
}
