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
use crate::lifecycle::Lifecycle;
use crate::name::{is_identifier, is_kebab};
use crate::problem::{Code, Diagnosis, Severity, clip};
use crate::recipe::Recipe;
use crate::span::SpannedValue;

/// What a check gives.
#[derive(Clone, Debug)]
pub struct CheckReport<T> {
    /// The definition, whenever it can be made: every name leads somewhere, every guard and condition was read.
    ///
    /// With an error it must not be started. It is there all the same, because a check may become stricter while
    /// something that was started under it is still at work.
    pub definition: Option<T>,
    /// Everything found, in no particular order.
    pub problems: Vec<Diagnosis>,
}

impl<T> CheckReport<T> {
    /// Whether it may be started: there is a definition, and no error.
    pub fn is_usable(&self) -> bool {
        self.definition.is_some() && self.problems.iter().all(|problem| problem.severity() != Severity::Error)
    }
}

/// Checks a draft of a lifecycle.
pub fn lifecycle(draft: lifecycle::LifecycleDraft) -> CheckReport<Lifecycle> {
    let mut findings = CheckFindings::new();
    let definition = lifecycle::check(draft, &mut findings);
    CheckReport { definition, problems: findings.finish() }
}

/// Checks a draft of a recipe.
pub fn recipe(draft: &recipe::RecipeDraft) -> CheckReport<Recipe> {
    let mut findings = CheckFindings::new();
    let definition = recipe::check(draft, &mut findings);
    CheckReport { definition, problems: findings.finish() }
}

/// Reports more than `most` of something at the first that is too many; true if so.
fn too_many(
    count: usize,
    most: usize,
    what: &str,
    at: impl FnOnce(usize) -> crate::span::Span,
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
        if !is_identifier(&name.value) {
            self.add(
                Diagnosis::new(
                    Code::BadName,
                    name.span,
                    format!("`{}` cannot be the name of {what}", clip(&name.value)),
                )
                .help("a name has letters, digits, `-` and `_`, starts with a letter, and is at most 100 long"),
            );
        }
    }

    /// Reports the name of a definition that cannot be used.
    fn definition_name(&mut self, name: &SpannedValue<String>, what: &str) {
        if !is_kebab(&name.value) {
            self.add(
                Diagnosis::new(
                    Code::BadName,
                    name.span,
                    format!("`{}` cannot be the name of {what}", clip(&name.value)),
                )
                .help("write it in kebab-case: lower-case words and digits, joined by `-`"),
            );
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
