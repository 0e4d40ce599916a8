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
        println!("{:<84} {:>12} {:>12} {:>9}   aim", "what / the floor beside it", "measured", "floor", "ratio");
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

    /// A time beside another.
    pub fn times(&self, what: &str, measured: Duration, beside: Duration, aim: &str) {
        self.turn(what, Turn { floor: beside, measured }, aim);
    }

    /// How much gets done in a second, beside how much another does: the ratio says how many times as much.
    pub fn rates(&self, what: &str, measured: f64, beside: f64, aim: &str) {
        self.values(what, measured, beside, |value| format!("{value:.*}/s", usize::from(value < 10.0)), aim);
    }

    /// A value beside another, each shown in its unit.
    pub fn values(&self, what: &str, measured: f64, beside: f64, shown: fn(f64) -> String, aim: &str) {
        self.line(what, &shown(measured), &shown(beside), &format!("{:.2} ×", measured / beside), aim);
    }

    /// A value that nothing is held against.
    pub fn alone(&self, what: &str, value: &str, aim: &str) {
        self.line(what, value, "", "", aim);
    }

    /// What could not be measured, and why.
    pub fn missing(&self, what: &str, why: &str) {
        println!("{what:<84} not measured: {why}");
    }

    fn line(&self, what: &str, measured: &str, floor: &str, ratio: &str, aim: &str) {
        println!("{what:<84} {measured:>12} {floor:>12} {ratio:>9}   {aim}");
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
