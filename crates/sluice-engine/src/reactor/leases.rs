//! Who holds what: effects handed to workers, leases stored before a worker hears of its work, and what follows when a
//! worker says something, leaves, or is silent for too long.

use std::collections::BTreeSet;

use sluice_core::machine::Moment;
use sluice_store::{Append, Effect, Event, Lease, StreamId};

use super::{Assignment, CommitRelease, EffectDispatch, EventRange, Reactor, ReactorAction, ReactorToken};
use crate::actor::ActorInput;
use crate::codec::outbox::{self, OutboxNote};
use crate::workers::{Dispatch, WorkerId, WorkerQueue};

/// Who was stopped for this part of a lease may have missed the signs that its worker gave.
const GOOD_PART: i64 = 3;
const SHORTEST_LEASE_MS: i64 = 1000;

impl Reactor {
    pub(super) fn hand_out(&mut self, now: Moment) {
        for (worker, job) in self.workers.hand_out() {
            let Some(slot) = self.slots.get_mut(&job.stream) else { continue };
            self.dispatches += 1;
            let dispatch = Dispatch(self.dispatches);
            self.workers.hold(&worker, (dispatch, job.stream.clone(), job.effect.id.clone()));
            let until = self.workers.lease_of(&worker).map(|lease| now.0.saturating_add(lease));
            let handed = EffectDispatch { dispatch, worker: Some(worker.clone()), until, effect: job.effect.clone() };
            slot.handed.insert(job.effect.id.clone(), handed);
            let (stream, id) = (job.stream.clone(), job.effect.id.clone());
            let assignment =
                Assignment { stream: job.stream, effect: job.effect, dispatch, worker: Some(worker.clone()) };
            match until {
                None => self.out.push(ReactorAction::Perform(assignment)),
                Some(until) => {
                    self.alarms.insert((until, stream.clone(), format!("/{id}")));
                    let holder = write_holder(&worker, dispatch, until - now.0, "");
                    let release = CommitRelease::Leased(Box::new(assignment));
                    self.store_lease(&stream, id, Lease { holder, until }, Some(release), now);
                }
            }
        }
    }

    /// A worker begins with what it holds. The name that it gives it stands in the lease.
    pub(super) fn begun(
        &mut self,
        token: Option<ReactorToken>,
        stream: &StreamId,
        id: String,
        name: String,
        now: Moment,
    ) {
        let Some(handed) = self.slots.get(stream).and_then(|slot| slot.handed.get(&id)) else { return };
        let (Some(worker), Some(until)) = (handed.lasting(), handed.until) else { return };
        let lasts = self.workers.lease_of(&worker).unwrap_or(until - now.0);
        let lease = Lease { holder: write_holder(&worker, handed.dispatch, lasts, &name), until };
        let version = self.slots.get(stream).map_or(0, |slot| slot.version);
        let recorded = EventRange { after: version, last: version + 1 };
        self.store_lease(stream, id, lease, token.map(|token| CommitRelease::Reply(token, recorded)), now);
    }

    /// A lease is stored before anybody hears of it.
    fn store_lease(
        &mut self,
        stream: &StreamId,
        id: String,
        lease: Lease,
        release: Option<CommitRelease>,
        now: Moment,
    ) {
        let Some(slot) = self.slots.get_mut(stream) else { return };
        let header = slot.actor.header(now);
        let note = OutboxNote::Leased { effect: id.clone(), worker: lease.holder.clone(), until: lease.until };
        let event = Event {
            kind: note.kind().into(),
            version: outbox::VERSION,
            time: now.0,
            actor: "engine".into(),
            correlation: stream.to_string(),
            caused_by: None,
            data: outbox::write(&note),
        };
        let mut append = Append::new(stream.clone(), slot.version, vec![event], header);
        append.leases = vec![(id, Some(lease))];
        slot.version += 1;
        slot.actor.noted(1);
        self.gathered.push((append, release.into_iter().collect()));
    }

    /// A worker may still be at an effect that was found in the store.
    pub(super) fn still_held(&mut self, stream: &StreamId, effect: Effect, lease: Lease, now: Moment) {
        let (worker, dispatch, lasts, name) = read_holder(&lease.holder);
        // Renewals are not stored, so the worker may have until a whole lease from now; never longer, whatever the clock of
        // an engine before this one said.
        let until = if lasts > 0 { now.0.saturating_add(lasts) } else { lease.until };
        self.workers.hold(&worker, (dispatch, stream.clone(), effect.id.clone()));
        self.alarms.insert((until, stream.clone(), format!("/{}", effect.id)));
        if let Some(slot) = self.slots.get_mut(stream) {
            let handed =
                EffectDispatch { dispatch, worker: Some(worker.clone()), until: Some(until), effect: effect.clone() };
            slot.line_up(&effect);
            slot.handed.insert(effect.id.clone(), handed);
            let assignment = Assignment { stream: stream.clone(), effect, dispatch, worker: Some(worker) };
            self.out.push(ReactorAction::Held(assignment, name));
        }
    }

