//! Every operation of the OpenAPI document with wrong input: a status of the four hundreds, in the one shape, and never a
//! fault of the engine's own.

use serde_json::{Map, Value, json};

use super::described::{Described, Operation, furnished};
use super::served::{request, token};

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/// These ignore what they do not know; all others refuse it.
const SEEDS: [&str; 2] = ["control plane", "grimoires"];

/// The path with an id that nobody has.
fn nowhere(operation: &Operation) -> String {
    let words = |name: &str| {
        let parameters = operation.about["parameters"].as_array().unwrap();
        let found = parameters.iter().find(|it| it["name"] == name).unwrap();
        found["schema"]["enum"][0].as_str().unwrap_or("nobody").to_owned()
    };
    let hole = |part: &str| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')).map(words);
    operation.path.split('/').map(|part| hole(part).unwrap_or(part.to_owned())).collect::<Vec<_>>().join("/")
}

/// The type that the body has, as the document describes it.
fn body_of(api: &Described, operation: &Operation) -> Option<Value> {
    let schema = &operation.about["requestBody"]["content"]["application/json"]["schema"];
    let reference = schema["$ref"].as_str()?;
    api.document.pointer(reference.trim_start_matches('#')).cloned()
}

fn has(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|it| it == kind),
        of => of == kind,
    }
}

/// Something of the right type for every field that must be there.
fn least(schema: &Value) -> Map<String, Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let one = |name: &Value| {
        let name = name.as_str().unwrap();
        let of = &schema["properties"][name];
        // A field that has no plain type is one of some words.
        let value = match of["enum"].get(0) {
            Some(word) => word.clone(),
            None if has(of, "string") => json!("nobody"),
            None if has(of, "array") => json!([]),
            None if name == "news" => json!("works"),
            None => json!("read"),
        };
        (name.to_owned(), value)
    };
    required.iter().map(one).collect()
}

#[test]
fn wrong_bodies_are_refused() {
    let home = furnished();
    let api = Described::serve(&home);
    let ask = |operation: &Operation, body: &str| {
        api.served.ask(&operation.method, &nowhere(operation), Some(&api.secret), body)
    };
    let mut count = 0;
    for operation in &api.operations {
        let Some(schema) = body_of(&api, operation) else { continue };
        count += 1;
        for body in ["{oops", "\u{0}", "nonsense", "{\"a\":", "7", "null", "\"text\""] {
            let status = api.must_refuse(operation, body, &ask(operation, body));
            assert_eq!(status, 400, "{} {body}", operation.name());
        }
        let least = least(&schema);
        if !least.is_empty() {
            assert_eq!(api.must_refuse(operation, "missing", &ask(operation, "{}")), 400, "{}", operation.name());
        }
        for (name, of) in schema["properties"].as_object().into_iter().flatten() {
            let wrong = if has(of, "object") || of.get("type").is_none() { json!(7) } else { json!({ "a": [1] }) };
            // What can be anything cannot be wrong.
            if of.get("type").is_none() && of.get("$ref").is_none() && of.get("anyOf").is_none() {
                continue;
            }
            let mut body = least.clone();
            body.insert(name.clone(), wrong);
            let body = Value::Object(body).to_string();
            assert_eq!(api.must_refuse(operation, &body, &ask(operation, &body)), 400, "{} {body}", operation.name());
        }
        if schema["type"] == "object" {
            let mut body = least.clone();
            body.insert("surplus".into(), json!(1));
            let answer = ask(operation, &Value::Object(body).to_string());
            let is_seed = SEEDS.contains(&operation.about["tags"][0].as_str().unwrap());
            assert_eq!(answer.body.contains("surplus"), !is_seed, "{}: {answer:?}", operation.name());
            assert_eq!(schema["additionalProperties"] == false, !is_seed, "{}", operation.name());
            assert_eq!(api.must_refuse(operation, "[]", &ask(operation, "[]")), 400, "{}", operation.name());
        }
        let answer = api.ask_with(&operation.method, &nowhere(operation), "content-type: text/xml\r\n", "<a/>");
        assert_eq!(api.must_refuse(operation, "XML", &answer), 415);
    }
    assert!(count > 20, "{count}");
}

/// A body that the document allows is never answered with 400: the document says all that a body must have. Values may still be
/// wrong: there is no project `nobody`.
#[test]
fn what_the_document_allows_is_not_called_wrong() {
    let home = furnished();
    let api = Described::serve(&home);
    let mut allowed = 0;
    for operation in &api.operations {
        let Some(schema) = body_of(&api, operation) else { continue };
        let is_allowed = |body: &Value| {
            let mut schema = schema.clone();
            schema["components"] = json!({ "schemas": api.document["components"]["schemas"] });
            jsonschema::validator_for(&schema).unwrap().is_valid(body)
        };
        let nothing = json!({ "project": null, "cwd": null });
        for body in [json!({}), nothing, Value::Object(least(&schema))] {
            if is_allowed(&body) {
                allowed += 1;
                let answer =
                    api.served.ask(&operation.method, &nowhere(operation), Some(&api.secret), &body.to_string());
                assert_ne!(answer.status, 400, "{} {body}: {answer:?}", operation.name());
            }
        }
    }
    assert!(allowed > 20, "{allowed}");
}

