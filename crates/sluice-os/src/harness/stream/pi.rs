//! pi: every message has its usage and the reason it stopped; `agent_end` is the end, unless it starts once more.

use serde_json::Value;

use super::HarnessUsage;
use super::state::{HarnessStreamState, count, dollars, sum, text};

pub(super) fn event(event: &Value, state: &mut HarnessStreamState) {
    match text(event, "/type") {
        Some("session") => state.session = text(event, "/id").map(str::to_owned),
        Some("agent_start" | "auto_retry_start") => state.ending = None,
        Some("tool_execution_start") => state.tool(text(event, "/toolName").unwrap_or("tool")),
        // `turn_end` and `agent_end` tell the same messages again.
        Some("message_end") if text(event, "/message/role") == Some("assistant") => message(event, state),
        Some("agent_end") => state.end(state.trouble.clone().map_or(Ok(()), Err)),
        Some(_) | None => {}
    }
}

fn message(event: &Value, state: &mut HarnessStreamState) {
    let blocks = event.pointer("/message/content").and_then(Value::as_array);
    let words: Vec<&str> = blocks
        .into_iter()
        .flatten()
        .filter(|block| text(block, "/type") == Some("text"))
        .filter_map(|block| text(block, "/text"))
        .collect();
    state.message(&words.concat());
    let cached = count(event, "/message/usage/cacheRead");
    let input = sum([count(event, "/message/usage/input"), cached, count(event, "/message/usage/cacheWrite")]);
    let output = count(event, "/message/usage/output");
    let cost = dollars(event, "/message/usage/cost/total");
    state.used(HarnessUsage { input, cached, output, total: sum([input, output]), cost });
    state.trouble = match text(event, "/message/stopReason") {
        Some("stop" | "toolUse") | None => None,
        Some(reason) => Some(match text(event, "/message/errorMessage") {
            Some(words) => words.to_owned(),
            None => format!("its last message ended by `{reason}`"),
        }),
    };
}
