//! The loop as a machine: messages in, actions out, nothing else.
//!
//! It holds the tasks and runs that are going on, gathers what they decide into batches, and lets nobody hear of a
//! decision before it is durable: replies and effects are released when the store has answered. It has no clock, no
//! thread and no channel; whoever drives it brings those ([`crate::host`]), or simulates them.

mod leases;
mod message;
mod release;
#[cfg(test)]
mod tests;
mod withdraw;

pub use message::{
    Assignment, EventRange, LoadedStream, ReactorAction, ReactorAnswer, ReactorMessage, ReactorToken, Withdrawal,
};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use sluice_core::machine::{Moment, Refusal, RefusalCode};
use sluice_store::{Append, Effect, OpenEffect, StreamId};

use crate::actor::{Actor, ActorChange, ActorInput};
use crate::workers::{Dispatch, QueuedEffect, WorkerId, WorkerQueue};
use leases::release_hold;
use release::CommitRelease;

struct ActorSlot {
    actor: Box<dyn Actor>,
    version: u64,
    /// How much of that is stored.
    stored: u64,
    /// What has been handed out: which handing-out, to whom, until when.
    handed: BTreeMap<String, EffectDispatch>,
    timers: BTreeMap<String, i64>,
    /// Of an actor that wants its effects in order: those that are not settled in the store. Only the first is offered.
    line: VecDeque<Effect>,
}

impl ActorSlot {
    fn new(actor: Box<dyn Actor>, version: u64) -> Self {
        ActorSlot {
            actor,
            version,
            stored: version,
            handed: BTreeMap::new(),
            timers: BTreeMap::new(),
            line: VecDeque::new(),
        }
    }

    /// Puts an effect at the end of the line, if there is one. Whether it is its turn.
    fn line_up(&mut self, effect: &Effect) -> bool {
        if self.actor.in_order().is_none() {
            return true;
        }
        self.line.push_back(effect.clone());
        self.line.len() == 1
    }

    /// These have left the line. The effect whose turn it is now, if it was not before.
    fn advance(&mut self, settled: &[String]) -> Option<Effect> {
        let before = self.line.front().map(|first| first.id.clone());
        self.line.retain(|effect| !settled.contains(&effect.id));
        self.line.front().filter(|first| Some(&first.id) != before.as_ref()).cloned()
    }
}

#[derive(Clone)]
struct EffectDispatch {
    dispatch: Dispatch,
    worker: Option<WorkerId>,
    until: Option<i64>,
    effect: Effect,
    withdrawal: Withdrawal,
}

impl EffectDispatch {
    fn new(dispatch: Dispatch, worker: Option<WorkerId>, until: Option<i64>, effect: Effect) -> EffectDispatch {
        EffectDispatch { dispatch, worker, until, effect, withdrawal: Withdrawal::default() }
    }

    fn assignment(&self, stream: StreamId) -> Assignment {
        let EffectDispatch { dispatch, worker, until: _, effect, withdrawal } = self.clone();
        Assignment { stream, effect, dispatch, worker, withdrawal }
    }

    /// The worker that must be told when this is not its any more: one that outlives the engine.
    fn lasting(&self) -> Option<WorkerId> {
        self.until.and(self.worker.clone())
    }
}

/// Who caused an event, where it was a person, and where it was the engine.
const PERSON: &str = "person";
const ENGINE: &str = "engine";
/// So many names are remembered of those who have not been answered.
const MOST_NAMES: usize = 10_000;

#[derive(Default)]
pub struct Reactor {
    slots: BTreeMap<StreamId, ActorSlot>,
    waiting: BTreeMap<StreamId, Vec<(Option<ReactorToken>, ActorInput)>>,
    /// Streams that stopped, and why. They are looked at again when a caller says something to them.
    faults: BTreeMap<StreamId, String>,
    /// Streams that were read before what was on its way had been stored, and must be read again.
    too_early: BTreeSet<StreamId>,
    gathered: Vec<(Append, Vec<CommitRelease>)>,
    in_flight: Option<Vec<(StreamId, Vec<CommitRelease>)>>,
    /// When to wake whom: timers of streams, and leases (whose key is the effect's id behind a slash).
    alarms: BTreeSet<(i64, StreamId, String)>,
    workers: WorkerQueue,
    dispatches: u64,
    /// Streams of which something has been stored.
    changed: Vec<StreamId>,
    /// What persons are called who ask, by what they ask with.
    names: BTreeMap<ReactorToken, String>,
    out: Vec<ReactorAction>,
}

