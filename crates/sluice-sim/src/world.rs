//! A simulated life: things that are due at some time, one after the other, until there are none.

use std::collections::BTreeMap;
use std::fmt::Write;

use sluice_core::machine::Moment;
use sluice_core::task::input::Outcome as Ended;
use sluice_core::task::session::SessionId;
use sluice_core::task::state::WorkspaceName;
use sluice_engine::actor::{Actor, Outcome as Done};
use sluice_engine::codec::{run_state, task_state};
use sluice_engine::reactor::{Action, Answer, Assignment, Found, Message, Reactor, Token};
use sluice_engine::run_actor::RunActor;
use sluice_engine::task_actor::TaskActor;
use sluice_engine::workers::WorkerId;
use sluice_store::memory::Memory;
use sluice_store::{Append, Reader, Stored, StreamId, Writer};

use crate::bug::Bug;
use crate::chance::Chance;
use crate::definitions;
use crate::disorder::Disordered;
use crate::ground::Ground;
use crate::watch::Watch;
use crate::work::LEASE;

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
    /// The disk has taken a batch.
    Stored(Vec<Append>),
    /// The engine hears of it.
    Told(Vec<Result<u64, sluice_store::Conflict>>),
    /// A stream has been read.
    Loaded(StreamId),
    /// Somebody who performs a step of a run is done.
    Performed { assignment: Assignment, who: u64, epoch: u64 },
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
    /// A person does something.
    Person,
    /// The process is killed.
    Killed,
    /// It is started again.
    Starts,
    /// A timer of the engine.
    Alarm,
}

/// What somebody waits for an answer to.
pub(crate) enum Asked {
    /// Whether a task or run begins, and the workspace that is kept free for it until that is known.
    Begins(StreamId, Option<WorkspaceName>),
    /// The same of a task that is there already.
    Goes(Option<WorkspaceName>),
    /// Whether a task may be merged.
    MayMerge(StreamId),
}

