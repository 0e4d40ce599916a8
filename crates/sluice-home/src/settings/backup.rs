//! A copy of the store, and putting one back.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use sluice_api::problem::{Problem, ProblemStatus};
pub use sluice_store::MissingLogPolicy;
use sluice_store::{Store, StoreError};

use crate::settings::attached;
use crate::settings::lock::{FileLock, FileLockError};
use crate::settings::places::HomePaths;
use crate::settings::store::closed;
use crate::undone::described;

/// Characters of a file's name that are told again.
const LONGEST_NAME: usize = 1000;
/// What the name of a copy ends with until it is whole.
const DRAFT: &str = ".sluice-part";
/// What to do about a disk that is full.
const ROOM: &str = "free some space on its disk, or name a file on another";

/// Copies the store to a file while it is used. A server's store is copied with the server's own means. The file has its name
/// when it is whole and durable: what an engine that is killed leaves behind is a draft, which the next copy to it replaces.
pub fn copy(store: &Store, file: &Path) -> Result<(), Problem> {
    let name: String = file.display().to_string().chars().take(LONGEST_NAME).collect();
    let exists = || {
        let message = format!("{name} is there already");
        Problem::new(ProblemStatus::Refused, "exists", message).hint("name a file that is not there")
    };
    let unwritten = |error: std::io::Error| {
        let message = format!("{name} cannot be written: {error}");
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => exists(),
            std::io::ErrorKind::StorageFull => Problem::unavailable(message).hint(ROOM),
            _ => Problem::new(ProblemStatus::Refused, "cannot_write", message).hint("name a file in a folder of yours"),
        }
    };
    if file.symlink_metadata().is_ok() {
        return Err(exists());
    }
    let draft = beside(file, DRAFT);
    // Only its owner reads it: it holds what the home keeps from others. A link or a pipe in its place is not ours.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let taken =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(&draft);
    let held = taken.map_err(unwritten)?;
    // Another may have given the file that was opened its name meanwhile.
    let is_draft = || {
        let (opened, named) = (held.metadata().ok()?, draft.symlink_metadata().ok()?);
        (opened.is_file() && (opened.dev(), opened.ino()) == (named.dev(), named.ino())).then_some(())
    };
    if held.try_lock().is_err() || is_draft().is_none() {
        let message = format!("another backup writes {name} now");
        return Err(
            Problem::new(ProblemStatus::Refused, "exists", message).hint("wait for its end, or name another file")
        );
    }
    held.set_len(0).and_then(|()| held.set_permissions(Permissions::from_mode(0o600))).map_err(unwritten)?;
    BESIDE.iter().for_each(|end| drop(std::fs::remove_file(beside(&draft, end))));
    let made = whole(store).and_then(|()| store.backup(&draft).map_err(|error| failed(&error))).and_then(|()| {
        let copy = Store::open(&format!("sqlite:{}", draft.display())).map_err(|error| failed(&error))?;
        whole(&copy)
    });
    made.and_then(|()| publish(&draft, file).map_err(unwritten)).inspect_err(|_| discard(&draft))
}

