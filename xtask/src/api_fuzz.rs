//! `cargo xtask api-fuzz`: a property-based tester (schemathesis, from PyPI) asks a served home everything that its
//! OpenAPI document allows, and much that it does not. Any fault, any answer outside its schema fails it.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use serde_json::{Value, json};

use crate::served_home::{Home, Served, built, target, text};

/// The tester, and which of its releases.
const TESTER: &str = "schemathesis";
const RELEASE: &str = "4.32.5";
/// The engine's document with examples, for the tester.
const DOCUMENT: &str = "openapi.json";
/// What the tester's token is called.
const NAME: &str = "the tester's own";
/// Cases for each operation when nobody says how many.
const CASES: u32 = 100;

/// What is not asked for, and why.
const EXCLUDED: [(&str, &str); 10] = [
    ("/v1/stop", "it ends the engine that is tested"),
    ("/v1/backup", "it writes a file wherever it is told to"),
    ("/v1/ws/crab/{id}", "it is a WebSocket, not a question with an answer"),
    ("/v1/ws/events", "it is a WebSocket, not a question with an answer"),
    ("/events", "it does not end"),
    ("/v1/events", "with `follow` it does not end"),
    ("/v1/recipe/runs/{id}/events", "with `follow` it does not end"),
    ("/v1/lifecycle/tasks/{id}/events", "with `follow` it does not end"),
    ("/v1/recipe/runs/{id}/log/stream", "it ends with the run"),
    ("/v1/lifecycle/tasks/{id}/log/stream", "it ends with the agent"),
];

/// What the tester cannot reach, and why.
const UNREACHED: [(&str, &str); 8] = [
    ("/v1/workspaces/end", "there is no session that no task knows"),
    ("/v1/workspaces/adopt", "there is no session that no task knows"),
    ("/v1/workspaces/drop", "there is no kept work"),
    ("/v1/workspaces/restore", "no work was put away"),
    ("/v1/lifecycle/tasks/here", "it is asked from inside of a task's worktree"),
    ("/v1/step", "it is for the agent of a step, and asked by none here"),
    ("/v1/lifecycle/signal", "it is for the hooks of a session, and no other may say it"),
    ("/v1/attention/{id}/{number}", "each answer to the question of the run gives the next one another number"),
];

/// What is not asked of answers, and why.
const UNCHECKED: [(&str, &str); 1] =
    [("positive_data_acceptance", "a text of the right type can still be no branch, no path, no name that is known")];

/// Runs the tester with the arguments of the command line.
pub fn main(arguments: &[&str]) -> ExitCode {
    let Some((cases, seed)) = asked(arguments) else {
        eprintln!("cargo xtask api-fuzz [--cases N] [--seed N]");
        return ExitCode::from(2);
    };
    match fuzz(cases, seed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("api-fuzz: {why}");
            ExitCode::FAILURE
        }
    }
}

/// How many cases, and which: chosen by a seed, or by chance.
fn asked<'a>(mut arguments: &[&'a str]) -> Option<(u32, Option<&'a str>)> {
    let (mut cases, mut seed) = (CASES, None);
    while let [name, value, rest @ ..] = arguments {
        match *name {
            "--cases" => cases = value.parse().ok().filter(|count| *count > 0)?,
            "--seed" => seed = Some(*value),
            _ => return None,
        }
        arguments = rest;
    }
    arguments.is_empty().then_some((cases, seed))
}

fn fuzz(cases: u32, seed: Option<&str>) -> Result<(), String> {
    let program = built()?;
    let tester = tester()?;
    let home = Home::new(program)?;
    let mut served = Served::start(&home)?;
    let secret = text(&home.json(&["token", "create", "--scope", "person", "--name", NAME])?["token"]["secret"])?;
    furnish(&home, &served, &secret)?;
    let mut command = Command::new(tester);
    command.current_dir(&home.folder).args(["run", DOCUMENT, "--url", &served.url]);
    command.args(["--header", &format!("Authorization: Bearer {secret}"), "--max-examples", &cases.to_string()]);
    // Two workers parse their own sources at once, and Python 3.11 cannot: "AST constructor recursion depth mismatch".
    command.args(["--workers", "1", "--no-color"]);
    command.args(seed.into_iter().flat_map(|seed| ["--seed", seed]));
    for (path, _) in EXCLUDED {
        command.args(["--exclude-path", path]);
    }
    for (check, _) in UNCHECKED {
        command.args(["--exclude-checks", check]);
    }
    let passed = command.status().map_err(|error| format!("the tester cannot be started: {error}"))?.success();
    let tokens = home.json(&["token", "list"])?;
    let listed = tokens["tokens"].as_array().into_iter().flatten();
    if !listed.filter(|token| token["name"] == NAME).any(|token| token["revoked_at"].is_null()) {
        return Err("the tester has revoked its own token; what it asked after that was in vain".into());
    }
    let lives = served.child.try_wait().map_err(|error| error.to_string())?.is_none();
    let log = home.log()?;
    let broke = broken(&log);
    match (passed, lives, broke.is_empty()) {
        (_, false, _) => Err(format!("the engine is gone; the end of its log:\n{}", last(&log))),
        (_, true, false) => Err(format!("the engine says:\n{}", broke.join("\n"))),
        (false, true, true) => Err("the tester found something; see above".into()),
        (true, true, true) => must_have_reached_all(&served, &secret),
    }
}

