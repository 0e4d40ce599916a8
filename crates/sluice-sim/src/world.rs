//! A simulated life: things that are due at some time, one after the other, until there are none.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use sluice_core::artifact::Verdict;
use sluice_core::id::RunId;
use sluice_core::task::input::TaskEffectOutcome;
use sluice_core::task::session::SessionNumber;
use sluice_core::task::state::{WorkSnapshot, WorktreePath};
use sluice_engine::actor::{Actor, EffectOutcome};
use sluice_engine::codec::{run_state, task_state};
use sluice_engine::reactor::{Assignment, LoadedStream, ReactorMessage, ReactorToken};
use sluice_engine::run_actor::RunActor;
use sluice_engine::task_actor::TaskActor;
use sluice_engine::workers::WorkerId;
use sluice_store::memory::Memory;
use sluice_store::{Append, Reader, StoredStream, StreamId};

use crate::bug::SimBug;
use crate::chance::SimChance;
use crate::definitions;
use crate::disorder::DisorderedTask;
use crate::engine::{SimAppendResults, SimEngine};
use crate::ground::SimTaskWorld;
use crate::owning::SimHome;
use crate::silence::SilentRun;
use crate::watch::SimWatch;
use crate::work::LEASE;
use crate::works::SimWorks;

/// After this moment nothing bad happens any more, and everything must come to an end.
pub(crate) const CALM: i64 = 120_000;
/// A life that takes more steps than this goes in circles.
const MOST_STEPS: usize = 20_000;

/// What went wrong, and the life up to there.
#[derive(Debug)]
pub struct SimFailure {
    pub seed: u64,
    /// Which promise was broken, and how.
    pub what: String,
    /// What happened, a line for each step.
    pub script: String,
}

pub(crate) enum SimEvent {
    /// The store takes a batch. It may have taken it before; it may be on the wire, whatever becomes of who sent it.
    Stored { batch: Vec<Append>, doubt: bool, sent: bool },
    /// The engine hears of it.
    Told(SimAppendResults),
    /// A stream has been read.
    Loaded(StreamId),
    /// The engine asks for another term of its ownership.
    Renews,
    /// The store hears that; it was asked then.
    Owns { asked: i64, sent: bool },
    /// The engine hears the answer: the number of the ownership, unless the store is another's.
    Owned { asked: i64, epoch: Option<u64> },
    /// The time of what a home has started is over, unless it was given more.
    Deadline(usize),
    /// An effect that could not be begun is begun after all.
    Begins(Assignment),
    /// What a run wants done beside its steps is done.
    Does(Assignment),
    /// A performance of a home comes to its end by itself.
    Works { home: usize, stream: StreamId, effect: String, who: u64 },
    /// The engine's hands know how something ended.
    Reports { assignment: Assignment, outcome: EffectOutcome },
    /// The lasting worker is done with a step of a run, or tells once more how it ended, because no answer came.
    Performed { assignment: Assignment, who: u64, outcome: Option<EffectOutcome> },
    /// What a task wants done is done to the world.
    Acts { assignment: Assignment },
    /// And the engine hears of it.
    Answers { assignment: Assignment, outcome: TaskEffectOutcome },
    /// The answer of a worker that was cut off arrives after all. Of a step, whoever did it makes it up then.
    Late { assignment: Assignment, outcome: Option<EffectOutcome> },
    /// A worker that was cut off stops, because no engine renews the lease.
    Abandons { stream: StreamId, effect: String, who: u64 },
    /// The lasting worker dies, or is cut off from the engine.
    WorkerLost { dies: bool },
    /// Another takes its place.
    WorkerJoins,
    /// A worker gives a sign of life.
    Heartbeat(WorkerId),
    /// An agent does the next thing, unless it has been spoken to since.
    Agent { stream: StreamId, session: SessionNumber, stir: u64 },
    /// The engine is told that an agent's process has ended.
    Exited { stream: StreamId, session: SessionNumber },
    /// The run of a task's state comes to its end.
    RunEnds { stream: StreamId, run: RunId },
    /// The engine looks whether the run of a task's state has ended.
    LooksAtRun(StreamId),
    /// An engine that has just started looks what became of a task's sessions.
    Looks(StreamId),
    /// A person has merged a branch.
    Merged(StreamId),
    /// A caller waits no longer for the answer.
    GivesUp(ReactorToken),
    /// A person does something.
    Person,
    /// The process of an engine is killed.
    Killed(usize),
    /// It is started again.
    Starts(usize),
    /// A signal stops it for a while.
    Stops(usize, i64),
    /// It cannot reach the store for a while.
    Cuts(usize, i64),
    /// Its wall's clock is set.
    Jumps(usize, i64),
    /// A timer of the engine.
    Alarm,
}

