//! `sluice start`, `run`, `inbox`, `answer`, `step`: said to the engine, and followed to the end.

use serde_json::{Value, json};
use sluice_api::Client;
use sluice_api::client::escape;
use sluice_api::project::ProjectList;
use sluice_api::run::{StartRun, StepSays};

use super::follow::{DisplayOutcome, RunDisplay};
use crate::args::{AnswerArgs, RunCommand, StartArgs, StepCommand, StepOutcomeArgs};
use crate::engine::connect;
use crate::output::{CliExit, CliFailure, CliOutput, print, print_as_written, print_json, say};
use crate::table;

const RUNS: &str = "/v1/recipe/runs";

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
    let answer: Value = client.post(RUNS, &wanted)?;
    let id = answer["run"]["id"].as_str().unwrap_or_default().to_owned();
    if detach {
        match output {
            CliOutput::Json => print_json(&answer),
            CliOutput::People => print(&format!("{id}\n")),
        }
        return Ok(CliExit::Done);
    }
    follow(&client, &id, output)
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
        _ => {
            Err(CliFailure::new(CliExit::Usage, "usage", format!("`{text}` is no input"))
                .hint("write --input NAME=VALUE"))
        }
    }
}

/// Follows a run until it has ended or waits for a person.
fn follow(client: &Client, id: &str, output: CliOutput) -> Result<CliExit, CliFailure> {
    let mut progress = RunDisplay::new(output);
    let path = format!("{RUNS}/{}", escape(id));
    let mut run: Value = client.get(&path)?;
    let mut looked = Ok(());
    progress.show(&run["run"]);
    if !is_still(&run["run"]) {
        let known = run["run"]["version"].as_u64().unwrap_or_default();
        client.lines(&format!("{path}/events?follow=true&after={known}"), |line| {
            match progress.hear(&mut run["run"], line) {
                DisplayOutcome::Shown => return true,
                DisplayOutcome::More => {}
            }
            match client.get::<Value>(&path) {
                Ok(now) => run = now,
                Err(problem) => looked = Err(problem),
            }
            progress.show(&run["run"]);
            looked.is_ok() && !is_still(&run["run"])
        })?;
    }
    looked?;
    progress.end(&run["run"]);
    if output == CliOutput::Json {
        print_json(&run);
    }
    Ok(match run["run"]["status"].as_str() {
        Some("completed") => CliExit::Done,
        Some("held") => CliExit::Held,
        _ => CliExit::Refused,
    })
}

/// Whether nothing happens any more unless a person does something.
fn is_still(run: &Value) -> bool {
    matches!(run["status"].as_str(), Some("completed" | "failed" | "cancelled" | "held"))
}

pub(crate) fn run(arguments: RunCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    let of = |id: &str, rest: &str| format!("{RUNS}/{}{rest}", escape(id));
    match arguments {
        RunCommand::List { status, all } => list(status, all, output),
        RunCommand::Show { id } => shown(&connect()?.get(&of(&id, ""))?, output),
        RunCommand::Steps { id } => steps(&connect()?.get(&of(&id, ""))?, output),
        RunCommand::Log { id, step } => {
            let only = step.map(|step| format!("?step={}", escape(&step))).unwrap_or_default();
            text(&connect()?.get(&of(&id, &format!("/log{only}")))?, "log", output)
        }
        RunCommand::Follow { id } => {
            let client = connect()?;
            let run: Value = client.get(&of(&id, ""))?;
            follow(&client, run["run"]["id"].as_str().unwrap_or(&id), output)
        }
        RunCommand::Cancel { id, reason } => {
            let answer: Value = connect()?.delete_with(&of(&id, ""), &json!({ "reason": reason }))?;
            shown(&answer, output)
        }
        RunCommand::Retry { id, step, message } => {
            shown(&connect()?.post(&of(&id, "/retry"), &json!({ "step": step, "message": message }))?, output)
        }
        RunCommand::Context { id, step } => {
            text(&connect()?.get(&of(&id, &format!("/context/{}", escape(&step))))?, "context", output)
        }
    }
}

