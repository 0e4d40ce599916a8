//! `sluice process`: templates whose steps are done by whoever follows them.

use serde::Serialize;
use serde_json::json;
use sluice_api::client::escape;
use sluice_api::run::{ProcessStepReport, StartRun};
use sluice_api::shown::{ProcessAnswer, ProcessList, ProcessStep, ProcessStepStatus};
use sluice_core::problem::Severity;
use sluice_dialect::{Definition, Sources};

use crate::args::{ProcessCommand, ProcessIdArg};
use crate::engine::connect;
use crate::output::{CliExit, CliFailure, CliOutput, print};
use crate::table;

const PROCESSES: &str = "/v1/processes";

const STEP_COLUMNS: [&str; 4] = ["step", "status", "title", "about"];

pub(crate) fn run(arguments: ProcessCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    let of = |id: &str, rest: &str| format!("{PROCESSES}/{}{rest}", escape(id));
    match arguments {
        ProcessCommand::Compile { template } => compile(&template, output),
        ProcessCommand::Start { template, work_order } => {
            let cwd = std::env::current_dir().map(|here| here.display().to_string()).unwrap_or_default();
            let wanted = StartRun { recipe: template, cwd, work_order, by_hand: true, ..StartRun::default() };
            let answer: ProcessAnswer = connect()?.post(PROCESSES, &wanted)?;
            output.show(&answer, || print(&format!("{}\n", answer.process.id)))
        }
        ProcessCommand::List { all } => list(all, output),
        ProcessCommand::Show(ProcessIdArg { id }) => shown(&connect()?.get(&of(&id, ""))?, output),
        ProcessCommand::Steps(ProcessIdArg { id }) => steps(&connect()?.get(&of(&id, ""))?, output),
        ProcessCommand::Complete { id, summary } => {
            shown(&connect()?.post(&of(&id, "/complete"), &json!({ "summary": summary }))?, output)
        }
        ProcessCommand::Cancel { id, reason } => {
            shown(&connect()?.delete_with(&of(&id, ""), &json!({ "reason": reason }))?, output)
        }
        ProcessCommand::Step { id, step, verb, summary, result } => {
            let path = of(&id, &format!("/steps/{}/{verb}", escape(&step)));
            let answer: ProcessAnswer = connect()?.post(&path, &ProcessStepReport { summary, result })?;
            output.show(&answer, || print_steps(&answer.process.steps))
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
    let steps: Vec<CompiledStep> = recipe
        .steps
        .iter()
        .map(|step| {
            let needs: Vec<&str> = step.needs.iter().map(|need| recipe.step(*need).name.as_str()).collect();
            CompiledStep {
                id: step.name.as_str(),
                title: step.title.as_deref().unwrap_or(step.name.as_str()),
                status: if needs.is_empty() { ProcessStepStatus::Ready } else { ProcessStepStatus::Pending },
                needs,
            }
        })
        .collect();
    let template = recipe.name.as_str();
    output.show(&json!({ "process": { "template": template, "status": "ready", "steps": steps } }), || {
        facts([("template", Some(template)), ("status", Some("ready"))]);
        let rows = steps.iter().map(|it| vec![it.id.into(), it.status.to_string(), it.title.into(), String::new()]);
        table::print(&STEP_COLUMNS, rows);
    })
}

#[derive(Serialize)]
struct CompiledStep<'a> {
    id: &'a str,
    title: &'a str,
    status: ProcessStepStatus,
    needs: Vec<&'a str>,
}

fn list(all: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
    let answer: ProcessList = connect()?.get(&format!("{PROCESSES}?all={all}"))?;
    output.show(&answer, || {
        let rows = answer
            .processes
            .iter()
            .cloned()
            .map(|it| vec![it.id, it.template, it.wo_id.unwrap_or_default(), it.status.to_string(), it.created_at]);
        let none = "no processes; `sluice process start TEMPLATE` starts one";
        table::print_or(none, &["id", "template", "work order", "status", "started"], rows);
    })
}

/// What is known of a process, a line for each fact, and an empty one.
fn facts<const COUNT: usize>(facts: [(&str, Option<&str>); COUNT]) {
    for (name, text) in facts {
        if let Some(text) = text {
            print(&format!("{name:<12} {}\n", table::line(text, 2000)));
        }
    }
    print("\n");
}

fn shown(answer: &ProcessAnswer, output: CliOutput) -> Result<CliExit, CliFailure> {
    let process = &answer.process;
    output.show(answer, || {
        facts([
            ("id", Some(process.id.as_str())),
            ("template", Some(process.template.as_str())),
            ("wo id", process.wo_id.as_deref()),
            ("status", Some(process.status.word())),
            ("summary", process.summary.as_deref()),
            ("error", process.error.as_deref()),
        ]);
        print_steps(&process.steps);
    })
}

fn steps(answer: &ProcessAnswer, output: CliOutput) -> Result<CliExit, CliFailure> {
    let steps = &answer.process.steps;
    output.show(&json!({ "steps": steps }), || print_steps(steps))
}

fn print_steps(steps: &[ProcessStep]) {
    let rows = steps.iter().map(|step| {
        let about = match step.waits_for.as_slice() {
            [] => step.summary.clone().unwrap_or_default(),
            waits => format!("waits: {}", waits.join(", ")),
        };
        vec![step.id.clone(), step.status.to_string(), step.title.clone(), about]
    });
    table::print(&STEP_COLUMNS, rows);
}
