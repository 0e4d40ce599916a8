//! The checker: the only maker of definitions.
//!
//! It reports every problem it finds, not the first, and does not report the consequences of one mistake as more
//! mistakes. A definition comes with whatever was found, unless it has a hole: a name that leads nowhere, or a text
//! that cannot be read.

mod graph;
pub mod lifecycle;
pub mod recipe;
mod texts;

use crate::findings::CheckFindings;
use crate::name::{is_identifier, is_kebab};
use crate::problem::{Code, Diagnosis, clip};
use crate::span::{Span, SpannedValue};

/// Reports more than `most` of something at the first that is too many; true if so.
fn too_many(
    count: usize,
    most: usize,
    what: &str,
    at: impl FnOnce(usize) -> Span,
    findings: &mut CheckFindings,
) -> bool {
    if count > most {
        findings.hole(Diagnosis::new(Code::TooMuchStructure, at(most), format!("more than {most} {what}")));
    }
    count > most
}

impl CheckFindings {
    /// Reports a name that cannot be used; `what` it is the name of.
    fn identifier(&mut self, name: &SpannedValue<String>, what: &str) {
        let help = "a name has letters, digits, `-` and `_`, starts with a letter, and is at most 100 long";
        self.well_formed(is_identifier, name, what, help);
    }

    fn definition_name(&mut self, name: &SpannedValue<String>, what: &str) {
        self.well_formed(is_kebab, name, what, "write it in kebab-case: lower-case words and digits, joined by `-`");
    }

    fn well_formed(&mut self, test: fn(&str) -> bool, name: &SpannedValue<String>, what: &str, help: &str) {
        if !test(&name.value) {
            let message = format!("`{}` cannot be the name of {what}", clip(&name.value));
            self.add(Diagnosis::new(Code::BadName, name.span, message).help(help));
        }
    }
}

/// `a → b → c`; of a long way only both ends.
fn arrows(names: &[&str]) -> String {
    /// How many names are shown.
    const SHOWN: usize = 8;
    let join = |names: &[&str]| names.iter().map(|name| clip(name)).collect::<Vec<_>>().join(" → ");
    match names.len() {
        0..=SHOWN => join(names),
        count => format!("{} → … → {}", join(&names[..SHOWN / 2]), join(&names[count - SHOWN / 2..])),
    }
}

/// `1 agent`, `2 agents`.
fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        u64::MAX => format!("more {noun}s than can be counted"),
        _ => format!("{number} {noun}s"),
    }
}
