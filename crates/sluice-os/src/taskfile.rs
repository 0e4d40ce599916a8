//! TASK.md: the engine's record on top, the agents' words below.
//!
//! The frontmatter is the engine's and the body is everybody else's. Agents rewrite the whole file with the frontmatter
//! they once read; that is the normal case, and [`heal`] takes their body and writes the frontmatter as it must be.
//! What stands there never moves a task. Bytes that we did not write are kept as they are: line ends, unknown keys,
//! comments, text that is no text.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

mod disk;
mod scalar;
mod section;
mod split;

pub use disk::{LARGEST_FILE, TaskFileError, read, write, write_over};
pub use scalar::FrontmatterScalar;
pub use section::append_section;

use split::FrontmatterEntry;

pub type FrontmatterValues = BTreeMap<String, FrontmatterScalar>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontmatterTruth {
    /// The keys that are the engine's whatever they say, in the order in which it writes them.
    pub keys: &'static [&'static str],
    /// What must stand there now. Every key in it is the engine's too.
    pub values: FrontmatterValues,
    /// What the engine wrote there before: a stale value is no forgery.
    pub written: BTreeMap<String, BTreeSet<FrontmatterScalar>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealedTaskFile {
    pub body: Vec<u8>,
    /// The whole file as it must be.
    pub bytes: Vec<u8>,
    /// Whether that is another than it was.
    pub changed: bool,
    /// Values that the engine never wrote.
    pub forged: Vec<FrontmatterForgery>,
}

/// A value of the engine's that another writer has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontmatterForgery {
    pub key: String,
    pub found: String,
    pub truth: String,
}

/// Bytes of a forged value that are worth recording.
const LONGEST_FORGERY: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedTaskFile {
    /// A byte order mark, or blank lines that a writer put on top.
    before: Vec<u8>,
    opening: Vec<u8>,
    entries: Vec<FrontmatterEntry>,
    closing: Vec<u8>,
    body: Vec<u8>,
}

impl ParsedTaskFile {
    /// Takes a file apart. Any bytes are a TASK.md: what is no frontmatter is body. `keys` are the engine's, by which a
    /// broken frontmatter is told from a body.
    pub fn parse(bytes: &[u8], keys: &[&str]) -> ParsedTaskFile {
        let [before, opening, inside, closing, body] = split::split(bytes, keys);
        let [before, opening, closing, body] = [before, opening, closing, body].map(<[u8]>::to_vec);
        ParsedTaskFile { before, opening, entries: split::entries(inside), closing, body }
    }

    /// The file, byte for byte as it was.
    pub fn bytes(&self) -> Vec<u8> {
        let entries = self.entries.iter().flat_map(|entry| entry.raw.iter());
        let front = self.before.iter().chain(&self.opening).chain(entries).chain(&self.closing);
        front.chain(&self.body).copied().collect()
    }

    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The same for gates to read; bytes that are no text are shown as �.
    pub fn body_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// What the frontmatter says under `key`: `None` when it says nothing, or something that is no plain value.
    ///
    /// Old files lack keys (`workflow`, `crash_count`); that is no error here.
    pub fn value(&self, key: &str) -> Option<String> {
        let entry = self.entries.iter().rev().find(|entry| entry.key.as_deref() == Some(key))?;
        scalar::read(&entry.value()).filter(|value| !value.is_empty())
    }

    fn newline(&self) -> &'static str {
        let sample = if self.opening.is_empty() { &self.body } else { &self.opening };
        section::newline(sample)
    }
}

/// Takes the body of what is on disk and writes the frontmatter as it must be, in the place where it was.
pub fn heal(on_disk: &[u8], truth: &FrontmatterTruth) -> HealedTaskFile {
    let file = ParsedTaskFile::parse(on_disk, truth.keys);
    let newline = file.newline();
    let is_engines = |key: &str| truth.keys.contains(&key) || truth.values.contains_key(key);
    let mut forged = Vec::new();
    let mut lines: Vec<(Option<String>, Vec<u8>)> = Vec::new();
    for entry in &file.entries {
        match entry.key.as_deref().filter(|key| is_engines(key)) {
            None => lines.push((None, with_end(&entry.raw, newline))),
            Some(key) => {
                forged.extend(forgery(key, entry, truth));
                let is_first = !lines.iter().any(|(before, _)| before.as_deref() == Some(key));
                if let Some(value) = truth.values.get(key).filter(|_| is_first) {
                    lines.push((Some(key.to_owned()), scalar::line(key, value, newline).into_bytes()));
                }
            }
        }
    }
    add_missing(&mut lines, truth, newline);
    let mut bytes = if file.before.starts_with(split::BOM) { split::BOM.to_vec() } else { Vec::new() };
    let fence = format!("---{newline}");
    bytes.extend_from_slice(fence.as_bytes());
    bytes.extend(lines.into_iter().flat_map(|(_, line)| line));
    bytes.extend_from_slice(fence.as_bytes());
    bytes.extend_from_slice(&file.body);
    HealedTaskFile { changed: bytes != on_disk, bytes, forged, body: file.body }
}

/// Puts each key that is not there behind the one that comes before it in the engine's order.
fn add_missing(lines: &mut Vec<(Option<String>, Vec<u8>)>, truth: &FrontmatterTruth, newline: &str) {
    let mut place = 0;
    for key in in_order(truth) {
        match lines.iter().position(|(other, _)| other.as_deref() == Some(key)) {
            Some(index) => place = index + 1,
            None => {
                let line = scalar::line(key, &truth.values[key], newline).into_bytes();
                lines.insert(place, (Some(key.to_owned()), line));
                place += 1;
            }
        }
    }
}

fn forgery(key: &str, entry: &FrontmatterEntry, truth: &FrontmatterTruth) -> Option<FrontmatterForgery> {
    let null = FrontmatterScalar::Null;
    let now = truth.values.get(key).unwrap_or(&null);
    let raw = entry.value();
    let found = scalar::read(&raw);
    // A program that reads and writes YAML may fold a text anew: only its words count.
    let says = |value: &FrontmatterScalar| {
        found.as_deref().is_some_and(|found| found.split_whitespace().eq(value.text().split_whitespace()))
    };
    if says(now) || truth.written.get(key).is_some_and(|before| before.iter().any(says)) {
        return None;
    }
    let shown: String = found.unwrap_or(raw).chars().take(LONGEST_FORGERY).collect();
    let value = now.text();
    Some(FrontmatterForgery { key: key.to_owned(), found: shown, truth: value.chars().take(LONGEST_FORGERY).collect() })
}

/// The engine's own order first, then whatever fields a lifecycle has made.
fn in_order(truth: &FrontmatterTruth) -> Vec<&str> {
    let known = truth.keys.iter().copied().filter(|key| truth.values.contains_key(*key));
    let others = truth.values.keys().map(String::as_str).filter(|key| !truth.keys.contains(key));
    known.chain(others).collect()
}

fn with_end(raw: &[u8], newline: &str) -> Vec<u8> {
    let mut line = raw.to_vec();
    if !line.ends_with(b"\n") {
        line.extend_from_slice(newline.as_bytes());
    }
    line
}
