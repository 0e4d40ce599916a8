//! Compares a file with its shape and reports every difference. Whatever is then missing from the draft is a hole; a key
//! too many is not.

use std::collections::BTreeSet;

use sluice_core::findings::Findings;
use sluice_core::problem::{Code, Problem, clip, closest, list, suggest};
use sluice_core::span::Span;

use super::{Field, Kind, Shape};
use crate::duration;
use crate::tree::{Entry, Node, Value};

/// Reports where `node` is not a table of `shape`.
pub fn conform(node: &Node, shape: &Shape, findings: &mut Findings) {
    match &node.value {
        Value::Table(entries) => table(node.span, entries, shape, findings),
        _ => findings.hole(wrong_type(node, shape.what)),
    }
}

fn wrong_type(node: &Node, expected: &str) -> Problem {
    let problem = Problem::new(Code::WrongType, node.span, format!("expected {expected}, found {}", node.kind_name()));
    match (&node.value, expected) {
        (Value::Bool(_) | Value::Integer(_) | Value::Decimal(_), "text") => problem.help("put it in quotes"),
        (Value::Text(_) | Value::Table(_), expected) if expected.starts_with("a list") => {
            problem.help("write it as a list, even if it has one entry")
        }
        _ => problem,
    }
}

fn table(span: Span, entries: &[Entry], shape: &Shape, findings: &mut Findings) {
    let tag = shape.tag.as_ref().and_then(|tag| {
        let written = entries.iter().find(|entry| entry.key.value == tag.key);
        match written {
            Some(entry) => entry.value.as_text().map(|text| text.value.as_str()),
            None => tag.default,
        }
    });
    let tag_is_known = |tag: &str| shape.fields().all(|field| field.only.is_empty()) || known_tag(shape, tag);
    let tag = tag.filter(|tag| tag_is_known(tag));
    let mut meant = BTreeSet::new();
    // With a key of another type, it is the type that is in doubt, and what it alone needs is not asked for.
    let mut in_doubt = false;
    for entry in entries {
        match shape.field_for(&entry.key.value, tag) {
            Some(field) => {
                if let Some(tag) = tag.filter(|tag| !field.goes_with(tag)) {
                    findings.add(wrong_variant(entry, shape, tag));
                    in_doubt = true;
                }
                value(&entry.value, &field.kind, &entry.key.value, findings);
            }
            None => findings.add(unknown_key(entry, shape, &mut meant)),
        }
    }
    for field in shape.fields().filter(|field| field.required) {
        let applies = field.only.is_empty() || tag.is_some_and(|tag| field.only.contains(&tag));
        let there = entries.iter().any(|entry| entry.key.value == field.key);
        // A misspelt key is one mistake, not an unknown key and a missing one.
        let reported = meant.contains(field.key) || in_doubt && !field.only.is_empty();
        match (applies && !there, reported) {
            (true, false) => findings.hole(missing(span, entries, field, shape)),
            (true, true) => findings.leave_hole(),
            (false, _) => {}
        }
    }
}

fn known_tag(shape: &Shape, tag: &str) -> bool {
    let key = shape.tag.as_ref().map(|tag| tag.key);
    match key.and_then(|key| shape.field(key)).map(|field| &field.kind) {
        Some(Kind::Choice(words)) => words.contains(&tag),
        _ => false,
    }
}

fn unknown_key(entry: &Entry, shape: &Shape, meant: &mut BTreeSet<&'static str>) -> Problem {
    let key = &entry.key.value;
    let problem = Problem::new(Code::UnknownKey, entry.key.span, format!("{} has no key `{}`", shape.what, clip(key)));
    if let Some(field) = shape.fields().find(|field| field.also.contains(&key.as_str())) {
        meant.insert(field.key);
        return problem.help(format!("here it is called `{}`", field.key));
    }
    match closest(key, shape.fields().map(|field| field.key)) {
        Some(close) => {
            meant.extend(shape.field(close).map(|field| field.key));
            problem.help(format!("did you mean `{close}`?"))
        }
        None => {
            let keys: Vec<&str> = shape.fields().map(|field| field.key).collect();
            problem.help(format!("it can have {}", list(&keys, "and")))
        }
    }
}

fn wrong_variant(entry: &Entry, shape: &Shape, tag: &str) -> Problem {
    let (tag_key, key) = (shape.tag.as_ref().map_or("type", |tag| tag.key), &entry.key.value);
    let with: Vec<&str> =
        shape.fields().filter(|field| field.key == key).flat_map(|field| field.only.iter().copied()).collect();
    Problem::new(Code::KeyConflict, entry.key.span, format!("`{key}` does not go with `{tag_key}: {tag}`"))
        .help(format!("it goes with {}", list(&with, "and")))
}

