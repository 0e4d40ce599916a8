//! What a scalar of YAML is: the core schema, tags, and the place and the letters of a text.
//!
//! Only plain scalars are ever anything but text. The words of YAML 1.1 (`yes`, `on`, `0777`) mean nothing here,
//! because people who write them into a definition mean the text.

use crate::finding::{quoted, too_large};
use crate::locate::{self, Quotes};
use crate::tree::{Node, NodeValue};
use granit_parser::{ScalarStyle, Tag};
use sluice_core::problem::{Code, Diagnosis};
use sluice_core::span::{FileId, SourceText, Span};
use std::ops::Range;

/// A scalar as the parser gives it, and what is around it.
pub(super) struct YamlScalar<'a> {
    pub(super) file: FileId,
    pub(super) text: &'a str,
    pub(super) value: &'a str,
    pub(super) style: ScalarStyle,
    pub(super) range: Range<usize>,
    /// Where the thing before it ended.
    pub(super) gap: usize,
}

impl YamlScalar<'_> {
    /// The node, and what is wrong with it. A tag comes with its own place.
    pub(super) fn node(&self, tag: Option<(&Tag, Range<usize>)>) -> (Node, Option<Diagnosis>) {
        let Some((tag, place)) = tag else { return self.untagged() };
        let place = Span::new(self.file, place);
        let (node, problem) = match tag.core_suffix() {
            Some("str") => return (self.as_text(), None),
            Some("null" | "bool" | "int" | "float") => self.resolved(),
            None if tag.original() == "!" => return (self.as_text(), None),
            Some(_) | None => return (self.as_text(), Some(bad_tag(place, &tag.original()))),
        };
        let fits = match (&node.value, tag.core_suffix()) {
            (NodeValue::Null, suffix) => suffix == Some("null"),
            (NodeValue::Bool(_), suffix) => suffix == Some("bool"),
            (NodeValue::Integer(_), suffix) => matches!(suffix, Some("int" | "float")),
            (NodeValue::Decimal(_), suffix) => suffix == Some("float") || problem.is_some(),
            (NodeValue::Text(_) | NodeValue::List(_) | NodeValue::Table(_), _) => false,
        };
        if fits {
            return (node, problem);
        }
        let message = format!("{} is not what its tag {} says", quoted(self.value), quoted(&tag.original()));
        (node, Some(Diagnosis::new(Code::WrongType, place, message).help("leave the tag out")))
    }

    fn untagged(&self) -> (Node, Option<Diagnosis>) {
        match self.style {
            ScalarStyle::Plain => self.resolved(),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted | ScalarStyle::Literal | ScalarStyle::Folded => {
                (self.as_text(), None)
            }
        }
    }

    /// The value by the core schema.
    fn resolved(&self) -> (Node, Option<Diagnosis>) {
        // The library puts an empty value before the colon of its key.
        let colon = usize::from(self.range.is_empty() && self.text[self.range.start..].starts_with(':'));
        let span = Span::new(self.file, self.range.start + colon..self.range.end + colon);
        let value = match resolve(self.value) {
            PlainScalar::Null => NodeValue::Null,
            PlainScalar::Bool(value) => NodeValue::Bool(value),
            PlainScalar::Integer(value) => NodeValue::Integer(value),
            PlainScalar::TooLarge => {
                let node = Node { span, value: NodeValue::Decimal(self.value.into()) };
                return (node, Some(too_large(span, self.value)));
            }
            PlainScalar::Decimal => NodeValue::Decimal(self.value.into()),
            PlainScalar::Text => return (self.as_text(), None),
        };
        (Node { span, value }, None)
    }

    fn as_text(&self) -> Node {
        let quotes = match self.style {
            ScalarStyle::SingleQuoted => Some(Quotes::Single),
            ScalarStyle::DoubleQuoted => Some(Quotes::Double),
            ScalarStyle::Literal | ScalarStyle::Folded | ScalarStyle::Plain => None,
        };
        let span = match self.style {
            ScalarStyle::Literal | ScalarStyle::Folded => self.block(),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted | ScalarStyle::Plain => self.range.clone(),
        };
        // An empty place that a tag makes a text is given as `~`, which does not stand in the file.
        let value = if span.is_empty() { "" } else { self.value };
        let inside = self.range.start + 1..self.range.end.saturating_sub(1);
        let runs = match quotes {
            Some(quotes) => locate::quoted(value, self.text, inside, quotes),
            None => locate::runs(value, self.text, self.range.clone()),
        };
        let span = Span::new(self.file, span);
        Node { span, value: NodeValue::Text(SourceText { value: value.into(), span, runs }) }
    }

    /// A block from its `|` or `>` to its last line that says something. The library gives the lines alone, but
    /// the block is the value of its key, and that is written where the `|` is.
    fn block(&self) -> Range<usize> {
        let end = self.text[..self.range.end].trim_end().len();
        let gap = self.gap.min(self.range.start)..self.range.start;
        let mut comment = false;
        let mut before = ' ';
        for (at, letter) in self.text[gap.clone()].char_indices() {
            match letter {
                '\n' | '\r' => comment = false,
                '#' if before.is_whitespace() => comment = true,
                '|' | '>' if !comment && matches!(before, ' ' | '\t' | '\n' | '\r' | ':' | '-' | '?') => {
                    let start = gap.start + at;
                    return start..end.max(start + 1);
                }
                _ => {}
            }
            before = letter;
        }
        self.range.start..end.max(self.range.start)
    }
}

