//! The scratch folders of runs, `$SLUICE_HOME/scratch/RUN`, in which steps with `workspace: none` work. One is made when the
//! first such step of its run begins; no git is needed for it.
//!
//! A folder with files in it outlives its run for a while, as checkouts do.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sluice_core::recipe::StepWorkspace;
use sluice_core::run::RunParameters;

use crate::home::Home;
use crate::home::worktrees::{YOUNG, is_older, is_over};
use crate::perform::outside;
use crate::read::runs::RunFacts;
use crate::undone::PerformError;

/// The folder on this machine in which such a step works; a scratch folder is made, unless it is there.
pub(crate) fn folder(setting: &RunFacts, workspace: StepWorkspace) -> Result<PathBuf, PerformError> {
    let folder = PathBuf::from(setting.folder_of(workspace));
    match workspace {
        StepWorkspace::Scratch => outside::make(&folder)?,
        StepWorkspace::Run | StepWorkspace::Own | StepWorkspace::Here => {}
    }
    Ok(folder)
}

/// Removes the scratch folder of a run that has ended, if nothing is in it. Otherwise it stays for a while ([`sweep`]).
pub(crate) fn give_back(given: &RunParameters) -> Result<(), PerformError> {
    if !given.scratch.starts_with('/') {
        return Ok(()); // it has none, or not on this machine
    }
    let folder = Path::new(&given.scratch);
    match std::fs::remove_dir(folder) {
        Err(error) if ![ErrorKind::NotFound, ErrorKind::DirectoryNotEmpty].contains(&error.kind()) => {
            Err(PerformError::at("cannot remove", folder)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The scratch folders that are there, each with the id of its run.
pub(crate) fn found(home: &Home) -> Vec<(String, PathBuf)> {
    let folders = std::fs::read_dir(home.context.places.scratches()).into_iter().flatten().flatten();
    let folders = folders.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
    let named = folders.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    let mut found: Vec<(String, PathBuf)> = named.filter(|(name, _)| !name.starts_with('.')).collect();
    found.sort();
    found
}

/// Removes a scratch folder, if `may_go` still says so when no step can begin there any more. Whether it is gone.
pub(crate) fn remove(folder: &Path, may_go: impl FnOnce() -> bool) -> Result<bool, PerformError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let doomed = folder.with_file_name(format!(".removed-{name}"));
    std::fs::rename(folder, &doomed).map_err(PerformError::at("cannot move", folder))?;
    if !may_go() {
        std::fs::rename(&doomed, folder).map_err(PerformError::at("cannot move", &doomed))?;
        return Ok(false);
    }
    std::fs::remove_dir_all(&doomed).map_err(PerformError::at("cannot remove", &doomed)).map(|()| true)
}

/// Removes the scratch folders of runs that ended long enough ago, and as old ones whose run the store does not know. What
/// failed stays, as it may be tried again, and so does a folder in which an agent lives.
pub(crate) fn sweep(home: &Home) {
    let folders = std::fs::read_dir(home.context.places.scratches()).into_iter().flatten();
    for folder in folders.filter_map(|entry| Some(entry.ok()?.path())) {
        if let Err(undone) = sweep_one(home, &folder) {
            tracing::warn!("{} stays: {undone}", folder.display());
        }
    }
}

fn sweep_one(home: &Home, folder: &Path) -> Result<(), PerformError> {
    let Some(run) = folder.file_name().and_then(|name| name.to_str()) else { return Ok(()) };
    let stays = home.context.config().workspaces.keep;
    let goes = match home.tasks.run_named(run)? {
        Some(seen) => is_over(home, &seen, stays),
        None => is_older(folder, stays.max(YOUNG)),
    };
    let has_agent = || home.context.sessions.at_work().iter().any(|(_, place)| place.starts_with(folder));
    match goes && !has_agent() {
        true => std::fs::remove_dir_all(folder).map_err(PerformError::at("cannot remove", folder)),
        false => Ok(()),
    }
}
