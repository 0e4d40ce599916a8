//! Lending worktrees on: where a pool is full, a task that waits for a person leaves its worktree to one that has something to
//! do, and takes one up again when it moves.
//!
//! Each step finds what is done already. While the worktree is held for the task that wants it, it is looked at: nothing lives in
//! it or would be lost. TASK.md is copied to the home. Then the lender's task is told, and from its answer on it has no
//! worktree. Last, the worktree goes back to the pool. An engine that is killed before the answer leaves everything as it was;
//! after it, the worktree still has the lender's name on it, and the next task that wants one finishes the last step.

use std::sync::Arc;

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_core::id::TaskId;
use sluice_core::task::TaskInput;
use sluice_core::task::input::WorkspaceReservation;
use sluice_core::task::state::{TaskPhase, WorktreePath};
use sluice_os::workspace::{WorkspaceBinding, WorkspaceName, WorkspacePool, task_file};

use crate::home::engine::ask;
use crate::home::{Home, judged, pool_names, work};
use crate::read::files;
use crate::read::tasks::{TaskSnapshot, had};
use crate::settings::projects::git;

/// The tasks that could do without their worktree of this pool, those first that have waited longest for a person.
pub(super) fn lenders(home: &Home, pool: &WorkspacePool, size: usize) -> Vec<(WorkspaceName, Arc<TaskSnapshot>)> {
    let open = home.tasks.open();
    let lender = |number: WorkspaceName| {
        let folder = pool.folder(&number).display().to_string();
        let has_it = |seen: &&Arc<TaskSnapshot>| had(&seen.state.workspace) == Some(&folder) && can_do_without(seen);
        Some((number, open.iter().find(has_it)?.clone()))
    };
    let mut lenders: Vec<_> = pool_names(size).into_iter().filter_map(lender).collect();
    lenders.sort_by_key(|(_, seen)| seen.state.visit.since);
    lenders
}

/// Whether a task with a worktree stands still until a person does something. The machine decides it again.
fn can_do_without(seen: &TaskSnapshot) -> bool {
    let state = &seen.state;
    let stands = state.phase(&seen.lifecycle) == TaskPhase::Standing && !state.has_living_agent();
    stands && state.workspace.bound().is_some() && state.run.is_none() && seen.open_effects.is_empty()
}

/// Lends the worktree of a task on; the caller holds it. Whether it is free now. What cannot be known is a no.
pub(super) fn lend(home: &Home, pool: &WorkspacePool, number: &WorkspaceName, task: &TaskId) -> bool {
    let lent = try_lend(home, pool, number, task);
    home.tasks.refresh(task);
    lent.unwrap_or_else(|problem| {
        tracing::warn!(task = task.as_str(), "its worktree is not lent on: {}", problem.message);
        false
    })
}

fn try_lend(home: &Home, pool: &WorkspacePool, number: &WorkspaceName, task: &TaskId) -> Result<bool, Problem> {
    // A merge that was begun is finished with the worktree that it began with.
    let turn = home.merges.of(task.as_str());
    let Ok(_turn) = turn.try_lock() else { return Ok(false) };
    let seen = home.tasks.load(task)?.filter(can_do_without);
    let Some(seen) = seen.filter(|seen| !home.merge_note(&seen.id).exists() && !has_window(home, seen)) else {
        return Ok(false);
    };
    let folder = pool.folder(number);
    if !pool.is_spotless(number, &binding(&seen)).map_err(|error| git(&error))? {
        return Ok(false);
    }
    // What is at home is older than a file that an agent has removed.
    let Some(body) = files::bring_home(&home.context.places, &seen, &folder)? else { return Ok(false) };
    home.keep_body(&seen, &body);
    let workspace = WorktreePath(folder.display().to_string());
    let work = work::of(home, &seen)?;
    match ask(home, task, TaskInput::Lend { workspace, events: seen.state.events, work }) {
        Ok(_) => {}
        Err(problem) if problem.status == ProblemStatus::Refused => return Ok(false),
        Err(problem) => return Err(problem),
    }
    hand_on(home, pool, number, &seen)
}

/// Whether a person has a window beside the agents of a task: nothing says what is done there.
fn has_window(home: &Home, seen: &TaskSnapshot) -> bool {
    let Some(tmux) = home.context.sessions.tmux() else { return false };
    tmux.list().map_or(true, |panes| panes.iter().any(|pane| pane.key == seen.id.as_str()))
}

fn binding(seen: &TaskSnapshot) -> WorkspaceBinding {
    WorkspaceBinding { task: seen.id.to_string(), branch: seen.state.about.branch.clone() }
}

/// Whether a worktree that still has the name of an open task on it is free, because the task has left it.
pub(super) fn is_left(home: &Home, pool: &WorkspacePool, number: &WorkspaceName, task: &TaskId) -> bool {
    let folder = pool.folder(number).display().to_string();
    let has_left = |seen: &TaskSnapshot| match had(&seen.state.workspace) {
        Some(other) => *other != folder,
        None => seen.state.lent.as_ref().is_some_and(|lent| lent.workspace.0 == folder),
    };
    let seen = home.tasks.load(task).ok().flatten().filter(|seen| seen.card.open && has_left(seen));
    seen.is_some_and(|seen| hand_on(home, pool, number, &seen).unwrap_or(false))
}

/// Whether an engine was killed while it gave a worktree back: the file of the task goes first. What is in the worktree is not
/// what the task left there, so it is given back whatever it holds, and kept.
pub(crate) fn is_half_given_back(pool: &WorkspacePool, number: &WorkspaceName, task: &TaskId) -> Result<bool, Problem> {
    let bound = pool.lent_to(number).map_err(|error| git(&error))?;
    Ok(bound.is_some_and(|bound| bound.task == task.as_str()) && !task_file(&pool.folder(number)).exists())
}

/// Gives a worktree back that its task has lent on. One that is not as the task left it stays the task's.
fn hand_on(home: &Home, pool: &WorkspacePool, number: &WorkspaceName, seen: &TaskSnapshot) -> Result<bool, Problem> {
    let folder = pool.folder(number);
    judged::keep(home, seen)?;
    if is_half_given_back(pool, number, &seen.id)? {
        pool.release(number, seen.id.as_str()).map_err(|error| git(&error))?;
        return Ok(true);
    }
    if let Some(body) = files::body_in(&folder)? {
        home.keep_body(seen, &body);
    }
    if pool.hand_on(number, &binding(seen)).map_err(|error| git(&error))? {
        return Ok(true);
    }
    let room = WorkspaceReservation::Reserved(WorktreePath(folder.display().to_string()));
    ask(home, &seen.id, TaskInput::TakeUp { room }).map(|_| false)
}
