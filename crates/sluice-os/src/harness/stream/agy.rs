//! agy: `{event, …}` lines. It repeats the prompt as a step, and with an unknown model it ends well having done nothing.

use serde_json::Value;

use super::HarnessUsage;
use super::state::{HarnessStreamState, count, error_words, sum, text};

pub(super) fn event(event: &Value, state: &mut HarnessStreamState) {
    let kind = text(event, "/event").or_else(|| text(event, "/type"));
    let body = kind.and_then(|kind| event.get(kind)).unwrap_or(event);
    if let Some(id) = text(event, "/conversation_id").or_else(|| text(body, "/conversation_id")) {
        state.session = Some(id.to_owned());
    }
    match kind {
        Some("step_update") => match text(body, "/step_type") {
            Some("agent_response") => state.say(text(body, "/text_delta").unwrap_or_default()),
            Some("user_input" | "system_message" | "checkpoint") | None => {}
            Some(tool) if text(body, "/state") == Some("DONE") => state.tool(tool),
            Some(_) => {}
        },
        Some("error") => state.complain(&error_words(body).unwrap_or_else(|| "an error".to_owned())),
        Some("result") => {
            state.answer(text(body, "/response").unwrap_or_default());
            let (input, output) = (count(body, "/usage/input_tokens"), count(body, "/usage/output_tokens"));
            let total = count(body, "/usage/total_tokens").or(sum([input, output]));
            state.used_in_all(HarnessUsage { input, cached: None, output, total, cost: None });
            state.end_by_status(body, &["SUCCESS", "OK"]);
        }
        Some(_) | None => {}
    }
}
