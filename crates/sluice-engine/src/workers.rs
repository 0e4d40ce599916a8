//! Who performs effects, what each of them holds, and until when that is believed.
//!
//! A lasting worker (another process, perhaps on another machine) holds a lease that is stored before it is told what
//! to do: after a restart nobody else is given the same work while the lease runs. The engine's own hands end with the
//! engine, so they need none.

use std::collections::{BTreeMap, VecDeque};

use sluice_store::{Effect, StreamId};

use crate::actor::WorkerRequirement;
use crate::scheduler::{FreeWorker, assign};

/// A worker, by the name it gave.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkerId(pub String);

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

#[derive(Clone, Debug)]
pub(crate) struct QueuedEffect {
    pub(crate) stream: StreamId,
    pub(crate) effect: Effect,
    pub(crate) wanted: WorkerRequirement,
}

#[derive(Debug)]
struct WorkerEntry {
    offer: WorkerOffer,
    /// When it last gave a sign of life.
    heard: i64,
}

#[derive(Debug, Default)]
pub(crate) struct WorkerQueue {
    workers: BTreeMap<WorkerId, WorkerEntry>,
    /// How much each of them holds, whether it is there or not: one that comes back still has its work.
    held: BTreeMap<WorkerId, usize>,
    waiting: VecDeque<QueuedEffect>,
}

impl WorkerQueue {
    pub(crate) fn join(&mut self, offer: WorkerOffer, now: i64) {
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
            self.workers.remove(id);
        }
    }

    pub(crate) fn leave(&mut self, id: &WorkerId) {
        self.workers.remove(id);
    }

    pub(crate) fn lease_of(&self, id: &WorkerId) -> Option<i64> {
        self.workers.get(id).and_then(|worker| worker.offer.lease)
    }

    pub(crate) fn wait(&mut self, job: QueuedEffect) {
        self.waiting.push_back(job);
    }

    /// What waits no longer because it has been settled.
    pub(crate) fn forget(&mut self, stream: &StreamId, effect: &str) {
        if !self.waiting.is_empty() {
            self.waiting.retain(|job| job.stream != *stream || job.effect.id != effect);
        }
    }

    /// Nothing of this stream waits any longer: it will be taken up anew.
    pub(crate) fn forget_stream(&mut self, stream: &StreamId) {
        if !self.waiting.is_empty() {
            self.waiting.retain(|job| job.stream != *stream);
        }
    }

    pub(crate) fn hold(&mut self, id: &WorkerId) {
        *self.held.entry(id.clone()).or_default() += 1;
    }

    pub(crate) fn free(&mut self, id: &WorkerId) {
        if let Some(held) = self.held.get_mut(id) {
            *held = held.saturating_sub(1);
            if *held == 0 {
                self.held.remove(id);
            }
        }
    }

    pub(crate) fn hand_out(&mut self) -> Vec<(WorkerId, QueuedEffect)> {
        let held = |worker: &WorkerEntry| self.held.get(&worker.offer.id).copied().unwrap_or(0);
        let room = |worker: &WorkerEntry| worker.offer.capacity.saturating_sub(held(worker));
        if self.waiting.is_empty() || self.workers.values().all(|worker| room(worker) == 0) {
            return Vec::new();
        }
        let ids: Vec<&WorkerId> = self.workers.keys().collect();
        let free: Vec<FreeWorker<'_>> = self
            .workers
            .values()
            .map(|it| FreeWorker {
                role: &it.offer.role,
                group: &it.offer.group,
                knows_scratch: it.offer.knows_scratch,
                room: room(it),
            })
            .collect();
        let places = assign(self.waiting.iter().map(|job| &job.wanted), &free).into_iter();
        let given: Vec<Option<WorkerId>> = places.map(|place| place.map(|index| ids[index].clone())).collect();
        let mut handed = Vec::new();
        let mut kept = VecDeque::new();
        for (job, worker) in self.waiting.drain(..).zip(given) {
            match worker {
                Some(worker) => handed.push((worker, job)),
                None => kept.push_back(job),
            }
        }
        self.waiting = kept;
        handed.iter().for_each(|(id, _)| self.hold(id));
        handed
    }
}
