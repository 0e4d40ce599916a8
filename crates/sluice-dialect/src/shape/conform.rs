//! Compares a file with its shape and reports every difference. Whatever is then missing from the draft is a hole; a key
//! too many is not.

use std::collections::BTreeSet;

use sluice_core::findings::CheckFindings;
use sluice_core::problem::{Code, Diagnosis, clip, closest, list, suggest};
use sluice_core::span::Span;

use super::{Field, FieldKind, Shape};
use crate::duration;
use crate::tree::{Node, NodeValue, TableEntry};

/// Reports where `node` is not a table of `shape`.
pub fn conform(node: &Node, shape: &Shape, findings: &mut CheckFindings) {
    match &node.value {
        NodeValue::Table(entries) => table(node.span, entries, shape, findings),
        _ => findings.hole(wrong_type(node, None, shape.what)),
    }
}

/// A value that is not of its type. The key says which of those on a line it is.
fn wrong_type(node: &Node, key: Option<&str>, expected: &str) -> Diagnosis {
    let key = key.map(|key| format!("`{}`: ", clip(key))).unwrap_or_default();
    let message = format!("{key}expected {expected}, found {}", node.kind_name());
    let problem = Diagnosis::new(Code::WrongType, node.span, message);
    match (&node.value, expected) {
        (NodeValue::Bool(_) | NodeValue::Integer(_) | NodeValue::Decimal(_), "text") => {
            problem.help("put it in quotes")
        }
        (NodeValue::Text(_) | NodeValue::Table(_), expected) if expected.starts_with("a list") => {
            problem.help("write it as a list, even if it has one entry")
        }
        _ => problem,
    }
}

fn table(span: Span, entries: &[TableEntry], shape: &Shape, findings: &mut CheckFindings) {
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
        Some(FieldKind::Choice(words)) => words.contains(&tag),
        _ => false,
    }
}

