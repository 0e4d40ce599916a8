//! LangGraph as a peer: graphs in a Python process, with its SQLite checkpointer, each step durable before the next.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::pipe;
use crate::machine::{disk, run};

/// What a step of a peer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Nothing but being recorded.
    Noop,
    /// It starts `true` and waits for it.
    Spawn,
}

impl Deed {
    /// The word that a peer knows it by.
    pub fn word(self) -> &'static str {
        match self {
            Deed::Noop => "noop",
            Deed::Spawn => "spawn",
        }
    }
}

/// The program that runs graphs.
pub struct LangGraph {
    /// The interpreter of its environment.
    pub python: PathBuf,
    /// What it runs.
    pub script: PathBuf,
}

/// What some runs took.
pub struct GraphRuns {
    /// From the first start to the last end.
    pub took: Duration,
    /// Resident memory before, in MiB.
    pub before: f64,
    /// Resident memory after, in MiB.
    pub after: f64,
    /// Bytes of the database.
    pub disk: u64,
}

impl LangGraph {
    /// Lets it run so many graphs of five nodes, or one graph of so many (`chain`, `fan`).
    pub fn measure(&self, folder: &Path, what: &str, deed: Deed, count: usize, at_once: usize) -> GraphRuns {
        let place = tempfile::tempdir_in(folder).unwrap();
        let said = self.says(place.path(), &[what, deed.word(), &count.to_string(), &at_once.to_string()]);
        let numbers: Vec<f64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
        GraphRuns {
            took: Duration::from_secs_f64(numbers[0]),
            before: numbers[1] / 1024.0,
            after: numbers[2] / 1024.0,
            disk: disk(place.path()),
        }
    }

    /// From the start of a graph until its first node has started a script, at the median of so many.
    pub fn first(&self, folder: &Path, count: usize) -> Duration {
        let place = tempfile::tempdir_in(folder).unwrap();
        let path = place.path().join("pipe");
        pipe::make(&path);
        let said = self.says(place.path(), &["first", "spawn", &count.to_string(), "1", &path.display().to_string()]);
        Duration::from_secs_f64(said.trim().parse().unwrap())
    }

    fn says(&self, place: &Path, words: &[&str]) -> String {
        run(Command::new(&self.python).arg(&self.script).arg(place.join("graphs.db")).args(words)).unwrap()
    }
}
