//! What the home knows beside tasks and runs, and must not lose: groups, who works for them, who was turned away.
//!
//! It is one ledger of the engine's, held in memory as well. Only this writes into it, and nothing is believed before it
//! is stored. When it has become long a new one takes its place, and the old one is forgotten like ended work.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, RwLock};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_core::event_name::EventName;
use sluice_engine::actor::ActorInput;
use sluice_engine::host::{EngineClock, PendingAnswer};
use sluice_engine::ledger::{Fact, KeyedFacts};
use sluice_engine::reactor::ReactorMessage;
use sluice_engine::record::RecordActor;
use sluice_store::{Event, StreamId};

use crate::background::locked;
use crate::home::Home;
use crate::home::engine::{create, say_to, wait};
use crate::read::tasks::{ReadModel, unread};
use crate::read::view::as_json;
use crate::settings::clock::new_id;

/// The name of the ledger, and of the first of its streams; the next are `house.1`, `house.2`.
const NAME: &str = "house";
/// After so many facts a new one takes its place.
pub(crate) const MOST_FACTS: u64 = 10_000;
const MOST_LEDGERS: usize = 1000;
const FACT: &str = "fact";
const VERSION: u16 = 1;

pub(crate) struct Registry {
    entries: Mutex<BTreeMap<String, Value>>,
    /// Whether the ledger has been begun. Held while it is.
    begun: Mutex<bool>,
    /// Which of the ledgers is in force. Held by those who write, and by the thread that puts a new one in its place.
    number: RwLock<u64>,
}

pub(crate) fn ledger(number: u64) -> StreamId {
    if number == 0 { StreamId::new(NAME) } else { StreamId::new(format!("{NAME}.{number}")) }
}

fn number_of(stream: &StreamId) -> Option<u64> {
    match stream.as_str().strip_prefix(NAME)? {
        "" => Some(0),
        rest => rest.strip_prefix('.')?.parse().ok(),
    }
}

/// What stands under the keys of one kind. The keys of its document never change: homes hold what earlier engines wrote,
/// and a field that one of them did not write has a default.
pub(crate) trait RegistryEntry: Serialize + DeserializeOwned {
    const PREFIX: &'static str;
}

pub(crate) struct RegistryChange<'a> {
    name: EventName,
    actor: &'a str,
    data: Value,
    entries: Vec<(String, Option<Value>)>,
}

impl<'a> RegistryChange<'a> {
    /// Something of this name happened, caused by `actor`, and the event says this.
    pub(crate) fn new(name: EventName, actor: &'a str, data: &impl Serialize) -> RegistryChange<'a> {
        RegistryChange { name, actor, data: as_json(data), entries: Vec::new() }
    }

    pub(crate) fn put<T: RegistryEntry>(mut self, id: &str, entry: &T) -> RegistryChange<'a> {
        self.entries.push((format!("{}{id}", T::PREFIX), Some(as_json(entry))));
        self
    }

    pub(crate) fn remove<T: RegistryEntry>(mut self, id: &str) -> RegistryChange<'a> {
        self.entries.push((format!("{}{id}", T::PREFIX), None));
        self
    }
}

impl Registry {
    pub(crate) fn read(tasks: &ReadModel) -> Result<Registry, Problem> {
        let named = tasks.loader().reader().named(NAME, MOST_LEDGERS).map_err(unread)?;
        let number = named.iter().filter_map(number_of).max().unwrap_or(0);
        let found = tasks.loader().ledger(&ledger(number)).map_err(unread)?;
        let begun = Mutex::new(found.is_some());
        let entries = found.iter().flat_map(KeyedFacts::entries);
        let entries = entries.filter_map(|(key, value)| Some((key.to_owned(), serde_json::from_slice(value).ok()?)));
        Ok(Registry { entries: Mutex::new(entries.collect()), begun, number: RwLock::new(number) })
    }

    pub(crate) fn get<T: RegistryEntry>(&self, id: &str) -> Option<T> {
        T::deserialize(locked(&self.entries).get(&format!("{}{id}", T::PREFIX))?).ok()
    }

    pub(crate) fn all<T: RegistryEntry>(&self) -> Vec<(String, T)> {
        let entries = locked(&self.entries);
        let from = entries.range(T::PREFIX.to_owned()..);
        let own = from.map_while(|(key, value)| Some((key.strip_prefix(T::PREFIX)?, value)));
        own.filter_map(|(id, value)| Some((id.to_owned(), T::deserialize(value).ok()?))).collect()
    }

    pub(crate) fn ids<T: RegistryEntry>(&self) -> Vec<String> {
        let entries = locked(&self.entries);
        let from = entries.range(T::PREFIX.to_owned()..);
        from.map_while(|(key, _)| key.strip_prefix(T::PREFIX).map(str::to_owned)).collect()
    }

