//! A command for the shell with `${…}` in it. Values never become part of the script.
//!
//! Each variable is replaced by the expansion of an environment variable that carries the value, quoted as its
//! place demands. Quoting the value into the script (what most systems do) is one forgotten context away from
//! running it. Where the shell would not expand, or would evaluate what it expanded, the variable is refused.
//!
//! The script may be run by dash, by the ash of busybox or by bash as `sh`. They do not read every script alike; where
//! they part, the scanner no longer knows where it is, and refuses what comes behind ([`ShellContext::TenureLoss`]). It never
//! guesses, never repairs a script, and never says whether one is right: that is for the shell.
//!
//! What it cannot see: a program that runs its own arguments (`ssh`, `awk`, `python -c`), a shell variable that got a
//! value and is evaluated later (`x=${a}; eval "$x"`), and a value that is the name of the command (`${a} ${b}`).
//! A value with a NUL in it, or of more than 128 KiB, cannot travel in the environment; the run refuses it.
//! A list or an object travels as JSON.

mod contexts;
mod here;
mod lines;
mod quotes;
mod refusals;
mod simple;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use contexts::{ContextFrame, ShellContext};
use here::HereDocument;
use refusals::VariableRefusal;

use super::{BadPlaceholder, Placeholder, TextReading, dollar_path};
use crate::expr::ValuePath;

/// A script, and the variables that its environment must carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellCommand {
    /// What the shell is given.
    pub script: String,
    /// Names of environment variables and the paths of the values in them.
    pub environment: Vec<(String, ValuePath)>,
}

/// A variable that stands where it cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnexpandedVariable {
    /// The placeholder.
    pub at: Range<usize>,
    /// Where it stands: "inside single quotes".
    pub place: &'static str,
    /// What to write instead.
    pub way_out: &'static str,
}

impl ShellCommand {
    /// Reads `text`; the second part tells of variables that stand where they cannot be filled.
    pub fn read(text: &str) -> (TextReading<ShellCommand>, Vec<UnexpandedVariable>) {
        let mut scanner = CommandScanner {
            text,
            at: 0,
            copied: 0,
            frames: vec![ContextFrame::script()],
            documents: Vec::new(),
            names: BTreeMap::new(),
            reading: TextReading {
                text: ShellCommand { script: String::new(), environment: Vec::new() },
                placeholders: Vec::new(),
                words: Vec::new(),
                bad: Vec::new(),
            },
            unexpanded: Vec::new(),
        };
        while scanner.at < text.len() {
            scanner.step();
        }
        scanner.end_word();
        scanner.copy_to(text.len());
        // A format of `printf` is found out only when more words follow it.
        scanner.unexpanded.sort_by_key(|found| found.at.start);
        (scanner.reading, scanner.unexpanded)
    }
}

/// Goes through the text once, from left to right; every step moves on.
struct CommandScanner<'a> {
    text: &'a str,
    at: usize,
    /// Everything before this is in the script already.
    copied: usize,
    /// What the shell is in the middle of, the innermost last; never empty.
    frames: Vec<ContextFrame>,
    /// Announced and not yet read, of all frames.
    documents: Vec<HereDocument>,
    /// The paths that have a place in the environment.
    names: BTreeMap<ValuePath, String>,
    reading: TextReading<ShellCommand>,
    unexpanded: Vec<UnexpandedVariable>,
}

impl<'a> CommandScanner<'a> {
    fn step(&mut self) {
        if self.rest().starts_with("$${") {
            return self.left_to_the_shell();
        }
        if self.rest().starts_with("${") {
            return self.variable();
        }
        match self.context() {
            ShellContext::Commands(_) => self.commands(),
            ShellContext::Double => self.double(),
            ShellContext::Single => self.single(),
            ShellContext::Ansi => self.ansi(),
            ShellContext::Backquotes => self.backquotes(),
            ShellContext::Counted(_) => self.counted(),
            ShellContext::Expansion { .. } => self.expansion(),
            ShellContext::Test => self.test(),
            ShellContext::HereDocument | ShellContext::Lost => self.forward(),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn byte_at(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn forward(&mut self) {
        self.at += self.rest().chars().next().map_or(1, char::len_utf8);
    }

    /// How long `token` is here: the shell joins lines that end in a backslash before it looks for one.
    fn ahead(&self, token: &str) -> Option<usize> {
        let mut at = self.at;
        for (index, byte) in token.bytes().enumerate() {
            while index > 0 && self.text[at..].starts_with("\\\n") {
                at += 2;
            }
            if self.byte_at(at) != Some(byte) {
                return None;
            }
            at += 1;
        }
        Some(at - self.at)
    }

    fn copy_to(&mut self, end: usize) {
        self.reading.text.script.push_str(&self.text[self.copied..end]);
        self.copied = end;
    }

    /// `$${`, which the shell gets as `${`.
    fn left_to_the_shell(&mut self) {
        self.copy_to(self.at);
        self.reading.text.script.push_str("${");
        let quoted = match self.context() {
            ShellContext::Commands(_) | ShellContext::Test => Some(false),
            ShellContext::Double | ShellContext::Counted(_) => Some(true),
            ShellContext::Expansion { quoted } => Some(*quoted),
            ShellContext::Single
            | ShellContext::Ansi
            | ShellContext::Backquotes
            | ShellContext::HereDocument
            | ShellContext::Lost => None,
        };
        match quoted {
            Some(quoted) => self.expand(ShellContext::Expansion { quoted }, 3),
            None => self.at += 3,
        }
        self.copied = self.at;
    }

    fn variable(&mut self) {
        let start = self.at;
        let (path, end) = match dollar_path(self.text, start + 2) {
            Ok(found) => found,
            Err(bad) => {
                let message = format!("{}; `$${{` leaves it to the shell", bad.message);
                self.reading.bad.push(BadPlaceholder { at: bad.at.clone(), message });
                self.at = bad.at.end;
                return self.unknown_word();
            }
        };
        self.at = end;
        match self.refusal(self.is_whole_word(end)) {
            Some(refusal) => self.refuse(start..end, refusal),
            None => self.fill(path, start..end),
        }
        self.unknown_word();
    }

    fn fill(&mut self, path: ValuePath, at: Range<usize>) {
        self.copy_to(at.start);
        self.copied = at.end;
        let quote = if matches!(self.context(), ShellContext::Double) { "" } else { "\"" };
        let name = self.environment_name(&path);
        self.reading.text.script.extend([quote, "${", &name, "}", quote]);
        if let Some(commands) = self.words_mut() {
            commands.filled(&at);
        }
        self.reading.placeholders.push(Placeholder { path, at });
    }

    fn refuse(&mut self, at: Range<usize>, refusal: &'static VariableRefusal) {
        self.unexpanded.push(UnexpandedVariable { at, place: refusal.place, way_out: refusal.way_out });
    }

    fn environment_name(&mut self, path: &ValuePath) -> String {
        if let Some(name) = self.names.get(path) {
            return name.clone();
        }
        let environment = &mut self.reading.text.environment;
        let name = format!("SLUICE_VALUE_{}", environment.len() + 1);
        environment.push((name.clone(), path.clone()));
        self.names.insert(path.clone(), name.clone());
        name
    }
}
