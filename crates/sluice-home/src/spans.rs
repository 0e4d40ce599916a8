//! What traces tell of work on this machine: whose it was, which step, and how it went. Never what was said or printed.

use sluice_core::recipe::FailureKind;
use sluice_core::run::{Job, Report};
use sluice_core::task::input::Outcome;
use sluice_telemetry::{Span, span};

/// A step of a run is performed.
pub(crate) fn step(run: &str, step: &str, attempt: u32, kind: &'static str) -> Span {
    span("step")
        .with("sluice.run.id", run)
        .with("sluice.step", step)
        .with("sluice.attempt", attempt)
        .with("sluice.kind", kind)
}

/// What kind of work a step is.
pub(crate) fn kind(job: &Job) -> &'static str {
    match job {
        Job::Agent { .. } => "agent",
        Job::Arbiter { .. } => "arbiter",
        Job::Script(_) => "script",
        Job::Gate(_) => "gate",
        Job::Task { .. } => "task",
    }
}

/// It is over, and this came of it.
pub(crate) fn step_ended(mut span: Span, report: &Report) {
    match report {
        Report::Completed(_) => span.outcome("completed", false),
        Report::Failed { kind: FailureKind::Failed, .. } => span.outcome("failed", true),
        Report::Failed { kind: FailureKind::Timeout, .. } => span.outcome("timeout", true),
        Report::Failed { kind: FailureKind::Crashed, .. } => span.outcome("crashed", true),
        Report::Failed { kind: FailureKind::Lost, .. } => span.outcome("lost", true),
    }
}

/// Something is done for a task. `effect` is its name there, which also says for which turn it is asked.
pub(crate) fn task(task: &str, effect: &str, kind: &str) -> Span {
    span("task.effect").with("sluice.task.id", task).with("sluice.effect.id", effect).with("sluice.kind", kind)
}

/// It is over, and this came of it.
pub(crate) fn task_ended(mut span: Span, outcome: &Outcome) {
    match outcome {
        Outcome::Ok(_) => span.outcome("completed", false),
        Outcome::Failed(_) => span.outcome("failed", true),
        Outcome::Skipped(_) => span.outcome("skipped", false),
    }
}
