//! What the steps of a run produced: `$SLUICE_HOME/evidence/RUN.jsonl`, for as long as the run is kept.
//!
//! One file, a line each: what every part of an attempt was told (`told`) and what it gave (`gave`); at the end what came of
//! the run, by which definition and at which commit (`verdict`). A folder for each attempt was rejected: four files and
//! 16 KiB for a run of one step. What cannot be written is noted and fails nothing.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_api::shown::{RunStatus, StepUsage};
use sluice_core::id::RunId;
use sluice_core::machine::Moment;
use sluice_core::recipe::StepWorkspace;
use sluice_core::run::{AttemptPart, AttemptReport, Perform, RunJob, StepStatusKind};
use sluice_engine::host::EngineClock;
use sluice_os::git::checked_out_commit;
use sluice_worker::value::plain;

use crate::background::locked;
use crate::home::Home;
use crate::perform::ProgramNote;
use crate::read::runs::{RunFacts, RunSnapshot, performance};
use crate::read::view_run;
use crate::settings::clock::written;
use crate::settings::projects::open;

/// Bytes of one text that are kept.
const LONGEST: usize = 1 << 20;
/// Of a fan-out, only the first so many items are kept here; the run keeps what all of them gave.
const MOST_ITEMS: u32 = 1000;
/// Bytes of the end of a file in which its last line is looked for.
const LAST: u64 = 1 << 20;
const ENDING: &str = ".jsonl";

/// One line at a time. The file of the last stays open: the next line is most often of the same run.
static WRITING: Mutex<Option<OpenEvidence>> = Mutex::new(None);

struct OpenEvidence {
    path: PathBuf,
    file: File,
}

impl OpenEvidence {
    /// Opens the file of a run. What an engine that died left of a line stays a line by itself.
    fn open(path: PathBuf) -> std::io::Result<OpenEvidence> {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(&path)?;
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(-1)).is_ok() {
            file.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n")?;
        }
        Ok(OpenEvidence { path, file })
    }

    /// Whether the file was not removed.
    fn is_there(&self) -> bool {
        self.file.metadata().is_ok_and(|about| about.nlink() > 0)
    }
}

/// The performances under way whose beginning is written.
static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn file(home: &Home, run: &RunId) -> PathBuf {
    home.context.places.evidence().join(format!("{run}{ENDING}"))
}

#[derive(Serialize)]
struct EvidenceSubject<'a> {
    kind: &'static str,
    run: &'a str,
    step: &'a str,
    #[serde(rename = "type")]
    work: &'static str,
    role: String,
    attempt: u32,
    part: String,
}

#[derive(Serialize)]
struct ToldLine<'a> {
    #[serde(flatten)]
    about: EvidenceSubject<'a>,
    #[serde(flatten)]
    text: ToldText<'a>,
    started_at: String,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum ToldText<'a> {
    Prompt(&'a str),
    Command(&'a str),
    Task(&'a str),
}

#[derive(Serialize)]
struct GaveLine<'a> {
    #[serde(flatten)]
    about: EvidenceSubject<'a>,
    status: RunStatus,
    summary: &'a str,
    result: Option<&'a str>,
    output: Value,
    stderr: &'a str,
    exit_code: Option<i32>,
    harness: Option<ProgramNote>,
    usage: Option<StepUsage>,
    error: Option<&'a str>,
    started_at: String,
    finished_at: String,
}

#[derive(Serialize)]
struct VerdictLine<'a> {
    kind: &'static str,
    run: &'a str,
    version: u64,
    recipe: &'a str,
    work_order: Option<&'a str>,
    status: &'static str,
    result: Option<&'a str>,
    judged_by: Option<&'a str>,
    summary: Option<&'a str>,
    definition: Option<String>,
    commit: Option<String>,
    started_at: String,
    ended_at: String,
}

const VERDICT: &str = "verdict";

/// What a last line is looked at for.
#[derive(Deserialize)]
struct LastLine {
    kind: String,
    version: Option<u64>,
    commit: Option<String>,
}

pub(crate) struct EvidenceRecord {
    is_kept: bool,
    began: Moment,
}

