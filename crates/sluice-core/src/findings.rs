//! The findings about one file while it is looked at: how many are kept, how many get a suggestion, and whether what
//! was found leaves a hole in the definition.
//!
//! It never decides that something is wrong.

use crate::problem::{Diagnosis, Severity, suggest};

/// How many findings of one file are kept. Nobody mends more at a time, and a file can be wrong a million times.
pub const MOST_FINDINGS: usize = 1_000;
/// How many findings of one file get a suggestion: each compares a name with all the others.
const MOST_SUGGESTIONS: usize = 50;

/// The findings about one file.
#[derive(Debug, Default)]
pub struct CheckFindings {
    problems: Vec<Diagnosis>,
    left_out: usize,
    errors: usize,
    holes: usize,
}

impl CheckFindings {
    /// An empty collection, for a file that has not been checked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a finding; beyond [`MOST_FINDINGS`] it is only counted.
    pub fn add(&mut self, problem: Diagnosis) {
        let is_error = problem.severity() == Severity::Error;
        self.errors += usize::from(is_error);
        if self.problems.len() < MOST_FINDINGS {
            self.problems.push(problem);
            return;
        }
        self.left_out += 1;
        // A file with errors must be seen to have one, however many warnings came first.
        if let (true, 1, Some(last)) = (is_error, self.errors, self.problems.last_mut()) {
            *last = problem;
        }
    }

    /// Notes a finding that leaves a hole: something that was written is missing from what would be made of it, so
    /// no definition can be made. Any other error only forbids to start one.
    pub fn hole(&mut self, problem: Diagnosis) {
        self.holes += 1;
        self.add(problem);
    }

    /// Something is missing whose cause has been noted already.
    pub fn leave_hole(&mut self) {
        self.holes += 1;
    }

    /// How many findings there were, kept or not.
    pub fn count(&self) -> usize {
        self.problems.len() + self.left_out
    }

    /// How many of them are errors.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Whether one of them leaves a hole.
    pub fn has_hole(&self) -> bool {
        self.holes > 0
    }

    /// What `name` was probably meant to be; nothing once there are many findings.
    pub fn suggest<'a>(&self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
        (self.count() < MOST_SUGGESTIONS).then(|| suggest(name, known)).flatten()
    }

    /// Those that were kept, the last of the file with the number of the others.
    pub fn finish(mut self) -> Vec<Diagnosis> {
        if let (1.., Some(last)) =
            (self.left_out, self.problems.iter_mut().max_by_key(|it| (it.span.file, it.span.start)))
        {
            last.notes.push(format!("the file has {} more findings, which are not listed", self.left_out));
        }
        self.problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Code;
    use crate::span::Span;

    fn found(code: Code) -> Diagnosis {
        Diagnosis::new(code, Span::default(), "x")
    }

    #[test]
    fn the_rest_is_counted_and_an_error_is_never_among_it_alone() {
        let mut findings = CheckFindings::new();
        (0..MOST_FINDINGS + 7).for_each(|_| findings.add(found(Code::DeadRule)));
        findings.hole(found(Code::Syntax));
        assert_eq!((findings.count(), findings.errors(), findings.has_hole()), (MOST_FINDINGS + 8, 1, true));
        let kept = findings.finish();
        assert_eq!(kept.len(), MOST_FINDINGS);
        assert_eq!(kept.iter().filter(|it| it.code == Code::Syntax).count(), 1);
        let notes: Vec<&String> = kept.iter().flat_map(|it| &it.notes).collect();
        assert_eq!(notes, ["the file has 8 more findings, which are not listed"]);
    }

    #[test]
    fn suggestions_end() {
        let mut findings = CheckFindings::new();
        assert!(findings.suggest("need", ["needs"]).is_some());
        (0..MOST_SUGGESTIONS).for_each(|_| findings.add(found(Code::UnknownStep)));
        assert!(findings.suggest("need", ["needs"]).is_none());
    }
}
