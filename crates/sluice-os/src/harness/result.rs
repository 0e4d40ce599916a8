//! What an agent's last words say about its step: a JSON block, a verdict, or just words.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepResult {
    /// About the work, for the steps after it.
    pub summary: String,
    /// The one word that conditions read.
    pub result: Option<String>,
    pub outputs: Option<Value>,
    /// The whole last JSON block.
    pub value: Option<Value>,
    pub success: Option<bool>,
    /// What was wrong with the text, for the log.
    pub warning: Option<String>,
}

/// Reads `text`: its last fenced JSON block, else a strict `Verdict:` line, else the text as summary.
///
/// A last block that says it is JSON and is not is no reason to believe an earlier one, which may quote the prompt.
pub fn result(text: &str) -> StepResult {
    let mut found = StepResult { summary: text.trim().to_owned(), ..StepResult::default() };
    match last_json(text) {
        None => {}
        Some((_, Err(error))) => found.warning = Some(format!("the last JSON block cannot be read: {error}")),
        Some((start, Ok(value))) => take(&mut found, text[..start].trim(), value),
    }
    if found.result.is_none() {
        found.result = verdict(text).map(str::to_owned);
    }
    found
}

fn take(found: &mut StepResult, before: &str, value: Value) {
    let word = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    if let Value::Object(fields) = &value {
        let summary = fields.get("summary").and_then(word).filter(|summary| !summary.trim().is_empty());
        match summary {
            Some(summary) => found.summary = summary,
            None if !before.is_empty() => found.summary = before.to_owned(),
            None => {}
        }
        found.result = fields.get("result").and_then(word);
        found.outputs = fields.get("outputs").cloned();
        found.success = fields.get("success").and_then(Value::as_bool);
    }
    found.value = Some(value);
}

/// Where the last fenced block begins that is JSON, or says that it is, and what it holds.
fn last_json(text: &str) -> Option<(usize, Result<Value, serde_json::Error>)> {
    let mut last = None;
    let mut open: Option<(usize, bool, String)> = None;
    for (event, range) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let language = info.split([' ', ',', '{']).next().unwrap_or_default().to_ascii_lowercase();
                let may_be_json = language.is_empty() || language == "json";
                open = may_be_json.then(|| (range.start, language == "json", String::new()));
            }
            Event::Text(part) => {
                if let Some((_, _, content)) = &mut open {
                    content.push_str(&part);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                let Some((start, says_json, content)) = open.take() else { continue };
                let value = serde_json::from_str::<Value>(content.trim());
                // A block without a language counts only as what is unmistakably JSON: a list or an object.
                let structured = value.as_ref().is_ok_and(|value| value.is_object() || value.is_array());
                if says_json || structured {
                    last = Some((start, value));
                }
            }
            _ => {}
        }
    }
    last
}

/// The last line that is `Verdict: PASS` or `Verdict: FAIL` and nothing else.
fn verdict(text: &str) -> Option<&'static str> {
    text.lines().rev().find_map(|line| {
        let (key, word) = line.trim().split_once(':')?;
        let word = word.trim();
        let known = ["PASS", "FAIL"].into_iter().find(|known| word.eq_ignore_ascii_case(known))?;
        key.trim().eq_ignore_ascii_case("verdict").then_some(known)
    })
}
