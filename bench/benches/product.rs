//! The product as a user has it, beside peers that install by name: `cargo xtask bench product [STORY …] [--runs N]
//! [--rest SECONDS] [--no-peers] [--program PATH]`. It prints one table, and judges nothing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use sluice_bench::machine::{built_program, load};
use sluice_bench::product::peers::Peers;
use sluice_bench::product::{STORIES, Scale, Stage};

const HELP: &str = "cargo xtask bench product [STORY …] [--runs N] [--rest SECONDS] [--no-peers] [--program PATH]";

fn main() -> ExitCode {
    // `cargo test --benches` only wants to know that it runs.
    if std::env::args().any(|word| word == "--test") {
        return ExitCode::SUCCESS;
    }
    let Some(wanted) = Wanted::read(std::env::args().skip(1)) else {
        let names: Vec<&str> = STORIES.iter().map(|(name, _)| *name).collect();
        eprintln!("{HELP}\nthe stories: {}", names.join(", "));
        return ExitCode::from(2);
    };
    let Some(program) = wanted.program.or_else(built_program) else {
        eprintln!("there is no release build of sluice; make one first: cargo build --release -p sluice");
        return ExitCode::FAILURE;
    };
    let disk = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let peers = if wanted.peers { Peers::install(&disk.join("peers")) } else { Peers::default() };
    println!("before: {}", load());
    let stage = Stage::new(program, disk, Scale::full(wanted.runs, wanted.rest), peers);
    for (name, measure) in STORIES {
        if wanted.stories.is_empty() || wanted.stories.iter().any(|story| story == name) {
            measure(&stage);
        }
    }
    println!("after: {}", load());
    ExitCode::SUCCESS
}

/// What the command line asks for.
struct Wanted {
    stories: Vec<String>,
    runs: usize,
    rest: Duration,
    peers: bool,
    /// Another `sluice` than the one of this build.
    program: Option<PathBuf>,
}

impl Wanted {
    fn read(mut words: impl Iterator<Item = String>) -> Option<Wanted> {
        let mut wanted =
            Wanted { stories: Vec::new(), runs: usize::MAX, rest: Duration::from_secs(60), peers: true, program: None };
        while let Some(word) = words.next() {
            match word.as_str() {
                // Cargo says this to every benchmark.
                "--bench" => {}
                "--runs" => wanted.runs = words.next()?.parse().ok().filter(|count| *count > 0)?,
                "--rest" => wanted.rest = Duration::from_secs(words.next()?.parse().ok()?),
                "--program" => wanted.program = Some(words.next()?.into()),
                "--no-peers" => wanted.peers = false,
                story if STORIES.iter().any(|(name, _)| *name == story) => wanted.stories.push(word),
                _ => return None,
            }
        }
        Some(wanted)
    }
}
