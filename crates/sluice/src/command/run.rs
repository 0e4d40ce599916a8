//! `sluice start`, `run`, `step`: said to the engine, and followed to the end.

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use serde_json::{Value, json};
use sluice_api::Client;
use sluice_api::client::{EngineAbsence, escape};
use sluice_api::diff::{MergeRun, RunDeleteAnswer, RunMergeAnswer};
use sluice_api::project::ProjectList;
use sluice_api::run::{StartRun, StepHeard, StepSays};
use sluice_api::shell::{answer_command, shell_word};
use sluice_api::shown::{
    Inbox, Question, Run, RunAnswer, RunContext, RunList, RunLog, RunStatus, RunStep, RunStepStatus,
};

use super::follow::{DisplayOutcome, RunDisplay};
use super::task::confirm;
use super::{attended, wait, watch, work};
use crate::args::{DiffArgs, RunCommand, RunIdArg, StartArgs, StepCommand, StepOutcomeArgs};
use crate::engine::connect;
use crate::output::{CliExit, CliFailure, CliOutput, print, print_as_written, print_json, say};
use crate::table;

pub(super) const RUNS: &str = "/v1/recipe/runs";

/// The way out where there is no run.
const STARTS_ONE: &str = "`sluice start RECIPE` starts one";

pub(crate) fn start(arguments: StartArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let StartArgs { recipe, inputs, prompt, project, work_order, harness, workers, detach } = arguments;
    let prompt = prompt.map(prompted).transpose()?;
    let client = connect()?;
    let here = std::env::current_dir().map(|here| here.display().to_string()).unwrap_or_default();
    let cwd = match project {
        Some(name) => path_of(&client, &name)?,
        None => here,
    };
    let environment = || std::env::var("SLUICE_HARNESS").ok().filter(|name| !name.is_empty());
    let inputs = inputs.iter().map(|text| input(text)).collect::<Result<Vec<_>, _>>()?;
    let harness = harness.or_else(environment);
    let wanted = StartRun { recipe, cwd, inputs, prompt, work_order, harness, by_hand: false, workers };
    let answer: RunAnswer = client.post(RUNS, &wanted)?;
    if detach {
        return output.show(&answer, || print(&format!("{}\n", answer.run.id)));
    }
    follow(&client, &answer.run.id, output)
}

/// What is wanted, in words; `-` reads them from stdin, where they may be longer than an argument.
fn prompted(prompt: String) -> Result<String, CliFailure> {
    if prompt != "-" {
        return Ok(prompt);
    }
    std::io::read_to_string(std::io::stdin()).map_err(|error| {
        CliFailure::new(CliExit::Usage, "usage", format!("the prompt cannot be read from stdin: {error}"))
    })
}

fn path_of(client: &Client, name: &str) -> Result<String, CliFailure> {
    let list: ProjectList = client.get("/v1/projects")?;
    let found = list.projects.into_iter().find(|project| project.name == name);
    found.map(|project| project.path).ok_or_else(|| {
        CliFailure::new(CliExit::NotFound, "not_found", format!("there is no project `{name}`"))
            .hint("`sluice project list` shows all of them")
    })
}

fn input(text: &str) -> Result<(String, Value), CliFailure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), Value::String(value.to_owned()))),
        split => {
            let missing = if split.is_some() { "name" } else { "value" };
            Err(CliFailure::new(CliExit::Usage, "usage", format!("`--input {text}` has no {missing}"))
                .hint("write --input NAME=VALUE"))
        }
    }
}

