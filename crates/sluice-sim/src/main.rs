//! `sluice-sim --seeds N [--from K]` lives N lives; `sluice-sim --seed K` lives one again and prints its script. With
//! `--bug B` the engine is broken in the way with that number, and it is counted how many of the lives show it.

use std::process::ExitCode;
use std::time::Instant;

use sluice_sim::{SimBug, SimLife};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1)?.parse::<u64>().ok()
    };
    let bug = value("--bug").and_then(|number| SimBug::ALL.get(usize::try_from(number).ok()?).copied());
    if let Some(seed) = value("--seed") {
        return tell(seed, bug);
    }
    let (from, count) = (value("--from").unwrap_or(0), value("--seeds").unwrap_or(1000));
    if let Some(bug) = bug {
        return count_caught(bug, from..from.saturating_add(count));
    }
    let (begun, mut steps) = (Instant::now(), 0);
    for seed in from..from.saturating_add(count) {
        match SimLife::live(seed, None) {
            Ok(lived) => steps += lived,
            Err(wrong) => {
                println!("{}seed {seed}: {}\nlive it again: cargo xtask sim --seed {seed}", wrong.script, wrong.what);
                return ExitCode::FAILURE;
            }
        }
    }
    let took = begun.elapsed().as_secs_f64();
    println!("{count} lives, {steps} steps, every promise kept; {:.0} lives a minute", 60.0 * count as f64 / took);
    ExitCode::SUCCESS
}

fn tell(seed: u64, bug: Option<SimBug>) -> ExitCode {
    match SimLife::tell(seed, bug) {
        Ok((steps, script)) => {
            println!("{script}seed {seed}: {steps} steps, every promise kept");
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            println!("{}seed {seed}: {}", wrong.script, wrong.what);
            ExitCode::FAILURE
        }
    }
}

/// Says in how many lives a broken engine is caught, and how in the first ones.
fn count_caught(bug: SimBug, seeds: std::ops::Range<u64>) -> ExitCode {
    let lives = seeds.end - seeds.start;
    let caught: Vec<_> = seeds.filter_map(|seed| SimLife::live(seed, Some(bug)).err()).collect();
    caught.iter().take(5).for_each(|wrong| println!("seed {}: {}", wrong.seed, wrong.what));
    println!("{bug:?} is caught in {} of {lives} lives", caught.len());
    if caught.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