impl SimEvent {
    /// Whether this is part of an engine's process, and ends with it.
    fn is_of_a_process(&self) -> bool {
        match self {
            SimEvent::Stored { .. }
            | SimEvent::Told(_)
            | SimEvent::Loaded(_)
            | SimEvent::Renews
            | SimEvent::Owns { .. }
            | SimEvent::Owned { .. }
            | SimEvent::Begins(_)
            | SimEvent::Does(_)
            | SimEvent::Reports { .. }
            | SimEvent::Acts { .. }
            | SimEvent::Answers { .. }
            | SimEvent::Exited { .. }
            | SimEvent::LooksAtRun(_)
            | SimEvent::Looks(_)
            | SimEvent::Merged(_)
            | SimEvent::GivesUp(_)
            | SimEvent::Alarm => true,
            SimEvent::Deadline(_)
            | SimEvent::Works { .. }
            | SimEvent::Performed { .. }
            | SimEvent::Late { .. }
            | SimEvent::Abandons { .. }
            | SimEvent::WorkerLost { .. }
            | SimEvent::WorkerJoins
            | SimEvent::Heartbeat(_)
            | SimEvent::Agent { .. }
            | SimEvent::RunEnds { .. }
            | SimEvent::Person
            | SimEvent::Killed(_)
            | SimEvent::Starts(_)
            | SimEvent::Stops(..)
            | SimEvent::Cuts(..)
            | SimEvent::Jumps(..) => false,
        }
    }

    /// Whether it goes on by itself, and so does not keep a life going.
    fn is_routine(&self) -> bool {
        matches!(
            self,
            SimEvent::Heartbeat(_)
                | SimEvent::Renews
                | SimEvent::Owns { .. }
                | SimEvent::Owned { .. }
                | SimEvent::Deadline(_)
        )
    }

    /// Whether it has left the process.
    fn is_on_the_wire(&self) -> bool {
        matches!(self, SimEvent::Stored { sent: true, .. } | SimEvent::Owns { sent: true, .. })
    }
}

pub(crate) enum SimRequest {
    /// Whether a task or run begins, and the workspace that is kept free for it until that is known.
    Begins(StreamId, Option<WorktreePath>),
    /// The same of a task that is there already.
    Goes(Option<WorktreePath>),
    /// Whether a task leaves its worktree to another.
    Lends,
    /// What becomes of words to a run.
    Hears(StreamId),
    /// Whether a task may be merged.
    MayMerge(StreamId, Option<(RunId, WorkSnapshot)>),
    /// Whether an agent's task moves; it goes on when it knows.
    Moves { stream: StreamId, session: SessionNumber, stir: u64, verdict: Option<Verdict> },
    /// Whether the work of a lasting worker counts. Without an answer it is told again.
    Counts(Box<SimWorkerReport>),
}

pub(crate) struct SimWorkerReport {
    pub(crate) assignment: Assignment,
    pub(crate) who: u64,
    pub(crate) outcome: EffectOutcome,
}

pub struct SimLife {
    pub(crate) chance: SimChance,
    pub(crate) bug: Option<SimBug>,
    pub(crate) now: i64,
    /// The same, for the store.
    time: Arc<AtomicI64>,
    /// What is due, and which engine's process it is part of.
    pub(crate) due: BTreeMap<(i64, u64), (Option<usize>, SimEvent)>,
    pub(crate) number: u64,
    /// One, or two that want the same store.
    pub(crate) engines: Vec<SimEngine>,
    /// What has been started by each of them, and until when it may go on.
    pub(crate) homes: Vec<SimHome>,
    /// The engine at hand.
    pub(crate) here: usize,
    /// The newest ownership of the store.
    pub(crate) epoch: u64,
    pub(crate) store: Memory,
    pub(crate) reader: Box<dyn Reader>,
    pub(crate) watch: SimWatch,
    pub(crate) ground: SimTaskWorld,
    pub(crate) works: SimWorks,
    pub(crate) performances: u64,
    /// The lasting worker of now: a new one has a new name.
    pub(crate) lasting: u64,
    /// How often people had to help each task on after everything had come to rest.
    pub(crate) helped: BTreeMap<StreamId, u32>,
    /// How often an engine may still be killed in the middle of something.
    pub(crate) perils: u64,
    script: String,
}

impl SimLife {
    /// Lives one life, and says how many steps it took. The error is the promise that was broken.
    pub fn live(seed: u64, bug: Option<SimBug>) -> Result<usize, SimFailure> {
        SimLife::tell(seed, bug).map(|(steps, _)| steps)
    }

