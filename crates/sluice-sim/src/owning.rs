//! Who owns the store in a simulated life. An engine asks for its terms, and acts in none but its own; what a home has
//! started is paused when its time is over, by somebody who needs no engine for that, and goes on or ends when it is
//! known whether the store has been another's meanwhile.

use std::time::Duration;

use sluice_engine::ownership::Tenure;
use sluice_engine::reactor::{Reactor, ReactorMessage};
use sluice_store::StoreError;

use crate::bug::SimBug;
use crate::world::{CALM, SimEvent, SimLife};

/// How long the store stays an engine's own without a sign of life.
const TERM: Duration = Duration::from_secs(6);

/// What an engine has started outlives it. Until when it may go on stands beside it.
#[derive(Default)]
pub(crate) struct SimHome {
    until: i64,
    pub(crate) is_paused: bool,
}

impl SimLife {
    fn is_shared(&self) -> bool {
        self.engines.len() > 1
    }

    fn ticks(&self) -> u64 {
        u64::try_from(self.now).unwrap_or(0)
    }

    /// Whether the engine at hand may act, as far as it knows.
    pub(crate) fn may_act(&self) -> bool {
        let tenure = self.engines[self.here].tenure;
        let is_fenced = self.is_shared() && self.bug != Some(SimBug::ActsWithoutOwnership);
        tenure.is_some_and(|tenure| !is_fenced || tenure.may_act(self.ticks()))
    }

    /// Whether the store is this engine's, whatever it believes.
    pub(crate) fn is_owner(&self, place: usize) -> bool {
        self.engines[place].epoch() == self.epoch
    }

    /// The engine that people and workers find: the one that took the store last, of those that run.
    pub(crate) fn serving(&self) -> usize {
        (0..self.engines.len()).max_by_key(|place| self.engines[*place].epoch()).unwrap_or(0)
    }

    pub(crate) fn is_heard(&self) -> bool {
        !self.engines[self.here].is_down() && !self.is_stopped(self.here)
    }

    /// An engine is started. It takes the store, or ends at once because that is another's.
    pub(crate) fn starts(&mut self, place: usize) -> Result<(), String> {
        self.here = place;
        if !self.engine().is_down() {
            return Ok(());
        }
        if self.now > 0 && self.reads_in_vain() {
            let wait = 200 + self.soon(1_000);
            self.at(wait, SimEvent::Starts(place));
            return Ok(());
        }
        let (name, mut writer) = (self.engine().name, Box::new(self.store.writer()));
        let ownership = match sluice_store::Writer::own(writer.as_mut(), name, TERM) {
            Ok(ownership) => ownership,
            Err(StoreError::Owned { .. }) => {
                if !self.has(SimBug::AdoptsWhatWasAnothers) {
                    self.ends_what_it_started(place);
                }
                let wait = 500 + self.soon(3_000);
                if self.now < CALM {
                    self.at(wait, SimEvent::Starts(place));
                }
                return Ok(());
            }
            Err(error) => return Err(error.to_string()),
        };
        self.note("starts");
        let was_mine = ownership.before.as_deref() == Some(name);
        if !was_mine && self.bug != Some(SimBug::AdoptsWhatWasAnothers) {
            self.ends_what_it_started(place);
        }
        let tenure = Tenure::taken(ownership.epoch, self.ticks(), TERM);
        self.epoch = ownership.epoch;
        let engine = self.engine();
        engine.writer = writer;
        engine.tenure = Some(tenure);
        engine.began = engine.wall;
        engine.reactor = Reactor::new(ownership.epoch);
        self.has_a_term(&tenure)?;
        self.join_workers();
        self.takes_up()?;
        self.act()
    }

    fn takes_up(&mut self) -> Result<(), String> {
        if self.bug == Some(SimBug::SkipsRecovery) {
            return Ok(());
        }
        let streams = self.reader.open_streams(None, 10_000).map_err(|error| error.to_string())?;
        for stream in streams {
            let found = self.load(&stream)?;
            if self.watch.tasks.contains_key(&stream) {
                let wait = self.soon(1_000);
                self.at(wait, SimEvent::Looks(stream.clone()));
            }
            self.hear(ReactorMessage::Loaded { stream, found });
        }
        Ok(())
    }

