//! Keeping the commits of a task that were judged, when nothing else reaches them any more: a branch can be put elsewhere
//! after its work has passed, and then only the task knows of that.
//!
//! It is asked for whenever a worktree is given back and when a task ends, and what is kept already is not kept again.

use std::collections::BTreeSet;

use sluice_api::Problem;
use sluice_core::artifact::Verdict;
use sluice_core::task::TaskEvent;
use sluice_core::task::state::RunJudgement;
use sluice_engine::codec::task_event;

use crate::home::Home;
use crate::read::tasks::TaskSnapshot;
use crate::read::view::commit;
use crate::settings::projects::git;

/// Keeps what has passed and the newest that was judged, as far as it would be lost.
pub(crate) fn keep(home: &Home, seen: &TaskSnapshot) -> Result<(), Problem> {
    let commits = commits(home, seen)?;
    if commits.is_empty() {
        return Ok(());
    }
    let (_, pool) = home.pool_of(seen)?;
    let merged = seen.state.merged.as_ref().map(|commit| commit.0.as_str());
    pool.keep_commits(&commits, merged, &seen.state.about.branch, seen.id.as_str()).map_err(|error| git(&error))
}

/// A verdict against a commit that was then made anew is not worth a keep; the newest one is what the task stands with.
fn commits(home: &Home, seen: &TaskSnapshot) -> Result<BTreeSet<String>, Problem> {
    let newest = [seen.state.judged.as_ref().map(|it| &it.work), seen.state.checked.as_ref().map(|it| &it.work)];
    let mut commits: BTreeSet<String> = newest.into_iter().flatten().filter_map(commit).collect();
    if commits.is_empty() {
        return Ok(commits);
    }
    for (_, event) in home.tasks.task_history(&seen.id)? {
        match task_event::read(event.version, &event.data) {
            Ok(TaskEvent::Moved(moved)) => {
                commits.extend(moved.judged.filter(|it| it.verdict == Verdict::Pass).and_then(|it| commit(&it.work)));
            }
            Ok(TaskEvent::RunEnded { end, judged: Some(work), .. }) => {
                let checked = RunJudgement { run: None, end: Some(end), work };
                commits
                    .extend(Some(&checked).filter(|it| it.verdict() == Verdict::Pass).and_then(|it| commit(&it.work)));
            }
            // Nothing else judges, and an event that cannot be read tells of no commit.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(commits)
}
