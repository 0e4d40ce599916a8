//! codex: `turn.completed` or `turn.failed` is the end. An `error` on the way may be a mere reconnection.

use serde_json::Value;

use super::state::{HarnessStreamState, count, error_words, sum, text};
use super::{HarnessUsage, RateLimit};

pub(super) fn event(event: &Value, state: &mut HarnessStreamState) {
    match text(event, "/type") {
        Some("thread.started") => state.session = text(event, "/thread_id").map(str::to_owned),
        Some("turn.started") => state.ending = None,
        Some("item.started") => match text(event, "/item/type") {
            Some("command_execution") => state.tool("command"),
            Some("file_change") => state.tool("edit"),
            Some("mcp_tool_call") => state.tool(text(event, "/item/tool").unwrap_or("mcp")),
            Some(other @ "web_search") => state.tool(other),
            Some(_) | None => {}
        },
        Some("item.completed") => match text(event, "/item/type") {
            Some("agent_message") => state.message(text(event, "/item/text").unwrap_or_default()),
            Some("file_change") => state.tool("edit"),
            Some(_) | None => {}
        },
        Some("turn.completed") => {
            let input = count(event, "/usage/input_tokens");
            let output = count(event, "/usage/output_tokens");
            let cached = count(event, "/usage/cached_input_tokens");
            state.used_in_all(HarnessUsage { input, cached, output, total: sum([input, output]), cost: None });
            state.end(Ok(()));
        }
        Some("turn.failed") => {
            limit(event, state);
            let words = error_words(event).or_else(|| state.trouble.clone());
            state.end(Err(words.unwrap_or_else(|| "its turn failed".to_owned())));
        }
        Some("error") => {
            limit(event, state);
            state.complain(&error_words(event).unwrap_or_else(|| "an error".to_owned()));
        }
        Some(_) | None => {}
    }
}

fn limit(event: &Value, state: &mut HarnessStreamState) {
    if let Some(resets_at) = count(event, "/error/resets_at") {
        state.rate_limit = Some(RateLimit { resets_at: Some(resets_at) });
    }
}
