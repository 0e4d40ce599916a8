//! A home for one test: a scratch repository, an engine of its own, a tmux server of its own. Whatever was started in it
//! is ended when it is dropped, also when the test fails.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::process;

/// Longer than anything here takes. It is never waited for, except by a test that fails.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// What a command answered.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Its answer as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in: {self:?}"))
    }

    /// The same, if it did what it was asked.
    #[track_caller]
    pub(crate) fn done(self) -> Ran {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// `exit-code error-code` of one that was asked with `--json` and said no.
    pub(crate) fn refusal(&self) -> String {
        format!("{} {}", self.code, self.json()["error"]["code"].as_str().unwrap_or("?"))
    }
}

/// A temporary folder with everything a test needs in it.
pub(crate) struct Home {
    root: PathBuf,
    /// The `sluice` that is driven.
    binary: PathBuf,
    _folder: tempfile::TempDir,
}

impl Home {
    /// A home without a project, and a repository `coffee` with one commit.
    pub(crate) fn empty() -> Home {
        let folder = tempfile::Builder::new().prefix("e2e-").tempdir().unwrap();
        let home = Home::in_folder(folder, env!("CARGO_BIN_EXE_sluice").into());
        home.furnish();
        home
    }

    /// A home in a folder that may have everything in it already, driven by a `sluice` that may be an earlier one.
    pub(crate) fn in_folder(folder: tempfile::TempDir, binary: PathBuf) -> Home {
        let root = folder.path().canonicalize().unwrap();
        Home { root, binary, _folder: folder }
    }

    /// Makes the repository.
    pub(crate) fn furnish(&self) {
        for name in ["user", "coffee"] {
            std::fs::create_dir(self.path(name)).unwrap();
        }
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        self.git(&["config", "user.name", "Somebody"]);
        self.git(&["config", "user.email", "somebody@example.invalid"]);
        std::fs::write(self.repository().join("README.md"), "# Coffee\n").unwrap();
        self.git(&["add", "README.md"]);
        self.git(&["commit", "--quiet", "-m", "begin"]);
    }

    /// The same with the repository as the project `coffee`.
    pub(crate) fn new() -> Home {
        let home = Home::empty();
        home.sluice(&["project", "add"]).done();
        home
    }

    /// Something in the test's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// `$SLUICE_HOME`.
    pub(crate) fn place(&self) -> PathBuf {
        self.path("home")
    }

    /// The main checkout.
    pub(crate) fn repository(&self) -> PathBuf {
        self.path("coffee")
    }

