//! The time and new names.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};
use sluice_core::machine::Moment;
use sluice_engine::host::Clock;

/// The wall's clock, which never gives the same moment twice: what is created later has the later time.
#[derive(Debug, Default)]
pub struct WallClock {
    last: AtomicI64,
}

impl WallClock {
    /// A moment later than all that were asked for like this.
    pub fn next(&self) -> Moment {
        let now = self.now().0;
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)));
        Moment(last.map_or(now, |before| now.max(before + 1)))
    }
}

impl Clock for WallClock {
    fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A moment as people and programs read it: RFC 3339, in UTC, to the millisecond.
pub fn written(at: i64) -> String {
    match jiff::Timestamp::from_millisecond(at) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => at.to_string(),
    }
}

/// Letters that are not mistaken for one another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// A new id: short enough to type a part of, long enough that a million of them do not meet.
pub fn new_id() -> Result<String, String> {
    let mut bytes = [0u8; 10];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

/// An id made of these words: always the same, and of others another.
pub fn id_from(words: &[&str]) -> String {
    let mut sum = Sha256::new();
    for word in words {
        sum.update(word.as_bytes());
        sum.update([0]);
    }
    sum.finalize().iter().take(10).map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_is_later() {
        let clock = WallClock::default();
        let moments: Vec<i64> = (0..1000).map(|_| clock.next().0).collect();
        assert!(moments.is_sorted_by(|one, other| one < other));
    }

    #[test]
    fn moments_are_written_alike() {
        assert_eq!(written(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(written(1_794_700_800_123), "2026-11-15T00:00:00.123Z");
    }
}
