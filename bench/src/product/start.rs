//! How long a start takes: until it is answered, and until the first step runs, in repositories of all sizes.

use std::process::Command;
use std::time::{Duration, Instant};

use super::pipe::Pipe;
use super::restate::Restate;
use super::served::ServedHome;
use super::{PATIENCE, Stage, Workspace, median, percentile, start_of};
use crate::steps::{COMMAND, command};

/// What some starts took, each until it was answered and until its first step ran; and a question before each that asks the
/// engine nothing.
#[derive(Default)]
struct Starts {
    answered: Vec<Duration>,
    first: Vec<Duration>,
    healthz: Vec<Duration>,
}

/// So often the floor has its turn between two starts.
const FLOORS: usize = 5;

/// Starts by HTTP, beside `/healthz`, git alone and the peers.
pub fn measure(stage: &Stage) {
    let pipes = tempfile::tempdir_in(stage.disk()).unwrap();
    let pipe = Pipe::new(pipes.path());
    let [few, some, many] = stage.scale.files;
    let starts = stage.scale.starts;
    for (files, starts) in [(few, starts), (some, starts), (many, starts.div_ceil(10))] {
        in_repository(stage, files, starts, &pipe);
    }
    let (served, repository) = stage.furnish(1, &pipe.command());
    for workspace in stage.workspaces(&served, "start to first step") {
        let took = take(&served, &pipe, &start_of(workspace, &repository), starts, || {});
        answered(stage, &took, workspace.name());
        beside_peers(stage, &pipe, workspace, median(&took.first));
    }
}

fn in_repository(stage: &Stage, files: usize, starts: usize, pipe: &Pipe) {
    let (served, repository) = stage.furnish(files, &pipe.command());
    let mut git = Vec::new();
    let between = || git.push(repository.worktree().0);
    let took = take(&served, pipe, &start_of(Workspace::Run, &repository), starts, between);
    let what = format!("{}, {files} file{}", Workspace::Run.name(), if files == 1 { "" } else { "s" });
    answered(stage, &took, &what);
    let row = format!("start to first step, {what} / git worktree add");
    stage.table.times(&row, median(&took.first), median(&git), "");
}

/// Starts one after the other, each when the one before has completed.
fn take(served: &ServedHome, pipe: &Pipe, start: &str, starts: usize, mut between: impl FnMut()) -> Starts {
    let (completed, mut line) = (served.completed(), served.line());
    let mut took = Starts::default();
    for number in 0..=starts {
        let asked = Instant::now();
        line.ask("GET", "/healthz", "").unwrap();
        let began = Instant::now();
        line.ask("POST", "/workflows", start).unwrap();
        let (answered, first) = (began.elapsed(), pipe.next() - began);
        completed.wait(1, PATIENCE);
        // The first of all finds nothing prepared.
        if number > 0 {
            took.healthz.push(began - asked);
            took.answered.push(answered);
            took.first.push(first);
        }
        if number % (starts / FLOORS).max(1) == 0 {
            between();
        }
    }
    took
}

/// The rows about the answer.
fn answered(stage: &Stage, took: &Starts, what: &str) {
    let middle = median(&took.answered);
    let row = format!("start answered, {what} / healthz");
    stage.table.times(&row, middle, median(&took.healthz), "at most 5 ms");
    stage.table.times("  the 99th percentile / the median", percentile(&took.answered, 99), middle, "");
}

/// The rows about the first step, beside peers, which have no worktree either.
fn beside_peers(stage: &Stage, pipe: &Pipe, workspace: Workspace, first: Duration) {
    let row = |peer: &str| format!("start to first step, {} / {peer}", workspace.name());
    let bare = |_| until_told(pipe, Command::new("/bin/sh").args(["-c", &pipe.command()]));
    let bare: Vec<Duration> = (0..stage.scale.starts).map(bare).collect();
    stage.table.times(&row("a bare start"), first, median(&bare), "");
    if let Some(langgraph) = &stage.peers.langgraph {
        stage.table.times(&row("LangGraph"), first, langgraph.first(stage.disk(), stage.scale.starts), "");
    }
    if let Some(restate) = &stage.peers.restate {
        let restate = Restate::start(restate, stage.disk());
        stage.table.times(&row("Restate"), first, median(&restate.first(stage.scale.starts)), "");
    }
    for builder in &stage.peers.builders {
        let file = pipe.path().with_file_name(builder);
        let step = pipe.command();
        let text = match *builder {
            "make" => format!(".PHONY: s0 s1\ns1: s0\n\t{COMMAND}\ns0:\n\t{step}\n"),
            _ => format!(
                "rule first\n  command = {step}\nrule step\n  command = {COMMAND}\nbuild s0: first\nbuild s1: step s0\n"
            ),
        };
        std::fs::write(&file, text).unwrap();
        let once = |_| until_told(pipe, command(builder, &file, 1).current_dir(pipe.path().with_file_name("")));
        let took: Vec<Duration> = (0..stage.scale.starts).map(once).collect();
        stage.table.times(&row(builder), first, median(&took), "");
    }
}

/// From the start of a command until it has written to the pipe. Waits for its end.
fn until_told(pipe: &Pipe, command: &mut Command) -> Duration {
    let began = Instant::now();
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let told = pipe.next() - began;
    assert!(child.wait().unwrap().success(), "{command:?} failed");
    told
}
