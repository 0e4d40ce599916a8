//! Carrying out what a run asks for: scripts, agents, tasks, and their end.
//!
//! Each performance has a name made of its run, step, attempt and part. Asked for again after a crash, a living agent is
//! adopted; a script is ended first and then run again.

pub(crate) mod task;
mod workspace;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_core::id::RunId;
use sluice_core::lifecycle::AgentPermissions;
use sluice_core::recipe::StepWork;
use sluice_core::run::effect::{RunScript, key};
use sluice_core::run::{AttemptPart, AttemptReport, Perform, RunEffect, RunJob, RunParameters, StepOutcome};
use sluice_engine::actor::{ActorInput, EffectOutcome};
use sluice_engine::codec::run_effect;
use sluice_engine::host::EngineClock;
use sluice_engine::reactor::Assignment;
use sluice_engine::run_actor::REPEAT;
use sluice_os::process::ScriptProgram;
use sluice_os::workspace::BoundWorktree;
use sluice_store::OpenEffect;
use sluice_telemetry::caused_by;
use sluice_worker::spans;

use crate::background::lane::LaneTurn;
use crate::evidence;
use crate::home::Home;
use crate::home::engine::say_to;
use crate::home::errand::{ErrandPending, ErrandPlace};
use crate::home::hook::{hook, run_to_end};
use crate::home::worktrees::{self, NO_WORKSPACE, WorktreeReturn};
use crate::home::{scratch, setup};
use crate::perform::lists::listed;
use crate::perform::performer::WorktreeAccess;
use crate::perform::{LocalOrder, OrderWork, PerformResult, StepIdentity, may_have_left, reported, sweep};
use crate::read::runs::{RunFacts, RunSnapshot, performance, stream};
use crate::read::tasks::unread;
use crate::read::view_run::unless_empty;
use crate::roster::orders::folder_in;
use crate::settings::ids::LOCAL;
use crate::undone::{PerformError, PerformFailure, UnavailableReason, described, settled};

use workspace::LocalWorktrees;

/// Carries an effect of a run out. Called on a thread that may wait.
pub(super) fn carry_out(
    home: &Arc<Home>,
    run: &RunId,
    assignment: &Assignment,
    place: &ErrandPlace,
) -> Result<EffectOutcome, ErrandPending> {
    let effect = assignment.effect.id.as_str();
    let done = match run_effect::read(&assignment.effect.data) {
        Err(error) => Err(error.to_string().into()),
        Ok(RunEffect::Perform(wanted)) => match settled(present(home.tasks.setting(run)))? {
            Ok(setting) => {
                if assignment.withdrawal.is_withdrawn() {
                    home.context.stop_performance(&performance(run, wanted.step, wanted.attempt, wanted.part));
                }
                return recorded(home, &setting, &wanted, place).map(EffectOutcome::Run);
            }
            Err(failed) => Err(failed.into()),
        },
        Ok(RunEffect::Repeat { at }) => return next_turn(home, run, at.0),
        Ok(RunEffect::Release) => match settled(present(home.tasks.load_run(run)))? {
            Ok(seen) => return give_back(home, &seen, effect, place),
            Err(failed) => Err(failed.into()),
        },
        Ok(other) => present(home.tasks.load_run(run)).and_then(|seen| beside(home, &seen, effect, &other)),
    };
    Ok(match settled(done)? {
        Ok(()) => EffectOutcome::Done,
        Err(failed) => EffectOutcome::Failed(home.context.clean().text(&failed.error.to_string())),
    })
}

/// What was read of a run; the error says why there is nothing.
fn present<T>(read: Result<Option<T>, Problem>) -> Result<T, PerformError> {
    read?.ok_or_else(|| "the run is gone".into())
}

/// The next turn of a patrol begins when its moment has come, and when it can: what keeps it from being started passes, or
/// a person ends the patrol. Of the turns before it, only as many stay as it keeps.
fn next_turn(home: &Arc<Home>, run: &RunId, at: i64) -> Result<EffectOutcome, ErrandPending> {
    let seen = match settled(present(home.tasks.load_run(run)))? {
        Ok(seen) => seen,
        Err(failed) => return Ok(EffectOutcome::Failed(failed.error.to_string())),
    };
    if let Err(problem) = crate::start::repeats::tidy(home, &seen) {
        tracing::warn!(run = run.as_str(), "the old turns of its patrol are not removed: {}", problem.message);
    }
    let now = home.clock.now();
    // One that lies further ahead than a turn was set under a clock that was ahead.
    let every = seen.plan.recipe.repeat.as_ref().map(|repeat| repeat.every);
    if at > now.0 && every.is_none_or(|every| at <= now.after(every).0) {
        return Err(ErrandPending::At(at));
    }
    match crate::start::repeat(home, &seen) {
        Ok(()) => Ok(EffectOutcome::Done),
        Err(problem) => Err(UnavailableReason(format!("the next turn cannot be started: {}", problem.message)).into()),
    }
}

