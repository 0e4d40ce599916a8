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

use sluice_api::problem::{Problem, Status};
use sluice_core::lifecycle::Permissions;
use sluice_core::recipe::Work as StepWork;
use sluice_core::run::effect::key;
use sluice_core::run::{Effect, Given, Job, Outcome, Part, Perform, Report};
use sluice_engine::actor::Outcome as Reported;
use sluice_engine::codec::run_effect;
use sluice_engine::host::Clock;

use super::errand::{NotYet, Place};
use crate::evidence;
use crate::ground::Ground;
use crate::lists;
use crate::perform::Access;
use crate::runs::{SeenRun, Setting, performance};
use crate::spans;
use crate::undone::{Failed, Unavailable, Undone, settled};
use crate::workbench::{Order, Performed, Voice, Work, reported, sweep};

use workspace::LocalWorktrees;
pub(crate) use workspace::{branch as workspace_branch, pool_of as workspace_pool};
pub(crate) use worktree::{Planned, Worktrees, plan as plan_worktree};

/// The code of the refusal to start a run that gets no worktree.
const NO_WORKSPACE: &str = "no_workspace";

/// Carries an effect of a run out. Called on a thread that may wait.
pub(super) fn carry_out(
    ground: &Arc<Ground>,
    run: &str,
    effect: &str,
    data: &[u8],
    place: &Place,
) -> Result<Reported, NotYet> {
    let done = match run_effect::read(data) {
        Err(error) => Err(error.to_string().into()),
        Ok(Effect::Perform(wanted)) => match settled(present(ground.tasks.setting(run)))? {
            Ok(setting) => return recorded(ground, &setting, &wanted, place).map(Reported::Run),
            Err(failed) => Err(failed.into()),
        },
        Ok(Effect::Repeat { at }) => return next_turn(ground, run, at.0),
        Ok(other) => present(ground.tasks.load_run(run)).and_then(|seen| beside(ground, &seen, effect, &other)),
    };
    Ok(match settled(done)? {
        Ok(()) => Reported::Done,
        Err(failed) => Reported::Failed(ground.clean().text(&failed.error)),
    })
}

/// What was read of a run; the error says why there is nothing.
fn present<T>(read: Result<Option<T>, Problem>) -> Result<T, Undone> {
    read?.ok_or_else(|| "the run is gone".into())
}

/// The next turn of a patrol begins when its moment has come, and when it can: what keeps it from being started passes, or
/// a person ends the patrol. Of the turns before it, only as many stay as it keeps.
fn next_turn(ground: &Arc<Ground>, run: &str, at: i64) -> Result<Reported, NotYet> {
    let seen = match settled(present(ground.tasks.load_run(run)))? {
        Ok(seen) => seen,
        Err(failed) => return Ok(Reported::Failed(failed.error)),
    };
    if let Err(problem) = crate::patrols::tidy(ground, &seen) {
        ground.log.line(&format!("the old turns of the patrol of run {run} are not removed: {}", problem.message));
    }
    let now = ground.clock.now();
    // One that lies further ahead than a turn was set under a clock that was ahead.
    let every = seen.plan.recipe.repeat.as_ref().map(|repeat| repeat.every);
    if at > now.0 && every.is_none_or(|every| at <= now.after(every).0) {
        return Err(NotYet::At(at));
    }
    match crate::service::repeat(ground, &seen) {
        Ok(()) => Ok(Reported::Done),
        Err(problem) => Err(Unavailable(format!("the next turn cannot be started: {}", problem.message)).into()),
    }
}

/// Starts another recipe because a run has ended. What keeps it from being started here may pass; that there is no such
/// recipe, or that it has errors, does not.
fn start_next(ground: &Arc<Ground>, seen: &SeenRun, effect: &str, recipe: &str) -> Result<(), Undone> {
    crate::service::start_again(ground, seen, effect, recipe).map_err(|problem| {
        let passes = problem.status == Status::Fault || problem.code == NO_WORKSPACE;
        if passes { Unavailable(problem.message).into() } else { Undone::from(problem) }
    })
}

