//! What no agent should do, done on purpose, so that what stands against it can be shown.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Signal, getpid, kill_process};

use super::script::Misbehaviour;
use super::task::TaskText;
use super::{DemoAgent, DemoStop};

impl DemoAgent {
    pub(super) fn misbehave(&mut self, how: &Misbehaviour, index: usize) -> Result<(), DemoStop> {
        match how {
            Misbehaviour::Crash(signal) => crash(signal),
            Misbehaviour::Hang => loop {
                std::thread::park();
            },
            Misbehaviour::IgnoreTerm => self.start_anew_without_ears(index),
            Misbehaviour::LeaveDaemon(path) => self.leave_daemon(path.as_deref()),
            Misbehaviour::TalkForever => loop {
                self.print("and another thing\n")?;
            },
            Misbehaviour::Print { megabytes } => {
                let block = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n".repeat(1 << 14);
                (0..*megabytes).try_for_each(|_| self.print(&block))
            }
            Misbehaviour::Forge { key, value } => {
                let missing = || DemoStop::Error("there is no TASK.md to forge".to_owned());
                let mut task = TaskText::read(&self.folder)?.ok_or_else(missing)?;
                task.forge(key, value);
                task.write(&self.folder)?;
                self.say(&format!("forged {key}"))
            }
            Misbehaviour::TouchMain(what) => self.touch_main(what),
        }
    }

    /// A signal can only be ignored from before the program starts: a shell ignores it and becomes this agent again.
    fn start_anew_without_ears(&self, index: usize) -> Result<(), DemoStop> {
        let program = std::env::current_exe().map_err(|error| DemoStop::error("my own program", error))?;
        let notes = self.notes_folder().unwrap_or_else(std::env::temp_dir);
        let prompt = notes.join(format!("prompt-{}.md", std::process::id()));
        std::fs::create_dir_all(&notes)
            .and_then(|()| std::fs::write(&prompt, &self.prompt.text))
            .map_err(|error| DemoStop::error("my notes", error))?;
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM INT HUP; exec \"$0\" \"$@\""]).arg(program);
        command.args(std::env::args_os().skip(1)).arg("--prompt-file").arg(prompt);
        command.args(["--resume-at".to_owned(), (index + 1).to_string()]);
        command.args(["--attempt".to_owned(), self.attempt.to_string()]);
        command.env_clear().envs(&self.environment).current_dir(&self.folder);
        Err(DemoStop::error("sh", command.exec()))
    }

    /// A process in a session of its own, which outlives the agent until the engine ends it.
    fn leave_daemon(&self, path: Option<&str>) -> Result<(), DemoStop> {
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", "echo $$; exec tail -f /dev/null </dev/null >/dev/null 2>&1"]);
        command.env_clear().envs(&self.environment).current_dir(&self.folder);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| DemoStop::error("setsid", error))?;
        let mut number = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut number).map_err(|error| DemoStop::error("the daemon", error))?;
        }
        if let Some(path) = path {
            std::fs::write(self.folder.join(path), &number).map_err(|error| DemoStop::error(path, error))?;
        }
        self.say(&format!("left a daemon, process {}", number.trim()))
    }

    fn touch_main(&self, what: &str) -> Result<(), DemoStop> {
        let common = self.ask_git(&["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        let main = common.map(PathBuf::from).and_then(|folder| folder.parent().map(Path::to_owned));
        let main = main.ok_or_else(|| DemoStop::Error("there is no main checkout".to_owned()))?;
        let name = "touched-by-demo.md";
        let at = |words: &[&str]| {
            let words = ["-C", main.to_str().unwrap_or(".")].into_iter().chain(words.iter().copied());
            self.git(&words.map(str::to_owned).collect::<Vec<_>>()).map(drop)
        };
        let who = ["-c", "user.name=Demo Agent", "-c", "user.email=demo@example.invalid"];
        if what != "head" {
            std::fs::write(main.join(name), "by mistake\n")
                .map_err(|error| DemoStop::error("the main checkout", error))?;
        }
        match what {
            "index" => at(&["add", "--", name])?,
            "head" => at(&[&who[..], &["commit", "--quiet", "--allow-empty", "-m", "by mistake"]].concat())?,
            "stash" => at(&[&who[..], &["stash", "push", "--quiet", "--include-untracked"]].concat())?,
            _ => {}
        }
        self.say(&format!("touched the main checkout: {what}"))
    }
}

fn crash(signal: &str) -> Result<(), DemoStop> {
    let signal = match signal.trim_start_matches("SIG") {
        "KILL" => Signal::KILL,
        "TERM" => Signal::TERM,
        "SEGV" => Signal::SEGV,
        "ABRT" => Signal::ABORT,
        other => return Err(DemoStop::Error(format!("I do not know the signal {other}"))),
    };
    // Rust's runtime catches the first SEGV to see whether a stack has overflowed; the next one counts.
    loop {
        kill_process(getpid(), signal).map_err(|error| DemoStop::error("crash", error))?;
    }
}
