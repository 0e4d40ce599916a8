//! A JSON Schema of a shape, so that editors complete and underline while one types.
//!
//! It refuses nothing that `sluice check` takes. What needs the whole file (names that must lead somewhere, guards that must
//! not overlap), or reading a language (conditions), stays with that.

use serde_json::{Map, Value, json};
use sluice_core::name::LONGEST;
use sluice_core::task::TaskKey;

use crate::duration;

use super::{Field, FieldForm, FieldKind, Shape};

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
        let mut properties: Map<String, Value> =
            tagged().filter(|field| !allowed(field.key)).map(|field| (field.key.into(), json!(false))).collect();
        // A key of several meanings is written as each of them wants it.
        let several = |key: &str| shape.fields().filter(|field| field.key == key).count() > 1;
        for field in tagged().filter(|field| field.only.contains(word) && several(field.key)) {
            let mut schema = json!({});
            field.forms.iter().for_each(|form| written(&mut schema, &field.kind, *form));
            if schema != json!({}) {
                properties.insert(field.key.into(), schema);
            }
        }
        let mut test = json!({ "properties": { tag.key: { "const": word } } });
        if tag.default != Some(*word) {
            test["required"] = json!([tag.key]);
        }
        json!({ "if": test, "then": { "required": required, "properties": properties } })
    };
    words.iter().map(variant).collect()
}

/// What `key` may hold. A key that means different things with different tags has all of its descriptions.
fn property(key: &str, shape: &Shape) -> Value {
    let meanings: Vec<&Field> = shape.fields().filter(|field| field.key == key).collect();
    let mut schema = meanings.first().map_or_else(|| json!({}), |field| kind(&field.kind));
    if let [field] = meanings.as_slice() {
        field.forms.iter().for_each(|form| written(&mut schema, &field.kind, *form));
    }
    let told = |field: &&Field| match meanings.len() {
        1 => field.doc.to_owned(),
        _ => format!("with {}: {}", field.only.join(", "), field.doc),
    };
    schema["description"] = json!(meanings.iter().map(told).collect::<Vec<_>>().join("; "));
    schema
}

/// A length of time: parts in falling order, each at most once. That there is one of them, a second pattern says.
const DURATION: &str = concat!(
    r"^\s*([0-9]+([.][0-9]+)?\s*(w|wks?|weeks?)\s*)?([0-9]+([.][0-9]+)?\s*(d|days?)\s*)?",
    r"([0-9]+([.][0-9]+)?\s*(h|hrs?|hours?)\s*)?([0-9]+([.][0-9]+)?\s*(m|mins?|minutes?)\s*)?",
    r"([0-9]+([.][0-9]+)?\s*(s|secs?|seconds?)\s*)?([0-9]+([.][0-9]+)?\s*(ms|msecs?|millis?|milliseconds?)\s*)?",
    r"([0-9]+([.][0-9]+)?\s*(us|µs|usecs?|micros?|microseconds?)\s*)?",
    r"([0-9]+([.][0-9]+)?\s*(ns|nsecs?|nanos?|nanoseconds?)\s*)?$",
);
const NAME: &str = "^[A-Za-z][A-Za-z0-9_-]*$";
/// A name in kebab-case: `sluice_core::name::is_kebab`.
const KEBAB: &str = "^[a-z0-9]+(-[a-z0-9]+)*$";
/// A heading of the second level, with words behind it.
const HEADING: &str = r"^## .*\S";

/// Adds to `schema`, that of `kind`, how what stands there must be written.
fn written(schema: &mut Value, of: &FieldKind, form: FieldForm) {
    match (of, form) {
        (FieldKind::List(_), FieldForm::NotEmpty) => {
            schema["type"] = json!("array");
            schema["minItems"] = json!(1);
        }
        (FieldKind::Named(_), FieldForm::NotEmpty) => {
            schema["type"] = json!("object");
            schema["minProperties"] = json!(1);
        }
        (FieldKind::List(inner), _) => written(&mut schema["items"], inner, form),
        (FieldKind::Named(inner), FieldForm::Filled) => written(&mut schema["additionalProperties"], inner, form),
        (FieldKind::Named(_), _) => {
            let mut names = json!({});
            written(&mut names, &FieldKind::Text, form);
            schema["propertyNames"] = names;
        }
        // One of its numbers is not 0.
        (_, FieldForm::NotEmpty) => {
            schema["minimum"] = json!(1);
            schema["allOf"] = json!([{ "pattern": "[1-9]" }]);
        }
        (_, FieldForm::Filled) => schema["pattern"] = json!(r"\S"),
        (_, FieldForm::Heading) => schema["pattern"] = json!(HEADING),
        (_, FieldForm::Name) => bounded(schema, NAME),
        (_, FieldForm::Kebab) => bounded(schema, KEBAB),
        (_, FieldForm::Not(words)) => schema["not"] = json!({ "enum": words }),
        (_, FieldForm::Settable) => {
            let own = TaskKey::ALL.iter().filter(|key| !key.is_settable()).map(|key| key.word());
            schema["not"] = json!({ "enum": own.collect::<Vec<_>>() });
        }
    }
}

fn not_null(mut schema: Value) -> Value {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|word| word != "null");
    }
    schema
}

fn bounded(schema: &mut Value, pattern: &str) {
    schema["pattern"] = json!(pattern);
    schema["maxLength"] = json!(LONGEST);
}

/// These words, in any case: not every reader of patterns knows a flag for that.
fn any_case(words: &[&str]) -> String {
    let letter = |letter: char| format!("[{}{}]", letter.to_ascii_uppercase(), letter.to_ascii_lowercase());
    let words: Vec<String> = words.iter().map(|word| word.chars().map(letter).collect()).collect();
    format!("^({})$", words.join("|"))
}

fn kind(of: &FieldKind) -> Value {
    match of {
        FieldKind::Any => json!({}),
        FieldKind::Text => json!({ "type": "string" }),
        FieldKind::Integer(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        FieldKind::Bool => json!({ "type": "boolean" }),
        FieldKind::Duration => json!({
            "type": ["string", "integer"],
            "pattern": DURATION,
            "allOf": [{ "pattern": "[0-9]" }],
            "minimum": 0,
            "maximum": duration::LONGEST.as_secs(),
            "examples": ["90s", "5m", "1h30m"],
        }),
        FieldKind::Choice(words) => json!({ "enum": words }),
        FieldKind::ChoiceAnyCase(words) => {
            // The words are there to be completed.
            json!({ "type": "string", "pattern": any_case(words), "examples": words })
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
        // Beside other types an empty value is no list and no table.
        FieldKind::Either(kinds) => json!({ "anyOf": kinds.iter().map(kind).map(not_null).collect::<Vec<_>>() }),
    }
}
