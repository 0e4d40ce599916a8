//! From a stream in the store to a task or a run in memory, with the definition that was pinned for it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
use sluice_core::lifecycle::Lifecycle;
use sluice_core::run::RunPlan;
use sluice_store::{Card, Digest, Meaning, Reader, StoreError, StoredStream, StreamId};

use crate::actor::Actor;
use crate::codec::{UnreadableData, digest, run_state, task_state};
use crate::ledger::KeyedFacts;
use crate::reactor::LoadedStream;
use crate::run_actor::RunActor;
use crate::task_actor::TaskActor;

#[derive(Debug)]
pub enum StreamLoadError {
    /// It is there and cannot be understood: that stream stops, and no other.
    Damaged(String),
    Store(StoreError),
}

impl From<UnreadableData> for StreamLoadError {
    fn from(error: UnreadableData) -> Self {
        StreamLoadError::Damaged(error.to_string())
    }
}

impl From<StoreError> for StreamLoadError {
    fn from(error: StoreError) -> Self {
        match error.meaning() {
            Meaning::Damaged => StreamLoadError::Damaged(error.to_string()),
            Meaning::Unavailable(_) | Meaning::Refused | Meaning::Unusable => StreamLoadError::Store(error),
        }
    }
}

impl fmt::Display for StreamLoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamLoadError::Damaged(why) => f.write_str(why),
            StreamLoadError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StreamLoadError {}

/// What makes a definition of the bytes that were pinned.
pub trait Definitions: Send + Sync {
    /// The recipe whose pinned bytes these are, made ready.
    fn plan(&self, pinned: &[u8]) -> Result<Arc<RunPlan>, String>;

    fn lifecycle(&self, pinned: &[u8]) -> Result<Arc<Lifecycle>, String>;
}

/// Definitions by their digests. Each is made once and kept, for all loaders that share this: what is pinned never changes.
pub struct DefinitionCache {
    definitions: Arc<dyn Definitions>,
    plans: KnownDefinitions<RunPlan>,
    lifecycles: KnownDefinitions<Lifecycle>,
}

type KnownDefinitions<T> = Mutex<BTreeMap<String, Arc<T>>>;

impl DefinitionCache {
    pub fn new(definitions: Arc<dyn Definitions>) -> Self {
        DefinitionCache { definitions, plans: Mutex::default(), lifecycles: Mutex::default() }
    }
}

/// So many definitions are kept; then they are made again when a stream needs them.
const MOST_DEFINITIONS: usize = 1000;

/// Reads streams, with a connection of its own.
pub struct Loader {
    reader: Box<dyn Reader>,
    known: Arc<DefinitionCache>,
}

pub struct StreamSnapshot<A> {
    /// How many events it has.
    pub version: u64,
    pub card: Card,
    pub actor: A,
}

impl Loader {
    /// Reads with this reader, and makes definitions with those.
    pub fn new(reader: Box<dyn Reader>, definitions: Arc<dyn Definitions>) -> Self {
        Loader::sharing(reader, Arc::new(DefinitionCache::new(definitions)))
    }

    /// Reads with this reader, and shares the definitions that are made.
    pub fn sharing(reader: Box<dyn Reader>, known: Arc<DefinitionCache>) -> Self {
        Loader { reader, known }
    }

    pub fn reader(&mut self) -> &mut dyn Reader {
        &mut *self.reader
    }

    pub fn load(&mut self, stream: &StreamId) -> Result<Option<LoadedStream>, StreamLoadError> {
        let Some(stored) = self.reader.load(stream)? else { return Ok(None) };
        let actor: Box<dyn Actor> = match stored.header.card.kind.as_str() {
            RunActor::KIND => Box::new(self.run_of(&stored)?),
            TaskActor::KIND => Box::new(self.task_of(&stored)?),
            KeyedFacts::KIND => Box::new(KeyedFacts::restore(&stored)?),
            other => return Err(StreamLoadError::Damaged(format!("neither a task nor a run, but `{other}`"))),
        };
        Ok(Some(LoadedStream { actor, version: stored.version, effects: stored.effects, timers: stored.timers }))
    }