    /// A program in the environment that all commands of this test get, in the main checkout.
    pub(crate) fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.repository()).stdin(Stdio::null());
        // What a test puts there stands before the system's, for whichever command starts the engine.
        let path = std::env::var_os("PATH").unwrap();
        let folders = std::iter::once(self.path("programs")).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).unwrap());
        command.env("SLUICE_HOME", self.place()).env("HOME", self.path("user"));
        command.env("LANG", "C.UTF-8").env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    /// `sluice` with these arguments.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(&self.binary);
        command.args(arguments);
        command
    }

    /// Runs `sluice` in the main checkout.
    pub(crate) fn sluice(&self, arguments: &[&str]) -> Ran {
        run(&mut self.command(arguments))
    }

    /// Runs it with `--json`; it must do what it is asked.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        self.sluice(&[arguments, &["--json"]].concat()).done().json()
    }

    /// Runs it with `--json`; it must say no. Gives `exit-code error-code`.
    #[track_caller]
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let ran = self.sluice(&[arguments, &["--json"]].concat());
        assert_ne!(ran.code, 0, "{ran:?}");
        ran.refusal()
    }

    /// Runs git in the main checkout, and gives what it says.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut command = self.program("git");
        run(command.args(arguments)).done().stdout.trim().to_owned()
    }

    /// Commits everything in the main checkout, as a person does.
    pub(crate) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "by a person"]);
    }

    /// Creates a task for the scripted agent on a branch; `more` are further arguments. Gives its id.
    #[track_caller]
    pub(crate) fn create(&self, branch: &str, script: &str, more: &[&str]) -> String {
        let context = format!("## Context\n\n```demo\n{}\n```\n", script.trim());
        let summary = format!("Do {branch}");
        let first = ["task", "create", branch, &summary, "--harness", "demo", "--context", &context];
        let answer = self.json(&[&first, more].concat());
        answer["task"]["id"].as_str().unwrap().to_owned()
    }

    /// A task as `task show` has it.
    #[track_caller]
    pub(crate) fn task(&self, id: &str) -> Value {
        self.json(&["task", "show", id])["task"].take()
    }

    /// Waits until a task looks like this, by looking at it after everything that happens.
    #[track_caller]
    pub(crate) fn until(&self, id: &str, what: &str, mut is_so: impl FnMut(&Value) -> bool) -> Value {
        let give_up = Instant::now() + LONG;
        'following: loop {
            let mut happening = self.follow(&[]);
            loop {
                let task = self.task(id);
                if is_so(&task) {
                    return task;
                }
                match happening.news(give_up) {
                    News::Something => {}
                    // The engine ended; the next command starts another.
                    News::Ended => continue 'following,
                    News::Nothing => {
                        let history = self.sluice(&["task", "history", id]).stdout;
                        panic!("{id} is not {what}: {task:#}\n{history}");
                    }
                }
            }
        }
    }

    /// Waits until a task has this status and everything that follows from it has been done.
    #[track_caller]
    pub(crate) fn until_status(&self, id: &str, status: &str) -> Value {
        self.until(id, status, |task| task["status"] == status && self.is_settled(id));
        let task = self.task(id);
        assert_eq!(task["status"], status, "it moved on");
        task
    }

    /// Whether everything that the moves of a task set going has been done.
    fn is_settled(&self, id: &str) -> bool {
        let events = self.history(id);
        let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
        count("status.changed") + count("task.began") + count("agent.respawning") == count("turn.settled")
    }

    /// What happened to a task.
    #[track_caller]
    pub(crate) fn history(&self, id: &str) -> Vec<Value> {
        self.json(&["task", "history", id])["events"].as_array().unwrap().clone()
    }

    /// Waits for an event of a task: the `count`th of a type.
    #[track_caller]
    pub(crate) fn until_event(&self, id: &str, kind: &str, count: usize) -> Value {
        let give_up = Instant::now() + LONG;
        let mut happening = self.follow(&["--correlation", id, "--type", kind]);
        let mut seen = 0;
        while let Some(event) = happening.next(give_up) {
            seen += 1;
            if seen == count {
                return event;
            }
        }
        panic!("{kind} of {id} came {seen} times:\n{}", self.sluice(&["task", "history", id]).stdout);
    }

    /// `sluice events --follow --all` with these filters.
    pub(crate) fn follow(&self, filters: &[&str]) -> Happening {
        let mut command = self.command(&["events", "--follow", "--all", "--json"]);
        Happening::of(command.args(filters))
    }

    /// A pipe that the scripted agent can tell something or wait at.
    pub(crate) fn pipe(&self, name: &str) -> Pipe {
        let path = self.path(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Pipe(path)
    }

    /// The engine's process.
    pub(crate) fn engine_pid(&self) -> i32 {
        let lock = std::fs::read_to_string(self.place().join("engine.lock")).unwrap();
        lock.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Kills the engine without warning, and waits until it is dead.
    pub(crate) fn kill_engine(&self) {
        process::kill(self.engine_pid());
    }

    /// The store, for one who leaves its log to the engine: SQLite's usual last connection takes the log into the file, and
    /// a store in use without its log is refused.
    pub(crate) fn store(&self) -> rusqlite::Connection {
        let store = rusqlite::Connection::open(self.place().join("store.db")).unwrap();
        store.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        store
    }

    /// TASK.md in a task's worktree.
    pub(crate) fn worktree_file(&self, id: &str) -> PathBuf {
        Path::new(self.task(id)["workspace"].as_str().unwrap()).join("TASK.md")
    }

    /// TASK.md in the home.
    pub(crate) fn home_file(&self, id: &str) -> PathBuf {
        self.place().join("tasks/coffee").join(id).join("TASK.md")
    }

    /// The windows that tmux has, `session:window`, sorted.
    pub(crate) fn windows(&self) -> Vec<String> {
        let socket = self.place().join("tmux.sock");
        let mut command = self.program("tmux");
        command.arg("-S").arg(socket).args(["list-windows", "-a", "-F", "#{session_name}:#{window_name}"]);
        let ran = run(&mut command);
        let mut windows: Vec<String> = ran.stdout.lines().map(str::to_owned).collect();
        windows.sort();
        windows
    }

    /// For whoever wants to know why a test failed.
    fn tell_what_agents_said(&self) {
        for session in std::fs::read_dir(self.place().join("sessions/live")).into_iter().flatten().flatten() {
            let said = std::fs::read(session.path().join("output.log")).unwrap_or_default();
            let last = &said[said.len().saturating_sub(2000)..];
            eprintln!("--- {}\n{}", session.path().display(), String::from_utf8_lossy(last));
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell_what_agents_said();
        }
        let socket = self.place().join("tmux.sock");
        if socket.exists() {
            let _ = self.program("tmux").arg("-S").arg(&socket).arg("kill-server").stderr(Stdio::null()).status();
        }
        process::kill_all_of(&self.root);
    }
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Stands among the events for an engine that is gone.
const AWAY: &str = r#"{"error":"engine away"}"#;

/// Events as they come.
pub(crate) struct Happening {
    child: Child,
    lines: Receiver<String>,
}

/// What came of waiting for events.
enum News {
    Something,
    Nothing,
    Ended,
}

impl Happening {
    /// What this command prints, a line for each event.
    pub(crate) fn of(command: &mut Command) -> Happening {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        let of_errors = sender.clone();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        // The command waits for the next engine; the test has to know that this one is gone.
        std::thread::spawn(move || {
            errors.lines().map_while(Result::ok).for_each(|line| match line.starts_with("engine away") {
                true => drop(of_errors.send(AWAY.to_owned())),
                false => eprintln!("{line}"),
            });
        });
        Happening { child, lines }
    }

    /// The next event; `None` when it does not come in time, or the engine ended.
    pub(crate) fn next(&mut self, give_up: Instant) -> Option<Value> {
        let line = self.lines.recv_timeout(give_up.saturating_duration_since(Instant::now())).ok()?;
        let event: Value = serde_json::from_str(&line).unwrap();
        // The engine's end is told as an error.
        event["error"].is_null().then_some(event)
    }

    /// Waits for any number of events.
    fn news(&mut self, give_up: Instant) -> News {
        match self.lines.recv_timeout(give_up.saturating_duration_since(Instant::now())) {
            Ok(line) => match std::iter::once(line).chain(self.lines.try_iter()).any(|line| line == AWAY) {
                true => News::Ended,
                false => News::Something,
            },
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => News::Nothing,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => News::Ended,
        }
    }
}

impl Drop for Happening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A named pipe.
pub(crate) struct Pipe(PathBuf);

impl Pipe {
    /// Its path, for a script.
    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// Waits until the agent tells something here.
    #[track_caller]
    pub(crate) fn hear(&self) {
        self.in_time(|path| {
            std::fs::File::open(path).unwrap().read_to_end(&mut Vec::new()).unwrap();
        });
    }

    /// Waits until something is told here, and gives it.
    #[track_caller]
    pub(crate) fn heard(&self) -> String {
        let (sender, receiver) = channel();
        self.in_time(move |path| drop(sender.send(std::fs::read_to_string(path).unwrap())));
        receiver.recv().unwrap()
    }

    /// Lets the agent go on that waits here, or will.
    #[track_caller]
    pub(crate) fn let_go(&self) {
        self.in_time(|path| drop(std::fs::OpenOptions::new().write(true).open(path).unwrap()));
    }

    #[track_caller]
    fn in_time(&self, what: impl FnOnce(PathBuf) + Send + 'static) {
        let (sender, receiver) = channel();
        let path = self.0.clone();
        std::thread::spawn(move || {
            what(path);
            sender.send(())
        });
        receiver.recv_timeout(LONG).unwrap_or_else(|_| panic!("nobody came to {}", self.0.display()));
    }
}
