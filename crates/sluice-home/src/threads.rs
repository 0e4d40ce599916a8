//! Threads that carry out what may take its time: as many as are needed, up to a limit; whoever has nothing to do ends.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So much is carried out at once; the rest waits its turn.
const MOST: usize = 256;
/// A thread that had nothing to do for so long ends.
const IDLE: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    threads: usize,
    idle: usize,
}

/// The threads.
#[derive(Clone, Default)]
pub(crate) struct Threads {
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Threads {
    /// Carries something out, soon.
    pub(crate) fn run(&self, work: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.waiting.push_back(Box::new(work));
        if state.idle >= state.waiting.len() || state.threads >= MOST {
            return self.shared.1.notify_one();
        }
        let theirs = self.clone();
        let thread = std::thread::Builder::new().name("hands".into()).spawn(move || theirs.work());
        // Without another thread those that are there do it, one after the other.
        state.threads += usize::from(thread.is_ok());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.waiting.pop_front() {
                drop(state);
                // What fails here is told to nobody; whoever waits for it is told by the next start of the engine.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
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
