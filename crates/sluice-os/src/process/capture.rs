//! What a program printed, kept up to a limit: its beginning and its end. What is longer goes into a file as well.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// Bytes of one output that go into a file, when there are more than are kept in memory.
pub const LONGEST_FILE: u64 = 256 << 20;

/// What a program printed. What does not fit is left out of the middle, and counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The beginning; everything, if nothing was left out.
    pub head: Vec<u8>,
    /// How many bytes after the beginning were left out.
    pub omitted: u64,
    /// The end, if something was left out.
    pub tail: Vec<u8>,
}

impl CapturedOutput {
    /// The whole as text; a line says where something was left out. Bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        let head = String::from_utf8_lossy(&self.head);
        if self.omitted == 0 {
            return head.into_owned();
        }
        let tail = String::from_utf8_lossy(&self.tail);
        format!("{head}\n[{} bytes left out]\n{tail}", self.omitted)
    }
}

/// Keeps what is pushed: the first half of the limit as it comes, and the last half of it.
pub(super) struct OutputCapture {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    seen: u64,
    beside: CaptureFile,
}

enum CaptureFile {
    None,
    /// Nothing has been left out so far.
    Unneeded(PathBuf),
    /// It takes so many more bytes.
    Open(File, u64),
    /// It takes nothing more: it is full, or cannot be written.
    Closed,
}

impl CaptureFile {
    fn write(&mut self, bytes: &[u8]) {
        let CaptureFile::Open(file, room) = self else { return };
        let fits = bytes.len().min(usize::try_from(*room).unwrap_or(usize::MAX));
        // A file that cannot be written is no reason to fail: the beginning and the end are kept all the same.
        let written = file.write_all(&bytes[..fits]);
        *room -= fits as u64;
        if fits < bytes.len() {
            let _ = writeln!(file, "\n[nothing after {LONGEST_FILE} bytes is kept, but for the end in the run]");
        }
        if written.is_err() || fits < bytes.len() {
            *self = CaptureFile::Closed;
        }
    }
}

impl OutputCapture {
    /// Keeps up to `limit` bytes, and in `file` what is longer.
    pub(super) fn new(limit: usize, file: Option<PathBuf>) -> Self {
        let beside = file.map_or(CaptureFile::None, CaptureFile::Unneeded);
        Self { half: limit / 2, head: Vec::new(), tail: VecDeque::new(), seen: 0, beside }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        let (to_head, to_tail) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(to_head);
        self.put_beside(bytes, to_tail);
        self.tail.extend(&to_tail[to_tail.len().saturating_sub(self.half)..]);
        let surplus = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..surplus);
    }

    /// Writes on in the file; begins it when what was kept so far becomes too much.
    fn put_beside(&mut self, bytes: &[u8], to_tail: &[u8]) {
        if let (CaptureFile::Unneeded(path), true) = (&self.beside, self.tail.len() + to_tail.len() > self.half) {
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            self.beside = match made.and_then(|()| File::create(path)) {
                Ok(file) => CaptureFile::Open(file, LONGEST_FILE),
                Err(_) => CaptureFile::Closed,
            };
            self.beside.write(&self.head);
            let (first, second) = self.tail.as_slices();
            self.beside.write(first);
            self.beside.write(second);
            return self.beside.write(to_tail);
        }
        self.beside.write(bytes);
    }

    pub(super) fn finish(mut self) -> CapturedOutput {
        let omitted = self.seen - self.head.len() as u64 - self.tail.len() as u64;
        let tail: Vec<u8> = self.tail.into();
        if omitted > 0 {
            return CapturedOutput { head: self.head, omitted, tail };
        }
        self.head.extend(tail);
        CapturedOutput { head: self.head, omitted: 0, tail: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: usize, pieces: &[&str]) -> String {
        let mut capture = OutputCapture::new(limit, None);
        for piece in pieces {
            capture.push(piece.as_bytes());
        }
        capture.finish().text()
    }

    #[test]
    fn the_middle_is_left_out() {
        assert_eq!(captured(8, &["abcd", "ef", "gh"]), "abcdefgh");
        assert_eq!(captured(8, &["abc", "defghi"]), "abcd\n[1 bytes left out]\nfghi");
        assert_eq!(captured(8, &["abcdefghijkl", "m"]), "abcd\n[5 bytes left out]\njklm");
        assert_eq!(captured(0, &["abc"]), "\n[3 bytes left out]\n");
        assert_eq!(captured(8, &[]), "");
    }

    #[test]
    fn what_is_too_long_is_whole_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("printed").join("output");
        let printed = |pieces: &[&str]| {
            let mut capture = OutputCapture::new(8, Some(path.clone()));
            pieces.iter().for_each(|piece| capture.push(piece.as_bytes()));
            (capture.finish().omitted, std::fs::read_to_string(&path).ok())
        };
        assert_eq!(printed(&["abcd", "ef", "gh"]), (0, None), "what fits needs no file");
        assert_eq!(printed(&["ab", "cde", "fghi", "jk"]), (3, Some("abcdefghijk".into())));
    }
}