/// Every operation must have been answered from its inside at least once: an operation that only ever says that there is no
/// such thing, or that the request cannot be read, was not tested.
fn must_have_reached_all(served: &Served, secret: &str) -> Result<(), String> {
    let (counted, document) = (served.get(secret, "/metrics")?, document(served, secret)?);
    let mut unreached = Vec::new();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        let is_asked = |list: &[(&str, &str)]| !list.iter().any(|(excluded, _)| excluded == path);
        if !is_asked(&EXCLUDED) || !is_asked(&UNREACHED) {
            continue;
        }
        for method in methods.as_object().into_iter().flatten().map(|(method, _)| method.to_uppercase()) {
            if !counted.lines().any(|line| is_from_inside(line, &method, path)) {
                unreached.push(format!("{method} {path}"));
            }
        }
    }
    match unreached.is_empty() {
        true => Ok(()),
        false => Err(format!("the tester was never answered from inside of:\n  {}", unreached.join("\n  "))),
    }
}

/// Whether a line of the metrics counts an answer to this that came from its inside: it was done, or refused for what is
/// there.
fn is_from_inside(line: &str, method: &str, route: &str) -> bool {
    let labels = [format!("method=\"{method}\""), format!("route=\"{route}\"")];
    let inside = ["200", "201", "202", "204", "409", "422"];
    let is_one = |status: &str| line.contains(&format!("status=\"{status}\""));
    line.starts_with("sluice_http_requests")
        && labels.iter().all(|label| line.contains(label))
        && inside.iter().any(|status| is_one(status))
}

/// The lines by which an engine says that a request has ended in a panic.
fn broken(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("a request broke")).collect()
}

fn last(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

/// The tester in a Python environment of its own, which is made when it is not there.
fn tester() -> Result<PathBuf, String> {
    let folder = target().join("api-fuzz").join(RELEASE);
    let (program, done) = (folder.join("bin/schemathesis"), folder.join("done"));
    if done.exists() {
        return Ok(program);
    }
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).status();
    if !made.is_ok_and(|status| status.success()) {
        return Err("no Python environment can be made; on Debian, `apt-get install python3-venv` helps".into());
    }
    let wanted = format!("{TESTER}=={RELEASE}");
    eprintln!("installing {wanted} from PyPI");
    let pip = Command::new(folder.join("bin/pip")).args(["install", "--quiet", &wanted]).status();
    if !pip.is_ok_and(|status| status.success()) {
        return Err(format!("{wanted} cannot be installed: PyPI must be reachable the first time"));
    }
    std::fs::write(done, "").map_err(|error| error.to_string())?;
    Ok(program)
}

