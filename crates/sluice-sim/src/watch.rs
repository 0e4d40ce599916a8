//! What was promised, looked at after every step of a simulated life: of every stream, and of runs. What is promised of
//! tasks stands in `tasks` (their logs) and `rest` (when everything has settled).

mod attention;
mod rest;
mod tasks;
mod timers;

use std::collections::{BTreeMap, BTreeSet};

use sluice_core::run::{RunEvent, RunState};
use sluice_engine::codec::{run_event, run_state};
use sluice_engine::task_actor::TaskActor;
use sluice_store::{Append, Reader, StoredStream, StreamId};

use crate::definitions;
use crate::threads::{SHORT, UNREACHED};
pub(crate) use tasks::TaskWatch;
use timers::SimTimer;

#[derive(Default)]
pub(crate) struct SimWatch {
    /// What is being done right now: by stream and step or item, who does it.
    doing: BTreeMap<(StreamId, String), (u64, String)>,
    /// Effects whose result is durable.
    done: BTreeSet<(StreamId, String)>,
    /// Those of them that ended with their run: what is at them still is yet to be told.
    ended_with_run: BTreeSet<(StreamId, String)>,
    settled: BTreeSet<(StreamId, String)>,
    /// What a caller was told exists, and whatever else was ever stored.
    promised: BTreeSet<StreamId>,
    /// What a caller was told does not begin.
    denied: BTreeSet<StreamId>,
    /// Which of them are stored.
    begun: BTreeSet<StreamId>,
    timers: BTreeMap<StreamId, BTreeMap<String, SimTimer>>,
    /// How many events of each stream were seen durable.
    seen: BTreeMap<StreamId, u64>,
    pub(crate) tasks: BTreeMap<StreamId, TaskWatch>,
    /// What was asked of each task, and by whom, and has led to no move yet.
    asked: BTreeMap<(StreamId, String), u64>,
}

#[derive(Clone, Copy)]
pub(crate) struct SimCommitSource {
    pub(crate) now: i64,
    /// How far the clock of who stored it was ahead.
    pub(crate) ahead: i64,
    pub(crate) place: usize,
    /// Which of its processes.
    pub(crate) epoch: u64,
}

/// The thing that must not be done twice at once: a step, or an item of one, whichever attempt.
pub(crate) fn thing(effect: &str) -> String {
    let mut parts = effect.splitn(3, '.');
    let (step, _, part) = (parts.next().unwrap_or_default(), parts.next(), parts.next().unwrap_or_default());
    if part.starts_with("item") { format!("{step} {part}") } else { step.to_owned() }
}

impl SimWatch {
    pub(crate) fn begins(&mut self, stream: &StreamId, effect: &str, who: u64) -> Result<(), String> {
        if self.done.contains(&(stream.clone(), effect.to_owned())) {
            return Err(format!("{stream}: {effect} is done again, although its result was stored"));
        }
        self.is_at(stream, effect, who)
    }

    /// What was paused goes on. Its run may have ended meanwhile, and its engine may not have heard that this is stored; a result
    /// of its own it cannot have.
    pub(crate) fn resumes(&mut self, stream: &StreamId, effect: &str, who: u64) -> Result<(), String> {
        match self.ended_with_run.contains(&(stream.clone(), effect.to_owned())) {
            true => self.is_at(stream, effect, who),
            false => self.begins(stream, effect, who),
        }
    }

    fn is_at(&mut self, stream: &StreamId, effect: &str, who: u64) -> Result<(), String> {
        let key = (stream.clone(), thing(effect));
        match self.doing.insert(key, (who, effect.to_owned())) {
            Some((other, _)) if other != who => Err(format!("{stream}: {effect} is done by {other} and {who} at once")),
            _ => Ok(()),
        }
    }

    pub(crate) fn ends(&mut self, stream: &StreamId, effect: &str, who: u64) {
        let key = (stream.clone(), thing(effect));
        if self.doing.get(&key).is_some_and(|(other, _)| *other == who) {
            self.doing.remove(&key);
        }
    }

    pub(crate) fn told(&mut self, stream: &StreamId) {
        self.promised.insert(stream.clone());
    }

    /// A caller was told that there is no such thing.
    pub(crate) fn is_not_there(&self, stream: &StreamId) -> Result<(), String> {
        match self.begun.contains(stream) {
            true => Err(format!("{stream} is there, and somebody was told that it is not")),
            false => Ok(()),
        }
    }

    /// A caller was told that this does not begin; and so it must never have.
    pub(crate) fn denied(&mut self, stream: &StreamId) -> Result<(), String> {
        self.denied.insert(stream.clone());
        match self.begun.contains(stream) {
            true => Err(format!("{stream} was answered with no, and is there")),
            false => Ok(()),
        }
    }

    /// An agent is found dead. That is told once; one that is wanted again is started again.
    pub(crate) fn found_dead(&mut self, stream: &StreamId, effect: &str) -> Result<(), String> {
        match self.settled.contains(&(stream.clone(), effect.to_owned())) {
            true => Err(format!("{stream}: {effect} is found dead once more, and was not started again")),
            false => Ok(()),
        }
    }

