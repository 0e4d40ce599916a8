//! Worktrees between two runs: while runs begin one after the other in a repository, the next is lent what one before it gave
//! back, and nothing is written anew. When none has begun for a while, nothing of this is left.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sluice_os::git::Repository;
use sluice_os::workspace::{LendFailure, SPARE, SpareWorktree, WorkspacePool, is_own_spare};

use crate::background::locked;
use crate::home::Home;
use crate::home::errand::{Errand, ErrandPending, ErrandPlace};
use crate::settings::projects::open;
use crate::undone::{PerformError, described};

/// How long a spare waits for the next run. A run that begins within that time after another makes both worth a spare.
const LINGER: Duration = Duration::from_secs(1);
/// The longest time until a spare that cannot be removed is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// So many spares one repository has at most.
const MOST_SPARES: usize = 8;
/// How long a repository is taken to be what it was: its default branch may change.
const KNOWN_FOR: Duration = Duration::from_secs(5);
/// So many repositories are remembered; then they are opened again.
const MOST_KNOWN: usize = 1000;

#[derive(Default)]
pub(crate) struct SpareShelf {
    shelves: Mutex<BTreeMap<PathBuf, RepositoryShelf>>,
    repositories: Mutex<BTreeMap<PathBuf, (Instant, Repository)>>,
}

/// What is known of the runs in one repository.
#[derive(Default)]
struct RepositoryShelf {
    spares: Vec<(Instant, SpareWorktree)>,
    /// The last two runs that were lent a worktree, the newer one last.
    lent: VecDeque<(Instant, String)>,
    /// Those that could not be removed.
    stuck: Vec<SpareWorktree>,
    /// An errand looks after the spares, until none is left.
    is_tended: bool,
}

impl RepositoryShelf {
    fn lends(&mut self, run: &str) {
        self.lent.push_back((Instant::now(), run.to_owned()));
        self.lent.drain(..self.lent.len().saturating_sub(2));
    }

    /// Whether another run than this one began a moment ago, so that a further one is likely to.
    fn is_busy(&self, run: &str) -> bool {
        self.lent.iter().any(|(at, lent)| lent != run && at.elapsed() < LINGER)
    }
}

impl SpareShelf {
    /// The repository of this folder, as it was a moment ago.
    pub(crate) fn repository(&self, folder: &Path) -> Result<Repository, PerformError> {
        if let Some((since, known)) = locked(&self.repositories).get(folder)
            && since.elapsed() < KNOWN_FOR
        {
            return Ok(known.clone());
        }
        let opened = open(folder, None)?;
        let mut known = locked(&self.repositories);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(folder.to_owned(), (Instant::now(), opened.clone()));
        Ok(opened)
    }

    /// A spare for this run, if there is one.
    pub(super) fn take(&self, pool: &WorkspacePool, run: &str) -> Option<SpareWorktree> {
        let mut shelves = locked(&self.shelves);
        let shelf = shelves.entry(pool.repository().common().to_owned()).or_default();
        shelf.lends(run);
        shelf.spares.pop().map(|(_, spare)| spare)
    }

    /// Takes in what a run has given back. What no run is likely to want is given back to the caller, who removes it.
    pub(super) fn put(&self, pool: &WorkspacePool, run: &str, spare: SpareWorktree) -> Option<SpareWorktree> {
        let mut shelves = locked(&self.shelves);
        let shelf = shelves.entry(pool.repository().common().to_owned()).or_default();
        if !shelf.is_busy(run) || shelf.spares.len() >= MOST_SPARES {
            return Some(spare);
        }
        shelf.spares.push((Instant::now(), spare));
        None
    }

    /// Whether the caller is to look after the spares: no errand does so yet.
    fn tends(&self, common: &Path) -> bool {
        let mut shelves = locked(&self.shelves);
        shelves.get_mut(common).is_some_and(|shelf| !std::mem::replace(&mut shelf.is_tended, true))
    }

