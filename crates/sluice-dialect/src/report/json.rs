//! Findings as JSON, for programs.
//!
//! The keys of a finding never change their meaning; there may be more of them one day. Notes never stand among the
//! problems, so that a program may take an empty list for success.

use super::cut;
use crate::source::Sources;
use serde_json::{Map, Value, json};
use sluice_core::problem::{Diagnosis, Severity};
use sluice_core::span::Span;

pub(super) fn render(sources: &Sources, problems: &[&Diagnosis]) -> Value {
    let (notes, problems): (Vec<&&Diagnosis>, Vec<&&Diagnosis>) =
        problems.iter().partition(|problem| problem.severity() == Severity::Note);
    let list = |of: Vec<&&Diagnosis>| of.into_iter().map(|problem| finding(sources, problem)).collect::<Vec<_>>();
    json!({ "problems": list(problems), "notes": list(notes) })
}

fn finding(sources: &Sources, problem: &Diagnosis) -> Value {
    let mut it = Map::new();
    it.insert("code".into(), problem.code.as_str().into());
    it.insert("severity".into(), problem.severity().word().into());
    it.insert("message".into(), cut(&problem.message).into());
    it.extend(place(sources, problem.span));
    it.insert("help".into(), json!(problem.help.as_deref().map(cut)));
    it.insert("explanation".into(), problem.notes.iter().map(|note| cut(note)).collect());
    let mut labels = Vec::new();
    if !problem.label.is_empty() {
        labels.push(label(sources, problem.span, &problem.label));
    }
    labels.extend(problem.others.iter().map(|other| label(sources, other.span, &other.text)));
    it.insert("labels".into(), Value::Array(labels));
    Value::Object(it)
}

fn label(sources: &Sources, span: Span, text: &str) -> Value {
    let mut it = Map::new();
    it.insert("message".into(), cut(text).into());
    it.extend(place(sources, span));
    Value::Object(it)
}

fn place(sources: &Sources, span: Span) -> Map<String, Value> {
    let position = sources.position(span);
    let mut it = Map::new();
    it.insert("file".into(), sources.path(span.file).into());
    it.insert("line".into(), position.line.into());
    it.insert("column".into(), position.column.into());
    it.insert("end_line".into(), position.end_line.into());
    it.insert("end_column".into(), position.end_column.into());
    it
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_core::problem::Code;

    #[test]
    fn problems_and_notes_are_apart() {
        let mut sources = Sources::new();
        let file = sources.add("a.yml", "é: x\nb: y\n");
        let problem = Diagnosis::new(Code::Syntax, Span::new(file, 4..5), "no")
            .label("here")
            .other(Span::new(file, 6..7), "there")
            .note("because")
            .help("do");
        let note = Diagnosis::new(Code::DeadRule, Span::new(file, 6..7), "well");
        insta::assert_snapshot!(render(&sources, &[&problem, &note]), @r#"{"problems":[{"code":"S0003","severity":"error","message":"no","file":"a.yml","line":1,"column":4,"end_line":1,"end_column":5,"help":"do","explanation":["because"],"labels":[{"message":"here","file":"a.yml","line":1,"column":4,"end_line":1,"end_column":5},{"message":"there","file":"a.yml","line":2,"column":1,"end_line":2,"end_column":2}]}],"notes":[{"code":"S0902","severity":"note","message":"well","file":"a.yml","line":2,"column":1,"end_line":2,"end_column":2,"help":null,"explanation":[],"labels":[]}]}"#);
    }
}
