//! The files behind the places: their texts, and lines and columns for people.
//!
//! It takes bytes in ([`decode`]) and answers where a [`Span`] is. It never opens a file and never looks at what a
//! text means.

use sluice_core::problem::{Code, Diagnosis};
use sluice_core::span::{FileId, Span};

/// How many bytes a file may have. Reading one more than this is enough to find out.
pub const MAX_FILE: usize = 8 * 1024 * 1024;

/// How many bytes lie between two places whose character count is known. Without such marks, each finding in a
/// file that is a single line of megabytes would count the whole line again.
const MARK: usize = 4096;

/// The files that findings may point into.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

#[derive(Clone, Debug)]
struct SourceFile {
    path: String,
    text: String,
    /// Where each line starts.
    lines: Vec<u32>,
    /// Characters before each multiple of [`MARK`].
    marks: Vec<u32>,
}

/// A place as people count: from 1, columns in characters, the end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
}

impl Sources {
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of the file that is added next. Ids count up from 0.
    pub(crate) fn next_id(&self) -> FileId {
        FileId(offset(self.files.len()))
    }

    /// Adds a file that is shown as `path`.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<String>) -> FileId {
        let id = self.next_id();
        self.files.push(SourceFile::new(path.into(), text.into()));
        id
    }

    pub fn path(&self, file: FileId) -> &str {
        self.file(file).map_or("?", |file| &file.path)
    }

    /// The text of `file`; empty for a file that is not known.
    pub fn text(&self, file: FileId) -> &str {
        self.file(file).map_or("", |file| &file.text)
    }

    /// Lines and columns of `span`. A place beyond the end of its file is taken for the end.
    pub fn position(&self, span: Span) -> SourcePosition {
        let Some(file) = self.file(span.file) else {
            return SourcePosition { line: 1, column: 1, end_line: 1, end_column: 1 };
        };
        let (line, column) = file.place(span.start);
        let (end_line, end_column) = file.place(span.end.max(span.start));
        SourcePosition { line, column, end_line, end_column }
    }

    /// The bytes of line `line` (from 1), without its line end.
    pub(crate) fn line_range(&self, file: FileId, line: usize) -> std::ops::Range<usize> {
        let Some(file) = self.file(file) else { return 0..0 };
        let Some(&start) = line.checked_sub(1).and_then(|index| file.lines.get(index)) else {
            return file.text.len()..file.text.len();
        };
        let start = start as usize;
        let end = file.lines.get(line).map_or(file.text.len(), |&next| next as usize);
        start..start + file.text[start..end].trim_end_matches(['\n', '\r']).len()
    }

    fn file(&self, file: FileId) -> Option<&SourceFile> {
        self.files.get(file.0 as usize)
    }
}

impl SourceFile {
    fn new(path: String, text: String) -> Self {
        let bytes = text.as_bytes();
        let newlines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| offset(at + 1));
        let lines = std::iter::once(0).chain(newlines).collect();
        let mut count = 0;
        let mut marks = vec![0];
        for chunk in bytes.chunks(MARK) {
            count += characters(chunk);
            marks.push(offset(count));
        }
        SourceFile { path, text, lines, marks }
    }

    /// Line and column of a byte, from 1.
    fn place(&self, at: u32) -> (usize, usize) {
        let at = at.min(offset(self.text.len()));
        let line = self.lines.partition_point(|start| *start <= at);
        let start = line.checked_sub(1).and_then(|index| self.lines.get(index)).copied().unwrap_or(0);
        (line, self.characters_before(at) - self.characters_before(start) + 1)
    }

    fn characters_before(&self, at: u32) -> usize {
        let at = at as usize;
        let mark = at / MARK;
        let counted = self.marks.get(mark).copied().unwrap_or(0) as usize;
        counted + characters(&self.text.as_bytes()[mark * MARK..at])
    }
}

/// How many characters start in `bytes`.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count()
}

/// Files are a few megabytes at most, so this saturates instead of failing, as `Span::new` does.
pub(crate) fn offset(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// What became of the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedFile {
    /// The text, without a byte order mark. Where there is a problem it is what can be shown of the file, up to the
    /// line of the problem, and good for nothing else.
    pub text: String,
    pub problem: Option<Diagnosis>,
}