/// A life.
pub struct Life {
    seed: u64,
    pub(crate) chance: Chance,
    pub(crate) bug: Option<Bug>,
    pub(crate) now: i64,
    pub(crate) due: BTreeMap<(i64, u64), Due>,
    pub(crate) number: u64,
    pub(crate) reactor: Reactor,
    pub(crate) epoch: u64,
    pub(crate) store: Memory,
    pub(crate) writer: Box<dyn Writer>,
    pub(crate) reader: Box<dyn Reader>,
    pub(crate) watch: Watch,
    pub(crate) ground: Ground,
    pub(crate) asked: BTreeMap<Token, Asked>,
    pub(crate) performances: u64,
    /// The lasting worker of now: a new one has a new name.
    pub(crate) lasting: u64,
    /// How often people had to help each task on after everything had come to rest.
    pub(crate) helped: BTreeMap<StreamId, u32>,
    /// No engine runs.
    pub(crate) is_down: bool,
    /// How often it may still be killed in the middle of something.
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
        let store = Memory::new();
        let (mut writer, reader) = (Box::new(store.writer()), Box::new(store.reader()));
        let epoch = writer.own("sim", std::time::Duration::from_secs(30)).map_or(1, |it| it.epoch);
        let mut life = Life {
            seed,
            chance: Chance::new(seed),
            bug,
            now: 0,
            due: BTreeMap::new(),
            number: 0,
            reactor: Reactor::new(epoch),
            epoch,
            store,
            writer,
            reader,
            watch: Watch::default(),
            ground: Ground::default(),
            asked: BTreeMap::new(),
            performances: 0,
            lasting: 1,
            helped: BTreeMap::new(),
            is_down: false,
            perils: 0,
            script: String::new(),
        };
        match life.live_on() {
            Ok(steps) => Ok((steps, life.script)),
            Err(what) => Err(Wrong { seed, what, script: life.script }),
        }
    }

    pub(crate) fn note(&mut self, line: &str) {
        let _ = writeln!(self.script, "{:>7} {line}", self.now);
    }

    pub(crate) fn at(&mut self, wait: i64, due: Due) {
        self.number += 1;
        self.due.insert((self.now + wait, self.number), due);
    }

    pub(crate) fn soon(&mut self, most: u64) -> i64 {
        i64::try_from(self.chance.below(most)).unwrap_or(0)
    }

    fn live_on(&mut self) -> Result<usize, String> {
        self.join_workers();
        self.perils = self.chance.below(6);
        for _ in 0..=self.chance.below(5) {
            let wait = self.soon(3_000);
            self.at(wait, Due::Person);
        }
        for _ in 0..self.chance.below(6) {
            let wait = self.soon(60_000);
            self.at(wait, Due::Killed);
        }
        for _ in 0..self.chance.below(10) {
            let wait = self.soon(90_000);
            self.at(wait, Due::Person);
        }
        for _ in 0..self.chance.below(3) {
            let (wait, dies) = (self.soon(60_000), self.chance.percent(50));
            self.at(wait, Due::WorkerLost { dies });
        }
        self.act()?;
        let mut steps = 0;
        while let Some(((at, _), due)) = self.due.pop_first() {
            self.now = at;
            steps += 1;
            if steps > MOST_STEPS {
                return Err("it goes in circles".into());
            }
            self.happens(due)?;
            self.act()?;
            if steps % 16 == 0 {
                self.watch.look(self.reader.as_mut())?;
            }
            if self.due.is_empty() {
                self.rests()?;
            }
        }
        self.watch.look(self.reader.as_mut())?;
        self.watch.look_at_the_end(self.reader.as_mut())?;
        Ok(steps)
    }

    /// The world has come to rest, and its workers with it. People help on whatever waits for them.
    fn rests(&mut self) -> Result<(), String> {
        self.watch.at_rest(&self.ground)?;
        if self.answer_somebody() || self.help_somebody()? {
            let worker = self.lasting_name();
            self.at(0, Due::Heartbeat(worker));
            self.act()?;
        }
        Ok(())
    }

    fn happens(&mut self, due: Due) -> Result<(), String> {
        let now = Moment(self.now);
        match due {
            // Whoever has something to report tries until somebody hears it.
            Due::Performed { .. } | Due::Late { .. } | Due::RunEnds { .. } if self.is_down => self.at(500, due),
            Due::Stored(batch) => self.stored(batch)?,
            Due::Told(results) => self.reactor.receive(Message::Committed(results), now),
            Due::Loaded(stream) => {
                let found = self.load(&stream)?;
                self.reactor.receive(Message::Loaded { stream, found }, now);
            }
            Due::Performed { assignment, who, epoch } => self.performed(assignment, who, epoch),
            Due::Acts { assignment } => self.acts(assignment)?,
            Due::Answers { assignment, outcome } => self.answers(&assignment, outcome),
            Due::Late { assignment, outcome } => self.late(assignment, outcome),
            Due::Abandons { stream, effect, who } => self.watch.ends(&stream, &effect, who),
            Due::WorkerLost { dies } => self.worker_lost(dies),
            Due::WorkerJoins => self.join_lasting(),
            Due::Heartbeat(worker) => {
                let at = self.at_hand(&worker);
                self.reactor.receive(Message::Heard { worker: worker.clone(), at }, now);
                if self.due.values().any(|due| !matches!(due, Due::Heartbeat(_))) {
                    self.at(LEASE / 3, Due::Heartbeat(worker));
                }
            }
            Due::Agent { stream, session, stir } => self.agent(&stream, session, stir),
            Due::Exited { stream, session } => self.exited(&stream, session),
            Due::RunEnds { stream, run } => self.run_ends(stream, run)?,
            Due::LooksAtRun(stream) => self.looks_at_run(&stream),
            Due::Looks(stream) => self.looks(&stream),
            Due::Merged(stream) => self.merged(stream),
            Due::Person if self.is_down => {}
            Due::Person => self.person(),
            Due::Killed => self.killed()?,
            Due::Starts => self.starts_again()?,
            Due::Alarm => self.reactor.wake(now),
        }
        Ok(())
    }

    fn act(&mut self) -> Result<(), String> {
        for action in self.reactor.act(Moment(self.now)) {
            match action {
                Action::Commit(batch) => self.commit(batch)?,
                Action::Load(stream) => {
                    let wait = self.soon(20);
                    self.at(wait, Due::Loaded(stream));
                }
                Action::Perform(assignment) => self.perform(assignment)?,
                // Workers of this world remember by themselves what they are at, and hear of nothing too late.
                Action::Held(..) | Action::Withdrawn { .. } => {}
                Action::Reply(token, answer) => self.replied(token, &answer),
            }
        }
        if let Some(alarm) = self.reactor.next_alarm() {
            let wait = (alarm.0 - self.now).max(0);
            if !self.due.range(..=(self.now + wait, u64::MAX)).any(|(_, due)| matches!(due, Due::Alarm)) {
                self.at(wait, Due::Alarm);
            }
        }
        Ok(())
    }

    fn commit(&mut self, batch: Vec<Append>) -> Result<(), String> {
        self.note(&format!("commit {} appends", batch.len()));
        if self.bug == Some(Bug::AnswersBeforeDurable) {
            let versions = batch.iter().map(|it| Ok(it.expected + it.events.len() as u64)).collect();
            self.at(0, Due::Told(versions));
        }
        if self.bug == Some(Bug::EndsBeforeDurable) {
            for append in &batch {
                for effect in append.effects.iter().filter(|effect| effect.kind == "end_session") {
                    let (stream, effect) = (append.stream.clone(), effect.clone());
                    self.hand_to_task(Assignment { stream, effect, dispatch: 0, worker: None })?;
                }
            }
        }
        if batch.iter().any(|append| append.timers.iter().any(|(_, due)| due.is_some())) {
            self.is_in_peril(10, 1_500);
        }
        let wait = 1 + self.soon(30);
        self.at(wait, Due::Stored(batch));
        Ok(())
    }

    /// Whoever asked hears the answer; what was kept free for the asking is the task's now, or nobody's.
    fn replied(&mut self, token: Token, answer: &Answer) {
        let is_done = matches!(answer, Answer::Done(_));
        let kept = match self.asked.remove(&token) {
            Some(Asked::Begins(stream, kept)) => {
                if is_done {
                    self.watch.told(&stream);
                }
                kept
            }
            Some(Asked::Goes(kept)) => kept,
            Some(Asked::MayMerge(stream)) => {
                if is_done {
                    let wait = self.soon(500);
                    self.at(wait, Due::Merged(stream));
                }
                None
            }
            None => None,
        };
        self.ground.give_back(kept);
    }

    fn stored(&mut self, mut batch: Vec<Append>) -> Result<(), String> {
        if self.bug == Some(Bug::LosesPartOfABatch) && batch.len() > 1 {
            batch.pop();
        }
        let mut results = self.write(batch)?;
        match self.bug {
            Some(Bug::AnswersBeforeDurable) => return Ok(()),
            Some(Bug::LosesPartOfABatch) => results.push(Ok(0)),
            _ => {}
        }
        let wait = self.soon(5);
        self.at(wait, Due::Told(results));
        Ok(())
    }

    /// A batch reaches the disk.
    pub(crate) fn write(&mut self, batch: Vec<Append>) -> Result<Vec<Result<u64, sluice_store::Conflict>>, String> {
        let results = self.writer.append(batch.clone()).map_err(|error| error.to_string())?;
        for (append, _) in batch.iter().zip(&results).filter(|(_, result)| result.is_ok()) {
            self.watch.stored(append)?;
            if append.events.iter().any(|event| event.kind == "task.run_started") {
                let wait = self.soon(300);
                self.at(wait, Due::LooksAtRun(append.stream.clone()));
            }
        }
        Ok(results)
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
            return Ok(Box::new(RunActor::restore(plan, stored).map_err(|error| error.to_string())?));
        }
        let digest = task_state::definition_of(&stored.header.data).map_err(|error| error.to_string())?;
        let lifecycle = definitions::lifecycle(&digest)?.clone();
        let actor = TaskActor::restore(lifecycle, stored).map_err(|error| error.to_string())?;
        match self.bug {
            Some(Bug::ForgetsTheOrder) => Ok(Box::new(Disordered::new(actor, stored))),
            _ => Ok(Box::new(actor)),
        }
    }

    /// The seed of this life.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}
