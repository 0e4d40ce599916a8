//! What the steps of a run produced, as files: `$SLUICE_HOME/evidence/RUN/`, for as long as the run is kept.
//!
//! Each part of an attempt has a folder with what it was told and what it gave; at the end `verdict.json` says what came
//! of the run, by which definition and at which commit. What cannot be written is noted and fails nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sluice_core::machine::Moment;
use sluice_core::run::{Job, Part, Perform, Report};
use sluice_engine::host::Clock;
use sluice_worker::taskfile;

use crate::clock::written;
use crate::ground::Ground;
use crate::projects::{described, open};
use crate::runs::{SeenRun, Setting, performance};
use crate::view_run::{self, plain};

/// Bytes of one text that are kept.
const LONGEST: usize = 1 << 20;
/// Of a fan-out, only the first so many items have a folder of their own; the run keeps what all of them gave.
const MOST_ITEMS: u32 = 1000;

/// The folder of a run.
pub fn folder(ground: &Ground, run: &str) -> PathBuf {
    ground.places.evidence().join(run)
}

/// The record of one performance, from its beginning to its end.
pub(crate) struct Record {
    folder: Option<PathBuf>,
    began: Moment,
}

/// A performance begins: what it is told is kept.
pub(crate) fn begin(ground: &Ground, setting: &Setting, wanted: &Perform) -> Record {
    let began = ground.clock.now();
    let Some(folder) = place(ground, setting, wanted) else { return Record { folder: None, began } };
    let (name, text) = match &wanted.job {
        Job::Agent { prompt } | Job::Arbiter { prompt } => ("prompt.md", prompt.clone()),
        Job::Script(script) | Job::Gate(script) => ("command.sh", script.script.clone()),
        Job::Task { summary, .. } => ("task.md", summary.clone()),
    };
    let kept = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join(name), cut(&text)));
    match kept {
        Ok(()) => Record { folder: Some(folder), began },
        Err(error) => {
            ground.log.line(&format!("no evidence is kept in {}: {error}", folder.display()));
            Record { folder: None, began }
        }
    }
}

/// The record of a performance that began at an earlier moment: nobody has held it since.
pub(crate) fn resumed(ground: &Ground, setting: &Setting, wanted: &Perform, began: Moment) -> Record {
    Record { began, ..begin(ground, setting, wanted) }
}

impl Record {
    /// It has ended: what it gave is kept.
    pub(crate) fn end(self, ground: &Ground, setting: &Setting, wanted: &Perform, report: &Report) {
        let Some(folder) = self.folder else { return };
        let (outcome, error) = match report {
            Report::Completed(outcome) => (outcome, None),
            Report::Failed { error, outcome, .. } => (outcome, Some(error)),
        };
        let output = outcome.output.to_text();
        let stderr = outcome.stderr.clone().unwrap_or_default();
        let result = json!({
            "run": setting.id,
            "step": setting.plan.recipe.step(wanted.step).name.as_str(),
            "type": setting.plan.recipe.step(wanted.step).work.kind(),
            "role": wanted.role.to_string(),
            "attempt": wanted.attempt,
            "part": wanted.part.to_string(),
            "status": if error.is_none() { "completed" } else { "failed" },
            "summary": outcome.summary,
            "result": outcome.result,
            "output": plain(&outcome.output),
            "exit_code": outcome.exit_code,
            "harness": ground.program_of(&performance(&setting.id, wanted.step, wanted.attempt, wanted.part)),
            "usage": outcome.usage.as_deref().map(view_run::usage),
            "error": error,
            "started_at": written(self.began.0),
            "finished_at": written(ground.clock.now().0),
        });
        let texts = [("output.txt", output.as_str()), ("stderr.txt", stderr.as_str())];
        let texts = texts.iter().filter(|(_, text)| !text.is_empty());
        let kept = texts
            .map(|(name, text)| std::fs::write(folder.join(name), cut(text)))
            .chain([std::fs::write(folder.join("result.json"), format!("{result:#}\n"))])
            .collect::<std::io::Result<()>>();
        if let Err(error) = kept {
            ground.log.line(&format!("the evidence in {} is not complete: {error}", folder.display()));
        }
    }
}

