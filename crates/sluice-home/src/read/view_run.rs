//! Runs as they are shown, and the questions that wait for a person. As processes: [`crate::read::view_process`]; their
//! events: [`crate::read::view_run_event`].

use std::path::Path;

use serde_json::{Map, Value};
use sluice_api::shown::{
    Question, QuestionCause, Run, RunForm, RunItem, RunItemStatus, RunStatus, RunStep, RunStepStatus, StepUsage,
};
use sluice_core::recipe::{Data, StepId, StepWork};
use sluice_core::run::state::{AttemptProgress, ItemStatus};
use sluice_core::run::{
    AgentUsage, AttemptPart, QuestionKind, RunConclusion, RunKind, RunPhase, RunQuestion, StepOutcome, StepState,
    StepStatus, StepStatusKind,
};
use sluice_worker::value::{dollars, plain};

use crate::perform::performer::{WorktreeAccess, own_name};
use crate::read::runs::{RunSnapshot, performance};
use crate::settings::clock::written;

/// Bytes of what a command printed that are shown with a question or an event.
const LONGEST_PRINTED: usize = 4 << 10;

pub fn run(seen: &RunSnapshot) -> Run {
    let state = &seen.state;
    let given = &state.given;
    Run {
        id: seen.id.to_string(),
        version: seen.version,
        recipe: seen.plan.recipe.name.to_string(),
        kind: form(given.origin.kind),
        status: status(state.phase()),
        current_step: current_step(seen),
        workspace: unless_empty(seen.shown_folder(seen.plan.recipe.workspace)),
        branch: None,
        kept: Vec::new(),
        prompt: given.prompt.clone(),
        work_order: unless_empty(&given.work_order),
        task: given.origin.task.as_ref().map(ToString::to_string),
        cause: Some(given.origin.cause.clone()).filter(|cause| !cause.is_empty()),
        definition: unless_empty(&given.origin.definition),
        variables: variables(seen),
        steps: steps(seen),
        question: state.question().map(|(step, it)| question(seen, step, it)),
        error: match &state.end {
            Some(RunConclusion::Failed { error }) => Some(error.clone()),
            Some(RunConclusion::Cancelled { reason }) => unless_empty(reason),
            Some(RunConclusion::Completed { .. }) | None => None,
        },
        attention: None,
        next_turn_at: seen.next_turn.map(|at| written(at.0)),
        created_at: written(seen.card.created),
        updated_at: written(seen.card.updated),
    }
}

/// The steps of a run that no worker has yet.
#[derive(Clone, Debug, Default)]
pub struct UnheldSteps(pub(crate) Vec<StepId>);

/// A run whose steps may wait for a worker: such a step can be done, and is not being done.
pub fn run_with(seen: &RunSnapshot, unheld: &UnheldSteps) -> Run {
    let mut shown = run(seen);
    for id in &unheld.0 {
        let Some(step) = shown.steps.get_mut(id.0 as usize) else { continue };
        step.status = RunStepStatus::Ready;
        step.error = Some(format!("it waits for a worker of `{}` with the role `{}`", seen.group(), step.role));
    }
    shown
}

fn form(kind: RunKind) -> RunForm {
    match kind {
        RunKind::Run => RunForm::Run,
        RunKind::Mission => RunForm::Mission,
        RunKind::Workflow => RunForm::Workflow,
        RunKind::Process => RunForm::Process,
    }
}

pub(crate) fn status(phase: RunPhase) -> RunStatus {
    match phase {
        RunPhase::Running => RunStatus::Running,
        RunPhase::Held => RunStatus::Held,
        RunPhase::Completed => RunStatus::Completed,
        RunPhase::Failed => RunStatus::Failed,
        RunPhase::Cancelled => RunStatus::Cancelled,
    }
}

fn step_status(kind: StepStatusKind) -> RunStepStatus {
    match kind {
        StepStatusKind::Waiting => RunStepStatus::Waiting,
        StepStatusKind::Ready | StepStatusKind::Retrying => RunStepStatus::Ready,
        StepStatusKind::Running | StepStatusKind::Stopping => RunStepStatus::Running,
        StepStatusKind::Held => RunStepStatus::Held,
        StepStatusKind::Completed => RunStepStatus::Completed,
        StepStatusKind::Failed => RunStepStatus::Failed,
        StepStatusKind::Skipped => RunStepStatus::Skipped,
        StepStatusKind::Cancelled => RunStepStatus::Cancelled,
    }
}

