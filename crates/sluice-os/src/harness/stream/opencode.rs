//! opencode: there is no final line. It has ended well when its last step finished with `stop` and no error followed.

use serde_json::Value;

use super::HarnessUsage;
use super::state::{HarnessStreamState, count, dollars, sum, text};

pub(super) fn event(event: &Value, state: &mut HarnessStreamState) {
    if let Some(session) = text(event, "/sessionID") {
        state.session = Some(session.to_owned());
    }
    match text(event, "/type") {
        Some("step_start") => state.ending = None,
        Some("text") => state.message(text(event, "/part/text").unwrap_or_default()),
        Some("tool_use") => state.tool(text(event, "/part/tool").unwrap_or("tool")),
        Some("step_finish") => {
            let cached = count(event, "/part/tokens/cache/read");
            let written = count(event, "/part/tokens/cache/write");
            let input = sum([count(event, "/part/tokens/input"), cached, written]);
            let output = sum([count(event, "/part/tokens/output"), count(event, "/part/tokens/reasoning")]);
            let usage =
                HarnessUsage { input, cached, output, total: sum([input, output]), cost: dollars(event, "/part/cost") };
            match text(event, "/part/id") {
                Some(id) => state.used_by(id, usage),
                None => state.used(usage),
            }
            match text(event, "/part/reason") {
                Some("stop") => state.end(Ok(())),
                Some("tool-calls" | "tool_calls") | None => {}
                Some(other) => state.end(Err(format!("its last step ended by `{other}`"))),
            }
        }
        Some("error") => state.fail(event),
        Some(_) | None => {}
    }
}