#[test]
fn what_is_huge_is_refused() {
    let home = furnished();
    let api = Described::serve(&home);
    for operation in &api.operations {
        let shown = format!("authorization: Bearer {}\r\n", api.secret);
        let head = request(&operation.method, &nowhere(operation), &shown, (8 << 20) + 1);
        assert_eq!(api.must_refuse(operation, "too large", &api.served.say(head.as_bytes())), 413);
        let Some(schema) = body_of(&api, operation) else { continue };
        // Within the limit of a request, and far beyond anything that makes sense.
        let mut body = least(&schema);
        body.values_mut().filter(|value| *value == "nobody").for_each(|value| *value = json!("x".repeat(1 << 20)));
        if body.values().any(|value| value.as_str().is_some_and(|text| text.len() > 100)) {
            let path = nowhere(operation);
            let answer = api.served.ask(&operation.method, &path, Some(&api.secret), &Value::Object(body).to_string());
            api.must_refuse(operation, "huge", &answer);
        }
    }
}

#[test]
fn what_is_not_there_is_refused() {
    let home = furnished();
    let api = Described::serve(&home);
    for operation in api.operations.iter().filter(|it| it.path.contains("{id}") || it.path.contains("{name}")) {
        let body = body_of(&api, operation).map(|schema| Value::Object(least(&schema)).to_string()).unwrap_or_default();
        for (what, id) in [("unknown", "nobody"), ("no text", "%FF"), ("NUL", "%00"), ("a path", "..%2F..%2Fetc")] {
            let path = nowhere(operation).replacen("nobody", id, 1);
            let answer = api.served.ask(&operation.method, &path, Some(&api.secret), &body);
            let status = api.must_refuse(operation, what, &answer);
            assert!([400, 404].contains(&status), "{} {what}: {answer:?}", operation.name());
        }
    }
    // And what leads nowhere at all.
    let answer = api.served.ask("GET", "/v1/coffee", Some(&api.secret), "");
    assert_eq!(answer.short(), "404 not_found");
}

#[test]
fn wrong_queries_are_refused() {
    let home = furnished();
    let api = Described::serve(&home);
    let mut count = 0;
    for operation in &api.operations {
        let parameters = operation.about["parameters"].as_array().cloned().unwrap_or_default();
        let of_query: Vec<&Value> = parameters.iter().filter(|it| it["in"] == "query").collect();
        let ask = |query: &str| {
            let path = format!("{}?{query}", nowhere(operation));
            api.served.ask(&operation.method, &path, Some(&api.secret), "")
        };
        for parameter in of_query.iter().filter(|it| !has(&it["schema"], "string")) {
            for wrong in ["maybe", "", "-1", "%00", "1.5"] {
                let query = format!("{}={wrong}", parameter["name"].as_str().unwrap());
                assert_eq!(api.must_refuse(operation, &query, &ask(&query)), 400, "{} {query}", operation.name());
                count += 1;
            }
        }
        let is_seed = SEEDS.contains(&operation.about["tags"][0].as_str().unwrap());
        if !of_query.is_empty() && !is_seed {
            assert_eq!(api.must_refuse(operation, "surplus", &ask("surplus=1")), 400, "{}", operation.name());
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn wrong_methods_are_refused_and_the_right_ones_told() {
    let home = furnished();
    let api = Described::serve(&home);
    for operation in &api.operations {
        let known: Vec<&str> =
            api.operations.iter().filter(|it| it.path == operation.path).map(|it| it.method.as_str()).collect();
        for method in METHODS.into_iter().filter(|method| !known.contains(method)) {
            let answer = api.served.ask(method, &nowhere(operation), Some(&api.secret), "");
            assert_eq!(api.must_refuse(operation, method, &answer), 405);
            let allow = answer.head.lines().find_map(|line| line.strip_prefix("allow: ")).unwrap_or_default();
            let mut told: Vec<String> =
                allow.split(',').map(|word| word.trim().to_uppercase()).filter(|word| word != "HEAD").collect();
            told.sort_unstable();
            let mut known = known.clone();
            known.sort_unstable();
            assert_eq!(told, known, "{}", operation.name());
        }
    }
}

#[test]
fn a_token_allows_what_the_document_says() {
    let home = furnished();
    let api = Described::serve(&home);
    let (_, read) = token(&home, &["--scope", "read"]);
    let (_, worker) = token(&home, &["--scope", "worker"]);
    // Without a handshake, whoever asks for a WebSocket is told that first; and what happens never ends.
    for operation in api.operations.iter().filter(|it| !it.path.contains("/ws/") && it.path != "/events") {
        let scopes = operation.about["security"][0]["token"].as_array().cloned();
        let body = body_of(&api, operation).map(|schema| Value::Object(least(&schema)).to_string()).unwrap_or_default();
        let ask = |secret| api.served.ask(&operation.method, &nowhere(operation), secret, &body);
        let Some(scopes) = scopes else {
            assert_eq!(ask(None).status, 200, "{}", operation.name());
            continue;
        };
        assert_eq!(api.must_refuse(operation, "nobody", &ask(None)), 401);
        assert_eq!(api.must_refuse(operation, "unknown", &ask(Some("slu_guess"))), 401);
        for (scope, secret) in [("read", &read), ("worker", &worker)] {
            if !scopes.contains(&json!(scope)) {
                assert_eq!(api.must_refuse(operation, scope, &ask(Some(secret))), 403, "{}", operation.name());
            } else if operation.path != "/events" {
                // That one does not end.
                let answer = ask(Some(secret));
                assert_ne!(answer.status, 403, "{} {scope}: {answer:?}", operation.name());
            }
        }
    }
}