/// Follows a run until it has ended or waits for a person.
fn follow(client: &Client, id: &str, output: CliOutput) -> Result<CliExit, CliFailure> {
    let mut progress = RunDisplay::new(output);
    let path = format!("{RUNS}/{}", escape(id));
    let run = client.with_engines(EngineAbsence::Bounded(None), || {
        let RunAnswer { mut run } = client.get(&path)?;
        progress.show(&run);
        if !is_still(&run) {
            client.lines(&format!("{path}/events?follow=true&after={}", run.version), |line| {
                match progress.hear(&mut run, line) {
                    DisplayOutcome::Shown => return Ok(true),
                    DisplayOutcome::More => run = client.get::<RunAnswer>(&path)?.run,
                }
                progress.show(&run);
                Ok(!is_still(&run))
            })?;
        }
        Ok(run)
    })?;
    progress.end(&run);
    if run.status == RunStatus::Held {
        attended::ring(output, &format!("{} needs you", run.recipe));
    }
    let exit = match run.status {
        RunStatus::Completed => CliExit::Done,
        RunStatus::Held => CliExit::Held,
        RunStatus::Running | RunStatus::Failed | RunStatus::Cancelled => CliExit::Refused,
    };
    if output == CliOutput::Json {
        print_json(&RunAnswer { run });
    }
    Ok(exit)
}

/// Whether nothing happens any more unless a person does something.
fn is_still(run: &Run) -> bool {
    match run.status {
        RunStatus::Held | RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => true,
        RunStatus::Running => false,
    }
}

pub(crate) fn run(arguments: RunCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    let of = |id: &str, rest: &str| format!("{RUNS}/{}{rest}", escape(id));
    match arguments {
        RunCommand::List { status, all, watch } => watch::maybe(watch, || list(status.clone(), all, output)),
        RunCommand::Show(RunIdArg { id }) => shown(&connect()?.get(&of(&id, ""))?, output),
        RunCommand::Steps(RunIdArg { id }) => {
            let RunAnswer { run } = connect()?.get(&of(&id, ""))?;
            output.show(&json!({ "steps": run.steps }), || print_steps(&run.steps))
        }
        RunCommand::Log { id, step, follow } => {
            let only = step.map(|step| format!("?step={}", escape(&step))).unwrap_or_default();
            if follow {
                return work::follow_log(&of(&id, &format!("/log/stream{only}")), output);
            }
            let answer: RunLog = connect()?.get(&of(&id, &format!("/log{only}")))?;
            output.show(&answer, || print_as_written(answer.log.as_bytes()))
        }
        RunCommand::Diff(DiffArgs { id, stat }) => work::diff(&of(&id, "/diff"), stat, output),
        RunCommand::Merge { id, local, strategy, force } => {
            let strategy = strategy.and_then(|it| it.to_possible_value()).map(|it| it.get_name().to_owned());
            let answer: RunMergeAnswer = connect()?.post(&of(&id, "/merge"), &MergeRun { local, strategy, force })?;
            output.show(&answer, || {
                say(&format!("{}: merged", answer.run.id));
                answer.notes.iter().for_each(|note| say(&format!("  {note}")));
                print(&format!("{}\n", answer.run.id));
            })
        }
        RunCommand::Delete { id, yes } => {
            let question = format!("Delete run {id}? Commits on its branch stay.");
            confirm(yes, ("run delete", &format!("run {id}")), &question)?;
            let answer: RunDeleteAnswer = connect()?.post(&of(&id, "/delete"), &json!({}))?;
            output.show(&answer, || {
                say(&format!("{}: deleted", answer.run.id));
                answer.notes.iter().for_each(|note| say(&format!("  {note}")));
                print(&format!("{}\n", answer.run.id));
            })
        }
        RunCommand::Follow(RunIdArg { id }) => {
            let client = connect()?;
            let RunAnswer { run } = client.get(&of(&id, ""))?;
            follow(&client, &run.id, output)
        }
        RunCommand::Wait { id, timeout } => wait::for_run(&id, timeout, output),
        RunCommand::Cancel { id, reason } => {
            shown(&connect()?.delete_with(&of(&id, ""), &json!({ "reason": reason }))?, output)
        }
        RunCommand::Retry { id, step, message } => {
            shown(&connect()?.post(&of(&id, "/retry"), &json!({ "step": step, "message": message }))?, output)
        }
        RunCommand::Context { id, step } => {
            let answer: RunContext = connect()?.get(&of(&id, &format!("/context/{}", escape(&step))))?;
            output.show(&answer, || print_as_written(answer.context.as_bytes()))
        }
    }
}

