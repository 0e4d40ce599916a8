//! Makes a draft of a recipe, from any of the three formats.

use std::time::Duration;

use sluice_core::findings::CheckFindings;
use sluice_core::lifecycle::AgentPermissions;
use sluice_core::problem::{Code, Diagnosis};
use sluice_core::recipe::draft::{
    InputDraft, ItemsDraft, LoopBackDraft, PromptDraft, RecipeDraft, RetryDraft, RunHookDraft, StepDraft,
    StepWorkDraft, TriggerDraft,
};
use sluice_core::recipe::{
    FailureKind, GateAnswer, Join, OnExhausted, OnLimit, RecipeDialect, RecipeInputKind, StepWorkspace, UnansweredGate,
};
use sluice_core::span::{SourceText, SpannedValue};

use super::fields::{TableFields, data, named};
use super::sense::{self, told};
use crate::prompts::PromptReader;
use crate::tree::{Node, NodeValue};

/// Ended runs of a repeating recipe that are kept, unless the file says otherwise.
const KEEP: u32 = 20;
/// Turns of an agent-loop, unless the file says otherwise.
const MAX_ITERATIONS: u32 = 3;
/// Agents of a fan-out at once, unless the file says otherwise.
const MAX_CONCURRENT: u32 = 4;
const LIMITS: [(&str, OnLimit); 2] = [("block", OnLimit::Block), ("continue", OnLimit::Continue)];

/// The draft that `node` says in `dialect`; prompt files are read by `prompts`.
pub fn lower(
    node: &Node,
    dialect: RecipeDialect,
    prompts: &mut PromptReader<'_>,
    findings: &mut CheckFindings,
) -> RecipeDraft {
    let file = TableFields::of(node);
    let header = match dialect {
        RecipeDialect::Manifest => file.table("workflow").unwrap_or(file),
        RecipeDialect::Grimoire | RecipeDialect::Template => file,
    };
    let name_key = match dialect {
        RecipeDialect::Manifest | RecipeDialect::Grimoire => "name",
        RecipeDialect::Template => "template",
    };
    if let (Some(_), Some(second)) = (file.key("input"), file.key("inputs")) {
        findings.add(
            Diagnosis::new(Code::KeyConflict, second, "`input` and `inputs`").help("they mean the same: write one"),
        );
    }
    let input_key = if file.key("input").is_some() { "input" } else { "inputs" };
    no_steps(file, findings);
    sense::time_limit(file, findings);
    RecipeDraft {
        span: file.span(),
        dialect,
        name: header.name(name_key),
        description: header.string("description").unwrap_or_default(),
        version: version(header),
        trigger: file.table("trigger").and_then(trigger),
        inputs: file.key(input_key).map(|_| file.tables(input_key).filter_map(input).collect()),
        steps: file.tables("steps").filter_map(|entry| step(entry, dialect, prompts, findings)).collect(),
        max_parallel: file.number("max_parallel").map(|number| number.value),
        repeat: file.table("repeat").map(|repeat| {
            let keep = repeat.number("keep").map_or(KEEP, |keep| keep.value);
            (repeat.duration("every").unwrap_or(Duration::ZERO), keep)
        }),
        timeout: file.duration("timeout"),
        workspace: workspace(file),
        on_complete: file.tables("on_complete").filter_map(|hook| run_hook(hook, findings)).collect(),
        on_fail: file.tables("on_fail").filter_map(|hook| run_hook(hook, findings)).collect(),
    }
}

fn no_steps(file: TableFields<'_>, findings: &mut CheckFindings) {
    let empty = match file.node("steps").map(|node| &node.value) {
        Some(NodeValue::List(steps)) => steps.is_empty(),
        Some(NodeValue::Null) => true,
        _ => false,
    };
    if let Some(span) = file.key("steps").filter(|_| empty) {
        findings.hole(Diagnosis::new(Code::MissingKey, span, "there are no steps").help("add at least one"));
    }
}

fn version(header: TableFields<'_>) -> String {
    let number = header.number::<i64>("version").map(|version| version.value.to_string());
    header.string("version").or(number).unwrap_or_else(|| "1".into())
}

fn trigger(fields: TableFields<'_>) -> Option<TriggerDraft> {
    Some(TriggerDraft { event: fields.name("event")?, filter: fields.text("where").cloned() })
}

fn input(fields: TableFields<'_>) -> Option<InputDraft> {
    let kinds = RecipeInputKind::ALL.map(|kind| (kind.word(), kind));
    Some(InputDraft {
        name: fields.name("name")?,
        kind: fields.choice("type", &kinds).unwrap_or(RecipeInputKind::Any),
        required: fields.flag("required"),
        default: fields.node("default").map(|node| SpannedValue::new(data(node), node.span)),
    })
}

