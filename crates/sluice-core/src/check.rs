//! The checker: the only maker of definitions.
//!
//! It reports every problem it finds, not the first, and does not report the consequences of one mistake as more
//! mistakes. Errors mean no definition; warnings and notes come with one.

mod graph;
pub mod lifecycle;
pub mod recipe;
mod texts;

use crate::name::{is_identifier, is_kebab};
use crate::problem::{Code, Problem, Severity, clip};
use crate::span::At;

pub use lifecycle::lifecycle;
pub use recipe::recipe;

/// What a check gives.
#[derive(Clone, Debug)]
pub struct Checked<T> {
    /// The definition, unless there is an error.
    pub definition: Option<T>,
    /// Everything found, in no particular order.
    pub problems: Vec<Problem>,
}

/// The findings of one check.
#[derive(Debug, Default)]
struct Findings {
    problems: Vec<Problem>,
}

impl Findings {
    fn add(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn any_error(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity() == Severity::Error)
    }

    /// Reports a name that cannot be used; `what` it is the name of.
    fn identifier(&mut self, name: &At<String>, what: &str) {
        if !is_identifier(&name.value) {
            self.add(
                Problem::new(Code::BadName, name.span, format!("`{}` cannot be the name of {what}", clip(&name.value)))
                    .help("a name has letters, digits, `-` and `_`, starts with a letter, and is at most 100 long"),
            );
        }
    }

    /// Reports the name of a definition that cannot be used.
    fn definition_name(&mut self, name: &At<String>, what: &str) {
        if !is_kebab(&name.value) {
            self.add(
                Problem::new(Code::BadName, name.span, format!("`{}` cannot be the name of {what}", clip(&name.value)))
                    .help("write it in kebab-case: lower-case words and digits, joined by `-`"),
            );
        }
    }
}

/// `1 agent`, `2 agents`.
fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}