fn list(status: Option<String>, all: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
    let status = status.map(|status| format!("status={}", escape(&status)));
    let every = all.then(|| "all=true".to_owned());
    let query: Vec<String> = [status, every].into_iter().flatten().collect();
    let engine = connect()?;
    let mut answer: RunList = engine.get(&format!("{RUNS}?{}", query.join("&")))?;
    while let Some(next) = answer.next.take() {
        let more: RunList = engine.get(&format!("{RUNS}?{}&after={}", query.join("&"), escape(&next)))?;
        answer.runs.extend(more.runs);
        answer.next = more.next;
    }
    match output {
        CliOutput::Json => print_json(&answer),
        CliOutput::People if answer.runs.is_empty() && query.is_empty() => {
            let ended: RunList = engine.get(&format!("{RUNS}?all=true"))?;
            say(&table::none("run", ended.runs.len(), ended.next.is_some(), STARTS_ONE));
        }
        CliOutput::People if answer.runs.is_empty() && all => say(&table::none("such run", 0, false, STARTS_ONE)),
        CliOutput::People if answer.runs.is_empty() => say("no such runs; --all shows those that have ended as well"),
        CliOutput::People => {
            let waiting = engine.get::<Inbox>("/v1/inbox")?.questions;
            let needs = |run: &Run| {
                let own = waiting.iter().find(|it| it.run.as_deref() == Some(run.id.as_str()));
                own.map(|it| format!("! {}: {}", it.reason, it.text)).unwrap_or_default()
            };
            let words = |run: &Run| {
                let status = match &run.next_turn_at {
                    Some(at) => format!("{}, again at {at}", run.status),
                    None => run.status.to_string(),
                };
                let step = run.current_step.clone().unwrap_or_default();
                let started = table::ago(&run.created_at);
                vec![run.id.clone(), run.kind.to_string(), run.recipe.clone(), status, step, started, needs(run)]
            };
            let heads = ["id", "kind", "recipe", "status", "step", "started", "needs you"];
            table::print_coloured(&heads, "status", answer.runs.iter().map(|run| (colour(run.status), words(run))));
        }
    }
    Ok(CliExit::Done)
}

fn colour(status: RunStatus) -> Style {
    match status {
        RunStatus::Running => AnsiColor::Green.on_default(),
        RunStatus::Held => AnsiColor::Yellow.on_default(),
        RunStatus::Failed => AnsiColor::Red.on_default(),
        RunStatus::Completed | RunStatus::Cancelled => Style::new().dimmed(),
    }
}

/// Lines of what a failed step printed that are shown; `run log` has all of them.
const MOST_PRINTED: usize = 20;

fn shown(answer: &RunAnswer, output: CliOutput) -> Result<CliExit, CliFailure> {
    output.show(answer, || print_run(&answer.run))
}

pub(super) fn print_run(run: &Run) {
    let kept = run.kept.join(", ");
    let facts = [
        ("id", Some(run.id.as_str())),
        ("kind", Some(run.kind.word())),
        ("recipe", Some(run.recipe.as_str())),
        ("definition", run.definition.as_deref()),
        ("status", Some(run.status.word())),
        ("current step", run.current_step.as_deref()),
        ("workspace", run.workspace.as_deref()),
        ("branch", run.branch.as_deref()),
        ("kept", Some(kept.as_str()).filter(|kept| !kept.is_empty())),
        ("work order", run.work_order.as_deref()),
        ("task", run.task.as_deref()),
        ("next turn at", run.next_turn_at.as_deref()),
        ("attention", run.attention.as_deref()),
        ("error", run.error.as_deref()),
    ];
    for (name, text) in facts {
        if let Some(text) = text {
            print(&format!("{name:<14} {}\n", table::line(text, 2000)));
        }
    }
    run.question.iter().for_each(ask);
    print("\n");
    print_steps(&run.steps);
    failed(&run.steps);
}

