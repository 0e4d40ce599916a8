//! From a stream in the store to a task or a run in memory, with the definition that was pinned for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use sluice_core::lifecycle::Lifecycle;
use sluice_core::run::Plan;
use sluice_store::{Digest, Reader, StoreError, Stored, StreamId};

use super::Definitions;
use crate::actor::Actor;
use crate::codec::{Unreadable, digest, run_state, task_state};
use crate::reactor::Found;
use crate::run_actor::RunActor;
use crate::task_actor::TaskActor;

/// Why a stream cannot be taken up.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It is there and cannot be understood: that stream stops, and no other.
    Damaged(String),
    /// The store cannot be asked.
    Store(StoreError),
}

impl From<Unreadable> for Trouble {
    fn from(error: Unreadable) -> Self {
        Trouble::Damaged(error.to_string())
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt { .. } => Trouble::Damaged(error.to_string()),
            other => Trouble::Store(other),
        }
    }
}

/// Reads streams. Definitions are made once and kept: what is pinned never changes.
pub(super) struct Loader {
    reader: Box<dyn Reader>,
    definitions: Arc<dyn Definitions>,
    plans: BTreeMap<String, Arc<Plan>>,
    lifecycles: BTreeMap<String, Arc<Lifecycle>>,
}

/// So many definitions are kept; then they are made again when somebody needs them.
const MOST_DEFINITIONS: usize = 1000;

impl Loader {
    pub(super) fn new(reader: Box<dyn Reader>, definitions: Arc<dyn Definitions>) -> Self {
        Loader { reader, definitions, plans: BTreeMap::new(), lifecycles: BTreeMap::new() }
    }

    pub(super) fn load(&mut self, stream: &StreamId) -> Result<Option<Found>, Trouble> {
        let Some(stored) = self.reader.load(stream)? else { return Ok(None) };
        let actor = self.actor(&stored)?;
        Ok(Some(Found { actor, version: stored.version, effects: stored.effects, timers: stored.timers }))
    }

    /// Streams that are going on, by name, after this one.
    pub(super) fn open(&mut self, after: Option<&StreamId>, limit: usize) -> Result<Vec<StreamId>, StoreError> {
        self.reader.open_streams(after, limit)
    }

    /// What a stream is, by the kind that its card names.
    fn actor(&mut self, stored: &Stored) -> Result<Box<dyn Actor>, Trouble> {
        let header = &stored.header;
        match header.card.kind.as_str() {
            RunActor::KIND => {
                let name = run_state::definition_of(&header.data)?;
                let made = |pinned: &[u8]| self.definitions.plan(pinned);
                let plan = pinned(&mut *self.reader, &mut self.plans, name, made)?;
                Ok(Box::new(RunActor::restore(plan, stored)?))
            }
            TaskActor::KIND => {
                let name = task_state::definition_of(&header.data)?;
                let made = |pinned: &[u8]| self.definitions.lifecycle(pinned);
                let lifecycle = pinned(&mut *self.reader, &mut self.lifecycles, name, made)?;
                Ok(Box::new(TaskActor::restore(lifecycle, stored)?))
            }
            other => Err(Trouble::Damaged(format!("neither a task nor a run, but `{other}`"))),
        }
    }
}

/// The definition of this digest: one that is known, or made of the bytes that were pinned.
fn pinned<T>(
    reader: &mut dyn Reader,
    known: &mut BTreeMap<String, Arc<T>>,
    name: String,
    make: impl FnOnce(&[u8]) -> Result<Arc<T>, String>,
) -> Result<Arc<T>, Trouble> {
    if let Some(definition) = known.get(&name) {
        return Ok(definition.clone());
    }
    let wanted = digest(&name).ok_or_else(|| Trouble::Damaged(format!("its definition has no digest: {name}")))?;
    let bytes = reader.blob(&Digest(wanted))?;
    let bytes = bytes.ok_or_else(|| Trouble::Damaged(format!("its definition {name} is not in the store")))?;
    let found = pin(&bytes);
    if found != Digest(wanted) {
        return Err(Trouble::Damaged(format!("its definition should be {name}, and what is stored is {found}")));
    }
    let definition = make(&bytes).map_err(Trouble::Damaged)?;
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