/// Gives a draft its name, unless another file has it.
fn publish(draft: &Path, file: &Path) -> std::io::Result<()> {
    File::open(draft)?.sync_all()?;
    match renameat_with(CWD, draft, CWD, file, RenameFlags::NOREPLACE) {
        // Not every file system can.
        Err(Errno::INVAL | Errno::NOSYS) => std::fs::rename(draft, file)?,
        renamed => renamed?,
    }
    file.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// What SQLite puts beside a file.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

fn discard(file: &Path) {
    for end in BESIDE.iter().chain(&[""]) {
        let _ = std::fs::remove_file(beside(file, end));
    }
}

/// A store must be as it was written before a copy of it is called one.
fn whole(store: &Store) -> Result<(), Problem> {
    let found = store.verify().map_err(|error| failed(&error))?;
    let names: Vec<String> = found
        .into_iter()
        .map(|it| format!("{}: {}", it.stream.map_or_else(|| "the store".to_owned(), |it| it.to_string()), it.why))
        .collect();
    match names.is_empty() {
        true => Ok(()),
        false => Err(Problem::damaged(format!("nothing is copied: the store is damaged ({})", names.join("; ")))
            .hint("keep a copy of the whole home as it is; `sluice restore FILE` puts an earlier backup back")),
    }
}

/// Opens a copy. It must be a store, and whole, before anything is moved.
pub fn look(file: &Path, log: MissingLogPolicy) -> Result<Store, Problem> {
    if !file.is_file() {
        return Err(Problem::not_found(format!("there is no file {}", file.display())));
    }
    // SQLite takes an empty file for a new one.
    if file.metadata().is_ok_and(|about| about.len() == 0) {
        return Err(spoilt(format!("{} is empty", file.display())));
    }
    let copied = Store::open_file(file, log).map_err(|error| unusable(file, &error))?;
    let found = copied.verify().map_err(|error| unusable(file, &error))?;
    match found.first() {
        None => Ok(copied),
        Some(damage) => Err(spoilt(format!("{} is damaged ({})", file.display(), damage.why))),
    }
}

/// A copy that nothing can be restored from. What is said is about that file, and not about the store of the home.
fn spoilt(message: String) -> Problem {
    Problem::new(ProblemStatus::Unavailable, "unusable_copy", message).hint(
        "nothing was changed, and the home has the store that it had; name another file that `sluice backup` wrote",
    )
}

fn unusable(file: &Path, error: &StoreError) -> Problem {
    let file = file.display();
    match error {
        StoreError::NotAStore { detail, .. } => spoilt(format!("{file} is not a backup of Sluice ({detail})")),
        StoreError::Corrupt { detail, .. } => spoilt(format!("{file} is damaged ({detail})")),
        StoreError::TooNew { .. } | StoreError::NoLog { .. } => {
            Problem::new(ProblemStatus::Refused, "unusable_copy", described(error))
        }
        other => closed(other),
    }
}

/// What was moved so that a copy could be put in the place of a store.
#[derive(Debug)]
pub struct DisplacedStore {
    /// Where the store is kept that was there before.
    pub aside: Option<String>,
    /// What engines saved of the store and the copy does not hold.
    pub passed_over: Vec<PathBuf>,
}

/// Puts a copy in the place of the store. What was there before is kept beside it.
pub fn restore(places: &HomePaths, file: &Path, log: MissingLogPolicy) -> Result<DisplacedStore, Problem> {
    let _lock = FileLock::take(&places.lock()).map_err(|no| match no {
        FileLockError::Held { pid } => {
            let who = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            let message = format!("an engine{who} uses this home");
            Problem::new(ProblemStatus::Refused, "engine_running", message).hint("`sluice stop` ends it")
        }
        FileLockError::Broken(error) => Problem::fault(format!("{}: {error}", places.lock().display())),
    })?;
    let name = attached::name(places)?.unwrap_or_else(|| places.store());
    let Some(present) = name.strip_prefix("sqlite:").map(PathBuf::from) else {
        let message = format!("the store of this home is {name}, which is restored by the server's own means");
        return Err(Problem::new(ProblemStatus::Refused, "not_a_file", message).hint("see pg_restore"));
    };
    let copied = look(file, log)?;
    let next = beside(&present, ".restoring");
    discard(&next);
    let replaced = copied.backup(&next).map_err(|error| unusable(file, &error)).and_then(|()| {
        drop(copied);
        replace(&next, &present).map_err(|error| {
            let message = format!("the store {} cannot be replaced: {error}", present.display());
            Problem::unavailable(message).hint("the store is as it was; mend that, and restore again")
        })
    });
    let aside = replaced.inspect_err(|_| discard(&next))?;
    let passed_over = attached::pass_over_saved(&present).map_err(|error| {
        let message = format!("what an engine saved of {} cannot be given another name: {error}", present.display());
        Problem::unavailable(message).hint("the store is restored; move the saved files elsewhere")
    })?;
    Ok(DisplacedStore { aside, passed_over })
}

/// Puts a file in the place of the store, by one rename: whenever this is killed there is a store, the old or the new
/// one, and no log of the one beside the file of the other. Gives where the old one is kept.
fn replace(next: &Path, present: &Path) -> std::io::Result<Option<String>> {
    File::open(next)?.sync_all()?;
    let mut kept = None;
    if present.exists() {
        // What is only in its log goes into the file, and the log goes. One that is damaged may refuse; then its log is
        // kept beside it.
        if let Ok(store) = Store::open(&format!("sqlite:{}", present.display())) {
            let _ = store.settle();
        }
        let aside = attached::free_name(present, "before-restore");
        for end in ["", "-wal"] {
            let (from, to) = (beside(present, end), beside(&aside, end));
            if from.exists() {
                std::fs::hard_link(&from, &to).or_else(|_| std::fs::copy(&from, &to).map(drop))?;
            }
        }
        kept = Some(aside.display().to_string());
    }
    for end in ["-wal", "-shm"] {
        match std::fs::remove_file(beside(present, end)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    std::fs::rename(next, present)?;
    if let Some(folder) = present.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(kept)
}

fn beside(path: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", path.display()))
}

fn failed(error: &StoreError) -> Problem {
    match error {
        StoreError::Corrupt { .. } => Problem::damaged(described(error)),
        other => closed(other),
    }
}
