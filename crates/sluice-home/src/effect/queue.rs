//! Who is next: tasks that wait for a worktree begin when there is one, oldest first, whatever made it free.
//!
//! Nothing is called when a worktree becomes free. One thread looks after every change whether somebody waits and there
//! is room, so that no way of making room can be forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sluice_api::Problem;
use sluice_core::id::TaskId;
use sluice_core::task::input::WorkspaceReservation;
use sluice_core::task::{TaskAsker, TaskInput};

use crate::home::Home;
use crate::home::engine::{ask, begin, room};
use crate::read::tasks::TaskSnapshot;

/// How long it takes at most until room is seen that nothing tells of: a session that nobody knew has ended, say.
const BACKSTOP: Duration = Duration::from_secs(5);
/// The shortest time between two looks.
const PACE: Duration = Duration::from_millis(100);

/// Looks until the home is closed.
pub(crate) fn keep_going(home: Weak<Home>) {
    let (mut generation, mut said) = (0, BTreeMap::new());
    loop {
        let Some(strong) = home.upgrade() else { return };
        look(&strong, &mut said);
        let tasks = strong.tasks.clone();
        drop(strong);
        // To look costs git processes, and a busy home changes all the time.
        let looked = Instant::now();
        generation = tasks.wait_past(generation, BACKSTOP);
        std::thread::park_timeout(PACE.saturating_sub(looked.elapsed()));
    }
}

/// Begins each waiting task that can begin, once.
fn look(home: &Arc<Home>, said: &mut BTreeMap<TaskId, String>) {
    let mut full: BTreeSet<String> = BTreeSet::new();
    let waiting = home.tasks.waiting();
    said.retain(|task, _| waiting.iter().any(|seen| seen.id == *task));
    for seen in waiting {
        let project = &seen.state.about.project;
        if full.contains(project) {
            continue;
        }
        match begin_if_room(home, &seen) {
            Ok(true) => {}
            Ok(false) => drop(full.insert(project.clone())),
            // It cannot begin; the next may.
            Err(problem) => {
                if said.get(&seen.id) != Some(&problem.message) {
                    let why = &problem.message;
                    tracing::warn!(task = seen.id.as_str(), "waits for a worktree and cannot begin: {why}");
                    said.insert(seen.id.clone(), problem.message);
                }
            }
        }
    }
}

/// Begins a task, or lets it go on, if there is a worktree for it. Whether there was.
fn begin_if_room(home: &Home, seen: &TaskSnapshot) -> Result<bool, Problem> {
    let room = room(home, seen)?;
    if room == WorkspaceReservation::Full {
        return Ok(false);
    }
    if !seen.state.waits_for_worktree() {
        return begin(home, seen, TaskAsker::Engine, room).map(|_| true);
    }
    // Its worktree was lent on, and it has moved since: it goes on with what it has to do.
    let asked = ask(home, &seen.id, TaskInput::TakeUp { room: room.clone() });
    home.tasks.refresh(&seen.id);
    home.reservations.answered(&seen.id, &room, &asked);
    asked.map(|_| true)
}

/// The hook `spawn_next`: begins the oldest task that nobody has begun, if there is room. Those that wait for room begin
/// by themselves. Which one it is stands on disk before it begins, so that an engine that was killed begins no other.
pub(crate) fn begin_next(home: &Arc<Home>, seen: &TaskSnapshot, effect: &str) -> Result<(), Problem> {
    let project = &seen.state.about.project;
    let name = effect.replace(|it: char| !it.is_ascii_alphanumeric(), "-");
    let note = home.context.places.task(project, &seen.id).join(format!("next-{name}"));
    let unwritable = |error: std::io::Error| Problem::fault(format!("{} cannot be written: {error}", note.display()));
    let of_project = |it: &Arc<TaskSnapshot>| it.state.about.project == *project && it.id != seen.id;
    let pending = |it: &Arc<TaskSnapshot>| of_project(it) && it.lifecycle.initial.first() == Some(&it.state.status);
    let mut pending = home.tasks.open().into_iter().filter(pending);
    if let Ok(chosen) = std::fs::read_to_string(&note) {
        return pending.find(|it| it.id.as_str() == chosen).map_or(Ok(()), |next| begin_if_room(home, &next).map(drop));
    }
    if home.tasks.waiting().iter().any(of_project) {
        return Ok(());
    }
    note.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(unwritable)?;
    for next in pending {
        std::fs::write(&note, next.id.as_str()).map_err(unwritable)?;
        match begin_if_room(home, &next) {
            // It began, or there is no room, and so none for the next either.
            Ok(_) => return Ok(()),
            Err(problem) if problem.is_passing() => return Err(problem),
            Err(_) => {} // it cannot begin; the next may
        }
    }
    Ok(())
}
