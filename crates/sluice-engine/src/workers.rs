//! Who performs effects, what each of them holds, and until when that is believed.
//!
//! A lasting worker (another process, perhaps on another machine) holds a lease that is stored before it is told what
//! to do: after a restart nobody else is given the same work while the lease runs. The engine's own hands end with the
//! engine, so they need none.

mod waiting;

use std::collections::{BTreeMap, BTreeSet};

pub use sluice_core::id::{Dispatch, WorkerId};
use sluice_store::StreamId;

use crate::scheduler::{FreeWorker, assign};
pub(crate) use waiting::QueuedEffect;
use waiting::WaitingEffects;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerOffer {
    pub id: WorkerId,
    /// What it is; `any` does anything.
    pub role: String,
    pub group: String,
    /// Whether it knows of scratch folders; a worker of an earlier version does not.
    pub knows_scratch: bool,
    pub capacity: usize,
    /// Whether it outlives the engine; then its leases are stored, and last this long in milliseconds.
    pub lease: Option<i64>,
}

#[derive(Debug)]
struct WorkerEntry {
    offer: WorkerOffer,
    /// When it last gave a sign of life.
    heard: i64,
}

/// Something that a worker holds: the number of the handing-out, the stream, and the effect's id.
pub(crate) type HeldEffect = (Dispatch, StreamId, String);

/// The workers, what each holds, and what waits for one. What is done here costs what it touches: a worker, its group, a
/// stream. How much waits for others does not matter.
#[derive(Debug, Default)]
pub(crate) struct WorkerQueue {
    workers: BTreeMap<WorkerId, WorkerEntry>,
    /// The workers of each group.
    members: BTreeMap<String, BTreeSet<WorkerId>>,
    /// What each of them holds, whether it is there or not: one that comes back still has its work.
    held: BTreeMap<WorkerId, BTreeSet<HeldEffect>>,
    waiting: WaitingEffects,
    /// The groups to which work, a worker or room has come since something was last handed out. In the others nothing fits.
    stirred: BTreeSet<String>,
    /// Of all that were offered.
    shortest_lease: Option<i64>,
}

impl WorkerQueue {
    pub(crate) fn join(&mut self, offer: WorkerOffer, now: i64) {
        self.shortest_lease = [self.shortest_lease, offer.lease].into_iter().flatten().min();
        self.leave(&offer.id);
        self.stirred.insert(offer.group.clone());
        self.members.entry(offer.group.clone()).or_default().insert(offer.id.clone());
        self.workers.insert(offer.id.clone(), WorkerEntry { offer, heard: now });
    }

    pub(crate) fn heard(&mut self, id: &WorkerId, now: i64) {
        if let Some(worker) = self.workers.get_mut(id) {
            worker.heard = now;
        }
    }

    /// A lease of this worker ran out. If it has been silent for as long, it is not there: it gets nothing until it
    /// comes again. If not, it was only not at that piece of work.
    pub(crate) fn ran_out(&mut self, id: &WorkerId, now: i64) {
        let silent = |worker: &WorkerEntry| now - worker.heard >= worker.offer.lease.unwrap_or(0);
        if self.workers.get(id).is_some_and(silent) {
            self.leave(id);
        }
    }

    pub(crate) fn leave(&mut self, id: &WorkerId) {
        let Some(WorkerEntry { offer, .. }) = self.workers.remove(id) else { return };
        if let Some(members) = self.members.get_mut(&offer.group) {
            members.remove(id);
            if members.is_empty() {
                self.members.remove(&offer.group);
            }
        }
    }

    pub(crate) fn lease_of(&self, id: &WorkerId) -> Option<i64> {
        self.workers.get(id).and_then(|worker| worker.offer.lease)
    }

    /// The shortest lease that any worker was ever given, while something is held.
    pub(crate) fn shortest_lease_held(&self) -> Option<i64> {
        self.shortest_lease.filter(|_| !self.held.is_empty())
    }

    pub(crate) fn wait(&mut self, job: QueuedEffect) {
        if !self.stirred.contains(&job.wanted.group) {
            self.stirred.insert(job.wanted.group.clone());
        }
        self.waiting.add(job);
    }

    /// What of a stream waits for a worker that holds its work under a lease: the engine's own hands have none.
    pub(crate) fn waiting_for_others(&self, stream: &StreamId) -> impl Iterator<Item = &str> {
        let has_own_hands = |group: &str| {
            let members = self.members.get(group).into_iter().flatten();
            members.filter_map(|id| self.workers.get(id)).any(|worker| worker.offer.lease.is_none())
        };
        let others = self.waiting.of_stream(stream).filter(move |job| !has_own_hands(&job.wanted.group));
        others.map(|job| job.effect.id.as_str())
    }

    /// What waits no longer because it has been settled.
    pub(crate) fn forget(&mut self, stream: &StreamId, effect: &str) {
        self.waiting.forget(stream, effect);
    }

    /// Nothing of this stream waits any longer: it will be taken up anew.
    pub(crate) fn forget_stream(&mut self, stream: &StreamId) {
        self.waiting.forget_stream(stream);
    }

    pub(crate) fn hold(&mut self, id: &WorkerId, what: HeldEffect) {
        self.held.entry(id.clone()).or_default().insert(what);
    }

    pub(crate) fn free(&mut self, id: &WorkerId, what: &HeldEffect) {
        let Some(held) = self.held.get_mut(id) else { return };
        held.remove(what);
        if held.is_empty() {
            self.held.remove(id);
        }
        self.stirred.extend(self.workers.get(id).map(|worker| worker.offer.group.clone()));
    }

    /// What a worker holds of these handings-out.
    pub(crate) fn held_of(&self, id: &WorkerId, dispatches: &[Dispatch]) -> Vec<HeldEffect> {
        let Some(held) = self.held.get(id) else { return Vec::new() };
        let of = |dispatch: Dispatch| {
            let first: HeldEffect = (dispatch, StreamId::new(""), String::new());
            held.range(first..).take_while(move |(of, _, _)| *of == dispatch).cloned()
        };
        dispatches.iter().flat_map(|dispatch| of(*dispatch)).collect()
    }

    /// All that a worker holds.
    pub(crate) fn all_held(&self, id: &WorkerId) -> Vec<HeldEffect> {
        self.held.get(id).into_iter().flatten().cloned().collect()
    }

    /// Who gets what of that which waits, oldest first. The caller notes that each worker holds it now ([`WorkerQueue::hold`]).
    pub(crate) fn hand_out(&mut self) -> Vec<(WorkerId, QueuedEffect)> {
        let mut handed = BTreeMap::new();
        for group in std::mem::take(&mut self.stirred) {
            let room = |id: &WorkerId, worker: &WorkerEntry| {
                worker.offer.capacity.saturating_sub(self.held.get(id).map_or(0, BTreeSet::len))
            };
            let members = self.members.get(&group).into_iter().flatten();
            let (ids, mut free): (Vec<WorkerId>, Vec<FreeWorker<'_>>) = members
                .filter_map(|id| self.workers.get_key_value(id))
                .map(|(id, it)| {
                    (id, FreeWorker { role: &it.offer.role, knows_scratch: it.offer.knows_scratch, room: room(id, it) })
                })
                .filter(|(_, worker)| worker.room > 0)
                .map(|(id, worker)| (id.clone(), worker))
                .unzip();
            let given = assign(self.waiting.of_group(&group), &mut free);
            for (place, worker) in given {
                let job = self.waiting.take(place);
                handed.extend(job.map(|job| (place, (ids[worker].clone(), job))));
            }
        }
        handed.into_values().collect()
    }
}

#[cfg(test)]
mod tests;
