//! Threads, timers and turns: how the engine does many things at once, and none twice at the same time.

pub(crate) mod lane;
pub(crate) mod later;
pub(crate) mod threads;
pub(crate) mod turns;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a mutex holds. Where a thread panicked with it locked, the others go on.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
