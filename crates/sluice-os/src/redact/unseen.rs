//! What a terminal obeys and does not show. A secret with colours in it is a secret all the same, so whoever looks for one
//! reads past these.
//!
//! An escape is known as the byte it is and as JSON writes it: most agents print JSON.

const ESCAPE: u8 = 0x1b;
/// The escape as JSON writes it.
const WRITTEN_ESCAPE: &[u8] = b"\\u001b";
/// The same in two bytes, with the bracket that follows.
const CONTROL_SEQUENCE: &[u8] = b"\xc2\x9b";
/// What ends a string that a terminal obeys.
const STRING_ENDS: [&[u8]; 4] = [b"\x07", b"\x1b\\", b"\\u0007", b"\\u001b\\\\"];
/// The longest such string; what goes on for longer is none.
const LONGEST_STRING: usize = 1024;
/// The most spaces that one move of the cursor stands for.
const WIDEST: usize = 500;
/// The most numbers and marks of a sequence.
const LONGEST_SEQUENCE: usize = 64;

/// What stands at the beginning of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnseenSpan {
    /// Something that is shown.
    Not,
    /// So many bytes that are not.
    Bytes(usize),
    /// What may become something that is not; more must come to tell.
    Cut,
}

fn unseen(bytes: &[u8]) -> UnseenSpan {
    match bytes {
        [ESCAPE, rest @ ..] => sequence(rest).after(1),
        [0..=8 | 0x0d..=0x1a | 0x7f, ..] => UnseenSpan::Bytes(1),
        [0xc2, ..] if bytes.starts_with(CONTROL_SEQUENCE) => control_sequence(&bytes[2..]).after(2),
        [0xc2] => UnseenSpan::Cut,
        [b'\\', ..] => match split_written(bytes) {
            Some(rest) => sequence(rest).after(WRITTEN_ESCAPE.len()),
            None if bytes.len() < WRITTEN_ESCAPE.len() && is_written(bytes) => UnseenSpan::Cut,
            None => UnseenSpan::Not,
        },
        _ => UnseenSpan::Not,
    }
}

fn split_written(bytes: &[u8]) -> Option<&[u8]> {
    let (written, rest) = bytes.split_at_checked(WRITTEN_ESCAPE.len())?;
    is_written(written).then_some(rest)
}

fn is_written(bytes: &[u8]) -> bool {
    WRITTEN_ESCAPE.iter().zip(bytes).all(|(one, other)| one.eq_ignore_ascii_case(other))
}

impl UnseenSpan {
    fn after(self, bytes: usize) -> UnseenSpan {
        match self {
            UnseenSpan::Bytes(more) => UnseenSpan::Bytes(bytes + more),
            UnseenSpan::Not => UnseenSpan::Bytes(bytes),
            UnseenSpan::Cut => UnseenSpan::Cut,
        }
    }
}

fn sequence(rest: &[u8]) -> UnseenSpan {
    match rest {
        [] => UnseenSpan::Cut,
        [b'[', rest @ ..] => control_sequence(rest).after(1),
        [b']' | b'P' | b'X' | b'^' | b'_', rest @ ..] => string(rest).after(1),
        [0x20..=0x2f, ..] => {
            let marks = rest.iter().take(LONGEST_SEQUENCE).take_while(|byte| (0x20..=0x2f).contains(*byte)).count();
            if marks == rest.len() { UnseenSpan::Cut } else { UnseenSpan::Bytes(marks + 1) }
        }
        [0x30..=0x7e, ..] => UnseenSpan::Bytes(1),
        _ => UnseenSpan::Not,
    }
}

fn control_sequence(rest: &[u8]) -> UnseenSpan {
    let marks = rest.iter().take(LONGEST_SEQUENCE).take_while(|byte| (0x20..=0x3f).contains(*byte)).count();
    match rest.get(marks) {
        Some(0x40..=0x7e) => UnseenSpan::Bytes(marks + 1),
        Some(_) => UnseenSpan::Bytes(marks),
        None => UnseenSpan::Cut,
    }
}

fn string(rest: &[u8]) -> UnseenSpan {
    let within = &rest[..rest.len().min(LONGEST_STRING)];
    let end = (0..within.len()).find_map(|at| {
        let ends = STRING_ENDS.iter().find(|end| rest[at..].starts_with(end))?;
        Some(at + ends.len())
    });
    match end {
        Some(length) => UnseenSpan::Bytes(length),
        None if rest.len() < LONGEST_STRING => UnseenSpan::Cut,
        None => UnseenSpan::Not,
    }
}

/// Reads what is shown of some bytes, one after the other.
#[derive(Clone, Debug)]
pub(super) struct ShownBytes<'a> {
    bytes: &'a [u8],
    /// Whether a secret may be broken into lines here.
    wraps: bool,
    /// Behind what was read last.
    at: usize,
}

