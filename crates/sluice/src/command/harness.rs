//! `sluice harness`: what is known about agent programs, shown; and one set up or tried out when a person asks for it.

use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;

use serde_json::{Value, json};
use sluice_api::project::ProjectList;
use sluice_home::settings::harnesses::{HarnessReport, HarnessSurvey};
use sluice_os::harness::{HarnessLook, HarnessSetup, HarnessSetupChange, repository_of};
use sluice_worker::undone::described;

use crate::args::HarnessCommand;
use crate::engine::{connect, places};
use crate::output::{CliExit, CliFailure, CliOutput, print, say};
use crate::table;

pub(crate) fn run(arguments: &HarnessCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    match arguments {
        HarnessCommand::List { all } => list(*all, output),
        HarnessCommand::Setup { program, project, yes } => setup(program, project.as_deref(), *yes, output),
        HarnessCommand::Check { program, dry, within, record } => {
            super::harness_check::run(program, *dry, *within, record.as_deref(), output)
        }
    }
}

fn here() -> PathBuf {
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
        let heads = ["name", "version", "tried with", "logged in", "trusted here", "starts", "path"];
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
        report.path.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

fn setup(program: &str, project: Option<&str>, yes: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
    let places = places()?;
    sluice_home::ask::denied::must_be_person(&places, "harness setup")?;
    let folder = match project {
        Some(name) => project_folder(name)?,
        None => repository_of(&here()).ok_or_else(|| {
            CliFailure::new(CliExit::Usage, "bad_request", "the current folder is in no git repository")
                .hint("go into the repository, or name a project: --project NAME")
        })?,
    };
    let survey = HarnessSurvey::of(&places)?;
    let harness = survey
        .harnesses
        .get(program)
        .map_err(|error| CliFailure::new(CliExit::NotFound, "not_found", error.to_string()))?;
    let failed = |error: sluice_os::harness::HarnessSetupError| {
        CliFailure::new(CliExit::Refused, "setup_failed", described(&error))
    };
    let setup = harness.setup(&survey.scene(harness, &folder)).map_err(failed)?;
    if output == CliOutput::People {
        setup.changes.iter().for_each(show);
    }
    let is_changed = !setup.changes.is_empty();
    if is_changed {
        confirm(yes, &setup)?;
        setup.write().map_err(failed)?;
    }
    let reports = survey.reports(&folder, Some(program))?;
    let left: Vec<_> = reports.iter().flat_map(|it| &it.looks).filter(|look| look.answer == "no").collect();
    let changes: Vec<Value> = setup.changes.iter().map(document).collect();
    output.show(&json!({ "changed": changes, "left": left }), || {
        match (is_changed, left.is_empty()) {
            (true, _) => say(&format!("`{program}` is set up for {}", folder.display())),
            (false, true) => say(&format!("there is nothing to set up for `{program}` in {}", folder.display())),
            (false, false) => {}
        }
        for look in &left {
            say(&format!("left for you: {}", look.why));
            look.cure.iter().for_each(|cure| say(&format!("  → {cure}")));
        }
    })?;
    Ok(if left.is_empty() { CliExit::Done } else { CliExit::Held })
}

fn project_folder(name: &str) -> Result<PathBuf, CliFailure> {
    let list: ProjectList = connect()?.get("/v1/projects")?;
    list.projects.into_iter().find(|project| project.name == name).map(|project| project.path.into()).ok_or_else(|| {
        CliFailure::new(CliExit::NotFound, "not_found", format!("there is no project `{name}`"))
            .hint("`sluice project list` shows them")
    })
}

/// A change as a person reads it: the key before and after.
fn show(change: &HarnessSetupChange) {
    let key = change.key.join(" › ");
    print(&format!("{}\n", change.file.display()));
    if let Some(before) = &change.before {
        print(&format!("  - {key}: {before}\n"));
    }
    print(&format!("  + {key}: {}\n    {}\n", change.after, change.means));
}

fn document(change: &HarnessSetupChange) -> Value {
    let HarnessSetupChange { file, key, before, after, means } = change;
    json!({ "file": file, "key": key, "before": before, "after": after, "means": means })
}

fn confirm(yes: bool, setup: &HarnessSetup) -> Result<(), CliFailure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let message =
            "`harness setup` needs your confirmation, and there is no terminal to ask on; nothing was changed";
        return Err(CliFailure::new(CliExit::Usage, "not_confirmed", message).hint("add --yes to confirm"));
    }
    let keys = if setup.changes.len() == 1 { "this key" } else { "these keys" };
    let _ = write!(anstream::stderr(), "Write {keys}? [y/N] ");
    let mut answer = String::new();
    let _ = std::io::stdin().read_line(&mut answer);
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CliFailure::new(CliExit::Refused, "not_confirmed", "you did not confirm; nothing was changed")),
    }
}
