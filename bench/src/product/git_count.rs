//! How many git processes a run starts: a `git` that writes down how it was asked stands before the system's.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::repository::{Repository, recipe};
use super::served::{ServedHome, Wished};
use super::{STEPS, Stage, Workspace, start_of};
use crate::machine::rest;

/// Runs whose processes are counted, one after the other, at most.
const RUNS: usize = 10;
/// What a run leaves is gone after this time.
const SETTLES: Duration = Duration::from_secs(1);

/// Processes of git for a run with a worktree, and which they are.
pub fn measure(stage: &Stage) {
    let programs = tempfile::tempdir_in(stage.disk()).unwrap();
    let (log, shim) = (programs.path().join("log"), programs.path().join("git"));
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join("git"))
        .find(|path| path.is_file())
        .expect("git is not installed");
    let text = format!("#!/bin/sh\necho \"$*\" >> \"{}\"\nexec \"{}\" \"$@\"\n", log.display(), real.display());
    std::fs::write(&shim, text).unwrap();
    std::fs::set_permissions(&shim, std::fs::Permissions::from_mode(0o755)).unwrap();
    let repository = Repository::new(stage.disk(), 1, &[("five", recipe("five", "", STEPS, "true"))]);
    let wished = Wished { programs: Some(programs.path()), ..Wished::default() };
    let served = ServedHome::start(&stage.program, stage.disk(), &wished);
    served.add(&repository, &[]);
    let start = start_of(Workspace::Run, &repository);
    // The first of all finds nothing prepared.
    served.runs(&start, 1, 1);
    rest(SETTLES);
    let (before, runs) = (asked(&log).len(), stage.scale.runs.min(RUNS));
    for _ in 0..runs {
        served.runs(&start, 1, 1);
    }
    // What comes after the end of a run is part of it.
    rest(SETTLES);
    let asked = asked(&log).split_off(before);
    let each = asked.len() as f64 / runs as f64;
    stage.table.alone("git processes of a run of 5 `true`, one run at a time", &format!("{each:.1}"), "");
    let mut by_word: BTreeMap<String, usize> = BTreeMap::new();
    for line in &asked {
        *by_word.entry(subcommand(line)).or_default() += 1;
    }
    for (word, count) in by_word {
        stage.table.alone(&format!("  git {word}"), &format!("{:.1}", count as f64 / runs as f64), "");
    }
}

fn asked(log: &std::path::Path) -> Vec<String> {
    std::fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The word that says what git does: the first that is neither an option nor the value of one. `worktree` needs a second.
fn subcommand(line: &str) -> String {
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "-C" | "-c" | "--git-dir" | "--work-tree" => drop(words.next()),
            "worktree" => return format!("worktree {}", words.next().unwrap_or_default()),
            _ if word.starts_with('-') => {}
            _ => return word.to_owned(),
        }
    }
    "?".to_owned()
}
