//! When the screen of a session is looked at: a decision about moments that are passed in. It reads no clock and no screen.
//!
//! A look costs a call of tmux, so there is one only after the agent has printed: as soon as it pauses, and now and then while
//! it prints without a pause. Dialogs are most frequent in the first seconds of a program, so looks are closer together then.

use std::time::{Duration, Instant};

/// For so long after its start a session is looked at more often.
const YOUNG_FOR: Duration = Duration::from_secs(30);

/// How close together looks are.
struct SightPace {
    /// A screen that has not changed for so long is taken to stand still.
    still: Duration,
    /// The least time between two looks.
    between: Duration,
    /// The time between two looks at a screen that never stands still.
    longest: Duration,
}

const YOUNG: SightPace = SightPace {
    still: Duration::from_millis(300),
    between: Duration::from_millis(500),
    longest: Duration::from_millis(1000),
};
const LATER: SightPace = SightPace {
    still: Duration::from_millis(600),
    between: Duration::from_millis(2000),
    longest: Duration::from_millis(5000),
};

/// What to do with a session that has printed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SightStep {
    /// It stands still: look, and wait until it prints again.
    LookAndRest,
    /// It prints without a pause: look, and go on.
    Look,
    /// There is nothing to see before this moment.
    Later(Instant),
}

/// When a session began, when it was looked at, and when it last began to print after a rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct SightClock {
    pub(super) began: Instant,
    pub(super) looked: Option<Instant>,
    pub(super) woke: Instant,
}

impl SightClock {
    pub(super) fn new(now: Instant) -> SightClock {
        SightClock { began: now, looked: None, woke: now }
    }

    /// What to do at `now` with a session that has not printed for `still`.
    pub(super) fn step(&self, now: Instant, still: Duration) -> SightStep {
        let pace = self.pace(now);
        let earliest = self.earliest(now);
        let latest = self.looked.unwrap_or(self.began).max(self.woke) + pace.longest;
        match pace.still.checked_sub(still) {
            _ if now < earliest => SightStep::Later(earliest),
            None | Some(Duration::ZERO) => SightStep::LookAndRest,
            Some(_) if now >= latest => SightStep::Look,
            Some(left) => SightStep::Later(latest.min(now + left)),
        }
    }

    /// When a session is to be visited that has just printed, after a rest.
    pub(super) fn after_rest(&self, now: Instant) -> Instant {
        self.earliest(now).max(now + self.pace(now).still)
    }

    /// When a session is to be visited of which the kernel tells nothing.
    pub(super) fn unheard(&self, now: Instant) -> Instant {
        now + LATER.longest
    }

    fn earliest(&self, now: Instant) -> Instant {
        self.looked.map_or(self.began, |looked| looked + self.pace(now).between)
    }

    fn pace(&self, now: Instant) -> &'static SightPace {
        if now.saturating_duration_since(self.began) < YOUNG_FOR { &YOUNG } else { &LATER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The looks at a session that prints at these milliseconds after its start, until the last of them and a minute more.
    fn looks(prints: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let began = Instant::now();
        let prints: Vec<u64> = prints.into_iter().collect();
        let mut clock = SightClock::new(began);
        let mut due = Some(clock.after_rest(began));
        let mut looks = Vec::new();
        while let Some(now) = due {
            let at = u64::try_from((now - began).as_millis()).unwrap();
            let last = prints.iter().rev().find(|print| **print <= at).copied().unwrap_or(0);
            let step = clock.step(now, Duration::from_millis(at - last));
            due = match step {
                SightStep::Later(then) => Some(then),
                SightStep::Look | SightStep::LookAndRest => {
                    clock.looked = Some(now);
                    looks.push(at);
                    let next =
                        prints.iter().find(|print| **print > at).map(|print| began + Duration::from_millis(*print));
                    match step {
                        SightStep::Look => Some(clock.after_rest(now)),
                        SightStep::LookAndRest | SightStep::Later(_) => next.map(|next| {
                            clock.woke = next;
                            clock.after_rest(next)
                        }),
                    }
                }
            };
        }
        looks
    }

    #[test]
    fn a_dialog_is_looked_at_as_soon_as_it_stands() {
        assert_eq!(looks([5000]), [300, 5300]);
        assert_eq!(looks([200, 5000, 5100, 9000]), [500, 5400, 9300]);
    }

    /// A dialog with a moving mark, as some programs draw it, must not wait for a pause that never comes.
    #[test]
    fn a_screen_that_never_stands_still_is_looked_at_each_second_then_each_five() {
        let all = looks((0..90_000).step_by(100));
        let gaps: Vec<u64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().take(28).all(|gap| *gap <= 1000), "{gaps:?}");
        assert!(gaps.iter().all(|gap| *gap <= 5000), "{gaps:?}");
        assert!(all.len() <= 30 + 14, "{all:?}");
    }

    /// One that ticks each second costs a look every two seconds, and one that is silent none.
    #[test]
    fn looks_are_bounded_whatever_is_printed() {
        let ticking = looks((40_000..100_000).step_by(1000));
        assert!(ticking.len() <= 32, "{ticking:?}");
        let flickering = looks((0..30_000).step_by(350));
        assert!(flickering.windows(2).all(|pair| pair[1] - pair[0] >= 500), "{flickering:?}");
        assert_eq!(looks([]), [300]);
    }
}