/// What the steps printed that have failed, the end of it.
fn failed(steps: &[RunStep]) {
    for step in steps.iter().filter(|step| step.status == RunStepStatus::Failed) {
        let texts = [step.output.as_str(), step.stderr.as_deref()];
        let lines: Vec<&str> = texts.into_iter().flatten().flat_map(str::lines).collect();
        if !lines.is_empty() {
            print(&format!("\n{} printed\n", step.id));
            let last = lines.len().saturating_sub(MOST_PRINTED);
            lines[last..].iter().for_each(|line| print(&format!("  | {}\n", table::line(line, 2000))));
        }
    }
}

fn print_steps(steps: &[RunStep]) {
    // Only of a run that workers do.
    let has_workers = steps.iter().any(|step| step.worker.is_some());
    let rows = steps.iter().map(|step| {
        let about = step.error.as_ref().or(step.summary.as_ref());
        let mut row = vec![
            step.id.clone(),
            step.kind.clone(),
            step.status.to_string(),
            step.attempt.to_string(),
            step.result.clone().unwrap_or_default(),
        ];
        row.extend(has_workers.then(|| step.worker.clone().unwrap_or_default()));
        row.push(about.cloned().unwrap_or_default());
        row
    });
    match has_workers {
        true => table::print(&["step", "type", "status", "attempt", "result", "worker", "about"], rows),
        false => table::print(&["step", "type", "status", "attempt", "result", "about"], rows),
    }
}

pub(super) fn ask(question: &Question) {
    let id = &question.id;
    print(&format!("question       {id}: {}\n", table::line(&question.reason, 2000)));
    if let Some(printed) = &question.printed {
        print("printed\n");
        printed.lines().for_each(|line| print(&format!("  | {}\n", table::line(line, 2000))));
    }
    let (first, rest) = match question.options.split_first() {
        None => (format!("sluice answer {id} TEXT"), &[][..]),
        Some((first, rest)) => (answer_command(id, first), rest),
    };
    let rest: Vec<String> = rest.iter().map(|option| shell_word(option)).collect();
    let rest = if rest.is_empty() { String::new() } else { format!("    (or: {})", rest.join(", ")) };
    print(&format!("answer it      {first}{rest}\n"));
}

pub(crate) fn step(arguments: StepCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    let said = match arguments {
        StepCommand::Complete(said) => speech("complete", said)?,
        StepCommand::Fail(said) => speech("fail", said)?,
        StepCommand::Ask { text, options, default, timeout } => {
            let timeout_seconds = timeout.map(|timeout| timeout.as_secs().max(1));
            let said = StepSays { text: Some(text), options, default, timeout_seconds, ..StepSays::new("ask") };
            return asked(&said, output);
        }
    };
    let answer: StepHeard = connect()?.post("/v1/step", &said)?;
    output.show(&answer, || {})
}

fn speech(verb: &str, said: StepOutcomeArgs) -> Result<StepSays, CliFailure> {
    let output = said.output.as_deref().map(serde_json::from_str).transpose().map_err(|error| {
        CliFailure::new(CliExit::Usage, "usage", format!("the output is no JSON: {error}"))
            .hint("quote it: --output '{\"a\": 1}'")
    })?;
    Ok(StepSays { summary: said.summary, result: said.result, output, ..StepSays::new(verb) })
}

/// Asks until there is an answer. The engine keeps the question while no process waits for it. When the engine ends, this command
/// waits for the next engine and asks it the same question.
fn asked(said: &StepSays, output: CliOutput) -> Result<CliExit, CliFailure> {
    let client = connect()?;
    client.health()?;
    let (answer, words) = client.with_engines(EngineAbsence::Endless, || {
        loop {
            let answer = client.post::<StepHeard>("/v1/step", said)?;
            if let StepHeard::Answered { option, message, .. } = &answer {
                let words = [Some(option), message.as_ref()].into_iter().flatten().filter(|it| !it.is_empty());
                let words = words.cloned().collect::<Vec<_>>().join("\n");
                return Ok((answer, words));
            }
        }
    })?;
    output.show(&answer, || print(&format!("{words}\n")))
}
