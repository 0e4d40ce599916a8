//! Where git works for the engine: few at a time, and in turn for each asker.
//!
//! A run that opens thousands of tasks asks for thousands of things of one repository. They wait here without a thread, and
//! neither the machine nor the worktree of another run waits behind them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use crate::background::locked;
use crate::background::threads::ThreadPool;

/// So many are at work in one repository: git has one at a time do what changes it.
const MOST_IN_ONE: usize = 2;
/// So many are at work at least, however few cores there are: one repository does not take all places.
const LEAST: usize = 2 * MOST_IN_ONE;

type LaneWork = Box<dyn FnOnce() + Send>;

/// When it is an asker's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneTurn {
    /// After those that asked before.
    InLine,
    /// Before all that wait: it gives back what the others ask for.
    Next,
}

/// What waits is looked for by its repository: to find what is next costs the same however much waits in one that is full.
#[derive(Default)]
struct LaneState {
    /// What each asker wants done.
    waiting: BTreeMap<String, VecDeque<LaneWork>>,
    /// Whose turn it is next in each repository, of those that wait, by the number of the turn.
    turns: BTreeMap<String, BTreeMap<i64, String>>,
    /// The turns before all others and after them that have been given.
    first: i64,
    last: i64,
    at_work: BTreeMap<String, usize>,
}

impl LaneState {
    fn is_full(&self, repository: &str) -> bool {
        self.at_work.get(repository).is_some_and(|at_work| *at_work >= MOST_IN_ONE)
    }

    /// What is done next, if there is a place for it, and in which repository.
    fn next(&mut self, most: usize) -> Option<(String, LaneWork)> {
        if self.at_work.values().sum::<usize>() >= most {
            return None;
        }
        let with_place = self.turns.iter().filter(|(repository, _)| !self.is_full(repository));
        let turns = with_place.filter_map(|(repository, turns)| Some((*turns.keys().next()?, repository)));
        let (turn, repository) = turns.min().map(|(turn, repository)| (turn, repository.clone()))?;
        let turns = self.turns.get_mut(&repository)?;
        let asker = turns.remove(&turn)?;
        if turns.is_empty() {
            self.turns.remove(&repository);
        }
        let asked = self.waiting.get_mut(&asker)?;
        let work = asked.pop_front()?;
        if asked.is_empty() {
            self.waiting.remove(&asker);
        } else {
            self.line_up(&repository, asker, LaneTurn::InLine);
        }
        *self.at_work.entry(repository.clone()).or_default() += 1;
        Some((repository, work))
    }

    fn line_up(&mut self, repository: &str, asker: String, turn: LaneTurn) {
        let number = match turn {
            LaneTurn::InLine => {
                self.last += 1;
                self.last
            }
            LaneTurn::Next => {
                self.first -= 1;
                self.first
            }
        };
        self.turns.entry(repository.to_owned()).or_default().insert(number, asker);
    }

    fn ended(&mut self, repository: &str) {
        if let Some(at_work) = self.at_work.get_mut(repository) {
            *at_work -= 1;
        }
        self.at_work.retain(|_, at_work| *at_work > 0);
    }
}

#[derive(Clone)]
pub(crate) struct Lane {
    state: Arc<Mutex<LaneState>>,
    threads: ThreadPool,
    most: usize,
}

impl Lane {
    /// As many places as the machine has cores, for threads that do nothing else.
    pub(crate) fn new(threads: ThreadPool) -> Lane {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Lane { state: Arc::default(), threads, most: cores.max(LEAST) }
    }

    /// Does something in a repository when it is the asker's turn. It must wait for nothing that is done here as well.
    pub(crate) fn run(&self, repository: &str, asker: &str, turn: LaneTurn, work: impl FnOnce() + Send + 'static) {
        let mut state = locked(&self.state);
        match state.waiting.get_mut(asker) {
            Some(asked) => asked.push_back(Box::new(work)),
            None => {
                state.waiting.insert(asker.to_owned(), VecDeque::from([Box::new(work) as LaneWork]));
                state.line_up(repository, asker.to_owned(), turn);
            }
        }
        // Otherwise the thread that ends next goes on with it.
        let has_place = !state.is_full(repository);
        drop(state);
        if has_place {
            self.go();
        }
    }

