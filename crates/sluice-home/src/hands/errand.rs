//! What may take its time, and may have to be tried again: on a thread of the hands, or in git's lane, while it is at work;
//! on none while it waits.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sluice_engine::host::Clock;

use crate::ground::Ground;
use crate::lane::Lane;
use crate::threads::Threads;
use crate::undone::Unavailable;

/// The wait after the first time that something was unavailable; doubled by each further one.
const FIRST: Duration = Duration::from_millis(100);
/// The longest such wait.
const LONGEST: Duration = Duration::from_secs(5);

/// Where something is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On a thread of the hands, for as long as it takes.
    Hands,
    /// Where git works: it waits for its turn, and for nobody who waits there too.
    Git {
        /// In which repository.
        repository: String,
        /// Who asks for it.
        asker: String,
    },
}

/// Why something is not over yet.
pub(crate) enum NotYet {
    /// It goes on elsewhere.
    On(Place),
    /// Its moment has not come.
    At(i64),
    /// It cannot be done now.
    Unavailable(Unavailable),
    /// It is under way, and somebody else will tell of its end.
    Told,
}

impl From<Unavailable> for NotYet {
    fn from(why: Unavailable) -> NotYet {
        NotYet::Unavailable(why)
    }
}

type Work = dyn FnMut(&Arc<Ground>, &Place) -> Result<(), NotYet> + Send;

/// Something to be done until it is over.
pub(crate) struct Errand {
    ground: Weak<Ground>,
    threads: Threads,
    lane: Lane,
    place: Place,
    /// What it is called in the log.
    name: String,
    /// How often in a row it was unavailable.
    tries: u32,
    work: Box<Work>,
}

impl Errand {
    /// Does something, and again when it could not be done. A home that is closed meanwhile is not waited for.
    pub(crate) fn run(
        ground: &Arc<Ground>,
        name: String,
        work: impl FnMut(&Arc<Ground>, &Place) -> Result<(), NotYet> + Send + 'static,
    ) {
        let (threads, lane) = (ground.threads.clone(), ground.lane.clone());
        let ground = Arc::downgrade(ground);
        Errand { ground, threads, lane, place: Place::Hands, name, tries: 0, work: Box::new(work) }.go();
    }

    fn go(self) {
        match self.place.clone() {
            Place::Hands => self.threads.clone().run(move || self.work()),
            Place::Git { repository, asker } => self.lane.clone().run(&repository, &asker, move || self.work()),
        }
    }

    fn work(mut self) {
        let Some(ground) = self.ground.upgrade() else { return };
        let at = match (self.work)(&ground, &self.place) {
            Ok(()) | Err(NotYet::Told) => return,
            Err(NotYet::On(place)) => {
                self.place = place;
                return self.go();
            }
            Err(NotYet::At(moment)) => moment,
            Err(NotYet::Unavailable(Unavailable(why))) => {
                if self.tries == 0 {
                    ground.log.line(&format!("{} waits, and is tried again: {why}", self.name));
                }
                let wait = FIRST.saturating_mul(1 << self.tries.min(10)).min(LONGEST);
                self.tries = self.tries.saturating_add(1);
                ground.clock.now().0.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
            }
        };
        let later = ground.later.clone();
        drop(ground);
        later.at(at, move || self.go());
    }
}