impl<'a> ShownBytes<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, wraps: false, at: 0 }
    }

    /// The same, past the ends of lines.
    pub(super) fn wrapped(bytes: &'a [u8]) -> Self {
        Self { wraps: true, ..Self::of(bytes) }
    }

    /// How many bytes have been read, with what is not shown between them.
    pub(super) fn at(&self) -> usize {
        self.at
    }
}

impl Iterator for ShownBytes<'_> {
    type Item = u8;

    /// What is shown next; `None`: there is nothing, or not all of it has come.
    fn next(&mut self) -> Option<u8> {
        loop {
            let rest = &self.bytes[self.at..];
            match unseen(rest) {
                UnseenSpan::Bytes(length) => self.at += length,
                UnseenSpan::Cut => return None,
                UnseenSpan::Not => match rest {
                    [b'\n', ..] if self.wraps => self.at += 1,
                    [b'\\', b'n', ..] if self.wraps => self.at += 2,
                    [b'\\'] if self.wraps => return None,
                    [] => return None,
                    [byte, ..] => {
                        self.at += 1;
                        return Some(*byte);
                    }
                },
            }
        }
    }
}

/// Some bytes with spaces and ends of lines where the cursor is moved: programs that draw a whole screen move it in place of
/// writing those, and their words would run together.
pub(super) fn spread(bytes: &[u8]) -> Vec<u8> {
    let mut spread = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(2).position(|pair| pair == [ESCAPE, b'[']) {
        spread.extend_from_slice(&rest[..at]);
        let sequence = &rest[at + 2..];
        let UnseenSpan::Bytes(length) = control_sequence(sequence) else {
            rest = &rest[at..];
            break;
        };
        let (marks, end) = sequence[..length].split_at(length.saturating_sub(1));
        match end {
            b"C" => {
                let count = std::str::from_utf8(marks).ok().and_then(|it| it.parse().ok()).unwrap_or(1);
                spread.extend(std::iter::repeat_n(b' ', usize::min(count, WIDEST)));
            }
            b"G" => spread.push(b' '),
            b"H" | b"f" | b"B" | b"E" => spread.push(b'\n'),
            _ => spread.extend_from_slice(&rest[at..at + 2 + length]),
        }
        rest = &sequence[length..];
    }
    spread.extend_from_slice(rest);
    spread
}

/// The colours in some bytes: they go on behind a secret, and so they stay.
pub(super) fn colours(mut bytes: &[u8]) -> Vec<u8> {
    let mut colours = Vec::new();
    while !bytes.is_empty() {
        let length = match unseen(bytes) {
            UnseenSpan::Bytes(length) => length,
            UnseenSpan::Not | UnseenSpan::Cut => 1,
        };
        let (here, rest) = bytes.split_at(length);
        if length > 1 && here.ends_with(b"m") && here.contains(&b'[') && !here.contains(&b']') {
            colours.extend_from_slice(here);
        }
        bytes = rest;
    }
    colours
}

/// What stands before a place: whether a word may begin there.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordBoundary {
    byte: u8,
    within: EscapeState,
}

#[derive(Clone, Copy, Debug)]
enum EscapeState {
    Text,
    Escape,
    Sequence,
    Backslash,
    /// In a letter that JSON writes by its number: how many digits are to come, and what they are so far.
    Number(u8, u32),
}

impl WordBoundary {
    pub(super) fn nothing() -> Self {
        Self { byte: b' ', within: EscapeState::Text }
    }

    /// Behind something that was left out.
    pub(super) fn left_out() -> Self {
        Self { byte: b']', within: EscapeState::Text }
    }

    pub(super) fn is_border(self) -> bool {
        !self.byte.is_ascii_alphanumeric()
    }

    pub(super) fn pass(&mut self, byte: u8) {
        let (byte, within) = match (self.within, byte) {
            (_, ESCAPE) => (b' ', EscapeState::Escape),
            (EscapeState::Escape, b'[') => (b' ', EscapeState::Sequence),
            (EscapeState::Escape, _) => (b' ', EscapeState::Text),
            (EscapeState::Sequence, 0x20..=0x3f) => (b' ', EscapeState::Sequence),
            (EscapeState::Sequence, _) => (b' ', EscapeState::Text),
            (EscapeState::Backslash, b'u') => (b' ', EscapeState::Number(4, 0)),
            (EscapeState::Backslash, _) => (b' ', EscapeState::Text),
            (EscapeState::Number(left, so_far), digit) if digit.is_ascii_hexdigit() => {
                let number = so_far * 16 + char::from(digit).to_digit(16).unwrap_or_default();
                let within = match (left, number) {
                    (1, 0x1b) => EscapeState::Escape,
                    (1, _) => EscapeState::Text,
                    (left, number) => EscapeState::Number(left - 1, number),
                };
                (b' ', within)
            }
            (EscapeState::Text | EscapeState::Number(..), b'\\') => (byte, EscapeState::Backslash),
            (EscapeState::Text | EscapeState::Number(..), _) => (byte, EscapeState::Text),
        };
        *self = Self { byte, within };
    }
}
