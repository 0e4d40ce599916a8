//! The letters of a quoted text, in which escapes and line folding stand for other letters.
//!
//! It walks along the file and the text together. Each escape is decoded and must be what the text goes on with; on
//! anything else, or anything it does not know, the walk ends. So it never has to judge whether the quoting is right,
//! which the parser has done, and never points at a wrong place.

use super::{BLANKS, push};
use sluice_core::span::TextRun;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// YAML's `"…"`: escapes, and lines are folded.
    Double,
    /// YAML's `'…'`: a quote is written twice, and lines are folded.
    Single,
    /// TOML's `"…"` and `"""…"""`: escapes, and lines stay as they are.
    Basic,
}

/// The runs of `value`, which was written in `region` of `source` between `quotes`.
pub(crate) fn runs(value: &str, source: &str, region: Range<usize>, quotes: Quotes) -> Vec<TextRun> {
    let mut walk = QuoteWalk { value, at: 0, runs: Vec::new() };
    let Some(raw) = source.get(region.clone()) else { return walk.runs };
    let mut place = 0;
    while let Some(first) = raw[place..].chars().next() {
        let rest = &raw[place..];
        let file = region.start + place;
        let gone = match (first, quotes) {
            ('\\', Quotes::Double | Quotes::Basic) => walk.escape(rest, quotes),
            ('\'', Quotes::Single) if !rest.starts_with("''") => None,
            ('\'', Quotes::Single) => walk.same(&rest[..1], file).map(|()| 2),
            (' ' | '\t' | '\n' | '\r', _) => walk.blanks(rest, file, quotes),
            _ => walk.same(&rest[..first.len_utf8()], file).map(|()| first.len_utf8()),
        };
        match gone {
            Some(gone) => place += gone,
            None => break,
        }
    }
    walk.runs
}

struct QuoteWalk<'a> {
    value: &'a str,
    at: usize,
    runs: Vec<TextRun>,
}

impl QuoteWalk<'_> {
    /// The text goes on with `letters`, which stand at `file` as they are.
    fn same(&mut self, letters: &str, file: usize) -> Option<()> {
        let at = self.at;
        self.other(letters)?;
        push(&mut self.runs, at, file, letters.len());
        Some(())
    }

    /// The text goes on with `letters`, which the file says in another way.
    fn other(&mut self, letters: &str) -> Option<()> {
        let goes_on = self.value[self.at..].starts_with(letters);
        self.at += if goes_on { letters.len() } else { 0 };
        goes_on.then_some(())
    }

    /// Blanks at the start of `rest`; over a line's end they are folded or kept. Gives the bytes they take.
    fn blanks(&mut self, rest: &str, file: usize, quotes: Quotes) -> Option<usize> {
        let len = rest.len() - rest.trim_start_matches(BLANKS).len();
        let blanks = &rest[..len];
        let breaks = lines_ended(blanks);
        match (breaks, quotes) {
            (0, _) => self.same(blanks, file)?,
            (_, Quotes::Basic) => match self.same(blanks, file) {
                Some(()) => {}
                None => self.other(&blanks.replace("\r\n", "\n"))?,
            },
            (1, Quotes::Double | Quotes::Single) => self.other(" ")?,
            (_, Quotes::Double | Quotes::Single) => self.other(&"\n".repeat(breaks - 1))?,
        }
        Some(len)
    }

    /// The escape at the start of `rest`. Gives the bytes it takes.
    fn escape(&mut self, rest: &str, quotes: Quotes) -> Option<usize> {
        let after = &rest[1..];
        let blanks = after.len() - after.trim_start_matches(BLANKS).len();
        let breaks = lines_ended(&after[..blanks]);
        let at_the_end = after.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']);
        // The end of a line that is escaped is not there, nor are the blanks that the next one begins with.
        match (at_the_end, quotes) {
            (true, Quotes::Basic) => return Some(1 + blanks),
            (true, Quotes::Double | Quotes::Single) if after.starts_with(['\n', '\r']) => {
                self.other(&"\n".repeat(breaks.saturating_sub(1)))?;
                return Some(1 + blanks);
            }
            (true | false, _) => {}
        }
        let sign = after.chars().next()?;
        let (letter, digits) = match sign {
            'x' => (code(after, 2)?, 2),
            'u' => (code(after, 4)?, 4),
            'U' => (code(after, 8)?, 8),
            sign => (meant(sign)?, 0),
        };
        self.other(letter.encode_utf8(&mut [0; 4]))?;
        Some(1 + sign.len_utf8() + digits)
    }
}