/// Ends what scripts of a run have left behind: it may live while the run does, and the next run may be lent the worktree. All
/// processes are looked through only where there may be one, or an engine before this one carried out a step.
fn end_leftovers(seen: &RunSnapshot) -> Result<(), ErrandPending> {
    if !worktrees::is_older_than_engine(seen.state.started) && !may_have_left(seen.id.as_str()) {
        return Ok(());
    }
    let stubborn = sweep(&seen.id).map_err(|failure| UnavailableReason(described(&failure)))?;
    match stubborn {
        0 => Ok(()),
        _ => Err(UnavailableReason(format!("{stubborn} processes of the run do not end")).into()),
    }
}

/// Gives back what a run has worked in that has ended, when nothing of the run is at work there any more.
fn give_back(
    home: &Arc<Home>,
    seen: &RunSnapshot,
    effect: &str,
    place: &ErrandPlace,
) -> Result<EffectOutcome, ErrandPending> {
    let is_other = |open: &OpenEffect| open.effect.id != effect && open.effect.kind != REPEAT;
    let stored = home.tasks.loader().reader().load(&stream(&seen.id)).map_err(unread);
    let stored = stored.map_err(|problem| UnavailableReason(problem.message))?;
    if stored.is_some_and(|stored| stored.effects.iter().any(is_other)) {
        return Err(UnavailableReason("what the run has started is not over".into()).into());
    }
    let given = &seen.state.given;
    end_leftovers(seen)?;
    let failed =
        |failed: PerformFailure| Ok(EffectOutcome::Failed(home.context.clean().text(&failed.error.to_string())));
    let (repository, asker) = (given.origin.root.clone(), seen.id.clone());
    let git = ErrandPlace::Git { repository, asker: String::from(asker), turn: LaneTurn::Next };
    if *place != git && !given.origin.base.is_empty() {
        // A command that ends what was set up takes its time, and git waits for it nowhere.
        return match settled(setup::leave(home, given))? {
            Ok(()) => Err(ErrandPending::On(git)),
            Err(why) => failed(why),
        };
    }
    let returned = worktrees::give_back(home, given);
    match settled(returned.and_then(|returned| scratch::give_back(given).map(|()| returned)))? {
        Ok(WorktreeReturn::Over) => Ok(EffectOutcome::Done),
        Ok(WorktreeReturn::TearDown) => Err(ErrandPending::On(ErrandPlace::Pool)),
        Err(why) => failed(why),
    }
}

/// Starts another recipe because a run has ended. What keeps it from being started here may pass; that there is no such
/// recipe, or that it has errors, does not.
fn start_next(home: &Arc<Home>, seen: &RunSnapshot, effect: &str, recipe: &str) -> Result<(), PerformError> {
    crate::start::start_again(home, seen, effect, recipe).map_err(|problem| {
        let passes = problem.status == ProblemStatus::Fault || problem.code == NO_WORKSPACE;
        if passes { UnavailableReason(problem.message).into() } else { PerformError::from(problem) }
    })
}

/// Where a performance is carried out, or what has to be made for it first.
fn place_of(home: &Home, setting: &RunFacts, wanted: &Perform) -> ErrandPlace {
    let is_for_git = match wanted.job {
        RunJob::Task { .. } => true,
        RunJob::Script(_) | RunJob::Gate(_) | RunJob::Agent { .. } | RunJob::Arbiter { .. } => {
            wanted.workspace.is_worktree() && !worktrees::is_ready(home, &setting.given)
        }
    };
    match is_for_git {
        true => {
            let (repository, asker) = (setting.given.origin.root.clone(), setting.id.clone());
            ErrandPlace::Git { repository, asker: String::from(asker), turn: LaneTurn::InLine }
        }
        false => ErrandPlace::Pool,
    }
}