impl Reactor {
    /// An empty loop of the owner with this epoch. Handings-out are numbered within it, so that an answer to one of an
    /// earlier owner can never be taken for an answer to one of this.
    pub fn new(epoch: u64) -> Self {
        Reactor { dispatches: epoch << 32, ..Self::default() }
    }

    pub fn receive(&mut self, message: ReactorMessage, now: Moment) {
        match message {
            ReactorMessage::Create { token, stream, .. } if self.slots.contains_key(&stream) => {
                self.answer(&stream, token, ReactorAnswer::Conflict);
            }
            ReactorMessage::Create { token, stream, actor, change, blobs } => {
                self.slots.insert(stream.clone(), ActorSlot::new(actor, 0));
                self.gather(&stream, change, token, blobs);
            }
            ReactorMessage::Named { token, name } => {
                self.names.insert(token, name);
                // Of those that were refused no answer takes the name.
                while self.names.len() > MOST_NAMES {
                    self.names.pop_first();
                }
            }
            ReactorMessage::Say { token, stream, said } => self.say(token, stream, said, now),
            ReactorMessage::Loaded { stream, found } => self.loaded(stream, found, now),
            ReactorMessage::Unreadable { stream, why } => self.fault(&stream, why, Vec::new()),
            ReactorMessage::Open(streams) => streams.into_iter().for_each(|stream| self.take_up(stream)),
            ReactorMessage::Committed(results) => self.committed(results),
            ReactorMessage::Ended { token, stream, effect, dispatch, outcome } => {
                if self.is_held(&stream, &effect, dispatch) {
                    self.say(token, stream, ActorInput::Outcome { effect, outcome }, now);
                } else {
                    self.answer(&stream, token, ReactorAnswer::Refused(too_late()));
                }
            }
            ReactorMessage::Begun { token, stream, effect, dispatch, name } => {
                if self.is_held(&stream, &effect, dispatch) {
                    self.begun(token, &stream, effect, name, now);
                } else {
                    self.answer(&stream, token, ReactorAnswer::Refused(too_late()));
                }
            }
            ReactorMessage::Joined(offer) => self.workers.join(offer, now.0),
            ReactorMessage::Heard { worker, at } => self.renew(&worker, &at, now),
            ReactorMessage::Nothing => {}
            ReactorMessage::Left(worker) => self.left(&worker, now),
        }
    }

    /// The actions that follow from what was received. Called when no more messages wait, so that what they lead to
    /// is stored together.
    pub fn act(&mut self, now: Moment) -> Vec<ReactorAction> {
        self.hand_out(now);
        if self.in_flight.is_none() && !self.gathered.is_empty() {
            let (appends, releases): (Vec<Append>, Vec<_>) = std::mem::take(&mut self.gathered).into_iter().unzip();
            let streams = appends.iter().map(|append| append.stream.clone());
            self.in_flight = Some(streams.zip(releases).collect());
            self.out.push(ReactorAction::Commit(appends));
        }
        // A caller that hears an answer may count on it that what follows has been handed out.
        self.out.sort_by_key(|action| {
            !matches!(action, ReactorAction::Perform(_) | ReactorAction::Held(..) | ReactorAction::Withdrawn { .. })
        });
        std::mem::take(&mut self.out)
    }

    /// When it must be woken, if nothing comes before.
    pub fn next_alarm(&self) -> Option<Moment> {
        self.alarms.first().map(|(at, _, _)| Moment(*at))
    }

    pub fn wake(&mut self, now: Moment) {
        while let Some((at, stream, key)) = self.alarms.first().cloned().filter(|(at, _, _)| *at <= now.0) {
            self.alarms.remove(&(at, stream.clone(), key.clone()));
            match key.strip_prefix('/') {
                Some(effect) => {
                    let holder = self.slots.get(&stream).and_then(|slot| slot.handed.get(effect)?.worker.clone());
                    holder.iter().for_each(|worker| self.workers.ran_out(worker, now.0));
                    self.lose(&stream, effect, now);
                }
                // It stays set, and is set anew when a worker has the work.
                None if self.waits_for_a_worker(&stream, &key, at) => {}
                None => {
                    if let Some(slot) = self.slots.get_mut(&stream) {
                        slot.timers.remove(&key);
                    }
                    self.say(None, stream, ActorInput::Timer(key), now);
                }
            }
        }
    }

    /// Whether nothing is on its way to the store.
    pub fn is_settled(&self) -> bool {
        self.in_flight.is_none() && self.gathered.is_empty()
    }

