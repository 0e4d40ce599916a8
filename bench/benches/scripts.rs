//! What a step that is a script costs over a bare start of the same program, beside `make` and `ninja`: a chain of 50 and
//! a fan of 1,000, all in one run on one disk, with bare SQLite commits as the floor.
//!
//! `cargo xtask bench scripts` builds the program and runs this. It prints, and judges nothing.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sluice_bench::floor::{BareSqlite, Floor};
use sluice_bench::machine::{built_program, load};
use sluice_bench::steps::{Shape, StepRunner, bare, bare_beside_each_other, command, written};
use tempfile::TempDir;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Steps one after the other.
const CHAIN: usize = 50;
/// Steps beside each other.
const FAN: usize = 1_000;
/// How often the chain is measured.
const CHAINS: usize = 15;
/// How often the fan is.
const FANS: usize = 5;

fn main() -> Outcome<()> {
    // `cargo test --benches` only wants to know that it runs.
    if std::env::args().any(|word| word == "--test") {
        return Ok(());
    }
    let Some(program) = built_program() else {
        println!("there is no release build of sluice; make one first: cargo build --release -p sluice");
        return Ok(());
    };
    let at_once = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    let place = Place::new(program, at_once)?;
    println!("before: {}", load());
    let mut floor = BareSqlite::new(place.home.path()).settled();
    chain(&place, &mut floor)?;
    fan(&place, &mut floor)?;
    println!("after: {}", load());
    Ok(())
}

/// One after the other.
fn chain(place: &Place, floor: &mut BareSqlite) -> Outcome<()> {
    let rows = measure(CHAINS, CHAIN, floor, |runner, count| match runner {
        Runner::Bare => timed(|| Ok((0..count).try_for_each(|_| bare(place.work.path()))?)),
        Runner::Program(program) => place.run(program, Shape::Chain, count),
    })?;
    print(&format!("a chain of {CHAIN}"), &rows);
    Ok(())
}

/// All at once, as many as there is room for.
fn fan(place: &Place, floor: &mut BareSqlite) -> Outcome<()> {
    let rows = measure(FANS, FAN, floor, |runner, count| match runner {
        Runner::Bare => timed(|| Ok(bare_beside_each_other(place.work.path(), count, place.at_once)?)),
        Runner::Program(program) => place.run(program, Shape::Fan, count),
    })?;
    print(&format!("a fan of {FAN}, {} at once", place.at_once), &rows);
    Ok(())
}

/// What runs the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runner {
    /// The benchmark itself: it starts the program, and waits for it.
    Bare,
    /// A program that reads a file.
    Program(StepRunner),
}

/// All of them, in the order of the table.
const RUNNERS: [Runner; 4] = [
    Runner::Bare,
    Runner::Program(StepRunner::Make),
    Runner::Program(StepRunner::Ninja),
    Runner::Program(StepRunner::Sluice),
];

impl Runner {
    fn name(self) -> &'static str {
        match self {
            Runner::Bare => "bare start and wait",
            Runner::Program(StepRunner::Make) => "make",
            Runner::Program(StepRunner::Ninja) => "ninja",
            Runner::Program(StepRunner::Sluice) => "sluice start",
        }
    }

    /// The program, and the package that brings it.
    fn needs(self) -> Option<(&'static str, &'static str)> {
        match self {
            Runner::Program(StepRunner::Make) => Some(("make", "make")),
            Runner::Program(StepRunner::Ninja) => Some(("ninja", "ninja-build")),
            Runner::Bare | Runner::Program(StepRunner::Sluice) => None,
        }
    }

    fn is_there(self) -> bool {
        self.needs().is_none_or(|(program, _)| {
            Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
        })
    }
}

/// What a step took, of each runner, and what a commit took meanwhile. The rounds are sorted by time.
struct Row {
    runner: Runner,
    steps: Vec<Duration>,
    commit: Duration,
}

