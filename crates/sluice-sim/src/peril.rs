//! What happens to the processes of engines: they are killed between any two steps, stopped by a signal for a while, cut
//! off from the store, and their wall's clock is set.

use sluice_engine::actor::EffectOutcome;

use crate::bug::SimBug;
use crate::world::{CALM, SimEvent, SimLife};

impl SimLife {
    /// In so many of a hundred cases the process is killed soon, in the middle of what it is at.
    pub(crate) fn is_in_peril(&mut self, percent: u64, soon: u64) {
        if self.perils > 0 && self.now < CALM && self.chance.percent(percent) {
            self.perils -= 1;
            let (wait, here) = (self.soon(soon), self.here);
            self.at(wait, SimEvent::Killed(here));
        }
    }

    pub(crate) fn some_engine(&mut self) -> usize {
        usize::try_from(self.chance.below(self.engines.len() as u64)).unwrap_or(0)
    }

    /// When engines are stopped, cut off from the store, and their clocks set.
    pub(crate) fn perils_of_time(&mut self) {
        for _ in 0..self.chance.below(3) {
            let (wait, place, time) = (self.soon(60_000), self.some_engine(), 500 + self.soon(25_000));
            self.at(wait, SimEvent::Stops(place, time));
        }
        for _ in 0..self.chance.below(3) {
            let (wait, place, time) = (self.soon(60_000), self.some_engine(), 500 + self.soon(20_000));
            self.at(wait, SimEvent::Cuts(place, time));
        }
        for _ in 0..self.chance.below(3) {
            let (wait, place, by) = (self.soon(60_000), self.some_engine(), self.soon(1_200_000) - 600_000);
            self.at(wait, SimEvent::Jumps(place, by));
        }
    }

    pub(crate) fn is_stopped(&self, place: usize) -> bool {
        self.now < self.engines[place].stopped_until
    }

    pub(crate) fn stops(&mut self, place: usize, time: i64) {
        self.here = place;
        if !self.engine().is_down() {
            self.note(&format!("is stopped for {time} ms"));
            let until = self.now + time;
            self.engine().stopped_until = until;
            self.engine().slept = time;
        }
    }

    /// An engine that goes on after it was stopped notices that before it does anything else.
    pub(crate) fn wakes_up(&mut self) {
        let (here, now) = (self.here, self.moment());
        let slept = if self.is_stopped(here) { 0 } else { std::mem::take(&mut self.engines[here].slept) };
        if slept > 0 && !self.has(SimBug::SleepsThroughLeases) {
            self.engine().reactor.slept(slept, now);
        }
    }

    pub(crate) fn cuts(&mut self, place: usize, time: i64) {
        self.here = place;
        self.note(&format!("does not reach the store for {time} ms"));
        let until = self.now + time;
        self.engine().cut_until = until;
    }

    pub(crate) fn jumps(&mut self, place: usize, by: i64) {
        self.here = place;
        self.note(&format!("the wall's clock is set by {by} ms"));
        self.engine().wall += by;
    }

    pub(crate) fn killed(&mut self, place: usize) -> Result<(), String> {
        self.here = place;
        if self.engine().is_down() {
            return Ok(());
        }
        self.note("killed");
        self.process_ends(place)?;
        // Where another may take the store, it may be down for long enough.
        let most = if self.engines.len() > 1 && self.chance.percent(40) { 30_000 } else { 5_000 };
        let wait = if self.chance.percent(40) { 0 } else { self.soon(most) };
        self.at(wait, SimEvent::Starts(place));
        Ok(())
    }

    /// A process is gone. What it has started lives on.
    pub(crate) fn process_ends(&mut self, place: usize) -> Result<(), String> {
        for (key, (whose, due)) in std::mem::take(&mut self.due) {
            // What is none of these ends with the process that it was part of.
            match due {
                due if whose != Some(place) => drop(self.due.insert(key, (whose, due))),
                // A write that was on its way may or may not have reached the disk; whole batches, never parts.
                SimEvent::Stored { batch, doubt, .. } if self.chance.percent(50) => drop(self.write(batch, doubt)?),
                // What its own hands were at is done or not; in either case nobody says so.
                SimEvent::Acts { assignment } if self.may_act() && self.chance.percent(40) => {
                    drop(self.carries_out(&assignment)?);
                }
                // A message that was already sent may be heard by the next one.
                SimEvent::Answers { assignment, outcome } if self.chance.percent(30) => {
                    let wait = self.soon(2_000);
                    self.at(wait, SimEvent::Late { assignment, outcome: Some(EffectOutcome::Task(outcome)) });
                }
                _ => {}
            }
        }
        self.watch.killed(place);
        for (_, asked) in std::mem::take(&mut self.engines[place].asked) {
            self.unanswered(asked);
        }
        let store = self.store.clone();
        self.engines[place].ends(&store);
        Ok(())
    }
}
