//! `cargo xtask api-fuzz`: a property-based tester (schemathesis, from PyPI) asks a served home everything that its
//! OpenAPI document allows, and much that it does not. Any fault, any answer outside its schema fails it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use serde_json::Value;

use crate::root;

/// The tester, and which of its releases.
const TESTER: &str = "schemathesis";
const RELEASE: &str = "4.32.5";
/// What the tester's token is called.
const NAME: &str = "the tester's own";
/// Cases for each operation when nobody says how many.
const CASES: u32 = 100;

/// What is not asked for, and why.
const EXCLUDED: [(&str, &str); 7] = [
    ("/v1/stop", "it ends the engine that is tested"),
    ("/v1/backup", "it writes a file wherever it is told to"),
    ("/v1/ws/crab/{id}", "it is a WebSocket, not a question with an answer"),
    ("/v1/ws/events", "it is a WebSocket, not a question with an answer"),
    ("/events", "it does not end"),
    ("/v1/events", "with `follow` it does not end"),
    ("/v1/recipe/runs/{id}/events", "with `follow` it does not end"),
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
    home.furnish(&served.url, &secret)?;
    let mut command = Command::new(tester);
    command.current_dir(&home.folder).args(["run", &format!("{}/v1/openapi.json", served.url)]);
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
    let log = std::fs::read_to_string(home.place().join("engine.log")).unwrap_or_default();
    let broke: Vec<&str> = log.lines().filter(|line| line.contains("a request broke")).collect();
    match (passed, lives, broke.is_empty()) {
        (_, false, _) => Err(format!("the engine is gone; the end of its log:\n{}", last(&log))),
        (_, true, false) => Err(format!("the engine says:\n{}", broke.join("\n"))),
        (false, true, true) => Err("the tester found something; see above".into()),
        (true, true, true) => Ok(()),
    }
}

fn last(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

/// The program that is tested.
fn built() -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo).current_dir(root()).args(["build", "--quiet", "--package", "sluice"]).status();
    match built {
        Ok(status) if status.success() => Ok(target().join("debug/sluice")),
        _ => Err("`sluice` cannot be built".into()),
    }
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
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

/// A home that is made for this and goes with it.
struct Home {
    program: PathBuf,
    folder: PathBuf,
    _kept: tempfile::TempDir,
}

impl Home {
    fn new(program: PathBuf) -> Result<Home, String> {
        let wrong = |error: std::io::Error| error.to_string();
        let kept = tempfile::Builder::new().prefix("api-fuzz-").tempdir().map_err(wrong)?;
        let folder = kept.path().canonicalize().map_err(wrong)?;
        let home = Home { program, folder, _kept: kept };
        home.write("home/config.toml", "[defaults]\nharness = \"demo\"\n")?;
        home.write("prompts/workflows/two-steps.toml", MISSION)?;
        home.write("prompts/do.md", "{{mission_prompt}}\n")?;
        home.write("coffee/.coven/grimoires/gated.yml", GRIMOIRE)?;
        home.write("coffee/.work/templates/by-hand.toml", TEMPLATE)?;
        home.write("user/.gitconfig", "[user]\nname = Somebody\nemail = somebody@example.invalid\n")?;
        for arguments in [&["init", "--quiet", "--initial-branch=main"][..], &["add", "."], &["commit", "-qm", "begin"]]
        {
            run(home.command("git").args(arguments))?;
        }
        home.sluice(&["project", "add"])?;
        Ok(home)
    }

    fn place(&self) -> PathBuf {
        self.folder.join("home")
    }

    fn write(&self, path: &str, text: &str) -> Result<(), String> {
        let path = self.folder.join(path);
        let folder = path.parent().unwrap_or(Path::new("/"));
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.folder.join("coffee")).stdin(Stdio::null());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("SLUICE_HOME", self.place()).env("HOME", self.folder.join("user"));
        command.env("LANG", "C.UTF-8").env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    fn sluice(&self, arguments: &[&str]) -> Result<String, String> {
        run(self.command(&self.program).args(arguments))
    }

    fn json(&self, arguments: &[&str]) -> Result<Value, String> {
        let said = self.sluice(&[arguments, &["--json"]].concat())?;
        serde_json::from_str(&said).map_err(|error| format!("{arguments:?}: {error} in {said}"))
    }

