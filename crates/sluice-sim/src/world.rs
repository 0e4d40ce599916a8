//! A simulated life: things that are due at some time, one after the other, until there are none.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use sluice_core::artifact::Verdict;
use sluice_core::task::input::Outcome as Ended;
use sluice_core::task::session::SessionId;
use sluice_core::task::state::{Stood, WorkspaceName};
use sluice_engine::actor::{Actor, Outcome as Done};
use sluice_engine::codec::{run_state, task_state};
use sluice_engine::reactor::{Assignment, Found, Message, Token};
use sluice_engine::run_actor::RunActor;
use sluice_engine::task_actor::TaskActor;
use sluice_engine::workers::WorkerId;
use sluice_store::memory::Memory;
use sluice_store::{Append, Reader, Stored, StreamId};

use crate::bug::Bug;
use crate::chance::Chance;
use crate::definitions;
use crate::disorder::Disordered;
use crate::engine::{Engine, Results};
use crate::ground::Ground;
use crate::owning::Home;
use crate::silence::Silent;
use crate::watch::Watch;
use crate::work::LEASE;
use crate::works::Works;

/// After this moment nothing bad happens any more, and everything must come to an end.
pub(crate) const CALM: i64 = 120_000;
/// A life that takes more steps than this goes in circles.
const MOST_STEPS: usize = 20_000;

/// What went wrong, and the life up to there.
#[derive(Debug)]
pub struct Wrong {
    /// The seed to live it again.
    pub seed: u64,
    /// Which promise was broken, and how.
    pub what: String,
    /// What happened, a line for each step.
    pub script: String,
}

/// Something that happens when its time has come.
pub(crate) enum Due {
    /// The store takes a batch. It may have taken it before; it may be on the wire, whatever becomes of who sent it.
    Stored { batch: Vec<Append>, doubt: bool, sent: bool },
    /// The engine hears of it.
    Told(Results),
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
    Reports { assignment: Assignment, outcome: Done },
    /// The lasting worker is done with a step of a run, or tells once more how it ended, because nobody answered.
    Performed { assignment: Assignment, who: u64, outcome: Option<Done> },
    /// What a task wants done is done to the world.
    Acts { assignment: Assignment },
    /// And the engine hears of it.
    Answers { assignment: Assignment, outcome: Ended },
    /// The answer of somebody who was cut off arrives after all. Of a step, whoever did it makes it up then.
    Late { assignment: Assignment, outcome: Option<Done> },
    /// Somebody who was cut off stops, because nobody renews the lease.
    Abandons { stream: StreamId, effect: String, who: u64 },
    /// The lasting worker dies, or is cut off from the engine.
    WorkerLost { dies: bool },
    /// Another takes its place.
    WorkerJoins,
    /// A worker gives a sign of life.
    Heartbeat(WorkerId),
    /// An agent does the next thing, unless it has been spoken to since.
    Agent { stream: StreamId, session: SessionId, stir: u64 },
    /// The engine is told that an agent's process has ended.
    Exited { stream: StreamId, session: SessionId },
    /// The run of a task's state comes to its end.
    RunEnds { stream: StreamId, run: String },
    /// The engine looks whether the run of a task's state has ended.
    LooksAtRun(StreamId),
    /// An engine that has just started looks what became of a task's sessions.
    Looks(StreamId),
    /// A person has merged a branch.
    Merged(StreamId),
    /// Whoever asked something waits no longer for the answer.
    GivesUp(Token),
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

impl Due {
    /// Whether this is part of an engine's process, and ends with it.
    fn is_of_a_process(&self) -> bool {
        match self {
            Due::Stored { .. }
            | Due::Told(_)
            | Due::Loaded(_)
            | Due::Renews
            | Due::Owns { .. }
            | Due::Owned { .. }
            | Due::Begins(_)
            | Due::Does(_)
            | Due::Reports { .. }
            | Due::Acts { .. }
            | Due::Answers { .. }
            | Due::Exited { .. }
            | Due::LooksAtRun(_)
            | Due::Looks(_)
            | Due::Merged(_)
            | Due::GivesUp(_)
            | Due::Alarm => true,
            Due::Deadline(_)
            | Due::Works { .. }
            | Due::Performed { .. }
            | Due::Late { .. }
            | Due::Abandons { .. }
            | Due::WorkerLost { .. }
            | Due::WorkerJoins
            | Due::Heartbeat(_)
            | Due::Agent { .. }
            | Due::RunEnds { .. }
            | Due::Person
            | Due::Killed(_)
            | Due::Starts(_)
            | Due::Stops(..)
            | Due::Cuts(..)
            | Due::Jumps(..) => false,
        }
    }

    /// Whether it goes on by itself, and so does not keep a life going.
    fn is_routine(&self) -> bool {
        matches!(self, Due::Heartbeat(_) | Due::Renews | Due::Owns { .. } | Due::Owned { .. } | Due::Deadline(_))
    }

