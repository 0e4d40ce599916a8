//! What traces tell of the work of a home: whose it was, which step, and how it went. Never what was said or printed.
//!
//! All that is done for a task is one trace, and so is all that is done for a run: the trace's ids are made of the stream's
//! name, here and at a worker elsewhere. Its root is told when the task or run has ended.

use sluice_core::event_name::EventName;
use sluice_core::id::{RunId, TaskId};
use sluice_core::run::RunConclusion;
use sluice_core::task::TaskEvent;
use sluice_core::task::input::{TaskEffectOutcome, TaskEffectProduct};
use sluice_engine::codec::task_event;
use sluice_store::{Card, LoggedEvent, StreamId};
use sluice_telemetry::{SpanContext, TraceSpan, is_wanted, span};

use crate::home::Home;
use crate::read::runs;
use crate::read::runs::maker;
use crate::read::tasks;

/// Something is done for a task. `effect` is its name there, which also says for which turn it is asked.
pub(crate) fn task(task: &TaskId, effect: &str, kind: &str) -> TraceSpan {
    span("task.effect")
        .within(tasks::stream(task).as_str())
        .with("sluice.task.id", task.as_str())
        .with("sluice.effect.id", effect)
        .with("sluice.kind", kind)
}

/// It is over, and this came of it; with the code of what failed, where that has one.
pub(crate) fn task_ended(mut span: TraceSpan, outcome: &TaskEffectOutcome, code: Option<&str>) {
    match outcome {
        TaskEffectOutcome::Ok(product) => {
            if let TaskEffectProduct::Run { id, .. } = product {
                span.link(runs::stream(id).as_str());
            }
            span.outcome("completed", false);
        }
        TaskEffectOutcome::Failed(_) => {
            span.outcome("failed", false);
            span.fail(code.unwrap_or("failed"));
        }
        TaskEffectOutcome::Skipped(_) => span.outcome("skipped", false),
    }
}

/// A run is started: the first part of its trace, linked to what leads to it.
pub(crate) fn run_starts(run: &RunId) -> TraceSpan {
    span("run.start").within(runs::stream(run).as_str()).with("sluice.run.id", run.as_str()).with_cause()
}

/// A task is created: the first part of its trace, linked to what leads to it.
pub(crate) fn task_starts(task: &TaskId) -> TraceSpan {
    span("task.create").within(tasks::stream(task).as_str()).with("sluice.task.id", task.as_str()).with_cause()
}

/// The root of what is done for a stream, for what it or one of its events leads to.
pub(crate) fn root_of(stream: &StreamId) -> Option<SpanContext> {
    is_wanted().then(|| SpanContext::root_of(stream.as_str()))
}

/// Tells the roots of the tasks and runs that have ended with one of these events. An event that is read twice gives the same
/// span twice, and one that was reopened gives it again at its next end.
pub(crate) fn ended(home: &Home, page: &[LoggedEvent]) {
    if !is_wanted() {
        return;
    }
    for logged in page {
        match EventName::read(&logged.event.kind) {
            Some(EventName::StatusChanged) => task_root(home, logged),
            Some(EventName::RunCompleted | EventName::RunFailed | EventName::RunCancelled) => run_root(home, logged),
            Some(_) | None => None,
        };
    }
}

fn root(name: &'static str, logged: &LoggedEvent, card: &Card) -> TraceSpan {
    span(name).whole(logged.stream.as_str(), card.created, logged.event.time)
}

/// Tells the root of a task that has reached its end with this event; what its last hooks do may take longer.
fn task_root(home: &Home, logged: &LoggedEvent) -> Option<()> {
    let Ok(TaskEvent::Moved(moved)) = task_event::read(logged.event.version, &logged.event.data) else { return None };
    let seen = home.tasks.load(&tasks::id_of(&logged.stream)?).ok()??;
    let state = seen.lifecycle.state(moved.to);
    if !state.terminal {
        return None;
    }
    let mut span = root("task", logged, &seen.card)
        .with("sluice.task.id", seen.id.as_str())
        .with("sluice.workflow", seen.lifecycle.name.as_str());
    if let Some(run) = maker(&seen.id) {
        span.link(runs::stream(&run).as_str());
    }
    span.outcome(state.name.as_str(), false);
    Some(())
}

fn run_root(home: &Home, logged: &LoggedEvent) -> Option<()> {
    let seen = home.tasks.load_run(&runs::id_of(&logged.stream)?).ok()??;
    let (outcome, failed) = match (&seen.state.end, EventName::read(&logged.event.kind)) {
        (Some(RunConclusion::Completed { .. }), Some(EventName::RunCompleted)) => ("completed", false),
        (Some(RunConclusion::Failed { .. }), Some(EventName::RunFailed)) => ("failed", true),
        (Some(RunConclusion::Cancelled { .. }), Some(EventName::RunCancelled)) => ("cancelled", false),
        (Some(_) | None, _) => return None,
    };
    let mut span = root("run", logged, &seen.card)
        .with("sluice.run.id", seen.id.as_str())
        .with("sluice.recipe", seen.plan.recipe.name.as_str());
    if let Some(task) = &seen.state.given.origin.task {
        span.link(tasks::stream(task).as_str());
    }
    span.outcome(outcome, failed);
    Some(())
}