fn run_hook(fields: TableFields<'_>, findings: &mut CheckFindings) -> Option<RunHookDraft> {
    match fields.text("action")?.value.as_str() {
        "notify" => told(fields, "message", findings).cloned().map(RunHookDraft::Notify),
        "run_command" => told(fields, "command", findings).cloned().map(RunHookDraft::RunCommand),
        "start" => fields.string("recipe").map(RunHookDraft::Start),
        _ => None,
    }
}

fn step(
    fields: TableFields<'_>,
    dialect: RecipeDialect,
    prompts: &mut PromptReader<'_>,
    findings: &mut CheckFindings,
) -> Option<StepDraft> {
    let (name, needs, condition) = match dialect {
        RecipeDialect::Manifest => ("id", "depends_on", "condition"),
        RecipeDialect::Grimoire => ("name", "needs", "when"),
        RecipeDialect::Template => ("id", "needs", "when"),
    };
    let name = fields.name(name)?;
    sense::time_limit(fields, findings);
    match dialect {
        RecipeDialect::Manifest => sense::retries(fields, findings),
        RecipeDialect::Grimoire | RecipeDialect::Template => {}
    }
    Some(StepDraft {
        title: fields.string("title"),
        role: fields.name("role"),
        needs: fields.names(needs),
        condition: fields.text(condition).cloned(),
        work: work(fields, &name, dialect, prompts, findings),
        output: fields.name("output"),
        timeout: fields.duration("timeout"),
        retry: fields.table("retry").and_then(retry),
        loop_back: loop_back(fields),
        max_retries: fields.number("max_retries"),
        workspace: workspace(fields),
        join: fields.choice("join", &Join::ALL.map(|join| (join.word(), join))),
        always: fields.flag("always").unwrap_or(false),
        harness: fields.string("harness"),
        permissions: fields
            .choice("permissions", &[("full", AgentPermissions::Full), ("reduced", AgentPermissions::Reduced)]),
        acts_as_person: fields
            .choice("acts_as", &[("person", ())])
            .and(fields.text("acts_as"))
            .map(|text| SpannedValue::new((), text.span)),
        name,
    })
}

/// Where a step works. `shared` is what `run` was called first.
fn workspace(fields: TableFields<'_>) -> Option<SpannedValue<StepWorkspace>> {
    let words = StepWorkspace::ALL.map(|it| (it.word(), it));
    let chosen = fields.choice("workspace", &words).or(fields.choice("workspace", &[("shared", StepWorkspace::Run)]));
    Some(SpannedValue::new(chosen?, fields.text("workspace")?.span))
}

fn retry(fields: TableFields<'_>) -> Option<RetryDraft> {
    let kinds = |name: &SpannedValue<String>| FailureKind::NAMED.into_iter().find(|kind| kind.word() == name.value);
    Some(RetryDraft {
        max: fields.number("max")?.value,
        backoff: fields.duration("backoff"),
        on: fields.names("on").unwrap_or_default().iter().filter_map(kinds).collect(),
    })
}

fn loop_back(fields: TableFields<'_>) -> Option<LoopBackDraft> {
    if let Some(to) = fields.name("loop_to") {
        let max = fields.number("max_retries").map(|max| max.value);
        return Some(LoopBackDraft { to, max, on_exhausted: OnExhausted::Fail });
    }
    let back = fields.table("loop")?;
    Some(LoopBackDraft {
        to: back.name("to")?,
        max: Some(back.number("max")?.value),
        on_exhausted: back
            .choice("on_exhausted", &[("fail", OnExhausted::Fail), ("hold", OnExhausted::Hold)])
            .unwrap_or(OnExhausted::Fail),
    })
}

