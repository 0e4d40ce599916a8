//! `sluice harness check`: the conformance kit of [`sluice_testkit::kit`], its report shown, and what was printed kept.

use std::path::Path;
use std::time::Duration;

use sluice_home::settings::harnesses::HarnessSurvey;
use sluice_home::settings::places::HomePaths;
use sluice_testkit::kit::{self, KitOrder, KitReport, KitRun, KitSignal};
use sluice_worker::undone::described;

use crate::engine::places;
use crate::output::{CliExit, CliFailure, CliOutput, print, say};
use crate::table;

pub(super) fn run(
    name: &str,
    dry: bool,
    within: u64,
    record: Option<&Path>,
    output: CliOutput,
) -> Result<CliExit, CliFailure> {
    let survey = HarnessSurvey::of(&places()?)?;
    let here = std::env::current_dir().unwrap_or_default();
    let found = survey.reports(&here, Some(name))?;
    if found.iter().any(|it| it.path.is_none() && !it.comes_with_sluice()) {
        let message = format!("`{name}` cannot be checked: its program is not on PATH");
        return Err(CliFailure::new(CliExit::NotFound, "not_found", message).hint("install it"));
    }
    let failed = |why: String| CliFailure::new(CliExit::Refused, "check_failed", why);
    let harness = survey.harnesses.get(name).map_err(|error| failed(error.to_string()))?;
    let sluice = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let within = Duration::from_secs(within);
    let socket = |home: &Path| HomePaths::new(home).socket();
    let order = KitOrder { harness, sluice: &sluice, environment: survey.environment(), dry, within, socket };
    let report =
        kit::check(&order).map_err(|error| failed(format!("`{name}` cannot be checked: {}", described(&error))))?;
    if let Some(folder) = record {
        keep(folder, &report).map_err(|error| failed(format!("{} cannot be written: {error}", folder.display())))?;
    }
    output.show(&report, || tell(&report))?;
    Ok(if report.is_well() { CliExit::Done } else { CliExit::Refused })
}

/// What it printed, called after the program, its version and what happened, as in `tests/harness/recorded`.
fn keep(folder: &Path, report: &KitReport) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let version = report.version.as_deref().unwrap_or("unknown");
    for run in &report.runs {
        let happened = match (report.model, run.fails.is_empty()) {
            ("dry", _) => "no-key",
            (_, true) => "done",
            (_, false) => "failed",
        };
        let place = if run.place == "terminal" { "-terminal" } else { "" };
        std::fs::write(folder.join(format!("{}-{version}-{happened}{place}.txt", report.harness)), &run.printed)?;
    }
    Ok(())
}

fn tell(report: &KitReport) {
    let version = report.version.as_deref().unwrap_or("in a version that it does not tell");
    let model = match report.model {
        "scripted" => "against a scripted model",
        "dry" => "without a key and a model",
        _ => "as it is: how it is led to a scripted model is not known",
    };
    print(&format!("{} {version}, {model}\n", report.harness));
    report.runs.iter().for_each(tell_run);
    if report.is_well() && report.model != "dry" {
        say("all that was tried works");
    }
}

fn tell_run(run: &KitRun) {
    let place = if run.place == "terminal" { "in a terminal" } else { "without a terminal" };
    print(&format!("\n{place}: {}\n", run.ended));
    let yes = |answer: Option<bool>| answer.map(|yes| if yes { "yes" } else { "no" });
    let tokens = match (run.input_tokens, run.output_tokens) {
        (None, None) => None,
        (input, output) => Some(format!("{} in, {} out", input.unwrap_or_default(), output.unwrap_or_default())),
    };
    let facts = [
        ("prompt arrived", yes(run.prompt_arrived).map(str::to_owned)),
        ("command ran", yes(run.command_ran).map(str::to_owned)),
        ("result read", yes(run.result_read).map(str::to_owned)),
        ("tokens", tokens),
        ("cost", run.cost.map(|cost| format!("{cost} USD"))),
    ];
    for (name, fact) in facts {
        print(&format!("  {name:<20} {}\n", fact.as_deref().unwrap_or("-")));
    }
    for KitSignal { signal, channel, seen, ms } in &run.signals {
        let when = ms.map_or_else(String::new, |ms| format!(" after {ms} ms"));
        let seen = if *seen { "seen" } else { "not seen" };
        print(&format!("  {:<20} {seen} by {channel}{when}\n", format!("· {signal}")));
    }
    run.fails.iter().for_each(|fail| print(&format!("  fails: {fail}\n")));
    run.last_lines.iter().for_each(|line| print(&format!("  | {}\n", table::line(line, 200))));
}
