//! Ends an engine whose doors do not turn any more: whatever holds its runtime would hold everybody for ever, and the next
//! command starts another engine that takes up what was going on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sluice_api::Problem;
use tokio::runtime::Handle;

/// How often the runtime must turn, and is looked at.
const TURN: Duration = Duration::from_secs(1);
/// After so many looks that saw no turn it is over: 30 seconds. Looks are counted and not time, so that a machine that
/// slept, or a process that was stopped, is not taken for one that hangs.
const MOST_LOOKS: u32 = 30;

/// Watches a runtime for as long as this lives.
pub(crate) struct Watchdog(Arc<AtomicBool>);

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Watchdog {
    /// Watches a runtime. `over` is called once, when it has not turned for long.
    pub(crate) fn start(runtime: &Handle, over: impl FnOnce() + Send + 'static) -> Result<Watchdog, Problem> {
        Watchdog::every(TURN, MOST_LOOKS, runtime, over)
    }

    fn every(
        turn: Duration,
        most: u32,
        runtime: &Handle,
        over: impl FnOnce() + Send + 'static,
    ) -> Result<Watchdog, Problem> {
        let (turns, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, ended) = (turns.clone(), done.clone());
        runtime.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(turn).await;
            }
        });
        let ended = done.clone();
        let watch = move || {
            let (mut seen, mut looks) = (0, 0);
            while looks < most {
                std::thread::park_timeout(turn);
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let now = turns.load(Ordering::Relaxed);
                looks = if now == seen { looks + 1 } else { 0 };
                seen = now;
            }
            over();
        };
        let thread = std::thread::Builder::new().name("watchdog".into()).spawn(watch);
        thread.map(|_| Watchdog(done)).map_err(|error| Problem::fault(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const SHORT: Duration = Duration::from_millis(1);

    #[test]
    fn a_runtime_that_does_not_turn_is_noticed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (over, heard) = channel();
        let _watchdog = Watchdog::every(SHORT, 30, runtime.handle(), move || over.send(()).expect("it is heard"));
        // Something blocks the runtime until the watchdog says so.
        runtime.block_on(async move { heard.recv().expect("the watchdog barks") });
    }

    #[test]
    fn a_runtime_that_turns_is_left_alone() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (over, heard) = channel::<()>();
        let watchdog = Watchdog::every(SHORT, 1000, runtime.handle(), move || over.send(()).expect("it is heard"));
        runtime.block_on(async {
            for _ in 0..50 {
                tokio::time::sleep(SHORT).await;
            }
        });
        drop(watchdog);
        // Its end is the watchdog's, not an alarm.
        assert!(heard.recv().is_err());
    }
}
