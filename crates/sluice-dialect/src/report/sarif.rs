//! Findings as a SARIF 2.1.0 log, which code hosts and editors show beside the file.
//!
//! Notes are left out: SARIF has a level for them, but the tools that read it show every result as an alert.

use super::{CodeDescription, cut};
use crate::source::Sources;
use serde_json::{Value, json};
use sluice_core::problem::{Code, Diagnosis, Severity};
use sluice_core::span::Span;
use std::fmt::Write;

pub(super) fn render(sources: &Sources, problems: &[&Diagnosis], describe: &CodeDescription) -> Value {
    let problems: Vec<&&Diagnosis> = problems.iter().filter(|problem| problem.severity() != Severity::Note).collect();
    let mut codes: Vec<Code> = problems.iter().map(|problem| problem.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let results: Vec<Value> = problems.iter().map(|problem| result(sources, problem, &codes)).collect();
    let rules: Vec<Value> = codes.iter().map(|code| rule(*code, describe)).collect();
    // Without `informationUri`: the schema wants an absolute one, and there is no site about Sluice.
    let driver = json!({ "name": "sluice", "version": env!("CARGO_PKG_VERSION"), "rules": rules });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{ "tool": { "driver": driver }, "columnKind": "unicodeCodePoints", "results": results }],
    })
}

fn rule(code: Code, describe: &CodeDescription) -> Value {
    let description = describe(code).unwrap_or_else(|| code.title().to_owned());
    json!({
        "id": code.as_str(),
        "shortDescription": { "text": code.title() },
        "fullDescription": { "text": cut(&description) },
        // Not `helpUri`: the schema wants an absolute one there, and the pages are files of the repository.
        "help": { "text": format!("`sluice workflow explain {0}` shows its page, docs/problems/{0}.md", code.as_str()) },
        "defaultConfiguration": { "level": code.severity().word() },
    })
}

fn result(sources: &Sources, problem: &Diagnosis, codes: &[Code]) -> Value {
    let mut text = cut(&problem.message).into_owned();
    for note in &problem.notes {
        let _ = write!(text, "\nnote: {}", cut(note));
    }
    if let Some(help) = &problem.help {
        let _ = write!(text, "\nhelp: {}", cut(help));
    }
    let mut result = json!({
        "ruleId": problem.code.as_str(),
        "ruleIndex": codes.partition_point(|code| *code < problem.code),
        "level": problem.severity().word(),
        "message": { "text": text },
        "locations": [{ "physicalLocation": location(sources, problem.span) }],
    });
    if !problem.others.is_empty() {
        let related = problem.others.iter().enumerate().map(|(id, other)| {
            json!({
                "id": id,
                "physicalLocation": location(sources, other.span),
                "message": { "text": cut(&other.text) },
            })
        });
        result["relatedLocations"] = Value::Array(related.collect());
    }
    result
}

fn location(sources: &Sources, span: Span) -> Value {
    let position = sources.position(span);
    json!({
        "artifactLocation": { "uri": uri(sources.path(span.file)) },
        "region": {
            "startLine": position.line,
            "startColumn": position.column,
            "endLine": position.end_line,
            "endColumn": position.end_column,
        },
    })
}

/// A path as a URI: forward slashes, and anything but the plainest characters percent-encoded.
fn uri(path: &str) -> String {
    let path = path.replace('\\', "/");
    let relative = path.strip_prefix("./").unwrap_or(&path);
    let mut uri = String::from(if relative.starts_with('/') { "file://" } else { "" });
    for byte in relative.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(char::from(byte)),
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("./a b/ü%.yml"), "a%20b/%C3%BC%25.yml");
        assert_eq!(uri("a\\b.toml"), "a/b.toml");
        assert_eq!(uri("/a.toml"), "file:///a.toml");
        assert_eq!(uri("a:b"), "a%3Ab");
    }

    #[test]
    fn the_log_has_rules_results_and_related_places() {
        let mut sources = Sources::new();
        let file = sources.add("a.yml", "é: x\nb: y\n");
        let problem = Diagnosis::new(Code::DuplicateKey, Span::new(file, 4..5), "no")
            .other(Span::new(file, 6..7), "there")
            .help("do");
        let warning = Diagnosis::new(Code::EndlessLoop, Span::new(file, 6..7), "round");
        let describe = |code| (code == Code::EndlessLoop).then(|| "There is a circle.".to_owned());
        let note = Diagnosis::new(Code::DeadRule, Span::new(file, 6..7), "well");
        let rule = |code: &str, title: &str, description: &str, level: &str| {
            let help = format!("`sluice workflow explain {code}` shows its page, docs/problems/{code}.md");
            json!({
                "id": code,
                "shortDescription": { "text": title },
                "fullDescription": { "text": description },
                "help": { "text": help },
                "defaultConfiguration": { "level": level },
            })
        };
        let place = |line: u32, column: u32| {
            let region = json!({ "startLine": line, "startColumn": column, "endLine": line, "endColumn": column + 1 });
            json!({ "artifactLocation": { "uri": "a.yml" }, "region": region })
        };
        let twice = "A key is written twice.";
        let rules = [
            rule("S0006", twice, twice, "error"),
            rule("S0116", "A loop that agents can go round for ever.", "There is a circle.", "warning"),
        ];
        let results = json!([
            {
                "ruleId": "S0006",
                "ruleIndex": 0,
                "level": "error",
                "message": { "text": "no\nhelp: do" },
                "locations": [{ "physicalLocation": place(1, 4) }],
                "relatedLocations": [{ "id": 0, "physicalLocation": place(2, 1), "message": { "text": "there" } }],
            },
            {
                "ruleId": "S0116",
                "ruleIndex": 1,
                "level": "warning",
                "message": { "text": "round" },
                "locations": [{ "physicalLocation": place(2, 1) }],
            },
        ]);
        let driver = json!({ "name": "sluice", "version": "0.1.0", "rules": rules });
        let log = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{ "tool": { "driver": driver }, "columnKind": "unicodeCodePoints", "results": results }],
        });
        assert_eq!(render(&sources, &[&problem, &warning, &note], &describe), log);
    }
}