fn place(ground: &Ground, setting: &Setting, wanted: &Perform) -> Option<PathBuf> {
    let part = match wanted.part {
        Part::Whole => String::new(),
        Part::Item(item) if item >= MOST_ITEMS => return None,
        part @ (Part::Item(_) | Part::Turn(_) | Part::Arbiter(_)) => format!("-{part}"),
    };
    let step = setting.plan.recipe.step(wanted.step).name.as_str();
    let step = format!("{:02}-{step}", wanted.step.0 + 1);
    Some(folder(ground, &setting.id).join(step).join(format!("attempt-{}{part}", wanted.attempt)))
}

/// The beginning of a text, whole letters only.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

/// Writes what came of a run that has ended, unless that has been done.
pub(crate) fn conclude(ground: &Ground, seen: &SeenRun) {
    if seen.state.end.is_none() {
        return;
    }
    let folder = folder(ground, &seen.id);
    let path = folder.join("verdict.json");
    let same =
        |there: Vec<u8>| serde_json::from_slice::<Value>(&there).is_ok_and(|there| there["version"] == seen.version);
    if std::fs::read(&path).is_ok_and(same) {
        return;
    }
    let put = |name: &str, document: &Value| {
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        taskfile::write(&folder.join(name), format!("{document:#}\n").as_bytes()).map_err(|error| described(&error))
    };
    let verdict = verdict(ground, seen);
    // The verdict last: where it is, everything is.
    if let Err(why) = put("run.json", &view_run::run(seen)).and_then(|()| put("verdict.json", &verdict)) {
        ground.log.line(&format!("run {} has no verdict record: {why}", seen.id));
    }
}

fn verdict(ground: &Ground, seen: &SeenRun) -> Value {
    let steps = seen.plan.recipe.steps.iter().zip(&seen.state.steps).rev();
    let judged = steps.filter(|(_, state)| state.word() == "completed").find_map(|(step, state)| {
        let outcome = state.latest.as_ref()?;
        Some((step.name.as_str(), outcome.result.clone()?, outcome.summary.clone()))
    });
    let (step, result, summary) = match judged {
        Some((step, result, summary)) => (Some(step), Some(result), Some(summary)),
        None => (None, None, None),
    };
    json!({
        "run": seen.id,
        "version": seen.version,
        "recipe": seen.plan.recipe.name.as_str(),
        "work_order": Some(&seen.state.given.work_order).filter(|order| !order.is_empty()),
        "status": seen.state.status(),
        "result": result,
        "judged_by": step,
        "summary": summary,
        "definition": ground.tasks.definition(&seen.id).ok(),
        "commit": commit(seen),
        "started_at": written(seen.state.started.0),
        "ended_at": written(seen.card.updated),
    })
}

/// The commit that the run's folder stands on.
fn commit(seen: &SeenRun) -> Option<String> {
    let root = Path::new(&seen.state.given.origin.root);
    if !root.join(".git").exists() {
        return None;
    }
    let repository = open(root, None).ok()?;
    repository.standing(Path::new(seen.folder())).ok().map(|(commit, _)| commit)
}

/// Removes the evidence of a run that is forgotten, and what its scripts printed.
pub(crate) fn forget(ground: &Ground, run: &str) {
    let _ = std::fs::remove_dir_all(folder(ground, run));
    let printed = ground.places.printed();
    for name in names(&printed).filter(|name| run_of(name) == Some(run)) {
        let _ = std::fs::remove_file(printed.join(name));
    }
}

/// Removes the evidence of runs that the store does not know any more.
pub(crate) fn sweep(ground: &Ground) {
    let printed: BTreeSet<String> =
        names(&ground.places.printed()).filter_map(|name| run_of(&name).map(str::to_owned)).collect();
    for run in names(&ground.places.evidence()).collect::<BTreeSet<String>>().union(&printed) {
        if matches!(ground.tasks.load_run(run), Ok(None)) {
            forget(ground, run);
        }
    }
}

/// The names in a folder.
pub(crate) fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let listing = std::fs::read_dir(folder).into_iter().flatten();
    listing.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

/// The run whose script printed into the file of this name.
fn run_of(name: &str) -> Option<&str> {
    name.split_once('.').map(|(run, _)| run).filter(|run| !run.is_empty())
}