/// The step that a person looks for: what is under way, else what comes next.
pub(crate) fn current_step(seen: &RunSnapshot) -> Option<String> {
    let of = |is_wanted: fn(RunStepStatus) -> bool| {
        let mut steps = seen.plan.recipe.steps.iter().zip(&seen.state.steps);
        steps.find(|(_, state)| is_wanted(step_status(state.kind()))).map(|(step, _)| step.name.to_string())
    };
    match seen.state.end {
        Some(_) => None,
        None => of(|status| matches!(status, RunStepStatus::Running | RunStepStatus::Held))
            .or_else(|| of(|status| status == RunStepStatus::Ready)),
    }
}

pub(crate) fn steps(seen: &RunSnapshot) -> Vec<RunStep> {
    (0u32..).map(StepId).zip(&seen.state.steps).map(|(id, step)| one_step(seen, id, step)).collect()
}

fn one_step(seen: &RunSnapshot, id: StepId, state: &StepState) -> RunStep {
    let step = seen.plan.recipe.step(id);
    let outcome = state.latest.as_ref();
    // What a failed attempt left counts as what was printed, and not as what the step gave.
    let printed = state.left.as_ref().or(outcome);
    RunStep {
        id: step.name.to_string(),
        title: step.title.clone(),
        kind: step.work.kind().to_owned(),
        role: step.role.to_string(),
        needs: step.needs.iter().map(|need| seen.plan.recipe.step(*need).name.to_string()).collect(),
        workspace: match step.work {
            StepWork::Task(_) => None, // its task has a worktree of its own
            StepWork::Agent { .. }
            | StepWork::AgentLoop { .. }
            | StepWork::ParallelAgents { .. }
            | StepWork::Script { .. }
            | StepWork::Gate { .. } => {
                own_folder(seen, id, state).or_else(|| unless_empty(seen.shown_folder(step.workspace)))
            }
        },
        worker: None,
        status: step_status(state.kind()),
        attempt: state.attempts,
        round: state.round,
        summary: outcome.map(|it| it.summary.clone()),
        result: outcome.and_then(|it| it.result.clone()),
        output: printed.map(|it| plain(&it.output)).unwrap_or_default(),
        exit_code: printed.and_then(|it| it.exit_code),
        stderr: printed.and_then(|it| it.stderr.clone()),
        usage: printed.and_then(|it| it.usage.as_deref()).map(usage),
        error: error(seen, &state.status),
        items: items(seen, id),
        started_at: state.began.map(|at| written(at.0)),
        finished_at: state.ended.map(|at| written(at.0)),
    }
}

/// The worktree that a step has to itself on this machine while it is under way.
fn own_folder(seen: &RunSnapshot, id: StepId, state: &StepState) -> Option<String> {
    let (StepStatus::Running(progress) | StepStatus::Stopping(progress, _)) = &state.status else { return None };
    let part = match progress {
        AttemptProgress::Single => AttemptPart::Whole,
        AttemptProgress::Turns { turn, said, .. } if said.len() < *turn as usize => AttemptPart::Turn(*turn),
        // Each item has one of its own, and an arbiter looks at a copy.
        AttemptProgress::Turns { .. } | AttemptProgress::Items { .. } => return None,
    };
    let step = seen.plan.recipe.step(id);
    let access = match step.work {
        StepWork::Script { .. } | StepWork::Gate { .. } => WorktreeAccess::of_script(step.workspace),
        StepWork::Agent { .. } | StepWork::AgentLoop { .. } | StepWork::ParallelAgents { .. } | StepWork::Task(_) => {
            WorktreeAccess::of_agent(part, step.workspace, step.permissions)
        }
    };
    let given = &seen.state.given;
    let is_here = access == WorktreeAccess::Own && !given.origin.base.is_empty() && given.workspace.starts_with('/');
    let pool = Path::new(&given.workspace).parent().filter(|_| is_here)?;
    Some(pool.join(own_name(&performance(&seen.id, id, state.attempts, part))).display().to_string())
}

pub fn usage(usage: &AgentUsage) -> StepUsage {
    StepUsage {
        input_tokens: usage.input,
        cached_tokens: usage.cached,
        output_tokens: usage.output,
        total_tokens: usage.total,
        cost_usd: usage.cost.map(dollars),
    }
}

/// The items of a fan-out, each with how it went; nothing of another step.
fn items(seen: &RunSnapshot, step: StepId) -> Option<Vec<RunItem>> {
    let of_step = seen.state.items.range((step, 0)..=(step, u32::MAX));
    let shown = of_step.map(|((_, index), item)| {
        let (status, summary, error) = match &item.status {
            ItemStatus::Waiting => (RunItemStatus::Waiting, None, None),
            ItemStatus::Running => (RunItemStatus::Running, None, None),
            ItemStatus::Completed(outcome) => (RunItemStatus::Completed, Some(outcome.summary.clone()), None),
            ItemStatus::Failed(error) => (RunItemStatus::Failed, None, Some(error.clone())),
        };
        RunItem { index: *index, item: plain(&item.value), status, summary, error }
    });
    Some(shown.collect()).filter(|items: &Vec<RunItem>| !items.is_empty())
}

