//! What waits for a worker, in queues by group and role. It knows no worker and gives nothing out by itself.

use std::collections::{BTreeMap, BTreeSet};

use sluice_store::{Effect, StreamId};

use crate::actor::WorkerRequirement;

#[derive(Clone, Debug)]
pub(crate) struct QueuedEffect {
    pub(crate) stream: StreamId,
    pub(crate) effect: Effect,
    pub(crate) wanted: WorkerRequirement,
}

/// The queues of one group: by role, the numbers of what waits.
type RoleQueues = BTreeMap<String, BTreeSet<u64>>;

#[derive(Debug, Default)]
pub(super) struct WaitingEffects {
    /// The number that comes next: what has a smaller one is older.
    next: u64,
    jobs: BTreeMap<u64, QueuedEffect>,
    groups: BTreeMap<String, RoleQueues>,
    /// The numbers of each stream, by effect.
    streams: BTreeMap<StreamId, BTreeMap<String, u64>>,
}

impl WaitingEffects {
    /// Puts an effect behind all others. One that waits already is not handed out twice.
    pub(super) fn add(&mut self, job: QueuedEffect) {
        self.forget(&job.stream, &job.effect.id);
        let number = self.next;
        self.next += 1;
        let WorkerRequirement { group, role } = &job.wanted;
        self.groups.entry(group.clone()).or_default().entry(role.clone()).or_default().insert(number);
        self.streams.entry(job.stream.clone()).or_default().insert(job.effect.id.clone(), number);
        self.jobs.insert(number, job);
    }

    /// The queues of a group: each role with its numbers, oldest first.
    pub(super) fn of_group(&self, group: &str) -> impl Iterator<Item = (&str, impl Iterator<Item = u64>)> {
        let roles = self.groups.get(group).into_iter().flatten();
        roles.map(|(role, numbers)| (role.as_str(), numbers.iter().copied()))
    }

    pub(super) fn take(&mut self, number: u64) -> Option<QueuedEffect> {
        let job = self.jobs.remove(&number)?;
        let WorkerRequirement { group, role } = &job.wanted;
        if let Some(roles) = self.groups.get_mut(group) {
            roles.get_mut(role).into_iter().for_each(|numbers| _ = numbers.remove(&number));
            if roles.get(role).is_some_and(BTreeSet::is_empty) {
                roles.remove(role);
            }
            if roles.is_empty() {
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
        let number = self.streams.get(stream).and_then(|effects| effects.get(effect)).copied();
        number.into_iter().for_each(|number| drop(self.take(number)));
    }

    pub(super) fn forget_stream(&mut self, stream: &StreamId) {
        let effects = self.streams.remove(stream).unwrap_or_default();
        effects.into_values().for_each(|number| drop(self.take(number)));
    }

    /// Whether nothing waits, and nothing is left of what did.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.groups.is_empty() && self.streams.is_empty()
    }
}
