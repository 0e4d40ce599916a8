//! Two things that are measured in turn, so that the disk's mood hits both.

use std::time::{Duration, Instant};

/// One turn: how long each took.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// What it is held against.
    pub floor: Duration,
    /// What is measured.
    pub measured: Duration,
}

impl Turn {
    /// How many times the floor the measured one takes.
    pub fn ratio(&self) -> f64 {
        self.measured.as_secs_f64() / self.floor.as_secs_f64()
    }
}

/// Lets both work in turn, and gives the turn whose ratio is in the middle. Each says how long one piece of its work
/// took.
pub fn take_turns(rounds: usize, floor: &mut dyn FnMut() -> Duration, measured: &mut dyn FnMut() -> Duration) -> Turn {
    let mut turns: Vec<Turn> = (0..rounds).map(|_| Turn { floor: floor(), measured: measured() }).collect();
    turns.sort_by(|one, other| one.ratio().total_cmp(&other.ratio()));
    turns[turns.len() / 2]
}

/// How long each of `count` pieces of work took.
pub fn each(count: usize, work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed() / u32::try_from(count).unwrap()
}
