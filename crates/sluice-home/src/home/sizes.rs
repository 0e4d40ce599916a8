//! How large the changes of tasks are that wait for a person's review. It takes processes of git to know, so that lists show
//! what was found before, and what is missing is found beside them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sluice_api::board::DiffSize;
use sluice_core::id::TaskId;
use sluice_os::git::{DiffLimits, DiffRead, DiffedFile};

use crate::background::locked;
use crate::background::threads::spawn;
use crate::home::Home;
use crate::read::tasks::TaskSnapshot;

/// The most tasks of which it is remembered.
const MOST: usize = 10_000;

/// So many are looked at for one list; the next list is for the next ones.
const AT_ONCE: usize = 50;

#[derive(Default)]
pub(crate) struct ChangeSizes {
    /// What was found, and after how many events of the task.
    known: Mutex<BTreeMap<TaskId, (u64, Option<DiffSize>)>>,
    is_looking: AtomicBool,
}

impl ChangeSizes {
    /// What is known of a task as it is now.
    pub(crate) fn of(&self, seen: &TaskSnapshot) -> Option<DiffSize> {
        let known = locked(&self.known);
        known.get(&seen.id).filter(|(events, _)| *events == seen.state.events).and_then(|(_, size)| *size)
    }

    fn knows(&self, seen: &TaskSnapshot) -> bool {
        locked(&self.known).get(&seen.id).is_some_and(|(events, _)| *events == seen.state.events)
    }

    fn learn(&self, seen: &TaskSnapshot, size: Option<DiffSize>) {
        let mut known = locked(&self.known);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(seen.id.clone(), (seen.state.events, size));
    }

    /// Looks now, unless it is known.
    pub(crate) fn look(&self, home: &Home, seen: &TaskSnapshot) {
        if !self.knows(seen) {
            self.learn(seen, size(home, seen));
        }
    }

    /// Looks beside the caller for those that are not known, one after the other.
    pub(crate) fn look_later(home: &Arc<Home>, all: Vec<Arc<TaskSnapshot>>) {
        let missing: Vec<_> = all.into_iter().filter(|seen| !home.sizes.knows(seen)).take(AT_ONCE).collect();
        if missing.is_empty() || home.sizes.is_looking.swap(true, Ordering::Relaxed) {
            return;
        }
        let weak = Arc::downgrade(home);
        let begun = spawn("sizes", move || {
            for seen in missing {
                let Some(home) = weak.upgrade() else { return };
                home.sizes.look(&home, &seen);
            }
            weak.upgrade().iter().for_each(|home| home.sizes.is_looking.store(false, Ordering::Relaxed));
        });
        if begun.is_err() {
            home.sizes.is_looking.store(false, Ordering::Relaxed);
        }
    }
}

/// What the commits of a task's branch change; nothing where git does not tell.
fn size(home: &Home, seen: &TaskSnapshot) -> Option<DiffSize> {
    let (_, pool) = home.pool_of(seen).ok()?;
    let repository = pool.repository();
    let commit = repository.branch_commit(&seen.state.about.branch).ok()??;
    let base = repository.fork_point(&commit).ok()??;
    let limits = DiffLimits { bytes: 0, files: usize::MAX };
    repository.committed_diff(&base, &commit, limits).ok().map(|read| total(&read))
}

/// The size of a difference.
pub(crate) fn total(read: &DiffRead) -> DiffSize {
    let sum = |of: fn(&DiffedFile) -> Option<u64>| read.files.iter().filter_map(of).sum();
    DiffSize { files: read.count, added: sum(|file| file.added), removed: sum(|file| file.removed) }
}
