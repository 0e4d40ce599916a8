//! The hand that kills the process of a simulated life between any two steps, and starts it again.

use sluice_core::machine::Moment;
use sluice_engine::actor::Outcome as Done;
use sluice_engine::reactor::{Message, Reactor};

use crate::bug::Bug;
use crate::world::{CALM, Due, Life};

impl Life {
    /// In so many of a hundred cases the process is killed soon, in the middle of what it is at.
    pub(crate) fn is_in_peril(&mut self, percent: u64, soon: u64) {
        if self.perils > 0 && self.now < CALM && self.chance.percent(percent) {
            self.perils -= 1;
            let wait = self.soon(soon);
            self.at(wait, Due::Killed);
        }
    }

    pub(crate) fn killed(&mut self) -> Result<(), String> {
        if self.is_down {
            return Ok(());
        }
        self.note("killed");
        for (key, due) in std::mem::take(&mut self.due) {
            self.outlives(key, due)?;
        }
        let lasting: Vec<u64> = self.due.values().filter_map(Due::lasting_worker).collect();
        self.watch.killed(|who| !lasting.contains(&who));
        self.ground.killed();
        self.asked.clear();
        self.reactor = Reactor::new(0);
        self.is_down = true;
        let wait = if self.chance.percent(50) { 0 } else { self.soon(5_000) };
        self.at(wait, Due::Starts);
        Ok(())
    }

    pub(crate) fn starts_again(&mut self) -> Result<(), String> {
        self.note("started again");
        self.is_down = false;
        self.writer = Box::new(self.store.writer());
        self.epoch =
            self.writer.own("sim", std::time::Duration::from_secs(30)).map_err(|error| error.to_string())?.epoch;
        self.reactor = Reactor::new(self.epoch);
        self.join_workers();
        if self.bug == Some(Bug::SkipsRecovery) {
            return Ok(());
        }
        let streams = self.reader.open_streams(None, 10_000).map_err(|error| error.to_string())?;
        for stream in streams {
            let found = self.load(&stream)?;
            if self.watch.tasks.contains_key(&stream) {
                let wait = self.soon(1_000);
                self.at(wait, Due::Looks(stream.clone()));
            }
            self.reactor.receive(Message::Loaded { stream, found }, Moment(self.now));
        }
        Ok(())
    }

    /// What becomes of something that was due when the process was killed.
    fn outlives(&mut self, key: (i64, u64), due: Due) -> Result<(), String> {
        match due {
            // A write that was on its way may or may not have reached the disk; whole batches, never parts.
            Due::Stored(batch) => {
                if self.chance.percent(50) {
                    self.write(batch)?;
                }
            }
            // What its own hands were at is done or not; in either case nobody says so.
            Due::Acts { assignment } => {
                if self.chance.percent(40) {
                    self.carries_out(&assignment)?;
                }
            }
            // A message that was already sent may be heard by the next one.
            Due::Answers { assignment, outcome } => {
                if self.chance.percent(30) {
                    let wait = self.soon(2_000);
                    self.at(wait, Due::Late { assignment, outcome: Some(Done::Task(outcome)) });
                }
            }
            Due::Told(_)
            | Due::Loaded(_)
            | Due::Alarm
            | Due::Heartbeat(_)
            | Due::Exited { .. }
            | Due::LooksAtRun(_)
            | Due::Looks(_)
            | Due::Merged(_) => {}
            Due::Performed { .. }
            | Due::Late { .. }
            | Due::Abandons { .. }
            | Due::Agent { .. }
            | Due::RunEnds { .. }
            | Due::Person
            | Due::Killed
            | Due::Starts
            | Due::WorkerLost { .. }
            | Due::WorkerJoins => drop(self.due.insert(key, due)),
        }
        Ok(())
    }
}

impl Due {
    /// The lasting worker, if that is who is at this.
    fn lasting_worker(&self) -> Option<u64> {
        match self {
            Due::Performed { assignment, who, .. }
                if assignment.worker.as_ref().is_some_and(|worker| worker.0.starts_with("lasting")) =>
            {
                Some(*who)
            }
            Due::Abandons { who, .. } => Some(*who),
            _ => None,
        }
    }
}
