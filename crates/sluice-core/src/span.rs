//! Where something stands in a file: byte ranges, values that know theirs, and texts that know theirs inside.
//!
//! The core only carries positions from the reader to the report. It never turns them into lines and
//! columns and never looks at the file behind them; that is `sluice-dialect`'s work.

use std::ops::Range;

/// One of the files that belong to a definition: the definition itself is 0, its prompt files follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A byte range in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The file it lies in.
    pub file: FileId,
    /// Offset of the first byte in the file.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A range of the file `file`. Files are at most a few megabytes, so offsets saturate instead of failing.
    pub fn new(file: FileId, range: Range<usize>) -> Self {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Span { file, start: clamp(range.start), end: clamp(range.end) }
    }

    /// The range as indices.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A value and the place it was written at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpannedValue<T> {
    /// The value that was read from the file.
    pub value: T,
    /// The place in the file where the value is written.
    pub span: Span,
}

impl<T> SpannedValue<T> {
    /// `value`, written at `span`.
    pub fn new(value: T, span: Span) -> Self {
        SpannedValue { value, span }
    }
}

/// A piece of text as its reader sees it, with enough of a map to find a part of it in the file again.
///
/// Quotes, indentation and escapes make the text in the file differ from the text that is meant. The map
/// is a list of runs that stand in the file letter by letter; a part that no run covers is reported as the
/// whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// The text that is meant, without quotes, indentation and escapes.
    pub value: String,
    /// The whole text in the file, quotes included.
    pub span: Span,
    /// Runs that stand in the file as they are, in ascending order.
    pub runs: Vec<TextRun>,
}

/// `len` bytes of a [`SourceText`] from `text` on, which stand in the file from `file` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRun {
    /// Offset in the text.
    pub text: u32,
    /// Offset in the file.
    pub file: u32,
    /// Length of the run in bytes, the same in text and file.
    pub len: u32,
}

impl SourceText {
    /// A text of which only the outer place is known.
    pub fn whole(value: impl Into<String>, span: Span) -> Self {
        SourceText { value: value.into(), span, runs: Vec::new() }
    }

    /// Where `part` of the text stands in the file; the whole text when that is not known.
    pub fn locate(&self, part: Range<usize>) -> Span {
        let index = self.runs.partition_point(|run| run.text as usize <= part.start);
        let Some(run) = index.checked_sub(1).and_then(|index| self.runs.get(index)) else {
            return self.span;
        };
        let into = part.start - run.text as usize;
        if into + part.len() > run.len as usize {
            return self.span;
        }
        let start = run.file as usize + into;
        Span::new(self.span.file, start..start + part.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_through_the_run_that_holds_it() {
        let text = SourceText {
            value: "one\ntwo\n".into(),
            span: Span::new(FileId(0), 100..120),
            runs: vec![TextRun { text: 0, file: 104, len: 4 }, TextRun { text: 4, file: 112, len: 4 }],
        };
        assert_eq!(text.locate(4..7).range(), 112..115);
        assert_eq!(text.locate(1..3).range(), 105..107);
        assert_eq!(text.locate(2..6).range(), 100..120, "across two runs: the whole");
    }
}
