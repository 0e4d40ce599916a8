//! What an agent prints, kept on disk within a limit: its beginning in one file, its end in up to two that take turns.
//!
//! A file of the end is named after the place of its first byte in the whole, so that a reader can ask for a place.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::redact::{RedactionFlow, Redactor};
use crate::session::output::{SessionStream, head_file, tail_file};

pub(super) struct ShimLog {
    folder: PathBuf,
    stream: SessionStream,
    head: u64,
    segment: u64,
    came: u64,
    written: u64,
    flow: RedactionFlow,
    file: File,
    segments: VecDeque<u64>,
}

impl ShimLog {
    /// Keeps the first and the last so many bytes, without secrets.
    pub(super) fn create(
        folder: &Path,
        stream: SessionStream,
        (head, tail): (u64, u64),
        secrets: Redactor,
    ) -> io::Result<Self> {
        let file = create(&head_file(folder, stream))?;
        let segment = (tail / 2).max(1);
        let (folder, flow, segments) = (folder.to_owned(), RedactionFlow::new(secrets), VecDeque::new());
        Ok(Self { folder, stream, head, segment, came: 0, written: 0, flow, file, segments })
    }

    pub(super) fn came(&self) -> u64 {
        self.came
    }

    /// Keeps what came next. A full disk must not stop the agent: what cannot be written is left out and told.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.came += bytes.len() as u64;
        let clean = self.flow.push(bytes);
        self.keep(&clean)
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        let rest = self.flow.finish();
        self.keep(&rest)
    }

    fn keep(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut result = Ok(());
        while !bytes.is_empty() {
            let full_at = self.segments.back().map_or(self.head, |start| start + self.segment);
            let room = usize::try_from(full_at.saturating_sub(self.written)).unwrap_or(usize::MAX);
            if room == 0 {
                self.next_segment()?;
                continue;
            }
            let (now, later) = bytes.split_at(bytes.len().min(room));
            result = result.and(self.file.write_all(now));
            self.written += now.len() as u64;
            bytes = later;
        }
        result
    }

    fn next_segment(&mut self) -> io::Result<()> {
        self.file = create(&tail_file(&self.folder, self.stream, self.written))?;
        self.segments.push_back(self.written);
        if self.segments.len() > 2 {
            let oldest = self.segments.pop_front().unwrap_or_default();
            std::fs::remove_file(tail_file(&self.folder, self.stream, oldest))?;
        }
        Ok(())
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
