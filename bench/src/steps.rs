//! Steps that are scripts, in a chain or a fan, in the words of each program that runs them; and the floor: the same
//! scripts, started and waited for by nothing but this process.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What every step does. Not `:`, which `make` knows and does not start.
pub const COMMAND: &str = "exit 0";

/// How the steps hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One after the other.
    Chain,
    /// All at once, as many as there is room for.
    Fan,
}

/// A program that runs steps as a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRunner {
    /// GNU make, from the package `make`.
    Make,
    /// Ninja, from the package `ninja-build`.
    Ninja,
    /// Ours.
    Sluice,
}

/// The file that tells a program to go through so many steps, at most so many at once.
pub fn written(runner: StepRunner, shape: Shape, count: usize, at_once: usize) -> String {
    let names: Vec<String> = (0..count).map(|step| format!("s{step}")).collect();
    // In a fan no step needs another; `make` and `ninja` are asked for all of them.
    let before = |step: usize| match shape {
        Shape::Chain => step.checked_sub(1).map(|before| names[before].clone()).unwrap_or_default(),
        Shape::Fan => String::new(),
    };
    let mut text = match runner {
        StepRunner::Make => format!(".PHONY: all {0}\nall: {0}\n", names.join(" ")),
        StepRunner::Ninja => format!("rule step\n  command = {COMMAND}\nbuild all: phony {}\n", names.join(" ")),
        StepRunner::Sluice => format!("name: bench\nmax_parallel: {at_once}\nsteps:\n"),
    };
    for (step, name) in names.iter().enumerate() {
        let needs = before(step);
        let _ = match runner {
            StepRunner::Make => writeln!(text, "{name}: {needs}\n\t{COMMAND}"),
            StepRunner::Ninja => writeln!(text, "build {name}: step {needs}"),
            StepRunner::Sluice => {
                writeln!(text, "  - {{name: {name}, type: script, needs: [{needs}], command: '{COMMAND}'}}")
            }
        };
    }
    text
}

/// The command that lets `make` or `ninja` go through such a file.
pub fn command(program: &str, file: &Path, jobs: usize) -> Command {
    let mut command = Command::new(program);
    if program == "make" {
        command.arg("--silent");
    }
    command.arg("-f").arg(file).arg(format!("-j{jobs}"));
    command
}

/// Starts a step as the engine does, reads what it prints and waits for it; nothing else.
pub fn bare(folder: &Path) -> Result<(), String> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", COMMAND]).current_dir(folder).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if ended.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", ended.status)) }
}

/// The same, so many at once.
pub fn bare_beside_each_other(folder: &Path, count: usize, at_once: usize) -> Result<(), String> {
    let left = AtomicUsize::new(count);
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    std::thread::scope(|scope| {
        let work = || -> Result<(), String> {
            while take() {
                bare(folder)?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread failed".into())))
    })
}
