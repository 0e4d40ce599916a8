//! What waits for a worker, in queues by group and role. It knows no worker and gives nothing out by itself.
//!
//! The steps of a run that began earlier stand before those of a later one, whenever they came: what has begun ends, and gives
//! back its worktree, before more begins.

use std::collections::{BTreeMap, BTreeSet};

use sluice_store::{Effect, StreamId};

use crate::actor::WorkerRequirement;
use crate::scheduler::WorkerNeed;

#[derive(Clone, Debug)]
pub(crate) struct QueuedEffect {
    pub(crate) stream: StreamId,
    pub(crate) effect: Effect,
    pub(crate) wanted: WorkerRequirement,
}

/// The place of an effect among all that wait: a smaller one comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueuePlace {
    /// When its run began, in milliseconds.
    since: i64,
    arrival: u64,
}

/// The queues of one group, by role and by whether it is work in a scratch folder.
type NeedQueues = BTreeMap<(String, bool), BTreeSet<QueuePlace>>;

#[derive(Debug, Default)]
pub(super) struct WaitingEffects {
    arrivals: u64,
    jobs: BTreeMap<QueuePlace, QueuedEffect>,
    groups: BTreeMap<String, NeedQueues>,
    /// The places of each stream, by effect.
    streams: BTreeMap<StreamId, BTreeMap<String, QueuePlace>>,
}

impl WaitingEffects {
    /// Puts an effect behind those of its run and of older ones. One that waits already is not handed out twice.
    pub(super) fn add(&mut self, job: QueuedEffect) {
        self.forget(&job.stream, &job.effect.id);
        let WorkerRequirement { group, role, since, in_scratch } = &job.wanted;
        let place = QueuePlace { since: *since, arrival: self.arrivals };
        self.arrivals += 1;
        let need = (role.clone(), *in_scratch);
        self.groups.entry(group.clone()).or_default().entry(need).or_default().insert(place);
        self.streams.entry(job.stream.clone()).or_default().insert(job.effect.id.clone(), place);
        self.jobs.insert(place, job);
    }

    /// The queues of a group, each with the places in it, oldest first.
    pub(super) fn of_group(
        &self,
        group: &str,
    ) -> impl Iterator<Item = (WorkerNeed<'_>, impl Iterator<Item = QueuePlace>)> {
        let queues = self.groups.get(group).into_iter().flatten();
        queues
            .map(|((role, in_scratch), places)| (WorkerNeed { role, in_scratch: *in_scratch }, places.iter().copied()))
    }

    /// The effects of a stream that wait, each with what it asks of a worker.
    pub(super) fn of_stream(&self, stream: &StreamId) -> impl Iterator<Item = &QueuedEffect> {
        let places = self.streams.get(stream).into_iter().flatten();
        places.filter_map(|(_, place)| self.jobs.get(place))
    }

    pub(super) fn take(&mut self, place: QueuePlace) -> Option<QueuedEffect> {
        let job = self.jobs.remove(&place)?;
        let WorkerRequirement { group, role, in_scratch, .. } = &job.wanted;
        if let Some(queues) = self.groups.get_mut(group) {
            let need = (role.clone(), *in_scratch);
            queues.get_mut(&need).into_iter().for_each(|places| _ = places.remove(&place));
            if queues.get(&need).is_some_and(BTreeSet::is_empty) {
                queues.remove(&need);
            }
            if queues.is_empty() {
                self.groups.remove(group);
            }
        }
        if let Some(effects) = self.streams.get_mut(&job.stream) {
            effects.remove(&job.effect.id);
            if effects.is_empty() {
                self.streams.remove(&job.stream);
            }
        }
        Some(job)
    }

    pub(super) fn forget(&mut self, stream: &StreamId, effect: &str) {
        let place = self.streams.get(stream).and_then(|effects| effects.get(effect)).copied();
        place.into_iter().for_each(|place| drop(self.take(place)));
    }

    pub(super) fn forget_stream(&mut self, stream: &StreamId) {
        let effects = self.streams.remove(stream).unwrap_or_default();
        effects.into_values().for_each(|place| drop(self.take(place)));
    }

    /// Whether nothing waits, and nothing is left of what did.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.groups.is_empty() && self.streams.is_empty()
    }
}