fn text(answer: &Value, key: &str, output: CliOutput) -> Result<CliExit, CliFailure> {
    match output {
        CliOutput::Json => print_json(answer),
        CliOutput::People => print_as_written(answer[key].as_str().unwrap_or_default().as_bytes()),
    }
    Ok(CliExit::Done)
}

fn list(status: Option<String>, all: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
    let status = status.map(|status| format!("status={}", escape(&status)));
    let every = all.then(|| "all=true".to_owned());
    let query: Vec<String> = [status, every].into_iter().flatten().collect();
    let engine = connect()?;
    let mut answer: Value = engine.get(&format!("{RUNS}?{}", query.join("&")))?;
    while let Some(next) = answer["next"].as_str().map(escape) {
        let mut more: Value = engine.get(&format!("{RUNS}?{}&after={next}", query.join("&")))?;
        if let (Some(runs), Some(further)) = (answer["runs"].as_array_mut(), more["runs"].as_array_mut()) {
            runs.append(further);
        }
        answer["next"] = more["next"].take();
    }
    answer.as_object_mut().and_then(|answer| answer.remove("next"));
    let none = Vec::new();
    let runs = answer["runs"].as_array().unwrap_or(&none);
    match output {
        CliOutput::Json => print_json(&answer),
        CliOutput::People if runs.is_empty() && query.is_empty() => {
            let ended: Value = engine.get(&format!("{RUNS}?all=true"))?;
            let count = ended["runs"].as_array().map_or(0, Vec::len);
            say(&table::none("run", count, !ended["next"].is_null(), STARTS_ONE));
        }
        CliOutput::People if runs.is_empty() && all => say(&table::none("such run", 0, false, STARTS_ONE)),
        CliOutput::People if runs.is_empty() => say("no such runs; --all shows those that have ended as well"),
        CliOutput::People => {
            let words = |run: &Value| {
                let mut words =
                    ["id", "kind", "recipe", "status", "current_step", "created_at"].map(|key| word(run, key));
                if let Some(at) = run["next_turn_at"].as_str() {
                    words[3] = format!("{}, again at {at}", words[3]);
                }
                words.to_vec()
            };
            table::print(&["id", "kind", "recipe", "status", "step", "started"], runs.iter().map(words));
        }
    }
    Ok(CliExit::Done)
}

/// Lines of what a failed step printed that are shown; `run log` has all of them.
const MOST_PRINTED: usize = 20;

