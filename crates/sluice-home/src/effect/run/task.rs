//! A step that is a task: created once, and its end is the end of the step.
//!
//! Nothing waits for that end: many tasks may be open for weeks, and each waiting thread would be one less for the
//! others. The step stays asked for in the store. Whoever reads the log tells the run when the task has ended
//! ([`look`]), and an engine that starts asks for every open step again, and then finds what has ended meanwhile.

use std::sync::Arc;

use sluice_api::Problem;
use sluice_api::task::CreateTask;
use sluice_core::id::{MalformedId, RunId, TaskId};
use sluice_core::machine::Moment;
use sluice_core::recipe::Data;
use sluice_core::run::{AttemptReport, Perform, RunEffect, RunJob, StepOutcome};
use sluice_engine::actor::{ActorInput, EffectOutcome};
use sluice_engine::codec::run_effect;
use sluice_engine::reactor::ReactorMessage;

use crate::definitions::committed::DefinitionSite;
use crate::evidence;
use crate::home::Home;
use crate::perform::PerformResult;
use crate::read::runs::{RunSnapshot, maker, stream};
use crate::read::tasks::{TaskSnapshot, unread};
use crate::read::view_run::unless_empty;
use crate::undone::{PerformError, PerformFailure};

/// Creates the task of a step, if that has not been done. `None`: it is open, and its end will be told.
pub(super) fn create(home: &Arc<Home>, seen: &RunSnapshot, wanted: &Perform, name: &str) -> Option<PerformResult> {
    match open(home, seen, wanted, name) {
        Ok(task) if task.card.open => None,
        Ok(task) => Some(result(&task).map_err(PerformError::from)),
        Err(undone) => Some(Err(undone)),
    }
}

fn open(home: &Arc<Home>, seen: &RunSnapshot, wanted: &Perform, name: &str) -> Result<TaskSnapshot, PerformError> {
    let RunJob::Task { summary, branch, workflow, project, context } = &wanted.job else {
        return Err("that is no task".into());
    };
    // Its id is the step's: asked for again, the same task is found.
    let id: TaskId = name.replace('.', "-").parse().map_err(|error: MalformedId| error.to_string())?;
    if let Some(task) = home.tasks.load(&id)? {
        return Ok(task);
    }
    let wanted = CreateTask {
        project: project.clone(),
        cwd: Some(seen.state.given.origin.root.clone()),
        branch: branch.clone(),
        summary: summary.clone(),
        workflow: workflow.clone(),
        harness: wanted.harness.clone().or_else(|| unless_empty(&seen.state.given.origin.harness)),
        context: context.clone(),
        ..CreateTask::default()
    };
    crate::start::create_task(home, &id, &wanted, DefinitionSite::Commit, None)?;
    home.tasks.load(&id)?.ok_or_else(|| "its task is gone".into())
}

fn result(task: &TaskSnapshot) -> Result<StepOutcome, PerformFailure> {
    let status = task.status().to_owned();
    let outcome = StepOutcome {
        summary: format!("task {}: {}", task.id, task.state.about.summary),
        result: Some(status.clone()),
        output: Data::Table(vec![
            ("id".into(), Data::Text(task.id.to_string())),
            ("status".into(), Data::Text(status.clone())),
            ("branch".into(), Data::Text(task.state.about.branch.clone())),
        ]),
        ..StepOutcome::default()
    };
    match status.as_str() {
        "cancelled" => {
            Err(PerformFailure { outcome: Box::new(outcome), ..PerformFailure::because("its task was cancelled") })
        }
        _ => Ok(outcome),
    }
}

fn reported(result: Result<StepOutcome, PerformFailure>) -> AttemptReport {
    match result {
        Ok(outcome) => AttemptReport::Completed(outcome),
        Err(PerformFailure { kind, error, outcome }) => {
            AttemptReport::Failed { kind, error: error.to_string(), outcome: *outcome }
        }
    }
}

/// Something has happened to a task: if it is a step of a run and has ended, the run is told, unless it knows.
pub(crate) fn look(home: &Home, task: &TaskId) -> Result<(), Problem> {
    let Some(run) = maker(task) else { return Ok(()) };
    match home.tasks.load(task)? {
        Some(seen) if !seen.card.open => tell(home, &run, &effect_of(&run, task), &reported(result(&seen))),
        Some(_) | None => Ok(()),
    }
}

/// A step that is a task is ended before its task is. The task goes on: it is somebody's work.
pub(super) fn stop(home: &Home, run: &RunId, effect: &str) -> Result<(), Problem> {
    tell(home, run, effect, &reported(Err(PerformFailure::because("it was ended; its task goes on"))))
}

/// The effect of a run that a task is made for; its id says so.
fn effect_of(run: &RunId, task: &TaskId) -> String {
    task.as_str().strip_prefix(run.as_str()).unwrap_or_default().trim_start_matches('-').replace('-', ".")
}

/// Tells a run how the task of a step went, if it still waits for that, and keeps the evidence.
fn tell(home: &Home, run: &RunId, effect: &str, report: &AttemptReport) -> Result<(), Problem> {
    let read = home.tasks.loader().reader().load(&stream(run));
    let stored = read.map_err(unread)?;
    let open = stored.into_iter().flat_map(|stored| stored.effects).find(|open| open.effect.id == effect);
    let Some(open) = open else { return Ok(()) };
    if let (Ok(RunEffect::Perform(wanted)), Some(seen)) =
        (run_effect::read(&open.effect.data), home.tasks.load_run(run)?)
    {
        let began = seen.state.step(wanted.step).began.unwrap_or(Moment(seen.card.created));
        evidence::resumed(&wanted, began).end(home, &seen.setting(), &wanted, report);
    }
    let engine = &home.engine;
    let said = ActorInput::Outcome { effect: effect.to_owned(), outcome: EffectOutcome::Run(report.clone()) };
    engine.send(ReactorMessage::Say { token: None, stream: stream(run), said });
    Ok(())
}
