//! What runs and tasks leave in repositories and beside their worktrees, removed when it is old: half-removed checkouts and stale
//! locks at once; with the record of a run its branches that are merged; worktrees of removed projects; kept work only if a
//! person has set for how long it stays.
//!
//! `docs/workspaces.md` has the table of everything that is left and when it goes. A branch with work that is not merged stays.

use std::time::Duration;

use sluice_core::machine::Moment;
use sluice_engine::host::EngineClock;
use sluice_os::git::GitError;
use sluice_os::workspace::{WorkspacePool, remove_empty, remove_leftover};
use sluice_worker::names::{RUN_BRANCHES, run_of_branch};

use crate::home::Home;
use crate::home::leftovers::{self, OpenedRepositories, RemovalRule};
use crate::home::repositories::{self, KnownRepository};
use crate::home::worktrees;
use crate::undone::described;

/// Removes what may go by itself. What cannot be removed now is tried the next time.
pub(crate) fn sweep(home: &Home) {
    if let Err(problem) = repositories::learn(home) {
        tracing::warn!("the repositories of runs are not known yet: {}", problem.message);
    }
    for (root, found) in leftovers::dead(home) {
        for it in found {
            if let Err(error) = remove_leftover(&root, &it) {
                tracing::warn!("{} stays: {}", it.path.display(), described(&error));
            }
        }
    }
    let Some(term) = home.term() else { return };
    sweep_removed_projects(home, term);
    for folder in leftovers::empty_folders(home) {
        remove_empty(&folder); // what is not empty any more stays
    }
    for known in repositories::known(home) {
        sweep_branches(home, &known, term);
        if let Some(age) = home.context.config().retention.keeps {
            match known.repository.prune_keeps(age, &known.pools) {
                Ok(pruned) => pruned.iter().for_each(|it| tracing::info!("{} is forgotten: it is old", it.reference)),
                Err(error) => {
                    tracing::warn!("kept work in {} stays: {}", known.repository.folder().display(), described(&error));
                }
            }
        }
    }
}

/// Removes the worktrees of removed projects; what would be lost with them is kept.
fn sweep_removed_projects(home: &Home, term: Duration) {
    let rule = RemovalRule { failed: false, age: term };
    for checkout in leftovers::of_removed_projects(home, &mut OpenedRepositories::default()) {
        let Some(pool) = checkout.pool.as_ref().filter(|_| checkout.may_go(home, rule)) else { continue };
        let may_go = || checkout.may_go(home, rule);
        if let Err(undone) = worktrees::remove(home, pool, &checkout.name, &checkout.owner, may_go) {
            tracing::warn!("{} stays: {undone}", checkout.place.display());
        }
    }
}

/// Removes the branches of runs that the store has forgotten, if the default branch has their commits.
/// One that is checked out stays, and so does one that is young: the engine of another home may have made it.
fn sweep_branches(home: &Home, known: &KnownRepository, term: Duration) {
    let folder = known.repository.folder().display();
    let Some(pool) = known.pools.last().and_then(|root| WorkspacePool::at(known.repository.clone(), root).ok()) else {
        return;
    };
    for begins in RUN_BRANCHES {
        let merged = match known.repository.merged_branches(begins) {
            Ok(merged) => merged,
            Err(error) => {
                tracing::warn!("the branches of runs in {folder} stay: {}", described(&error));
                return;
            }
        };
        for branch in merged {
            let Some(id) = run_of_branch(&branch) else { continue }; // it is not one of ours
            let is_old = known.repository.branch_since(&branch).is_ok_and(|since| {
                since.is_none_or(|since| home.clock.now() > Moment(since.saturating_mul(1000)).after(term))
            });
            if !is_old || !matches!(home.tasks.run_named(id), Ok(None)) {
                continue; // it may be looked at, or retried
            }
            match pool.delete_branch(&branch, id) {
                Ok(_) | Err(GitError::BranchElsewhere { .. }) => {}
                Err(error) => tracing::warn!("{branch} in {folder} stays: {}", described(&error)),
            }
        }
    }
}