    /// An append is durable: its settled effects must never be done again, and unless the run ended with it nobody may
    /// still be at them, for then the answer came from somebody who had been given up.
    pub(crate) fn stored(&mut self, append: &Append, by: SimCommitSource) -> Result<(), String> {
        let stream = &append.stream;
        if self.begun.insert(stream.clone()) && self.denied.contains(stream) {
            return Err(format!("{stream} was answered with no, and begins"));
        }
        self.promised.insert(stream.clone());
        for why in [UNREACHED, SHORT] {
            let says_so = |data: &[u8]| data.windows(why.len()).any(|part| part == why.as_bytes());
            if append.events.iter().any(|event| says_so(&event.data)) {
                return Err(format!("{stream}: `{why}` is taken for an outcome"));
            }
        }
        if append.header.card.kind == TaskActor::KIND {
            return self.task_stored(append, by.place);
        }
        self.timers_stored(append, by)?;
        let ended = append.events.iter().any(|event| !append.header.card.open || event.kind == "run.cancelled");
        for effect in &append.settled {
            let at_it = self.doing.get(&(append.stream.clone(), thing(effect)));
            if let Some((who, _)) = at_it.filter(|(_, doing)| doing == effect && !ended) {
                return Err(format!("{}: {effect} is settled while {who} is still at it", append.stream));
            }
            self.done.insert((append.stream.clone(), effect.clone()));
            if ended {
                self.ended_with_run.insert((append.stream.clone(), effect.clone()));
            }
            self.settled.insert((append.stream.clone(), effect.clone()));
        }
        // A part that was lost is asked for again under the same id, in the same change that settles it.
        for effect in &append.effects {
            self.done.remove(&(append.stream.clone(), effect.id.clone()));
        }
        Ok(())
    }

    /// Looks at every stream: promised ones exist, logs only grow, and each log adds up to what is stored.
    pub(crate) fn look(&mut self, reader: &mut dyn Reader) -> Result<(), String> {
        for stream in &self.promised {
            let stored = reader.load(stream).map_err(|error| error.to_string())?;
            let Some(stored) = stored else { return Err(format!("{stream} was promised and is not there")) };
            let before = self.seen.insert(stream.clone(), stored.version).unwrap_or(0);
            if stored.version < before {
                return Err(format!("{stream} had {before} events and has {} now", stored.version));
            }
            if stored.version == before {
                continue;
            }
            let log = reader.history(stream, 0, usize::MAX >> 1).map_err(|error| error.to_string())?;
            let numbers: Vec<u64> = log.iter().map(|(number, _)| *number).collect();
            if numbers != (1..=stored.version).collect::<Vec<_>>() {
                return Err(format!("{stream}: the log has gaps or doubles: {numbers:?}"));
            }
            let log = log.into_iter().map(|(_, event)| event).filter(|event| !event.kind.starts_with("effect."));
            let adds_up = match self.tasks.get(stream) {
                Some(task) => task.adds_up(&stored, log)?,
                None => run_adds_up(&stored, log)?,
            };
            if !adds_up {
                return Err(format!("{stream}: the log does not add up to what is stored"));
            }
        }
        Ok(())
    }

    /// Looks at the end of a life in which everything was given time to end: nothing is stuck and nothing forgotten.
    pub(crate) fn look_at_the_end(&self, reader: &mut dyn Reader) -> Result<(), String> {
        for stream in &self.promised {
            let Some(stored) = reader.load(stream).map_err(|error| error.to_string())? else { continue };
            if let Some(task) = self.tasks.get(stream) {
                task.is_over(stream)?;
                continue;
            }
            let state = run_of(&stored)?;
            if state.end.is_none() && state.question().is_none() {
                return Err(format!("{stream} neither ended nor asks anybody: {:?}", state.under_way()));
            }
            if !stored.timers.is_empty() {
                return Err(format!("{stream} has ended, and these timers are left: {:?}", stored.timers));
            }
            if state.end.is_some() && !stored.effects.is_empty() {
                let left: Vec<&str> = stored.effects.iter().map(|open| open.effect.id.as_str()).collect();
                return Err(format!("{stream} has ended, and nobody has done {left:?}"));
            }
        }
        Ok(())
    }

    /// A process is gone, and with it everything its hands were at.
    pub(crate) fn killed(&mut self, place: usize) {
        self.tasks.values_mut().for_each(|task| task.killed(place));
    }

    pub(crate) fn runs(&self) -> Vec<StreamId> {
        self.promised.iter().filter(|stream| !self.tasks.contains_key(*stream)).cloned().collect()
    }

    pub(crate) fn promised_tasks(&self) -> Vec<StreamId> {
        self.promised.iter().filter(|stream| self.tasks.contains_key(*stream)).cloned().collect()
    }
}

pub(crate) fn run_of(stored: &StoredStream) -> Result<RunState, String> {
    let digest = run_state::definition_of(&stored.header.data).map_err(|error| error.to_string())?;
    run_state::read(definitions::plan(&digest)?, &stored.header.data, &stored.rows).map_err(|error| error.to_string())
}

fn run_adds_up(stored: &StoredStream, log: impl Iterator<Item = sluice_store::Event>) -> Result<bool, String> {
    let digest = run_state::definition_of(&stored.header.data).map_err(|error| error.to_string())?;
    let plan = definitions::plan(&digest)?;
    let mut folded: Option<RunState> = None;
    for event in log {
        let event = run_event::read(event.version, &event.data).map_err(|error| error.to_string())?;
        if let RunEvent::Started { given, at } = &event {
            folded = Some(RunState::new(plan, (**given).clone(), *at));
        }
        if let Some(state) = &mut folded {
            state.apply(plan, &event);
        }
    }
    Ok(folded == Some(run_of(stored)?))
}
