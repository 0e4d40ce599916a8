//! Runs as they are shown, and the questions that wait for a person. As processes: [`crate::read::view_process`].

use serde_json::{Map, Number, Value, json};
use sluice_core::recipe::{Data, StepId};
use sluice_core::run::state::ItemStatus;
use sluice_core::run::{
    AgentUsage, RunConclusion, RunEvent, RunKind, RunQuestion, StepFailure, StepOutcome, StepState, StepStatus,
};
use sluice_engine::codec::run_event;
use sluice_store::LoggedEvent;

use crate::read::runs::{RunFacts, RunSnapshot};
use crate::read::view_process::summed_up;
use crate::settings::clock::written;

/// Bytes of what a command printed that are shown with a question or an event.
const LONGEST_PRINTED: usize = 4 << 10;

/// A run, for people and programs.
pub fn run(seen: &RunSnapshot) -> Value {
    let state = &seen.state;
    let error = match &state.end {
        Some(RunConclusion::Failed { error }) => Some(error.clone()),
        Some(RunConclusion::Cancelled { reason }) => Some(reason.clone()).filter(|reason| !reason.is_empty()),
        Some(RunConclusion::Completed { .. }) | None => None,
    };
    json!({
        "id": seen.id,
        "version": seen.version,
        "recipe": seen.plan.recipe.name.as_str(),
        "kind": state.given.origin.kind.word(),
        "status": state.status(),
        "current_step": current_step(seen),
        "workspace": Some(seen.folder()).filter(|folder| !folder.is_empty()),
        "prompt": state.given.prompt,
        "work_order": Some(&state.given.work_order).filter(|order| !order.is_empty()),
        "task": Some(&state.given.origin.task).filter(|task| !task.is_empty()),
        "cause": Some(&state.given.origin.cause).filter(|cause| !cause.is_empty()),
        "definition": Some(&state.given.origin.definition).filter(|definition| !definition.is_empty()),
        "variables": variables(seen),
        "steps": (0u32..).map(StepId).zip(&state.steps).map(|(id, step)| one_step(seen, id, step)).collect::<Vec<_>>(),
        "question": state.question().map(|(step, it)| question(seen, step, it)),
        "error": error,
        "next_turn_at": seen.next_turn.map(|at| written(at.0)),
        "created_at": written(seen.card.created),
        "updated_at": written(seen.card.updated),
    })
}

/// The step that a person looks for: what is under way, else what comes next.
fn current_step(seen: &RunSnapshot) -> Option<&str> {
    let of = |wanted: &[&str]| {
        let mut steps = seen.plan.recipe.steps.iter().zip(&seen.state.steps);
        steps.find(|(_, state)| wanted.contains(&state.word())).map(|(step, _)| step.name.as_str())
    };
    match seen.state.end {
        Some(_) => None,
        None => of(&["running", "held"]).or_else(|| of(&["ready", "retrying"])),
    }
}

fn one_step(seen: &RunSnapshot, id: StepId, state: &StepState) -> Value {
    let step = seen.plan.recipe.step(id);
    let needs: Vec<&str> = step.needs.iter().map(|need| seen.plan.recipe.step(*need).name.as_str()).collect();
    let outcome = state.latest.as_ref();
    // What a failed attempt left counts as what was printed, and not as what the step gave.
    let printed = state.left.as_ref().or(outcome);
    let status = match state.word() {
        "retrying" => "ready",
        word => word,
    };
    json!({
        "id": step.name.as_str(),
        "title": step.title,
        "type": step.work.kind(),
        "role": step.role.to_string(),
        "needs": needs,
        "status": status,
        "attempt": state.attempts,
        "round": state.round,
        "summary": outcome.map(|it| it.summary.clone()),
        "result": outcome.and_then(|it| it.result.clone()),
        "output": printed.map(|it| plain(&it.output)),
        "exit_code": printed.and_then(|it| it.exit_code),
        "stderr": printed.and_then(|it| it.stderr.clone()),
        "usage": printed.and_then(|it| it.usage.as_deref()).map(usage),
        "error": error(seen, &state.status),
        "items": items(seen, id),
        "started_at": state.began.map(|at| written(at.0)),
        "finished_at": state.ended.map(|at| written(at.0)),
    })
}

/// What an agent used up, as far as it is known.
pub fn usage(usage: &AgentUsage) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "nobody spends so much that a millionth of a dollar matters")]
    let dollars = |millionths: u64| millionths as f64 / 1e6;
    json!({
        "input_tokens": usage.input, "cached_tokens": usage.cached, "output_tokens": usage.output,
        "total_tokens": usage.total, "cost_usd": usage.cost.map(dollars),
    })
}

