//! The Messages API, as claude asks it.

use serde_json::{Value, json};

use super::{DOCUMENT, ModelCall, ModelMove, ModelScript, ModelSpeech, STREAM, TOKENS_IN, TOKENS_OUT, events};

pub(super) fn speak(script: &ModelScript, body: &Value) -> ModelSpeech {
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.filter_map(|tool| Some((tool["name"].as_str()?, &tool["input_schema"])));
    let wanted = ModelMove::of(script, has_result(body), tools);
    let reply = wanted.reply();
    let (content, reason) = match &wanted {
        ModelMove::Call(ModelCall { name, arguments }) => {
            (json!({ "type": "tool_use", "id": "toolu_scripted", "name": name, "input": arguments }), "tool_use")
        }
        ModelMove::Sentence(text) | ModelMove::Aside(text) => (json!({ "type": "text", "text": text }), "end_turn"),
    };
    let usage = json!({ "input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT });
    let message = |content: Value, reason: Value| {
        json!({ "id": "msg_scripted", "type": "message", "role": "assistant", "model": body["model"],
            "content": content, "stop_reason": reason, "stop_sequence": null, "usage": usage })
    };
    if body["stream"] != true {
        let text = message(json!([content]), json!(reason)).to_string();
        return ModelSpeech { kind: DOCUMENT, text, reply };
    }
    let (begin, delta) = match &wanted {
        ModelMove::Call(ModelCall { name, arguments }) => (
            json!({ "type": "tool_use", "id": "toolu_scripted", "name": name, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }),
        ),
        ModelMove::Sentence(text) | ModelMove::Aside(text) => {
            (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": text }))
        }
    };
    let text = [
        json!({ "type": "message_start", "message": message(json!([]), Value::Null) }),
        json!({ "type": "content_block_start", "index": 0, "content_block": begin }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
            "usage": { "output_tokens": TOKENS_OUT } }),
        json!({ "type": "message_stop" }),
    ];
    let text = text.iter().map(|event| events(&[(event["type"].as_str(), event.clone())])).collect();
    ModelSpeech { kind: STREAM, text, reply }
}

fn has_result(body: &Value) -> bool {
    let messages = body["messages"].as_array().into_iter().flatten();
    let parts = messages.filter_map(|message| message["content"].as_array()).flatten();
    parts.into_iter().any(|part| part["type"] == "tool_result")
}