/// Where a performance is carried out, or what has to be made for it first.
fn place_of(ground: &Ground, setting: &Setting, wanted: &Perform) -> Place {
    let is_for_git = match wanted.job {
        Job::Task { .. } => true,
        Job::Script(_) | Job::Gate(_) | Job::Agent { .. } | Job::Arbiter { .. } => {
            !worktree::is_ready(ground, &setting.given)
        }
    };
    match is_for_git {
        true => Place::Git { repository: setting.given.origin.root.clone(), asker: setting.id.clone() },
        false => Place::Hands,
    }
}

/// Carries out a performance, and keeps what it was told and what it gave.
fn recorded(ground: &Arc<Ground>, setting: &Setting, wanted: &Perform, place: &Place) -> Result<Report, NotYet> {
    let next = place_of(ground, setting, wanted);
    if *place != next {
        return Err(NotYet::On(next));
    }
    let name = performance(&setting.id, wanted.step, wanted.attempt, wanted.part);
    let made = match place {
        Place::Git { .. } if !ground.was_stopped(&name) => prepared(ground, setting, wanted),
        Place::Git { .. } | Place::Hands => Ok(()),
    };
    if made.is_ok() && place_of(ground, setting, wanted) != *place {
        return Err(NotYet::On(Place::Hands)); // its worktree is there now
    }
    let record = evidence::begin(ground, setting, wanted);
    let step = &setting.plan.recipe.step(wanted.step).name;
    let span = spans::step(&setting.id, step.as_str(), wanted.attempt, spans::kind(&wanted.job));
    let performed = match made {
        Ok(()) => perform(ground, setting, wanted, &name).ok_or(NotYet::Told)?,
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
fn in_task(ground: &Ground, setting: &Setting, performed: Performed) -> Performed {
    let Given { workspace, origin, .. } = &setting.given;
    if origin.task.is_empty() || workspace.is_empty() || !origin.base.is_empty() {
        return performed;
    }
    let head = || workspace::pool_of(ground, &setting.given).ok()?.repository().head(Path::new(workspace)).ok();
    match performed {
        Ok(outcome) => Ok(Outcome { commit: head(), ..outcome }),
        Err(Undone::Failed(failed)) => {
            let outcome = Box::new(Outcome { commit: head(), ..*failed.outcome });
            Err(Undone::Failed(Failed { outcome, ..failed }))
        }
        Err(unavailable) => Err(unavailable),
    }
}

/// Makes the worktree that a performance needs. A task has one of its own.
fn prepared(ground: &Ground, setting: &Setting, wanted: &Perform) -> Result<(), Undone> {
    match wanted.job {
        Job::Task { .. } => Ok(()),
        Job::Script(_) | Job::Gate(_) | Job::Agent { .. } | Job::Arbiter { .. } => {
            worktree::ready(ground, &setting.given).map_err(|why| why.doing("its worktree cannot be made"))
        }
    }
}

/// Carries a part of a step out. `None`: it is under way, and its end will be told; nothing waits for that here.
///
/// A script needs to know nothing of where the run stands: reading that would cost more the longer the run is.
fn perform(ground: &Arc<Ground>, setting: &Setting, wanted: &Perform, name: &str) -> Option<Performed> {
    if ground.was_stopped(name) {
        return Some(Err("it was ended before it began".into()));
    }
    let seen = || present(ground.tasks.load_run(&setting.id));
    Some(match &wanted.job {
        Job::Script(script) | Job::Gate(script) => {
            let folder = PathBuf::from(setting.folder());
            let performed = ground.perform(&order(setting, wanted, name, folder, Work::Script(script.clone())));
            performed.map(|outcome| listed(setting, wanted, outcome))
        }
        Job::Agent { prompt, .. } | Job::Arbiter { prompt, .. } => {
            seen().and_then(|seen| agent(ground, &seen, wanted, name, prompt))
        }
        Job::Task { .. } => match seen() {
            Ok(seen) => return task::create(ground, &seen, wanted, name),
            Err(undone) => Err(undone),
        },
    })
}

/// An agent that does the work of a step, or of a part of it, or judges it.
fn agent(ground: &Arc<Ground>, seen: &SeenRun, wanted: &Perform, name: &str, prompt: &str) -> Performed {
    let trees = LocalWorktrees { ground, seen, wanted, name };
    let access = Access::of_agent(wanted.part, wanted.own_workspace, wanted.permissions);
    crate::perform::perform(&trees, access, |folder| {
        // Who works is told the folder that it works in; who judges, that of the work.
        let prompt = match access {
            Access::Shared | Access::Looks => prompt.to_owned(),
            Access::Own => prompt.replace(seen.folder(), &folder.display().to_string()),
        };
        let order = order(&seen.setting(), wanted, name, folder.to_owned(), Work::Agent { prompt });
        let permissions = if access == Access::Looks { Permissions::Reduced } else { order.permissions };
        ground.perform(&Order { permissions, ..order })
    })
}

/// What a script gave, with the list in the place of its text that a fan-out goes over.
pub(crate) fn listed(setting: &Setting, wanted: &Perform, outcome: Outcome) -> Outcome {
    let (recipe, step) = (&setting.plan.recipe, setting.plan.recipe.step(wanted.step));
    match wanted.job {
        Job::Script(_) | Job::Gate(_) => Outcome { output: lists::output(recipe, step, outcome.output), ..outcome },
        Job::Agent { .. } | Job::Arbiter { .. } | Job::Task { .. } => outcome,
    }
}

/// What the workbench is told to do.
fn order(setting: &Setting, wanted: &Perform, name: &str, folder: PathBuf, work: Work) -> Order {
    let of_run = || Some(setting.given.origin.harness.clone()).filter(|name| !name.is_empty());
    Order {
        name: name.to_owned(),
        run: setting.id.clone(),
        step: setting.plan.recipe.step(wanted.step).name.to_string(),
        attempt: wanted.attempt,
        role: wanted.role.to_string(),
        harness: wanted.harness.clone().or_else(of_run),
        permissions: wanted.permissions,
        folder,
        voice: Voice::OfThisHome,
        keeper: None,
        work,
    }
}

/// What is not the work of a step.
fn beside(ground: &Arc<Ground>, seen: &SeenRun, effect: &str, wanted: &Effect) -> Result<(), Undone> {
    match wanted {
        Effect::Stop { step, attempt, part } => {
            let name = performance(&seen.id, *step, *attempt, *part);
            ground.crabs.stop(ground, &name);
            let stopped = match &seen.plan.recipe.step(*step).work {
                StepWork::Task(_) => {
                    ground.stop_performance(&name); // it may not have begun
                    task::stop(ground, &seen.id, &key(*step, *attempt, *part)).map_err(Undone::from)
                }
                StepWork::Agent { .. }
                | StepWork::AgentLoop { .. }
                | StepWork::ParallelAgents { .. }
                | StepWork::Script { .. }
                | StepWork::Gate { .. } => ground.stop(&name),
            };
            if seen.state.end.is_some() {
                sweep(&seen.id).map_err(Undone::by)?;
            }
            stopped
        }
        Effect::Notify(message) => super::notify(ground, &seen.id, message).map(drop),
        Effect::RunCommand(script) => script::hook(ground, seen, effect, script),
        Effect::Start { recipe } => start_next(ground, seen, effect, recipe),
        Effect::Perform(_) | Effect::Repeat { .. } | Effect::SetTimer(..) | Effect::ClearTimer(_) => Ok(()),
    }
}

/// What a step is called in commits and messages.
pub(super) fn label(seen: &SeenRun, wanted: &Perform) -> String {
    let step = seen.plan.recipe.step(wanted.step).name.as_str().to_owned();
    match wanted.part {
        Part::Whole => step,
        Part::Item(item) => format!("{step} (item {item})"),
        Part::Turn(turn) => format!("{step} (turn {turn})"),
        Part::Arbiter(turn) => format!("{step} (arbiter {turn})"),
    }
}
