//! Carrying out what a run asks for: scripts, agents, tasks, and their end.
//!
//! Each performance has a name made of its run, step, attempt and part. Asked for again after a crash, a living agent is
//! adopted; a script is ended first and then run again.

mod script;
pub(crate) mod task;
mod workspace;
mod worktree;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_core::lifecycle::AgentPermissions;
use sluice_core::recipe::StepWork;
use sluice_core::run::effect::key;
use sluice_core::run::{AttemptPart, AttemptReport, Perform, RunEffect, RunJob, RunParameters, StepOutcome};
use sluice_engine::actor::EffectOutcome;
use sluice_engine::codec::run_effect;
use sluice_engine::host::EngineClock;
use sluice_telemetry::caused_by;

use super::errand::{ErrandPending, ErrandPlace};
use crate::evidence;
use crate::ground::Home;
use crate::lists;
use crate::perform::WorktreeAccess;
use crate::runs::{RunFacts, RunSnapshot, performance};
use crate::spans;
use crate::undone::{PerformError, PerformFailure, UnavailableReason, settled};
use crate::workbench::{LocalOrder, OrderWork, PerformResult, StepIdentity, reported, sweep};

use workspace::LocalWorktrees;
pub(crate) use workspace::{branch as workspace_branch, pool_of as workspace_pool};
pub(crate) use worktree::{PlannedWorktree, RunWorktrees, plan as plan_worktree};

/// The code of the refusal to start a run that gets no worktree.
const NO_WORKSPACE: &str = "no_workspace";

/// Carries an effect of a run out. Called on a thread that may wait.
pub(super) fn carry_out(
    ground: &Arc<Home>,
    run: &str,
    effect: &str,
    data: &[u8],
    place: &ErrandPlace,
) -> Result<EffectOutcome, ErrandPending> {
    let done = match run_effect::read(data) {
        Err(error) => Err(error.to_string().into()),
        Ok(RunEffect::Perform(wanted)) => match settled(present(ground.tasks.setting(run)))? {
            Ok(setting) => return recorded(ground, &setting, &wanted, place).map(EffectOutcome::Run),
            Err(failed) => Err(failed.into()),
        },
        Ok(RunEffect::Repeat { at }) => return next_turn(ground, run, at.0),
        Ok(other) => present(ground.tasks.load_run(run)).and_then(|seen| beside(ground, &seen, effect, &other)),
    };
    Ok(match settled(done)? {
        Ok(()) => EffectOutcome::Done,
        Err(failed) => EffectOutcome::Failed(ground.clean().text(&failed.error)),
    })
}

/// What was read of a run; the error says why there is nothing.
fn present<T>(read: Result<Option<T>, Problem>) -> Result<T, PerformError> {
    read?.ok_or_else(|| "the run is gone".into())
}

/// The next turn of a patrol begins when its moment has come, and when it can: what keeps it from being started passes, or
/// a person ends the patrol. Of the turns before it, only as many stay as it keeps.
fn next_turn(ground: &Arc<Home>, run: &str, at: i64) -> Result<EffectOutcome, ErrandPending> {
    let seen = match settled(present(ground.tasks.load_run(run)))? {
        Ok(seen) => seen,
        Err(failed) => return Ok(EffectOutcome::Failed(failed.error)),
    };
    if let Err(problem) = crate::patrols::tidy(ground, &seen) {
        ground.log.line(&format!("the old turns of the patrol of run {run} are not removed: {}", problem.message));
    }
    let now = ground.clock.now();
    // One that lies further ahead than a turn was set under a clock that was ahead.
    let every = seen.plan.recipe.repeat.as_ref().map(|repeat| repeat.every);
    if at > now.0 && every.is_none_or(|every| at <= now.after(every).0) {
        return Err(ErrandPending::At(at));
    }
    match crate::service::repeat(ground, &seen) {
        Ok(()) => Ok(EffectOutcome::Done),
        Err(problem) => Err(UnavailableReason(format!("the next turn cannot be started: {}", problem.message)).into()),
    }
}

/// Starts another recipe because a run has ended. What keeps it from being started here may pass; that there is no such
/// recipe, or that it has errors, does not.
fn start_next(ground: &Arc<Home>, seen: &RunSnapshot, effect: &str, recipe: &str) -> Result<(), PerformError> {
    crate::service::start_again(ground, seen, effect, recipe).map_err(|problem| {
        let passes = problem.status == ProblemStatus::Fault || problem.code == NO_WORKSPACE;
        if passes { UnavailableReason(problem.message).into() } else { PerformError::from(problem) }
    })
}

