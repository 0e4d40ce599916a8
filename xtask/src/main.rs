//! `cargo xtask`: chores of the repository.

use std::process::ExitCode;

use xtask::{api_clients, api_fuzz, page_bench, page_test, pictures, root, said, sarif, update};

const HELP: &str = "\
cargo xtask update [--all]   write everything that is made from the code or expected by a test: schemas, pages, the OpenAPI
                            document, snapshots, missing golden samples; --all: of tests that drive engines too
cargo xtask generate   only schemas/ and docs/formats.md
cargo xtask api-clients   make clients of the OpenAPI document with three generators, and have each list, create and answer
cargo xtask api-fuzz [--cases N]   ask a served home whatever its OpenAPI document allows, and more; N for each operation
cargo xtask bench [WORD]   measure beside the floor and print one table; WORD: only what is called so, like chain
cargo xtask bench dashboard [--tasks N] [--program PATH]   measure the dashboard over 5,000 tasks, or over N
cargo xtask bench page [--tasks N] [--steps N] [--pages N] [--seconds N] [--program PATH]   measure the page in Chromium: first
                            paint, updates, what an idle page and what open pages cost
cargo xtask bench scripts   measure script steps beside make and ninja
cargo xtask bench product [STORY …] [--runs N] [--rest SECONDS] [--no-peers] [--program PATH]   measure the built program by
                            HTTP and command line, beside Restate, LangGraph, make and ninja; N: no count is above it
cargo xtask fleet [--missions N] [--store sqlite|postgres] [--seed K] [--pace MS]   200 missions, while workers and the
                            engine are killed at random; at most MS milliseconds lie between two kills
cargo xtask golden-home --name COMMIT [--program PATH]   keep a home of this engine, or of an earlier one, for the tests
cargo xtask harness-real [--only WORDS]   what the agent programs on the PATH say when they need a person, by which channel and
                            after how long, and that one command solves it; WORDS: only cases like `claude` or `codex trust`
cargo xtask load [--runs N] [--lines N]   memory and times of lists, before and after N runs and N lines of progress
cargo xtask page-test   drive the page in Chromium, and look for faults of accessibility
cargo xtask pg-chaos [--minutes N] [--seed K]   30 minutes of runs, while their PostgreSQL is stopped, cut off, read-only
cargo xtask pictures [--check]   make the pictures of the documents from a real run, in Chromium and a terminal; --check: only in
                            the target folder
cargo xtask power [--title LIFE] [--from N] [--step N]   let the power go at every moment of what is done with worktrees, or at
                            every Nth of one life, with every kind of loss
cargo xtask sarif   hold the SARIF log of the broken examples to the rules of GitHub
cargo xtask sim --seeds N   live N simulated lives of the engine; --seed K lives one again
cargo xtask takeover [--times N] [--seed K]   two engines take one PostgreSQL over from each other, 100 times
";

/// What they are told, and by which variables.
const FLEET: [(&str, &str); 4] = [
    ("--missions", "FLEET_MISSIONS"),
    ("--store", "FLEET_STORE"),
    ("--seed", "FLEET_SEED"),
    ("--pace", "FLEET_PACE_MS"),
];
const TAKEOVER: [(&str, &str); 2] = [("--times", "TAKEOVER_TIMES"), ("--seed", "TAKEOVER_SEED")];
const GOLDEN: [(&str, &str); 2] = [("--name", "GOLDEN_NAME"), ("--program", "GOLDEN_PROGRAM")];
const LOAD: [(&str, &str); 2] = [("--runs", "LOAD_RUNS"), ("--lines", "LOAD_LINES")];
const REAL: [(&str, &str); 1] = [("--only", "REAL_ONLY")];
const POWER: [(&str, &str); 3] = [("--title", "POWER_TITLE"), ("--from", "POWER_FROM"), ("--step", "POWER_STEP")];
const CHAOS: [(&str, &str); 2] = [("--minutes", "CHAOS_MINUTES"), ("--seed", "CHAOS_SEED")];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["update"] => said(update::update(false)),
        ["update", "--all"] => said(update::update(true)),
        ["generate"] => said(update::generate().map_err(|error| error.to_string())),
        ["api-clients"] => api_clients::main(),
        ["page-test"] => page_test::main(),
        ["pictures", rest @ ..] => pictures::main(rest),
        ["sarif"] => sarif::main(),
        ["api-fuzz", rest @ ..] => api_fuzz::main(rest),
        ["bench", "dashboard", rest @ ..] => driven("dashboard", rest),
        ["bench", "scripts"] => driven("scripts", &[]),
        ["bench", "page", rest @ ..] => page_bench::main(rest),
        ["bench", "product", rest @ ..] => driven("product", rest),
        ["bench", rest @ ..] => {
            cargo(&["bench", "--quiet", "--package", "sluice-bench", "--bench", "ratios", "--"], rest)
        }
        ["fleet", rest @ ..] => long(E2E, "as_many_as_are_wanted", &FLEET, rest),
        ["takeover", rest @ ..] => long(E2E, "as_many_takeovers_as_are_wanted", &TAKEOVER, rest),
        ["golden-home", rest @ ..] => long(E2E, "as_a_golden_home_is_made", &GOLDEN, rest),
        ["harness-real", rest @ ..] => long(E2E, "as_many_real_programs_as_there_are", &REAL, rest),
        ["load", rest @ ..] => long(E2E, "as_much_load_as_is_wanted", &LOAD, rest),
        ["pg-chaos", rest @ ..] => long(E2E, "as_many_minutes_as_are_wanted", &CHAOS, rest),
        ["power", rest @ ..] => long(("sluice-os", "workspace"), "at_every_moment_that_there_is", &POWER, rest),
        ["sim", rest @ ..] => cargo(&["run", "--release", "--quiet", "--package", "sluice-sim", "--"], rest),
        _ => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}

/// The tests that drive the program.
const E2E: (&str, &str) = ("sluice", "e2e");

/// What takes many minutes is a test of a crate, told by variables how much of it is wanted.
fn long((package, tests): (&str, &str), test: &str, known: &[(&str, &'static str)], rest: &[&str]) -> ExitCode {
    let mut settings = Vec::new();
    for pair in rest.chunks(2) {
        let setting = match pair {
            [flag, value] => known.iter().find(|(name, _)| name == flag).map(|(_, variable)| (*variable, *value)),
            _ => None,
        };
        let Some(setting) = setting else {
            eprint!("{HELP}");
            return ExitCode::from(2);
        };
        settings.push(setting);
    }
    let words = ["test", "--quiet", "--package", package, "--test", tests, test, "--"];
    cargo_with(&settings, &words, &["--ignored", "--nocapture"])
}

/// A benchmark that drives the program itself, which must be there.
fn driven(name: &str, rest: &[&str]) -> ExitCode {
    match cargo(&["build", "--release", "--quiet", "--package", "sluice"], &[]) {
        built if built == ExitCode::SUCCESS => {
            cargo(&["bench", "--quiet", "--package", "sluice-bench", "--bench", name, "--"], rest)
        }
        failed => failed,
    }
}

fn cargo(command: &[&str], rest: &[&str]) -> ExitCode {
    cargo_with(&[], command, rest)
}

/// The same with variables in its environment.
fn cargo_with(settings: &[(&str, &str)], command: &[&str], rest: &[&str]) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command_line = std::process::Command::new(cargo);
    command_line.current_dir(root()).args(command).args(rest).envs(settings.iter().copied());
    match command_line.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
