//! The document that describes the API: OpenAPI 3.1, made of the table of routes and of the types that go over the wire.
//! It is served, and committed as `docs/openapi.json`; nothing in it is written by hand twice.

use axum::http::StatusCode;
use axum::response::Response;
use schemars::generate::{Contract, SchemaSettings};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use sluice_api::Problem;
use sluice_api::problem::ProblemStatus;

use crate::access::readers;
use crate::answer;
use crate::caller::RequestCaller;
use crate::routes::table;
use crate::table::{DescribeType, RouteAudience, RouteOperation};

const DESCRIPTION: &str = "\
A durable workflow engine for coding agents. Every request except `GET /healthz` needs a token; each operation \
lists the scopes that allow it. Every error has one shape. Fields that are unknown are refused, except by the routes of the \
control plane and of grimoires, which ignore them.";

const KEY: &str = "\
A key for this request. A repeated request with the same key and body within 24 hours is not carried out again and gets \
the first answer; another body gets `key_reused`.";

pub(crate) async fn openapi(_: RequestCaller) -> Response {
    answer::json(StatusCode::OK, &document())
}

/// What types look like when they are read and when they are written. Fields that may be left out when they are read are
/// there when they are written, so these are two.
struct SchemaTypes {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl SchemaTypes {
    fn new() -> Self {
        let generator = |contract| {
            SchemaSettings::draft2020_12()
                .with(|settings| {
                    settings.definitions_path = "/components/schemas".into();
                    settings.meta_schema = None;
                    settings.contract = contract;
                })
                .into_generator()
        };
        SchemaTypes { read: generator(Contract::Deserialize), written: generator(Contract::Serialize) }
    }

    fn named(mut self) -> Map<String, Value> {
        let mut named = self.read.take_definitions(false);
        named.extend(self.written.take_definitions(false));
        named.sort_keys();
        named.values_mut().for_each(plain);
        named
    }
}

/// Writes a schema as those read it who make programs of it: what can be anything is `{}` and not `true`, which many of
/// them cannot read, and what can be left out has no `null` in its place, which they take for something that must be there.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("default").is_some_and(Value::is_null) {
                fields.remove("default");
            }
            one_of_words(fields);
            for (key, value) in fields.iter_mut() {
                match (key.as_str(), value) {
                    ("items" | "contains", value @ Value::Bool(true)) => *value = json!({}),
                    ("properties" | "$defs", Value::Object(all)) => {
                        all.values_mut().filter(|it| **it == Value::Bool(true)).for_each(|it| *it = json!({}));
                        all.values_mut().for_each(plain);
                    }
                    ("prefixItems" | "anyOf" | "oneOf" | "allOf", Value::Array(all)) => {
                        all.iter_mut().filter(|it| **it == Value::Bool(true)).for_each(|it| *it = json!({}));
                        all.iter_mut().for_each(plain);
                    }
                    (_, value) => plain(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Writes a choice of words as an `enum`: most programs that make clients cannot read a `oneOf` of constants. What each word
/// means goes into the description.
fn one_of_words(fields: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = fields.get("oneOf") else { return };
    let word = |choice: &Value| Some(Value::String(choice.get("const")?.as_str()?.to_owned()));
    let Some(words) = choices.iter().map(word).collect::<Option<Vec<Value>>>() else { return };
    let meaning = |choice: &Value| {
        let (word, means) = (choice["const"].as_str()?, choice["description"].as_str()?);
        Some(format!("\n- `{word}`: {means}"))
    };
    let meanings: String = choices.iter().filter_map(meaning).collect();
    let description = fields.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = format!("{description}\n{meanings}").trim().to_owned();
    fields.insert("description".to_owned(), Value::String(description));
    fields.insert("type".to_owned(), json!("string"));
    fields.insert("enum".to_owned(), Value::Array(words));
    fields.remove("oneOf");
}

pub(crate) fn document() -> Value {
    let table = table();
    let mut types = SchemaTypes::new();
    let mut paths: Map<String, Value> = Map::new();
    let mut tags: Vec<&str> = Vec::new();
    for operation in table.operations() {
        let shown = described(operation, &mut types);
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[method(operation)] = shown;
        if !tags.contains(&operation.tag) {
            tags.push(operation.tag);
        }
    }
    let problem = types.written.subschema_for::<Problem>();
    let errors: Map<String, Value> = errors().map(|status| (component(status), error(status, &problem))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sluice",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE") },
        },
        "servers": [{ "url": "/", "description": "The engine that serves this document" }],
        "tags": tags.iter().map(|tag| json!({ "name": tag })).collect::<Vec<_>>(),
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "`sluice token create` makes one." },
            },
            "responses": errors,
            "schemas": types.named(),
        },
    })
}

