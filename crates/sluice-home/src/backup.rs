//! A copy of the store, and putting one back.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sluice_api::problem::{Problem, Status};
use sluice_store::{Store, StoreError};

use crate::lock::{Lock, NoLock};
use crate::places::Places;
use crate::projects::described;

/// Letters of a file's name that are told again.
const LONGEST_NAME: usize = 1000;

/// Copies the store to a file while it is used. A server's store is copied with the server's own means.
pub fn copy(store: &Store, file: &Path) -> Result<(), Problem> {
    // It is taken first: whatever is wrong with the place is the asker's to mend, and not a fault of the store.
    // Nobody else reads it: it holds what the home keeps from others.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(|error| {
        let name: String = file.display().to_string().chars().take(LONGEST_NAME).collect();
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            let message = format!("{name} is there already");
            return Problem::new(Status::Refused, "exists", message).hint("name a file that is not there");
        }
        Problem::bad_request(format!("{name} cannot be written: {error}")).hint("name a file in a folder of yours")
    })?;
    store.backup(file).map_err(|error| {
        let _ = std::fs::remove_file(file);
        failed(&error)
    })
}

/// Opens a copy. It must be a store, and whole, before anything is moved.
pub fn look(file: &Path) -> Result<Store, Problem> {
    if !file.is_file() {
        return Err(Problem::not_found(format!("there is no file {}", file.display())));
    }
    let copied = Store::open(&format!("sqlite:{}", file.display())).map_err(|error| failed(&error))?;
    copied.check().map_err(|error| failed(&error))?;
    Ok(copied)
}

/// Puts a copy in the place of the store. The store before it is kept beside it; gives where.
pub fn restore(places: &Places, file: &Path) -> Result<Option<String>, Problem> {
    let _lock = Lock::take(&places.lock()).map_err(|no| match no {
        NoLock::Held { pid } => {
            let who = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            let message = format!("an engine{who} uses this home");
            Problem::new(Status::Refused, "engine_running", message).hint("`sluice stop` ends it")
        }
        NoLock::Broken(error) => Problem::fault(format!("{}: {error}", places.lock().display())),
    })?;
    let copied = look(file)?;
    let present = places.home().join("store.db");
    let next = places.home().join("store.db.restoring");
    let _ = std::fs::remove_file(&next);
    copied.backup(&next).map_err(|error| failed(&error))?;
    drop(copied);
    let moved = |error: std::io::Error| Problem::fault(format!("the store cannot be replaced: {error}"));
    let aside = present.exists().then(|| free(&present));
    if let Some(aside) = &aside {
        for end in ["", "-wal", "-shm"] {
            let from = PathBuf::from(format!("{}{end}", present.display()));
            if from.exists() {
                std::fs::rename(&from, format!("{}{end}", aside.display())).map_err(moved)?;
            }
        }
    }
    std::fs::rename(&next, &present).map_err(moved)?;
    Ok(aside.map(|path| path.display().to_string()))
}

/// A name beside this one that is not taken.
fn free(path: &Path) -> PathBuf {
    let names = (1u32..).map(|number| PathBuf::from(format!("{}.before-restore-{number}", path.display())));
    names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| path.with_extension("before"))
}

fn failed(error: &StoreError) -> Problem {
    match error {
        StoreError::NotAStore { .. } | StoreError::TooNew { .. } | StoreError::Corrupt { .. } => {
            Problem::new(Status::Refused, "unusable_copy", described(error))
        }
        other => Problem::fault(described(other)),
    }
}