/// The items of a fan-out, each with how it went; nothing of another step.
fn items(seen: &RunSnapshot, step: StepId) -> Option<Vec<Value>> {
    let of_step = seen.state.items.range((step, 0)..=(step, u32::MAX));
    let shown: Vec<Value> = of_step
        .map(|((_, index), item)| {
            let (status, summary, error) = match &item.status {
                ItemStatus::Waiting => ("waiting", None, None),
                ItemStatus::Running => ("running", None, None),
                ItemStatus::Completed(outcome) => ("completed", Some(outcome.summary.clone()), None),
                ItemStatus::Failed(error) => ("failed", None, Some(error.clone())),
            };
            json!({ "index": index, "item": plain(&item.value), "status": status, "summary": summary, "error": error })
        })
        .collect();
    Some(shown).filter(|items| !items.is_empty())
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
fn variables(seen: &RunSnapshot) -> Value {
    let inputs: Map<String, Value> =
        seen.state.given.inputs.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
    let mut found = Map::from_iter([("input".to_owned(), Value::Object(inputs))]);
    for (step, state) in seen.plan.recipe.steps.iter().zip(&seen.state.steps) {
        if let (Some(name), Some(outcome)) = (&step.output, &state.latest) {
            found.insert(name.to_string(), plain(&outcome.output));
        }
    }
    Value::Object(found)
}

/// A question that waits for a person.
pub fn question(seen: &RunSnapshot, step: StepId, question: &RunQuestion) -> Value {
    // What the attempt printed that the question is about; an agent that asks has not ended.
    let left = match &seen.state.step(step).status {
        StepStatus::Held { .. } => seen.state.step(step).left.as_ref(),
        _ => None,
    };
    json!({
        "id": format!("{}/{}", seen.id, question.id),
        "kind": question.kind.word(),
        "run": seen.id,
        "recipe": seen.plan.recipe.name.as_str(),
        "step": seen.plan.recipe.step(step).name.as_str(),
        "reason": question.reason,
        "exit_code": left.and_then(|it| it.exit_code),
        "printed": left.map(printed).filter(|text| !text.is_empty()),
        "options": question.options(),
        "default": question.default,
        "deadline": question.deadline.map(|at| written(at.0)),
    })
}

/// The end of what a command printed: its output, and then its complaints.
fn printed(outcome: &StepOutcome) -> String {
    let output = if let Data::Text(text) = &outcome.output { text.as_str() } else { "" };
    let texts = [output, outcome.stderr.as_deref().unwrap_or_default()];
    let text = texts.map(str::trim_end).into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    let from = text.ceil_char_boundary(text.len().saturating_sub(LONGEST_PRINTED));
    text[from..].to_owned()
}

/// Whether a run is shown as a process.
pub fn is_process(seen: &RunSnapshot) -> bool {
    seen.state.given.origin.kind == RunKind::Process
}

/// A value as JSON has it.
pub fn plain(data: &Data) -> Value {
    match data {
        Data::Null => Value::Null,
        Data::Bool(it) => Value::Bool(*it),
        Data::Number(text) => text.parse::<Number>().map_or_else(|_| Value::String(text.clone()), Value::Number),
        Data::Text(text) => Value::String(text.clone()),
        Data::List(items) => Value::Array(items.iter().map(plain).collect()),
        Data::Table(fields) => Value::Object(fields.iter().map(|(key, value)| (key.clone(), plain(value))).collect()),
    }
}

/// The name and the facts of an event of a run, in the words of what it was started as. What came of the whole run is
/// told if it is known where the run stands.
pub fn event(logged: &LoggedEvent, setting: &RunFacts, ended: Option<&RunSnapshot>) -> Option<(String, Value)> {
    let event = run_event::read(logged.event.version, &logged.event.data).ok()?;
    let kind = setting.given.origin.kind;
    let mut facts = Map::from_iter([(format!("{}_id", kind.word()), json!(setting.id))]);
    facts.insert("recipe".into(), json!(setting.plan.recipe.name.as_str()));
    if kind == RunKind::Process {
        facts.insert("template".into(), json!(setting.plan.recipe.name.as_str()));
        facts.insert("wo_id".into(), json!(Some(&setting.given.work_order).filter(|order| !order.is_empty())));
    }
    if let Some(step) = event.step().filter(|step| (step.0 as usize) < setting.plan.recipe.steps.len()) {
        let defined = setting.plan.recipe.step(step);
        facts.insert("step_id".into(), json!(defined.name.as_str()));
        facts.insert("step_name".into(), json!(defined.name.as_str()));
        facts.insert("step_type".into(), json!(defined.work.kind()));
    }
    facts.extend(told(&event, setting, ended));
    if let (RunKind::Process, RunEvent::StepFailed { failure: StepFailure::Upstream(_), .. }) = (kind, &event) {
        // It has not been done, and may still be.
        facts.insert("status".into(), json!("blocked"));
        return Some(("process.step_blocked".into(), Value::Object(facts)));
    }
    Some((named(&logged.event.kind, kind), Value::Object(facts)))
}

/// What else an event says.
fn told(event: &RunEvent, setting: &RunFacts, ended: Option<&RunSnapshot>) -> Vec<(String, Value)> {
    let facts = match event {
        RunEvent::StepStarted { attempt, items, .. } => {
            json!({ "attempt": attempt, "items": items.as_ref().map(Vec::len) })
        }
        RunEvent::StepCompleted { outcome, .. } => json!({
            "status": "completed", "output_summary": outcome.summary, "summary": outcome.summary, "result": outcome.result,
        }),
        RunEvent::AttemptFailed { outcome, .. } => {
            json!({ "exit_code": outcome.exit_code, "printed": printed(outcome) })
        }
        RunEvent::StepCancelled { .. } => json!({ "status": "cancelled" }),
        RunEvent::Ending { end, .. } => json!({ "end": match end {
            RunConclusion::Completed { .. } => "completed",
            RunConclusion::Failed { .. } => "failed",
            RunConclusion::Cancelled { .. } => "cancelled",
        } }),
        RunEvent::StepFailed { failure, .. } => json!({ "status": "failed", "error": failure.words(&setting.plan) }),
        RunEvent::StepRetried { failure, .. } | RunEvent::StepStopping { failure, .. } => {
            json!({ "error": failure.words(&setting.plan) })
        }
        RunEvent::StepSkipped { .. } => json!({ "status": "skipped" }),
        RunEvent::StepHeld { question, .. } | RunEvent::Asked { question, .. } => json!({
            "question": format!("{}/{}", setting.id, question.id), "reason": question.reason, "options": question.options(),
        }),
        RunEvent::Blocked { reason, .. } => {
            let status = if setting.given.origin.kind == RunKind::Workflow { "blocked" } else { "held" };
            json!({ "status": status, "reason": reason })
        }
        RunEvent::Answered { option, message, .. } => json!({ "option": option, "message": message }),
        RunEvent::PartEnded { part, result, .. } => json!({
            "part": part.to_string(), "error": result.as_ref().err(),
            "output_summary": result.as_ref().ok().map(|outcome| outcome.summary.clone()),
        }),
        RunEvent::PartStarted { part, .. } | RunEvent::PartLost { part, .. } | RunEvent::Said { part, .. } => {
            json!({ "part": part.to_string() })
        }
        RunEvent::LoopedBack { from, to } => {
            let name = |step: &StepId| setting.plan.recipe.step(*step).name.to_string();
            json!({ "from": name(from), "to": name(to) })
        }
        RunEvent::Ended { end: RunConclusion::Completed { summary }, .. } => {
            json!({ "status": "completed", "summary": ended.map_or_else(|| summary.clone(), |seen| summed_up(seen, summary)) })
        }
        RunEvent::Ended { end: RunConclusion::Failed { error }, .. } => json!({ "status": "failed", "error": error }),
        RunEvent::Ended { end: RunConclusion::Cancelled { reason }, .. } => {
            json!({ "status": "cancelled", "reason": reason })
        }
        RunEvent::Started { .. } | RunEvent::StepReady(_) | RunEvent::Withdrawn { .. } | RunEvent::Reopened { .. } => {
            json!({})
        }
    };
    match facts {
        Value::Object(facts) => facts.into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The name of a stored event where the run was started.
pub(crate) fn named(stored: &str, kind: RunKind) -> String {
    match (kind, stored) {
        (RunKind::Run | RunKind::Mission, stored) => stored.to_owned(),
        // Whoever asks, the step or its agent: the workflow needs a person.
        (RunKind::Workflow, "step.asked") => "workflow.intervention.required".into(),
        (RunKind::Workflow, stored) => match stored.strip_prefix("run.") {
            Some(rest) => format!("workflow.{rest}"),
            None => format!("workflow.{stored}"),
        },
        (RunKind::Process, "run.started") => "process.created".into(),
        (RunKind::Process, "step.started") => "process.step_started".into(),
        (RunKind::Process, "step.completed" | "step.failed" | "step.skipped") => "process.step_completed".into(),
        (RunKind::Process, stored) => format!("process.{}", stored.strip_prefix("run.").unwrap_or(stored)),
    }
}
