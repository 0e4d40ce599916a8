//! What a terminal obeys and does not show. A secret with colours in it is a secret all the same, so whoever looks for one
//! reads past these.
//!
//! An escape is known as the byte it is and as JSON writes it: most agents print JSON.

/// The byte that begins a sequence.
const ESCAPE: u8 = 0x1b;
/// The same as JSON writes it.
const WRITTEN_ESCAPE: &[u8] = b"\\u001b";
/// The same in two bytes, with the bracket that follows.
const CONTROL_SEQUENCE: &[u8] = b"\xc2\x9b";
/// What ends a string that a terminal obeys.
const STRING_ENDS: [&[u8]; 4] = [b"\x07", b"\x1b\\", b"\\u0007", b"\\u001b\\\\"];
/// The longest such string; what goes on for longer is none.
const LONGEST_STRING: usize = 1024;
/// The most numbers and marks of a sequence.
const LONGEST_SEQUENCE: usize = 64;

/// What stands at the beginning of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unseen {
    /// Something that is shown.
    Not,
    /// So many bytes that are not.
    Bytes(usize),
    /// What may become something that is not; more must come to tell.
    Cut,
}

fn unseen(bytes: &[u8]) -> Unseen {
    match bytes {
        [ESCAPE, rest @ ..] => sequence(rest).after(1),
        [0..=8 | 0x0d..=0x1a | 0x7f, ..] => Unseen::Bytes(1),
        [0xc2, ..] if bytes.starts_with(CONTROL_SEQUENCE) => control_sequence(&bytes[2..]).after(2),
        [0xc2] => Unseen::Cut,
        [b'\\', ..] => match split_written(bytes) {
            Some(rest) => sequence(rest).after(WRITTEN_ESCAPE.len()),
            None if bytes.len() < WRITTEN_ESCAPE.len() && is_written(bytes) => Unseen::Cut,
            None => Unseen::Not,
        },
        _ => Unseen::Not,
    }
}

/// What follows an escape as JSON writes it.
fn split_written(bytes: &[u8]) -> Option<&[u8]> {
    let (written, rest) = bytes.split_at_checked(WRITTEN_ESCAPE.len())?;
    is_written(written).then_some(rest)
}

fn is_written(bytes: &[u8]) -> bool {
    WRITTEN_ESCAPE.iter().zip(bytes).all(|(one, other)| one.eq_ignore_ascii_case(other))
}

impl Unseen {
    fn after(self, bytes: usize) -> Unseen {
        match self {
            Unseen::Bytes(more) => Unseen::Bytes(bytes + more),
            Unseen::Not => Unseen::Bytes(bytes),
            Unseen::Cut => Unseen::Cut,
        }
    }
}

/// What follows an escape.
fn sequence(rest: &[u8]) -> Unseen {
    match rest {
        [] => Unseen::Cut,
        [b'[', rest @ ..] => control_sequence(rest).after(1),
        [b']' | b'P' | b'X' | b'^' | b'_', rest @ ..] => string(rest).after(1),
        [0x20..=0x2f, ..] => {
            let marks = rest.iter().take(LONGEST_SEQUENCE).take_while(|byte| (0x20..=0x2f).contains(*byte)).count();
            if marks == rest.len() { Unseen::Cut } else { Unseen::Bytes(marks + 1) }
        }
        [0x30..=0x7e, ..] => Unseen::Bytes(1),
        _ => Unseen::Not,
    }
}

fn control_sequence(rest: &[u8]) -> Unseen {
    let marks = rest.iter().take(LONGEST_SEQUENCE).take_while(|byte| (0x20..=0x3f).contains(*byte)).count();
    match rest.get(marks) {
        Some(0x40..=0x7e) => Unseen::Bytes(marks + 1),
        Some(_) => Unseen::Bytes(marks),
        None => Unseen::Cut,
    }
}

fn string(rest: &[u8]) -> Unseen {
    let within = &rest[..rest.len().min(LONGEST_STRING)];
    let end = (0..within.len()).find_map(|at| {
        let ends = STRING_ENDS.iter().find(|end| rest[at..].starts_with(end))?;
        Some(at + ends.len())
    });
    match end {
        Some(length) => Unseen::Bytes(length),
        None if rest.len() < LONGEST_STRING => Unseen::Cut,
        None => Unseen::Not,
    }
}

/// Reads what is shown of some bytes, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Shown<'a> {
    bytes: &'a [u8],
    /// Whether a secret may be broken into lines here.
    wraps: bool,
    /// Behind what was read last.
    at: usize,
}

impl<'a> Shown<'a> {
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

    /// What is shown next; `None`: there is nothing, or not all of it has come.
    pub(super) fn next(&mut self) -> Option<u8> {
        loop {
            let rest = &self.bytes[self.at..];
            match unseen(rest) {
                Unseen::Bytes(length) => self.at += length,
                Unseen::Cut => return None,
                Unseen::Not => match rest {
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

/// The colours in some bytes: they go on behind a secret, and so they stay.
pub(super) fn colours(mut bytes: &[u8]) -> Vec<u8> {
    let mut colours = Vec::new();
    while !bytes.is_empty() {
        let length = match unseen(bytes) {
            Unseen::Bytes(length) => length,
            Unseen::Not | Unseen::Cut => 1,
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
pub(super) struct Before {
    byte: u8,
    within: Within,
}

#[derive(Clone, Copy, Debug)]
enum Within {
    Text,
    /// Behind an escape.
    Escape,
    /// In a control sequence.
    Sequence,
    /// Behind a backslash.
    Backslash,
    /// In a letter that JSON writes by its number: how many digits are to come, and what they are so far.
    Number(u8, u32),
}

impl Before {
    pub(super) fn nothing() -> Self {
        Self { byte: b' ', within: Within::Text }
    }

    /// Behind something that was left out.
    pub(super) fn left_out() -> Self {
        Self { byte: b']', within: Within::Text }
    }

    /// Whether a word may begin here.
    pub(super) fn is_border(self) -> bool {
        !self.byte.is_ascii_alphanumeric()
    }

    /// The next byte is passed.
    pub(super) fn pass(&mut self, byte: u8) {
        let (byte, within) = match (self.within, byte) {
            (_, ESCAPE) => (b' ', Within::Escape),
            (Within::Escape, b'[') => (b' ', Within::Sequence),
            (Within::Escape, _) => (b' ', Within::Text),
            (Within::Sequence, 0x20..=0x3f) => (b' ', Within::Sequence),
            (Within::Sequence, _) => (b' ', Within::Text),
            (Within::Backslash, b'u') => (b' ', Within::Number(4, 0)),
            (Within::Backslash, _) => (b' ', Within::Text),
            (Within::Number(left, so_far), digit) if digit.is_ascii_hexdigit() => {
                let number = so_far * 16 + char::from(digit).to_digit(16).unwrap_or_default();
                let within = match (left, number) {
                    (1, 0x1b) => Within::Escape,
                    (1, _) => Within::Text,
                    (left, number) => Within::Number(left - 1, number),
                };
                (b' ', within)
            }
            (Within::Text | Within::Number(..), b'\\') => (byte, Within::Backslash),
            (Within::Text | Within::Number(..), _) => (byte, Within::Text),
        };
        *self = Self { byte, within };
    }
}