    pub(super) fn renew(&mut self, worker: &WorkerId, at: &[Dispatch], now: Moment) {
        self.workers.heard(worker, now.0);
        let Some(lease) = self.workers.lease_of(worker) else { return };
        for (dispatch, stream, id) in self.workers.held_of(worker, at) {
            let handed = self.slots.get_mut(&stream).and_then(|slot| slot.handed.get_mut(&id));
            let Some(handed) = handed.filter(|handed| handed.dispatch == dispatch) else { continue };
            if let Some(until) = handed.until {
                let (later, alarm) = (now.0.saturating_add(lease), format!("/{id}"));
                handed.until = Some(later);
                self.alarms.remove(&(until, stream.clone(), alarm.clone()));
                self.alarms.insert((later, stream, alarm));
            }
        }
    }

    /// Whoever drives this was stopped for so long, and could hear nobody: a lease of which that is a good part is given a
    /// whole term from now on.
    pub fn slept(&mut self, for_ms: i64, now: Moment) {
        if for_ms < SHORTEST_LEASE_MS / GOOD_PART {
            return;
        }
        for (stream, slot) in &mut self.slots {
            for (id, handed) in &mut slot.handed {
                let lease = handed.worker.as_ref().and_then(|worker| self.workers.lease_of(worker));
                let (Some(until), Some(lease)) = (handed.until, lease) else { continue };
                let later = now.0.saturating_add(lease);
                if for_ms >= lease / GOOD_PART && later > until {
                    self.alarms.remove(&(until, stream.clone(), format!("/{id}")));
                    handed.until = Some(later);
                    self.alarms.insert((later, stream.clone(), format!("/{id}")));
                }
            }
        }
    }

    pub(super) fn left(&mut self, worker: &WorkerId, now: Moment) {
        self.workers.leave(worker);
        for (dispatch, stream, effect) in self.workers.all_held(worker) {
            if self.is_held(&stream, &effect, dispatch) {
                self.lose(&stream, &effect, now);
            }
        }
    }

    /// The worker that held an effect is given up.
    pub(super) fn lose(&mut self, stream: &StreamId, effect: &str, now: Moment) {
        let Some(handed) = self.slots.get_mut(stream).and_then(|slot| slot.handed.remove(effect)) else { return };
        release_hold(&mut self.workers, &mut self.alarms, stream, effect, &handed);
        let dispatch = handed.dispatch;
        self.out.extend(handed.lasting().map(|worker| ReactorAction::Withdrawn { worker, dispatch, is_lost: true }));
        match handed.worker {
            Some(_) => self.say(None, stream.clone(), ActorInput::Lost { effect: effect.to_owned() }, now),
            None => self.give(stream, handed.effect),
        }
    }
}

/// Who holds a lease, which handing-out it is for, how long it lasts, and what the worker calls it once it has begun:
/// after a restart the answer to that one must still be taken, and the worker be given its time. No worker has a `#` in
/// its name.
fn write_holder(worker: &WorkerId, dispatch: Dispatch, lasts: i64, name: &str) -> String {
    let name = if name.is_empty() { String::new() } else { format!("#{name}") };
    format!("{dispatch}#{lasts}#{}{name}", worker.0)
}

fn read_holder(holder: &str) -> (WorkerId, Dispatch, i64, Option<String>) {
    let mut parts = holder.splitn(4, '#');
    let (dispatch, lasts) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let worker = parts.next().unwrap_or(holder).to_owned();
    (
        WorkerId(worker),
        Dispatch(dispatch.parse().unwrap_or(0)),
        lasts.parse().unwrap_or(0),
        parts.next().map(str::to_owned),
    )
}

pub(super) fn release_hold(
    workers: &mut WorkerQueue,
    alarms: &mut BTreeSet<(i64, StreamId, String)>,
    stream: &StreamId,
    id: &str,
    handed: &EffectDispatch,
) {
    if let Some(worker) = &handed.worker {
        workers.free(worker, &(handed.dispatch, stream.clone(), id.to_owned()));
    }
    if let Some(until) = handed.until {
        alarms.remove(&(until, stream.clone(), format!("/{id}")));
    }
}
