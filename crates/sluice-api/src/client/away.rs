//! An engine that goes away: who follows it waits for the next one, and goes on there from where it was.

use std::sync::PoisonError;
use std::thread::park_timeout;
use std::time::{Duration, Instant};

use super::silence::TELL;
use super::{Client, GONE};
use crate::problem::Problem;

/// How long an engine that is away is left alone before it is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// An engine that leaves its caller sooner than this has been of no use.
const SHORT: Duration = Duration::from_secs(5);
/// So many engines of no use in a row are enough: what is asked for ends them, or cannot be answered.
const MOST_SHORT: u32 = 10;

/// How long a caller waits for the next engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineAbsence {
    /// As long as it takes.
    Endless,
    /// Five minutes, but not after this moment if there is one: a restart takes seconds, that of a machine a few minutes.
    Bounded(Option<Instant>),
}

/// How long an engine may be away for a caller that does not wait without end.
const LONGEST: Duration = Duration::from_secs(300);

impl EngineAbsence {
    /// The moment at which the engine has been away for too long, if it goes away now.
    fn over_at(self) -> Option<Instant> {
        match self {
            EngineAbsence::Endless => None,
            EngineAbsence::Bounded(until) => {
                let longest = Instant::now() + LONGEST;
                Some(until.map_or(longest, |until| until.min(longest)))
            }
        }
    }
}

impl Client {
    /// Does something that takes as long as an engine runs, and does it with the next engine when this one goes away. `with` goes
    /// on from where it was. It starts no engine: a person may have ended the one that runs. The caller has had an answer of
    /// it before, for an engine that was never there is not waited for.
    pub fn with_engines<T>(
        &self,
        absence: EngineAbsence,
        mut with: impl FnMut() -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut short = 0;
        loop {
            let began = Instant::now();
            let problem = match with() {
                Err(problem) if is_away(&problem) => problem,
                ended => return ended,
            };
            short = if began.elapsed() < SHORT { short + 1 } else { 0 };
            if short > MOST_SHORT {
                return Err(problem);
            }
            self.tell(&format!("engine away: waiting for the next one at {}", self.address.place));
            let over = absence.over_at();
            loop {
                let left = over.map_or(AGAIN, |over| over.saturating_duration_since(Instant::now()).min(AGAIN));
                if left.is_zero() {
                    return Err(problem);
                }
                park_timeout(left);
                match self.health() {
                    Err(away) if is_away(&away) => {}
                    Err(other) => return Err(other),
                    Ok(_) => break,
                }
            }
        }
    }

    /// Tells the person who waits.
    pub(super) fn tell(&self, words: &str) {
        let tell = *TELL.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tell) = tell {
            tell(words);
        }
    }
}

/// One that is there and does not answer has been waited for by then.
fn is_away(problem: &Problem) -> bool {
    problem.code == GONE
}
