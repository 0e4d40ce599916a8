//! The Chat Completions API, as opencode, qwen, pi, copilot and aider ask it.

use serde_json::{Value, json};

use super::{DOCUMENT, ModelCall, ModelMove, ModelScript, ModelSpeech, STREAM, TOKENS_IN, TOKENS_OUT, events};

pub(super) fn speak(script: &ModelScript, body: &Value) -> ModelSpeech {
    let tools = body["tools"].as_array().into_iter().flatten().map(|tool| &tool["function"]);
    let tools = tools.filter_map(|tool| Some((tool["name"].as_str()?, &tool["parameters"])));
    let messages = body["messages"].as_array().into_iter().flatten();
    let has_result = messages.into_iter().any(|message| message["role"] == "tool");
    let wanted = ModelMove::of(script, has_result, tools);
    let reply = wanted.reply();
    let (said, reason) = match &wanted {
        ModelMove::Call(ModelCall { name, arguments }) => {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            let call = json!({ "index": 0, "id": "call_scripted", "type": "function", "function": function });
            (json!({ "role": "assistant", "content": null, "tool_calls": [call] }), "tool_calls")
        }
        ModelMove::Sentence(text) | ModelMove::Aside(text) => (json!({ "role": "assistant", "content": text }), "stop"),
    };
    let usage = json!({ "prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT,
        "total_tokens": TOKENS_IN + TOKENS_OUT });
    let whole = |object: &str, choices: Value, usage: Value| {
        json!({ "id": "chatcmpl-scripted", "object": object, "created": 0, "model": body["model"],
            "choices": choices, "usage": usage })
    };
    if body["stream"] != true {
        let choice = json!([{ "index": 0, "message": said, "finish_reason": reason }]);
        return ModelSpeech { kind: DOCUMENT, text: whole("chat.completion", choice, usage).to_string(), reply };
    }
    let chunk = |delta: Value, reason: Value, usage: Value| {
        let choice = json!([{ "index": 0, "delta": delta, "finish_reason": reason }]);
        (None, whole("chat.completion.chunk", choice, usage))
    };
    let mut text = events(&[chunk(said, Value::Null, Value::Null), chunk(json!({}), json!(reason), usage)]);
    text.push_str("data: [DONE]\n\n");
    ModelSpeech { kind: STREAM, text, reply }
}
