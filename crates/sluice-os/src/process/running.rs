//! The scripts that run now, by which a process that asks for something is recognised as one of theirs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::identity::{ProcessIdentity, ProcessStat};

#[derive(Debug)]
struct ScriptEntry {
    mark: String,
    leader: Option<ProcessIdentity>,
    speaks_for: Option<String>,
}

static ALL: Mutex<Vec<ScriptEntry>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<ScriptEntry>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A script counts as running while this is there.
pub(super) struct RunningScript(String);

impl RunningScript {
    pub(super) fn begin(mark: &str, speaks_for: Option<&String>) -> Self {
        all().push(ScriptEntry { mark: mark.to_owned(), leader: None, speaks_for: speaks_for.cloned() });
        Self(mark.to_owned())
    }

    pub(super) fn started(&self, leader: &ProcessIdentity) {
        if let Some(entry) = all().iter_mut().find(|entry| entry.mark == self.0) {
            entry.leader = Some(leader.clone());
        }
    }
}

impl Drop for RunningScript {
    fn drop(&mut self) {
        all().retain(|entry| entry.mark != self.0);
    }
}

/// What a script speaks for whose first process this is: `None` if it is the first process of no script, `Some(None)` if the
/// script speaks for no step. Until the engine knows the first process, the engine's own child with the mark counts as it. A mark
/// alone counts for nothing, because any process can write one into its environment.
pub(crate) fn script_of(process: &ProcessStat, environment: &[Vec<u8>], engine: Option<i32>) -> Option<Option<String>> {
    let is_first = |entry: &&ScriptEntry| match &entry.leader {
        Some(leader) => *leader == process.identity(),
        None => Some(process.parent) == engine && environment.iter().any(|carried| carried == entry.mark.as_bytes()),
    };
    all().iter().find(is_first).map(|entry| entry.speaks_for.clone())
}
