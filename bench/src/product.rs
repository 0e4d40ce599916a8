//! The product as a user has it: a served engine that is asked by HTTP and by the command line, beside programs that can be
//! installed by name and do the comparable thing, in one run.
//!
//! Each row holds Sluice against one other: a floor (the bare start of a program, git alone), or a peer. Nothing asserts a
//! time; what must hold is that all runs complete.

pub mod again;
pub mod git_count;
pub mod langgraph;
pub mod memory;
pub mod peers;
pub mod pipe;
pub mod rate;
pub mod repository;
pub mod restate;
pub mod served;
pub mod shapes;
pub mod start;
pub mod task;

use std::path::{Path, PathBuf};
use std::time::Duration;

use peers::Peers;
use repository::{Repository, recipe, write_recipes};
use served::{ServedHome, Wished};
use tempfile::TempDir;

use crate::table::Table;

/// How long anything is waited for: longer than any run takes, also behind thousands of others.
pub const PATIENCE: Duration = Duration::from_secs(900);
/// Steps of a run, each of which starts `true`.
pub const STEPS: usize = 5;
/// Connections over which many runs are posted.
pub const CONNECTIONS: usize = 8;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Files of the repositories whose starts are timed, from few to many.
    pub files: [usize; 3],
    /// Starts that are timed in each of them; in the largest a tenth.
    pub starts: usize,
    /// Runs that are posted at once to find how many complete in a second.
    pub runs: usize,
    /// Starts one after the other, of which the last are held against the first.
    pub again: usize,
    /// Starts in each of the two windows that are compared.
    pub window: usize,
    /// Runs before memory and disk are looked at.
    pub memory: usize,
    /// How long the engine rests before its memory is looked at once more.
    pub rest: Duration,
    /// Tasks that are created.
    pub tasks: usize,
    /// Steps of a chain, and of a fan.
    pub steps: (usize, usize),
    /// How often what takes turns is measured.
    pub rounds: usize,
}

impl Scale {
    /// What the page shows; no count is above `most`.
    pub fn full(most: usize, rest: Duration) -> Scale {
        Scale {
            files: [1, 1_000, 15_000],
            starts: most.min(100),
            runs: most.min(1_000),
            again: most.min(2_000),
            window: most.min(2_000).div_ceil(40),
            memory: most.min(20_000),
            rest,
            tasks: most.min(10),
            steps: (50, 200),
            rounds: 3,
        }
    }

    /// The least that goes through everything once.
    pub fn smoke() -> Scale {
        Scale {
            files: [1, 2, 3],
            starts: 1,
            runs: 3,
            again: 3,
            window: 1,
            memory: 3,
            rest: Duration::ZERO,
            tasks: 1,
            steps: (3, 3),
            rounds: 1,
        }
    }
}

/// Where the stories are measured, and with what.
pub struct Stage {
    /// The program that is measured.
    pub program: PathBuf,
    /// A folder on the disk that is measured. Everything is made below it, and goes with it.
    folder: TempDir,
    /// A folder outside of every repository.
    outside: TempDir,
    /// How much is measured.
    pub scale: Scale,
    /// What it is measured beside.
    pub peers: Peers,
    /// Where the rows go.
    pub table: Table,
}

/// Where a run works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workspace {
    /// In the folder of the recipe, which is in no repository.
    Outside,
    /// In a scratch folder: `workspace: none`.
    None,
    /// In a worktree of its own.
    Run,
}

impl Workspace {
    /// How a row names it.
    pub fn name(self) -> &'static str {
        match self {
            Workspace::Outside => "outside git",
            Workspace::None => "`workspace: none`",
            Workspace::Run => "`workspace: run`",
        }
    }
}

impl Stage {
    /// A stage on the disk of this folder.
    pub fn new(program: PathBuf, disk: &Path, scale: Scale, peers: Peers) -> Stage {
        let (folder, outside) = (tempfile::tempdir_in(disk).unwrap(), tempfile::tempdir().unwrap());
        Stage { program, folder, outside, scale, peers, table: Table::begin() }
    }

    /// The disk that is measured.
    pub fn disk(&self) -> &Path {
        self.folder.path()
    }

    /// Steps of a fan that run at once, whatever runs them.
    pub fn at_once(&self) -> usize {
        2 * std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// A served home with a repository of so many files, which has the recipe `five`; the engine starts outside of it, in a
    /// folder that has `five` too. The first step of `five` runs this command.
    pub fn furnish(&self, files: usize, first: &str) -> (ServedHome, Repository) {
        let repository = Repository::new(
            self.disk(),
            files,
            &[("five", recipe("five", "", STEPS, first)), ("bare", recipe("bare", "workspace: none\n", STEPS, first))],
        );
        write_recipes(self.outside.path(), &[("five", recipe("five", "", STEPS, first))]);
        let wished = Wished { start_in: Some(self.outside.path()), ..Wished::default() };
        let served = ServedHome::start(&self.program, self.disk(), &wished);
        served.add(&repository, &[]);
        (served, repository)
    }

    /// The workspaces that this program knows. A row says which it does not.
    pub fn workspaces(&self, served: &ServedHome, what: &str) -> Vec<Workspace> {
        let mut known = vec![Workspace::Outside];
        match served.accepts(&recipe("bare", "workspace: none\n", STEPS, "true")) {
            true => known.push(Workspace::None),
            false => self.table.missing(&format!("{what}, {}", Workspace::None.name()), "not supported by this binary"),
        }
        known
    }
}

/// What is posted to start a run in a workspace.
pub fn start_of(workspace: Workspace, repository: &Repository) -> String {
    match workspace {
        Workspace::Outside => "{\"grimoire\": \"five\"}".to_owned(),
        Workspace::None => format!("{{\"grimoire\": \"bare\", \"project\": \"{}\"}}", repository.name),
        Workspace::Run => format!("{{\"grimoire\": \"five\", \"project\": \"{}\"}}", repository.name),
    }
}

/// A time that is not longer than this percentage of all of them.
pub fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// The time in the middle.
pub fn median(times: &[Duration]) -> Duration {
    percentile(times, 50)
}

/// Measures something and puts it into the table.
type Story = fn(&Stage);

/// The stories, by the words that ask for them.
pub const STORIES: [(&str, Story); 7] = [
    ("start", start::measure),
    ("rate", rate::measure),
    ("shapes", shapes::measure),
    ("task", task::measure),
    ("again", again::measure),
    ("git", git_count::measure),
    ("memory", memory::measure),
];
