//! Threads that carry out what may take its time: as many as are needed, up to a limit; whoever has nothing to do ends.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::log::Log;

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
#[derive(Clone)]
pub(crate) struct Threads {
    shared: Arc<(Mutex<State>, Condvar)>,
    log: Arc<Log>,
}

impl Threads {
    /// No thread yet.
    pub(crate) fn new(log: Arc<Log>) -> Threads {
        Threads { shared: Arc::default(), log }
    }

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
                // Whoever has an outcome to report catches a panic before it comes here.
                if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
                    self.log.line(&words(panic.as_ref()));
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

/// What a panic said.
pub(crate) fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a fault of Sluice's own: {}", text.unwrap_or("it panicked"))
}
