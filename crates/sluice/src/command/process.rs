//! `sluice process`: templates whose steps are done by whoever follows them.

use serde_json::{Value, json};
use sluice_api::client::escape;
use sluice_api::run::StartRun;
use sluice_core::problem::Severity;
use sluice_dialect::{Definition, Sources};

use super::run::word;
use crate::args::ProcessCommand;
use crate::engine::connect;
use crate::output::{CliExit, CliFailure, CliOutput, print, print_json, say};
use crate::table;

const PROCESSES: &str = "/v1/processes";

pub(crate) fn run(arguments: ProcessCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    let of = |id: &str, rest: &str| format!("{PROCESSES}/{}{rest}", escape(id));
    match arguments {
        ProcessCommand::Compile { template } => compile(&template, output),
        ProcessCommand::Start { template, work_order } => {
            let cwd = std::env::current_dir().map(|here| here.display().to_string()).unwrap_or_default();
            let wanted = StartRun { recipe: template, cwd, work_order, by_hand: true, ..StartRun::default() };
            let answer: Value = connect()?.post(PROCESSES, &wanted)?;
            if output == CliOutput::People {
                print(&format!("{}\n", word(&answer["process"], "id")));
                return Ok(CliExit::Done);
            }
            shown(&answer, output)
        }
        ProcessCommand::List { all } => list(all, output),
        ProcessCommand::Show { id } => shown(&connect()?.get(&of(&id, ""))?, output),
        ProcessCommand::Steps { id } => steps(&connect()?.get(&of(&id, ""))?, output),
        ProcessCommand::Complete { id, summary } => {
            shown(&connect()?.post(&of(&id, "/complete"), &json!({ "summary": summary }))?, output)
        }
        ProcessCommand::Cancel { id, reason } => {
            shown(&connect()?.delete_with(&of(&id, ""), &json!({ "reason": reason }))?, output)
        }
        ProcessCommand::Step { id, step, verb, summary, result } => {
            let path = of(&id, &format!("/steps/{}/{verb}", escape(&step)));
            let answer = connect()?.post(&path, &json!({ "summary": summary, "result": result }))?;
            if output == CliOutput::Json { shown(&answer, output) } else { steps(&answer, output) }
        }
    }
}

/// Checks a template, and shows what a process of it would begin with. Nothing is kept.
fn compile(template: &str, output: CliOutput) -> Result<CliExit, CliFailure> {
    let mut sources = Sources::new();
    let loaded = super::graph::load(template, &mut sources)?;
    let recipe = match loaded.definition.as_ref().filter(|_| loaded.is_usable()) {
        Some(Definition::Recipe(recipe)) => recipe,
        Some(Definition::Lifecycle(_)) => {
            let message = format!("`{template}` is a lifecycle, and a process needs a template");
            return Err(CliFailure::new(CliExit::Refused, "unusable_recipe", message));
        }
        None => {
            let first = loaded.problems.iter().find(|problem| problem.severity() == Severity::Error);
            let why = first.map_or("it has errors", |problem| &problem.message);
            return Err(CliFailure::new(
                CliExit::Refused,
                "invalid_definition",
                format!("`{template}` cannot be compiled: {why}"),
            )
            .hint(format!("`sluice check {template}` shows every problem")));
        }
    };
    let steps: Vec<Value> = recipe
        .steps
        .iter()
        .map(|step| {
            let needs: Vec<&str> = step.needs.iter().map(|need| recipe.step(*need).name.as_str()).collect();
            json!({
                "id": step.name.as_str(),
                "title": step.title.clone().unwrap_or_else(|| step.name.to_string()),
                "status": if needs.is_empty() { "ready" } else { "pending" },
                "needs": needs,
            })
        })
        .collect();
    let document = json!({ "process": { "template": recipe.name.as_str(), "status": "ready", "steps": steps } });
    shown(&document, output)
}

fn list(all: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
    let answer: Value = connect()?.get(&format!("{PROCESSES}?all={all}"))?;
    let none = Vec::new();
    let found = answer["processes"].as_array().unwrap_or(&none);
    match output {
        CliOutput::Json => print_json(&answer),
        CliOutput::People if found.is_empty() => say("no processes; `sluice process start TEMPLATE` starts one"),
        CliOutput::People => {
            let words =
                |it: &Value| ["id", "template", "wo_id", "status", "created_at"].map(|key| word(it, key)).to_vec();
            table::print(&["id", "template", "work order", "status", "started"], found.iter().map(words));
        }
    }
    Ok(CliExit::Done)
}

fn shown(answer: &Value, output: CliOutput) -> Result<CliExit, CliFailure> {
    if output == CliOutput::Json {
        print_json(answer);
        return Ok(CliExit::Done);
    }
    let process = &answer["process"];
    for key in ["id", "template", "wo_id", "status", "summary", "error"] {
        if !process[key].is_null() {
            print(&format!("{:<12} {}\n", key.replace('_', " "), table::line(&word(process, key), 2000)));
        }
    }
    print("\n");
    steps(answer, output)
}

fn steps(answer: &Value, output: CliOutput) -> Result<CliExit, CliFailure> {
    let steps = &answer["process"]["steps"];
    match output {
        CliOutput::Json => print_json(&json!({ "steps": steps })),
        CliOutput::People => {
            let rows = steps.as_array().into_iter().flatten().map(|step| {
                let waits: Vec<&str> =
                    step["waits_for"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let about =
                    if waits.is_empty() { word(step, "summary") } else { format!("waits: {}", waits.join(", ")) };
                vec![word(step, "id"), word(step, "status"), word(step, "title"), about]
            });
            table::print(&["step", "status", "title", "about"], rows);
        }
    }
    Ok(CliExit::Done)
}