/// Where a performance is carried out, or what has to be made for it first.
fn place_of(ground: &Home, setting: &RunFacts, wanted: &Perform) -> ErrandPlace {
    let is_for_git = match wanted.job {
        RunJob::Task { .. } => true,
        RunJob::Script(_) | RunJob::Gate(_) | RunJob::Agent { .. } | RunJob::Arbiter { .. } => {
            !worktree::is_ready(ground, &setting.given)
        }
    };
    match is_for_git {
        true => ErrandPlace::Git { repository: setting.given.origin.root.clone(), asker: setting.id.clone() },
        false => ErrandPlace::Hands,
    }
}

/// Carries out a performance, and keeps what it was told and what it gave.
fn recorded(
    ground: &Arc<Home>,
    setting: &RunFacts,
    wanted: &Perform,
    place: &ErrandPlace,
) -> Result<AttemptReport, ErrandPending> {
    let next = place_of(ground, setting, wanted);
    if *place != next {
        return Err(ErrandPending::On(next));
    }
    let name = performance(&setting.id, wanted.step, wanted.attempt, wanted.part);
    let made = match place {
        ErrandPlace::Git { .. } if !ground.was_stopped(&name) => prepared(ground, setting, wanted),
        ErrandPlace::Git { .. } | ErrandPlace::Hands => Ok(()),
    };
    if made.is_ok() && place_of(ground, setting, wanted) != *place {
        return Err(ErrandPending::On(ErrandPlace::Hands)); // its worktree is there now
    }
    let record = evidence::begin(ground, setting, wanted);
    let step = &setting.plan.recipe.step(wanted.step).name;
    let span = spans::step(&setting.id, step.as_str(), wanted.attempt, spans::kind(&wanted.job));
    let performed = match made {
        Ok(()) => caused_by(span.context(), || perform(ground, setting, wanted, &name)).ok_or(ErrandPending::Told)?,
        Err(why) => Err(why),
    };
    let performed = in_task(ground, setting, performed);
    let report = reported(ground, performed)?;
    spans::step_ended(span, &report);
    ground.performed(&name);
    record.end(ground, setting, wanted, &report);
    Ok(report)
}

/// What was done in the worktree of a task, with the commit that it stands at now: where the run of a state judges the work,
/// its end asks which of its steps has moved that. Where it cannot be read, nothing is said.
fn in_task(ground: &Home, setting: &RunFacts, performed: PerformResult) -> PerformResult {
    let RunParameters { workspace, origin, .. } = &setting.given;
    if origin.task.is_empty() || workspace.is_empty() || !origin.base.is_empty() {
        return performed;
    }
    let head = || workspace::pool_of(ground, &setting.given).ok()?.repository().head(Path::new(workspace)).ok();
    match performed {
        Ok(outcome) => Ok(StepOutcome { commit: head(), ..outcome }),
        Err(PerformError::Failed(failed)) => {
            let outcome = Box::new(StepOutcome { commit: head(), ..*failed.outcome });
            Err(PerformError::Failed(PerformFailure { outcome, ..failed }))
        }
        Err(unavailable) => Err(unavailable),
    }
}

/// Makes the worktree that a performance needs. A task has one of its own.
fn prepared(ground: &Home, setting: &RunFacts, wanted: &Perform) -> Result<(), PerformError> {
    match wanted.job {
        RunJob::Task { .. } => Ok(()),
        RunJob::Script(_) | RunJob::Gate(_) | RunJob::Agent { .. } | RunJob::Arbiter { .. } => {
            worktree::ready(ground, &setting.given).map_err(|why| why.doing("its worktree cannot be made"))
        }
    }
}

/// Carries a part of a step out. `None`: it is under way, and its end will be told; nothing waits for that here.
///
/// A script needs to know nothing of where the run stands: reading that would cost more the longer the run is.
fn perform(ground: &Arc<Home>, setting: &RunFacts, wanted: &Perform, name: &str) -> Option<PerformResult> {
    if ground.was_stopped(name) {
        return Some(Err("it was ended before it began".into()));
    }
    let seen = || present(ground.tasks.load_run(&setting.id));
    Some(match &wanted.job {
        RunJob::Script(script) | RunJob::Gate(script) => {
            let folder = PathBuf::from(setting.folder());
            let performed = ground.perform(&order(setting, wanted, name, folder, OrderWork::Script(script.clone())));
            performed.map(|outcome| listed(setting, wanted, outcome))
        }
        RunJob::Agent { prompt, .. } | RunJob::Arbiter { prompt, .. } => {
            seen().and_then(|seen| agent(ground, &seen, wanted, name, prompt))
        }
        RunJob::Task { .. } => match seen() {
            Ok(seen) => return task::create(ground, &seen, wanted, name),
            Err(undone) => Err(undone),
        },
    })
}

