//! What of the board is asked for next, and when: a machine without a clock and without a connection.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use sluice_api::board::BOARD_IDS;

/// Up to so many rows the whole board is asked for when something happened: pools, costs and counts come with it.
const SMALL_BOARD: usize = 200;

/// Of a larger board the rows that events name are asked for; the whole of it once nothing happened for so long.
const QUIET: Duration = Duration::from_secs(5);

/// And while something happens all the time, this often.
const WHOLE_EVERY: Duration = Duration::from_secs(15);

/// How long it is waited before what failed is asked for again: at first, and at most.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(100);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What is asked of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BoardAsk {
    /// The whole board, and what is counted.
    Whole,
    /// The rows with these ids.
    Rows(BTreeSet<String>),
}

/// What has changed and is not known yet.
#[derive(Debug)]
pub(super) struct Renewal {
    /// The number of rows of the last whole board.
    rows: usize,
    named: BTreeSet<String>,
    /// Only the whole board will do.
    is_whole_due: bool,
    /// Rows were asked for since the last whole board: what is counted and added up may be old.
    is_partial: bool,
    whole_at: Instant,
    /// When something last happened.
    heard_at: Instant,
    /// The pause after a failure, and when it is over.
    pause: Option<(Duration, Instant)>,
}

impl Renewal {
    /// The whole board has come, with so many rows.
    pub(super) fn new(rows: usize, now: Instant) -> Renewal {
        Renewal {
            rows,
            named: BTreeSet::new(),
            is_whole_due: false,
            is_partial: false,
            whole_at: now,
            heard_at: now,
            pause: None,
        }
    }

    /// Something happened to this task or run.
    pub(super) fn name(&mut self, id: String, now: Instant) {
        self.heard_at = now;
        self.named.insert(id);
        if self.named.len() > BOARD_IDS {
            self.named.clear();
            self.is_whole_due = true;
        }
    }

    /// How long to wait for more before something is to be asked; none: until something happens.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let pause = self.pause.map_or(now, |(_, until)| until);
        let at = match !self.named.is_empty() || self.is_whole_due {
            true => pause,
            false if self.is_partial => pause.max(self.heard_at + QUIET),
            false => return None,
        };
        Some(at.saturating_duration_since(now))
    }

    /// What is to be asked now, if it is time.
    pub(super) fn next(&mut self, now: Instant) -> Option<BoardAsk> {
        if self.wait(now).is_none_or(|wait| !wait.is_zero()) {
            return None;
        }
        let named = std::mem::take(&mut self.named);
        let is_long_ago = now.saturating_duration_since(self.whole_at) >= WHOLE_EVERY;
        let is_whole = self.is_whole_due || named.is_empty() || self.rows <= SMALL_BOARD || is_long_ago;
        Some(if is_whole { BoardAsk::Whole } else { BoardAsk::Rows(named) })
    }

    /// The whole board has come, with so many rows.
    pub(super) fn has_whole(&mut self, rows: usize, now: Instant) {
        *self = Renewal { named: std::mem::take(&mut self.named), heard_at: self.heard_at, ..Renewal::new(rows, now) };
    }

    /// The rows have come.
    pub(super) fn has_rows(&mut self) {
        (self.is_partial, self.pause) = (true, None);
    }

    /// What was asked for has not come. It is asked for again as a whole, after a pause that grows: the engine may refuse a part.
    pub(super) fn failed(&mut self, now: Instant) {
        self.named.clear();
        self.is_whole_due = true;
        let pause = self.pause.map_or(FIRST_PAUSE, |(pause, _)| (pause * 2).min(LONGEST_PAUSE));
        self.pause = Some((pause, now + pause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = SMALL_BOARD + 1;

    fn rows(ids: &[&str]) -> Option<BoardAsk> {
        Some(BoardAsk::Rows(ids.iter().map(|id| (*id).to_owned()).collect()))
    }

    #[test]
    fn a_small_board_is_asked_for_as_a_whole_and_nothing_without_cause() {
        let now = Instant::now();
        let mut renewal = Renewal::new(3, now);
        assert_eq!((renewal.wait(now), renewal.next(now)), (None, None));
        renewal.name("k1".to_owned(), now);
        assert_eq!(renewal.next(now), Some(BoardAsk::Whole));
        renewal.has_whole(3, now);
        assert_eq!((renewal.wait(now), renewal.next(now)), (None, None));
    }

    #[test]
    fn a_large_board_is_asked_for_by_rows_and_as_a_whole_when_it_is_quiet() {
        let now = Instant::now();
        let mut renewal = Renewal::new(MANY, now);
        renewal.name("k1".to_owned(), now);
        renewal.name("k2".to_owned(), now);
        assert_eq!(renewal.next(now), rows(&["k1", "k2"]));
        renewal.has_rows();
        assert_eq!(renewal.wait(now), Some(QUIET));
        assert_eq!(renewal.next(now + QUIET), Some(BoardAsk::Whole));
        renewal.has_whole(MANY, now + QUIET);
        assert_eq!(renewal.wait(now + QUIET), None);
    }

    /// Something happens every second, for ever: the whole board comes all the same.
    #[test]
    fn a_large_board_that_is_busy_is_renewed_as_a_whole() {
        let start = Instant::now();
        let mut renewal = Renewal::new(MANY, start);
        let mut wholes = 0;
        for second in 1..=60 {
            let now = start + Duration::from_secs(second);
            renewal.name("k1".to_owned(), now);
            match renewal.next(now) {
                Some(BoardAsk::Whole) => {
                    wholes += 1;
                    renewal.has_whole(MANY, now);
                }
                Some(BoardAsk::Rows(_)) => renewal.has_rows(),
                None => panic!("nothing is asked at second {second}"),
            }
        }
        assert_eq!(wholes, 4);
    }

    #[test]
    fn too_many_names_are_asked_for_as_a_whole() {
        let now = Instant::now();
        let mut renewal = Renewal::new(MANY, now);
        (0..=BOARD_IDS).for_each(|number| renewal.name(format!("k{number}"), now));
        assert_eq!(renewal.next(now), Some(BoardAsk::Whole));
    }

    /// What fails is neither forgotten nor asked for without a pause, however much happens meanwhile.
    #[test]
    fn what_failed_is_asked_for_again_after_a_pause_that_grows() {
        let mut now = Instant::now();
        let mut renewal = Renewal::new(MANY, now);
        renewal.name("k1".to_owned(), now);
        assert_eq!(renewal.next(now), rows(&["k1"]));
        for pause in [100, 200, 400, 800, 1_600, 2_000, 2_000] {
            renewal.failed(now);
            renewal.name("k2".to_owned(), now);
            let pause = Duration::from_millis(pause);
            assert_eq!((renewal.wait(now), renewal.next(now)), (Some(pause), None));
            now += pause;
            assert_eq!(renewal.next(now), Some(BoardAsk::Whole));
        }
        renewal.has_whole(MANY, now);
        assert_eq!(renewal.wait(now), None);
    }
}
