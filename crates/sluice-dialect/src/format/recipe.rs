//! Makes a draft of a recipe, from any of the three formats.

use std::time::Duration;

use sluice_core::findings::Findings;
use sluice_core::lifecycle::Permissions;
use sluice_core::problem::{Code, Problem};
use sluice_core::recipe::draft::{Draft, Input, Items, LoopBack, Prompt, Retry, RunHook, Step, Trigger, Work};
use sluice_core::recipe::{Dialect, FailureKind, InputKind, Join, OnExhausted, OnLimit};
use sluice_core::span::{At, Text};

use super::fields::{Fields, data, named};
use super::sense::{self, told};
use crate::prompts::PromptReader;
use crate::tree::{Node, Value};

/// Ended runs of a repeating recipe that are kept, unless the file says otherwise.
const KEEP: u32 = 20;
/// Turns of an agent-loop, unless the file says otherwise.
const MAX_ITERATIONS: u32 = 3;
/// Agents of a fan-out at once, unless the file says otherwise.
const MAX_CONCURRENT: u32 = 4;
const LIMITS: [(&str, OnLimit); 2] = [("block", OnLimit::Block), ("continue", OnLimit::Continue)];
const JOINS: [(&str, Join); 3] =
    [("none_failed", Join::NoneFailed), ("all_completed", Join::AllCompleted), ("any_completed", Join::AnyCompleted)];

/// The draft that `node` says in `dialect`; prompt files are read by `prompts`.
pub fn lower(node: &Node, dialect: Dialect, prompts: &mut PromptReader<'_>, findings: &mut Findings) -> Draft {
    let file = Fields::of(node);
    let header = match dialect {
        Dialect::Manifest => file.table("workflow").unwrap_or(file),
        Dialect::Grimoire | Dialect::Template => file,
    };
    let name_key = match dialect {
        Dialect::Manifest | Dialect::Grimoire => "name",
        Dialect::Template => "template",
    };
    if let (Some(_), Some(second)) = (file.key("input"), file.key("inputs")) {
        findings
            .add(Problem::new(Code::KeyConflict, second, "`input` and `inputs`").help("they mean the same: write one"));
    }
    let input_key = if file.key("input").is_some() { "input" } else { "inputs" };
    no_steps(file, findings);
    sense::time_limit(file, findings);
    Draft {
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
        on_complete: file.tables("on_complete").filter_map(|hook| run_hook(hook, findings)).collect(),
        on_fail: file.tables("on_fail").filter_map(|hook| run_hook(hook, findings)).collect(),
    }
}

fn no_steps(file: Fields<'_>, findings: &mut Findings) {
    let empty = match file.node("steps").map(|node| &node.value) {
        Some(Value::List(steps)) => steps.is_empty(),
        Some(Value::Null) => true,
        _ => false,
    };
    if let Some(span) = file.key("steps").filter(|_| empty) {
        findings.hole(Problem::new(Code::MissingKey, span, "there are no steps").help("add at least one"));
    }
}

fn version(header: Fields<'_>) -> String {
    let number = header.number::<i64>("version").map(|version| version.value.to_string());
    header.string("version").or(number).unwrap_or_else(|| "1".into())
}

fn trigger(fields: Fields<'_>) -> Option<Trigger> {
    Some(Trigger { event: fields.name("event")?, filter: fields.text("where").cloned() })
}

fn input(fields: Fields<'_>) -> Option<Input> {
    let kinds: Vec<(&str, InputKind)> = InputKind::ALL.iter().map(|kind| (kind.word(), *kind)).collect();
    Some(Input {
        name: fields.name("name")?,
        kind: fields.choice("type", &kinds).unwrap_or(InputKind::Any),
        required: fields.flag("required"),
        default: fields.node("default").map(|node| At::new(data(node), node.span)),
    })
}

fn run_hook(fields: Fields<'_>, findings: &mut Findings) -> Option<RunHook> {
    match fields.text("action")?.value.as_str() {
        "notify" => told(fields, "message", findings).cloned().map(RunHook::Notify),
        "run_command" => told(fields, "command", findings).cloned().map(RunHook::RunCommand),
        "start" => fields.string("recipe").map(RunHook::Start),
        _ => None,
    }
}

fn step(fields: Fields<'_>, dialect: Dialect, prompts: &mut PromptReader<'_>, findings: &mut Findings) -> Option<Step> {
    let (name, needs, condition) = match dialect {
        Dialect::Manifest => ("id", "depends_on", "condition"),
        Dialect::Grimoire => ("name", "needs", "when"),
        Dialect::Template => ("id", "needs", "when"),
    };
    let name = fields.name(name)?;
    sense::time_limit(fields, findings);
    match dialect {
        Dialect::Manifest => sense::retries(fields, findings),
        Dialect::Grimoire | Dialect::Template => {}
    }
    Some(Step {
        span: fields.span(),
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
        own_workspace: fields.choice("workspace", &[("shared", false), ("own", true)]).unwrap_or(false),
        join: fields.choice("join", &JOINS),
        always: fields.flag("always").unwrap_or(false),
        harness: fields.string("harness"),
        permissions: fields.choice("permissions", &[("full", Permissions::Full), ("reduced", Permissions::Reduced)]),
        acts_as_person: fields
            .choice("acts_as", &[("person", ())])
            .and(fields.text("acts_as"))
            .map(|text| At::new((), text.span)),
        name,
    })
}