    /// Whether it has left the process.
    fn is_on_the_wire(&self) -> bool {
        matches!(self, Due::Stored { sent: true, .. } | Due::Owns { sent: true, .. })
    }
}

/// What somebody waits for an answer to.
pub(crate) enum Asked {
    /// Whether a task or run begins, and the workspace that is kept free for it until that is known.
    Begins(StreamId, Option<WorkspaceName>),
    /// The same of a task that is there already.
    Goes(Option<WorkspaceName>),
    /// What becomes of words to a run.
    Hears(StreamId),
    /// Whether a task may be merged.
    MayMerge(StreamId, Option<(String, Stood)>),
    /// Whether an agent's task moves; it goes on when it knows.
    Moves { stream: StreamId, session: SessionId, stir: u64, verdict: Option<Verdict> },
    /// Whether the work of a lasting worker counts. Without an answer it is told again.
    Counts(Box<Told>),
}

/// What a lasting worker has told about its work.
pub(crate) struct Told {
    pub(crate) assignment: Assignment,
    pub(crate) who: u64,
    pub(crate) outcome: Done,
}

/// A life.
pub struct Life {
    seed: u64,
    pub(crate) chance: Chance,
    pub(crate) bug: Option<Bug>,
    pub(crate) now: i64,
    /// The same, for the store.
    time: Arc<AtomicI64>,
    /// What is due, and which engine's process it is part of.
    pub(crate) due: BTreeMap<(i64, u64), (Option<usize>, Due)>,
    pub(crate) number: u64,
    /// One, or two that want the same store.
    pub(crate) engines: Vec<Engine>,
    /// What has been started by each of them, and until when it may go on.
    pub(crate) homes: Vec<Home>,
    /// The engine at hand.
    pub(crate) here: usize,
    /// The newest ownership of the store.
    pub(crate) epoch: u64,
    pub(crate) store: Memory,
    pub(crate) reader: Box<dyn Reader>,
    pub(crate) watch: Watch,
    pub(crate) ground: Ground,
    pub(crate) works: Works,
    pub(crate) performances: u64,
    /// The lasting worker of now: a new one has a new name.
    pub(crate) lasting: u64,
    /// How often people had to help each task on after everything had come to rest.
    pub(crate) helped: BTreeMap<StreamId, u32>,
    /// How often an engine may still be killed in the middle of something.
    pub(crate) perils: u64,
    script: String,
}

impl Life {
    /// Lives one life, and says how many steps it took. The error is the promise that was broken.
    pub fn live(seed: u64, bug: Option<Bug>) -> Result<usize, Wrong> {
        Life::tell(seed, bug).map(|(steps, _)| steps)
    }

    /// Lives one life, and says how many steps it took and what happened in it, a line for each step.
    pub fn tell(seed: u64, bug: Option<Bug>) -> Result<(usize, String), Wrong> {
        let time = Arc::new(AtomicI64::new(0));
        let clock = time.clone();
        let store = Memory::timed(Arc::new(move || clock.load(Ordering::Relaxed)));
        let mut chance = Chance::new(seed);
        let names: &[&str] = match (chance.percent(50), bug) {
            (false, _) => &["one"],
            (true, Some(Bug::SharesItsName)) => &["one", "one"],
            (true, _) => &["one", "other"],
        };
        let mut life = Life {
            seed,
            chance,
            bug,
            now: 0,
            time,
            due: BTreeMap::new(),
            number: 0,
            engines: names.iter().map(|name| Engine::new(name, &store)).collect(),
            homes: names.iter().map(|_| Home::default()).collect(),
            here: 0,
            epoch: 0,
            reader: Box::new(store.reader()),
            store,
            watch: Watch::default(),
            ground: Ground::default(),
            works: Works::default(),
            performances: 0,
            lasting: 1,
            helped: BTreeMap::new(),
            perils: 0,
            script: String::new(),
        };
        match life.live_on() {
            Ok(steps) => Ok((steps, life.script)),
            Err(what) => Err(Wrong { seed, what, script: life.script }),
        }
    }

    pub(crate) fn note(&mut self, line: &str) {
        let who = if self.engines.len() > 1 { self.engines[self.here].name } else { "" };
        let _ = writeln!(self.script, "{:>7} {who} {line}", self.now);
    }

