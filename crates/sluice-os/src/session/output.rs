//! Reading what an agent printed, while it prints and afterwards.
//!
//! The whole is counted from its first byte. What did not fit into the limit is missing between the beginning and the
//! end, and a reader is told.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Which of a session's two streams. In a terminal there is only the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStream {
    Output,
    Errors,
}

impl SessionStream {
    /// What the names of its files begin with.
    fn name(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Errors => "errors",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionChunk {
    /// Where it begins. Later than what was asked for if bytes are missing there.
    pub start: u64,
    pub bytes: Vec<u8>,
}

impl SessionChunk {
    pub fn next(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

pub(crate) fn head_file(folder: &Path, stream: SessionStream) -> PathBuf {
    folder.join(format!("{}.log", stream.name()))
}

pub(crate) fn tail_file(folder: &Path, stream: SessionStream, start: u64) -> PathBuf {
    folder.join(format!("{}.{start:020}.log", stream.name()))
}

/// The files of a stream with the place of their first byte and their length, in order.
fn files(folder: &Path, stream: SessionStream) -> io::Result<Vec<(u64, u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let file_name = entry.file_name();
        let Some(rest) = file_name.to_str().and_then(|name| name.strip_prefix(stream.name())) else { continue };
        let start = match rest.strip_suffix(".log") {
            Some("") => Some(0),
            Some(number) => number.strip_prefix('.').and_then(|number| number.parse().ok()),
            None => None,
        };
        if let (Some(start), Ok(metadata)) = (start, entry.metadata()) {
            found.push((start, metadata.len(), entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

/// Up to `limit` bytes from a place on. An empty piece means that nothing more has come yet.
pub(super) fn read_from(folder: &Path, stream: SessionStream, from: u64, limit: usize) -> io::Result<SessionChunk> {
    // A file of the end can be taken away while it is read: look again, the next one begins later.
    for _ in 0..3 {
        let files = files(folder, stream)?;
        let Some((start, _, path)) = files.into_iter().find(|(start, length, _)| start + length > from) else {
            return Ok(SessionChunk { start: from, bytes: Vec::new() });
        };
        let begin = from.max(start);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(begin - start))?;
        let mut bytes = Vec::new();
        file.take(limit as u64).read_to_end(&mut bytes)?;
        return Ok(SessionChunk { start: begin, bytes });
    }
    Ok(SessionChunk { start: from, bytes: Vec::new() })
}

pub(super) fn read_tail(folder: &Path, stream: SessionStream, limit: usize) -> io::Result<SessionChunk> {
    let end = files(folder, stream)?.last().map_or(0, |(start, length, _)| start + length);
    let mut tail = read_from(folder, stream, end.saturating_sub(limit as u64), limit)?;
    loop {
        let more = read_from(folder, stream, tail.next(), limit.saturating_sub(tail.bytes.len()))?;
        if more.bytes.is_empty() {
            return Ok(tail);
        }
        if more.start == tail.next() {
            tail.bytes.extend(more.bytes);
        } else {
            tail = more; // bytes are missing in between: only what comes after them is the end
        }
    }
}

/// How many bytes both streams have had.
pub(super) fn printed(folder: &Path) -> u64 {
    let end =
        |stream| files(folder, stream).ok().and_then(|files| files.last().map(|(start, length, _)| start + length));
    [SessionStream::Output, SessionStream::Errors].into_iter().filter_map(end).sum()
}

pub(super) fn last_change(folder: &Path) -> Option<SystemTime> {
    let both = [SessionStream::Output, SessionStream::Errors].into_iter();
    let files = both.flat_map(|stream| files(folder, stream).unwrap_or_default());
    files.filter_map(|(_, _, path)| path.metadata().ok()?.modified().ok()).max()
}