    /// Lives one life, and says how many steps it took and what happened in it, a line for each step.
    pub fn tell(seed: u64, bug: Option<SimBug>) -> Result<(usize, String), SimFailure> {
        let time = Arc::new(AtomicI64::new(0));
        let clock = time.clone();
        let store = Memory::timed(Arc::new(move || clock.load(Ordering::Relaxed)));
        let mut chance = SimChance::new(seed);
        let names: &[&str] = match (chance.percent(50), bug) {
            (false, _) => &["one"],
            (true, Some(SimBug::SharesItsName)) => &["one", "one"],
            (true, _) => &["one", "other"],
        };
        let mut life = SimLife {
            chance,
            bug,
            now: 0,
            time,
            due: BTreeMap::new(),
            number: 0,
            engines: names.iter().map(|name| SimEngine::new(name, &store)).collect(),
            homes: names.iter().map(|_| SimHome::default()).collect(),
            here: 0,
            epoch: 0,
            reader: Box::new(store.reader()),
            store,
            watch: SimWatch::default(),
            ground: SimTaskWorld::default(),
            works: SimWorks::default(),
            performances: 0,
            lasting: 1,
            helped: BTreeMap::new(),
            perils: 0,
            script: String::new(),
        };
        match life.live_on() {
            Ok(steps) => Ok((steps, life.script)),
            Err(what) => Err(SimFailure { seed, what, script: life.script }),
        }
    }

    pub(crate) fn note(&mut self, line: &str) {
        let who = if self.engines.len() > 1 { self.engines[self.here].name } else { "" };
        let _ = writeln!(self.script, "{:>7} {who} {line}", self.now);
    }

    pub(crate) fn at(&mut self, wait: i64, due: SimEvent) {
        self.number += 1;
        let whose = due.is_of_a_process().then_some(self.here);
        self.due.insert((self.now + wait, self.number), (whose, due));
    }

    pub(crate) fn soon(&mut self, most: u64) -> i64 {
        i64::try_from(self.chance.below(most)).unwrap_or(0)
    }

    /// Whether anything is to come but what goes on by itself.
    pub(crate) fn goes_on(&self) -> bool {
        self.due.values().any(|(_, due)| !due.is_routine())
    }

    fn live_on(&mut self) -> Result<usize, String> {
        self.comes_to_life()?;
        let mut steps = 0;
        while let Some(((at, number), (whose, due))) = self.due.pop_first() {
            self.now = at;
            self.time.store(at, Ordering::Relaxed);
            steps += 1;
            if steps > MOST_STEPS {
                return Err("it goes in circles".into());
            }
            match whose.filter(|place| self.is_stopped(*place) && !due.is_on_the_wire()) {
                Some(place) => {
                    let until = self.engines[place].stopped_until;
                    self.due.insert((until, number), (whose, due));
                    continue;
                }
                None => self.happens(whose, due)?,
            }
            self.act()?;
            if steps % 16 == 0 {
                self.watch.look(self.reader.as_mut())?;
            }
            if !self.goes_on() && !self.rests()? {
                break;
            }
        }
        self.watch.look(self.reader.as_mut())?;
        self.watch.look_at_the_end(self.reader.as_mut())?;
        self.is_quiet()?;
        Ok(steps)
    }

    /// What is going to happen in this life, as far as it is known beforehand.
    fn comes_to_life(&mut self) -> Result<(), String> {
        self.starts(0)?;
        if self.engines.len() > 1 {
            let wait = self.soon(30_000);
            self.at(wait, SimEvent::Starts(1));
        }
        self.perils = self.chance.below(6);
        for _ in 0..=self.chance.below(5) {
            let wait = self.soon(3_000);
            self.at(wait, SimEvent::Person);
        }
        for _ in 0..self.chance.below(6) {
            let (wait, place) = (self.soon(60_000), self.some_engine());
            self.at(wait, SimEvent::Killed(place));
        }
        for _ in 0..self.chance.below(10) {
            let wait = self.soon(90_000);
            self.at(wait, SimEvent::Person);
        }
        for _ in 0..self.chance.below(3) {
            let (wait, dies) = (self.soon(60_000), self.chance.percent(50));
            self.at(wait, SimEvent::WorkerLost { dies });
        }
        self.perils_of_time();
        self.act()
    }

    /// The world has come to rest, and its workers with it. People help on whatever waits for them. Whether that may
    /// change anything.
    fn rests(&mut self) -> Result<bool, String> {
        self.here = self.serving();
        self.wakes_up();
        if !self.is_heard() || !self.may_act() {
            return Ok(true);
        }
        self.act()?;
        if self.goes_on() {
            return Ok(true);
        }
        self.watch.at_rest(&self.ground)?;
        let is_helped = self.answer_somebody() || self.help_somebody()?;
        self.act()?;
        Ok(is_helped)
    }

