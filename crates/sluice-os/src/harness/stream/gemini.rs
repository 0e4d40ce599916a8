//! gemini: words come in pieces, and `result` has a status and counts but no words.

use serde_json::Value;

use super::HarnessUsage;
use super::state::{HarnessStreamState, count, error_words, sum, text};

pub(super) fn event(event: &Value, state: &mut HarnessStreamState) {
    match text(event, "/type") {
        Some("init") => state.session = text(event, "/session_id").map(str::to_owned),
        Some("message") if text(event, "/role") == Some("assistant") => {
            let words = text(event, "/content").unwrap_or_default();
            match event.get("delta").and_then(Value::as_bool) {
                Some(true) => state.say(words),
                Some(false) | None => state.message(words),
            }
        }
        Some("tool_use") => state.tool(text(event, "/tool_name").unwrap_or("tool")),
        Some("error") if text(event, "/severity") != Some("warning") => {
            state.complain(&error_words(event).unwrap_or_else(|| "an error".to_owned()));
        }
        Some("result") => {
            let (input, output) = (count(event, "/stats/input_tokens"), count(event, "/stats/output_tokens"));
            let total = count(event, "/stats/total_tokens").or(sum([input, output]));
            state.used_in_all(HarnessUsage { input, cached: count(event, "/stats/cached"), output, total, cost: None });
            state.end_by_status(event, &["success"]);
        }
        Some(_) | None => {}
    }
}
