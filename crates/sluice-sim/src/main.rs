//! `sluice-sim --seeds N [--from K]` lives N lives; `sluice-sim --seed K` lives one again and prints its script.

use std::process::ExitCode;
use std::time::Instant;

use sluice_sim::Life;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1)?.parse::<u64>().ok()
    };
    if let Some(seed) = value("--seed") {
        return match Life::tell(seed, None) {
            Ok((steps, script)) => {
                println!("{script}seed {seed}: {steps} steps, every promise kept");
                ExitCode::SUCCESS
            }
            Err(wrong) => {
                println!("{}seed {seed}: {}", wrong.script, wrong.what);
                ExitCode::FAILURE
            }
        };
    }
    let (from, count) = (value("--from").unwrap_or(0), value("--seeds").unwrap_or(1000));
    let (begun, mut steps) = (Instant::now(), 0);
    for seed in from..from.saturating_add(count) {
        match Life::live(seed, None) {
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
