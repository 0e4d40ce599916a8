//! For how long what is over is kept.

use std::time::{Duration, Instant};

use sluice_store::{Order, Query, Reader, StoreError};

use super::EngineClock;

/// A clock that jumped over all of the term is believed once it went on for so long.
const BELIEVED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// The term for which what is over is kept, and from when on that is counted.
#[derive(Clone, Copy)]
pub struct RetentionTerm {
    term: Duration,
    from: Instant,
}

impl RetentionTerm {
    /// Looks how long nothing happened here. If that is longer than the term, then either nobody was here or the clock is
    /// wrong, as it is on a machine that starts without a battery and has not heard of the time yet. What is forgotten does
    /// not come back, so nothing is forgotten before such a clock has gone on for a day.
    pub fn new(reader: &mut dyn Reader, clock: &dyn EngineClock, term: Duration) -> Result<RetentionTerm, StoreError> {
        let newest = reader.list(&Query { order: Order::Newest, limit: 1, ..Query::default() })?;
        let last = newest.items.first().map(|it| it.card.created.max(it.card.updated));
        let rested = last.map_or(0, |last| clock.now().0.saturating_sub(last));
        let is_doubted = u128::try_from(rested).is_ok_and(|rested| rested > term.as_millis());
        let wait = if is_doubted { BELIEVED_AFTER } else { Duration::ZERO };
        Ok(RetentionTerm { term, from: Instant::now() + wait })
    }

    /// The term, once it counts.
    pub fn term(&self) -> Option<Duration> {
        (Instant::now() >= self.from).then_some(self.term)
    }
}