/// All runners take turns, so that the machine's mood hits each. What one step costs is what `count` steps take more than
/// one does: the start of a command is not part of it.
fn measure(
    rounds: usize,
    count: usize,
    floor: &mut BareSqlite,
    mut once: impl FnMut(Runner, usize) -> Outcome<Duration>,
) -> Outcome<Vec<Row>> {
    let here: Vec<Runner> = RUNNERS.into_iter().filter(|runner| runner.is_there()).collect();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); here.len()];
    let mut commits = Vec::new();
    for _ in 0..rounds {
        commits.push(floor.round());
        for (runner, times) in here.iter().zip(&mut times) {
            let (one, all) = (once(*runner, 1)?, once(*runner, count)?);
            times.push(all.saturating_sub(one) / u32::try_from(count - 1)?);
        }
    }
    commits.sort();
    let commit = commits[commits.len() / 2];
    let rows = here.into_iter().zip(times).map(|(runner, mut steps)| {
        steps.sort();
        Row { runner, steps, commit }
    });
    Ok(rows.collect())
}

fn print(what: &str, rows: &[Row]) {
    let middle = |row: &Row| millis(row.steps[row.steps.len() / 2]);
    let Some(bare) = rows.first() else { return };
    let commit = millis(bare.commit);
    println!("\n{what}; a bare SQLite commit here and now: {commit:.2} ms");
    println!(
        "{:<22} {:>9} {:>9} {:>11} {:>11} {:>15}",
        "ms per step", "median", "least", "over bare", "in commits", "less 1 commit"
    );
    for runner in RUNNERS {
        match (rows.iter().find(|row| row.runner == runner), runner.needs()) {
            (Some(row), _) => {
                let over = middle(row) - middle(bare);
                println!(
                    "{:<22} {:>9.2} {:>9.2} {over:>11.2} {:>11.2} {:>15.2}",
                    runner.name(),
                    middle(row),
                    millis(row.steps[0]),
                    over / commit,
                    over - commit
                );
            }
            (None, Some((program, package))) => {
                println!("{program:<22} not measured: it is not installed; the package is called {package}");
            }
            (None, None) => {}
        }
    }
    println!("aim of `sluice start`, less one commit: at most 2 ms; beyond that 0.5 ms");
}

/// A fresh home with an engine that runs, and a folder to work in. Both are gone afterwards.
struct Place {
    program: PathBuf,
    /// On the disk of the build, as the floor is.
    home: TempDir,
    /// In no repository: a worktree would be made for each run.
    work: TempDir,
    at_once: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        // It ends by itself after a while if it cannot be told.
        let _ = run(self.sluice().arg("stop"));
    }
}

impl Place {
    fn new(program: PathBuf, at_once: usize) -> Outcome<Place> {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let place = Place { program, home, work: tempfile::tempdir()?, at_once };
        run(place.sluice().args(["task", "list"]))?;
        Ok(place)
    }

    fn sluice(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("SLUICE_HOME", self.home.path()).current_dir(self.work.path());
        command
    }

    /// Lets a program go through so many steps. How long it took, from the start of its command to the end.
    fn run(&self, runner: StepRunner, shape: Shape, count: usize) -> Outcome<Duration> {
        let file = self.work.path().join(format!("{runner:?}-{shape:?}-{count}"));
        if !file.exists() {
            std::fs::write(&file, written(runner, shape, count, self.at_once))?;
        }
        let jobs = if shape == Shape::Chain { 1 } else { self.at_once };
        let mut command = match runner {
            StepRunner::Make => command("make", &file, jobs),
            StepRunner::Ninja => command("ninja", &file, jobs),
            StepRunner::Sluice => self.sluice(),
        };
        if runner == StepRunner::Sluice {
            command.arg("start").arg(&file);
        }
        timed(|| run(command.current_dir(self.work.path())))
    }
}

/// Runs a command to its end.
fn run(command: &mut Command) -> Outcome<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

fn timed(work: impl FnOnce() -> Outcome<()>) -> Outcome<Duration> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
