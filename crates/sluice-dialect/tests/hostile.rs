//! Random and mutated files of every format: no panic, no place outside the file, always an answer.
//!
//! The seed is fixed, so that a failure is the same everywhere. `fuzz/` looks further.

#[path = "hostile/exercise.rs"]
mod exercise;
#[path = "hostile/texts.rs"]
mod texts;

use exercise::exercise;
use sluice_dialect::builtin;

/// A small generator of numbers (xorshift): the tests need no good randomness, only the same one each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }
}

/// Pieces that mean something to one of the formats, and some that mean trouble.
const PIECES: &[&str] = &[
    "name: ",
    "states:",
    "transitions:\n",
    "  - from: ",
    "to: ",
    "when: \"",
    "review_round < 2",
    "gate:",
    "hooks:",
    "- ",
    "steps:\n",
    "needs: [",
    "]",
    "{",
    "}",
    "${",
    "${input.x}",
    "$${",
    "{{",
    "{summary}",
    "|\n",
    ">\n",
    "&a ",
    "*a",
    "!!str ",
    "[[steps]]\n",
    "[workflow]\n",
    "template = \"",
    "\"\"\"",
    "'",
    "\"",
    "\n",
    "\r\n",
    "\t",
    "  ",
    "#",
    ": ",
    "é",
    "🌊",
    "\u{feff}",
    "\u{202e}",
    "\u{1b}[31m",
    "\0",
    "-1",
    "99999999999999999999",
    "1e309",
    "true",
    "null",
    "~",
    "type: script\n",
    "command: ",
    "echo '${x}'",
    "<<E\n",
    "$((",
    "loop: {to: ",
    "&&",
    "||",
    "!",
    "(",
    ")",
    "==",
    "terminal: true",
    "prompt: ",
];

fn mutated(text: &str, numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=numbers.below(6) {
        let at = numbers.below(bytes.len() + 1);
        match numbers.below(6) {
            0 => bytes.insert(at, u8::try_from(numbers.below(256)).unwrap_or(0)),
            1 => drop(bytes.splice(at..at, PIECES[numbers.below(PIECES.len())].bytes())),
            2 => drop(bytes.drain(at..(at + numbers.below(40)).min(bytes.len()))),
            3 => bytes.truncate(at),
            4 => {
                let from = numbers.below(bytes.len() + 1);
                let piece: Vec<u8> = bytes[from..(from + numbers.below(200)).min(bytes.len())].to_vec();
                drop(bytes.splice(at..at, piece));
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << numbers.below(8);
                }
            }
        }
    }
    bytes
}

#[test]
fn mutations_of_the_built_in_definitions() {
    let mut numbers = Numbers(0x5106_ce00_0000_0001);
    for _ in 0..60 {
        for file in builtin::ALL {
            exercise(file.file, &mutated(file.text, &mut numbers));
        }
    }
}

#[test]
fn random_pieces_in_every_format() {
    let mut numbers = Numbers(0x5106_ce00_0000_0002);
    for _ in 0..1500 {
        let text: String = (0..numbers.below(60)).map(|_| PIECES[numbers.below(PIECES.len())]).collect();
        texts::exercise(&text);
        for path in ["random.yml", "random.toml", "random"] {
            exercise(path, text.as_bytes());
        }
    }
}

#[test]
fn random_bytes() {
    let mut numbers = Numbers(0x5106_ce00_0000_0003);
    for _ in 0..500 {
        let bytes: Vec<u8> = (0..numbers.below(300)).map(|_| u8::try_from(numbers.below(256)).unwrap_or(0)).collect();
        exercise("random.yml", &bytes);
        exercise("random.toml", &bytes);
    }
}
