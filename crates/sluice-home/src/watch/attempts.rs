//! What tasks and sessions leave on disk: the folders of tasks, those of sessions, and what was private to each attempt. It
//! stays for as long as the task or run is known, and of sessions no longer than ended work is kept. Worktrees and branches
//! are not touched here: they hold work.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use sluice_engine::run_actor::RunActor;
use sluice_engine::task_actor::TaskActor;
use sluice_os::session::SessionId;

use crate::evidence::names;
use crate::home::Home;

/// Removes what is left of tasks that were deleted, and of tasks and runs that the store does not know any more.
pub(crate) fn sweep(home: &Home) {
    let Ok(sessions) = home.context.sessions.list() else { return };
    let keep = home.term();
    let live = home.context.places.sessions().join("live");
    let is_past = |id: &SessionId| keep.is_some_and(|keep| is_older(&live.join(id.as_str()), keep));
    // One that lives all the same says no, and stays.
    let stays =
        |id: &SessionId| !(is_past(id) || is_nobodys(home, id.as_str())) || home.context.sessions.forget(id).is_err();
    let staying: BTreeSet<String> = sessions.iter().filter(|id| stays(id)).map(ToString::to_string).collect();
    for name in names(&home.context.places.attempts()) {
        if !staying.contains(&name) && is_nobodys(home, &name) {
            let _ = std::fs::remove_dir_all(home.context.places.attempt(&name));
        }
    }
}

/// Removes the folders of tasks that the store does not know any more, once they are as old as ended work gets. A task is
/// written into its folder before it is stored, and a store that was put back may not know one that it will know again.
pub(crate) fn sweep_tasks(home: &Home) {
    let Some(keep) = home.term() else { return };
    let all = home.context.places.home().join("tasks");
    for project in names(&all) {
        for id in names(&all.join(&project)) {
            let folder = all.join(&project).join(&id);
            if is_older(&folder, keep) && is_nobodys(home, &id) {
                let _ = std::fs::remove_dir_all(&folder);
            }
        }
        // Only an empty one goes, and not one that was just made for a task.
        if is_older(&all.join(&project), keep) {
            let _ = std::fs::remove_dir(all.join(&project));
        }
    }
}

/// Whether nothing in a folder was changed for so long.
fn is_older(folder: &Path, keep: Duration) -> bool {
    let age = |path: &Path| path.symlink_metadata().ok()?.modified().ok()?.elapsed().ok();
    let files = names(folder).map(|name| folder.join(name));
    [folder.to_owned()].into_iter().chain(files).all(|path| age(&path).is_some_and(|age| age >= keep))
}

/// Whether nothing that is known has made this attempt. Without an answer of the store it may be somebody's.
fn is_nobodys(home: &Home, attempt: &str) -> bool {
    let owner = attempt.split('.').next().unwrap_or_default();
    let task = home.tasks.named(owner).map(|task| task.is_none_or(|task| task.card.status == TaskActor::DELETED));
    let run = home.tasks.run_named(owner).map(|run| run.is_none_or(|run| run.card.status == RunActor::DELETED));
    matches!((task, run), (Ok(true), Ok(true)))
}

#[cfg(test)]
mod tests {
    use std::fs::{File, create_dir_all};

    use std::time::SystemTime;

    use super::*;
    use crate::ask::Service;
    use crate::settings::places::HomePaths;

    #[test]
    fn the_folder_of_a_task_goes_with_the_task_once_it_is_old() {
        let home = tempfile::tempdir().expect("a folder");
        let places = HomePaths::new(home.path());
        let program = std::env::current_exe().expect("this test");
        let service = Service::open(places.clone(), Some("memory:".into()), program).expect("a home");
        let long_ago = SystemTime::now() - Duration::from_secs(91 * 86_400);
        let make = |id: &str, is_old: bool| {
            let folder = places.task("coffee", &id.parse().expect("an id"));
            create_dir_all(&folder).expect("a folder");
            let file = File::create(folder.join("TASK.md")).expect("a file");
            if is_old {
                file.set_modified(long_ago).expect("its time");
                File::open(&folder).and_then(|folder| folder.set_modified(long_ago)).expect("its time");
            }
            folder
        };
        let (old, young) = (make("old", true), make("young", false));
        sweep_tasks(service.home());
        assert!(!old.exists() && young.exists());
        std::fs::write(places.config(), "[retention]\ndays = 0\n").expect("settings");
        let old = make("old", true);
        sweep_tasks(service.home());
        assert!(old.exists(), "whoever keeps everything keeps that too");
        service.close().expect("closed");
    }
}