fn unknown_key(entry: &TableEntry, shape: &Shape, meant: &mut BTreeSet<&'static str>) -> Diagnosis {
    let key = &entry.key.value;
    let problem =
        Diagnosis::new(Code::UnknownKey, entry.key.span, format!("{} has no key `{}`", shape.what, clip(key)));
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

fn wrong_variant(entry: &TableEntry, shape: &Shape, tag: &str) -> Diagnosis {
    let (tag_key, key) = (shape.tag.as_ref().map_or("type", |tag| tag.key), &entry.key.value);
    let with: Vec<&str> =
        shape.fields().filter(|field| field.key == key).flat_map(|field| field.only.iter().copied()).collect();
    Diagnosis::new(Code::KeyConflict, entry.key.span, format!("`{key}` does not go with `{tag_key}: {tag}`"))
        .help(format!("it goes with {}", list(&with, "and")))
}

fn missing(span: Span, entries: &[TableEntry], field: &Field, shape: &Shape) -> Diagnosis {
    let span = entries.first().map_or(span, |first| first.key.span);
    Diagnosis::new(Code::MissingKey, span, format!("{} needs a `{}`", shape.what, field.key))
        .help(format!("`{}`: {}", field.key, field.doc))
}

fn value(node: &Node, kind: &FieldKind, key: &str, findings: &mut CheckFindings) {
    match (kind, &node.value) {
        (FieldKind::Any, _) | (FieldKind::Text, NodeValue::Text(_)) | (FieldKind::Bool, NodeValue::Bool(_)) => {}
        (FieldKind::Integer(least, most), NodeValue::Integer(number)) => {
            if number < least || number > most {
                let message = format!("`{key}` is {number}, but must be from {least} to {most}");
                findings.hole(Diagnosis::new(Code::BadQuantity, node.span, message));
            }
        }
        (FieldKind::Duration, NodeValue::Text(_) | NodeValue::Integer(_)) => {
            if let Err(reason) = duration::of(node) {
                findings.hole(
                    Diagnosis::new(Code::BadQuantity, node.span, format!("`{key}` is not a length of time: {reason}"))
                        .help(format!("{}, or a whole number of seconds", duration::FORMS)),
                );
            }
        }
        (FieldKind::Choice(words), NodeValue::Text(text)) => {
            choice(node, key, &text.value, words, words.contains(&&*text.value), findings);
        }
        (FieldKind::ChoiceAnyCase(words), NodeValue::Text(text)) => {
            let known = words.iter().any(|word| word.eq_ignore_ascii_case(&text.value));
            choice(node, key, &text.value, words, known, findings);
        }
        (FieldKind::List(inner), NodeValue::List(nodes)) => {
            nodes.iter().for_each(|node| value(node, inner, key, findings))
        }
        (FieldKind::Table(shape), NodeValue::Table(entries)) => table(node.span, entries, shape, findings),
        (FieldKind::Named(inner), NodeValue::Table(entries)) => {
            entries.iter().for_each(|entry| value(&entry.value, inner, &entry.key.value, findings));
        }
        // An empty value is an empty list or table: `hooks:` with nothing behind it says "none".
        (FieldKind::List(_) | FieldKind::Named(_), NodeValue::Null) => {}
        (FieldKind::Table(shape), NodeValue::Null) => table(node.span, &[], shape, findings),
        (FieldKind::Either(kinds), _) => match kinds.iter().find(|kind| accepts(kind, node)) {
            Some(kind) => value(node, kind, key, findings),
            None => {
                let expected = kinds.iter().map(expected).collect::<Vec<_>>().join(" or ");
                findings.hole(wrong_type(node, Some(key), &expected));
            }
        },
        _ => findings.hole(wrong_type(node, Some(key), &expected(kind))),
    }
}

fn choice(node: &Node, key: &str, written: &str, words: &[&'static str], known: bool, findings: &mut CheckFindings) {
    if !known {
        findings.hole(
            Diagnosis::new(Code::NotAChoice, node.span, format!("`{key}` cannot be `{}`", clip(written)))
                .maybe_help(suggest(written, words.iter().copied())),
        );
    }
}

/// Whether a value is of the type that `kind` asks for, whatever stands in it.
fn accepts(kind: &FieldKind, node: &Node) -> bool {
    match kind {
        FieldKind::Any => true,
        FieldKind::Text | FieldKind::Choice(_) | FieldKind::ChoiceAnyCase(_) => {
            matches!(node.value, NodeValue::Text(_))
        }
        FieldKind::Integer(..) => matches!(node.value, NodeValue::Integer(_)),
        FieldKind::Bool => matches!(node.value, NodeValue::Bool(_)),
        FieldKind::Duration => matches!(node.value, NodeValue::Text(_) | NodeValue::Integer(_)),
        FieldKind::List(_) => matches!(node.value, NodeValue::List(_)),
        FieldKind::Table(_) | FieldKind::Named(_) => matches!(node.value, NodeValue::Table(_)),
        FieldKind::Either(kinds) => kinds.iter().any(|kind| accepts(kind, node)),
    }
}

fn expected(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Any => "anything".into(),
        FieldKind::Text => "text".into(),
        FieldKind::Integer(..) => "a whole number".into(),
        FieldKind::Bool => "`true` or `false`".into(),
        FieldKind::Duration => "a length of time".into(),
        FieldKind::Choice(words) | FieldKind::ChoiceAnyCase(words) => list(words, "or"),
        FieldKind::List(inner) => format!("a list of {}", plural(inner)),
        FieldKind::Table(shape) => shape.what.into(),
        FieldKind::Named(_) => "a table".into(),
        FieldKind::Either(kinds) => kinds.iter().map(expected).collect::<Vec<_>>().join(" or "),
    }
}

fn plural(kind: &FieldKind) -> &'static str {
    match kind {
        FieldKind::Text | FieldKind::Choice(_) | FieldKind::ChoiceAnyCase(_) => "texts",
        FieldKind::Integer(..) => "whole numbers",
        FieldKind::Table(_) | FieldKind::Named(_) => "tables",
        FieldKind::Bool | FieldKind::Duration | FieldKind::List(_) | FieldKind::Either(_) | FieldKind::Any => "values",
    }
}