/// An agent that does the work of a step, or of a part of it, or judges it.
fn agent(ground: &Arc<Home>, seen: &RunSnapshot, wanted: &Perform, name: &str, prompt: &str) -> PerformResult {
    let trees = LocalWorktrees { ground, seen, wanted, name };
    let access = WorktreeAccess::of_agent(wanted.part, wanted.own_workspace, wanted.permissions);
    crate::perform::perform(&trees, access, |folder| {
        // Who works is told the folder that it works in; who judges, that of the work.
        let prompt = match access {
            WorktreeAccess::Shared | WorktreeAccess::Looks => prompt.to_owned(),
            WorktreeAccess::Own => prompt.replace(seen.folder(), &folder.display().to_string()),
        };
        let order = order(&seen.setting(), wanted, name, folder.to_owned(), OrderWork::Agent { prompt });
        let permissions = if access == WorktreeAccess::Looks { AgentPermissions::Reduced } else { order.permissions };
        ground.perform(&LocalOrder { permissions, ..order })
    })
}

/// What a script gave, with the list in the place of its text that a fan-out goes over.
pub(crate) fn listed(setting: &RunFacts, wanted: &Perform, outcome: StepOutcome) -> StepOutcome {
    let (recipe, step) = (&setting.plan.recipe, setting.plan.recipe.step(wanted.step));
    match wanted.job {
        RunJob::Script(_) | RunJob::Gate(_) => {
            StepOutcome { output: lists::output(recipe, step, outcome.output), ..outcome }
        }
        RunJob::Agent { .. } | RunJob::Arbiter { .. } | RunJob::Task { .. } => outcome,
    }
}

/// What the workbench is told to do.
fn order(setting: &RunFacts, wanted: &Perform, name: &str, folder: PathBuf, work: OrderWork) -> LocalOrder {
    let of_run = || Some(setting.given.origin.harness.clone()).filter(|name| !name.is_empty());
    LocalOrder {
        name: name.to_owned(),
        run: setting.id.clone(),
        step: setting.plan.recipe.step(wanted.step).name.to_string(),
        attempt: wanted.attempt,
        role: wanted.role.to_string(),
        harness: wanted.harness.clone().or_else(of_run),
        permissions: wanted.permissions,
        folder,
        voice: StepIdentity::OfThisHome,
        keeper: None,
        work,
    }
}

/// What is not the work of a step.
fn beside(ground: &Arc<Home>, seen: &RunSnapshot, effect: &str, wanted: &RunEffect) -> Result<(), PerformError> {
    match wanted {
        RunEffect::Stop { step, attempt, part } => {
            let name = performance(&seen.id, *step, *attempt, *part);
            ground.crabs.stop(ground, &name);
            let stopped = match &seen.plan.recipe.step(*step).work {
                StepWork::Task(_) => {
                    ground.stop_performance(&name); // it may not have begun
                    task::stop(ground, &seen.id, &key(*step, *attempt, *part)).map_err(PerformError::from)
                }
                StepWork::Agent { .. }
                | StepWork::AgentLoop { .. }
                | StepWork::ParallelAgents { .. }
                | StepWork::Script { .. }
                | StepWork::Gate { .. } => ground.stop(&name),
            };
            if seen.state.end.is_some() {
                sweep(&seen.id).map_err(PerformError::by)?;
            }
            stopped
        }
        RunEffect::Notify(message) => super::notify(ground, &seen.id, message).map(drop),
        RunEffect::RunCommand(script) => script::hook(ground, seen, effect, script),
        RunEffect::Start { recipe } => start_next(ground, seen, effect, recipe),
        RunEffect::Perform(_) | RunEffect::Repeat { .. } | RunEffect::SetTimer(..) | RunEffect::ClearTimer(_) => Ok(()),
    }
}

/// What a step is called in commits and messages.
pub(super) fn label(seen: &RunSnapshot, wanted: &Perform) -> String {
    let step = seen.plan.recipe.step(wanted.step).name.as_str().to_owned();
    match wanted.part {
        AttemptPart::Whole => step,
        AttemptPart::Item(item) => format!("{step} (item {item})"),
        AttemptPart::Turn(turn) => format!("{step} (turn {turn})"),
        AttemptPart::Arbiter(turn) => format!("{step} (arbiter {turn})"),
    }
}