    /// A task, to be looked at; `None` when there is none of that name.
    pub fn task(&mut self, stream: &StreamId) -> Result<Option<StreamSnapshot<TaskActor>>, StreamLoadError> {
        self.snapshot(stream, TaskActor::KIND, Self::task_of)
    }

    /// A run, to be looked at; `None` when there is none of that name.
    pub fn run(&mut self, stream: &StreamId) -> Result<Option<StreamSnapshot<RunActor>>, StreamLoadError> {
        self.snapshot(stream, RunActor::KIND, Self::run_of)
    }

    fn snapshot<A>(
        &mut self,
        stream: &StreamId,
        kind: &str,
        read: fn(&mut Self, &StoredStream) -> Result<A, StreamLoadError>,
    ) -> Result<Option<StreamSnapshot<A>>, StreamLoadError> {
        let Some(stored) = self.reader.load(stream)?.filter(|it| it.header.card.kind == kind) else { return Ok(None) };
        let actor = read(self, &stored)?;
        Ok(Some(StreamSnapshot { version: stored.version, card: stored.header.card, actor }))
    }

    /// A ledger, to be looked at; `None` when there is none of that name.
    pub fn ledger(&mut self, stream: &StreamId) -> Result<Option<KeyedFacts>, StreamLoadError> {
        let stored = self.reader.load(stream)?.filter(|it| it.header.card.kind == KeyedFacts::KIND);
        Ok(stored.map(|stored| KeyedFacts::restore(&stored)).transpose()?)
    }

    fn run_of(&mut self, stored: &StoredStream) -> Result<RunActor, StreamLoadError> {
        let name = run_state::definition_of(&stored.header.data)?;
        let made = |pinned: &[u8]| self.known.definitions.plan(pinned);
        let plan = pinned(&mut *self.reader, &self.known.plans, name, made)?;
        Ok(RunActor::restore(plan, stored)?)
    }

    fn task_of(&mut self, stored: &StoredStream) -> Result<TaskActor, StreamLoadError> {
        let name = task_state::definition_of(&stored.header.data)?;
        let made = |pinned: &[u8]| self.known.definitions.lifecycle(pinned);
        let lifecycle = pinned(&mut *self.reader, &self.known.lifecycles, name, made)?;
        Ok(TaskActor::restore(lifecycle, stored)?)
    }
}

/// The definition of this digest: one that is known, or made of the bytes that were pinned. Nothing is locked while it is
/// read and made; two that need it at the same time may both make it.
fn pinned<T>(
    reader: &mut dyn Reader,
    known: &KnownDefinitions<T>,
    name: String,
    make: impl FnOnce(&[u8]) -> Result<Arc<T>, String>,
) -> Result<Arc<T>, StreamLoadError> {
    let known = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(definition) = known().get(&name) {
        return Ok(definition.clone());
    }
    let wanted =
        digest(&name).ok_or_else(|| StreamLoadError::Damaged(format!("its definition has no digest: {name}")))?;
    let bytes = reader.blob(&Digest(wanted))?;
    let bytes = bytes.ok_or_else(|| StreamLoadError::Damaged(format!("its definition {name} is not in the store")))?;
    let found = pin(&bytes);
    if found != Digest(wanted) {
        return Err(StreamLoadError::Damaged(format!(
            "its definition should be {name}, and what is stored is {found}"
        )));
    }
    let definition = make(&bytes).map_err(StreamLoadError::Damaged)?;
    let mut known = known();
    if known.len() >= MOST_DEFINITIONS {
        known.clear();
    }
    known.insert(name, definition.clone());
    Ok(definition)
}

/// The digest under which a definition's bytes are kept: what is started by it names this, and nothing else.
pub fn pin(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

pub fn written_digest(text: &str) -> Option<Digest> {
    digest(text).map(Digest)
}
