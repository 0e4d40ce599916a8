//! What a syntax error of YAML means, in our words where they help more than the library's.
//!
//! It only chooses words and the place; the library decides what is an error.

use crate::finding::too_deep;
use granit_parser::{ErrorKind, ScanError};
use sluice_core::problem::{Code, Diagnosis};
use sluice_core::span::{FileId, Span};
use std::ops::Range;

pub(super) fn problem(file: FileId, text: &str, error: &ScanError) -> Diagnosis {
    let at = text.floor_char_boundary(error.marker().byte_offset().unwrap_or(text.len()));
    let problem = |place: Range<usize>, message: &str| Diagnosis::new(Code::Syntax, Span::new(file, place), message);
    let here = letter(text, at);
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => Diagnosis::new(Code::TooMuchStructure, Span::new(file, here), too_deep()),
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => {
            problem(tab_near(text, at), "a tab is used as indentation").help("YAML is indented with spaces only")
        }
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => colon(text, at, &problem),
        ErrorKind::UnclosedQuotedScalar | ErrorKind::DocumentIndicatorInQuotedScalar => {
            problem(here, "this quote is never closed").help("close it with the same quote mark")
        }
        ErrorKind::InvalidQuotedScalarIndent => {
            problem(here, "this line stands inside quotes that were opened above, and is not indented")
                .help("close the quotes above, or indent every line in them")
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar | ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            problem(here, "text goes on after its closing quote").help("put the whole text in one pair of quotes")
        }
        ErrorKind::UnknownQuotedScalarEscape => problem(bad_escape(text, at), "there is no such escape")
            .help("in double quotes a backslash is written `\\\\`; in single quotes it needs nothing"),
        ErrorKind::UnclosedFlowCollection { open } => {
            problem(here, &format!("this `{open}` is never closed")).maybe_help(placeholder(text, at))
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            problem(here, &format!("this `{open}` is closed with `{close}`")).maybe_help(placeholder(text, at))
        }
        ErrorKind::MisplacedFlowCollectionEnd => problem(here, "this bracket was never opened")
            .help("a text that begins with a bracket must be put in quotes"),
        ErrorKind::UnexpectedCharacter { character } => {
            problem(here, &format!("a text cannot begin with `{character}`")).help("put the text in quotes")
        }
        ErrorKind::BlockSequenceEntryNotAllowed | ErrorKind::BlockEntryInFlowCollection => {
            problem(here, "a list cannot start here").help("start it on a line of its own, or put a text in quotes")
        }
        ErrorKind::ExpectedBlockMappingKey | ErrorKind::ExpectedBlockSequenceEntry => {
            problem(here, "this does not fit what stands above it")
                .help("check the indentation, and that a key has its `:` and a list item its `-`")
        }
        ErrorKind::ExpectedDocumentStart => problem(here, "this does not belong to what stands above it")
            .help("check the indentation: the keys of one table start in the same column"),
        ErrorKind::InvalidIndentation => problem(here, "this line is not indented like those it belongs to"),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
            problem(here, "a key must be followed by `:` on the same line")
        }
        // The rest are rare, and the library's words do. The enum is its own and may grow.
        other => problem(here, &other.to_string()),
    }
}

/// A colon where none may be: in a value, or after a line that should have ended with one.
fn colon(text: &str, at: usize, problem: &dyn Fn(Range<usize>, &str) -> Diagnosis) -> Diagnosis {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let before = &text[line..at];
    if before.contains(": ") || before.contains(":\t") {
        return problem(letter(text, at), "there is a `: ` inside a value")
            .help("put the whole value in quotes, or begin a block with `|`");
    }
    problem(letter(text, at), "a key cannot stand here")
        .help("check the indentation, and that the line above it is finished")
}

/// The character at `at`; empty at the end.
fn letter(text: &str, at: usize) -> Range<usize> {
    at..at + text[at..].chars().next().map_or(0, |letter| if letter == '\n' { 0 } else { letter.len_utf8() })
}

/// The tab that is meant: the library points at it, behind it, or at the block that it starts.
fn tab_near(text: &str, at: usize) -> Range<usize> {
    if text[..at].ends_with('\t') {
        return at - 1..at;
    }
    match text[at..].find('\t') {
        Some(ahead) => at + ahead..at + ahead + 1,
        None => letter(text, at),
    }
}

/// The first escape from `at` on that YAML does not have.
fn bad_escape(text: &str, at: usize) -> Range<usize> {
    const KNOWN: &str = "0abt\tnvfre \"/\\N_LPxuU\n\r";
    let mut letters = text[at..].char_indices();
    while let Some((index, letter)) = letters.next() {
        if letter == '\\'
            && let Some((_, escaped)) = letters.next()
            && !KNOWN.contains(escaped)
        {
            return at + index..at + index + 1 + escaped.len_utf8();
        }
    }
    letter(text, at)
}

/// Brackets that open twice are mostly placeholders of a template.
fn placeholder(text: &str, at: usize) -> Option<String> {
    let doubled = text[at..].starts_with("{{") || text[..at].ends_with('{') && text[at..].starts_with('{');
    doubled.then(|| "put a text that begins with `{{` in quotes".into())
}
