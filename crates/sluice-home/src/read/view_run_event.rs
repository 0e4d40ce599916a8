//! Events of runs as they are shown, in the words of what a run was started as.

use serde_json::Value;
use sluice_api::event::{
    ProcessSubject, RunEventData, RunEventShown, RunSubject, StepCompleted, StepStarted, StepSubject,
};
use sluice_api::grimoire::WorkflowStatus;
use sluice_api::shown::{ProcessStepStatus, RunStatus, RunStepStatus};
use sluice_core::event_name::{self, PROCESS_STEP_BLOCKED};
use sluice_core::id::RunId;
use sluice_core::recipe::StepId;
use sluice_core::run::{RunConclusion, RunEvent, RunKind, StepFailure};
use sluice_engine::codec::run_event;
use sluice_store::LoggedEvent;

use crate::read::runs::{RunFacts, RunSnapshot};
use crate::read::view::as_json;
use crate::read::view_process::summed_up;
use crate::read::view_run::{options, printed, unless_empty};

/// The name and the facts of an event of a run, in the words of what it was started as. What came of the whole run is
/// told if it is known where the run stands.
pub fn event(logged: &LoggedEvent, setting: &RunFacts, ended: Option<&RunSnapshot>) -> Option<(String, Value)> {
    let event = run_event::read(logged.event.version, &logged.event.data).ok()?;
    let kind = setting.given.origin.kind;
    // A step that failed only because one before it did.
    let is_upstream = matches!(event, RunEvent::StepFailed { failure: StepFailure::Upstream(_), .. });
    let is_blocked = kind == RunKind::Process && is_upstream;
    let shown = RunEventShown {
        run: subject(kind, &setting.id),
        recipe: setting.plan.recipe.name.to_string(),
        process: (kind == RunKind::Process).then(|| ProcessSubject {
            template: setting.plan.recipe.name.to_string(),
            wo_id: unless_empty(&setting.given.work_order),
        }),
        step: event.step().and_then(|step| subject_step(setting, step)),
        data: match told(&event, setting, ended) {
            // It has not been done, and may still be.
            RunEventData::Failed { error, .. } if is_blocked => {
                RunEventData::Failed { status: ProcessStepStatus::Blocked.word(), error }
            }
            data => data,
        },
    };
    let told = || event_name::told(&logged.event.kind, kind);
    let name = if is_blocked { PROCESS_STEP_BLOCKED.to_owned() } else { told() };
    Some((name, as_json(&shown)))
}

fn subject(kind: RunKind, id: &RunId) -> RunSubject {
    match kind {
        RunKind::Run => RunSubject::Run(id.to_string()),
        RunKind::Mission => RunSubject::Mission(id.to_string()),
        RunKind::Workflow => RunSubject::Workflow(id.to_string()),
        RunKind::Process => RunSubject::Process(id.to_string()),
    }
}

fn subject_step(setting: &RunFacts, step: StepId) -> Option<StepSubject> {
    let defined = setting.plan.recipe.steps.get(step.0 as usize)?;
    Some(StepSubject {
        step_id: defined.name.to_string(),
        step_name: defined.name.to_string(),
        step_type: defined.work.kind().to_owned(),
    })
}

fn told(event: &RunEvent, setting: &RunFacts, ended: Option<&RunSnapshot>) -> RunEventData {
    match event {
        RunEvent::StepStarted { attempt, items, .. } => {
            RunEventData::StepStarted(StepStarted { attempt: *attempt, items: items.as_ref().map(Vec::len) })
        }
        RunEvent::StepCompleted { outcome, .. } => RunEventData::StepCompleted(StepCompleted {
            status: RunStepStatus::Completed.word().to_owned(),
            output_summary: outcome.summary.clone(),
            summary: outcome.summary.clone(),
            result: outcome.result.clone(),
        }),
        RunEvent::AttemptFailed { outcome, .. } => {
            RunEventData::AttemptFailed { exit_code: outcome.exit_code, printed: printed(outcome) }
        }
        RunEvent::StepCancelled { .. } => RunEventData::Status { status: RunStepStatus::Cancelled.word() },
        RunEvent::Ending { end, .. } => RunEventData::Ending { end: conclusion(end).word() },
        RunEvent::StepFailed { failure, .. } => {
            RunEventData::Failed { status: RunStepStatus::Failed.word(), error: failure.words(&setting.plan) }
        }
        RunEvent::StepRetried { failure, .. } | RunEvent::StepStopping { failure, .. } => {
            RunEventData::Error { error: failure.words(&setting.plan) }
        }
        RunEvent::StepSkipped { .. } => RunEventData::Status { status: RunStepStatus::Skipped.word() },
        RunEvent::StepHeld { question, .. } | RunEvent::Asked { question, .. } => RunEventData::Asked {
            question: format!("{}/{}", setting.id, question.id),
            reason: question.reason.clone(),
            options: options(question),
        },
        RunEvent::Blocked { reason, .. } => {
            let is_workflow = setting.given.origin.kind == RunKind::Workflow;
            let status = if is_workflow { WorkflowStatus::Blocked.word() } else { RunStatus::Held.word() };
            RunEventData::Stopped { status, reason: reason.clone() }
        }
        RunEvent::Answered { option, message, .. } => {
            RunEventData::Answered { option: option.clone(), message: message.clone() }
        }
        RunEvent::PartEnded { part, result, .. } => RunEventData::PartEnded {
            part: part.to_string(),
            error: result.as_ref().err().cloned(),
            output_summary: result.as_ref().ok().map(|outcome| outcome.summary.clone()),
        },
        RunEvent::PartStarted { part, .. } | RunEvent::PartLost { part, .. } | RunEvent::Said { part, .. } => {
            RunEventData::Part { part: part.to_string() }
        }
        RunEvent::LoopedBack { from, to } => {
            let name = |step: &StepId| setting.plan.recipe.step(*step).name.to_string();
            RunEventData::LoopedBack { from: name(from), to: name(to) }
        }
        RunEvent::Ended { end, .. } => has_ended(end, ended),
        RunEvent::Started { .. } | RunEvent::StepReady(_) | RunEvent::Withdrawn { .. } | RunEvent::Reopened { .. } => {
            RunEventData::Nothing {}
        }
    }
}

fn has_ended(end: &RunConclusion, ended: Option<&RunSnapshot>) -> RunEventData {
    let status = conclusion(end).word();
    match end {
        RunConclusion::Completed { summary } => {
            let summary = ended.map_or_else(|| summary.clone(), |seen| summed_up(seen, summary));
            RunEventData::Completed { status, summary }
        }
        RunConclusion::Failed { error } => RunEventData::Failed { status, error: error.clone() },
        RunConclusion::Cancelled { reason } => RunEventData::Stopped { status, reason: reason.clone() },
    }
}

fn conclusion(end: &RunConclusion) -> RunStatus {
    match end {
        RunConclusion::Completed { .. } => RunStatus::Completed,
        RunConclusion::Failed { .. } => RunStatus::Failed,
        RunConclusion::Cancelled { .. } => RunStatus::Cancelled,
    }
}
