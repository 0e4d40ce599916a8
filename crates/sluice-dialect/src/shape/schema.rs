//! A JSON Schema of a shape, so that editors complete and underline while one types.
//!
//! It says what [`super::conform`] says and no more; what needs the whole file (names that must lead somewhere,
//! guards that must not overlap) stays with `sluice check`.

use serde_json::{Map, Value, json};

use super::{Field, FieldKind, Shape};

/// The schema of `shape`, as a document called `name`.
pub fn schema(shape: &Shape, name: &str, title: &str) -> Value {
    let mut document = Map::new();
    document.insert("$schema".into(), json!("http://json-schema.org/draft-07/schema#"));
    document.insert("$id".into(), json!(format!("urn:sluice:schema:{name}")));
    document.insert("title".into(), json!(title));
    if let Value::Object(body) = table(shape) {
        document.extend(body);
    }
    Value::Object(document)
}

fn table(shape: &Shape) -> Value {
    let properties: Map<String, Value> =
        shape.fields().map(|field| (field.key.into(), property(field.key, shape))).collect();
    let required: Vec<&str> =
        shape.fields().filter(|field| field.required && field.only.is_empty()).map(|field| field.key).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let variants = variants(shape);
    if !variants.is_empty() {
        schema["allOf"] = json!(variants);
    }
    schema
}

/// For each value of the tag, the keys that it must have and those it cannot have.
fn variants(shape: &Shape) -> Vec<Value> {
    let Some(tag) = &shape.tag else { return Vec::new() };
    let Some(FieldKind::Choice(words)) = shape.field(tag.key).map(|field| &field.kind) else { return Vec::new() };
    let variant = |word: &&'static str| {
        let tagged = || shape.fields().filter(|field| !field.only.is_empty());
        let required: Vec<&str> =
            tagged().filter(|field| field.required && field.only.contains(word)).map(|field| field.key).collect();
        let allowed = |key: &str| shape.fields().any(|field| field.key == key && field.goes_with(word));
        let forbidden: Map<String, Value> =
            tagged().filter(|field| !allowed(field.key)).map(|field| (field.key.into(), json!(false))).collect();
        let mut test = json!({ "properties": { tag.key: { "const": word } } });
        if tag.default != Some(*word) {
            test["required"] = json!([tag.key]);
        }
        json!({ "if": test, "then": { "required": required, "properties": forbidden } })
    };
    words.iter().map(variant).collect()
}

/// What `key` may hold. A key that means different things with different tags has all of its descriptions.
fn property(key: &str, shape: &Shape) -> Value {
    let meanings: Vec<&Field> = shape.fields().filter(|field| field.key == key).collect();
    let mut schema = meanings.first().map_or_else(|| json!({}), |field| kind(&field.kind));
    let told = |field: &&Field| match meanings.len() {
        1 => field.doc.to_owned(),
        _ => format!("with {}: {}", field.only.join(", "), field.doc),
    };
    schema["description"] = json!(meanings.iter().map(told).collect::<Vec<_>>().join("; "));
    schema
}

fn kind(of: &FieldKind) -> Value {
    match of {
        FieldKind::Any => json!({}),
        FieldKind::Text => json!({ "type": "string" }),
        FieldKind::Integer(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        FieldKind::Bool => json!({ "type": "boolean" }),
        FieldKind::Duration => json!({ "type": ["string", "integer"], "examples": ["90s", "5m", "1h30m"] }),
        FieldKind::Choice(words) => json!({ "enum": words }),
        FieldKind::ChoiceAnyCase(words) => {
            let lower = words.iter().map(|word| word.to_lowercase());
            json!({ "enum": words.iter().map(|word| (*word).to_owned()).chain(lower).collect::<Vec<_>>() })
        }
        FieldKind::List(inner) => json!({ "type": ["array", "null"], "items": kind(inner) }),
        // An empty value is an empty table, which will do if nothing must be in it.
        FieldKind::Table(shape) if shape.fields().all(|field| !field.required) => {
            let mut schema = table(shape);
            schema["type"] = json!(["object", "null"]);
            schema
        }
        FieldKind::Table(shape) => table(shape),
        FieldKind::Named(inner) => json!({ "type": ["object", "null"], "additionalProperties": kind(inner) }),
        FieldKind::Either(kinds) => json!({ "anyOf": kinds.iter().map(kind).collect::<Vec<_>>() }),
    }
}
