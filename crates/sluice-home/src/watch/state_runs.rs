//! Tells tasks that the runs of their states have ended.
//!
//! A run and its task are two streams, and the engine may be killed between what is stored of one and of the other. So it
//! is looked at what both of them say: when either has news, and of all open tasks when the engine starts. A task that
//! has heard of an end already hears nothing again.

use std::sync::Arc;

use sluice_api::Problem;
use sluice_core::id::TaskId;
use sluice_core::lifecycle::AgentPermissions;
use sluice_core::recipe::{Data, Step, StepWork};
use sluice_core::run::{RunConclusion, StepStatus};
use sluice_core::task::TaskInput;
use sluice_core::task::input::RunEnd;

use crate::home::Home;
use crate::read::runs::RunSnapshot;

pub(crate) fn look_at_all(home: &Arc<Home>) -> Result<(), Problem> {
    let waiting = home.tasks.open();
    waiting.iter().filter(|seen| seen.state.run_here().is_some()).try_for_each(|seen| look(home, &seen.id))
}

/// Whether the run's own agents made every commit that the task's branch has got since it was started, and a command of the
/// run has looked at the last of them, if it has commands. Each step says where the work stood after it. What moved during a
/// command was moved by the code that it tests, also if it was moved back later; and a command that an agent committed beside
/// has seen half of each.
fn is_own(run: &RunSnapshot, from: &str, to: &str) -> bool {
    let steps = run.plan.recipe.steps.iter().zip(&run.state.steps);
    let mut ended: Vec<_> = steps.filter_map(|(step, state)| Some((state.ended?, step, state))).collect();
    ended.sort_by_key(|(at, ..)| *at);
    let is_command = |work: &StepWork| matches!(work, StepWork::Script { .. } | StepWork::Gate { .. });
    let looks = |step: &Step| is_command(&step.work) && step.workspace.is_worktree();
    let has_commands = run.plan.recipe.steps.iter().any(looks);
    let (mut stands_at, mut written, mut is_looked_at) = (from, None, true);
    // What works elsewhere neither moves the work nor looks at it.
    for (at, step, state) in ended.into_iter().filter(|(_, step, _)| step.workspace.is_worktree()) {
        let outcome = match &state.status {
            StepStatus::Completed => state.latest.as_ref(),
            StepStatus::Failed(_) => state.left.as_ref().or(state.latest.as_ref()),
            // It did nothing in this round.
            StepStatus::Skipped(_) | StepStatus::Cancelled => continue,
            StepStatus::Waiting
            | StepStatus::Ready
            | StepStatus::Running(_)
            | StepStatus::Stopping(..)
            | StepStatus::Retrying { .. }
            | StepStatus::Held { .. } => return false,
        };
        let commit = outcome.and_then(|outcome| outcome.commit.as_deref());
        let writes = match step.work {
            // Without an item there was nothing to do.
            StepWork::ParallelAgents { .. } if outcome.is_some_and(|it| it.output == Data::List(Vec::new())) => {
                continue;
            }
            StepWork::Agent { .. } | StepWork::AgentLoop { .. } | StepWork::ParallelAgents { .. } => {
                step.permissions == AgentPermissions::Full
            }
            StepWork::Script { .. } | StepWork::Gate { .. } => false,
            StepWork::Task(_) => continue, // it has a worktree of its own
        };
        match commit {
            Some(commit) if writes => {
                is_looked_at &= commit == stands_at;
                (stands_at, written) = (commit, Some(at));
            }
            Some(commit) if commit == stands_at && state.began >= written => is_looked_at |= is_command(&step.work),
            // An engine before this one did not say; where the work stands as it did, nothing has moved it for good.
            None if from == to => {}
            Some(_) | None => return false,
        }
    }
    stands_at == to && (is_looked_at || !has_commands)
}

/// If the run of a task's state has ended, or goes on after it failed, and the task has not heard of it, it does.
pub(crate) fn look(home: &Arc<Home>, task: &TaskId) -> Result<(), Problem> {
    let Some(seen) = home.tasks.load(task)? else { return Ok(()) };
    let Some(mine) = seen.state.run_here() else { return Ok(()) };
    let run = home.tasks.load_run(&mine.id)?;
    let (end, why) = match run.as_ref().map(|run| run.state.end.clone()) {
        Some(None) => {
            if mine.end.is_some() {
                home.input(task, TaskInput::RunReopened { run: mine.id.clone() });
            }
            return Ok(());
        }
        Some(Some(RunConclusion::Completed { summary })) => (RunEnd::Completed, summary),
        Some(Some(RunConclusion::Failed { error })) => (RunEnd::Failed, error),
        Some(Some(RunConclusion::Cancelled { reason })) => (RunEnd::Cancelled, reason),
        None if mine.end.is_some() => return Ok(()), // it was kept long enough
        None => (RunEnd::Failed, "it is gone".into()),
    };
    if mine.end != Some(end) {
        // A file that cannot be read passes no gate, and then somebody looks at it.
        let evidence = match home.evidence(&seen) {
            Err(problem) if problem.is_passing() => return Err(problem),
            read => read.unwrap_or_default(),
        };
        let began = mine.began.as_ref().and_then(|began| began.commit.as_ref());
        let ends = began.zip(evidence.work.standing().map(|standing| &standing.commit));
        let own = run.zip(ends).is_some_and(|(run, (from, to))| is_own(&run, &from.0, &to.0));
        home.input(task, TaskInput::RunEnded { run: mine.id.clone(), end, why, own, evidence });
    }
    Ok(())
}
