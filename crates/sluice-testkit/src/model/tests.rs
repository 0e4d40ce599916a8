//! The model's answers, for each way to ask: first a call, and the sentence when its result has come.

use super::*;

fn script() -> ModelScript {
    ModelScript {
        command: "touch it".to_owned(),
        sentence: "all is well".to_owned(),
        without_tools: false,
        fails: None,
    }
}

fn asked(path: &str, body: &Value) -> (ModelReply, String) {
    let speech = speech(&script(), path, body).unwrap();
    (speech.reply, speech.text)
}

#[test]
fn each_way_is_answered_with_a_call_and_then_with_the_sentence() {
    let schema = json!({ "properties": { "command": { "type": "string" }, "description": { "type": "string" },
        "timeout": { "type": "number" } }, "required": ["command", "description"] });
    let other = json!({ "properties": { "path": { "type": "string" } } });
    let ways = [
        (
            "/v1/messages",
            json!({ "stream": true, "tools": [{ "name": "Read", "input_schema": other },
                { "name": "Bash", "input_schema": schema }], "messages": [] }),
            json!({ "messages": [{ "role": "user", "content": [{ "type": "tool_result" }] }] }),
        ),
        (
            "/v1/responses",
            json!({ "stream": true, "tools": [{ "name": "shell_command", "parameters": schema }], "input": [] }),
            json!({ "input": [{ "type": "function_call_output" }] }),
        ),
        (
            "/v1/chat/completions",
            json!({ "stream": true, "tools": [{ "function": { "name": "bash", "parameters": schema } }] }),
            json!({ "messages": [{ "role": "tool" }] }),
        ),
        (
            "/v1beta/models/gemini-9:streamGenerateContent",
            json!({ "tools": [{ "functionDeclarations": [{ "name": "run_shell_command", "parameters": schema }] }] }),
            json!({ "contents": [{ "parts": [{ "functionResponse": {} }] }] }),
        ),
    ];
    for (path, first, later) in ways {
        let (reply, text) = asked(path, &first);
        assert_eq!(reply, ModelReply::Call, "{path}");
        assert!(text.contains("touch it") && text.contains("description") && !text.contains("timeout"), "{text}");
        let mut second = first.clone();
        later.as_object().unwrap().iter().for_each(|(key, value)| second[key] = value.clone());
        for streams in [true, false] {
            second["stream"] = json!(streams);
            let (reply, text) = asked(path, &second);
            assert_eq!(reply, ModelReply::Sentence, "{path}");
            assert!(text.contains("all is well"), "{text}");
        }
    }
}

#[test]
fn who_asks_without_tools_hears_the_sentence_where_none_are_expected() {
    let bare = json!({ "messages": [] });
    let (reply, text) = asked("/v1/messages", &bare);
    assert!(reply == ModelReply::Aside && !text.contains("all is well"), "{text}");
    let script = ModelScript { without_tools: true, ..script() };
    let speech = speech(&script, "/v1/messages", &bare).unwrap();
    assert!(speech.reply == ModelReply::Sentence && speech.text.contains("all is well"));
    assert!(super::speech(&script, "/nowhere", &Value::Null).is_none());
}

#[test]
fn what_it_was_asked_is_told_to_who_waits() {
    use std::io::{Read, Write};
    let model = ScriptedModel::listen(script()).unwrap();
    let body = r#"{"messages":[{"role":"user","content":"hello"}]}"#;
    let mut stream = std::net::TcpStream::connect(model.address().strip_prefix("http://").unwrap()).unwrap();
    let head =
        format!("POST /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(ASIDE), "{answer}");
    let heard = model.wait(Duration::from_secs(60), |request| request.body.contains("hello")).unwrap();
    assert_eq!((heard.path.as_str(), heard.reply), ("/v1/messages", ModelReply::Aside));
    assert!(model.wait(Duration::ZERO, |request| request.body.contains("nothing such")).is_none());
}

#[test]
fn a_failure_is_said_in_the_words_of_each_service() {
    let words = |path: &str, key: &str, status| {
        failure(path, StatusCode::from_u16(status).unwrap())["error"][key].as_str().unwrap().to_owned()
    };
    let said = [401, 429, 500].map(|status| words("/v1/messages", "type", status));
    assert_eq!(said, ["authentication_error", "rate_limit_error", "api_error"]);
    assert_eq!(words("/v1beta/models/m:streamGenerateContent", "status", 401), "UNAUTHENTICATED");
}
