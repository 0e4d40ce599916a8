//! Who waits for a change, and of what. A stream that changes wakes those who wait for it and those who wait for anything;
//! how many wait for other streams costs it nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sluice_store::StreamId;

use crate::background::locked;

#[derive(Default)]
pub(crate) struct ChangeSignals {
    state: Mutex<SignalState>,
    any: Condvar,
}

#[derive(Default)]
struct SignalState {
    /// How often anything has changed.
    generation: u64,
    /// Only the streams that somebody waits for.
    streams: BTreeMap<StreamId, StreamSignal>,
}

#[derive(Default)]
struct StreamSignal {
    waiters: usize,
    /// How often the stream has changed since the first of them came.
    generation: u64,
    changed: Arc<Condvar>,
}

impl StreamSignal {
    fn give(&mut self) {
        self.generation += 1;
        self.changed.notify_all();
    }
}

impl ChangeSignals {
    /// These streams have changed.
    pub(crate) fn changed<'a>(&self, streams: impl IntoIterator<Item = &'a StreamId>) {
        let mut state = locked(&self.state);
        state.generation += 1;
        if !state.streams.is_empty() {
            for stream in streams {
                state.streams.get_mut(stream).into_iter().for_each(StreamSignal::give);
            }
        }
        self.any.notify_all();
    }

    /// Something has changed that no stream tells of: all look again.
    pub(crate) fn stir(&self) {
        let mut state = locked(&self.state);
        state.generation += 1;
        state.streams.values_mut().for_each(StreamSignal::give);
        self.any.notify_all();
    }

    /// How often anything has changed.
    pub(crate) fn generation(&self) -> u64 {
        locked(&self.state).generation
    }

    /// Waits until anything has changed since this number was given; false if the time is up before.
    pub(crate) fn wait_past(&self, before: u64, until: Instant) -> bool {
        wait(locked(&self.state), &self.any, until, |state| state.generation != before)
    }

    /// Listens for changes of one stream from now on.
    pub(crate) fn listen(&self, stream: &StreamId) -> StreamListener<'_> {
        let mut state = locked(&self.state);
        let signal = state.streams.entry(stream.clone()).or_default();
        signal.waiters += 1;
        StreamListener { signals: self, stream: stream.clone(), changed: signal.changed.clone() }
    }
}

/// While this is there, changes of its stream are counted.
pub(crate) struct StreamListener<'a> {
    signals: &'a ChangeSignals,
    stream: StreamId,
    changed: Arc<Condvar>,
}

impl StreamListener<'_> {
    /// How often the stream has changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation_in(&locked(&self.signals.state))
    }

    fn generation_in(&self, state: &SignalState) -> u64 {
        state.streams.get(&self.stream).map_or(0, |signal| signal.generation)
    }

    /// Waits until the stream has changed since this number was given; false if the time is up before.
    pub(crate) fn wait_past(&self, before: u64, until: Instant) -> bool {
        let state = locked(&self.signals.state);
        wait(state, &self.changed, until, |state| self.generation_in(state) != before)
    }
}

impl Drop for StreamListener<'_> {
    fn drop(&mut self) {
        let mut state = locked(&self.signals.state);
        let Some(signal) = state.streams.get_mut(&self.stream) else { return };
        signal.waiters -= 1;
        if signal.waiters == 0 {
            state.streams.remove(&self.stream);
        }
    }
}

fn wait(
    mut state: MutexGuard<'_, SignalState>,
    changed: &Condvar,
    until: Instant,
    has_changed: impl Fn(&SignalState) -> bool,
) -> bool {
    while !has_changed(&state) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        state = changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    true
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn stream(number: usize) -> StreamId {
        StreamId::new(format!("task/{number}"))
    }

    #[test]
    fn a_change_wakes_those_who_wait_for_that_stream_and_nobody_else() {
        const WAITING: usize = 100;
        let (signals, woken, (ready, is_ready)) = (ChangeSignals::default(), AtomicUsize::new(0), channel());
        std::thread::scope(|scope| {
            for number in 0..WAITING {
                let (signals, woken, ready) = (&signals, &woken, ready.clone());
                scope.spawn(move || {
                    let listener = signals.listen(&stream(number));
                    let before = listener.generation();
                    ready.send(()).unwrap();
                    assert!(listener.wait_past(before, soon()));
                    woken.fetch_add(1, Ordering::SeqCst);
                });
            }
            is_ready.iter().take(WAITING).count();
            // A thousand changes of a stream that only this thread waits for.
            let mine = signals.listen(&stream(WAITING));
            for _ in 0..1_000 {
                let (before, any) = (mine.generation(), signals.generation());
                signals.changed(&[stream(WAITING), stream(WAITING + 1)]);
                assert!(mine.wait_past(before, soon()) && signals.wait_past(any, soon()));
            }
            assert_eq!(woken.load(Ordering::SeqCst), 0);
            signals.changed(&[stream(3)]);
            while woken.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(woken.load(Ordering::SeqCst), 1);
            signals.stir();
        });
        assert_eq!(woken.load(Ordering::SeqCst), WAITING);
        assert!(locked(&signals.state).streams.is_empty(), "nothing is kept of those who have gone");
    }

    #[test]
    fn a_change_between_the_look_and_the_wait_is_not_missed() {
        let signals = ChangeSignals::default();
        let listener = signals.listen(&stream(1));
        let before = listener.generation();
        signals.changed(&[stream(1)]);
        assert!(listener.wait_past(before, Instant::now()));
        assert!(!listener.wait_past(listener.generation(), Instant::now()));
    }
}