fn missing(span: Span, entries: &[Entry], field: &Field, shape: &Shape) -> Problem {
    let span = entries.first().map_or(span, |first| first.key.span);
    Problem::new(Code::MissingKey, span, format!("{} needs a `{}`", shape.what, field.key))
        .help(format!("`{}`: {}", field.key, field.doc))
}

fn value(node: &Node, kind: &Kind, key: &str, findings: &mut Findings) {
    match (kind, &node.value) {
        (Kind::Any, _) | (Kind::Text, Value::Text(_)) | (Kind::Bool, Value::Bool(_)) => {}
        (Kind::Integer(least, most), Value::Integer(number)) => {
            if number < least || number > most {
                let message = format!("`{key}` is {number}, but must be from {least} to {most}");
                findings.hole(Problem::new(Code::BadQuantity, node.span, message));
            }
        }
        (Kind::Duration, Value::Text(_) | Value::Integer(_)) => {
            if let Err(reason) = duration::of(node) {
                findings.hole(
                    Problem::new(Code::BadQuantity, node.span, format!("`{key}` is not a length of time: {reason}"))
                        .help("write `90s`, `5m`, `1h30m`, or a whole number of seconds"),
                );
            }
        }
        (Kind::Choice(words), Value::Text(text)) => {
            choice(node, key, &text.value, words, words.contains(&&*text.value), findings);
        }
        (Kind::ChoiceAnyCase(words), Value::Text(text)) => {
            let known = words.iter().any(|word| word.eq_ignore_ascii_case(&text.value));
            choice(node, key, &text.value, words, known, findings);
        }
        (Kind::List(inner), Value::List(nodes)) => nodes.iter().for_each(|node| value(node, inner, key, findings)),
        (Kind::Table(shape), Value::Table(entries)) => table(node.span, entries, shape, findings),
        (Kind::Named(inner), Value::Table(entries)) => {
            entries.iter().for_each(|entry| value(&entry.value, inner, &entry.key.value, findings));
        }
        // An empty value is an empty list or table: `hooks:` with nothing behind it says "none".
        (Kind::List(_) | Kind::Named(_), Value::Null) => {}
        (Kind::Table(shape), Value::Null) => table(node.span, &[], shape, findings),
        (Kind::Either(kinds), _) => match kinds.iter().find(|kind| accepts(kind, node)) {
            Some(kind) => value(node, kind, key, findings),
            None => findings.hole(wrong_type(node, &kinds.iter().map(expected).collect::<Vec<_>>().join(" or "))),
        },
        _ => findings.hole(wrong_type(node, &expected(kind))),
    }
}

fn choice(node: &Node, key: &str, written: &str, words: &[&'static str], known: bool, findings: &mut Findings) {
    if !known {
        findings.hole(
            Problem::new(Code::NotAChoice, node.span, format!("`{key}` cannot be `{}`", clip(written)))
                .maybe_help(suggest(written, words.iter().copied())),
        );
    }
}

/// Whether a value is of the type that `kind` asks for, whatever stands in it.
fn accepts(kind: &Kind, node: &Node) -> bool {
    match kind {
        Kind::Any => true,
        Kind::Text | Kind::Choice(_) | Kind::ChoiceAnyCase(_) => matches!(node.value, Value::Text(_)),
        Kind::Integer(..) => matches!(node.value, Value::Integer(_)),
        Kind::Bool => matches!(node.value, Value::Bool(_)),
        Kind::Duration => matches!(node.value, Value::Text(_) | Value::Integer(_)),
        Kind::List(_) => matches!(node.value, Value::List(_)),
        Kind::Table(_) | Kind::Named(_) => matches!(node.value, Value::Table(_)),
        Kind::Either(kinds) => kinds.iter().any(|kind| accepts(kind, node)),
    }
}

fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Any => "anything".into(),
        Kind::Text => "text".into(),
        Kind::Integer(..) => "a whole number".into(),
        Kind::Bool => "`true` or `false`".into(),
        Kind::Duration => "a length of time".into(),
        Kind::Choice(words) | Kind::ChoiceAnyCase(words) => list(words, "or"),
        Kind::List(inner) => format!("a list of {}", plural(inner)),
        Kind::Table(shape) => shape.what.into(),
        Kind::Named(_) => "a table".into(),
        Kind::Either(kinds) => kinds.iter().map(expected).collect::<Vec<_>>().join(" or "),
    }
}

fn plural(kind: &Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Choice(_) | Kind::ChoiceAnyCase(_) => "texts",
        Kind::Integer(..) => "whole numbers",
        Kind::Table(_) | Kind::Named(_) => "tables",
        Kind::Bool | Kind::Duration | Kind::List(_) | Kind::Either(_) | Kind::Any => "values",
    }
}
