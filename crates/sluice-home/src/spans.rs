//! What traces tell of work on this machine: whose it was, which step, and how it went. Never what was said or printed.

use sluice_core::recipe::FailureKind;
use sluice_core::run::{AttemptReport, RunJob};
use sluice_core::task::input::TaskEffectOutcome;
use sluice_telemetry::{TraceSpan, span};

/// A step of a run is performed.
pub(crate) fn step(run: &str, step: &str, attempt: u32, kind: &'static str) -> TraceSpan {
    span("step")
        .with("sluice.run.id", run)
        .with("sluice.step", step)
        .with("sluice.attempt", attempt)
        .with("sluice.kind", kind)
}

/// What kind of work a step is.
pub(crate) fn kind(job: &RunJob) -> &'static str {
    match job {
        RunJob::Agent { .. } => "agent",
        RunJob::Arbiter { .. } => "arbiter",
        RunJob::Script(_) => "script",
        RunJob::Gate(_) => "gate",
        RunJob::Task { .. } => "task",
    }
}

/// It is over, and this came of it.
pub(crate) fn step_ended(mut span: TraceSpan, report: &AttemptReport) {
    match report {
        AttemptReport::Completed(_) => span.outcome("completed", false),
        AttemptReport::Failed { kind: FailureKind::Failed, .. } => span.outcome("failed", true),
        AttemptReport::Failed { kind: FailureKind::Timeout, .. } => span.outcome("timeout", true),
        AttemptReport::Failed { kind: FailureKind::Crashed, .. } => span.outcome("crashed", true),
        AttemptReport::Failed { kind: FailureKind::Lost, .. } => span.outcome("lost", true),
    }
}

/// Something is done for a task. `effect` is its name there, which also says for which turn it is asked.
pub(crate) fn task(task: &str, effect: &str, kind: &str) -> TraceSpan {
    span("task.effect").with("sluice.task.id", task).with("sluice.effect.id", effect).with("sluice.kind", kind)
}

/// It is over, and this came of it.
pub(crate) fn task_ended(mut span: TraceSpan, outcome: &TaskEffectOutcome) {
    match outcome {
        TaskEffectOutcome::Ok(_) => span.outcome("completed", false),
        TaskEffectOutcome::Failed(_) => span.outcome("failed", true),
        TaskEffectOutcome::Skipped(_) => span.outcome("skipped", false),
    }
}
