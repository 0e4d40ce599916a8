//! The Gemini API, as gemini asks it.

use serde_json::{Value, json};

use super::{DOCUMENT, ModelCall, ModelMove, ModelScript, ModelSpeech, STREAM, TOKENS_IN, TOKENS_OUT, events};

pub(super) fn speak(script: &ModelScript, body: &Value, streams: bool) -> ModelSpeech {
    let sets = body["tools"].as_array().into_iter().flatten();
    let tools = sets.filter_map(|set| set["functionDeclarations"].as_array()).flatten().filter_map(|tool| {
        let schema = tool.get("parametersJsonSchema").unwrap_or(&tool["parameters"]);
        Some((tool["name"].as_str()?, schema))
    });
    let turns = body["contents"].as_array().into_iter().flatten();
    let parts = turns.filter_map(|turn| turn["parts"].as_array()).flatten();
    let has_result = parts.into_iter().any(|part| part.get("functionResponse").is_some());
    let wanted = ModelMove::of(script, has_result, tools);
    let reply = wanted.reply();
    let part = match wanted {
        ModelMove::Call(ModelCall { name, arguments }) => {
            json!({ "functionCall": { "name": name, "args": arguments } })
        }
        ModelMove::Sentence(text) | ModelMove::Aside(text) => json!({ "text": text }),
    };
    let document = json!({
        "candidates": [{ "index": 0, "content": { "role": "model", "parts": [part] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": TOKENS_IN, "candidatesTokenCount": TOKENS_OUT,
            "totalTokenCount": TOKENS_IN + TOKENS_OUT },
        "modelVersion": "scripted",
    });
    match streams {
        true => ModelSpeech { kind: STREAM, text: events(&[(None, document)]), reply },
        false => ModelSpeech { kind: DOCUMENT, text: document.to_string(), reply },
    }
}
