//! `sluice harness`: what is known about agent programs, shown; and one set up or tried out when a person asks for it.

use std::path::PathBuf;

use serde_json::json;
use sluice_home::settings::harnesses::{HarnessReport, HarnessSurvey};
use sluice_os::harness::HarnessLook;

use crate::args::HarnessCommand;
use crate::engine::places;
use crate::output::{CliExit, CliFailure, CliOutput, say};
use crate::table;

pub(crate) fn run(arguments: &HarnessCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    match arguments {
        HarnessCommand::List { all } => list(*all, output),
        HarnessCommand::Setup { program, project, yes } => {
            super::harness_setup::run(program, project.as_deref(), *yes, output)
        }
        HarnessCommand::Check { program, dry, within, record } => {
            super::harness_check::run(program, *dry, *within, record.as_deref(), output)
        }
    }
}

pub(super) fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

fn list(all: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
    let survey = HarnessSurvey::of(&places()?)?;
    let mut reports = survey.reports(&here(), None)?;
    let missing = reports.iter().filter(|it| it.path.is_none() && !it.comes_with_sluice()).count();
    if !all {
        reports.retain(|it| it.path.is_some() || it.comes_with_sluice());
    }
    output.show(&json!({ "harnesses": reports }), || {
        let heads = ["name", "version", "tried with", "logged in", "trusted here", "starts", "looked in", "path"];
        table::print(&heads, reports.iter().map(row));
        for report in &reports {
            for look in report.looks.iter().filter(|look| look.answer == "no") {
                say(&format!("{}: {}", report.name, look.why));
                look.cure.iter().for_each(|cure| say(&format!("  → {cure}")));
            }
        }
        if !all && missing > 0 {
            say(&format!("{missing} more are not installed: `sluice harness list --all` lists them"));
        }
    })
}

fn row(report: &HarnessReport) -> Vec<String> {
    let answer = |look| report.look(look).map_or("-", |it| it.answer).to_owned();
    let is_refused = report.looks.iter().any(|look| look.answer == "no");
    let is_installed = report.path.is_some() || report.comes_with_sluice();
    let starts = match (is_installed, is_refused) {
        (false, _) => "not installed",
        (true, true) => "no",
        (true, false) => "yes",
    };
    vec![
        report.name.clone(),
        report.version.clone().unwrap_or_else(|| "-".to_owned()),
        report.tried.clone().unwrap_or_else(|| "-".to_owned()),
        answer(HarnessLook::Login),
        answer(HarnessLook::Trust),
        starts.to_owned(),
        if report.looks.is_empty() { "-".to_owned() } else { format!("{:.1} ms", report.looked_us as f64 / 1000.0) },
        report.path.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}