fn lines_ended(blanks: &str) -> usize {
    blanks.matches('\n').count() + blanks.replace("\r\n", "").matches('\r').count()
}

/// The letter whose number stands in `digits` hexadecimal digits behind the sign.
fn code(after: &str, digits: usize) -> Option<char> {
    u32::from_str_radix(after.get(1..=digits)?, 16).ok().and_then(char::from_u32)
}

/// What an escape of one sign means. TOML has fewer of them than YAML, and none that means something else.
fn meant(sign: char) -> Option<char> {
    Some(match sign {
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        't' | '\t' => '\t',
        'n' => '\n',
        'v' => '\u{b}',
        'f' => '\u{c}',
        'r' => '\r',
        'e' => '\u{1b}',
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        ' ' | '"' | '/' | '\\' => sign,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{FileSyntax, read};
    use sluice_core::span::{FileId, SourceText};

    /// The text that the key `a` of a file has.
    fn text(file: &str, syntax: FileSyntax) -> SourceText {
        let reading = read(FileId(0), file, syntax);
        assert_eq!(reading.problems, [], "{file:?}");
        reading.node.unwrap().get("a").unwrap().as_text().unwrap().clone()
    }

    /// Every `${x}` of the text is found where the file has it, in order.
    #[track_caller]
    fn all_found(file: &str, syntax: FileSyntax) {
        let text = text(file, syntax);
        let in_file: Vec<_> = file.match_indices("${x}").map(|(at, it)| at..at + it.len()).collect();
        let in_text: Vec<_> =
            text.value.match_indices("${x}").map(|(at, it)| text.locate(at..at + it.len()).range()).collect();
        assert!(!in_file.is_empty());
        assert_eq!(in_text, in_file, "{file:?} is {:?} with {:?}", text.value, text.runs);
    }

    #[test]
    fn escapes_of_yaml_are_gone_over() {
        for quoted in [
            r#""line\nsecond ${x}""#,
            r#""\0\a\b\t\n\v\f\r\e\ \"\/\\\N\_\L\P ${x} \x41\u00e9\U0001F30A${x}""#,
            "\"tab\\\t${x}\"",
            "\"one ${x}\n  two\\n ${x}\n\n\n  three ${x}\"",
            "\"one\\\n  \\  ${x} \\\n\n  ${x}\"",
            "\"a\\n\n  \\nb ${x}\"",
            "\"a  \r\n  b\\t${x}\r\n\r\n  ${x}\"",
            "'it''s ${x}'",
            "'''${x}''\n  two ${x} '''",
        ] {
            all_found(&format!("é: 1\na: {quoted}\nb: 2\n"), FileSyntax::Yaml);
        }
    }

    #[test]
    fn escapes_of_toml_are_gone_over() {
        for quoted in [
            r#""line\nsecond ${x}""#,
            r#""\b\t\n\f\r\"\\ ${x} \u00e9\U0001F30A${x}""#,
            "\"\"\"\n  one ${x}\n\n  two\\n ${x} \"quoted\" ${x}\"\"\"",
            "\"\"\"one \\\n\n   ${x} \\   \n  ${x}\"\"\"",
            "\"\"\"\r\none\\t${x}\r\n  ${x}\"\"\"",
            "'''\none \\n ${x}'''",
        ] {
            all_found(&format!("\"é\" = 1\na = {quoted}\nb = 2\n"), FileSyntax::Toml);
        }
    }

    #[test]
    fn what_is_not_known_ends_the_walk() {
        let source = r"a\qb";
        assert_eq!(runs("aqb", source, 0..4, Quotes::Double), [TextRun { text: 0, file: 0, len: 1 }]);
        assert_eq!(runs("ab", r"a\u12", 0..5, Quotes::Double), [TextRun { text: 0, file: 0, len: 1 }]);
        assert_eq!(runs("ab", r"a\ud800b", 0..8, Quotes::Basic), [TextRun { text: 0, file: 0, len: 1 }]);
        assert_eq!(runs("a'é", "a'é", 0..4, Quotes::Single), [TextRun { text: 0, file: 0, len: 1 }]);
        assert_eq!(runs("xyz", "abc", 0..3, Quotes::Single), []);
        assert_eq!(runs("a", "a\\", 0..2, Quotes::Double), [TextRun { text: 0, file: 0, len: 1 }]);
        assert_eq!(runs("a", "a", 5..9, Quotes::Double), []);
    }
}
