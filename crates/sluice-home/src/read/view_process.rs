//! Processes as they are shown, in the words of their document.

use sluice_api::shown::{Process, ProcessStatus, ProcessStep, ProcessStepStatus};
use sluice_core::recipe::{Step, StepId};
use sluice_core::run::{RunConclusion, StepFailure, StepState, StepStatus, StepStatusKind};

use crate::read::runs::RunSnapshot;
use crate::read::view_run::{error, unless_empty};
use crate::settings::clock::written;

/// Characters of one step's summary in the summary of its process.
const LONGEST_LINE: usize = 200;

pub fn process(seen: &RunSnapshot) -> Process {
    let (status, summary) = match &seen.state.end {
        None | Some(RunConclusion::Failed { .. }) => (ProcessStatus::Active, None),
        Some(RunConclusion::Completed { summary }) => (ProcessStatus::Completed, Some(summed_up(seen, summary))),
        Some(RunConclusion::Cancelled { .. }) => (ProcessStatus::Cancelled, None),
    };
    Process {
        id: seen.id.to_string(),
        template: seen.plan.recipe.name.to_string(),
        wo_id: unless_empty(&seen.state.given.work_order),
        status,
        summary,
        error: if let Some(RunConclusion::Failed { error }) = &seen.state.end { Some(error.clone()) } else { None },
        created_at: written(seen.card.created),
        updated_at: written(seen.card.updated),
        steps: steps(seen),
    }
}

/// What came of a run: what was said at its end, else what its steps said.
pub(crate) fn summed_up(seen: &RunSnapshot, said: &str) -> String {
    if !said.is_empty() {
        return said.to_owned();
    }
    let steps = seen.plan.recipe.steps.iter().zip(&seen.state.steps);
    let line = |(step, state): (&Step, &StepState)| {
        let summary = state.latest.as_ref().map(|outcome| outcome.summary.trim()).filter(|text| !text.is_empty())?;
        let short: String = summary.lines().next().unwrap_or_default().chars().take(LONGEST_LINE).collect();
        Some(format!("{}: {short}", step.name))
    };
    let lines = steps.filter_map(line).collect::<Vec<_>>();
    if lines.is_empty() { counted(&seen.state.steps) } else { lines.join("\n") }
}

/// How many steps ended how: `3 steps completed, 1 skipped`.
fn counted(steps: &[StepState]) -> String {
    let count = |kind: StepStatusKind| steps.iter().filter(|step| step.kind() == kind).count();
    let (done, skipped) = (count(StepStatusKind::Completed), count(StepStatusKind::Skipped));
    let noun = if done == 1 { "step" } else { "steps" };
    match skipped {
        0 => format!("{done} {noun} completed"),
        _ => format!("{done} {noun} completed, {skipped} skipped"),
    }
}

/// How long a step took, or has taken, in seconds.
fn duration(state: &StepState) -> Option<f64> {
    let (began, ended) = (state.began?.0, state.ended?.0);
    #[expect(clippy::cast_precision_loss, reason = "no step takes so long that a millisecond is lost")]
    let taken = ended.saturating_sub(began) as f64 / 1000.0;
    (taken >= 0.0).then_some(taken)
}

fn steps(seen: &RunSnapshot) -> Vec<ProcessStep> {
    let statuses = statuses(seen);
    let status_of = |need: &StepId| statuses.get(need.0 as usize).copied().unwrap_or(ProcessStepStatus::Pending);
    let is_open =
        |need: &&StepId| !matches!(status_of(need), ProcessStepStatus::Completed | ProcessStepStatus::Skipped);
    let name = |id: &StepId| seen.plan.recipe.step(*id).name.to_string();
    let steps = seen.plan.recipe.steps.iter().zip(&seen.state.steps).zip(&statuses);
    let shown = steps.map(|((step, state), status)| {
        let waits = matches!(status, ProcessStepStatus::Pending | ProcessStepStatus::Blocked);
        let open = step.needs.iter().filter(|_| waits).filter(is_open);
        // One that was never done has no end, even if the whole process has.
        let has_ended =
            matches!(status, ProcessStepStatus::Completed | ProcessStepStatus::Failed | ProcessStepStatus::Skipped);
        let ended = state.ended.filter(|_| has_ended);
        ProcessStep {
            id: step.name.to_string(),
            title: step.title.clone().unwrap_or_else(|| step.name.to_string()),
            status: *status,
            needs: step.needs.iter().map(name).collect(),
            waits_for: open.map(|need| format!("{} is {}", name(need), status_of(need))).collect(),
            summary: state.latest.as_ref().map(|it| it.summary.clone()),
            result: state.latest.as_ref().and_then(|it| it.result.clone()),
            error: error(seen, &state.status),
            started_at: state.began.map(|at| written(at.0)),
            completed_at: ended.map(|at| written(at.0)),
            duration_seconds: duration(state),
        }
    });
    shown.collect()
}

/// The statuses of a process's steps, each one of seven. A step is looked at once, however many need it.
fn statuses(seen: &RunSnapshot) -> Vec<ProcessStepStatus> {
    let mut found: Vec<Option<ProcessStepStatus>> = vec![None; seen.state.steps.len()];
    for index in 0..found.len() {
        // Needs have no circles; what a step waits for is looked at before it.
        let mut open = vec![index];
        while let Some(at) = open.last().copied() {
            let id = StepId(u32::try_from(at).unwrap_or(u32::MAX));
            let needs = seen.plan.recipe.step(id).needs.iter().map(|need| need.0 as usize);
            let unknown: Vec<usize> = needs.clone().filter(|need| found[*need].is_none()).collect();
            let is_waiting = seen.state.step(id).kind() == StepStatusKind::Waiting;
            if found[at].is_none() && !unknown.is_empty() && is_waiting {
                open.extend(unknown);
                continue;
            }
            let breaks = [Some(ProcessStepStatus::Failed), Some(ProcessStepStatus::Blocked)];
            let is_broken = needs.into_iter().any(|need| breaks.contains(&found[need]));
            found[at] = Some(status(seen, id, is_broken));
            open.pop();
        }
    }
    found.into_iter().map(|status| status.unwrap_or(ProcessStepStatus::Pending)).collect()
}

fn status(seen: &RunSnapshot, id: StepId, is_broken: bool) -> ProcessStepStatus {
    match seen.state.step(id).kind() {
        StepStatusKind::Waiting if is_broken => ProcessStepStatus::Blocked,
        StepStatusKind::Waiting | StepStatusKind::Cancelled => ProcessStepStatus::Pending,
        StepStatusKind::Ready | StepStatusKind::Retrying => ProcessStepStatus::Ready,
        StepStatusKind::Running | StepStatusKind::Stopping | StepStatusKind::Held => ProcessStepStatus::InProgress,
        StepStatusKind::Completed => ProcessStepStatus::Completed,
        StepStatusKind::Skipped => ProcessStepStatus::Skipped,
        // A step that failed only because one before it did is blocked by that.
        StepStatusKind::Failed => match &seen.state.step(id).status {
            StepStatus::Failed(StepFailure::Upstream(_)) => ProcessStepStatus::Blocked,
            _ => ProcessStepStatus::Failed,
        },
    }
}
