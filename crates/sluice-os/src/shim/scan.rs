//! Reads along what a program prints to its terminal, as far as somebody must know or answer it.
//!
//! It knows whether the program takes pasted text in brackets, and what it asks its terminal. It draws nothing.

/// Bytes of a control sequence that are read; a longer one is none that matters.
const LONGEST_SEQUENCE: usize = 64;
/// What a plain terminal says of itself, for a program that nobody looks at: that it works, where its cursor is, and what
/// kind it is.
const STATUS: &[u8] = b"\x1b[0n";
const CURSOR: &[u8] = b"\x1b[1;1R";
const KIND: &[u8] = b"\x1b[?62;22c";

#[derive(Debug, Default)]
enum TerminalScannerState {
    #[default]
    Text,
    Escape,
    Sequence(Vec<u8>),
}

#[derive(Debug, Default)]
pub(super) struct TerminalScanner {
    state: TerminalScannerState,
    /// The program wants pasted text in brackets.
    pub(super) brackets: bool,
}

impl TerminalScanner {
    /// Takes what was printed next; gives what a plain terminal answers to what was asked in it.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<&'static [u8]> {
        let mut answers = Vec::new();
        for byte in bytes {
            self.state = match (std::mem::take(&mut self.state), *byte) {
                (_, 0x1b) => TerminalScannerState::Escape,
                (TerminalScannerState::Escape, b'[') => TerminalScannerState::Sequence(Vec::new()),
                (TerminalScannerState::Escape, b'c') => {
                    self.brackets = false; // the terminal is reset
                    TerminalScannerState::Text
                }
                (TerminalScannerState::Sequence(sequence), 0x40..=0x7e) => {
                    answers.extend(self.finish(&sequence, *byte));
                    TerminalScannerState::Text
                }
                (TerminalScannerState::Sequence(mut sequence), 0x20..=0x3f) if sequence.len() < LONGEST_SEQUENCE => {
                    sequence.push(*byte);
                    TerminalScannerState::Sequence(sequence)
                }
                (TerminalScannerState::Text | TerminalScannerState::Escape | TerminalScannerState::Sequence(_), _) => {
                    TerminalScannerState::Text
                }
            };
        }
        answers
    }

    fn finish(&mut self, sequence: &[u8], last: u8) -> Option<&'static [u8]> {
        match (sequence, last) {
            ([b'?', modes @ ..], b'h' | b'l') => {
                if modes.split(|byte| *byte == b';').any(|mode| mode == b"2004") {
                    self.brackets = last == b'h';
                }
                None
            }
            (b"5", b'n') => Some(STATUS),
            (b"6", b'n') => Some(CURSOR),
            (b"" | b"0", b'c') => Some(KIND),
            (_, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brackets_after(pieces: &[&str]) -> bool {
        let mut scanner = TerminalScanner::default();
        for piece in pieces {
            scanner.read(piece.as_bytes());
        }
        scanner.brackets
    }

    #[test]
    fn brackets_are_turned_on_and_off() {
        assert!(brackets_after(&["hello \x1b[?2004h there"]));
        assert!(brackets_after(&["\x1b", "[?1049;20", "04h"]));
        assert!(!brackets_after(&["\x1b[?2004h", "\x1b[?2004l"]));
        assert!(!brackets_after(&["\x1b[?2004h\x1bc"]));
        assert!(!brackets_after(&["\x1b[?12004h [?2004h \x1b[2004h"]));
        let endless = format!("\x1b[?{};2004h", "1;".repeat(100));
        assert!(!brackets_after(&[&endless]));
        assert!(brackets_after(&["\x1b[?25\x1b[?2004h"]));
    }

    #[test]
    fn questions_are_heard() {
        let mut scanner = TerminalScanner::default();
        let answers = scanner.read(b"\x1b[6n\x1b[c\x1b[0c\x1b[5n\x1b[31m\x1b[>c\x1b[6 n");
        assert_eq!(answers, [CURSOR, KIND, KIND, STATUS]);
    }
}
