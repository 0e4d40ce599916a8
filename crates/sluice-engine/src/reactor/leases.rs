//! Who holds what: effects handed to workers, leases stored before a worker hears of its work, and what follows when a
//! worker says something, leaves, or is silent for too long.

use std::collections::BTreeSet;
use std::time::Duration;

use sluice_core::machine::Moment;
use sluice_store::{Append, Effect, Event, Lease, StreamId};

use super::{CommitRelease, EffectDispatch, EventRange, Reactor, ReactorAction, ReactorToken};
use crate::actor::{ActorInput, TimeLimit};
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
            let (stream, id) = (job.stream, job.effect.id.clone());
            let handed = EffectDispatch::new(dispatch, Some(worker.clone()), until, job.effect);
            let assignment = handed.assignment(stream.clone());
            slot.handed.insert(id.clone(), handed);
            match until {
                None => {
                    self.counts_on(&stream, &id);
                    self.out.push(ReactorAction::Perform(assignment));
                }
                Some(until) => {
                    self.alarms.insert((until, stream.clone(), format!("/{id}")));
                    let timer = self.counts_from_now(&stream, &id, now);
                    let holder = write_holder(&worker, dispatch, until - now.0, "");
                    let release = CommitRelease::Leased(Box::new(assignment));
                    self.store_lease(&stream, id, Lease { holder, until }, timer, Some(release), now);
                }
            }
        }
    }

    /// Whether a timer is the time limit of an attempt that no worker has been given yet, and counts from when one is.
    pub(super) fn waits_for_a_worker(&self, stream: &StreamId, timer: &str, due: i64) -> bool {
        let Some(slot) = self.slots.get(stream) else { return false };
        let is_limit =
            |effect: &str| slot.actor.limit(effect).is_some_and(|limit| limit.timer == timer && limit.first_due == due);
        // It is offered to the workers when it is stored, and the store may be out of reach for longer than the limit.
        let is_offered_later = |effect: &Effect| is_limit(&effect.id) && slot.actor.wants(effect).is_some();
        let waits = self.workers.waiting_for_others(stream).any(is_limit)
            || self.effects_on_their_way(stream).any(is_offered_later);
        waits && !slot.handed.keys().any(|effect| is_limit(effect))
    }

    /// An effect is given to a worker elsewhere. If it is the first of its attempt, the time limit counts from now: the timer
    /// to be stored.
    fn counts_from_now(&mut self, stream: &StreamId, effect: &str, now: Moment) -> Option<(String, i64)> {
        let slot = self.slots.get_mut(stream)?;
        let TimeLimit { timer, first_due, lasts } = slot.actor.limit(effect)?;
        if slot.timers.get(&timer) != Some(&first_due) {
            return None;
        }
        // Never the same as before: by that it is known that a worker has had a part of the attempt.
        let due = now.0.saturating_add(lasts).max(first_due + 1);
        slot.timers.insert(timer.clone(), due);
        self.alarms.remove(&(first_due, stream.clone(), timer.clone()));
        self.alarms.insert((due, stream.clone(), timer.clone()));
        Some((timer, due))
    }

    /// The engine's own hands have an effect: its time limit counts as it was set, even if it was due while the hands were
    /// not there yet.
    fn counts_on(&mut self, stream: &StreamId, effect: &str) {
        let Some(slot) = self.slots.get(stream) else { return };
        let Some(TimeLimit { timer, first_due, .. }) = slot.actor.limit(effect) else { return };
        if slot.timers.get(&timer) == Some(&first_due) {
            self.alarms.insert((first_due, stream.clone(), timer));
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
        self.store_lease(stream, id, lease, None, token.map(|token| CommitRelease::Reply(token, recorded)), now);
    }

    /// A lease is stored before anybody hears of it.
    fn store_lease(
        &mut self,
        stream: &StreamId,
        id: String,
        lease: Lease,
        timer: Option<(String, i64)>,
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
        append.timers = timer.into_iter().map(|(timer, due)| (timer, Some(due))).collect();
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
            slot.line_up(&effect);
            let handed = EffectDispatch::new(dispatch, Some(worker), Some(until), effect);
            self.out.push(ReactorAction::Held(handed.assignment(stream.clone()), name));
            slot.handed.insert(handed.effect.id.clone(), handed);
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

    /// When the driver of this looks at the clock again at the latest: at the next alarm, and while a worker holds something,
    /// after a good part of a lease. A driver that was stopped knows for how long only by what it had planned: one that plans
    /// for the end of a lease takes a stop of that length for a wait.
    pub fn next_look(&self, now: Moment, longest: Duration) -> Option<Moment> {
        let longest = i64::try_from(longest.as_millis()).unwrap_or(i64::MAX);
        let lease = self.workers.shortest_lease_held().map(|lease| lease / GOOD_PART);
        let latest = now.0.saturating_add(lease.unwrap_or(longest).min(longest));
        self.next_alarm().map(|alarm| Moment(alarm.0.min(latest)))
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