/// Carries out a performance, and keeps what it was told and what it gave.
fn recorded(
    home: &Arc<Home>,
    setting: &RunFacts,
    wanted: &Perform,
    place: &ErrandPlace,
) -> Result<AttemptReport, ErrandPending> {
    let next = place_of(home, setting, wanted);
    if *place != next {
        return Err(ErrandPending::On(next));
    }
    let name = performance(&setting.id, wanted.step, wanted.attempt, wanted.part);
    let made = match place {
        ErrandPlace::Git { .. } if !home.context.was_stopped(&name) => prepared(home, setting, wanted),
        ErrandPlace::Pool if wanted.workspace.is_worktree() => {
            setup::of_run(home, &setting.given, Path::new(setting.folder_of(wanted.workspace)), &name)
        }
        ErrandPlace::Git { .. } | ErrandPlace::Pool => Ok(()),
    };
    if made.is_ok() && place_of(home, setting, wanted) != *place {
        return Err(ErrandPending::On(ErrandPlace::Pool)); // its worktree is there now
    }
    let record = evidence::begin(home, setting, wanted);
    let step = &setting.plan.recipe.step(wanted.step).name;
    let span = spans::step(&setting.id, step.as_str(), wanted.attempt, spans::kind(&wanted.job));
    let performed = match made {
        Ok(()) => caused_by(span.context(), || perform(home, setting, wanted, &name)).ok_or(ErrandPending::Told)?,
        Err(why) => Err(why),
    };
    let performed = if wanted.workspace.is_worktree() { in_task(home, setting, performed) } else { performed };
    let report = reported(&home.context, performed)?;
    spans::step_ended(span, &report);
    home.context.performed(&name);
    record.end(home, setting, wanted, &report);
    Ok(report)
}

