//! Reads TOML 1.1 into the tree.
//!
//! The `toml` crate parses and decides which tables may be extended; here its tree becomes ours, with places that
//! cover what they name. Its own limits are on brackets and on the length of one dotted key, not on both together,
//! so [`lexed`] looks at the tokens first. It is never asked for all errors of a large file, for it would keep
//! millions of them.

mod lexed;
#[cfg(test)]
mod tests;

use crate::finding::{SyntaxFindings, duplicate, no_number, too_deep, too_large};
use crate::locate::{self, Quotes};
use crate::read::{MOST_PROBLEMS, ParsedFile};
use crate::tree::{DEEPEST, MOST_NODES, Node, NodeValue, TableEntry};
use ::toml::Spanned;
use ::toml::de::{DeArray, DeTable, DeValue, Error};
use sluice_core::problem::{Code, Diagnosis};
use sluice_core::span::{FileId, SourceText, Span, SpannedValue};
use std::num::IntErrorKind;
use std::ops::Range;

/// Files up to this size are told all their errors, and larger ones the first.
const ALL_ERRORS: usize = 256 * 1024;

/// Reads `text`. The node is none for a file without keys, such as an empty one.
pub(crate) fn read(file: FileId, text: &str) -> ParsedFile {
    let mut findings = SyntaxFindings::new(file);
    if let Some((place, message)) = lexed::too_much(text) {
        findings.too_much(place, message);
        return findings.reading(None);
    }
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(first) => {
            let (table, errors) = match text.len() {
                0..=ALL_ERRORS => DeTable::parse_recoverable(text),
                _ => (Spanned::new(0..0, DeTable::new()), vec![first]),
            };
            tell(&mut findings, text, &errors);
            table
        }
    };
    let mut builder = TomlBuilder { text, findings, nodes: 0 };
    let node = builder.root(table.into_inner());
    builder.findings.reading(node)
}

fn tell(findings: &mut SyntaxFindings, text: &str, errors: &[Error]) {
    let file = findings.file;
    let place = |error: &Error| {
        let range = error.span().unwrap_or_default();
        let start = text.floor_char_boundary(range.start);
        start..text.floor_char_boundary(range.end).max(start)
    };
    let (twice, other): (Vec<&Error>, Vec<&Error>) =
        errors.iter().partition(|error| error.message() == "duplicate key");
    for error in other.iter().take(MOST_PROBLEMS) {
        findings.add(Diagnosis::new(Code::Syntax, Span::new(file, place(error)), error.message()));
    }
    if twice.is_empty() {
        return;
    }
    let again: Vec<usize> = twice.iter().map(|error| place(error).start).collect();
    for (error, first) in twice.iter().zip(lexed::first_places(text, &again)).take(MOST_PROBLEMS) {
        let place = place(error);
        let key = SpannedValue::new(unquoted(&text[place.clone()]).to_owned(), Span::new(file, place));
        findings.add(duplicate(&key, first.map(|first| Span::new(file, first))));
    }
}

/// A key as it is said, without its quotes.
fn unquoted(key: &str) -> &str {
    key.trim_matches(['"', '\''])
}

struct TomlBuilder<'text> {
    text: &'text str,
    findings: SyntaxFindings,
    nodes: usize,
}

impl TomlBuilder<'_> {
    fn root(&mut self, table: DeTable<'_>) -> Option<Node> {
        if table.is_empty() {
            return None;
        }
        self.table(table, 0..0, 1)
    }

    /// Recursion is safe: it ends at [`DEEPEST`], and the library's tree is not much deeper.
    fn node(&mut self, value: Spanned<DeValue<'_>>, depth: usize) -> Option<Node> {
        let range = value.span();
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            self.findings.too_much(range, format!("the file holds more than {MOST_NODES} values"));
            return None;
        }
        let span = Span::new(self.findings.file, range.clone());
        let value = match value.into_inner() {
            DeValue::String(value) => return Some(self.string(&value, range)),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(value) => NodeValue::Integer(value),
                Err(error) => {
                    let is_large = matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
                    let say = if is_large { too_large } else { no_number };
                    self.findings.add(say(span, &self.text[range]));
                    NodeValue::Decimal(number.to_string())
                }
            },
            DeValue::Float(number) => NodeValue::Decimal(number.as_str().into()),
            DeValue::Boolean(value) => NodeValue::Bool(value),
            // Nothing in a definition is a date, so one is a text that was not put in quotes.
            DeValue::Datetime(_) => {
                let value = self.text[range.clone()].to_owned();
                let runs = locate::runs(&value, self.text, range);
                NodeValue::Text(SourceText { value, span, runs })
            }
            DeValue::Array(items) => return self.list(items, range, depth + 1),
            DeValue::Table(table) => return self.table(table, range, depth + 1),
        };
        Some(Node { span, value })
    }

    fn string(&self, value: &str, range: Range<usize>) -> Node {
        let raw = &self.text[range.clone()];
        let marks = ["\"\"\"", "'''", "\"", "'"];
        let mark = marks.iter().find(|mark| raw.starts_with(**mark) && raw.len() >= 2 * mark.len()).copied();
        let mark = mark.unwrap_or_default();
        // Of a broken text that is read on all the same, the end may lie inside a letter.
        let letters = &raw.as_bytes()[mark.len()..raw.len() - mark.len()];
        // The end of the line behind `"""` or `'''` is not part of the text.
        let skipped = match (mark.len(), letters) {
            (3, [b'\r', b'\n', ..]) => 2,
            (3, [b'\n', ..]) => 1,
            _ => 0,
        };
        let inside = range.start + mark.len() + skipped..range.end - mark.len();
        let runs = match mark.starts_with('"') {
            true => locate::quoted(value, self.text, inside, Quotes::Basic),
            false => locate::runs(value, self.text, inside),
        };
        let span = Span::new(self.findings.file, range);
        Node { span, value: NodeValue::Text(SourceText { value: value.into(), span, runs }) }
    }

    fn list(&mut self, items: DeArray<'_>, range: Range<usize>, depth: usize) -> Option<Node> {
        if depth > DEEPEST {
            self.findings.too_much(range, too_deep());
            return None;
        }
        let mut nodes = Vec::new();
        for item in items {
            nodes.push(self.node(item, depth)?);
        }
        // Of a list made of `[[headers]]`, the library knows only the first header.
        let end = nodes.iter().map(|node| node.span.range().end).fold(range.end, usize::max);
        Some(Node { span: Span::new(self.findings.file, range.start..end), value: NodeValue::List(nodes) })
    }

    fn table(&mut self, table: DeTable<'_>, range: Range<usize>, depth: usize) -> Option<Node> {
        if depth > DEEPEST {
            self.findings.too_much(range, too_deep());
            return None;
        }
        let mut entries = Vec::new();
        for (key, value) in table {
            let key = SpannedValue::new(key.get_ref().to_string(), Span::new(self.findings.file, key.span()));
            entries.push(TableEntry { key, value: self.node(value, depth)? });
        }
        // The library sorts by name. The order in the file is the author's.
        entries.sort_by_key(|entry| entry.key.span.start);
        // Of a table that a header or a dotted key makes, the library knows only that.
        let starts = entries.iter().map(|entry| entry.key.span.start.min(entry.value.span.start) as usize);
        let start = starts.fold(if range.is_empty() { usize::MAX } else { range.start }, usize::min);
        let end = entries.iter().map(|entry| entry.value.span.range().end).fold(range.end, usize::max);
        Some(Node { span: Span::new(self.findings.file, start..end), value: NodeValue::Table(entries) })
    }
}