    pub fn is_loading(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many tasks and runs are held in memory.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The streams of which something has been stored since this was last asked.
    pub fn take_changed(&mut self) -> Vec<StreamId> {
        std::mem::take(&mut self.changed)
    }

    pub fn faults(&self) -> &BTreeMap<StreamId, String> {
        &self.faults
    }

    fn say(&mut self, token: Option<ReactorToken>, stream: StreamId, said: ActorInput, now: Moment) {
        let Some(slot) = self.slots.get_mut(&stream) else {
            self.load(&stream).push((token, said));
            return;
        };
        let (version, body) = (slot.version, said.body());
        // A machine that panics has a fault that is ours. What it knew may be half changed, so it is dropped; the others
        // go on, and what is stored of it is whole.
        let answer = match catch_unwind(AssertUnwindSafe(|| slot.actor.take(said, now))) {
            Ok(Ok(Some(change))) => return self.gather(&stream, change, token, body.into_iter().collect()),
            Ok(Ok(None)) => ReactorAnswer::Done(EventRange { after: version, last: version }),
            Ok(Err(refusal)) => ReactorAnswer::Refused(refusal),
            Err(panic) => return self.fault(&stream, words(panic.as_ref()), token.into_iter().collect()),
        };
        self.answer(&stream, token, answer);
    }

    /// Asks for a stream, unless that has been done; gives where to put what it is to be told.
    fn load(&mut self, stream: &StreamId) -> &mut Vec<(Option<ReactorToken>, ActorInput)> {
        if !self.waiting.contains_key(stream) {
            self.out.push(ReactorAction::Load(stream.clone()));
        }
        self.waiting.entry(stream.clone()).or_default()
    }

    /// A stream is open in the store: it belongs into memory.
    fn take_up(&mut self, stream: StreamId) {
        if !self.slots.contains_key(&stream) && !self.faults.contains_key(&stream) {
            self.load(&stream);
        }
    }

    /// A stream stops. The callers that wait for it are told why.
    fn fault(&mut self, stream: &StreamId, why: String, mut tokens: Vec<ReactorToken>) {
        tokens.extend(self.waiting.remove(stream).unwrap_or_default().into_iter().filter_map(|(token, _)| token));
        self.out.extend(tokens.into_iter().map(|token| ReactorAction::Reply(token, ReactorAnswer::Fault(why.clone()))));
        self.drop_slot(stream);
        self.faults.insert(stream.clone(), why);
    }

    /// Puts a change into the next batch.
    fn gather(
        &mut self,
        stream: &StreamId,
        mut change: ActorChange,
        token: Option<ReactorToken>,
        blobs: Vec<(sluice_store::Digest, Vec<u8>)>,
    ) {
        let Some(slot) = self.slots.get_mut(stream) else { return };
        let expected = slot.version;
        if let Some(name) = token.and_then(|token| self.names.remove(&token)) {
            // What begins is begun by the caller that asked for it.
            let is_theirs = |actor: &str| actor == PERSON || (expected == 0 && actor == ENGINE);
            let own = change.events.iter_mut().filter(|event| is_theirs(&event.actor));
            own.for_each(|event| event.actor = format!("{PERSON}:{name}"));
        }
        slot.version += change.events.len() as u64;
        for (key, due) in &change.timers {
            if let Some(old) = slot.timers.remove(key) {
                self.alarms.remove(&(old, stream.clone(), key.clone()));
            }
            if let Some(due) = due {
                slot.timers.insert(key.clone(), *due);
                self.alarms.insert((*due, stream.clone(), key.clone()));
            }
        }
        let mut withdrawn = Vec::new();
        for id in &change.settled {
            if let Some(handed) = slot.handed.remove(id) {
                handed.withdrawal.withdraw();
                release_hold(&mut self.workers, &mut self.alarms, stream, id, &handed);
                withdrawn.extend(handed.lasting().map(|worker| CommitRelease::Withdrawn(worker, handed.dispatch)));
            }
            self.workers.forget(stream, id);
        }
        let recorded = EventRange { after: expected, last: slot.version };
        let mut releases: Vec<CommitRelease> =
            token.map(|token| CommitRelease::Reply(token, recorded)).into_iter().collect();
        releases.append(&mut withdrawn);
        if !change.settled.is_empty() && slot.actor.in_order().is_some() {
            releases.push(CommitRelease::Settled(stream.clone(), change.settled.clone()));
        }
        if !change.effects.is_empty() {
            releases.push(CommitRelease::Effects(stream.clone(), change.effects.clone()));
        }
        if slot.actor.is_over() {
            releases.push(CommitRelease::Over(stream.clone()));
        }
        let mut append = Append::new(stream.clone(), expected, change.events, change.header);
        append.rows = change.rows;
        append.effects = change.effects;
        append.settled = change.settled;
        append.timers = change.timers;
        append.blobs = blobs;
        self.gathered.push((append, releases));
    }

    fn drop_slot(&mut self, stream: &StreamId) {
        let Some(slot) = self.slots.remove(stream) else { return };
        self.workers.forget_stream(stream);
        for (key, due) in slot.timers {
            self.alarms.remove(&(due, stream.clone(), key));
        }
        for (id, handed) in &slot.handed {
            release_hold(&mut self.workers, &mut self.alarms, stream, id, handed);
        }
    }

    fn loaded(&mut self, stream: StreamId, found: Option<LoadedStream>, now: Moment) {
        if self.is_on_its_way(&stream) {
            self.too_early.insert(stream);
            return;
        }
        let said = self.waiting.remove(&stream).unwrap_or_default();
        self.faults.remove(&stream);
        match found {
            None => {
                let tokens = said.into_iter().filter_map(|(token, _)| token);
                self.out.extend(tokens.map(|token| ReactorAction::Reply(token, ReactorAnswer::NotFound)));
            }
            Some(found) => {
                let version = found.version;
                if !self.slots.contains_key(&stream) {
                    let stranded = found.actor.stranded();
                    self.adopt(&stream, found, now);
                    stranded.into_iter().for_each(|said| self.say(None, stream.clone(), said, now));
                }
                said.into_iter().for_each(|(token, said)| self.say(token, stream.clone(), said, now));
                let unchanged = |slot: &ActorSlot| slot.version == version && slot.actor.is_over();
                if self.slots.get(&stream).is_some_and(unchanged) {
                    self.drop_slot(&stream); // it had ended, and still has
                }
            }
        }
    }

    fn adopt(&mut self, stream: &StreamId, found: LoadedStream, now: Moment) {
        let LoadedStream { actor, version, mut effects, timers } = found;
        if let Some(order) = actor.in_order() {
            effects.sort_by_key(|open| order.iter().position(|id| *id == open.effect.id));
        }
        let mut slot = ActorSlot::new(actor, version);
        // One that was set under a clock that was ahead is not waited for until that day.
        let soonest = |actor: &dyn Actor, key: &str, due: i64| match actor.longest(key) {
            Some(longest) => due.min(now.after(longest).0),
            None => due,
        };
        slot.timers = timers.into_iter().map(|(key, due)| (key.clone(), soonest(&*slot.actor, &key, due))).collect();
        self.alarms.extend(slot.timers.iter().map(|(key, due)| (*due, stream.clone(), key.clone())));
        self.slots.insert(stream.clone(), slot);
        for OpenEffect { effect, lease } in effects {
            match lease {
                // The worker may still be at it: it keeps the work for as long as a lease lasts from now on.
                Some(lease) => self.still_held(stream, effect, lease, now),
                None => self.offer(stream, effect),
            }
        }
    }

    fn offer(&mut self, stream: &StreamId, effect: Effect) {
        if self.slots.get_mut(stream).is_some_and(|slot| slot.line_up(&effect)) {
            self.give(stream, effect);
        }
    }

    /// An effect is to be performed: by a worker, or by the engine's own hands.
    fn give(&mut self, stream: &StreamId, effect: Effect) {
        let Some(slot) = self.slots.get_mut(stream).filter(|slot| slot.actor.is_open(&effect.id)) else { return };
        match slot.actor.wants(&effect) {
            Some(wanted) => self.workers.wait(QueuedEffect { stream: stream.clone(), effect, wanted }),
            None => {
                self.dispatches += 1;
                let dispatch = Dispatch(self.dispatches);
                let handed = EffectDispatch::new(dispatch, None, None, effect);
                self.out.push(ReactorAction::Perform(handed.assignment(stream.clone())));
                slot.handed.insert(handed.effect.id.clone(), handed);
            }
        }
    }

    /// Whether an effect is handed out under this number, and not given up.
    fn is_held(&self, stream: &StreamId, effect: &str, dispatch: Dispatch) -> bool {
        let current = self.slots.get(stream).and_then(|slot| slot.handed.get(effect));
        current.is_some_and(|handed| handed.dispatch == dispatch)
    }
}

pub fn too_late() -> Refusal {
    let message = "lease lost: it expired, or the step has finished or was cancelled";
    Refusal::new(RefusalCode::LeaseLost, message.to_owned()).hint("what you did is not counted; wait for new work")
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a fault of Sluice's own: {}", text.unwrap_or("it panicked"))
}
