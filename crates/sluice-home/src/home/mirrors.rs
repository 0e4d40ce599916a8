//! Processes as files, where they were started: `.work/processes/ID.json` while active, `ID.archive.json` when completed.
//!
//! The store is what counts; these only show it. They are never read, and what cannot be written is noted and fails
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::Serialize;
use sluice_api::shown::Process;
use sluice_core::id::RunId;
use sluice_core::run::RunConclusion;
use sluice_os::file::{Durability, write_atomically};

use crate::background::locked;
use crate::home::Home;
use crate::read::runs::RunSnapshot;
use crate::read::view_process::process;
use crate::read::view_run;
use crate::settings::clock::written;
use crate::settings::projects::open;

/// Where they stand, below the folder that a process was started in.
const FOLDER: &str = ".work/processes";
/// So many versions are remembered; then all files are compared anew.
const MOST_REMEMBERED: usize = 10_000;

/// What has been written, so that nothing is written twice, and nothing old over something new.
#[derive(Default)]
pub(crate) struct Mirrors(Mutex<MirrorState>);

#[derive(Default)]
struct MirrorState {
    versions: BTreeMap<RunId, u64>,
    /// Repositories in which the files are known to be left out.
    left_out: BTreeSet<PathBuf>,
}

impl Mirrors {
    pub(crate) fn write(&self, home: &Home, id: &RunId) {
        if let Ok(Some(seen)) = home.tasks.load_run(id) {
            self.write_as(&seen);
        }
    }

    /// Writes the files of a process as it was seen, unless that or something newer is there.
    pub(crate) fn write_as(&self, seen: &RunSnapshot) {
        if !view_run::is_process(seen) {
            return;
        }
        let mut done = locked(&self.0);
        if done.versions.get(&seen.id).is_some_and(|written| *written >= seen.version) {
            return;
        }
        if let Err(why) = put(seen, &mut done.left_out) {
            tracing::warn!(run = seen.id.as_str(), "the process has no file of its own: {why}");
        }
        if done.versions.len() >= MOST_REMEMBERED {
            done.versions.clear();
        }
        done.versions.insert(seen.id.clone(), seen.version);
    }

    pub(crate) fn has(&self, id: &RunId, number: u64) -> bool {
        let done = locked(&self.0);
        done.versions.get(id).is_some_and(|written| *written >= number)
    }

    pub(crate) fn forget(&self, seen: &RunSnapshot) {
        let mut done = locked(&self.0);
        done.versions.remove(&seen.id);
        let (active, archive) = paths(seen);
        let _ = std::fs::remove_file(active);
        let _ = std::fs::remove_file(archive);
    }
}

fn paths(seen: &RunSnapshot) -> (PathBuf, PathBuf) {
    let folder = Path::new(&seen.state.given.origin.root).join(FOLDER);
    (folder.join(format!("{}.json", seen.id)), folder.join(format!("{}.archive.json", seen.id)))
}

fn put(seen: &RunSnapshot, left_out: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let root = Path::new(&seen.state.given.origin.root);
    if !root.is_dir() {
        return Err(format!("{} is gone", root.display()));
    }
    let (active, archive) = paths(seen);
    match &seen.state.end {
        None | Some(RunConclusion::Failed { .. }) => {
            prepare(root, left_out)?;
            write(&active, &process(seen))?;
            remove(&archive)
        }
        Some(RunConclusion::Completed { .. }) => {
            prepare(root, left_out)?;
            write(&archive, &archived(seen))?;
            remove(&active)
        }
        Some(RunConclusion::Cancelled { .. }) => remove(&active).and_then(|()| remove(&archive)),
    }
}

#[derive(Serialize)]
struct ArchivedProcess {
    #[serde(flatten)]
    process: Process,
    started_at: String,
    completed_at: String,
}

/// A process that is completed, with how long everything took.
fn archived(seen: &RunSnapshot) -> ArchivedProcess {
    let ended = seen.state.steps.iter().filter_map(|step| step.ended).max();
    let completed = ended.map_or(seen.card.updated, |at| at.0.max(seen.state.started.0));
    ArchivedProcess {
        process: process(seen),
        started_at: written(seen.state.started.0),
        completed_at: written(completed),
    }
}

/// Puts a file in place as a whole. It is not waited for until the disk has it: the store has what it says, and files are
/// made up for when an engine starts.
fn write(path: &Path, document: &impl Serialize) -> Result<(), String> {
    let mut text = serde_json::to_vec_pretty(document).map_err(|error| error.to_string())?;
    text.push(b'\n');
    write_atomically(path, &text, Durability::Cached).map_err(|error| format!("{}: {error}", path.display()))
}

fn remove(path: &Path) -> Result<(), String> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {error}", path.display())),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes the folder, inside the root and nowhere else, and has git leave it out: nobody asked for these files there.
fn prepare(root: &Path, left_out: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let folder = root.join(FOLDER);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let real = folder.canonicalize().map_err(failed)?;
    if !real.starts_with(root.canonicalize().map_err(failed)?) {
        return Err(format!("{} leads out of {}", folder.display(), root.display()));
    }
    if root.join(".git").exists() && !left_out.contains(root) {
        leave_out(root)?;
        left_out.insert(root.to_owned());
    }
    Ok(())
}

fn leave_out(root: &Path) -> Result<(), String> {
    let line = format!("/{FOLDER}/");
    let folder = open(root, None).map_err(|problem| problem.message)?.common().join("info");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let path = folder.join("exclude");
    let mut text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    if text.lines().any(|there| there == line) {
        return Ok(());
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("{line}\n"));
    write_atomically(&path, text.as_bytes(), Durability::Synced).map_err(failed)
}
