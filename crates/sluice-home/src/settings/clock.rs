//! The time, as the engine of a home has it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use sluice_core::machine::Moment;
use sluice_engine::host::EngineClock;
pub use sluice_worker::names::{id_from, new_id, written};

/// When the clock on the wall is not what it should be, it is approached by one part in so many of the time that passes: a
/// minute is never shorter or longer than that, whatever a person does to the clock on the wall.
const APPROACH: i64 = 50;

/// The wall's clock when it began, and from then on the time that has passed, also in sleep. A clock on the wall that is set
/// to another day neither ends what has a time limit nor keeps it waiting; it is followed slowly.
#[derive(Debug)]
pub struct WallClock {
    last: AtomicI64,
    hand: Mutex<ClockReading>,
}

#[derive(Debug)]
struct ClockReading {
    /// What it shows, in microseconds.
    shows: i64,
    /// When that was, in microseconds of what never jumps.
    at: i64,
}

impl ClockReading {
    /// It is this much later, and the wall shows this.
    fn turn(&mut self, at: i64, wall: i64) -> i64 {
        let passed = (at - self.at).max(0);
        let most = passed / APPROACH;
        self.shows += passed + (wall - (self.shows + passed)).clamp(-most, most);
        self.at = self.at.max(at);
        self.shows
    }
}

impl Default for WallClock {
    fn default() -> WallClock {
        WallClock { last: AtomicI64::new(0), hand: Mutex::new(ClockReading { shows: wall(), at: passed() }) }
    }
}

/// The clock on the wall, in microseconds since 1970.
pub(crate) fn wall() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// What has passed since the machine started, in microseconds, also in sleep.
fn passed() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

impl WallClock {
    /// A moment later than all that were asked for like this.
    pub fn next(&self) -> Moment {
        let now = self.now().0;
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)));
        Moment(last.map_or(now, |before| now.max(before + 1)))
    }
}

impl EngineClock for WallClock {
    fn now(&self) -> Moment {
        let mut hand = self.hand.lock().unwrap_or_else(PoisonError::into_inner);
        Moment(hand.turn(passed(), wall()) / 1000)
    }
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
    fn a_clock_on_the_wall_that_jumps_is_followed_slowly() {
        const DAY: i64 = 86_400_000_000;
        const MINUTE: i64 = 60_000_000;
        for jump in [DAY, -DAY] {
            let mut hand = ClockReading { shows: 40 * DAY, at: 7 };
            let before = hand.shows;
            let mut at = hand.at;
            for _ in 0..60 {
                at += MINUTE / 60;
                hand.turn(at, before + (at - 7) + jump);
            }
            let passed = hand.shows - before;
            assert!((MINUTE * 98 / 100..=MINUTE * 102 / 100).contains(&passed), "{passed}");
            // In the end it shows what the wall shows, and goes on with it.
            let later = at + 60 * DAY;
            let shown = hand.turn(later, before + (later - 7) + jump);
            assert_eq!(shown, before + (later - 7) + jump);
        }
        let mut hand = ClockReading { shows: 5, at: 5 };
        assert_eq!(hand.turn(1_000, 1_000), 1_000);
        assert!(hand.turn(900, 900) >= 1_000, "it never goes back");
    }
}