    pub(crate) fn at(&mut self, wait: i64, due: Due) {
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
            self.at(wait, Due::Starts(1));
        }
        self.perils = self.chance.below(6);
        for _ in 0..=self.chance.below(5) {
            let wait = self.soon(3_000);
            self.at(wait, Due::Person);
        }
        for _ in 0..self.chance.below(6) {
            let (wait, place) = (self.soon(60_000), self.some_engine());
            self.at(wait, Due::Killed(place));
        }
        for _ in 0..self.chance.below(10) {
            let wait = self.soon(90_000);
            self.at(wait, Due::Person);
        }
        for _ in 0..self.chance.below(3) {
            let (wait, dies) = (self.soon(60_000), self.chance.percent(50));
            self.at(wait, Due::WorkerLost { dies });
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

    fn happens(&mut self, whose: Option<usize>, due: Due) -> Result<(), String> {
        self.here = whose.unwrap_or_else(|| self.serving());
        self.wakes_up();
        match due {
            Due::Stored { batch, doubt, .. } => self.stored(batch, doubt)?,
            Due::Told(results) => self.hear(Message::Committed(results)),
            Due::Loaded(stream) => self.loaded(stream)?,
            Due::Renews => self.renews(),
            Due::Owns { asked, .. } => self.owns(asked)?,
            Due::Owned { asked, epoch } => self.owned(asked, epoch)?,
            Due::Deadline(home) => self.deadline(home),
            Due::Begins(assignment) => self.begins(assignment)?,
            Due::Does(assignment) => self.does(assignment)?,
            Due::Works { home, stream, effect, who } => self.work_ends(home, &stream, &effect, who),
            Due::Reports { assignment, outcome } => self.reports(&assignment, &outcome)?,
            // Whoever has something to report tries until somebody hears it.
            Due::Performed { .. } | Due::Late { .. } | Due::RunEnds { .. } if !self.is_heard() => self.at(500, due),
            Due::Performed { assignment, who, outcome } => self.performed(assignment, who, outcome),
            Due::Acts { assignment } => self.acts(assignment)?,
            Due::Answers { assignment, outcome } => self.answers(&assignment, outcome)?,
            Due::Late { assignment, outcome } => self.late(assignment, outcome),
            Due::Abandons { stream, effect, who } => self.watch.ends(&stream, &effect, who),
            Due::WorkerLost { dies } => self.worker_lost(dies),
            Due::WorkerJoins => self.join_lasting(),
            Due::Heartbeat(worker) => self.heartbeat(worker),
            Due::Agent { stream, session, stir } => self.agent(&stream, session, stir),
            Due::Exited { stream, session } => self.exited(&stream, session),
            Due::RunEnds { stream, run } => self.run_ends(stream, run)?,
            Due::LooksAtRun(stream) => self.looks_at_run(&stream),
            Due::Looks(stream) => self.looks(&stream),
            Due::Merged(stream) => self.merged(stream),
            Due::GivesUp(token) => self.gives_up(token)?,
            Due::Person => self.person(),
            Due::Killed(place) => self.killed(place)?,
            Due::Starts(place) => self.starts(place)?,
            Due::Stops(place, time) => self.stops(place, time),
            Due::Cuts(place, time) => self.cuts(place, time),
            Due::Jumps(place, by) => self.jumps(place, by),
            Due::Alarm => {
                let now = self.moment();
                self.engine().reactor.wake(now);
            }
        }
        Ok(())
    }

    fn heartbeat(&mut self, worker: WorkerId) {
        if self.is_heard() {
            let at = self.at_hand(&worker);
            self.hear(Message::Heard { worker: worker.clone(), at });
        }
        if worker == self.lasting_name() {
            self.at(LEASE / 3, Due::Heartbeat(worker));
        }
    }

    pub(crate) fn load(&mut self, stream: &StreamId) -> Result<Option<Found>, String> {
        let Some(stored) = self.reader.load(stream).map_err(|error| error.to_string())? else { return Ok(None) };
        let actor = self.actor(&stored)?;
        let timers = if self.bug == Some(Bug::ForgetsTimers) { Vec::new() } else { stored.timers };
        Ok(Some(Found { actor, version: stored.version, effects: stored.effects, timers }))
    }

    fn actor(&self, stored: &Stored) -> Result<Box<dyn Actor>, String> {
        if stored.header.card.kind != TaskActor::KIND {
            let digest = run_state::definition_of(&stored.header.data).map_err(|error| error.to_string())?;
            let plan = definitions::plan(&digest)?.clone();
            return Ok(self.run(RunActor::restore(plan, stored).map_err(|error| error.to_string())?));
        }
        let digest = task_state::definition_of(&stored.header.data).map_err(|error| error.to_string())?;
        let lifecycle = definitions::lifecycle(&digest)?.clone();
        let actor = TaskActor::restore(lifecycle, stored).map_err(|error| error.to_string())?;
        match self.bug {
            Some(Bug::ForgetsTheOrder) => Ok(Box::new(Disordered::new(actor, stored))),
            _ => Ok(Box::new(actor)),
        }
    }

    /// A run, as the engine of this life knows them.
    pub(crate) fn run(&self, actor: RunActor) -> Box<dyn Actor> {
        match self.bug {
            Some(Bug::SettlesWithoutReport) => Box::new(Silent::new(actor)),
            _ => Box::new(actor),
        }
    }

    /// The seed of this life.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}
