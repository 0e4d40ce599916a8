//! claude, and those that print the same lines: amp, qwen, and nearly so cursor-agent.
//!
//! The last line is `result`. `is_error` may be true where `subtype` says success, so both must be good.

use serde_json::Value;

use super::state::{HarnessStreamState, count, dollars, error_words, sum, text};
use super::{HarnessUsage, RateLimit};

#[derive(Clone, Copy)]
pub(super) enum ClaudeVariant {
    Claude,
    /// `total_cost_usd` is not what its users pay.
    Amp,
    /// `input_tokens` counts those from the cache too.
    Qwen,
}

pub(super) fn event(event: &Value, state: &mut HarnessStreamState, kin: ClaudeVariant) {
    let from_a_helper = event.get("parent_tool_use_id").is_some_and(|id| !id.is_null());
    match text(event, "/type") {
        Some("system") => {
            session(event, state);
            retry(event, state);
        }
        Some("assistant") => {
            blocks(event, state, from_a_helper);
            if let (Some(id), Some(used)) = (text(event, "/message/id"), event.pointer("/message/usage")) {
                state.used_by(id, usage(used, None, kin));
            }
        }
        Some("rate_limit_event") => limit(event, state),
        Some("result") => {
            session(event, state);
            let cost = match kin {
                ClaudeVariant::Claude => dollars(event, "/total_cost_usd"),
                ClaudeVariant::Amp | ClaudeVariant::Qwen => None,
            };
            match event.get("usage") {
                Some(used) => state.used_in_all(usage(used, cost, kin)),
                None => state.used_in_all(HarnessUsage { cost, ..HarnessUsage::default() }),
            }
            finish(event, state);
        }
        Some("error") => state.complain(&error_words(event).unwrap_or_else(|| "an error".to_owned())),
        Some(_) | None => {}
    }
}

/// cursor-agent: tools have lines of their own, and its counts are written in camel case.
pub(super) fn cursor_event(event: &Value, state: &mut HarnessStreamState) {
    match text(event, "/type") {
        Some("system") => session(event, state),
        Some("assistant") => blocks(event, state, false),
        Some("tool_call") if text(event, "/subtype") == Some("started") => {
            let tool = event.get("tool_call").and_then(Value::as_object).and_then(|tool| tool.keys().next());
            state.tool(tool.map_or("tool", |name| name.trim_end_matches("ToolCall")));
        }
        Some("result") => {
            session(event, state);
            let (read, written) = (count(event, "/usage/cacheReadTokens"), count(event, "/usage/cacheWriteTokens"));
            let input = sum([count(event, "/usage/inputTokens"), read, written]);
            let output = count(event, "/usage/outputTokens");
            state.used_in_all(HarnessUsage { input, cached: read, output, total: sum([input, output]), cost: None });
            finish(event, state);
        }
        Some("error") => state.complain(&error_words(event).unwrap_or_else(|| "an error".to_owned())),
        Some(_) | None => {}
    }
}

fn session(event: &Value, state: &mut HarnessStreamState) {
    if let Some(id) = text(event, "/session_id") {
        state.session = Some(id.to_owned());
    }
}

/// It asks its model again: by itself no failure, but the reason why nothing more came, if nothing more comes.
fn retry(event: &Value, state: &mut HarnessStreamState) {
    let (count_of, most) = match text(event, "/subtype") {
        Some("api_retry") => (count(event, "/attempt"), count(event, "/max_retries")),
        Some("retry") => (count(event, "/data/attempt"), count(event, "/data/maxRetries")),
        Some(_) | None => return,
    };
    let (Some(count_of), Some(most)) = (count_of, most) else { return };
    let status = count(event, "/error_status").map(|status| format!(" {status}"));
    let words = text(event, "/error").map(|words| format!(" {words}"));
    let why = format!("{}{}", status.unwrap_or_default(), words.unwrap_or_default());
    state.complain(format!("its model did not answer, attempt {count_of} of {most}:{why}").trim_end_matches(':'));
}

/// A helper's words are not the agent's: only its tools are a sign of life.
fn blocks(event: &Value, state: &mut HarnessStreamState, from_a_helper: bool) {
    let Some(blocks) = event.pointer("/message/content").and_then(Value::as_array) else { return };
    let words: Vec<&str> = blocks.iter().filter_map(|block| text(block, "/text")).collect();
    if !from_a_helper && !words.is_empty() {
        state.message(&words.concat());
    }
    for block in blocks.iter().filter(|block| text(block, "/type") == Some("tool_use")) {
        state.tool(text(block, "/name").unwrap_or("tool"));
    }
}

fn limit(event: &Value, state: &mut HarnessStreamState) {
    // Other statuses only tell how much is left.
    if text(event, "/rate_limit_info/status") == Some("rejected") {
        state.rate_limit = Some(RateLimit { resets_at: count(event, "/rate_limit_info/resetsAt") });
    }
}

fn usage(used: &Value, cost: Option<u64>, kin: ClaudeVariant) -> HarnessUsage {
    let cached = count(used, "/cache_read_input_tokens");
    let input = match kin {
        ClaudeVariant::Claude | ClaudeVariant::Amp => {
            sum([count(used, "/input_tokens"), cached, count(used, "/cache_creation_input_tokens")])
        }
        ClaudeVariant::Qwen => count(used, "/input_tokens"),
    };
    let output = count(used, "/output_tokens");
    HarnessUsage { input, cached, output, total: sum([input, output]), cost }
}

fn finish(event: &Value, state: &mut HarnessStreamState) {
    let answer = text(event, "/result").unwrap_or_default();
    let subtype = text(event, "/subtype").unwrap_or("success");
    let is_error = event.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    if !is_error && subtype == "success" {
        state.answer(answer);
        state.end(Ok(()));
        return;
    }
    let first = event.pointer("/errors/0").and_then(Value::as_str);
    let words = [answer, first.unwrap_or_default()].into_iter().find(|words| !words.trim().is_empty());
    let words = words.map(str::to_owned).or_else(|| error_words(event)).or_else(|| state.trouble.clone());
    let reason = match subtype {
        "success" | "error_during_execution" => "it reports an error",
        "error_max_turns" => "it ran out of turns",
        other => other,
    };
    state.end(Err(words.map_or_else(|| reason.to_owned(), |words| format!("{reason}: {words}"))));
}