/// Turns the bytes of a file into text. The result is a pair and not a `Result`, because a finding about bad bytes
/// points into the text that stands before them.
pub fn decode(file: FileId, bytes: &[u8]) -> DecodedFile {
    let start = Span::new(file, 0..0);
    if bytes.len() > MAX_FILE {
        let problem = Diagnosis::new(Code::FileTooLarge, start, "the file has more than 8 MiB");
        return DecodedFile { text: String::new(), problem: Some(problem) };
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        let problem = Diagnosis::new(Code::NotText, start, "the file is UTF-16, not UTF-8").help("save it as UTF-8");
        return DecodedFile { text: String::new(), problem: Some(problem) };
    }
    let bytes = bytes.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(bytes);
    let (text, bad) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let (good, rest) = bytes.split_at(error.valid_up_to());
            (std::str::from_utf8(good).unwrap_or_default(), rest.first())
        }
    };
    // Looked for in the good part first: whichever comes first in the file is the one to tell.
    if let Some(at) = text.find('\0') {
        let problem = Diagnosis::new(Code::NotText, Span::new(file, at..at + 1), "there is a NUL byte in the file")
            .note("text never holds one; this may be a binary file, or UTF-16 without a mark");
        return DecodedFile { text: text[..at + 1].into(), problem: Some(problem) };
    }
    let Some(bad) = bad else { return DecodedFile { text: text.into(), problem: None } };
    let shown = format!("{text}\u{FFFD}");
    let span = Span::new(file, text.len()..shown.len());
    let problem = Diagnosis::new(Code::NotText, span, format!("the byte 0x{bad:02X} is not UTF-8 here"))
        .help("save the file as UTF-8");
    DecodedFile { text: shown, problem: Some(problem) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, range: std::ops::Range<usize>) -> (usize, usize, usize, usize) {
        let mut sources = Sources::new();
        let file = sources.add("a", text);
        let found = sources.position(Span::new(file, range));
        (found.line, found.column, found.end_line, found.end_column)
    }

    #[test]
    fn columns_count_characters_from_one_and_the_end_is_after() {
        assert_eq!(at("", 0..0), (1, 1, 1, 1));
        assert_eq!(at("äb\ncd\n", 2..3), (1, 2, 1, 3));
        assert_eq!(at("äb\ncd\n", 4..6), (2, 1, 2, 3));
        assert_eq!(at("äb\ncd\n", 2..5), (1, 2, 2, 2));
        assert_eq!(at("äb\ncd\n", 7..7), (3, 1, 3, 1), "after the last line end");
        assert_eq!(at("ab", 7..9), (1, 3, 1, 3), "beyond the end");
    }

    #[test]
    fn marks_agree_with_counting() {
        let text = "aé漢\u{1F600}\n".repeat(3_000);
        let mut sources = Sources::new();
        let file = sources.add("a", text.clone());
        for (at, _) in text.char_indices().step_by(97) {
            let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
            let found = sources.position(Span::new(file, at..at));
            assert_eq!(found.line, text[..at].matches('\n').count() + 1);
            assert_eq!(found.column, text[line_start..at].chars().count() + 1);
        }
    }

    fn told(bytes: &[u8]) -> (String, Option<(String, std::ops::Range<usize>)>) {
        let decoded = decode(FileId(0), bytes);
        let problem = decoded.problem.map(|it| (format!("{} {}", it.code.as_str(), it.message), it.span.range()));
        (decoded.text, problem)
    }

    #[test]
    fn bytes_become_text_or_a_finding_at_the_first_bad_one() {
        assert_eq!(told(b"a: b"), ("a: b".into(), None));
        assert_eq!(told("\u{FEFF}a".as_bytes()), ("a".into(), None));
        let bad = told(b"a\nb\xFFc");
        assert_eq!(bad, ("a\nb\u{FFFD}".into(), Some(("S0002 the byte 0xFF is not UTF-8 here".into(), 3..6))));
        let nul = told(b"ab\0c\xFF");
        assert_eq!(nul, ("ab\0".into(), Some(("S0002 there is a NUL byte in the file".into(), 2..3))));
        assert_eq!(told(b"\xFF\xFEa\0").1, Some(("S0002 the file is UTF-16, not UTF-8".into(), 0..0)));
        assert_eq!(told(&vec![b'a'; MAX_FILE]).1, None);
        assert_eq!(told(&vec![b'a'; MAX_FILE + 1]).1, Some(("S0001 the file has more than 8 MiB".into(), 0..0)));
    }

    #[test]
    fn a_line_is_given_without_its_end() {
        let mut sources = Sources::new();
        let file = sources.add("a", "ab\r\nc\n");
        assert_eq!(sources.line_range(file, 1), 0..2);
        assert_eq!(sources.line_range(file, 2), 4..5);
        assert_eq!(sources.line_range(file, 3), 6..6);
        assert_eq!(sources.line_range(file, 9), 6..6);
    }
}