    fn go(&self) {
        loop {
            let Some((repository, work)) = locked(&self.state).next(self.most) else { return };
            let place = LaneSlot { lane: self.clone(), repository };
            self.threads.run(move || {
                let _place = place;
                work();
            });
        }
    }
}

/// A place that is taken; the next gets it when this is dropped, also by a panic.
struct LaneSlot {
    lane: Lane,
    repository: String,
}

impl Drop for LaneSlot {
    fn drop(&mut self) {
        locked(&self.lane.state).ended(&self.repository);
        self.lane.go();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::background::later::HomeTimer;
    use crate::settings::clock::WallClock;

    fn lane(most: usize) -> Lane {
        let later = HomeTimer::start(Arc::new(WallClock::default())).unwrap();
        Lane { most, ..Lane::new(ThreadPool::new(later)) }
    }

    /// Something that says its name when it begins, and ends when it is let go.
    fn asks(
        lane: &Lane,
        repository: &str,
        asker: &str,
        name: &'static str,
        begun: &Sender<&'static str>,
    ) -> Sender<()> {
        let (let_go, wait): (Sender<()>, Receiver<()>) = channel();
        let begun = begun.clone();
        lane.run(repository, asker, LaneTurn::InLine, move || {
            begun.send(name).unwrap();
            let _ = wait.recv();
        });
        let_go
    }

    #[test]
    fn few_are_at_work_in_one_repository_and_askers_take_turns() {
        let lane = lane(LEAST);
        let (begun, heard) = channel();
        let many: Vec<Sender<()>> =
            ["m0", "m1", "m2", "m3"].into_iter().map(|name| asks(&lane, "/a", "many", name, &begun)).collect();
        let one = asks(&lane, "/a", "one", "one", &begun);
        let other = asks(&lane, "/b", "other", "other", &begun);
        let mut first: Vec<&str> = (0..3).map(|_| heard.recv().unwrap()).collect();
        first.sort_unstable();
        assert_eq!(first, ["m0", "m1", "other"]);
        assert!(heard.try_recv().is_err());
        // `many` comes before `one` once more: it asked first. Then it is the turn of `one`.
        drop(many.into_iter().next());
        let mut then: Vec<&str> = (0..3).map(|_| heard.recv().unwrap()).collect();
        then.sort_unstable();
        assert_eq!(then, ["m2", "m3", "one"]);
        drop((one, other));
    }

    #[test]
    fn what_gives_back_is_next_and_the_rest_is_done_as_it_was_asked_for_in_whichever_repository() {
        let mut state = LaneState::default();
        let mut ask = |repository: &str, asker: &str, turn| {
            state.waiting.insert(asker.into(), VecDeque::from([Box::new(|| ()) as LaneWork]));
            state.line_up(repository, asker.into(), turn);
        };
        for (repository, asker) in [("/a", "1"), ("/b", "2"), ("/a", "3"), ("/c", "4")] {
            ask(repository, asker, LaneTurn::InLine);
        }
        ask("/a", "5", LaneTurn::Next);
        ask("/a", "6", LaneTurn::Next);
        let next = |state: &mut LaneState| state.next(100).map(|(repository, _)| repository);
        let order: Vec<String> = std::iter::from_fn(|| next(&mut state)).collect();
        assert_eq!(order, ["/a", "/a", "/b", "/c"], "and `/a` is full");
        state.ended("/a");
        state.ended("/a");
        assert_eq!(
            (next(&mut state), next(&mut state), next(&mut state)),
            (Some("/a".into()), Some("/a".into()), None)
        );
        assert!(state.waiting.is_empty() && state.turns.is_empty());
    }

    #[test]
    fn a_panic_takes_no_place_for_good() {
        let lane = lane(1);
        lane.run("/a", "first", LaneTurn::InLine, || panic!("on purpose"));
        let (begun, heard) = channel();
        drop(asks(&lane, "/a", "second", "second", &begun));
        assert_eq!(heard.recv().unwrap(), "second");
    }
}
