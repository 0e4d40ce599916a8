//! Finds the letters of a text in the file again, so that a finding can point into the middle of it.
//!
//! It lines the text up with what stands in the file and keeps the stretches that are the same letter by letter.
//! Here are the styles without escapes: plain texts, blocks and TOML's literal strings; the others are in [`quoted`].
//! The alternative, a map made by the parser while it decodes, is something that neither library offers.

mod quoted;

pub(crate) use quoted::{Quotes, runs as quoted};

use crate::source::offset;
use sluice_core::span::TextRun;
use std::ops::Range;

/// Blanks that indentation and line folding may add or remove between the file and the text.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// The runs of `value`, which was written in `region` of `source` (without its quotes or its block header).
///
/// Folding and indentation change only blanks at the borders of lines. So each line of the file, without the
/// blanks around it, must be the next thing in the text, or something is not understood, and the search ends.
pub(crate) fn runs(value: &str, source: &str, region: Range<usize>) -> Vec<TextRun> {
    let mut runs: Vec<TextRun> = Vec::new();
    let Some(raw) = source.get(region.clone()) else { return runs };
    let mut text = 0;
    let mut line_start = 0;
    for line in raw.split_inclusive(['\n', '\r']) {
        let content = line.trim_matches(BLANKS);
        let content_start = line_start + (line.len() - line.trim_start_matches(BLANKS).len());
        let line_end = line_start + line.len();
        if !content.is_empty() {
            let rest = &value[text..];
            let at = text + (rest.len() - rest.trim_start_matches(BLANKS).len());
            let same = common_prefix(&value[at..], content);
            let before = common_suffix(&value[text..at], &raw[line_start..content_start]);
            let mut after = 0;
            if same == content.len() {
                after = common_prefix(&value[at + same..], &raw[content_start + same..line_end]);
            }
            let start = region.start + content_start - before;
            push(&mut runs, at - before, start, before + same + after);
            text = at + same + after;
            if same < content.len() {
                break;
            }
        } else {
            // An empty line may stand in the text as it does in the file; then one run can go over it.
            let same = common_prefix(&value[text..], line);
            push(&mut runs, text, region.start + line_start, same);
            text += same;
        }
        line_start = line_end;
    }
    runs
}

/// Adds a run, to the last one if it goes on where that ends. Empty runs say nothing.
fn push(runs: &mut Vec<TextRun>, text: usize, file: usize, len: usize) {
    let (text, file, len) = (offset(text), offset(file), offset(len));
    match runs.last_mut() {
        _ if len == 0 => {}
        Some(last) if last.text + last.len == text && last.file + last.len == file => last.len += len,
        Some(_) | None => runs.push(TextRun { text, file, len }),
    }
}

/// How many bytes `a` and `b` begin with in common, in whole characters.
fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    a.floor_char_boundary(same)
}

/// How many bytes `a` and `b` end with in common. Both are blanks, so every byte is a character.
fn common_suffix(a: &str, b: &str) -> usize {
    a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each run as `text offset: letters`, after checking that they stand in the file.
    fn found(value: &str, raw: &str) -> Vec<(u32, String)> {
        let source = format!("é: {raw}…");
        let runs = runs(value, &source, 4..4 + raw.len());
        runs.iter()
            .map(|run| {
                let letters = &value[run.text as usize..][..run.len as usize];
                assert_eq!(letters, &source[run.file as usize..][..run.len as usize]);
                (run.text, letters.to_owned())
            })
            .collect()
    }

    #[test]
    fn verbatim_text_is_one_run_even_over_lines() {
        assert_eq!(found("one two", "one two"), [(0, "one two".into())]);
        assert_eq!(found("  one\n\n  two\n", "  one\n\n  two\n"), [(0, "  one\n\n  two\n".into())]);
        assert_eq!(found("", ""), []);
    }

    #[test]
    fn a_block_is_a_run_for_each_line() {
        assert_eq!(
            found("one\n  two\n\nthree\n", "one\n    two\n\n  three\n"),
            [(0, "one\n".into()), (4, "  two\n\n".into()), (11, "three\n".into())]
        );
    }

    #[test]
    fn carriage_returns_and_folding_do_not_shift_anything() {
        let ends = |text: &str| found(text, "one\r\n  two\r\n");
        assert_eq!(ends("one\ntwo\n"), [(0, "one".into()), (3, "\n".into()), (4, "two".into()), (7, "\n".into())]);
        assert_eq!(found("one two", "one\n   two"), [(0, "one".into()), (3, " two".into())]);
    }

    #[test]
    fn what_differs_ends_the_search() {
        assert_eq!(found("a\tb c", "a\\tb c"), [(0, "a".into())]);
        assert_eq!(found("it's", "it''s"), [(0, "it'".into())]);
        assert_eq!(found("é", "è"), []);
    }
}
