//! What is done at a later moment. One thread waits for all of it: many patrols at rest must not take the threads of those
//! who work. It is there from the beginning, so that a machine that is short of threads forgets nothing that is due.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use sluice_engine::host::EngineClock;

use crate::background::locked;
use crate::settings::log::words;

/// How long nothing is waited for at most: a clock may be set, and a home may be closed.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

type TimerWork = Box<dyn FnOnce() + Send>;

/// What is due, by moment and by the order in which it came.
#[derive(Default)]
struct TimerQueue {
    waiting: BTreeMap<(i64, u64), TimerWork>,
    count: u64,
}

struct TimerShared {
    due: Mutex<TimerQueue>,
    changed: Condvar,
    clock: Arc<dyn EngineClock>,
}

#[derive(Clone)]
pub(crate) struct HomeTimer(Arc<TimerShared>);

impl HomeTimer {
    /// Begins to wait, in a thread that ends when no caller can ask for anything any more.
    pub(crate) fn start(clock: Arc<dyn EngineClock>) -> std::io::Result<HomeTimer> {
        let shared = Arc::new(TimerShared { due: Mutex::default(), changed: Condvar::new(), clock });
        let weak = Arc::downgrade(&shared);
        std::thread::Builder::new().name("later".into()).spawn(move || look_after(&weak))?;
        Ok(HomeTimer(shared))
    }

    /// Does something when a moment has come. It must not take long.
    pub(crate) fn at(&self, moment: i64, work: impl FnOnce() + Send + 'static) {
        let mut due = locked(&self.0.due);
        due.count += 1;
        let key = (moment, due.count);
        due.waiting.insert(key, Box::new(work));
        self.0.changed.notify_one();
    }

    /// Does something after a while. It must not take long.
    pub(crate) fn after(&self, wait: Duration, work: impl FnOnce() + Send + 'static) {
        let moment = self.0.clock.now().0.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        self.at(moment, work);
    }
}

impl TimerShared {
    /// What is due now. Otherwise waits until something may be.
    fn next(&self) -> Option<TimerWork> {
        let mut due = locked(&self.due);
        let now = self.clock.now().0;
        let wait = match due.waiting.first_key_value() {
            Some(((at, _), _)) if *at <= now => return due.waiting.pop_first().map(|(_, work)| work),
            Some(((at, _), _)) => Duration::from_millis(u64::try_from(at - now).unwrap_or(0)).min(LONGEST_WAIT),
            None => LONGEST_WAIT,
        };
        drop(self.changed.wait_timeout(due, wait).unwrap_or_else(PoisonError::into_inner));
        None
    }
}

fn look_after(weak: &Weak<TimerShared>) {
    while let Some(shared) = weak.upgrade() {
        let Some(work) = shared.next() else { continue };
        // All that is due later would end with this thread.
        if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
            tracing::error!("{}", words(panic.as_ref()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::settings::clock::WallClock;
    use crate::settings::log_of_tests;

    #[test]
    fn what_panics_ends_nothing_that_is_due_later() {
        let log = log_of_tests();
        let later = HomeTimer::start(Arc::new(WallClock::default())).unwrap();
        let (done, heard) = mpsc::channel();
        later.after(Duration::ZERO, || panic!("out of coffee"));
        later.after(Duration::ZERO, move || done.send(()).unwrap());
        heard.recv().unwrap();
        let said = std::fs::read_to_string(log).unwrap();
        assert!(said.contains("a fault of Sluice's own: out of coffee"), "{said}");
    }
}