fn described(operation: &RouteOperation, types: &mut SchemaTypes) -> Value {
    let mut shown = json!({
        "operationId": id(operation),
        "summary": operation.summary,
        "tags": [operation.tag],
    });
    shown["security"] = match operation.who {
        RouteAudience::Everybody => json!([]),
        RouteAudience::Readers => json!([{ "token": readers(operation.path) }]),
        RouteAudience::Workers | RouteAudience::Agents | RouteAudience::Persons => {
            json!([{ "token": operation.who.scopes() }])
        }
    };
    let key = operation.creates.then(|| {
        json!({
            "name": "Idempotency-Key", "in": "header", "required": false, "description": KEY,
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        })
    });
    let parameters: Vec<Value> = of_path(operation).chain(of_query(operation, types)).chain(key).collect();
    if !parameters.is_empty() {
        shown["parameters"] = parameters.into();
    }
    if let Some(takes) = operation.takes {
        shown["requestBody"] = body(takes, types);
    }
    let answer = &operation.answer;
    let mut done = json!({ "description": answer.status.canonical_reason().unwrap_or_default() });
    if let Some(form) = answer.form {
        let content = match answer.describe {
            Some(describe) => json!({ "schema": describe(&mut types.written) }),
            None => json!({}),
        };
        done["content"] = json!({ form: content });
    }
    let mut responses = Map::from_iter([(answer.status.as_str().to_owned(), done)]);
    let named = |status| format!("#/components/responses/{}", component(status));
    responses.extend(errors().map(|status| (status.number().to_string(), json!({ "$ref": named(status) }))));
    shown["responses"] = responses.into();
    shown
}

fn id(operation: &RouteOperation) -> String {
    let words = operation.path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    std::iter::once(method(operation).as_str()).chain(words).collect::<Vec<_>>().join("_")
}

fn method(operation: &RouteOperation) -> String {
    operation.method.as_str().to_ascii_lowercase()
}

fn of_path(operation: &RouteOperation) -> impl Iterator<Item = Value> {
    let names = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| {
        let schema = match operation.words.filter(|(of, _)| *of == name) {
            Some((_, words)) => json!({ "type": "string", "enum": words }),
            None => json!({ "type": "string", "minLength": 1 }),
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    })
}

/// What follows the question mark: the fields of the type that is read.
fn of_query(operation: &RouteOperation, types: &mut SchemaTypes) -> Vec<Value> {
    let Some(read) = operation.reads.map(|describe| describe(&mut types.read)) else { return Vec::new() };
    let mut read = Value::from(read);
    let required: Vec<Value> = read["required"].as_array().cloned().unwrap_or_default();
    let Value::Object(fields) = read["properties"].take() else { return Vec::new() };
    let parameter = |(name, mut schema): (String, Value)| {
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        // Nothing can be null there: it is left out.
        if schema["default"].is_null()
            && let Some(schema) = schema.as_object_mut()
        {
            schema.remove("default");
        }
        if let Some(kinds) = schema["type"].as_array() {
            schema["type"] = kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default();
        }
        json!({
            "name": name, "in": "query", "description": description, "schema": schema,
            "required": required.iter().any(|it| *it == name),
        })
    };
    fields.into_iter().map(parameter).collect()
}

/// The body of a request. It can be left out when nothing in it must be there.
fn body(takes: DescribeType, types: &mut SchemaTypes) -> Value {
    let schema = takes(&mut types.read);
    let is_required = has_required(&schema, &types.read);
    json!({ "required": is_required, "content": { "application/json": { "schema": schema } } })
}

fn has_required(schema: &Schema, read: &SchemaGenerator) -> bool {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    let definition = name.and_then(|name| read.definitions().get(name)).unwrap_or_else(|| schema.as_value());
    let demands = |of: &Value| of["required"].as_array().is_some_and(|required| !required.is_empty());
    demands(definition) || demands(&definition["then"])
}

/// What can be wrong with any request.
fn errors() -> impl Iterator<Item = ProblemStatus> {
    ProblemStatus::ALL.into_iter().filter(|status| *status != ProblemStatus::Fault)
}

fn component(status: ProblemStatus) -> String {
    format!("{status:?}")
}