/// A field as a word of a table.
pub(super) fn word(value: &Value, key: &str) -> String {
    match &value[key] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn shown(answer: &Value, output: CliOutput) -> Result<CliExit, CliFailure> {
    if output == CliOutput::Json {
        print_json(answer);
        return Ok(CliExit::Done);
    }
    let run = &answer["run"];
    let before = ["id", "kind", "recipe", "definition", "status", "current_step", "workspace", "work_order", "task"];
    for key in before.into_iter().chain(["next_turn_at", "error"]) {
        if !run[key].is_null() {
            print(&format!("{:<14} {}\n", key.replace('_', " "), table::line(&word(run, key), 2000)));
        }
    }
    if !run["question"].is_null() {
        ask(&run["question"]);
    }
    print("\n");
    steps(answer, output)?;
    failed(&run["steps"]);
    Ok(CliExit::Done)
}

/// What the steps printed that have failed, the end of it.
fn failed(steps: &Value) {
    for step in steps.as_array().into_iter().flatten().filter(|step| step["status"] == "failed") {
        let texts = [step["output"].as_str(), step["stderr"].as_str()];
        let lines: Vec<&str> = texts.into_iter().flatten().flat_map(str::lines).collect();
        if !lines.is_empty() {
            print(&format!("\n{} printed\n", word(step, "id")));
            let last = lines.len().saturating_sub(MOST_PRINTED);
            lines[last..].iter().for_each(|line| print(&format!("  | {}\n", table::line(line, 2000))));
        }
    }
}

fn steps(answer: &Value, output: CliOutput) -> Result<CliExit, CliFailure> {
    let steps = &answer["run"]["steps"];
    match output {
        CliOutput::Json => print_json(&json!({ "steps": steps })),
        CliOutput::People => {
            let rows = steps.as_array().into_iter().flatten().map(|step| {
                let about = match step["error"].as_str() {
                    Some(error) => error.to_owned(),
                    None => word(step, "summary"),
                };
                vec![
                    word(step, "id"),
                    word(step, "type"),
                    word(step, "status"),
                    word(step, "attempt"),
                    word(step, "result"),
                    about,
                ]
            });
            table::print(&["step", "type", "status", "attempt", "result", "about"], rows);
        }
    }
    Ok(CliExit::Done)
}

/// A question, and how to answer it.
pub(super) fn ask(question: &Value) {
    let options: Vec<&str> = question["options"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let id = word(question, "id");
    print(&format!("question       {id}: {}\n", table::line(&word(question, "reason"), 2000)));
    if let Some(printed) = question["printed"].as_str() {
        print("printed\n");
        printed.lines().for_each(|line| print(&format!("  | {}\n", table::line(line, 2000))));
    }
    let how = if options.is_empty() { "TEXT".to_owned() } else { options.join("|") };
    print(&format!("answer it      sluice answer {id} {how}\n"));
}

pub(crate) fn inbox(output: CliOutput) -> Result<CliExit, CliFailure> {
    let answer: Value = connect()?.get("/v1/inbox")?;
    let none = Vec::new();
    let questions = answer["questions"].as_array().unwrap_or(&none);
    match output {
        CliOutput::Json => print_json(&answer),
        CliOutput::People if questions.is_empty() => say("nothing waits for you"),
        CliOutput::People => {
            for question in questions {
                print(&format!(
                    "{} · step {} of {}\n",
                    word(question, "kind"),
                    word(question, "step"),
                    word(question, "recipe")
                ));
                ask(question);
                print("\n");
            }
        }
    }
    Ok(CliExit::Done)
}

pub(crate) fn answer(arguments: AnswerArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let AnswerArgs { id, option, message } = arguments;
    let answer = connect()?.post("/v1/inbox", &json!({ "id": id, "option": option, "message": message }))?;
    shown(&answer, output)
}

pub(crate) fn step(arguments: StepCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    let said = match arguments {
        StepCommand::Complete(said) => speech("complete", said)?,
        StepCommand::Fail(said) => speech("fail", said)?,
        StepCommand::Ask { text, options } => return asked(&text, &options, output),
    };
    let answer: Value = connect()?.post("/v1/step", &said)?;
    if output == CliOutput::Json {
        print_json(&answer);
    }
    Ok(CliExit::Done)
}

fn speech(verb: &str, said: StepOutcomeArgs) -> Result<StepSays, CliFailure> {
    let output = said.output.as_deref().map(serde_json::from_str).transpose().map_err(|error| {
        CliFailure::new(CliExit::Usage, "usage", format!("the output is no JSON: {error}"))
            .hint("quote it: --output '{\"a\": 1}'")
    })?;
    Ok(StepSays { verb: verb.into(), summary: said.summary, result: said.result, output, ..StepSays::default() })
}

/// Asks until there is an answer; the engine keeps the question while nobody waits.
fn asked(text: &str, options: &[String], output: CliOutput) -> Result<CliExit, CliFailure> {
    let client = connect()?;
    let said =
        StepSays { verb: "ask".into(), text: Some(text.to_owned()), options: options.to_vec(), ..StepSays::default() };
    loop {
        let answer: Value = client.post("/v1/step", &said)?;
        if answer["answered"] == json!(true) {
            match output {
                CliOutput::Json => print_json(&answer),
                CliOutput::People => {
                    let words = [word(&answer, "option"), word(&answer, "message")];
                    print(&format!(
                        "{}\n",
                        words.iter().filter(|it| !it.is_empty()).cloned().collect::<Vec<_>>().join("\n")
                    ));
                }
            }
            return Ok(CliExit::Done);
        }
    }
}
