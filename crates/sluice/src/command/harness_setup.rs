//! `sluice harness setup`: does once what can be done once for a program, then starts the tasks again that waited for it.

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sluice_api::attention::AttentionCause;
use sluice_api::project::ProjectList;
use sluice_api::shown::Inbox;
use sluice_home::settings::harnesses::{HarnessLookReport, HarnessSurvey};
use sluice_os::harness::{Harness, HarnessLook, HarnessSetupChange, HarnessSetupError, repository_of};
use sluice_worker::undone::described;

use super::harness::here;
use crate::engine::{connect, places};
use crate::output::{CliExit, CliFailure, CliOutput, print, say};

pub(super) fn run(program: &str, project: Option<&str>, yes: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
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
    if output == CliOutput::People {
        log_in(harness, &left(&survey, &folder, program)?)?;
    }
    let failed = |error: HarnessSetupError| CliFailure::new(CliExit::Refused, "setup_failed", described(&error));
    let setup = harness.setup(&survey.scene(harness, &folder)).map_err(failed)?;
    if output == CliOutput::People {
        setup.changes.iter().for_each(show);
    }
    let is_changed = !setup.changes.is_empty();
    if is_changed {
        let keys = if setup.changes.len() == 1 { "this key" } else { "these keys" };
        confirm(yes, &format!("Write {keys}?"))?;
        setup.write().map_err(failed)?;
    }
    let mut left = left(&survey, &folder, program)?;
    left.iter_mut()
        .for_each(|look| look.cure = look.cure.take().map(|cure| by_hand(harness, look.look, cure, &folder)));
    let changes: Vec<Value> = setup.changes.iter().map(document).collect();
    let started = if left.is_empty() { start_again(program)? } else { Vec::new() };
    output.show(&json!({ "changed": changes, "left": left, "started": started }), || {
        match (is_changed, left.is_empty()) {
            (true, _) => say(&format!("`{program}` is set up for {}", folder.display())),
            (false, true) => say(&format!("there is nothing to set up for `{program}` in {}", folder.display())),
            (false, false) => {}
        }
        for look in &left {
            say(&format!("left for you: {}", look.why));
            look.cure.iter().for_each(|cure| say(&format!("  → {cure}")));
        }
        started.iter().for_each(|task| say(&format!("task {task} starts again")));
    })?;
    Ok(if left.is_empty() { CliExit::Done } else { CliExit::Held })
}

/// What would still refuse a start.
fn left(survey: &HarnessSurvey, folder: &Path, program: &str) -> Result<Vec<HarnessLookReport>, CliFailure> {
    let reports = survey.reports(folder, Some(program))?;
    Ok(reports.into_iter().flat_map(|it| it.looks).filter(|look| look.answer == "no").collect())
}

/// What is left for the person after this command: it does not name itself again.
fn by_hand(harness: &Harness, look: &str, cure: String, folder: &Path) -> String {
    let program = &harness.name;
    if !cure.contains("sluice harness setup") {
        return cure;
    }
    let login = harness.login_command().filter(|_| look == HarnessLook::Login.word());
    let way = match (login, cure.split_once(", or ")) {
        (Some(words), Some((_, other))) => format!("run `{}` in a terminal, or {other}", words.join(" ")),
        (Some(words), None) => format!("run `{}` in a terminal", words.join(" ")),
        (None, _) => format!("run `{program}` once in {} and answer what it asks", folder.display()),
    };
    format!("{way}; then run this command again")
}

/// Offers the login of the program itself, where there is a person to log in.
fn log_in(harness: &Harness, left: &[HarnessLookReport]) -> Result<(), CliFailure> {
    let is_missing = left.iter().any(|look| look.look == HarnessLook::Login.word());
    let Some((program, words)) = harness.login_command().and_then(<[String]>::split_first) else { return Ok(()) };
    if !is_missing || !std::io::stdin().is_terminal() {
        return Ok(());
    }
    let command = format!("{program} {}", words.join(" "));
    if !agrees(&format!("`{}` is not logged in. Run `{command}` now?", harness.name)) {
        return Ok(());
    }
    let failed = |why: String| CliFailure::new(CliExit::Refused, "login_failed", format!("`{command}`: {why}"));
    let ended = Command::new(program).args(words).status().map_err(|error| failed(error.to_string()))?;
    if ended.success() { Ok(()) } else { Err(failed(ended.to_string())) }
}

/// Starts the tasks again that this program could not be started for. One that meets something else says so itself.
fn start_again(program: &str) -> Result<Vec<String>, CliFailure> {
    let refused = format!("`{program}` cannot be started");
    let engine = connect()?;
    let inbox: Inbox = engine.get("/v1/inbox")?;
    let mut started = Vec::new();
    for waiting in inbox.questions {
        let (Some(task), true) = (waiting.task, waiting.text.contains(&refused)) else { continue };
        let again = waiting.options.iter().find(|option| ["respawn", "retry"].contains(&option.as_str()));
        if let (AttentionCause::CannotStart, Some(option)) = (waiting.reason, again) {
            let answer = json!({ "id": waiting.id, "option": option });
            // Another person may have been quicker.
            if engine.post::<Value>("/v1/inbox", &answer).is_ok() {
                started.push(task);
            }
        }
    }
    Ok(started)
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

fn confirm(yes: bool, question: &str) -> Result<(), CliFailure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let message =
            "`harness setup` needs your confirmation, and there is no terminal to ask on; nothing was changed";
        return Err(CliFailure::new(CliExit::Usage, "not_confirmed", message).hint("add --yes to confirm"));
    }
    match agrees(question) {
        true => Ok(()),
        false => Err(CliFailure::new(CliExit::Refused, "not_confirmed", "you did not confirm; nothing was changed")),
    }
}

fn agrees(question: &str) -> bool {
    let _ = write!(anstream::stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    let _ = std::io::stdin().read_line(&mut answer);
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
