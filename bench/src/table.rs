//! The table that is printed: what was measured, beside what, and what is aimed at.
//!
//! A line is printed as soon as it is known. Never judges: an aim stands beside the number, and the reader compares.

use std::time::Duration;

use crate::turns::Turn;

/// The table.
pub struct Table(());

impl Table {
    /// An empty table: its head is printed.
    pub fn begin() -> Table {
        println!("{:<68} {:>12} {:>12} {:>9}   aim", "what / the floor beside it", "measured", "floor", "ratio");
        Table(())
    }

    /// A time beside a time.
    pub fn turn(&self, what: &str, turn: Turn, aim: &str) {
        self.line(what, &time(turn.measured), &time(turn.floor), &format!("{:.2} ×", turn.ratio()), aim);
    }

    /// How many pieces are done in a second, beside how many commits are: the ratio says how many fit into one commit.
    pub fn rate(&self, what: &str, turn: Turn, aim: &str) {
        let rate = |it: Duration| format!("{:.0}/s", 1.0 / it.as_secs_f64());
        let ratio = format!("{:.2} ×", 1.0 / turn.ratio());
        self.line(what, &rate(turn.measured), &rate(turn.floor), &ratio, aim);
    }

    /// What could not be measured, and why.
    pub fn missing(&self, what: &str, why: &str) {
        println!("{what:<68} not measured: {why}");
    }

    fn line(&self, what: &str, measured: &str, floor: &str, ratio: &str, aim: &str) {
        println!("{what:<68} {measured:>12} {floor:>12} {ratio:>9}   {aim}");
    }
}

/// A time with three digits or so.
fn time(it: Duration) -> String {
    let micros = it.as_secs_f64() * 1e6;
    match micros {
        _ if micros < 100.0 => format!("{micros:.1} µs"),
        _ if micros < 10_000.0 => format!("{micros:.0} µs"),
        _ => format!("{:.1} ms", micros / 1e3),
    }
}