/// A performance begins: what it is told is kept.
pub(crate) fn begin(home: &Home, setting: &RunFacts, wanted: &Perform) -> EvidenceRecord {
    let record = resumed(wanted, home.clock.now());
    // Asked for again, because the store was away for instance, it is told the same.
    let name = performance(&setting.id, wanted.step, wanted.attempt, wanted.part);
    if !record.is_kept || !locked(&TOLD).insert(name) {
        return record;
    }
    let text = match &wanted.job {
        RunJob::Agent { prompt, .. } | RunJob::Arbiter { prompt, .. } => ToldText::Prompt(cut(prompt)),
        RunJob::Script(script) | RunJob::Gate(script) => ToldText::Command(cut(&script.script)),
        RunJob::Task { summary, .. } => ToldText::Task(cut(summary)),
    };
    let told = ToldLine { about: about("told", setting, wanted), text, started_at: written(record.began.0) };
    match append(home, &setting.id, &told) {
        Ok(()) => record,
        Err(error) => {
            tracing::warn!(run = setting.id.as_str(), "no evidence is kept: {error}");
            EvidenceRecord { is_kept: false, ..record }
        }
    }
}

/// The record of a performance that began at an earlier moment: nobody has held it since, and what it was told is kept.
pub(crate) fn resumed(wanted: &Perform, began: Moment) -> EvidenceRecord {
    EvidenceRecord { is_kept: !matches!(wanted.part, AttemptPart::Item(item) if item >= MOST_ITEMS), began }
}

fn about<'a>(kind: &'static str, setting: &'a RunFacts, wanted: &Perform) -> EvidenceSubject<'a> {
    let step = setting.plan.recipe.step(wanted.step);
    EvidenceSubject {
        kind,
        run: setting.id.as_str(),
        step: step.name.as_str(),
        work: step.work.kind(),
        role: wanted.role.to_string(),
        attempt: wanted.attempt,
        part: wanted.part.to_string(),
    }
}

impl EvidenceRecord {
    /// It has ended: what it gave is kept.
    pub(crate) fn end(self, home: &Home, setting: &RunFacts, wanted: &Perform, report: &AttemptReport) {
        if !self.is_kept {
            return;
        }
        let name = performance(&setting.id, wanted.step, wanted.attempt, wanted.part);
        locked(&TOLD).remove(&name);
        let (outcome, error) = match report {
            AttemptReport::Completed(outcome) => (outcome, None),
            AttemptReport::Failed { error, outcome, .. } => (outcome, Some(error.as_str())),
        };
        let gave = GaveLine {
            about: about("gave", setting, wanted),
            status: if error.is_none() { RunStatus::Completed } else { RunStatus::Failed },
            summary: &outcome.summary,
            result: outcome.result.as_deref(),
            output: plain(&outcome.output),
            stderr: cut(outcome.stderr.as_deref().unwrap_or_default()),
            exit_code: outcome.exit_code,
            harness: home.context.program_of(&name),
            usage: outcome.usage.as_deref().map(view_run::usage),
            error,
            started_at: written(self.began.0),
            finished_at: written(home.clock.now().0),
        };
        if let Err(error) = append(home, &setting.id, &gave) {
            tracing::warn!(run = setting.id.as_str(), "the evidence is not complete: {error}");
        }
    }
}

fn append(home: &Home, run: &RunId, line: &impl Serialize) -> std::io::Result<()> {
    let line = written_line(home, line)?;
    write(&mut locked(&WRITING), file(home, run), &line)
}

fn written_line(home: &Home, line: &impl Serialize) -> std::io::Result<String> {
    Ok(format!("{}\n", home.context.clean().value(&serde_json::to_value(line)?)))
}

/// Adds a line to the file of a run.
fn write(last: &mut Option<OpenEvidence>, path: PathBuf, line: &str) -> std::io::Result<()> {
    let open = match last.take().filter(|open| open.path == path && open.is_there()) {
        Some(open) => open,
        None => OpenEvidence::open(path)?,
    };
    // Where it fails, the next line begins anew.
    last.insert(open).file.write_all(line.as_bytes()).inspect_err(|_| *last = None)
}

fn last_line(path: &Path) -> Option<LastLine> {
    let (_, bytes) = tail(path, LAST).ok()?;
    let line = bytes.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
    serde_json::from_slice(line).ok()
}

/// The commit that a run had come to when it ended, as far as it was written down.
pub(crate) fn last_commit(home: &Home, run: &RunId) -> Option<String> {
    last_line(&file(home, run)).filter(|line| line.kind == VERDICT)?.commit
}

