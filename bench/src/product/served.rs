//! A fresh home whose engine serves the network, as a user starts it. Everything in it ends and goes with this.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::PATIENCE;
use super::repository::{Repository, command_in};
use crate::line::{Followed, WaitingLine, field};
use crate::machine::{resident, run};

/// So that the driver is never refused for asking too often; nothing else is unusual.
const CONFIG: &str = "[serve]\nrequests_per_second = 1000000\nburst = 1000000\n";

/// How a home is made that is not as usual.
#[derive(Default)]
pub struct Wished<'a> {
    /// More lines of `config.toml`.
    pub config: String,
    /// The folder in which the engine starts; usually the home's own.
    pub start_in: Option<&'a Path>,
    /// A folder with programs that stand before the system's.
    pub programs: Option<&'a Path>,
}

/// A home with an engine at work.
pub struct ServedHome {
    program: PathBuf,
    folder: TempDir,
    child: Child,
    address: String,
    token: String,
}

impl ServedHome {
    /// Makes a home on this disk and serves it.
    pub fn start(program: &Path, disk: &Path, wished: &Wished<'_>) -> ServedHome {
        let folder = tempfile::tempdir_in(disk).unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("config.toml"), format!("{CONFIG}{}", wished.config)).unwrap();
        let mut command = sluice(program, folder.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(wished.start_in.unwrap_or(folder.path()));
        if let Some(programs) = wished.programs {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(folders).unwrap());
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.trim().strip_prefix("listening on http://").expect("`sluice serve` does not listen").to_owned();
        let mut served = ServedHome { program: program.to_owned(), folder, child, address, token: String::new() };
        let token = served.done(&["token", "create", "--scope", "person", "--json"]);
        served.token = field(&token, "secret").expect("no token");
        served
    }

    /// `sluice` with this home.
    pub fn sluice(&self) -> Command {
        sluice(&self.program, self.folder.path())
    }

    /// Runs `sluice`, which must do what it is asked. Gives what it prints.
    pub fn done(&self, arguments: &[&str]) -> String {
        run(self.sluice().args(arguments)).unwrap()
    }

    /// Whether `sluice check` accepts a definition of this text.
    pub fn accepts(&self, text: &str) -> bool {
        let file = self.folder.path().join("asked.yml");
        std::fs::write(&file, text).unwrap();
        run(self.sluice().arg("check").arg(&file)).is_ok()
    }

    /// Adds a repository as a project.
    pub fn add(&self, repository: &Repository, more: &[&str]) {
        let mut command = self.sluice();
        command.args(["project", "add", "--name", &repository.name]).args(more).current_dir(repository.folder());
        run(&mut command).unwrap();
    }

    /// A connection of one's own to the engine.
    pub fn line(&self) -> WaitingLine {
        WaitingLine::open(&self.address, &self.token).unwrap()
    }

    /// Hears of every workflow that completes from now on.
    pub fn completed(&self) -> Followed {
        Followed::open(&self.address, &self.token, "workflow.completed").unwrap()
    }

    /// Posts so many starts over so many connections, and waits until all have completed.
    pub fn runs(&self, start: &str, count: usize, connections: usize) -> Duration {
        let completed = self.completed();
        let mut lines: Vec<WaitingLine> = (0..connections).map(|_| self.line()).collect();
        let began = Instant::now();
        std::thread::scope(|scope| {
            for (first, line) in lines.iter_mut().enumerate() {
                scope.spawn(move || {
                    for _ in (first..count).step_by(connections) {
                        line.ask("POST", "/workflows", start).unwrap();
                    }
                });
            }
        });
        completed.wait(count, PATIENCE);
        began.elapsed()
    }

    /// Resident memory of the engine, in MiB.
    pub fn resident(&self) -> f64 {
        resident(self.child.id())
    }

    /// The home itself.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }
}

impl Drop for ServedHome {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Sessions outlive the engine.
        let socket = self.home().join("tmux.sock");
        if socket.exists() {
            let _ = run(Command::new("tmux").arg("-S").arg(socket).arg("kill-server"));
        }
    }
}

fn sluice(program: &Path, folder: &Path) -> Command {
    let mut command = command_in(folder, program);
    command.env("SLUICE_HOME", folder.join("home"));
    command
}
