//! What is let go when a batch is durable: answers, effects, leases.
//!
//! An answer waits for everything that it is based on. So does a refusal, and so does "nothing to do": the decision before
//! it may be on its way to the store, and a crash may undo it.

use sluice_store::{Conflict, Effect, StreamId};

use super::{Assignment, EventRange, Reactor, ReactorAction, ReactorAnswer, ReactorToken};
use crate::workers::{Dispatch, WorkerId};

/// What is let go when a batch is durable.
pub(super) enum CommitRelease {
    /// The answer to what led to the batch: it is done, with these events.
    Reply(ReactorToken, EventRange),
    /// An answer that changes nothing, and is based on the batch.
    Answer(ReactorToken, ReactorAnswer),
    Effects(StreamId, Vec<Effect>),
    /// These effects of an actor that wants them in order.
    Settled(StreamId, Vec<String>),
    Leased(Box<Assignment>),
    Withdrawn(WorkerId, Dispatch),
    Over(StreamId),
}

impl Reactor {
    /// Answers when what the answer is based on is stored: at once, or with the last of the stream that is on its way.
    pub(super) fn answer(&mut self, stream: &StreamId, token: Option<ReactorToken>, answer: ReactorAnswer) {
        let Some(token) = token else { return };
        let is_stored = self.slots.get(stream).is_none_or(|slot| slot.stored == slot.version);
        let last = if is_stored { None } else { self.last_on_its_way(stream) };
        match last {
            Some(releases) => releases.push(CommitRelease::Answer(token, answer)),
            None => self.out.push(ReactorAction::Reply(token, answer)),
        }
    }

    fn last_on_its_way(&mut self, stream: &StreamId) -> Option<&mut Vec<CommitRelease>> {
        let gathered = self.gathered.iter_mut().map(|(append, releases)| (&append.stream, releases)).rev();
        let in_flight = self.in_flight.iter_mut().flatten().map(|(stream, releases)| (&*stream, releases)).rev();
        gathered.chain(in_flight).find(|(other, _)| *other == stream).map(|(_, releases)| releases)
    }

    pub(super) fn committed(&mut self, results: Vec<Result<u64, Conflict>>) {
        let Some(in_flight) = self.in_flight.take() else { return };
        for ((stream, releases), result) in in_flight.into_iter().zip(results) {
            match result {
                Ok(version) => {
                    if let Some(slot) = self.slots.get_mut(&stream) {
                        slot.stored = slot.stored.max(version);
                    }
                    releases.into_iter().for_each(|release| self.release(release));
                    self.changed.push(stream);
                }
                Err(_) => self.conflicted(&stream, releases),
            }
        }
        self.out.extend(std::mem::take(&mut self.too_early).into_iter().map(ReactorAction::Load));
    }

    fn release(&mut self, release: CommitRelease) {
        match release {
            CommitRelease::Reply(token, recorded) => {
                self.out.push(ReactorAction::Reply(token, ReactorAnswer::Done(recorded)))
            }
            CommitRelease::Answer(token, answer) => self.out.push(ReactorAction::Reply(token, answer)),
            CommitRelease::Effects(stream, effects) => {
                effects.into_iter().for_each(|effect| self.offer(&stream, effect))
            }
            // Not before: after a crash, what came first would be done once more beside what comes next.
            CommitRelease::Settled(stream, settled) => {
                let next = self.slots.get_mut(&stream).and_then(|slot| slot.advance(&settled));
                next.into_iter().for_each(|effect| self.give(&stream, effect));
            }
            CommitRelease::Leased(assignment) => {
                // It may have been given up while its lease was on its way to the store.
                if self.is_held(&assignment.stream, &assignment.effect.id, assignment.dispatch) {
                    self.out.push(ReactorAction::Perform(*assignment));
                }
            }
            CommitRelease::Withdrawn(worker, dispatch) => {
                self.out.push(ReactorAction::Withdrawn { worker, dispatch, is_lost: false });
            }
            CommitRelease::Over(stream) => {
                if self.slots.get(&stream).is_some_and(|slot| slot.actor.is_over()) {
                    self.drop_slot(&stream);
                }
            }
        }
    }

    /// The store knows better: what is in memory is dropped, and loaded again when a caller asks.
    fn conflicted(&mut self, stream: &StreamId, mut releases: Vec<CommitRelease>) {
        let built_on_it = self.gathered.extract_if(.., |(append, _)| append.stream == *stream);
        releases.extend(built_on_it.flat_map(|(_, releases)| releases));
        for release in releases {
            if let CommitRelease::Reply(token, _) | CommitRelease::Answer(token, _) = release {
                self.out.push(ReactorAction::Reply(token, ReactorAnswer::Conflict));
            }
        }
        self.drop_slot(stream);
        self.load(stream);
    }

    /// The effects of a stream that are still to be stored.
    pub(super) fn effects_on_their_way(&self, stream: &StreamId) -> impl Iterator<Item = &Effect> {
        let in_flight = self.in_flight.iter().flatten().map(|(_, releases)| releases);
        let gathered = self.gathered.iter().map(|(_, releases)| releases);
        in_flight.chain(gathered).flatten().flat_map(move |release| match release {
            CommitRelease::Effects(of, effects) if of == stream => effects.as_slice(),
            CommitRelease::Effects(..)
            | CommitRelease::Reply(..)
            | CommitRelease::Answer(..)
            | CommitRelease::Settled(..)
            | CommitRelease::Leased(_)
            | CommitRelease::Withdrawn(..)
            | CommitRelease::Over(_) => &[],
        })
    }

    /// Whether something of a stream that is not in memory is still to be stored.
    pub(super) fn is_on_its_way(&self, stream: &StreamId) -> bool {
        let in_flight = || self.in_flight.iter().flatten().any(|(other, _)| other == stream);
        let gathered = || self.gathered.iter().any(|(append, _)| append.stream == *stream);
        !self.slots.contains_key(stream) && (in_flight() || gathered())
    }
}