    fn happens(&mut self, whose: Option<usize>, due: SimEvent) -> Result<(), String> {
        self.here = whose.unwrap_or_else(|| self.serving());
        self.wakes_up();
        match due {
            SimEvent::Stored { batch, doubt, .. } => self.stored(batch, doubt)?,
            SimEvent::Told(results) => self.hear(ReactorMessage::Committed(results)),
            SimEvent::Loaded(stream) => self.loaded(stream)?,
            SimEvent::Renews => self.renews(),
            SimEvent::Owns { asked, .. } => self.owns(asked)?,
            SimEvent::Owned { asked, epoch } => self.owned(asked, epoch)?,
            SimEvent::Deadline(home) => self.deadline(home),
            SimEvent::Begins(assignment) => self.begins(assignment)?,
            SimEvent::Does(assignment) => self.does(assignment)?,
            SimEvent::Works { home, stream, effect, who } => self.work_ends(home, &stream, &effect, who),
            SimEvent::Reports { assignment, outcome } => self.reports(&assignment, &outcome)?,
            // Whoever has something to report tries until somebody hears it.
            SimEvent::Performed { .. } | SimEvent::Late { .. } | SimEvent::RunEnds { .. } if !self.is_heard() => {
                self.at(500, due)
            }
            SimEvent::Performed { assignment, who, outcome } => self.performed(assignment, who, outcome),
            SimEvent::Acts { assignment } => self.acts(assignment)?,
            SimEvent::Answers { assignment, outcome } => self.answers(&assignment, outcome)?,
            SimEvent::Late { assignment, outcome } => self.late(assignment, outcome),
            SimEvent::Abandons { stream, effect, who } => self.watch.ends(&stream, &effect, who),
            SimEvent::WorkerLost { dies } => self.worker_lost(dies),
            SimEvent::WorkerJoins => self.join_lasting(),
            SimEvent::Heartbeat(worker) => self.heartbeat(worker),
            SimEvent::Agent { stream, session, stir } => self.agent(&stream, session, stir),
            SimEvent::Exited { stream, session } => self.exited(&stream, session),
            SimEvent::RunEnds { stream, run } => self.run_ends(stream, run)?,
            SimEvent::LooksAtRun(stream) => self.looks_at_run(&stream),
            SimEvent::Looks(stream) => self.looks(&stream),
            SimEvent::Merged(stream) => self.merged(stream),
            SimEvent::GivesUp(token) => self.gives_up(token)?,
            SimEvent::Person => self.person(),
            SimEvent::Killed(place) => self.killed(place)?,
            SimEvent::Starts(place) => self.starts(place)?,
            SimEvent::Stops(place, time) => self.stops(place, time),
            SimEvent::Cuts(place, time) => self.cuts(place, time),
            SimEvent::Jumps(place, by) => self.jumps(place, by),
            SimEvent::Alarm => {
                let now = self.moment();
                self.engine().reactor.wake(now);
            }
        }
        Ok(())
    }

    fn heartbeat(&mut self, worker: WorkerId) {
        if self.is_heard() {
            let at = self.at_hand(&worker);
            self.hear(ReactorMessage::Heard { worker: worker.clone(), at });
        }
        if worker == self.lasting_name() {
            self.at(LEASE / 3, SimEvent::Heartbeat(worker));
        }
    }

    pub(crate) fn load(&mut self, stream: &StreamId) -> Result<Option<LoadedStream>, String> {
        let Some(stored) = self.reader.load(stream).map_err(|error| error.to_string())? else { return Ok(None) };
        let actor = self.actor(&stored)?;
        let timers = if self.bug == Some(SimBug::ForgetsTimers) { Vec::new() } else { stored.timers };
        Ok(Some(LoadedStream { actor, version: stored.version, effects: stored.effects, timers }))
    }

    fn actor(&self, stored: &StoredStream) -> Result<Box<dyn Actor>, String> {
        if stored.header.card.kind != TaskActor::KIND {
            let digest = run_state::definition_of(&stored.header.data).map_err(|error| error.to_string())?;
            let plan = definitions::plan(&digest)?.clone();
            return Ok(self.run(RunActor::restore(plan, stored).map_err(|error| error.to_string())?));
        }
        let digest = task_state::definition_of(&stored.header.data).map_err(|error| error.to_string())?;
        let lifecycle = definitions::lifecycle(&digest)?.clone();
        let actor = TaskActor::restore(lifecycle, stored).map_err(|error| error.to_string())?;
        match self.bug {
            Some(SimBug::ForgetsTheOrder) => Ok(Box::new(DisorderedTask::new(actor, stored))),
            _ => Ok(Box::new(actor)),
        }
    }

    pub(crate) fn run(&self, actor: RunActor) -> Box<dyn Actor> {
        match self.bug {
            Some(SimBug::SettlesWithoutReport) => Box::new(SilentRun { actor }),
            _ => Box::new(actor),
        }
    }
}
