//! Prints findings: for people, for programs, and for tools that read SARIF.
//!
//! Every format shows the same findings in the same order: by file, then by place, then by code, each once, and no
//! text of one without end. It only makes texts; where they go is the caller's affair.

mod json;
mod sarif;
mod text;

use crate::source::Sources;
use sluice_core::problem::{Code, Diagnosis, Severity};
use std::borrow::Cow;

/// How many characters of a message, a note or a label are told. A cycle may have ten thousand names.
const LONGEST: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportStyle {
    Plain,
    Colour,
}

/// For people: each finding with the lines it is about, as `rustc` does it. Empty if there are none.
pub fn text(sources: &Sources, problems: &[Diagnosis], style: ReportStyle) -> String {
    text::render(sources, &sorted(problems), style)
}

/// For programs: `{"problems": […], "notes": […]}`. Notes are findings that are not counted as problems.
pub fn json(sources: &Sources, problems: &[Diagnosis]) -> serde_json::Value {
    json::render(sources, &sorted(problems))
}

/// What a code's page says about it, in a few sentences; `None` where there is no page.
pub type CodeDescription = dyn Fn(Code) -> Option<String>;

/// For tools: a SARIF 2.1.0 log with the errors and warnings. Code hosts demand that every rule is described at length.
pub fn sarif(sources: &Sources, problems: &[Diagnosis], describe: &CodeDescription) -> serde_json::Value {
    sarif::render(sources, &sorted(problems), describe)
}

/// One line that counts: `2 errors, 1 warning in 3 files`. `files` is how many were looked at.
pub fn summary(problems: &[Diagnosis], files: usize) -> String {
    let of = |severity| sorted(problems).iter().filter(|problem| problem.severity() == severity).count();
    let counted = [(of(Severity::Error), "error"), (of(Severity::Warning), "warning")];
    let counted: Vec<String> =
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, word)| plural(*count, word)).collect();
    let counted = if counted.is_empty() { "no problems".into() } else { counted.join(", ") };
    format!("{counted} in {}", plural(files, "file"))
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// A text of a finding, not without end.
fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// The findings in the order of all reports, without those that say the same twice.
///
/// What is written once can be used many times: the value behind a YAML alias, a prompt file that several steps
/// share. Each use is checked, and finds the same in the same place. That is one mistake.
pub fn sorted(problems: &[Diagnosis]) -> Vec<&Diagnosis> {
    let mut sorted: Vec<&Diagnosis> = problems.iter().collect();
    sorted.sort_by_key(|it| (it.span.file, it.span.start, it.code, it.span.end, &it.message));
    sorted.dedup();
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::span::{FileId, Span};

    fn problem(code: Code, file: u32, start: usize) -> Diagnosis {
        Diagnosis::new(code, Span::new(FileId(file), start..start + 1), "x")
    }

    #[test]
    fn findings_are_in_order_and_told_once() {
        let all = [
            problem(Code::Syntax, 1, 0),
            problem(Code::Syntax, 0, 5),
            problem(Code::NotText, 0, 5),
            problem(Code::Syntax, 0, 5),
            problem(Code::Syntax, 0, 1),
        ];
        let order: Vec<_> = sorted(&all).iter().map(|it| (it.span.file.0, it.span.start, it.code.as_str())).collect();
        assert_eq!(order, [(0, 1, "S0003"), (0, 5, "S0002"), (0, 5, "S0003"), (1, 0, "S0003")]);
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(cut("né"), "né");
        assert_eq!(cut(&"é".repeat(LONGEST)), "é".repeat(LONGEST));
        let (mut sources, long) = (Sources::new(), "é".repeat(20_000));
        let file = sources.add("a.yml", "x");
        let span = Span::new(file, 0..1);
        let all = [Diagnosis::new(Code::Cycle, span, &long).label(&long).other(span, &long).note(&long).help(&long)];
        for report in [json(&sources, &all).to_string(), sarif(&sources, &all, &|_| None).to_string()] {
            let longest = report.split('…').map(|part| part.matches('é').count()).max();
            assert_eq!(longest, Some(LONGEST), "{}", &report[..200]);
        }
    }

    #[test]
    fn the_summary_counts_in_words() {
        let error = problem(Code::Syntax, 0, 0);
        let other = problem(Code::Syntax, 0, 1);
        let warning = problem(Code::EndlessLoop, 0, 0);
        let note = problem(Code::DeadRule, 0, 0);
        assert_eq!(summary(&[], 1), "no problems in 1 file");
        assert_eq!(summary(std::slice::from_ref(&note), 2), "no problems in 2 files");
        assert_eq!(summary(&[error, other, warning, note], 3), "2 errors, 1 warning in 3 files");
    }
}