    /// Takes in what could not be removed, to be tried again.
    fn put_stuck(&self, common: &Path, spare: SpareWorktree) {
        locked(&self.shelves).entry(common.to_owned()).or_default().stuck.push(spare);
    }

    /// Takes away the spares that no run has wanted for a while, and those that could not be removed before.
    fn take_idle(&self, common: &Path) -> Vec<SpareWorktree> {
        let mut shelves = locked(&self.shelves);
        let Some(shelf) = shelves.get_mut(common) else { return Vec::new() };
        let kept = shelf.spares.iter().position(|(since, _)| since.elapsed() < LINGER).unwrap_or(shelf.spares.len());
        shelf.spares.drain(..kept).map(|(_, spare)| spare).chain(shelf.stuck.drain(..)).collect()
    }

    /// Whether spares are left to look after; if not, the caller does so no longer.
    fn has_more(&self, common: &Path) -> bool {
        let mut shelves = locked(&self.shelves);
        let Some(shelf) = shelves.get_mut(common) else { return false };
        let has_more = !shelf.spares.is_empty() || !shelf.stuck.is_empty();
        shelf.is_tended = has_more;
        if !has_more && shelf.lent.iter().all(|(at, _)| at.elapsed() >= LINGER) {
            shelves.remove(common);
        }
        has_more
    }
}

/// What a lending or removal that failed leaves: a spare that stays is tried again.
pub(super) fn failed(home: &Arc<Home>, pool: &WorkspacePool, failure: LendFailure) -> PerformError {
    if let Some(left) = failure.left {
        home.worktrees.shelf.put_stuck(pool.repository().common(), *left);
        remove_when_idle(home, pool.clone());
    }
    PerformError::by(failure.error)
}

/// Removes the spares of a repository, each when no run has wanted it for a while. One errand does it for all; what cannot be
/// removed is tried again, less and less often.
pub(super) fn remove_when_idle(home: &Arc<Home>, pool: WorkspacePool) {
    let common = pool.repository().common().to_owned();
    if !home.worktrees.shelf.tends(&common) {
        return;
    }
    let name = format!("spare worktrees of {}", pool.repository().folder().display());
    let after = |home: &Home, wait: Duration| {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        ErrandPending::At(sluice_engine::host::EngineClock::now(&*home.clock).0.saturating_add(wait))
    };
    let (mut is_first, mut pause) = (true, LINGER);
    Errand::run(home, name, move |home, _: &ErrandPlace| {
        if std::mem::take(&mut is_first) {
            return Err(after(home, LINGER));
        }
        let shelf = &home.worktrees.shelf;
        let stuck = shelf.take_idle(&common).into_iter().filter_map(|spare| pool.discard(spare).err());
        let stuck: Vec<LendFailure> = stuck.collect();
        pause = if stuck.is_empty() { LINGER } else { (pause * 2).min(LONGEST_PAUSE) };
        for LendFailure { error, left } in stuck {
            tracing::warn!("a spare worktree stays for now: {}", described(&error));
            left.into_iter().for_each(|spare| shelf.put_stuck(&common, *spare));
        }
        if shelf.has_more(&common) { Err(after(home, pause)) } else { Ok(()) }
    });
}

/// Removes the spares that an engine before this one has left.
pub(super) fn sweep(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(SPARE) || is_own_spare(&name) {
            continue;
        }
        let place = entry.path();
        let removed = match open(&place, None) {
            Ok(repository) => WorkspacePool::at(repository, root).and_then(|pool| pool.discard_left(&place)),
            // git was killed before it had made anything of it, or its repository is gone.
            Err(_) => std::fs::remove_dir(&place)
                .map_err(|_| sluice_os::git::GitError::NoWorkspace { workspace: name.clone() }),
        };
        if let Err(error) = removed {
            tracing::warn!("the spare worktree {name} stays: {}", described(&error));
        }
    }
}
