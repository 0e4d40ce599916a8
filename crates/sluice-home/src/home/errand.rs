//! What may take its time, and may have to be tried again: on a thread of the pool, or in git's lane, while it is at work;
//! on none while it waits.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sluice_engine::host::EngineClock;

use crate::background::lane::{Lane, LaneTurn};
use crate::background::threads::ThreadPool;
use crate::home::Home;
use crate::undone::UnavailableReason;

/// The wait after the first time that something was unavailable; doubled by each further one.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ErrandPlace {
    /// On a thread of the pool, for as long as it takes.
    Pool,
    /// Where git works: it waits for its turn, and for nobody who waits there too.
    Git { repository: String, asker: String, turn: LaneTurn },
}

pub(crate) enum ErrandPending {
    On(ErrandPlace),
    /// Its moment has not come.
    At(i64),
    Unavailable(UnavailableReason),
    /// It is under way, and its end is told from elsewhere.
    Told,
}

impl From<UnavailableReason> for ErrandPending {
    fn from(why: UnavailableReason) -> ErrandPending {
        ErrandPending::Unavailable(why)
    }
}

type ErrandWork = dyn FnMut(&Arc<Home>, &ErrandPlace) -> Result<(), ErrandPending> + Send;

/// Something to be done until it is over.
pub(crate) struct Errand {
    home: Weak<Home>,
    threads: ThreadPool,
    lane: Lane,
    place: ErrandPlace,
    name: String,
    /// How often in a row it was unavailable.
    tries: u32,
    work: Box<ErrandWork>,
}

impl Errand {
    /// Does something, and again when it could not be done. A home that is closed meanwhile is not waited for.
    pub(crate) fn run(
        home: &Arc<Home>,
        name: String,
        work: impl FnMut(&Arc<Home>, &ErrandPlace) -> Result<(), ErrandPending> + Send + 'static,
    ) {
        let (threads, lane) = (home.threads.clone(), home.lane.clone());
        let home = Arc::downgrade(home);
        Errand { home, threads, lane, place: ErrandPlace::Pool, name, tries: 0, work: Box::new(work) }.go();
    }

    fn go(self) {
        match self.place.clone() {
            ErrandPlace::Pool => self.threads.clone().run(move || self.work()),
            ErrandPlace::Git { repository, asker, turn } => {
                self.lane.clone().run(&repository, &asker, turn, move || self.work());
            }
        }
    }

    fn work(mut self) {
        let Some(home) = self.home.upgrade() else { return };
        let at = match (self.work)(&home, &self.place) {
            Ok(()) | Err(ErrandPending::Told) => return,
            Err(ErrandPending::On(place)) => {
                self.place = place;
                return self.go();
            }
            Err(ErrandPending::At(moment)) => moment,
            Err(ErrandPending::Unavailable(UnavailableReason(why))) => {
                if self.tries == 0 {
                    tracing::warn!("{} waits, and is tried again: {why}", self.name);
                }
                let wait = FIRST.saturating_mul(1 << self.tries.min(10)).min(LONGEST);
                self.tries = self.tries.saturating_add(1);
                home.clock.now().0.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
            }
        };
        let later = home.later.clone();
        drop(home);
        later.at(at, move || self.go());
    }
}
