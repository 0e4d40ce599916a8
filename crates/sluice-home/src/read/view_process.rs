//! Processes as they are shown, in the words of their document.
//!
//! They are looked at often and can have many steps, so that what is shown borrows from what was seen.

use serde::Serialize;
use sluice_core::recipe::{Step, StepId};
use sluice_core::run::{RunConclusion, StepFailure, StepState, StepStatus};

use crate::read::runs::RunSnapshot;
use crate::read::view_run::error;
use crate::settings::clock::written;

/// Letters of one step's summary in the summary of its process.
const LONGEST_LINE: usize = 200;

/// A process, as it is shown.
#[derive(Debug, Serialize)]
pub struct ProcessView<'a> {
    id: &'a str,
    template: &'a str,
    wo_id: Option<&'a str>,
    status: &'static str,
    summary: Option<String>,
    error: Option<&'a str>,
    created_at: String,
    updated_at: String,
    steps: Vec<ProcessStepView<'a>>,
}

/// A step of a process, with one of seven statuses, and why it waits.
#[derive(Debug, Serialize)]
struct ProcessStepView<'a> {
    id: &'a str,
    title: &'a str,
    status: &'static str,
    needs: Vec<&'a str>,
    waits_for: Vec<String>,
    summary: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<String>,
    started_at: Option<String>,
    completed_at: Option<String>,
    duration_seconds: Option<f64>,
}

/// A run, shown as a process.
pub fn process(seen: &RunSnapshot) -> ProcessView<'_> {
    let (status, summary) = match &seen.state.end {
        None | Some(RunConclusion::Failed { .. }) => ("active", None),
        Some(RunConclusion::Completed { summary }) => ("completed", Some(summed_up(seen, summary))),
        Some(RunConclusion::Cancelled { .. }) => ("cancelled", None),
    };
    ProcessView {
        id: &seen.id,
        template: seen.plan.recipe.name.as_str(),
        wo_id: Some(seen.state.given.work_order.as_str()).filter(|order| !order.is_empty()),
        status,
        summary,
        error: if let Some(RunConclusion::Failed { error }) = &seen.state.end { Some(error) } else { None },
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
    let count = |word: &str| steps.iter().filter(|step| step.word() == word).count();
    let (done, skipped) = (count("completed"), count("skipped"));
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

fn steps(seen: &RunSnapshot) -> Vec<ProcessStepView<'_>> {
    let statuses = statuses(seen);
    let status_of = |need: &StepId| statuses.get(need.0 as usize).copied().unwrap_or("pending");
    let is_open = |need: &&StepId| !["completed", "skipped"].contains(&status_of(need));
    let name = |id: &StepId| seen.plan.recipe.step(*id).name.as_str();
    let steps = seen.plan.recipe.steps.iter().zip(&seen.state.steps).zip(&statuses);
    let shown = steps.map(|((step, state), status)| {
        let waits = ["pending", "blocked"].contains(status);
        let open = step.needs.iter().filter(|_| waits).filter(is_open);
        // One that was never done has no end, even if the whole process has.
        let ended = state.ended.filter(|_| ["completed", "failed", "skipped"].contains(status));
        ProcessStepView {
            id: step.name.as_str(),
            title: step.title.as_deref().unwrap_or(step.name.as_str()),
            status,
            needs: step.needs.iter().map(name).collect(),
            waits_for: open.map(|need| format!("{} is {}", name(need), status_of(need))).collect(),
            summary: state.latest.as_ref().map(|it| it.summary.as_str()),
            result: state.latest.as_ref().and_then(|it| it.result.as_deref()),
            error: error(seen, &state.status),
            started_at: state.began.map(|at| written(at.0)),
            completed_at: ended.map(|at| written(at.0)),
            duration_seconds: duration(state),
        }
    });
    shown.collect()
}

/// The words of a process's steps, each one of seven. A step is looked at once, however many need it.
fn statuses(seen: &RunSnapshot) -> Vec<&'static str> {
    let mut words: Vec<Option<&'static str>> = vec![None; seen.state.steps.len()];
    for index in 0..words.len() {
        // Needs have no circles; what a step waits for is looked at before it.
        let mut open = vec![index];
        while let Some(at) = open.last().copied() {
            let id = StepId(u32::try_from(at).unwrap_or(u32::MAX));
            let needs = seen.plan.recipe.step(id).needs.iter().map(|need| need.0 as usize);
            let unknown: Vec<usize> = needs.clone().filter(|need| words[*need].is_none()).collect();
            if words[at].is_none() && !unknown.is_empty() && seen.state.step(id).word() == "waiting" {
                open.extend(unknown);
                continue;
            }
            let is_broken = needs.into_iter().any(|need| matches!(words[need], Some("failed" | "blocked")));
            words[at] = Some(word(seen, id, is_broken));
            open.pop();
        }
    }
    words.into_iter().map(|word| word.unwrap_or("pending")).collect()
}

fn word(seen: &RunSnapshot, id: StepId, is_broken: bool) -> &'static str {
    match seen.state.step(id).word() {
        "waiting" if is_broken => "blocked",
        "waiting" => "pending",
        "ready" | "retrying" => "ready",
        "running" | "held" => "in_progress",
        "completed" => "completed",
        "skipped" => "skipped",
        // A step that failed only because one before it did is blocked by that.
        "failed" => match &seen.state.step(id).status {
            StepStatus::Failed(StepFailure::Upstream(_)) => "blocked",
            _ => "failed",
        },
        _ => "pending",
    }
}
