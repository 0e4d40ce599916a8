//! copilot: lines of `{type, data}`; the last is `result` with the exit status that will follow.
//!
//! The `cost` it names is in premium requests, not in money.

use serde_json::Value;

use super::HarnessUsage;
use super::state::{HarnessStreamState, combine, count, error_words, sum, text};

pub(super) fn event(event: &Value, state: &mut HarnessStreamState) {
    match text(event, "/type") {
        Some("session.start") => state.session = text(event, "/data/sessionId").map(str::to_owned),
        Some("assistant.message") => state.message(text(event, "/data/content").unwrap_or_default()),
        Some("tool.execution_start") => state.tool(text(event, "/data/toolName").unwrap_or("tool")),
        Some("assistant.usage") => {
            let (input, output) = (count(event, "/data/inputTokens"), count(event, "/data/outputTokens"));
            // Inside one process every line is one call.
            let cached = count(event, "/data/cacheReadTokens");
            let call = HarnessUsage { input, cached, output, total: sum([input, output]), cost: None };
            state.used_in_all(combine(state.usage(), call, u64::saturating_add));
        }
        Some("session.error") => state.complain(&error_words(event).unwrap_or_else(|| "an error".to_owned())),
        Some("result") => {
            if let Some(session) = text(event, "/sessionId").or_else(|| text(event, "/data/sessionId")) {
                state.session = Some(session.to_owned());
            }
            let status = event.pointer("/exitCode").or_else(|| event.pointer("/data/exitCode")).and_then(Value::as_i64);
            state.end(match status {
                Some(0) => Ok(()),
                status => Err(state.trouble.clone().unwrap_or_else(|| match status {
                    Some(status) => format!("it reports the exit status {status}"),
                    None => "it does not say how it ended".to_owned(),
                })),
            });
        }
        Some(_) | None => {}
    }
}