/// The size of a file, and the last bytes of it, so many at most.
pub(crate) fn tail(path: &Path, most: u64) -> std::io::Result<(u64, Vec<u8>)> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(size.saturating_sub(most)))?;
    file.read_to_end(&mut bytes)?;
    Ok((size, bytes))
}

/// The beginning of a text, whole letters only.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

/// Writes what came of a run that has ended, unless that has been done.
pub(crate) fn conclude(home: &Home, seen: &RunSnapshot) {
    if seen.state.end.is_none() {
        return;
    }
    let is_it = |line: LastLine| line.kind == VERDICT && line.version == Some(seen.version);
    let is_written = || last_line(&file(home, &seen.id)).is_some_and(is_it);
    if is_written() {
        return;
    }
    // It may ask git, and every step of every run writes here: so it is made before the lock is taken.
    let verdict = written_line(home, &verdict(home, seen));
    let mut last = locked(&WRITING);
    // Several may look at a run that has just ended.
    if is_written() {
        return;
    }
    if let Err(error) = verdict.and_then(|line| write(&mut last, file(home, &seen.id), &line)) {
        tracing::warn!(run = seen.id.as_str(), "it has no verdict record: {error}");
    }
    *last = None;
}

fn verdict<'a>(home: &Home, seen: &'a RunSnapshot) -> VerdictLine<'a> {
    let steps = seen.plan.recipe.steps.iter().zip(&seen.state.steps).rev();
    let judged = steps.filter(|(_, state)| state.kind() == StepStatusKind::Completed).find_map(|(step, state)| {
        let outcome = state.latest.as_ref()?;
        Some((step.name.as_str(), outcome.result.as_deref()?, outcome.summary.as_str()))
    });
    VerdictLine {
        kind: VERDICT,
        run: seen.id.as_str(),
        version: seen.version,
        recipe: seen.plan.recipe.name.as_str(),
        work_order: Some(seen.state.given.work_order.as_str()).filter(|order| !order.is_empty()),
        status: seen.state.status(),
        result: judged.map(|(_, result, _)| result),
        judged_by: judged.map(|(step, ..)| step),
        summary: judged.map(|(_, _, summary)| summary),
        definition: home.tasks.definition(&seen.id).ok(),
        commit: commit(seen),
        started_at: written(seen.state.started.0),
        ended_at: written(seen.card.updated),
    }
}

fn commit(seen: &RunSnapshot) -> Option<String> {
    let root = Path::new(&seen.state.given.origin.root);
    // A run that worked in a scratch folder alone has nothing to do with the repository.
    if !root.join(".git").exists() || seen.plan.recipe.working(|it| it != StepWorkspace::Scratch).is_none() {
        return None;
    }
    let folder = Path::new(seen.folder());
    checked_out_commit(folder).or_else(|| open(root, None).ok()?.head(folder).ok())
}

/// Removes the evidence of a run that is forgotten, and what its scripts printed.
pub(crate) fn forget(home: &Home, run: &RunId) {
    remove(home, run.as_str());
}

/// Removes what is called like the evidence of this run.
fn remove(home: &Home, run: &str) {
    let _ = std::fs::remove_file(home.context.places.evidence().join(format!("{run}{ENDING}")));
    // As earlier versions wrote it.
    let _ = std::fs::remove_dir_all(home.context.places.evidence().join(run));
    let printed = home.context.places.printed();
    for name in names(&printed).filter(|name| run_of(name) == Some(run)) {
        let _ = std::fs::remove_file(printed.join(name));
    }
}

/// Removes the evidence of runs that the store does not know any more.
pub(crate) fn sweep(home: &Home) {
    let printed: BTreeSet<String> =
        names(&home.context.places.printed()).filter_map(|name| run_of(&name).map(str::to_owned)).collect();
    let kept = names(&home.context.places.evidence()).map(|name| name.strip_suffix(ENDING).unwrap_or(&name).to_owned());
    for run in kept.collect::<BTreeSet<String>>().union(&printed) {
        if matches!(home.tasks.run_named(run), Ok(None)) {
            remove(home, run);
        }
    }
}

pub(crate) fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let listing = std::fs::read_dir(folder).into_iter().flatten();
    listing.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

/// The run whose script printed into the file of this name.
fn run_of(name: &str) -> Option<&str> {
    name.split_once('.').map(|(run, _)| run).filter(|run| !run.is_empty())
}
