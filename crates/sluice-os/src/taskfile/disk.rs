//! TASK.md on disk: read without following links or waiting for anybody, written whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;
use thiserror::Error;

use crate::file::{Durability, FileDraft};

/// Bytes of a TASK.md that are read.
pub const LARGEST_FILE: u64 = 8 << 20;
/// How often a file is read again because it changed meanwhile.
const MOST_READS: usize = 3;

/// How long a writer that has emptied a file may take to write it anew.
const REWRITTEN_WITHIN: Duration = Duration::from_millis(200);

#[derive(Debug, Error)]
pub enum TaskFileError {
    #[error("{} is not there. The engine writes it anew with the task's next move, from the last body it read", path.display())]
    Missing { path: PathBuf },
    #[error("{} is a symbolic link, and TASK.md must be a file of its own. Put a copy in its place", path.display())]
    Link { path: PathBuf },
    #[error("{} is {what}, not a file. Move it away", path.display())]
    NotAFile { path: PathBuf, what: &'static str },
    #[error("{} is larger than {} MiB. Shorten it: move what is long into a file of the repository", path.display(), LARGEST_FILE >> 20)]
    TooLarge { path: PathBuf },
    #[error("{} cannot be read: {source}. See that it and its folder belong to you", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} cannot be written: {source}. See that its folder is there, belongs to you and has space", path.display())]
    Unwritable { path: PathBuf, source: std::io::Error },
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

/// Writes `bytes` to `path`: a reader sees the old file or the new one, also after a power cut.
///
/// A link in its place is replaced, not followed.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), TaskFileError> {
    put(path, bytes, || true).map(drop)
}

/// Writes `bytes` in place of `before`. `false`: another writer came first, and what it wrote stands there.
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
    if std::fs::symlink_metadata(path).is_ok_and(|there| there.is_dir()) {
        return Err(TaskFileError::NotAFile { path: path.to_owned(), what: "a folder" });
    }
    let put = || {
        let draft = FileDraft::of(path, Durability::Synced)?;
        draft.write(bytes)?;
        if may() { draft.place().map(|()| true) } else { Ok(false) }
    };
    put().map_err(|source| TaskFileError::Unwritable { path: path.to_owned(), source })
}
