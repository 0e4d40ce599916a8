//! Whether a start gets slower with the runs before it, and what they leave behind.

use std::time::{Duration, Instant};

use super::pipe::Pipe;
use super::{PATIENCE, Stage, Workspace, median, start_of};
use crate::machine::rest;

/// The start that the first window begins with: those before find nothing prepared.
const FROM: usize = 10;
/// What a run leaves goes within this time, or it is counted.
const GOES_WITHIN: Duration = Duration::from_secs(10);

/// Starts one after the other, in a repository, each when the one before has completed: the last beside the first.
pub fn measure(stage: &Stage) {
    let pipes = tempfile::tempdir_in(stage.disk()).unwrap();
    let pipe = Pipe::new(pipes.path());
    let (served, repository) = stage.furnish(stage.scale.files[1], &pipe.command());
    let (completed, mut line) = (served.completed(), served.line());
    let start = start_of(Workspace::Run, &repository);
    let (mut answered, mut first) = (Vec::new(), Vec::new());
    for _ in 0..stage.scale.again {
        let began = Instant::now();
        line.ask("POST", "/workflows", &start).unwrap();
        answered.push(began.elapsed());
        first.push(pipe.next() - began);
        completed.wait(1, PATIENCE);
    }
    let (count, window) = (stage.scale.again, stage.scale.window);
    let from = FROM.min(count - window);
    for (what, took) in [("start answered", &answered), ("start to first step", &first)] {
        let early = median(&took[from..from + window]);
        let late = median(&took[count - window..]);
        let row = format!("{what}, {window} starts to number {count} / from number {}", from + 1);
        stage.table.times(&row, late, early, "at most 1.2 ×");
    }
    // The worktree and the branch of the last run go after its end.
    let left = || {
        let (worktrees, branches) = repository.left();
        let folders = std::fs::read_dir(served.home().join("runs")).into_iter().flatten().flatten();
        [worktrees, branches, folders.filter(|entry| entry.path().is_dir()).count()]
    };
    let began = Instant::now();
    while left() != [0; 3] && began.elapsed() < GOES_WITHIN {
        rest(Duration::from_millis(100));
    }
    for (what, left) in ["worktrees", "branches `sluice/*`", "folders in runs/"].into_iter().zip(left()) {
        stage.table.alone(&format!("left of {count} runs: {what}"), &left.to_string(), "none");
    }
}
