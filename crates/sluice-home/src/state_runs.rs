//! Tells tasks that the runs of their states have ended.
//!
//! A run and its task are two streams, and the engine may be killed between what is stored of one and of the other. So it
//! is looked at what both of them say: when either has news, and of all open tasks when the engine starts. A task that
//! has heard of an end already hears nothing again.

use std::sync::Arc;

use sluice_api::Problem;
use sluice_core::run::{End, Given};
use sluice_core::task::input::RunEnd;
use sluice_core::task::state::TaskRun;
use sluice_core::task::{Evidence, Input};
use sluice_worker::passing::Passing;

use crate::ground::Ground;
use crate::projects::git;
use crate::tasks::Seen;

/// The event of a task that has started a run.
pub(crate) const STARTED: &str = "task.run_started";

/// Looks at every open task that waits for a run.
pub(crate) fn look_at_all(ground: &Arc<Ground>) -> Result<(), Problem> {
    let waiting = ground.tasks.open();
    waiting.iter().filter(|seen| seen.state.run_here().is_some()).try_for_each(|seen| look(ground, &seen.id))
}

/// Whether the run itself made every commit that the task's branch has got since it was started.
fn is_own(ground: &Ground, seen: &Seen, run: &TaskRun, evidence: &Evidence) -> Result<bool, Problem> {
    let began = run.began.as_ref().and_then(|began| began.commit.as_ref());
    let (Some(from), Some(to)) = (began, evidence.work.standing().map(|standing| &standing.commit)) else {
        return Ok(false);
    };
    if from == to {
        return Ok(true);
    }
    let branch = &seen.state.about.branch;
    let moved = ground.pool_of(seen)?.1.repository().is_moved_by(branch, &from.0, &to.0, &mark(&run.id));
    match moved {
        Err(error) if error.is_passing() => Err(git(&error)),
        moved => Ok(moved.unwrap_or(false)),
    }
}

/// What git notes beside each step that a branch goes because of a run that a task's state has started. The commits of
/// other runs need not be told from anybody's.
pub(crate) fn mark_of(given: &Given) -> Option<String> {
    (!given.origin.task.is_empty()).then(|| mark(&given.id))
}

fn mark(run: &str) -> String {
    format!("sluice run {run}")
}

/// If the run of a task's state has ended and the task has not heard of it, it does.
pub(crate) fn look(ground: &Arc<Ground>, task: &str) -> Result<(), Problem> {
    let Some(seen) = ground.tasks.load(task)? else { return Ok(()) };
    let Some(mine) = seen.state.run_here() else { return Ok(()) };
    let (end, why) = match ground.tasks.load_run(&mine.id)?.map(|run| run.state.end.clone()) {
        Some(None) => return Ok(()),
        Some(Some(End::Completed { summary })) => (RunEnd::Completed, summary),
        Some(Some(End::Failed { error })) => (RunEnd::Failed, error),
        Some(Some(End::Cancelled { reason })) => (RunEnd::Cancelled, reason),
        None if mine.end.is_some() => return Ok(()), // it was kept long enough
        None => (RunEnd::Failed, "it is gone".into()),
    };
    if mine.end != Some(end) {
        // A file that cannot be read passes no gate, and then somebody looks at it.
        let evidence = match ground.evidence(&seen) {
            Err(problem) if problem.is_passing() => return Err(problem),
            read => read.unwrap_or_default(),
        };
        let own = is_own(ground, &seen, mine, &evidence)?;
        ground.input(task, Input::RunEnded { run: mine.id.clone(), end, why, own, evidence });
    }
    Ok(())
}
