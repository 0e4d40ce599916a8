//! A simulated life: things that are due at some time, one after the other, until there are none.

use std::collections::BTreeMap;
use std::fmt::Write;

use sluice_core::machine::Moment;
use sluice_core::recipe::{Data, FailureKind};
use sluice_core::run::{Outcome, Report};
use sluice_engine::actor::Outcome as Done;
use sluice_engine::codec::run_state;
use sluice_engine::reactor::{Action, Answer, Assignment, Found, Message, Reactor, Token};
use sluice_engine::run_actor::RunActor;
use sluice_engine::workers::{Offer, WorkerId};
use sluice_store::memory::Memory;
use sluice_store::{Append, Reader, StreamId, Writer};

use crate::bug::Bug;
use crate::chance::Chance;
use crate::recipes::{self, Known};
use crate::watch::Watch;

/// How long a lasting worker may be silent, in milliseconds.
const LEASE: i64 = 5_000;
/// After this moment nothing bad happens any more, and everything must come to an end.
const CALM: i64 = 120_000;
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
enum Due {
    /// The disk has taken a batch.
    Stored(Vec<Append>),
    /// The engine hears of it.
    Told(Vec<Result<u64, sluice_store::Conflict>>),
    /// A stream has been read.
    Loaded(StreamId),
    /// Somebody who performs something is done.
    Performed { assignment: Assignment, who: u64, epoch: u64 },
    /// The answer of somebody who was cut off arrives after all.
    Late(Assignment),
    /// Somebody who was cut off stops, because nobody renews the lease.
    Abandons { stream: StreamId, effect: String, who: u64 },
    /// The lasting worker dies, or is cut off from the engine.
    WorkerLost { dies: bool },
    /// Another takes its place.
    WorkerJoins,
    /// A worker gives a sign of life.
    Heartbeat(WorkerId),
    /// A person does something.
    Person,
    /// The process is killed, and started again.
    Killed,
    /// A timer of the engine.
    Alarm,
}

/// A life.
pub struct Life {
    seed: u64,
    pub(crate) chance: Chance,
    bug: Option<Bug>,
    pub(crate) now: i64,
    due: BTreeMap<(i64, u64), Due>,
    pub(crate) number: u64,
    pub(crate) reactor: Reactor,
    epoch: u64,
    store: Memory,
    writer: Box<dyn Writer>,
    pub(crate) reader: Box<dyn Reader>,
    pub(crate) known: Vec<Known>,
    pub(crate) watch: Watch,
    pub(crate) tokens: BTreeMap<Token, StreamId>,
    performances: u64,
    /// The lasting worker of now: a new one has a new name.
    lasting: u64,
    script: String,
}

