//! A home that is made for a check of the API, served, with some of everything in it. It goes with the check.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::root;

/// The program that is tested.
pub(crate) fn built() -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo).current_dir(root()).args(["build", "--quiet", "--package", "sluice"]).status();
    match built {
        Ok(status) if status.success() => Ok(target().join("debug/sluice")),
        _ => Err("`sluice` cannot be built".into()),
    }
}

pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A home that is made for this and goes with it.
pub(crate) struct Home {
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
    _kept: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new(program: PathBuf) -> Result<Home, String> {
        let wrong = |error: std::io::Error| error.to_string();
        let kept = tempfile::Builder::new().prefix("sluice-").tempdir().map_err(wrong)?;
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

    pub(crate) fn place(&self) -> PathBuf {
        self.folder.join("home")
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> Result<(), String> {
        let path = self.folder.join(path);
        let folder = path.parent().unwrap_or(Path::new("/"));
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.folder.join("coffee")).stdin(Stdio::null());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("SLUICE_HOME", self.place()).env("HOME", self.folder.join("user"));
        command.env("LANG", "C.UTF-8").env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    pub(crate) fn sluice(&self, arguments: &[&str]) -> Result<String, String> {
        run(self.command(&self.program).args(arguments))
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Result<Value, String> {
        let said = self.sluice(&[arguments, &["--json"]].concat())?;
        serde_json::from_str(&said).map_err(|error| format!("{arguments:?}: {error} in {said}"))
    }

    /// What the engine has written down. It must say that it listens: otherwise it is not the log of this engine.
    pub(crate) fn log(&self) -> Result<String, String> {
        let path = self.place().join("logs/engine.log");
        let log = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if log.contains("listens at") { Ok(log) } else { Err(format!("{} is no log of an engine", path.display())) }
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
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Served {
    pub(crate) fn start(home: &Home) -> Result<Served, String> {
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

    /// Asks it for something to be done.
    pub(crate) fn post(&self, secret: &str, path: &str, body: &str) -> Result<Value, String> {
        let (header, address) = (format!("Authorization: Bearer {secret}"), format!("{}{path}", self.url));
        let said = run(Command::new("curl").args(["-fsS", "-H", &header, "-d", body, &address]))?;
        serde_json::from_str(&said).map_err(|error| format!("{path}: {error} in {said}"))
    }

    /// Asks it for what it says.
    pub(crate) fn get(&self, secret: &str, path: &str) -> Result<String, String> {
        let (header, address) = (format!("Authorization: Bearer {secret}"), format!("{}{path}", self.url));
        run(Command::new("curl").args(["-fsS", "-H", &header, &address]))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("{value} is no text"))
}

/// Runs a command to its end, and gives what it says.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let ran = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    match ran.status.success() {
        true => Ok(said),
        false => Err(format!("{command:?}: {said}{}", String::from_utf8_lossy(&ran.stderr))),
    }
}

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