/// What was done in the worktree of a task, with the commit that it stands at now: where the run of a state judges the work,
/// its end asks which of its steps has moved that. Where it cannot be read, nothing is said.
fn in_task(home: &Home, setting: &RunFacts, performed: PerformResult) -> PerformResult {
    let RunParameters { workspace, origin, .. } = &setting.given;
    if origin.task.is_none() || workspace.is_empty() || !origin.base.is_empty() {
        return performed;
    }
    let head = || {
        let pool = worktrees::pool_of(home, &setting.given).ok()?;
        BoundWorktree::at(pool.repository(), Path::new(workspace), None).and_then(|bound| bound.head()).ok()
    };
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
fn prepared(home: &Arc<Home>, setting: &RunFacts, wanted: &Perform) -> Result<(), PerformError> {
    match wanted.job {
        RunJob::Task { .. } => Ok(()),
        RunJob::Script(_) | RunJob::Gate(_) | RunJob::Agent { .. } | RunJob::Arbiter { .. } => {
            worktrees::ready(home, &setting.given).map_err(|why| why.doing("its worktree cannot be made"))
        }
    }
}

/// Carries a part of a step out. `None`: it is under way, and its end will be told; nothing waits for that here.
///
/// A script in the run's folder needs to know nothing of where the run stands: reading that would cost more the longer the run is.
fn perform(home: &Arc<Home>, setting: &RunFacts, wanted: &Perform, name: &str) -> Option<PerformResult> {
    if home.context.was_stopped(name) {
        return Some(Err("it was ended before it began".into()));
    }
    let seen = || present(home.tasks.load_run(&setting.id));
    Some(match &wanted.job {
        RunJob::Script(script) | RunJob::Gate(script) => {
            let performed = match WorktreeAccess::of_script(wanted.workspace) {
                WorktreeAccess::Own => seen().and_then(|seen| script_apart(home, &seen, wanted, name, script)),
                WorktreeAccess::Shared | WorktreeAccess::Looks => {
                    scratch::folder(setting, wanted.workspace).and_then(|folder| {
                        home.context.perform(&order(setting, wanted, name, folder, OrderWork::Script(script.clone())))
                    })
                }
            };
            performed.map(|outcome| listed(&setting.plan.recipe, wanted, outcome))
        }
        RunJob::Agent { prompt, .. } | RunJob::Arbiter { prompt, .. } => {
            seen().and_then(|seen| agent(home, &seen, wanted, name, prompt))
        }
        RunJob::Task { .. } => match seen() {
            Ok(seen) => return task::create(home, &seen, wanted, name),
            Err(undone) => Err(undone),
        },
    })
}

/// An agent that does the work of a step, or of a part of it, or judges it.
fn agent(home: &Arc<Home>, seen: &RunSnapshot, wanted: &Perform, name: &str, prompt: &str) -> PerformResult {
    let trees = LocalWorktrees { home, seen, wanted, name };
    let access = WorktreeAccess::of_agent(wanted.part, wanted.workspace, wanted.permissions);
    crate::perform::performer::perform(&trees, access, |folder| {
        // Who works is told the folder that it works in; who judges, that of the work.
        let prompt = match access {
            WorktreeAccess::Shared | WorktreeAccess::Looks => prompt.to_owned(),
            WorktreeAccess::Own => prompt.replace(seen.folder(), &folder.display().to_string()),
        };
        let order = order(&seen.setting(), wanted, name, folder.to_owned(), OrderWork::Agent { prompt });
        let permissions = if access == WorktreeAccess::Looks { AgentPermissions::Reduced } else { order.permissions };
        home.context.perform(&LocalOrder { permissions, ..order })
    })
}

/// A script or a gate in a worktree of its own. Where it is told the folder of the run, it is told that one.
fn script_apart(
    home: &Arc<Home>,
    seen: &RunSnapshot,
    wanted: &Perform,
    name: &str,
    script: &RunScript,
) -> PerformResult {
    let trees = LocalWorktrees { home, seen, wanted, name };
    let told = folder_in(&seen.plan.recipe.step(wanted.step).work);
    crate::perform::performer::perform(&trees, WorktreeAccess::Own, |folder| {
        let here = folder.display().to_string();
        let mut script = script.clone();
        let named = script.environment.iter_mut().filter(|(key, value)| told.contains(key) && value == seen.folder());
        named.for_each(|(_, value)| value.clone_from(&here));
        home.context.perform(&order(&seen.setting(), wanted, name, folder.to_owned(), OrderWork::Script(script)))
    })
}

fn order(setting: &RunFacts, wanted: &Perform, name: &str, folder: PathBuf, work: OrderWork) -> LocalOrder {
    LocalOrder {
        name: name.to_owned(),
        run: setting.id.clone(),
        step: setting.plan.recipe.step(wanted.step).name.to_string(),
        attempt: wanted.attempt,
        role: wanted.role.to_string(),
        harness: wanted.harness.clone().or_else(|| unless_empty(&setting.given.origin.harness)),
        permissions: wanted.permissions,
        folder,
        voice: StepIdentity::OfThisHome,
        keeper: None,
        work,
    }
}

/// What is not the work of a step.
fn beside(home: &Arc<Home>, seen: &RunSnapshot, effect: &str, wanted: &RunEffect) -> Result<(), PerformError> {
    match wanted {
        RunEffect::Stop { step, attempt, part } => {
            let name = performance(&seen.id, *step, *attempt, *part);
            if !home.roster.stop(home, &name) && seen.group() != LOCAL {
                return never_begun(home, seen, key(*step, *attempt, *part));
            }
            let stopped = match &seen.plan.recipe.step(*step).work {
                StepWork::Task(_) => {
                    home.context.stop_performance(&name); // it may not have begun
                    task::stop(home, &seen.id, &key(*step, *attempt, *part)).map_err(PerformError::from)
                }
                StepWork::Agent { .. }
                | StepWork::AgentLoop { .. }
                | StepWork::ParallelAgents { .. }
                | StepWork::Script { .. }
                | StepWork::Gate { .. } => home.context.stop(&name),
            };
            if seen.state.end.is_some() {
                sweep(&seen.id).map_err(PerformError::by)?;
            }
            stopped
        }
        RunEffect::Notify(message) => {
            let notes = home.context.places.evidence().join(seen.id.as_str());
            super::notify(home, seen.id.as_str(), effect, &notes, message).map(drop)
        }
        RunEffect::RunCommand(script) => command(home, seen, effect, script),
        RunEffect::Start { recipe } => start_next(home, seen, effect, recipe),
        RunEffect::Perform(_)
        | RunEffect::Release
        | RunEffect::Repeat { .. }
        | RunEffect::SetTimer(..)
        | RunEffect::ClearTimer(_) => Ok(()),
    }
}

/// Ends a performance that waits for a worker, and that none has: nothing else would report its end. One that is given to a
/// worker at this moment is taken back from it.
fn never_begun(home: &Home, seen: &RunSnapshot, effect: String) -> Result<(), PerformError> {
    let said = ActorInput::Outcome { effect, outcome: EffectOutcome::Failed("no worker had begun it".into()) };
    say_to(home, stream(&seen.id), seen.id.as_str(), said).map(drop).map_err(PerformError::from)
}

fn command(home: &Arc<Home>, seen: &RunSnapshot, effect: &str, script: &RunScript) -> Result<(), PerformError> {
    let workspace = seen.plan.recipe.workspace;
    if workspace.is_worktree() {
        worktrees::ready(home, &seen.state.given)?;
        setup::of_run(home, &seen.state.given, Path::new(seen.folder()), &format!("{}-command", seen.id))?;
    }
    let shell = ScriptProgram::Shell(script.script.clone());
    let mut hook = hook(home, seen.id.as_str(), effect, shell, &scratch::folder(&seen.setting(), workspace)?)?;
    hook.environment.insert("SLUICE_RUN".into(), seen.id.to_string());
    hook.environment.extend(script.environment.iter().cloned());
    run_to_end(home, &hook)
}

pub(super) fn label(seen: &RunSnapshot, wanted: &Perform) -> String {
    let step = seen.plan.recipe.step(wanted.step).name.as_str().to_owned();
    match wanted.part {
        AttemptPart::Whole => step,
        AttemptPart::Item(item) => format!("{step} (item {item})"),
        AttemptPart::Turn(turn) => format!("{step} (turn {turn})"),
        AttemptPart::Arbiter(turn) => format!("{step} (arbiter {turn})"),
    }
}