    /// Some of everything, and its ids for the tester: nobody finds one by chance.
    fn furnish(&self, url: &str, secret: &str) -> Result<(), String> {
        let task = self.json(&["task", "create", "brew", "Brew it", "--no-spawn"])?;
        let process = self.json(&["process", "start", "by-hand"])?;
        let workflow = self.json(&["start", "gated", "--detach"])?;
        let post = |path: &str, body: &str| {
            let (header, address) = (format!("Authorization: Bearer {secret}"), format!("{url}{path}"));
            let said = run(Command::new("curl").args(["-fsS", "-H", &header, "-d", body, &address]))?;
            serde_json::from_str::<Value>(&said).map_err(|error| format!("{path}: {error} in {said}"))
        };
        post("/v1/crabs/register", r#"{"crab_id":"clawde","colony_id":"local","name":"Clawde","role":"any"}"#)?;
        let colony = text(&post("/v1/colonies", r#"{"name":"reef"}"#)?["colony_id"])?;
        let mission = format!(r#"{{"colony_id":"{colony}","prompt":"Do it","workflow":"two-steps"}}"#);
        let mission = text(&post("/v1/missions", &mission)?["mission_id"])?;
        let (task, run) = (text(&task["task"]["id"])?, text(&workflow["run"]["id"])?);
        let process = text(&process["process"]["id"])?;
        // The tester learns ids from answers: without a token to end it finds its own, and is shut out.
        let spare = text(&self.json(&["token", "create", "--scope", "read", "--name", "to be ended"])?["token"]["id"])?;
        let known = [
            ("/v1/missions/", "path.id", &mission),
            ("/v1/tasks", "query.mission_id", &mission),
            ("/v1/lifecycle/tasks/\\\\{id\\\\}/(history|file|attach|nudge|request-changes)", "path.id", &task),
            ("/v1/recipe/runs/\\\\{id\\\\}", "path.id", &run),
            ("/workflows/", "path.id", &run),
            ("/v1/processes/", "path.id", &process),
            ("/v1/tokens/", "path.id", &spare),
        ];
        let table = |(path, name, id): (&str, &str, &String)| {
            format!("[[operations]]\ninclude-path-regex = \"^{path}\"\nparameters = {{ \"{name}\" = \"{id}\" }}\n\n")
        };
        self.write("schemathesis.toml", &(known.map(table).concat() + GONE))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Whatever is left of the engine and of its sessions.
        let _ = self.sluice(&["stop"]);
        let socket = self.place().join("tmux.sock");
        let _ = run(self.command("tmux").arg("-S").arg(socket).arg("kill-server"));
    }
}

/// The engine that is asked.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(home: &Home) -> Result<Served, String> {
        let prompts = home.folder.join("prompts");
        let mut command = home.command(&home.program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--prompts"]).arg(prompts).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("`sluice serve` cannot be started: {error}"))?;
        let output = child.stdout.take();
        let mut served = Served { child, url: String::new() };
        let line = output.and_then(|output| BufReader::new(output).lines().next()).and_then(Result::ok);
        let line = line.ok_or("`sluice serve` says nothing")?;
        served.url = line.strip_prefix("listening on ").ok_or(format!("`sluice serve` says: {line}"))?.to_owned();
        Ok(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("{value} is no text"))
}

/// Runs a command to its end, and gives what it says.
fn run(command: &mut Command) -> Result<String, String> {
    let ran = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    match ran.status.success() {
        true => Ok(said),
        false => Err(format!("{command:?}: {said}{}", String::from_utf8_lossy(&ran.stderr))),
    }
}

/// A process is a run too: what the routes of runs have cancelled is gone for those of processes, and rightly so.
const GONE: &str = "\
[[operations]]
include-path-regex = \"^/v1/processes\"
checks.ensure_resource_availability.enabled = false
";

const MISSION: &str = r#"[workflow]
name = "two-steps"
description = "One, then another"
version = "1.0.0"

[[steps]]
id = "one"
role = "any"
prompt_file = "do.md"

[[steps]]
id = "two"
role = "any"
prompt_file = "do.md"
depends_on = ["one"]
"#;

const GRIMOIRE: &str = "\
name: gated
description: It waits for a person
trigger: manual
steps:
  - {name: gate, type: gate, command: 'false'}
  - {name: after, type: script, command: 'true'}
";

const TEMPLATE: &str = r#"template = "by-hand"
version = 1

[[steps]]
id = "one"
title = "Do one"
description = "Do one well."
"#;