/// What is said of a tag that has no meaning here, in both places where one can stand.
pub(super) fn bad_tag(span: Span, tag: &str) -> Diagnosis {
    Diagnosis::new(Code::WrongType, span, format!("the tag {} means nothing here", quoted(tag)))
        .help("leave it out, or put the text in quotes if it begins with `!`")
}

#[derive(Debug, PartialEq, Eq)]
enum PlainScalar {
    Null,
    Bool(bool),
    Integer(i64),
    /// A whole number beyond 64 bits.
    TooLarge,
    Decimal,
    Text,
}

fn resolve(value: &str) -> PlainScalar {
    match value {
        "" | "~" | "null" | "Null" | "NULL" => return PlainScalar::Null,
        "true" | "True" | "TRUE" => return PlainScalar::Bool(true),
        "false" | "False" | "FALSE" => return PlainScalar::Bool(false),
        _ => {}
    }
    let whole =
        |digits: &str, radix| i64::from_str_radix(digits, radix).map_or(PlainScalar::TooLarge, PlainScalar::Integer);
    let all = |digits: &str, good: fn(&u8) -> bool| !digits.is_empty() && digits.as_bytes().iter().all(good);
    if let Some(digits) = value.strip_prefix("0x").filter(|digits| all(digits, u8::is_ascii_hexdigit)) {
        return whole(digits, 16);
    }
    if let Some(digits) = value.strip_prefix("0o").filter(|digits| all(digits, |byte| matches!(byte, b'0'..=b'7'))) {
        return whole(digits, 8);
    }
    let unsigned = value.strip_prefix(['-', '+']).unwrap_or(value);
    if all(unsigned, u8::is_ascii_digit) {
        return whole(value, 10);
    }
    let special = matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(value, ".nan" | ".NaN" | ".NAN");
    if special || is_decimal(unsigned) { PlainScalar::Decimal } else { PlainScalar::Text }
}

/// `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`, as the core schema has it.
fn is_decimal(value: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (number, exponent) = match value.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (value, None),
    };
    if exponent.is_some_and(|exponent| exponent.is_empty() || !digits(exponent)) {
        return false;
    }
    match number.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty()),
        None => !number.is_empty() && digits(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        for (value, expected) in [
            ("~", PlainScalar::Null),
            ("Null", PlainScalar::Null),
            ("TRUE", PlainScalar::Bool(true)),
            ("tRUE", PlainScalar::Text),
            ("yes", PlainScalar::Text),
            ("on", PlainScalar::Text),
            ("0", PlainScalar::Integer(0)),
            ("-12", PlainScalar::Integer(-12)),
            ("+12", PlainScalar::Integer(12)),
            ("0777", PlainScalar::Integer(777)),
            ("0o17", PlainScalar::Integer(15)),
            ("0xfF", PlainScalar::Integer(255)),
            ("0x", PlainScalar::Text),
            ("0o8", PlainScalar::Text),
            ("1_000", PlainScalar::Text),
            ("9223372036854775808", PlainScalar::TooLarge),
            ("0xFFFFFFFFFFFFFFFF", PlainScalar::TooLarge),
            ("1.", PlainScalar::Decimal),
            (".5", PlainScalar::Decimal),
            ("-1.5e+3", PlainScalar::Decimal),
            ("1e3", PlainScalar::Decimal),
            (".", PlainScalar::Text),
            ("e3", PlainScalar::Text),
            ("1e", PlainScalar::Text),
            ("1.2.3", PlainScalar::Text),
            ("-.inf", PlainScalar::Decimal),
            (".nan", PlainScalar::Decimal),
            ("-.nan", PlainScalar::Text),
            ("-", PlainScalar::Text),
            ("10m", PlainScalar::Text),
        ] {
            assert_eq!(resolve(value), expected, "{value}");
        }
    }
}