impl Life {
    /// Lives one life. The error is the promise that was broken.
    pub fn live(seed: u64, bug: Option<Bug>) -> Result<usize, Wrong> {
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
            known: recipes::all(),
            watch: Watch::default(),
            tokens: BTreeMap::new(),
            performances: 0,
            lasting: 1,
            script: String::new(),
        };
        let lived = life.live_on();
        lived.map_err(|what| Wrong { seed, what, script: life.script })
    }

    pub(crate) fn note(&mut self, line: &str) {
        let _ = writeln!(self.script, "{:>7} {line}", self.now);
    }

    fn at(&mut self, wait: i64, due: Due) {
        self.number += 1;
        self.due.insert((self.now + wait, self.number), due);
    }

    fn soon(&mut self, most: u64) -> i64 {
        i64::try_from(self.chance.below(most)).unwrap_or(0)
    }

    fn live_on(&mut self) -> Result<usize, String> {
        self.join_workers();
        for _ in 0..=self.chance.below(4) {
            let wait = self.soon(3_000);
            self.at(wait, Due::Person);
        }
        for _ in 0..self.chance.below(6) {
            let wait = self.soon(60_000);
            self.at(wait, Due::Killed);
        }
        for _ in 0..self.chance.below(8) {
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
                self.watch.look(self.reader.as_mut(), &self.known)?;
            }
            if self.due.is_empty() && self.answer_somebody() {
                // The world had come to rest, and its workers with it.
                let worker = self.lasting_name();
                self.at(0, Due::Heartbeat(worker));
                self.act()?;
            }
        }
        self.watch.look(self.reader.as_mut(), &self.known)?;
        self.watch.look_at_the_end(self.reader.as_mut(), &self.known)?;
        Ok(steps)
    }

    fn join_workers(&mut self) {
        let own =
            Offer { id: WorkerId("own".into()), role: "any".into(), group: "sim".into(), capacity: 2, lease: None };
        self.reactor.receive(Message::Joined(own), Moment(self.now));
        self.join_lasting();
    }

    fn lasting_name(&self) -> WorkerId {
        WorkerId(format!("lasting-{}", self.lasting))
    }

    fn join_lasting(&mut self) {
        let id = self.lasting_name();
        let offer = Offer { id: id.clone(), role: "any".into(), group: "sim".into(), capacity: 3, lease: Some(LEASE) };
        self.reactor.receive(Message::Joined(offer), Moment(self.now));
        self.at(0, Due::Heartbeat(id));
    }

    /// The lasting worker is gone. If it is only cut off, it goes on until its lease is over, and its answers arrive
    /// when nobody wants them any more.
    fn worker_lost(&mut self, dies: bool) {
        self.note(if dies { "the lasting worker dies" } else { "the lasting worker is cut off" });
        let name = self.lasting_name();
        let lost = |due: &Due| match due {
            Due::Heartbeat(worker) => *worker == name,
            Due::Performed { assignment, .. } => assignment.worker.as_ref() == Some(&name),
            _ => false,
        };
        let keys: Vec<(i64, u64)> = self.due.iter().filter(|(_, due)| lost(due)).map(|(key, _)| *key).collect();
        for key in keys {
            let Some(Due::Performed { assignment, who, .. }) = self.due.remove(&key) else { continue };
            match dies {
                true => self.watch.ends(&assignment.stream, &assignment.effect.id, who),
                false => {
                    // It stops when it has finished, or when its lease is over, whichever is first.
                    let stops = (key.0 - self.now).clamp(0, LEASE * 2 / 3);
                    let (stream, effect) = (assignment.stream.clone(), assignment.effect.id.clone());
                    self.at(stops, Due::Abandons { stream, effect, who });
                    let late = LEASE + self.soon(3_000);
                    self.at(late, Due::Late(assignment));
                }
            }
        }
        self.lasting += 1;
        let wait = self.soon(10_000);
        self.at(wait, Due::WorkerJoins);
    }

    fn happens(&mut self, due: Due) -> Result<(), String> {
        let now = Moment(self.now);
        match due {
            Due::Stored(batch) => self.stored(batch)?,
            Due::Told(results) => self.reactor.receive(Message::Committed(results), now),
            Due::Loaded(stream) => {
                let found = self.load(&stream)?;
                self.reactor.receive(Message::Loaded { stream, found }, now);
            }
            Due::Performed { assignment, who, epoch } => self.performed(assignment, who, epoch),
            Due::Late(assignment) => self.late(assignment),
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
            Due::Person => self.person(),
            Due::Killed => self.killed()?,
            Due::Alarm => self.reactor.wake(now),
        }
        Ok(())
    }

    fn act(&mut self) -> Result<(), String> {
        for action in self.reactor.act(Moment(self.now)) {
            match action {
                Action::Commit(batch) => {
                    self.note(&format!("commit {} appends", batch.len()));
                    if self.bug == Some(Bug::AnswersBeforeDurable) {
                        let versions = batch.iter().map(|it| Ok(it.expected + it.events.len() as u64)).collect();
                        self.at(0, Due::Told(versions));
                    }
                    let wait = 1 + self.soon(30);
                    self.at(wait, Due::Stored(batch));
                }
                Action::Load(stream) => {
                    let wait = self.soon(20);
                    self.at(wait, Due::Loaded(stream));
                }
                Action::Perform(assignment) => self.perform(assignment)?,
                Action::Reply(token, answer) => {
                    if let (Some(stream), Answer::Done(_)) = (self.tokens.remove(&token), &answer) {
                        self.watch.told(&stream);
                    }
                }
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
    fn write(&mut self, batch: Vec<Append>) -> Result<Vec<Result<u64, sluice_store::Conflict>>, String> {
        let results = self.writer.append(batch.clone()).map_err(|error| error.to_string())?;
        for (append, _) in batch.iter().zip(&results).filter(|(_, result)| result.is_ok()) {
            self.watch.stored(append)?;
        }
        Ok(results)
    }

    fn load(&mut self, stream: &StreamId) -> Result<Option<Found>, String> {
        let Some(stored) = self.reader.load(stream).map_err(|error| error.to_string())? else { return Ok(None) };
        let digest = run_state::definition_of(&stored.header.data).map_err(|error| error.to_string())?;
        let known = self.known.iter().find(|it| it.digest.to_string() == digest).ok_or("an unknown definition")?;
        let actor = RunActor::restore(known.plan.clone(), &stored).map_err(|error| error.to_string())?;
        let timers = if self.bug == Some(Bug::ForgetsTimers) { Vec::new() } else { stored.timers };
        Ok(Some(Found { actor: Box::new(actor), version: stored.version, effects: stored.effects, timers }))
    }

    fn perform(&mut self, assignment: Assignment) -> Result<(), String> {
        if self.bug == Some(Bug::ForgetsEffects) && self.chance.percent(5) {
            return Ok(());
        }
        let gone = |worker: &WorkerId| worker.0.starts_with("lasting") && *worker != self.lasting_name();
        if assignment.worker.as_ref().is_some_and(gone) {
            return Ok(()); // nobody is there to hear it
        }
        let times = if self.bug == Some(Bug::HandsOutTwice) && self.chance.percent(5) { 2 } else { 1 };
        for _ in 0..times {
            self.performances += 1;
            let who = self.performances;
            if assignment.effect.kind == "perform" {
                self.note(&format!("{}: {} begins ({who})", assignment.stream, assignment.effect.id));
                self.watch.begins(&assignment.stream, &assignment.effect.id, who)?;
            }
            let wait = if self.chance.percent(5) { self.soon(40_000) } else { self.soon(2_000) };
            let due = Due::Performed { assignment: assignment.clone(), who, epoch: self.epoch };
            self.at(wait, due);
        }
        Ok(())
    }

    /// What a worker is at.
    fn at_hand(&self, worker: &WorkerId) -> Vec<u64> {
        let held = |due: &Due| match due {
            Due::Performed { assignment, .. } if assignment.worker.as_ref() == Some(worker) => {
                Some(assignment.dispatch)
            }
            _ => None,
        };
        self.due.values().filter_map(held).collect()
    }

    /// An answer that nobody waits for any more.
    fn late(&mut self, it: Assignment) {
        self.note(&format!("{}: a late answer to {}", it.stream, it.effect.id));
        let outcome = Done::Run(self.report());
        let dispatch = match self.bug {
            Some(Bug::TakesLateAnswers) => self.newest(&it).unwrap_or(it.dispatch),
            _ => it.dispatch,
        };
        let message = Message::Ended { stream: it.stream, effect: it.effect.id, dispatch, outcome };
        self.reactor.receive(message, Moment(self.now));
    }

    /// The newest handing-out of the same effect, for an engine that cannot tell them apart.
    fn newest(&self, it: &Assignment) -> Option<u64> {
        self.due.values().rev().find_map(|due| match due {
            Due::Performed { assignment, .. }
                if assignment.stream == it.stream && assignment.effect.id == it.effect.id =>
            {
                Some(assignment.dispatch)
            }
            _ => None,
        })
    }

    fn performed(&mut self, it: Assignment, who: u64, epoch: u64) {
        let own = it.worker.as_ref().is_none_or(|worker| worker.0 == "own");
        if own && epoch != self.epoch {
            return; // it went with the process that did it
        }
        self.watch.ends(&it.stream, &it.effect.id, who);
        let outcome = if it.effect.kind == "perform" { Done::Run(self.report()) } else { Done::Done };
        self.note(&format!("{}: {} ends ({who})", it.stream, it.effect.id));
        let dispatch = it.dispatch;
        let twice = self.chance.percent(5);
        for _ in 0..=usize::from(twice) {
            let message = Message::Ended {
                stream: it.stream.clone(),
                effect: it.effect.id.clone(),
                dispatch,
                outcome: outcome.clone(),
            };
            self.reactor.receive(message, Moment(self.now));
        }
    }

    fn report(&mut self) -> Report {
        let words = ["PASS", "FAIL", "done", "actionable", "PASS", "done"];
        let outcome = Outcome {
            summary: "so".into(),
            result: Some((*self.chance.pick(&words)).into()),
            output: Data::Text("out".into()),
            ..Outcome::default()
        };
        match self.chance.percent(if self.now < CALM { 15 } else { 3 }) {
            true => {
                let kind = *self.chance.pick(&FailureKind::ALL);
                Report::Failed { kind, error: "no luck".into(), outcome }
            }
            false => Report::Completed(outcome),
        }
    }

    fn killed(&mut self) -> Result<(), String> {
        self.note("killed and started again");
        let kept = std::mem::take(&mut self.due);
        for (key, due) in kept {
            let survives = match &due {
                // A write that was on its way may or may not have reached the disk; whole batches, never parts.
                Due::Stored(_) => self.chance.percent(50),
                Due::Told(_) | Due::Loaded(_) | Due::Alarm => false,
                Due::Performed { .. }
                | Due::Late(_)
                | Due::Abandons { .. }
                | Due::Person
                | Due::Killed
                | Due::WorkerLost { .. }
                | Due::WorkerJoins => true,
                Due::Heartbeat(_) => false,
            };
            match due {
                Due::Stored(batch) if survives => drop(self.write(batch)?),
                due if survives => drop(self.due.insert(key, due)),
                _ => {}
            }
        }
        let lasting: Vec<u64> = self
            .due
            .values()
            .filter_map(|due| match due {
                Due::Performed { assignment, who, .. }
                    if assignment.worker.as_ref().is_some_and(|worker| worker.0.starts_with("lasting")) =>
                {
                    Some(*who)
                }
                Due::Abandons { who, .. } => Some(*who),
                _ => None,
            })
            .collect();
        self.watch.killed(|who| !lasting.contains(&who));
        self.tokens.clear();
        self.writer = Box::new(self.store.writer());
        self.epoch =
            self.writer.own("sim", std::time::Duration::from_secs(30)).map_err(|error| error.to_string())?.epoch;
        self.reactor = Reactor::new(self.epoch);
        self.join_workers();
        if self.bug != Some(Bug::SkipsRecovery) {
            let streams = self.reader.open_streams(None, 10_000).map_err(|error| error.to_string())?;
            for stream in streams {
                let found = self.load(&stream)?;
                self.reactor.receive(Message::Loaded { stream, found }, Moment(self.now));
            }
        }
        Ok(())
    }

    /// The seed of this life.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}
