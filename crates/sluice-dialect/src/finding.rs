//! The findings of one file while it is read, and those that both languages have in common.
//!
//! It bounds how many there are and knows which of them leave no tree to go on with. It never decides that something
//! is wrong.

use crate::read::{MOST_PROBLEMS, ParsedFile};
use crate::tree::{DEEPEST, Node};
use sluice_core::problem::{Code, Diagnosis, clip};
use sluice_core::span::{FileId, Span, SpannedValue};

/// The findings of one file, as many as are wanted, and whether the tree is of any use.
#[derive(Debug)]
pub(crate) struct SyntaxFindings {
    pub(crate) file: FileId,
    problems: Vec<Diagnosis>,
    broken: bool,
}

impl SyntaxFindings {
    pub(crate) fn new(file: FileId) -> Self {
        SyntaxFindings { file, problems: Vec::new(), broken: false }
    }

    /// Notes a problem. Those that leave holes in the tree also take the tree away, for what the checker would say
    /// about the holes is noise.
    pub(crate) fn add(&mut self, problem: Diagnosis) {
        self.broken |= matches!(problem.code, Code::Syntax | Code::TooMuchStructure);
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// The file is too large in another way than bytes.
    pub(crate) fn too_much(&mut self, at: std::ops::Range<usize>, message: String) {
        self.add(Diagnosis::new(Code::TooMuchStructure, Span::new(self.file, at), message));
    }

    pub(crate) fn reading(self, node: Option<Node>) -> ParsedFile {
        ParsedFile { node: node.filter(|_| !self.broken), problems: self.problems }
    }
}

/// A name from a file, in backquotes, cut where it gets too long to be read in a sentence.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", clip(name))
}

pub(crate) fn duplicate(key: &SpannedValue<String>, first: Option<Span>) -> Diagnosis {
    let problem = Diagnosis::new(Code::DuplicateKey, key.span, format!("{} is written twice", quoted(&key.value)))
        .label("written again");
    match first {
        Some(first) => problem.other(first, "first written here"),
        None => problem,
    }
}

/// What is said of nesting beyond the limit, in both languages.
pub(crate) fn too_deep() -> String {
    format!("lists and tables nest more than {DEEPEST} deep")
}

/// What is said of what begins like a number and has no digit, as `0x`.
pub(crate) fn no_number(span: Span, number: &str) -> Diagnosis {
    Diagnosis::new(Code::BadQuantity, span, format!("{} is not a number", quoted(number)))
        .help("put it in quotes if it is a name")
}

/// What is said of a number that no counter holds, in both languages.
pub(crate) fn too_large(span: Span, number: &str) -> Diagnosis {
    Diagnosis::new(Code::BadQuantity, span, format!("{} is too large for a whole number", quoted(number)))
        .help("put it in quotes if it is a name")
}
