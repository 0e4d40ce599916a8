//! Threads that carry out what may take its time: as many as are needed, up to a limit; whoever has nothing to do ends.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sluice_api::Problem;

use crate::background::later::HomeTimer;
use crate::background::locked;
use crate::settings::log::words;

/// So much is carried out at once; the rest waits its turn.
const MOST: usize = 256;
/// A thread that had nothing to do for so long ends.
const IDLE: Duration = Duration::from_secs(10);
/// A machine that has no thread to give is asked again after so long.
const AGAIN: Duration = Duration::from_secs(1);

type ThreadWork = Box<dyn FnOnce() + Send>;
type ThreadStart = fn(ThreadWork) -> io::Result<()>;

#[derive(Default)]
struct ThreadPoolState {
    waiting: VecDeque<ThreadWork>,
    threads: usize,
    idle: usize,
    /// No thread was to be had, and one is asked for later.
    is_short: bool,
}

#[derive(Clone)]
pub(crate) struct ThreadPool {
    shared: Arc<(Mutex<ThreadPoolState>, Condvar)>,
    later: HomeTimer,
    start: ThreadStart,
}

impl ThreadPool {
    pub(crate) fn new(later: HomeTimer) -> ThreadPool {
        let start = |work| std::thread::Builder::new().name("effects".into()).spawn(work).map(drop);
        ThreadPool { shared: Arc::default(), later, start }
    }

    pub(crate) fn run(&self, work: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.waiting.push_back(Box::new(work));
        self.shared.1.notify_one();
        self.begin(&mut state);
    }

    /// Starts another thread if those that are there do not suffice. Without one it is tried again, because they may be at
    /// what takes hours, and there may be none.
    fn begin(&self, state: &mut ThreadPoolState) {
        if state.idle >= state.waiting.len() || state.threads >= MOST || state.is_short {
            return;
        }
        let theirs = self.clone();
        match (self.start)(Box::new(move || theirs.work())) {
            Ok(()) => state.threads += 1,
            Err(error) => {
                tracing::warn!("no thread can be started, so that some work waits: {error}");
                state.is_short = true;
                let theirs = self.clone();
                self.later.after(AGAIN, move || {
                    let mut state = theirs.lock();
                    state.is_short = false;
                    (0..state.waiting.len()).for_each(|_| theirs.begin(&mut state));
                });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ThreadPoolState> {
        locked(&self.shared.0)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.waiting.pop_front() {
                drop(state);
                // Work that has an outcome to report catches a panic before it comes here.
                if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
                    tracing::error!("{}", words(panic.as_ref()));
                }
                state = self.lock();
                continue;
            }
            state.idle += 1;
            let (next, time) = self.shared.1.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = next;
            state.idle -= 1;
            if time.timed_out() && state.waiting.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

/// Starts a thread of this name that lasts as long as the home does.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Problem> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(drop).map_err(|error| Problem::fault(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;
    use crate::settings::clock::WallClock;
    use crate::settings::log_of_tests;

    #[test]
    fn what_finds_no_thread_is_done_once_there_is_one() {
        static REFUSALS: AtomicUsize = AtomicUsize::new(2);
        let log = log_of_tests();
        let later = HomeTimer::start(Arc::new(WallClock::default())).unwrap();
        let mut threads = ThreadPool::new(later);
        threads.start =
            |work| match REFUSALS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
                Ok(_) => Err(io::Error::from(io::ErrorKind::WouldBlock)),
                Err(_) => std::thread::Builder::new().spawn(work).map(drop),
            };
        // Each waits for the other: one thread for both is too few.
        let ((here, there), done) = ((mpsc::channel(), mpsc::channel()), mpsc::channel());
        for (mine, other) in [(here.0, there.1), (there.0, here.1)] {
            let done = done.0.clone();
            threads.run(move || {
                mine.send(()).unwrap();
                other.recv().unwrap();
                done.send(()).unwrap();
            });
        }
        drop(done.0);
        assert_eq!(done.1.iter().count(), 2);
        assert_eq!(REFUSALS.load(Ordering::SeqCst), 0);
        let said = std::fs::read_to_string(log).unwrap();
        assert_eq!(said.matches("no thread can be started").count(), 2, "{said}");
    }
}