pub(crate) fn error(seen: &RunSnapshot, status: &StepStatus) -> Option<String> {
    match status {
        StepStatus::Failed(failure) | StepStatus::Stopping(_, failure) | StepStatus::Retrying { failure, .. } => {
            Some(failure.words(&seen.plan))
        }
        StepStatus::Held { question, .. } => Some(question.reason.clone()),
        StepStatus::Waiting
        | StepStatus::Ready
        | StepStatus::Running(_)
        | StepStatus::Completed
        | StepStatus::Skipped(_)
        | StepStatus::Cancelled => None,
    }
}

/// What variables read: the inputs, and what steps have stored.
pub(crate) fn variables(seen: &RunSnapshot) -> Map<String, Value> {
    let inputs: Map<String, Value> =
        seen.state.given.inputs.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
    let mut found = Map::from_iter([("input".to_owned(), Value::Object(inputs))]);
    for (step, state) in seen.plan.recipe.steps.iter().zip(&seen.state.steps) {
        if let (Some(name), Some(outcome)) = (&step.output, &state.latest) {
            found.insert(name.to_string(), plain(&outcome.output));
        }
    }
    found
}

pub fn question(seen: &RunSnapshot, step: StepId, question: &RunQuestion) -> Question {
    // What the attempt printed that the question is about; an agent that asks has not ended.
    let left = match &seen.state.step(step).status {
        StepStatus::Held { .. } => seen.state.step(step).left.as_ref(),
        _ => None,
    };
    Question {
        id: format!("{}/{}", seen.id, question.id),
        kind: cause(question.kind),
        run: seen.id.to_string(),
        recipe: seen.plan.recipe.name.to_string(),
        step: seen.plan.recipe.step(step).name.to_string(),
        reason: question.reason.clone(),
        exit_code: left.and_then(|it| it.exit_code),
        printed: left.map(printed).filter(|text| !text.is_empty()),
        options: options(question),
        default: question.default.clone(),
        deadline: question.deadline.map(|at| written(at.0)),
    }
}

fn cause(kind: QuestionKind) -> QuestionCause {
    match kind {
        QuestionKind::Gate => QuestionCause::Gate,
        QuestionKind::MaxIterations => QuestionCause::MaxIterations,
        QuestionKind::PartialFailure => QuestionCause::PartialFailure,
        QuestionKind::LoopExhausted => QuestionCause::LoopExhausted,
        QuestionKind::Clarification => QuestionCause::Clarification,
        QuestionKind::Undecided => QuestionCause::Undecided,
    }
}

pub(crate) fn options(question: &RunQuestion) -> Vec<String> {
    question.options().into_iter().map(str::to_owned).collect()
}

/// The end of what a command printed: its output, and then its complaints.
pub(crate) fn printed(outcome: &StepOutcome) -> String {
    let output = if let Data::Text(text) = &outcome.output { text.as_str() } else { "" };
    let texts = [output, outcome.stderr.as_deref().unwrap_or_default()];
    let text = texts.map(str::trim_end).into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    let from = text.ceil_char_boundary(text.len().saturating_sub(LONGEST_PRINTED));
    text[from..].to_owned()
}

pub(crate) fn unless_empty(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

pub fn is_process(seen: &RunSnapshot) -> bool {
    seen.state.given.origin.kind == RunKind::Process
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_on_the_wire_are_those_of_the_machine() {
        let kinds = [RunKind::Run, RunKind::Mission, RunKind::Workflow, RunKind::Process];
        assert!(kinds.into_iter().all(|kind| form(kind).word() == kind.word()));
        assert!(RunPhase::ALL.into_iter().all(|phase| status(phase).word() == phase.word()));
        let of_steps = StepStatusKind::ALL.into_iter().filter(|kind| *kind != StepStatusKind::Retrying);
        assert!(of_steps.into_iter().all(|kind| step_status(kind).word() == kind.word()));
        let causes = [
            QuestionKind::Gate,
            QuestionKind::MaxIterations,
            QuestionKind::PartialFailure,
            QuestionKind::LoopExhausted,
            QuestionKind::Clarification,
            QuestionKind::Undecided,
        ];
        assert!(causes.into_iter().all(|kind| cause(kind).word() == kind.word()));
    }
}
