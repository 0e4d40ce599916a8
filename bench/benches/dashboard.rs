//! The dashboard over thousands of tasks, in a terminal of tmux: its first paint, how long a change takes to be seen, and what it takes
//! of the processor while nothing happens: `cargo xtask bench dashboard [--tasks N] [--program PATH]`. Beside them the floor: how
//! long the engine takes to answer the board, and how long a change takes to be in its log. It prints, and judges nothing.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should say where")]

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use sluice_bench::machine::{built_program, cpu, load, resident, rest, run};
use sluice_bench::product::repository::Repository;
use sluice_bench::product::served::{ServedHome, Wished};

const HELP: &str = "cargo xtask bench dashboard [--tasks N] [--program PATH]";

/// Tasks on the board, if no other number is asked for.
const TASKS: usize = 5_000;
/// Connections over which they are created.
const CONNECTIONS: usize = 8;
/// Starts of the dashboard, and changes that are waited for.
const TIMES: usize = 9;
/// How long the dashboard settles, and then idles.
const SETTLES: Duration = Duration::from_secs(8);
const IDLES: Duration = Duration::from_secs(20);
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    // `cargo test --benches` only wants to know that it runs.
    if std::env::args().any(|word| word == "--test") {
        return ExitCode::SUCCESS;
    }
    let Some((tasks, wanted)) = read(std::env::args().skip(1)) else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    let Some(program) = wanted.or_else(built_program) else {
        eprintln!("there is no release build of sluice; make one first: cargo build --release -p sluice");
        return ExitCode::FAILURE;
    };
    println!("before: {}", load());
    measure(&program, tasks);
    println!("after: {}", load());
    ExitCode::SUCCESS
}

fn read(mut words: impl Iterator<Item = String>) -> Option<(usize, Option<PathBuf>)> {
    let (mut tasks, mut program) = (TASKS, None);
    while let Some(word) = words.next() {
        match word.as_str() {
            // Cargo says this to every benchmark.
            "--bench" => {}
            "--tasks" => tasks = words.next()?.parse().ok().filter(|count| *count > 0)?,
            "--program" => program = Some(words.next()?.into()),
            _ => return None,
        }
    }
    Some((tasks, program))
}

fn measure(program: &Path, tasks: usize) {
    let disk = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let repository = Repository::new(disk, 10, &[]);
    let home = ServedHome::start(program, disk, &Wished::default());
    home.add(&repository, &[]);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for first in 0..CONNECTIONS {
            let (home, repository) = (&home, &repository);
            scope.spawn(move || {
                let mut line = home.line();
                for number in (first..tasks).step_by(CONNECTIONS) {
                    create(&mut line, repository, &format!("task-{number}"));
                }
            });
        }
    });
    println!("{tasks} tasks created in {:.1} s", began.elapsed().as_secs_f64());
    let mut line = home.line();
    let boards = (0..TIMES).map(|_| timed(|| line.ask("GET", "/v1/board", "").unwrap()));
    println!("{}", row("floor: the engine answers the board", boards.collect(), 1_000));

    let paints: Vec<Duration> = (0..TIMES)
        .map(|_| {
            let began = Instant::now();
            let terminal = Terminal::start(program, &home, disk);
            terminal.until("task-");
            began.elapsed()
        })
        .collect();
    println!("{}", row("first paint, from the start of tmux", paints, 1_000));

    let terminal = Terminal::start(program, &home, disk);
    terminal.until("task-");
    terminal.keys(&["-l", "/fresh"]);
    terminal.keys(&["Enter"]);
    terminal.until("Nothing passes the filter");
    let updates: Vec<Duration> = (0..TIMES)
        .map(|number| {
            let name = format!("fresh-{number}");
            create(&mut line, &repository, &name);
            timed(|| terminal.until(&name))
        })
        .collect();
    println!("{}", row("a change is seen, after its answer", updates, 200));

    terminal.keys(&["-l", "q"]);
    terminal.until("task-");
    rest(SETTLES);
    let pid = terminal.pid();
    let before = cpu(pid);
    rest(IDLES);
    let share = (cpu(pid) - before) / IDLES.as_secs_f64() * 100.0;
    println!("{:<42} {share:>8.2} %    (aim: under 1 %); {:.0} MiB resident", "idle, of one core", resident(pid));
}

fn create(line: &mut sluice_bench::line::WaitingLine, repository: &Repository, branch: &str) {
    let project = &repository.name;
    let body = format!(
        r#"{{"project":"{project}","branch":"{branch}","summary":"Do {branch}","harness":"demo","no_spawn":true}}"#
    );
    line.ask("POST", "/v1/lifecycle/tasks", &body).unwrap();
}

fn timed<T>(what: impl FnOnce() -> T) -> Duration {
    let began = Instant::now();
    what();
    began.elapsed()
}

fn row(what: &str, mut took: Vec<Duration>, aim: u32) -> String {
    took.sort_unstable();
    let at = |part: usize| took[(took.len() - 1) * part / 100].as_secs_f64() * 1000.0;
    format!("{what:<42} {:>8.1} ms median, {:.1} ms worst (aim: under {aim} ms)", at(50), at(100))
}

/// A dashboard in a terminal of its own.
struct Terminal {
    folder: tempfile::TempDir,
    /// Something was written to the terminal.
    written: Receiver<()>,
}

impl Terminal {
    fn start(program: &Path, home: &ServedHome, disk: &Path) -> Terminal {
        let (sender, written) = channel();
        let terminal = Terminal { folder: tempfile::tempdir_in(disk).unwrap(), written };
        let pipe = terminal.folder.path().join("pipe");
        run(Command::new("mkfifo").arg(&pipe)).unwrap();
        let path = pipe.clone();
        std::thread::spawn(move || {
            let mut told = File::open(path).unwrap();
            let mut bytes = [0; 65_536];
            while told.read(&mut bytes).is_ok_and(|count| count > 0) && sender.send(()).is_ok() {}
        });
        // The dashboard begins once tmux can tell what it writes.
        let line = format!("read go; exec '{}' dashboard", program.display());
        let place = format!("SLUICE_HOME={}", home.home().display());
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "-e", &place, &line]);
        terminal.tmux(&["pipe-pane", "-O", &format!("cat > '{}'", pipe.display())]);
        terminal.keys(&["Enter"]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let socket = self.folder.path().join("tmux.sock");
        run(Command::new("tmux").env("LANG", "C.UTF-8").arg("-S").arg(socket).args(arguments)).unwrap()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn pid(&self) -> u32 {
        self.tmux(&["display-message", "-p", "#{pane_pid}"]).trim().parse().unwrap()
    }

    /// Waits until a text stands on the screen, by a look at it whenever something is written to it.
    fn until(&self, text: &str) {
        let give_up = Instant::now() + PATIENCE;
        while !self.tmux(&["capture-pane", "-p"]).contains(text) {
            let left = give_up.saturating_duration_since(Instant::now());
            assert!(self.written.recv_timeout(left).is_ok(), "{text} is not seen");
            self.written.try_iter().for_each(drop);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
