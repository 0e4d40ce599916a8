//! Keys under which somebody asks for something new (`Idempotency-Key`): asked again with the same key it is not made again,
//! also by an engine that was started meanwhile.
//!
//! Before something is made it is stored under the key what it will be called, and afterwards what was answered. An engine
//! that dies between both leaves the name, and whoever asks again gets the thing of that name, made now if it was not.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_api::event::KeyNoted;
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_core::event_name::EventName;
use sluice_engine::host::EngineClock;
use sluice_engine::record::RecordActor;
use sluice_store::{Order, Query, StreamId};

use super::Service;
use crate::home::Home;
use crate::home::engine::create;
use crate::home::registry::fact;
use crate::read::tasks::unread;
use crate::settings::clock::{id_from, new_id};
use crate::settings::ids::fresh;

const KIND: &str = "key";
const KEYS_KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
/// So many keys are remembered; beyond, the oldest are forgotten.
const MOST_KEYS: usize = 10_000;
/// After so many new ones it is looked whether there are too many.
const LOOK_AFTER: usize = 500;
/// The longest answer that is kept, in bytes; a longer one is made again from what is there.
const LONGEST_ANSWER: usize = 64 << 10;

/// What a new thing is called, if the caller has a key for it.
#[derive(Clone, Debug, Default)]
pub struct KeyedId {
    /// Its id; a new one unless given.
    pub id: Option<String>,
    /// It may be there already.
    pub again: bool,
}

impl KeyedId {
    pub(crate) fn id<T: FromStr<Err: Display>>(&self) -> Result<T, Problem> {
        let unusable = |error: T::Err| Problem::fault(error.to_string());
        self.id.as_ref().map_or_else(fresh, |id| id.parse().map_err(unusable))
    }

    /// The id of what may be there already.
    pub(super) fn there(&self) -> Option<&str> {
        self.id.as_deref().filter(|_| self.again)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyStatus {
    New,
    /// It was used for something else.
    Other,
    /// Something was to be made, and it is not known whether it was.
    Begun {
        id: String,
    },
    Answered {
        status: u16,
        body: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The key that a caller chose for a route. What others choose is theirs.
    pub fn new(who: &str, route: &str, chosen: &str) -> IdempotencyKey {
        // Two sums, so that no two keys meet.
        IdempotencyKey(format!("{}{}", id_from(&["key", who, route, chosen]), id_from(&["again", chosen, route, who])))
    }

    fn begun(&self) -> StreamId {
        StreamId::new(format!("{KIND}/{}", self.0))
    }

    fn answered(&self) -> StreamId {
        StreamId::new(format!("{KIND}/{}.answer", self.0))
    }
}

#[derive(Serialize, Deserialize)]
struct KeyReservation {
    /// What was asked, as a digest.
    asked: String,
    id: String,
}

#[derive(Serialize, Deserialize)]
struct KeyAnswer {
    status: u16,
    body: Option<String>,
}

fn digest(body: &[u8]) -> String {
    sluice_engine::loader::pin(body).to_string()
}

impl Service {
    pub fn key(&self, key: &IdempotencyKey, body: &[u8]) -> Result<KeyStatus, Problem> {
        let Some(begun) = self.kept::<KeyReservation>(&key.begun())? else { return Ok(KeyStatus::New) };
        if begun.asked != digest(body) {
            return Ok(KeyStatus::Other);
        }
        Ok(match self.kept::<KeyAnswer>(&key.answered())? {
            Some(KeyAnswer { status, body: Some(body) }) => KeyStatus::Answered { status, body },
            Some(KeyAnswer { body: None, .. }) | None => KeyStatus::Begun { id: begun.id },
        })
    }

    /// What is kept in a stream, if that is not too long ago.
    fn kept<T: for<'a> Deserialize<'a>>(&self, stream: &StreamId) -> Result<Option<T>, Problem> {
        let found = self.home.tasks.loader().reader().load(stream);
        let found = found.map_err(unread)?;
        let line = self.home.clock.now().0.saturating_sub(milliseconds(KEYS_KEPT_FOR));
        let Some(found) = found else { return Ok(None) };
        if found.header.card.created < line {
            self.home.engine.forget(vec![stream.clone()]);
            return Ok(None);
        }
        let unreadable = |error: serde_json::Error| Problem::fault(format!("{stream} cannot be understood: {error}"));
        serde_json::from_slice(&found.header.data).map(Some).map_err(unreadable)
    }

    /// Stores what the thing will be called that is made under a key.
    pub fn begin_key(&self, key: &IdempotencyKey, body: &[u8]) -> Result<String, Problem> {
        let id = new_id().map_err(Problem::fault)?;
        self.keep(&key.begun(), EventName::RequestBegun, &KeyReservation { asked: digest(body), id: id.clone() })?;
        static NEW: AtomicUsize = AtomicUsize::new(0);
        if NEW.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOK_AFTER) {
            sweep(&self.home);
        }
        Ok(id)
    }

    pub fn answer_key(&self, key: &IdempotencyKey, status: u16, body: &str) -> Result<(), Problem> {
        let body = Some(body.to_owned()).filter(|body| body.len() <= LONGEST_ANSWER);
        self.keep(&key.answered(), EventName::RequestAnswered, &KeyAnswer { status, body })
    }

    /// Nothing was made under a key: it can be used again.
    pub fn drop_key(&self, key: &IdempotencyKey) {
        self.home.engine.forget(vec![key.begun(), key.answered()]);
    }

    fn keep(&self, stream: &StreamId, name: EventName, what: &impl Serialize) -> Result<(), Problem> {
        let event = fact(&self.home, name, "engine", "", &KeyNoted { key: stream.as_str().to_owned() });
        let data = serde_json::to_vec(what).map_err(|error| Problem::fault(error.to_string()))?;
        let record = RecordActor::holding(KIND, event, data);
        match create(&self.home, stream.clone(), "the key", record, Vec::new()) {
            // The key is not yet stored, so nothing is made under it.
            Err(problem) if problem.status == ProblemStatus::Accepted => {
                Err(Problem::unavailable("the store does not answer").hint("ask again with the same key"))
            }
            stored => stored.map(drop),
        }
    }
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Forgets keys that are too old, or too many.
pub(crate) fn sweep(home: &Home) {
    let line = home.clock.now().0.saturating_sub(milliseconds(KEYS_KEPT_FOR));
    let (mut old, mut young) = (Vec::new(), Vec::new());
    let query = Query { kind: Some(KIND.into()), order: Order::Oldest, limit: usize::MAX >> 1, ..Query::default() };
    let walked = home.tasks.walk(query, |summary| {
        let kept = if summary.card.created < line { &mut old } else { &mut young };
        kept.push(summary.stream);
        Ok(true)
    });
    if walked.is_ok() {
        // Each has two streams.
        let excess = young.len().saturating_sub(2 * MOST_KEYS);
        old.extend(young.drain(..excess));
        if !old.is_empty() {
            home.engine.forget(old);
        }
    }
}
