//! What sessions leave on disk: their folders, and what was private to each attempt. It stays for as long as their task or
//! run is known.

use std::collections::BTreeSet;

use sluice_engine::task_actor::TaskActor;
use sluice_worker::session::SessionId;

use crate::evidence::names;
use crate::ground::Ground;

/// Removes what is left of tasks that were deleted, and of tasks and runs that the store does not know any more.
pub(crate) fn sweep(ground: &Ground) {
    let Ok(sessions) = ground.sessions.list() else { return };
    // One that lives all the same says no, and stays.
    let stays = |id: &SessionId| !is_nobodys(ground, id.as_str()) || ground.sessions.forget(id).is_err();
    let staying: BTreeSet<String> = sessions.iter().filter(|id| stays(id)).map(ToString::to_string).collect();
    for name in names(&ground.places.attempts()) {
        if !staying.contains(&name) && is_nobodys(ground, &name) {
            let _ = std::fs::remove_dir_all(ground.places.attempt(&name));
        }
    }
}

/// Whether nothing that is known has made this attempt. Without an answer of the store it may be somebody's.
fn is_nobodys(ground: &Ground, attempt: &str) -> bool {
    let owner = attempt.split('.').next().unwrap_or_default();
    let task = ground.tasks.load(owner).map(|task| task.is_none_or(|task| task.card.status == TaskActor::DELETED));
    let run = ground.tasks.load_run(owner).map(|run| run.is_none());
    matches!((task, run), (Ok(true), Ok(true)))
}