    /// Writes down what happened. It is in force when this returns.
    pub(crate) fn record(&self, home: &Home, happened: RegistryChange<'_>) -> Result<(), Problem> {
        let RegistryChange { name, actor, data, entries } = happened;
        let bytes = |value: &Value| value.to_string().into_bytes();
        let fact = Fact {
            kind: name.word().to_owned(),
            actor: actor.to_owned(),
            data: bytes(&data),
            entries: entries.iter().map(|(key, value)| (key.clone(), value.as_ref().map(bytes))).collect(),
        };
        let number = self.number.read().unwrap_or_else(PoisonError::into_inner);
        let stream = ledger(*number);
        let mut begun = locked(&self.begun);
        let stored = if *begun {
            drop(begun);
            say_to(home, stream, NAME, ActorInput::Fact(fact))
        } else {
            let stored = create(home, stream, NAME, KeyedFacts::create(NAME, fact, home.clock.now()), Vec::new());
            *begun = is_coming(&stored);
            stored
        };
        if !is_coming(&stored) {
            return stored.map(drop);
        }
        let mut known = locked(&self.entries);
        for (key, value) in entries {
            match value {
                Some(value) => drop(known.insert(key, value)),
                None => drop(known.remove(&key)),
            }
        }
        stored.map(drop)
    }

    /// Puts a new ledger in the place of one that has become long, and closes those that are not in force.
    pub(crate) fn tidy(&self, home: &Home) -> Result<(), Problem> {
        let mut number = self.number.write().unwrap_or_else(PoisonError::into_inner);
        let now = home.tasks.loader().reader().summary(&ledger(*number)).map_err(unread)?;
        if now.is_some_and(|now| now.version >= MOST_FACTS) {
            self.turn_over(home, *number + 1)?;
            *number += 1;
        }
        let named = home.tasks.loader().reader().named(NAME, MOST_LEDGERS).map_err(unread)?;
        for old in named.iter().filter(|stream| number_of(stream).is_some_and(|it| it < *number)) {
            let open = home.tasks.loader().reader().summary(old).map_err(unread)?.is_some_and(|it| it.card.open);
            if open {
                let said = ActorInput::Fact(happened(EventName::LedgerClosed, Vec::new()));
                home.engine.send(ReactorMessage::Say { token: None, stream: old.clone(), said });
            }
        }
        Ok(())
    }

    fn turn_over(&self, home: &Home, number: u64) -> Result<(), Problem> {
        let stored = |(key, value): (&String, &Value)| (key.clone(), Some(value.to_string().into_bytes()));
        let entries = locked(&self.entries).iter().map(stored).collect();
        let fact = happened(EventName::RegistryTurnedOver, entries);
        let ledger_of_all = KeyedFacts::create(NAME, fact, home.clock.now());
        let stored = create(home, ledger(number), NAME, ledger_of_all, Vec::new());
        // One that is on its way is in force: what is recorded from now on comes behind it.
        if is_coming(&stored) { Ok(()) } else { stored.map(drop) }
    }
}

fn happened(name: EventName, entries: Vec<(String, Option<Vec<u8>>)>) -> Fact {
    Fact { kind: name.word().into(), actor: "engine".into(), data: b"{}".to_vec(), entries }
}

/// Whether something is stored, or on its way there and not to be taken back.
fn is_coming<T>(stored: &Result<T, Problem>) -> bool {
    stored.as_ref().err().is_none_or(|problem| problem.status == ProblemStatus::Accepted)
}

/// What is on its way is called by its own name.
pub(crate) fn called(problem: Problem, id: &str) -> Problem {
    if problem.status == ProblemStatus::Accepted {
        return Problem::accepted(id, "the store does not answer");
    }
    problem
}

/// Writes down that something happened, which changes nothing and belongs to nobody. It is forgotten like ended work.
/// A caller that wants to know when it is durable waits for the answer.
pub(crate) fn note(
    home: &Home,
    name: EventName,
    actor: &str,
    correlation: &str,
    data: &impl Serialize,
) -> Option<PendingAnswer> {
    Some(note_as(home, &new_id().ok()?, name, actor, correlation, data))
}

/// The same, under an id: a caller that asks again after a crash has it written down once.
pub(crate) fn note_as(
    home: &Home,
    id: &str,
    name: EventName,
    actor: &str,
    correlation: &str,
    data: &impl Serialize,
) -> PendingAnswer {
    let (actor, change) = RecordActor::create(FACT, fact(home, name, actor, correlation, data));
    let (stream, actor) = (stream_of(id), Box::new(actor));
    let blobs = Vec::new();
    home.engine.ask(|token| ReactorMessage::Create { token: Some(token), stream, actor, change, blobs })
}

/// Writes down what is true of something now, in place of what was before. No caller waits for it.
pub(crate) fn replace(home: &Home, id: &str, name: EventName, actor: &str, correlation: &str, data: &impl Serialize) {
    forget(home, id);
    drop(note_as(home, id, name, actor, correlation, data));
}

pub(crate) fn forget(home: &Home, id: &str) {
    home.engine.forget(vec![stream_of(id)]);
}

fn stream_of(id: &str) -> StreamId {
    StreamId::new(format!("{FACT}/{id}"))
}

/// Waits until everything that was decided before has been stored and handed out.
pub(crate) fn settle(home: &Home) -> Result<(), Problem> {
    let Some(answer) = note(home, EventName::SchedulerTicked, "person", "", &serde_json::Map::new()) else {
        return Err(Problem::fault("the system gives no random numbers"));
    };
    wait(&home.engine, &answer, FACT).map(drop)
}

pub(crate) fn fact(home: &Home, name: EventName, actor: &str, correlation: &str, data: &impl Serialize) -> Event {
    Event {
        kind: name.word().to_owned(),
        version: VERSION,
        time: home.clock.now().0,
        actor: actor.to_owned(),
        correlation: correlation.to_owned(),
        caused_by: None,
        data: as_json(data).to_string().into_bytes(),
    }
}