fn retry(fields: Fields<'_>) -> Option<Retry> {
    let kinds = |name: &At<String>| FailureKind::NAMED.into_iter().find(|kind| kind.word() == name.value);
    Some(Retry {
        max: fields.number("max")?.value,
        backoff: fields.duration("backoff"),
        on: fields.names("on").unwrap_or_default().iter().filter_map(kinds).collect(),
    })
}

fn loop_back(fields: Fields<'_>) -> Option<LoopBack> {
    if let Some(to) = fields.name("loop_to") {
        let max = fields.number("max_retries").map(|max| max.value);
        return Some(LoopBack { to, max, on_exhausted: OnExhausted::Fail });
    }
    let back = fields.table("loop")?;
    Some(LoopBack {
        to: back.name("to")?,
        max: Some(back.number("max")?.value),
        on_exhausted: back
            .choice("on_exhausted", &[("fail", OnExhausted::Fail), ("hold", OnExhausted::Hold)])
            .unwrap_or(OnExhausted::Fail),
    })
}

fn work(
    fields: Fields<'_>,
    name: &At<String>,
    dialect: Dialect,
    prompts: &mut PromptReader<'_>,
    findings: &mut Findings,
) -> Option<Work> {
    let limit = |key: &str| fields.choice(key, &LIMITS).unwrap_or(OnLimit::Block);
    let count = |key: &str, otherwise: u32| fields.number(key).map_or(otherwise, |number| number.value);
    let kind = match fields.node("type") {
        Some(_) => fields.string("type")?,
        None => "agent".into(),
    };
    match kind.as_str() {
        "agent" => Some(Work::Agent { prompt: prompt(fields, name, dialect, prompts, findings)? }),
        "agent-loop" => Some(Work::AgentLoop {
            prompt: prompt(fields, name, dialect, prompts, findings)?,
            arbiter: Prompt::Inline(told(fields, "arbiter_prompt", findings)?.clone()),
            max_iterations: count("max_iterations", MAX_ITERATIONS),
            on_max: limit("on_max_iterations"),
        }),
        "parallel-agents" => Some(Work::ParallelAgents {
            items: items(fields.node("for_each")?)?,
            prompt: prompt(fields, name, dialect, prompts, findings)?,
            max_concurrent: count("max_concurrent", MAX_CONCURRENT),
            on_failure: limit("on_failure"),
        }),
        "script" => Some(Work::Script { command: told(fields, "command", findings)?.clone() }),
        "gate" => Some(Work::Gate {
            command: told(fields, "command", findings)?.clone(),
            message: fields.text("message").cloned(),
        }),
        "task" => Some(Work::Task {
            summary: told(fields, "summary", findings)?.clone(),
            branch: fields.text("branch").cloned(),
            workflow: fields.string("workflow"),
            project: fields.string("project"),
            context: fields.text("context").cloned(),
        }),
        _ => None,
    }
}

fn items(node: &Node) -> Option<Items> {
    match &node.value {
        Value::Text(text) => Some(Items::Text(text.clone())),
        Value::List(nodes) => Some(Items::Listed(nodes.iter().map(data).collect())),
        _ => None,
    }
}

/// What an agent is told: `prompt`, `prompt_file`, or the instructions of a template's step.
fn prompt(
    fields: Fields<'_>,
    name: &At<String>,
    dialect: Dialect,
    prompts: &mut PromptReader<'_>,
    findings: &mut Findings,
) -> Option<Prompt> {
    if let (Some(_), Some(file)) = (fields.key("prompt"), fields.key("prompt_file")) {
        findings.add(
            Problem::new(Code::KeyConflict, file, "`prompt` and `prompt_file` in one step")
                .help("a step has one of them"),
        );
        return None;
    }
    if fields.text("prompt").is_some() {
        return told(fields, "prompt", findings).cloned().map(Prompt::Inline);
    }
    if fields.text("prompt_file").is_some() {
        let path = told(fields, "prompt_file", findings)?;
        return Some(Prompt::File { path: named(path), found: prompts.read(&path.value) });
    }
    if fields.key("prompt").is_some() || fields.key("prompt_file").is_some() {
        return None;
    }
    match dialect {
        Dialect::Template => {
            let said = |key: &str| fields.text(key).filter(|text| !sense::is_blank(text)).cloned();
            let instructions = said("description").or_else(|| said("title"));
            let own_name = || Text::whole(name.value.clone(), name.span);
            Some(Prompt::Inline(instructions.unwrap_or_else(own_name)))
        }
        Dialect::Manifest | Dialect::Grimoire if sense::meant_otherwise(fields, dialect) => None,
        Dialect::Manifest | Dialect::Grimoire => {
            let message = format!("the step `{}` does not say what its agent is told", name.value);
            findings.hole(
                Problem::new(Code::MissingKey, name.span, message)
                    .help("add `prompt` or `prompt_file`, or `type: script` with a `command`"),
            );
            None
        }
    }
}