/// Some of everything, and its ids for the tester: nobody finds one by chance.
fn furnish(home: &Home, served: &Served, secret: &str) -> Result<(), String> {
    let task = home.json(&["task", "create", "brew", "Brew it", "--no-spawn"])?;
    let process = home.json(&["process", "start", "by-hand"])?;
    let workflow = home.json(&["start", "gated", "--detach"])?;
    // One to be deleted, and one whose question is answered.
    let doomed = text(&home.json(&["start", "gated", "--detach"])?["run"]["id"])?;
    let asked = text(&home.json(&["start", "gated", "--detach"])?["run"]["id"])?;
    let post = |path: &str, body: &str| served.post(secret, path, body);
    post("/v1/crabs/register", r#"{"crab_id":"clawde","colony_id":"local","name":"Clawde","role":"any"}"#)?;
    let colony = text(&post("/v1/colonies", r#"{"name":"reef"}"#)?["colony_id"])?;
    let mission = format!(r#"{{"colony_id":"{colony}","prompt":"Do it","workflow":"two-steps"}}"#);
    let mission = text(&post("/v1/missions", &mission)?["mission_id"])?;
    // A crab that has begun with a step of it.
    post(
        "/v1/crabs/register",
        &json!({ "crab_id": "piper", "colony_id": colony, "name": "Piper", "role": "any" }).to_string(),
    )?;
    post("/v1/scheduler/tick", "")?;
    let begun = json!({ "mission_id": mission, "task_id": format!("{mission}.one"), "crab_id": "piper" });
    let attempt = text(&post("/v1/runs/start", &begun.to_string())?["run_id"])?;
    let (task, run) = (text(&task["task"]["id"])?, text(&workflow["run"]["id"])?);
    let process = text(&process["process"]["id"])?;
    // The tester learns ids from answers: without a token to end it finds its own, and is shut out.
    let spare = text(&home.json(&["token", "create", "--scope", "read", "--name", "to be ended"])?["token"]["id"])?;
    let known = [
        ("/v1/missions/", "path.id", &mission),
        ("/v1/tasks", "query.mission_id", &mission),
        (
            "/v1/lifecycle/tasks/\\\\{id\\\\}/(history|file|attach|nudge|request-changes|changes|screen|usage)",
            "path.id",
            &task,
        ),
        ("/v1/recipe/runs/\\\\{id\\\\}/delete", "path.id", &doomed),
        ("/v1/attention/\\\\{id\\\\}", "path.id", &asked),
        ("/v1/recipe/runs/\\\\{id\\\\}", "path.id", &run),
        ("/workflows/", "path.id", &run),
        ("/v1/processes/", "path.id", &process),
        ("/v1/tokens/", "path.id", &spare),
    ];
    let table = |(path, name, id): (&str, &str, &String)| {
        format!("[[operations]]\ninclude-path-regex = \"^{path}\"\nparameters = {{ \"{name}\" = \"{id}\" }}\n\n")
    };
    let step = format!(
        "[[operations]]\ninclude-path-regex = \"^/v1/processes/.*/steps\"\nparameters = {{ \"path.id\" = \"{process}\", \
         \"path.step\" = \"one\", \"path.verb\" = \"start\" }}\n\n"
    );
    home.write("schemathesis.toml", &(step + &known.map(table).concat() + GONE))?;
    // What a body names is found by chance as little.
    let examples = [
        ("/v1/workspaces/init", json!({ "project": "coffee" })),
        ("/v1/inbox", json!({ "id": format!("{run}/1"), "option": "retry" })),
        ("/v1/attention/{id}", json!({ "option": "retry" })),
        ("/v1/runs/update", json!({ "run_id": attempt, "progress_message": "half of it" })),
        ("/v1/runs/merge-turn", json!({ "run_id": attempt })),
        ("/v1/runs/complete", json!({ "run_id": attempt, "status": "completed", "summary": "done" })),
    ];
    let mut document = document(served, secret)?;
    for (path, example) in examples {
        document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"] = example;
    }
    home.write(DOCUMENT, &document.to_string())
}

/// What the engine says of its API.
fn document(served: &Served, secret: &str) -> Result<Value, String> {
    let said = served.get(secret, "/v1/openapi.json")?;
    serde_json::from_str(&said).map_err(|error| error.to_string())
}

/// A process is a run too: what the routes of runs have cancelled is gone for those of processes, and rightly so.
const GONE: &str = "\
[[operations]]
include-path-regex = \"^/v1/processes\"
checks.ensure_resource_availability.enabled = false
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_broke_would_be_seen() {
        // The words by which the engine says so.
        let engine = include_str!("../../crates/sluice-server/src/app.rs");
        assert!(engine.contains("\"a request broke: {why}\""), "the engine says it in other words");
        assert_eq!(broken("2026 listens at x\n2026 a request broke: task 7 panicked\n").len(), 1);
        assert_eq!(broken("2026 listens at x\n"), Vec::<&str>::new());
    }

    #[test]
    fn only_answers_from_the_inside_of_an_operation_count() {
        let line = |status: &str| {
            format!("sluice_http_requests_total{{method=\"POST\",route=\"/v1/inbox\",status=\"{status}\"}} 3")
        };
        assert!(is_from_inside(&line("200"), "POST", "/v1/inbox") && is_from_inside(&line("422"), "POST", "/v1/inbox"));
        for (status, method, route) in
            [("404", "POST", "/v1/inbox"), ("200", "GET", "/v1/inbox"), ("200", "POST", "/v1")]
        {
            assert!(!is_from_inside(&line(status), method, route), "{status} {method} {route}");
        }
    }
}
