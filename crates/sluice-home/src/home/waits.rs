//! What a task or run waits for that is asked for again and again: told when a person looks, because nothing of it is recorded.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sluice_api::attention::{AttentionCause, AttentionNote};
use sluice_engine::reactor::Assignment;
use sluice_store::StreamId;

use super::errand::ErrandPending;
use super::room::LOW_DISK;
use crate::background::locked;
use crate::read::attention::note_of;
use crate::read::runs;
use crate::read::tasks::{ReadModel, id_of};
use crate::settings::clock::{wall, written};
use crate::undone::UnavailableReason;

/// What takes less is not worth a word.
const WORTH_A_WORD: Duration = Duration::from_secs(5);

/// Why effects are not done yet, by the task or run and the effect.
#[derive(Debug, Default)]
pub(crate) struct EffectWaits(Mutex<BTreeMap<(StreamId, String), EffectWait>>);

/// What an effect waits for, and since when.
#[derive(Clone, Debug)]
struct EffectWait {
    why: String,
    since: i64,
}

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
                let mut known = locked(&self.0);
                let since = known.get(&key).map(|wait| wait.since);
                let wait = EffectWait { why: why.clone(), since: since.unwrap_or_else(|| wall() / 1000) };
                if known.insert(key, wait).is_none() {
                    drop(known);
                    tasks.stir_stream(&assignment.stream); // whoever waits for it is told what it waits for
                }
            }
            Some(ErrandPending::Unavailable(_) | ErrandPending::On(_)) => {}
            Some(ErrandPending::At(_) | ErrandPending::Told) | None => drop(locked(&self.0).remove(&key)),
        }
    }

    /// What a task or run waits for, if that takes long.
    pub(crate) fn of(&self, stream: &StreamId) -> Option<AttentionNote> {
        let known = locked(&self.0);
        let wait = known.range((stream.clone(), String::new())..).next();
        wait.filter(|((of, _), _)| of == stream).map(|((of, _), wait)| shown(of, wait))
    }

    /// All tasks and runs that wait for long, each with what it waits for.
    pub(crate) fn all(&self) -> BTreeMap<StreamId, AttentionNote> {
        locked(&self.0).iter().rev().map(|((of, _), wait)| (of.clone(), shown(of, wait))).collect()
    }
}

/// It is not recorded, so it has no number; and it passes by itself, so there is nothing to answer.
fn shown(stream: &StreamId, wait: &EffectWait) -> AttentionNote {
    let of = id_of(stream).map(|id| id.to_string()).or_else(|| runs::id_of(stream).map(|id| id.to_string()));
    let of = of.unwrap_or_else(|| stream.to_string());
    let reason = if wait.why.contains(LOW_DISK) { AttentionCause::WorkAtRisk } else { AttentionCause::Timeout };
    let text = format!("it waits, and is tried again: {}", wait.why);
    AttentionNote { id: format!("{of}/wait"), ..note_of(reason, text, written(wait.since)) }
}
