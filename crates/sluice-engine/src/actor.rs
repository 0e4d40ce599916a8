//! What the loop knows of a task or a run: something that takes what is said to it and answers with a change.
//!
//! The loop neither decides nor knows what the bytes mean; an actor does not know that there is a loop.

use std::time::Duration;

use sluice_core::machine::{Moment, Refusal, RefusalCode};
use sluice_core::{run, task};
use sluice_store::{Digest, Effect, Event, Header, RowKey};

use crate::ledger::Fact;
use crate::loader::pin;

#[derive(Clone, Debug)]
pub enum ActorInput {
    /// An input of the run machine.
    Run(run::RunInput),
    /// An input of the task machine.
    Task(task::TaskInput),
    /// An effect has been performed.
    Outcome { effect: String, outcome: EffectOutcome },
    /// The worker that performed an effect went away without a word.
    Lost { effect: String },
    /// A timer is due.
    Timer(String),
    /// Something is to be written down that moves nothing.
    Remark(Remark),
    /// Something is to be written into a ledger.
    Fact(Fact),
}

/// A fact about a task's files and surroundings. It is written down, and nothing follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// Its file was read, and this is what agents and people had written. It is kept as it was.
    Read { body: Vec<u8> },
    /// Its file claims something of the engine's that the engine never wrote.
    Forged { key: String, found: String, truth: String },
    /// The main checkout changed while an agent was at work elsewhere.
    Leak { what: String, session: String },
    /// A person removed it from every list.
    Deleted,
    /// A person merged the branch of a run, as this commit of the default branch.
    Merged { branch: String, commit: String },
}

impl ActorInput {
    pub(crate) fn body(&self) -> Option<(Digest, Vec<u8>)> {
        match self {
            ActorInput::Remark(Remark::Read { body }) => Some((pin(body), body.clone())),
            ActorInput::Remark(
                Remark::Forged { .. } | Remark::Leak { .. } | Remark::Deleted | Remark::Merged { .. },
            )
            | ActorInput::Run(_)
            | ActorInput::Task(_)
            | ActorInput::Outcome { .. }
            | ActorInput::Lost { .. }
            | ActorInput::Timer(_)
            | ActorInput::Fact(_) => None,
        }
    }
}

#[derive(Clone, Debug)]
pub enum EffectOutcome {
    /// It is done, and there is nothing to tell.
    Done,
    /// It could not be done, for this reason.
    Failed(String),
    Run(run::AttemptReport),
    Task(task::input::TaskEffectOutcome),
}

/// What follows from what was said: stored as one, or not at all.
#[derive(Clone, Debug)]
pub struct ActorChange {
    /// What happened; never empty.
    pub events: Vec<Event>,
    pub header: Header,
    /// The parts of that which changed.
    pub rows: Vec<(RowKey, Option<Vec<u8>>)>,
    pub effects: Vec<Effect>,
    /// What needs no doing any more, or has been done.
    pub settled: Vec<String>,
    /// Timers to set or clear.
    pub timers: Vec<(String, Option<i64>)>,
}

impl ActorChange {
    /// These events and this header, and nothing else yet.
    pub fn new(events: Vec<Event>, header: Header) -> ActorChange {
        let (rows, effects, settled, timers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        ActorChange { events, header, rows, effects, settled, timers }
    }
}

/// A task or a run.
pub trait Actor: Send {
    /// Takes what is said. `None`: nothing follows. A refusal changes nothing.
    fn take(&mut self, said: ActorInput, now: Moment) -> Result<Option<ActorChange>, Refusal>;

    /// Where it is, for a record that is not its own.
    fn header(&self, now: Moment) -> Header;

    /// Records of others were added to its stream.
    fn noted(&mut self, _events: u64) {}

    /// Whether it has ended, and nothing of it is left to be done.
    fn is_over(&self) -> bool;

    /// Whether an effect is still to be done: it may have been settled while its own commit was on its way.
    fn is_open(&self, effect: &str) -> bool;

    /// Who may perform this effect: a role and a group. `None`: the engine's own hands.
    fn wants(&self, _effect: &Effect) -> Option<WorkerRequirement> {
        None
    }

    /// What it has to be told when it is taken up, because nobody else will say it.
    fn stranded(&self) -> Vec<ActorInput> {
        Vec::new()
    }

    /// Whether its effects are performed in order, one after the other. `None`: all at once, in any order. Otherwise
    /// the ids of those that are not settled, in that order.
    fn in_order(&self) -> Option<&[String]> {
        None
    }

    /// The time limit of an effect that a worker performs, as long as it counts. `None`: it has none.
    fn limit(&self, _effect: &str) -> Option<TimeLimit> {
        None
    }

    /// The longest time for which a timer of this name can have been set. `None`: any time.
    fn longest(&self, _timer: &str) -> Option<Duration> {
        None
    }
}

/// How long an effect may take. It counts from when a worker has it: the time before that is nobody's fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeLimit {
    /// The timer that is due when it is over. Effects of one attempt share it.
    pub timer: String,
    /// When that timer is due as it was set first, with the attempt: then no worker has been at it yet.
    pub first_due: i64,
    /// How long it lasts, in milliseconds.
    pub lasts: i64,
}

/// What a task answers to what is meant for a run, and the other way round.
pub(crate) fn misdirected(is: &str, meant: &str) -> Refusal {
    Refusal::new(RefusalCode::NotReady, format!("Not possible: this is a {is}, and that is asked of a {meant}"))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerRequirement {
    /// What the worker must be; `any` is content with any.
    pub role: String,
    pub group: String,
    /// When the run began, in milliseconds: an older one goes first.
    pub since: i64,
    /// Whether it is done in a scratch folder, of which workers of earlier versions do not know.
    pub in_scratch: bool,
}