fn work(
    fields: TableFields<'_>,
    name: &SpannedValue<String>,
    dialect: RecipeDialect,
    prompts: &mut PromptReader<'_>,
    findings: &mut CheckFindings,
) -> Option<StepWorkDraft> {
    let limit = |key: &str| fields.choice(key, &LIMITS).unwrap_or(OnLimit::Block);
    let count = |key: &str, otherwise: u32| fields.number(key).map_or(otherwise, |number| number.value);
    let kind = match fields.node("type") {
        Some(_) => fields.string("type")?,
        None => "agent".into(),
    };
    match kind.as_str() {
        "agent" => Some(StepWorkDraft::Agent { prompt: prompt(fields, name, dialect, prompts, findings)? }),
        "agent-loop" => Some(StepWorkDraft::AgentLoop {
            prompt: prompt(fields, name, dialect, prompts, findings)?,
            arbiter: PromptDraft::Inline(told(fields, "arbiter_prompt", findings)?.clone()),
            max_iterations: count("max_iterations", MAX_ITERATIONS),
            on_max: limit("on_max_iterations"),
        }),
        "parallel-agents" => Some(StepWorkDraft::ParallelAgents {
            items: items(fields.node("for_each")?)?,
            prompt: prompt(fields, name, dialect, prompts, findings)?,
            max_concurrent: count("max_concurrent", MAX_CONCURRENT),
            on_failure: limit("on_failure"),
        }),
        "script" => Some(StepWorkDraft::Script { command: told(fields, "command", findings)?.clone() }),
        "gate" => Some(StepWorkDraft::Gate {
            command: told(fields, "command", findings)?.clone(),
            message: fields.text("message").cloned(),
            unanswered: unanswered(fields, findings),
        }),
        "task" => Some(StepWorkDraft::Task {
            summary: told(fields, "summary", findings)?.clone(),
            branch: fields.text("branch").cloned(),
            workflow: fields.string("workflow"),
            project: fields.string("project"),
            context: fields.text("context").cloned(),
        }),
        _ => None,
    }
}

/// What becomes of a gate that no person answers: both keys are there, or neither.
fn unanswered(fields: TableFields<'_>, findings: &mut CheckFindings) -> Option<UnansweredGate> {
    let answers = GateAnswer::ALL.map(|answer| (answer.word(), answer));
    let (after, answer) = (fields.duration("answer_timeout"), fields.choice("default", &answers));
    let mut lacks = |has: &str, wants: &str, help: &str| {
        if let (Some(key), None) = (fields.key(has), fields.key(wants)) {
            findings.add(Diagnosis::new(Code::MissingKey, key, format!("`{has}` needs a `{wants}`")).help(help));
        }
    };
    lacks("default", "answer_timeout", "say how long a person has to answer: `answer_timeout: 30m`");
    lacks("answer_timeout", "default", "say what is the answer then: `default: retry`, `skip` or `abort`");
    Some(UnansweredGate { after: after?, answer: answer? })
}

fn items(node: &Node) -> Option<ItemsDraft> {
    match &node.value {
        NodeValue::Text(text) => Some(ItemsDraft::Text(text.clone())),
        NodeValue::List(nodes) => Some(ItemsDraft::Listed(nodes.iter().map(data).collect())),
        _ => None,
    }
}

/// What an agent is told: `prompt`, `prompt_file`, or the instructions of a template's step.
fn prompt(
    fields: TableFields<'_>,
    name: &SpannedValue<String>,
    dialect: RecipeDialect,
    prompts: &mut PromptReader<'_>,
    findings: &mut CheckFindings,
) -> Option<PromptDraft> {
    if let (Some(_), Some(file)) = (fields.key("prompt"), fields.key("prompt_file")) {
        findings.add(
            Diagnosis::new(Code::KeyConflict, file, "`prompt` and `prompt_file` in one step")
                .help("a step has one of them"),
        );
        return None;
    }
    if fields.text("prompt").is_some() {
        return told(fields, "prompt", findings).cloned().map(PromptDraft::Inline);
    }
    if fields.text("prompt_file").is_some() {
        let path = told(fields, "prompt_file", findings)?;
        return Some(PromptDraft::File { path: named(path), found: prompts.read(&path.value) });
    }
    if fields.key("prompt").is_some() || fields.key("prompt_file").is_some() {
        return None;
    }
    match dialect {
        RecipeDialect::Template => {
            let said = |key: &str| fields.text(key).filter(|text| !sense::is_blank(text)).cloned();
            let instructions = said("description").or_else(|| said("title"));
            let own_name = || SourceText::whole(name.value.clone(), name.span);
            Some(PromptDraft::Inline(instructions.unwrap_or_else(own_name)))
        }
        RecipeDialect::Manifest | RecipeDialect::Grimoire if sense::meant_otherwise(fields, dialect) => None,
        RecipeDialect::Manifest | RecipeDialect::Grimoire => {
            let message = format!("the step `{}` does not say what its agent is told", name.value);
            findings.hole(
                Diagnosis::new(Code::MissingKey, name.span, message)
                    .help("add `prompt` or `prompt_file`, or `type: script` with a `command`"),
            );
            None
        }
    }
}