    /// Until when what the engine at hand has started may go on.
    fn has_a_term(&mut self, tenure: &Tenure) -> Result<(), String> {
        if !self.is_shared() {
            return Ok(());
        }
        let until = i64::try_from(tenure.until_ms()).unwrap_or(0);
        let (here, wait) = (self.here, (until - self.now).max(0));
        self.homes[here].until = until;
        self.at(wait, SimEvent::Deadline(here));
        let ask_at = i64::try_from(tenure.ask_at_ms()).unwrap_or(0);
        self.renews_soon((ask_at - self.now).max(0));
        if until > self.now && std::mem::take(&mut self.homes[here].is_paused) {
            self.resumes_work(here)?;
        }
        Ok(())
    }

    pub(crate) fn renews_soon(&mut self, wait: i64) {
        let here = self.here;
        let asks = |whose: Option<usize>, due: &SimEvent| {
            whose == Some(here) && matches!(due, SimEvent::Renews | SimEvent::Owns { .. } | SimEvent::Owned { .. })
        };
        if self.is_shared() && !self.due.values().any(|(whose, due)| asks(*whose, due)) {
            self.at(wait, SimEvent::Renews);
        }
    }

    pub(crate) fn renews(&mut self) {
        let (asked, wait, sent) = (self.now, self.soon(50), self.chance.percent(70));
        self.at(wait, SimEvent::Owns { asked, sent });
    }

    /// The store is asked for another term. It counts from when it hears that, the engine from when it asked.
    pub(crate) fn owns(&mut self, asked: i64) -> Result<(), String> {
        let (was_asked, is_heard) = (self.chance.percent(50), !self.reads_in_vain());
        if !is_heard && !was_asked {
            self.renews_soon(200);
            return Ok(());
        }
        let name = self.engine().name;
        let epoch = match self.engine().writer.own(name, TERM) {
            Ok(ownership) => Some(ownership.epoch),
            Err(StoreError::LostOwnership | StoreError::Owned { .. }) => None,
            Err(error) => return Err(error.to_string()),
        };
        match is_heard {
            true => {
                let wait = self.soon(20);
                self.at(wait, SimEvent::Owned { asked, epoch });
            }
            false => self.renews_soon(200),
        }
        Ok(())
    }

    pub(crate) fn owned(&mut self, asked: i64, epoch: Option<u64>) -> Result<(), String> {
        let asked = u64::try_from(asked).unwrap_or(0);
        let Some(mut tenure) = self.engine().tenure else { return Ok(()) };
        let kept = epoch.is_some_and(|epoch| tenure.renewed(epoch, asked).is_ok());
        if !kept {
            return self.loses_the_store();
        }
        self.engine().tenure = Some(tenure);
        self.has_a_term(&tenure)
    }

    /// The store is another's. What the engine remembers counts no more, and what it has started is to end.
    pub(crate) fn loses_the_store(&mut self) -> Result<(), String> {
        self.note("the store is another's");
        let here = self.here;
        if self.bug == Some(SimBug::KeepsOldMemory) {
            return self.owns_again();
        }
        self.ends_what_it_started(here);
        self.process_ends(here)?;
        let wait = self.soon(8_000);
        self.at(wait, SimEvent::Starts(here));
        Ok(())
    }

    /// An engine that takes the store as if it had been its own all the time.
    fn owns_again(&mut self) -> Result<(), String> {
        let (name, mut writer) = (self.engine().name, Box::new(self.store.writer()));
        let Ok(ownership) = sluice_store::Writer::own(writer.as_mut(), name, TERM) else {
            self.renews_soon(200);
            return Ok(());
        };
        let tenure = Tenure::taken(ownership.epoch, self.ticks(), TERM);
        self.epoch = ownership.epoch;
        self.engine().writer = writer;
        self.engine().tenure = Some(tenure);
        self.has_a_term(&tenure)
    }

    /// Nobody has given what a home has started more time: it is paused. Nobody but the home is needed for that.
    pub(crate) fn deadline(&mut self, home: usize) {
        let place = &self.homes[home];
        if self.now < place.until || place.is_paused || self.bug == Some(SimBug::LeavesWorkRunning) {
            return;
        }
        self.here = home;
        self.note("what it has started is paused");
        self.homes[home].is_paused = true;
        self.pauses_work(home);
    }
}
