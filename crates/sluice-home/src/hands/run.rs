//! Carrying out what a run asks for: scripts, agents, tasks, and their end.
//!
//! Each performance has a name made of its run, step, attempt and part. Asked for again after a crash, a living agent is
//! adopted; a script is ended first and then run again.

mod agent;
mod script;
mod task;
mod workspace;

use std::path::PathBuf;
use std::sync::Arc;

use sluice_api::Problem;
use sluice_core::run::{Effect, Job, Outcome, Part, Perform, Report};
use sluice_engine::actor::Outcome as Reported;
use sluice_engine::codec::run_effect;
use sluice_engine::host::Reporter;
use sluice_engine::reactor::{Assignment, Message};
use sluice_store::StreamId;

use crate::evidence;
use crate::ground::Ground;
use crate::lists;
use crate::runs::{SeenRun, Setting, id_of, performance};
use crate::spans;
use crate::threads::Threads;
use crate::workbench::{Failed, Order, Performed, Voice, Work, reported, sweep};

pub(crate) use workspace::{branch as workspace_branch, pool as workspace_pool};

/// Carries an effect of a run out, and reports. Called on a thread that may wait.
pub(super) fn carry_out(ground: &Arc<Ground>, assignment: Assignment, report: &Reporter, threads: &Threads) {
    let Assignment { stream, effect, dispatch, .. } = assignment;
    let understood = run_effect::read(&effect.data).map_err(|error| error.to_string());
    let id = id_of(&stream).unwrap_or_default();
    let outcome = match understood {
        Err(why) => Reported::Failed(why),
        Ok(Effect::Perform(wanted)) => match present(ground.tasks.setting(id)) {
            Ok(setting) => Reported::Run(recorded(ground, &setting, &wanted)),
            Err(why) => Reported::Failed(why),
        },
        Ok(other) => match (present(ground.tasks.load_run(id)), other) {
            (Err(why), _) => Reported::Failed(why),
            (Ok(seen), Effect::Repeat { at }) => {
                return repeat_at(ground, at.0, seen, Ending { stream, effect: effect.id, dispatch }, report, threads);
            }
            (Ok(seen), other) => match beside(ground, &seen, &effect.id, &other) {
                Ok(()) => Reported::Done,
                Err(why) => Reported::Failed(why),
            },
        },
    };
    report.send(Message::Ended { token: None, stream, effect: effect.id, dispatch, outcome });
}

/// What was read of a run; the error says why there is nothing.
fn present<T>(read: Result<Option<T>, Problem>) -> Result<T, String> {
    read.map_err(|problem| problem.message)?.ok_or_else(|| "the run is gone".to_owned())
}

/// What is reported when something has ended, besides how.
struct Ending {
    stream: StreamId,
    effect: String,
    dispatch: u64,
}

/// Starts a run again when its moment has come; until then it takes nobody's thread.
fn repeat_at(ground: &Arc<Ground>, at: i64, seen: SeenRun, over: Ending, report: &Reporter, threads: &Threads) {
    let (weak, report, threads) = (Arc::downgrade(ground), report.clone(), threads.clone());
    ground.later.at(at, &ground.clock, move || {
        threads.run(move || {
            let Some(ground) = weak.upgrade() else { return };
            let outcome = match crate::service::repeat(&ground, &seen) {
                Ok(()) => Reported::Done,
                Err(problem) => {
                    ground.log.line(&format!("the patrol of run {} does not go on: {}", seen.id, problem.message));
                    Reported::Failed(problem.message)
                }
            };
            let Ending { stream, effect, dispatch } = over;
            report.send(Message::Ended { token: None, stream, effect, dispatch, outcome });
        });
    });
}

/// Carries out a performance, and keeps what it was told and what it gave.
fn recorded(ground: &Arc<Ground>, setting: &Setting, wanted: &Perform) -> Report {
    let record = evidence::begin(ground, setting, wanted);
    let name = performance(&setting.id, wanted.step, wanted.attempt, wanted.part);
    let step = &setting.plan.recipe.step(wanted.step).name;
    let span = spans::step(&setting.id, step.as_str(), wanted.attempt, spans::kind(&wanted.job));
    let report = reported(perform(ground, setting, wanted, &name));
    spans::step_ended(span, &report);
    ground.performed(&name);
    record.end(ground, setting, wanted, &report);
    report
}

/// A script needs to know nothing of where the run stands: reading that would cost more the longer the run is.
fn perform(ground: &Arc<Ground>, setting: &Setting, wanted: &Perform, name: &str) -> Performed {
    if ground.was_stopped(name) {
        return Err(Failed::because("it was ended before it began"));
    }
    let seen = || present(ground.tasks.load_run(&setting.id));
    match &wanted.job {
        Job::Script(script) | Job::Gate(script) => {
            let folder = PathBuf::from(setting.folder());
            let performed = ground.perform(&order(setting, wanted, name, folder, Work::Script(script.clone())));
            let (recipe, step) = (&setting.plan.recipe, setting.plan.recipe.step(wanted.step));
            performed.map(|outcome| Outcome { output: lists::output(recipe, step, outcome.output), ..outcome })
        }
        Job::Agent { prompt } => agent::work(ground, &seen()?, wanted, name, prompt),
        Job::Arbiter { prompt } => agent::judge(ground, &seen()?, wanted, name, prompt),
        Job::Task { .. } => task::create(ground, &seen()?, wanted, name),
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
fn beside(ground: &Arc<Ground>, seen: &SeenRun, effect: &str, wanted: &Effect) -> Result<(), String> {
    match wanted {
        Effect::Stop { step, attempt, part } => {
            let name = performance(&seen.id, *step, *attempt, *part);
            ground.crabs.stop(ground, &name);
            let stopped = ground.stop(&name);
            if seen.state.end.is_some() {
                sweep(&seen.id);
            }
            stopped
        }
        Effect::Notify(message) => super::notify(ground, &seen.id, message).map(drop),
        Effect::RunCommand(script) => script::hook(ground, seen, effect, script),
        Effect::Start { recipe } => crate::service::start_again(ground, seen, effect, recipe),
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
