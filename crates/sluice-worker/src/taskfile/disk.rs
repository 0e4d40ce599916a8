//! TASK.md on disk: read without following links or waiting for anybody, written whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;
use thiserror::Error;

/// Bytes of a TASK.md that are read.
pub const LARGEST_FILE: u64 = 8 << 20;
/// How often a file is read again because it changed meanwhile.
const MOST_READS: usize = 3;

/// How long somebody who has emptied a file may take to write it anew.
const REWRITTEN_WITHIN: Duration = Duration::from_millis(200);

/// What stands between the name of a file and a number in the name of its draft.
pub(crate) const DRAFT: &str = ".sluice-";

/// Why a TASK.md could not be read or written.
#[derive(Debug, Error)]
pub enum TaskFileError {
    /// It is not there.
    #[error("{} is not there. The engine writes it anew with the task's next move, from the last body it read", path.display())]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// It is a link.
    #[error("{} is a symbolic link, and TASK.md must be a file of its own. Put a copy in its place", path.display())]
    Link {
        /// Where.
        path: PathBuf,
    },
    /// It is a folder, or something else that is no file.
    #[error("{} is {what}, not a file. Move it away", path.display())]
    NotAFile {
        /// Where.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It is too large.
    #[error("{} is larger than {} MiB. Shorten it: move what is long into a file of the repository", path.display(), LARGEST_FILE >> 20)]
    TooLarge {
        /// Where.
        path: PathBuf,
    },
    /// The system refused to read it.
    #[error("{} cannot be read: {source}. See that it and its folder belong to you", path.display())]
    Unreadable {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The system refused to write it.
    #[error("{} cannot be written: {source}. See that its folder is there, belongs to you and has space", path.display())]
    Unwritable {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The bytes of the file at `path`.
///
/// An agent writes in place, so a file that changes while it is read is read again.
pub fn read(path: &Path) -> Result<Vec<u8>, TaskFileError> {
    let unreadable = |source| TaskFileError::Unreadable { path: path.to_owned(), source };
    let mut reads = 0;
    loop {
        let file = open(path)?;
        let before = file.metadata().map_err(unreadable)?;
        if !before.is_file() {
            let what = if before.is_dir() { "a folder" } else { "something else" };
            return Err(TaskFileError::NotAFile { path: path.to_owned(), what });
        }
        let mut bytes = Vec::new();
        (&file).take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(TaskFileError::TooLarge { path: path.to_owned() });
        }
        let after = file.metadata().map_err(unreadable)?;
        let mark = |it: &std::fs::Metadata| (it.size(), it.mtime(), it.mtime_nsec());
        reads += 1;
        if mark(&before) == mark(&after) || reads == MOST_READS {
            return Ok(bytes);
        }
    }
}

/// Opens without following a link and without waiting for the other end of a pipe.
fn open(path: &Path) -> Result<File, TaskFileError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let path = path.to_owned();
    OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(&path).map_err(|source| {
        let is_link = source.raw_os_error() == Some(Errno::LOOP.raw_os_error());
        match source.kind() {
            ErrorKind::NotFound => TaskFileError::Missing { path },
            _ if is_link => TaskFileError::Link { path },
            _ => TaskFileError::Unreadable { path, source },
        }
    })
}

/// Writes `bytes` to `path`: whoever reads sees the old file or the new one, also after a power cut.
///
/// A link in its place is replaced, not followed.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), TaskFileError> {
    put(path, bytes, || true).map(drop)
}

/// Writes `bytes` in place of `before`. `false`: somebody else has written meanwhile, and what they wrote stands there.
///
/// An agent that has emptied the file to write it anew is waited for. One that opened it before it was replaced writes
/// into a file without a name; what came there is brought back.
pub fn write_over(path: &Path, before: &[u8], bytes: &[u8]) -> Result<bool, TaskFileError> {
    let unreadable = |source| TaskFileError::Unreadable { path: path.to_owned(), source };
    let replaced = open(path)?;
    if before.is_empty() && !written_in(&replaced, before).map_err(unreadable)?.is_empty() {
        return Ok(false);
    }
    if !put(path, bytes, || read(path).is_ok_and(|there| there == before))? {
        return Ok(false);
    }
    let now = content(&replaced).map_err(unreadable)?;
    let theirs = if now == before { now } else { written_in(&replaced, b"").map_err(unreadable)? };
    if theirs == before || theirs.is_empty() {
        return Ok(true);
    }
    write(path, &theirs).map(|()| false)
}

/// What a file holds once somebody has written more than nothing into it and than `before`; they are not waited for long.
fn written_in(file: &File, before: &[u8]) -> std::io::Result<Vec<u8>> {
    let began = Instant::now();
    loop {
        let now = content(file)?;
        if (!now.is_empty() && now != before) || began.elapsed() > REWRITTEN_WITHIN {
            return Ok(now);
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn content(mut file: &File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(LARGEST_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a draft, and puts it in place if `may` says so then.
fn put(path: &Path, bytes: &[u8], may: impl FnOnce() -> bool) -> Result<bool, TaskFileError> {
    let unwritable = |source| TaskFileError::Unwritable { path: path.to_owned(), source };
    let no_folder = || unwritable(std::io::Error::new(ErrorKind::InvalidInput, "it has no folder"));
    let folder = path.parent().filter(|folder| folder.is_dir()).ok_or_else(no_folder)?;
    let mode = match std::fs::symlink_metadata(path) {
        Ok(there) if there.is_dir() => {
            return Err(TaskFileError::NotAFile { path: path.to_owned(), what: "a folder" });
        }
        Ok(there) if there.is_file() => there.mode() & 0o777,
        Ok(_) | Err(_) => 0o644,
    };
    remove_stale_drafts(folder, path);
    let draft = draft(folder, path);
    let written = write_draft(&draft, bytes, mode).and_then(|()| match may() {
        true => std::fs::rename(&draft, path).map(|()| true),
        false => std::fs::remove_file(&draft).map(|()| false),
    });
    match written {
        Ok(true) => File::open(folder).and_then(|folder| folder.sync_all()).map(|()| true).map_err(unwritable),
        Ok(false) => Ok(false),
        Err(source) => {
            // The draft may not be there; what counts is the first error.
            drop(std::fs::remove_file(&draft));
            Err(unwritable(source))
        }
    }
}

/// Beside the file, because a file can only be put in place inside one file system.
fn draft(folder: &Path, path: &Path) -> PathBuf {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    folder.join(format!("{}{}-{number}", draft_prefix(path), std::process::id()))
}

/// How the name of every draft of a file begins.
fn draft_prefix(path: &Path) -> String {
    let name = path.file_name().map_or_else(Default::default, |name| name.to_string_lossy().into_owned());
    format!(".{name}{DRAFT}")
}

/// Removes what a process that was killed while it wrote has left here. Only one process at a time writes into a home,
/// so a draft of another is nobody's.
fn remove_stale_drafts(folder: &Path, path: &Path) {
    let prefix = draft_prefix(path);
    let own = format!("{prefix}{}-", std::process::id());
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    for name in names.filter_map(|name| name.into_string().ok()) {
        if name.starts_with(&prefix) && !name.starts_with(&own) {
            // Whoever cannot remove it cannot write either, and is told so.
            drop(std::fs::remove_file(folder.join(name)));
        }
    }
}

fn write_draft(draft: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(draft)?;
    file.write_all(bytes)?;
    file.sync_all()
}
