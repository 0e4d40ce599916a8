//! Tells tasks that the runs of their states have ended.
//!
//! A run and its task are two streams, and the engine may be killed between what is stored of one and of the other. So it
//! is looked at what both of them say: when either has news, and of all open tasks when the engine starts. A task that
//! has heard of an end already hears nothing again.

use std::sync::Arc;

use sluice_api::Problem;
use sluice_core::run::End;
use sluice_core::task::Input;
use sluice_core::task::input::RunEnd;

use crate::ground::Ground;

/// The event of a task that has started a run.
pub(crate) const STARTED: &str = "task.run_started";

/// Looks at every open task that waits for a run.
pub(crate) fn look_at_all(ground: &Arc<Ground>) -> Result<(), Problem> {
    let waiting = ground.tasks.open();
    waiting.iter().filter(|seen| seen.state.run_here().is_some()).try_for_each(|seen| look(ground, &seen.id))
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
        ground.input(task, Input::RunEnded { run: mine.id.clone(), end, why, evidence });
    }
    Ok(())
}
