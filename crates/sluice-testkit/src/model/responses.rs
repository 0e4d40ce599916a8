//! The Responses API, as codex asks it.

use serde_json::{Value, json};

use super::{DOCUMENT, ModelCall, ModelMove, ModelScript, ModelSpeech, STREAM, TOKENS_IN, TOKENS_OUT, events};

pub(super) fn speak(script: &ModelScript, body: &Value) -> ModelSpeech {
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.filter_map(|tool| Some((tool["name"].as_str()?, &tool["parameters"])));
    let input = body["input"].as_array().into_iter().flatten();
    let has_result = input.into_iter().any(|it| it["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output")));
    let wanted = ModelMove::of(script, has_result, tools);
    let reply = wanted.reply();
    let item = match &wanted {
        ModelMove::Call(ModelCall { name, arguments }) => {
            json!({ "type": "function_call", "id": "fc_scripted", "call_id": "call_scripted", "name": name,
                "arguments": arguments.to_string(), "status": "completed" })
        }
        ModelMove::Sentence(text) | ModelMove::Aside(text) => {
            json!({ "type": "message", "id": "msg_scripted", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
        }
    };
    let usage = json!({ "input_tokens": TOKENS_IN, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": TOKENS_OUT, "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": TOKENS_IN + TOKENS_OUT });
    let response = |status: &str, output: Value, usage: Value| {
        json!({ "id": "resp_scripted", "object": "response", "created_at": 0, "model": body["model"],
            "status": status, "output": output, "usage": usage })
    };
    let done = response("completed", json!([item]), usage);
    if body["stream"] != true {
        return ModelSpeech { kind: DOCUMENT, text: done.to_string(), reply };
    }
    let mut text = vec![
        json!({ "type": "response.created", "response": response("in_progress", json!([]), Value::Null) }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
    ];
    if let ModelMove::Sentence(said) | ModelMove::Aside(said) = &wanted {
        text.push(json!({ "type": "response.output_text.delta", "item_id": "msg_scripted", "output_index": 0,
            "content_index": 0, "delta": said }));
    }
    text.push(json!({ "type": "response.output_item.done", "output_index": 0, "item": item }));
    text.push(json!({ "type": "response.completed", "response": done }));
    let text = text.iter().map(|event| events(&[(event["type"].as_str(), event.clone())])).collect();
    ModelSpeech { kind: STREAM, text, reply }
}
