//! goose: a message comes in pieces under one id; `complete` is the end and knows the sum of the tokens.

use serde_json::Value;

use super::HarnessUsage;
use super::state::{HarnessStreamState, count, text};

pub(super) fn event(event: &Value, state: &mut HarnessStreamState) {
    match text(event, "/type") {
        Some("message") if text(event, "/message/role") == Some("assistant") => {
            state.in_message(text(event, "/message/id"));
            for block in event.pointer("/message/content").and_then(Value::as_array).into_iter().flatten() {
                match text(block, "/type") {
                    Some("text") => state.say(text(block, "/text").unwrap_or_default()),
                    Some("toolRequest") => state.tool(text(block, "/toolCall/value/name").unwrap_or("tool")),
                    Some(_) | None => {}
                }
            }
        }
        Some("error") => state.fail(event),
        Some("complete") => {
            state.used_in_all(HarnessUsage { total: count(event, "/total_tokens"), ..HarnessUsage::default() });
            if !matches!(state.ending, Some(Err(_))) {
                state.end(Ok(()));
            }
        }
        Some(_) | None => {}
    }
}