fn error(status: ProblemStatus, problem: &Schema) -> Value {
    let described = match status {
        ProblemStatus::Accepted => "It is on its way and cannot be taken back; `id` says what it will be called.",
        ProblemStatus::BadRequest => "The request is invalid or not JSON.",
        ProblemStatus::Unauthorized => {
            "The caller is not known: the request has no token, or one that is unknown or was revoked."
        }
        ProblemStatus::Forbidden => "The caller may not do this.",
        ProblemStatus::NotFound => "There is no such thing.",
        ProblemStatus::WrongMethod => "Method not allowed; the `Allow` header lists the methods of this route.",
        ProblemStatus::Conflict => "Another request changed it first.",
        ProblemStatus::TooLarge => "The request is too large.",
        ProblemStatus::WrongForm => "The request is not JSON.",
        ProblemStatus::Refused => "A rule refuses the request; `code` says which.",
        ProblemStatus::TooMany => "This token is used too often; `retry-after` says for how long to wait.",
        ProblemStatus::Fault => "A fault of Sluice's own.",
        ProblemStatus::Unavailable => "The engine is not available now; try again.",
    };
    let mut shown = json!({ "description": described, "content": { "application/json": { "schema": problem } } });
    let header = match status {
        ProblemStatus::WrongMethod => Some(("allow", json!({ "schema": { "type": "string" } }))),
        ProblemStatus::TooMany => Some(("retry-after", json!({ "schema": { "type": "integer" } }))),
        ProblemStatus::Unauthorized => Some(("www-authenticate", json!({ "schema": { "type": "string" } }))),
        ProblemStatus::Accepted
        | ProblemStatus::BadRequest
        | ProblemStatus::Forbidden
        | ProblemStatus::NotFound
        | ProblemStatus::Conflict
        | ProblemStatus::TooLarge
        | ProblemStatus::WrongForm
        | ProblemStatus::Refused
        | ProblemStatus::Fault
        | ProblemStatus::Unavailable => None,
    };
    if let Some((name, header)) = header {
        shown["headers"] = json!({ name: header });
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_committed_document_is_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let made = format!("{:#}\n", document());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &made).expect("the document can be written");
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == made, "docs/openapi.json is out of date: run `cargo xtask update`");
    }

    #[test]
    fn no_route_is_made_outside_the_table() {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("the sources") {
                let path = entry.expect("a source").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).expect("it can be read");
                let text = text.split("#[cfg(test)]").next().unwrap_or_default();
                // The addresses of the page are for browsers, and no part of the API.
                let is_table = path.ends_with("table.rs") || path.ends_with("src/page.rs");
                assert_eq!(text.contains(".route("), is_table, "{}: routes are added to the table", path.display());
            }
        }
    }

    #[test]
    fn every_type_that_is_named_is_there() {
        let document = document();
        let mut wanted = Vec::new();
        references(&document, &mut wanted);
        assert!(wanted.len() > 100, "{wanted:?}");
        for reference in wanted {
            assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference} leads nowhere");
        }
    }

    #[test]
    fn a_name_means_one_type() {
        let mut types = SchemaTypes::new();
        for operation in table().operations() {
            described(operation, &mut types);
        }
        let (read, written) = (types.read.definitions(), types.written.definitions());
        for (name, definition) in read {
            assert!(written.get(name).is_none_or(|other| other == definition), "{name} is read as it is not written");
        }
    }

    #[test]
    fn programs_can_be_made_of_every_schema() {
        fn look(value: &Value, path: &str, found: &mut Vec<String>) {
            match value {
                Value::Object(fields) => {
                    if fields.get("default").is_some_and(Value::is_null) {
                        found.push(format!("{path}: a default that is null"));
                    }
                    for (key, value) in fields {
                        let is_schema = path.ends_with("/properties") || ["items", "schema"].contains(&key.as_str());
                        if is_schema && value.is_boolean() {
                            found.push(format!("{path}/{key}: a schema that is a truth value"));
                        }
                        look(value, &format!("{path}/{key}"), found);
                    }
                }
                Value::Array(items) => {
                    if path.ends_with("/prefixItems") && items.iter().any(Value::is_boolean) {
                        found.push(format!("{path}: a schema that is a truth value"));
                    }
                    items.iter().for_each(|item| look(item, path, found));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let (document, mut found) = (document(), Vec::new());
        look(&document, "", &mut found);
        assert_eq!(found, Vec::<String>::new());
        let operations = document["paths"].as_object().expect("paths").values().flat_map(|path| path.as_object());
        let ids: Vec<&str> = operations.flatten().map(|(_, it)| it["operationId"].as_str().expect("an id")).collect();
        let mut different = ids.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), ids.len(), "{ids:?}");
    }

    #[test]
    fn what_is_left_out_of_a_query_is_not_null() {
        let document = document();
        let paths = document["paths"].as_object().expect("paths");
        let operations = paths.values().flat_map(|path| path.as_object().expect("a path").values());
        let parameters = operations.flat_map(|it| it["parameters"].as_array().into_iter().flatten());
        for parameter in parameters {
            let default = parameter["schema"].get("default");
            assert!(default.is_none_or(|default| !default.is_null()), "{parameter}");
        }
    }

    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
