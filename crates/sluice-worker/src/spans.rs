//! What traces tell of a step: whose it was, which step, and how it went. Never what was said or printed.

use sluice_core::id::RunId;
use sluice_core::recipe::FailureKind;
use sluice_core::run::{AttemptReport, RunJob};
use sluice_telemetry::{TraceSpan, span};

use crate::names::run_stream;

pub fn step(run: &RunId, step: &str, attempt: u32, kind: &'static str) -> TraceSpan {
    span("step")
        .within(&run_stream(run))
        .with("sluice.run.id", run.as_str())
        .with("sluice.step", step)
        .with("sluice.attempt", attempt)
        .with("sluice.kind", kind)
}

pub fn kind(job: &RunJob) -> &'static str {
    match job {
        RunJob::Agent { .. } => "agent",
        RunJob::Arbiter { .. } => "arbiter",
        RunJob::Script(_) => "script",
        RunJob::Gate(_) => "gate",
        RunJob::Task { .. } => "task",
    }
}

/// It is over, and this came of it.
pub fn step_ended(mut span: TraceSpan, report: &AttemptReport) {
    match report {
        AttemptReport::Completed(_) => span.outcome("completed", false),
        AttemptReport::Failed { kind: FailureKind::Failed, .. } => span.outcome("failed", true),
        AttemptReport::Failed { kind: FailureKind::Timeout, .. } => span.outcome("timeout", true),
        AttemptReport::Failed { kind: FailureKind::Crashed, .. } => span.outcome("crashed", true),
        AttemptReport::Failed { kind: FailureKind::Lost, .. } => span.outcome("lost", true),
    }
}
