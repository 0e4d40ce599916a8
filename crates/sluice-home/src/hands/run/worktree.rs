//! The worktree of a run: decided on when the run starts, and made when its first step needs it. Checking out a large
//! repository takes seconds, and whoever starts a run need not wait for that.
//!
//! Asked for again, after a crash or by the next step, it finds what is there and finishes what is not.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use sluice_api::problem::{Problem, Status};
use sluice_core::run::Given;
use sluice_worker::workspace::{Binding, WorkspaceName};

use super::workspace::{branch, pool};
use crate::ground::Ground;
use crate::projects::described;

/// So many are remembered; then they are looked at again.
const MOST_REMEMBERED: usize = 10_000;

/// The runs whose worktrees are known to be there.
#[derive(Default)]
pub(crate) struct Worktrees(Mutex<BTreeSet<String>>);

/// Where a run will work, and from which commit it starts.
pub(crate) struct Planned {
    /// The folder; empty: the run works where it was started.
    pub(crate) folder: String,
    /// The commit; empty: no worktree is to be made.
    pub(crate) base: String,
}

/// The worktree of a run that is started in a git repository; elsewhere it works where it was started.
pub(crate) fn plan(ground: &Ground, root: &Path, id: &str) -> Result<Planned, Problem> {
    let none = Planned { folder: String::new(), base: String::new() };
    if !root.join(".git").exists() {
        return Ok(none);
    }
    let failed = |why: String| Problem::new(Status::Refused, "no_workspace", why);
    let pool = pool(ground, root).map_err(failed)?;
    let Ok(default) = pool.repository().default_commit() else {
        return Ok(none); // a repository without a commit has nothing to start from
    };
    let name = WorkspaceName::new(id).map_err(|error| failed(error.to_string()))?;
    let head = pool.repository().commit("HEAD").ok().flatten();
    Ok(Planned { folder: pool.folder(&name).display().to_string(), base: head.unwrap_or(default) })
}

/// Makes the worktree of a run, unless that has been done or it has none of its own.
pub(crate) fn ready(ground: &Ground, given: &Given) -> Result<(), String> {
    let known = || ground.worktrees.0.lock().unwrap_or_else(PoisonError::into_inner);
    if given.origin.base.is_empty() || known().contains(&given.id) {
        return Ok(());
    }
    let pool = pool(ground, Path::new(&given.origin.root))?;
    let name = WorkspaceName::new(&given.id).map_err(|error| error.to_string())?;
    let binding = Binding { task: given.id.clone(), branch: branch(&given.id) };
    pool.acquire(&name, &binding, Some(&given.origin.base)).map_err(|error| described(&error))?;
    let mut known = known();
    if known.len() >= MOST_REMEMBERED {
        known.clear();
    }
    known.insert(given.id.clone());
    Ok(())
}
