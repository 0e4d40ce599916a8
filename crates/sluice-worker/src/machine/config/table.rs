//! The keys of `config.toml` as data: name, kind, default, example and one sentence each, from the structs of
//! [`HomeConfig`]. It knows no key by name, and reads no file.

use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::HomeConfig;
use crate::machine::units::{LENGTH, SIZE};

/// What a key may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigKind {
    Text,
    Choice(Vec<String>),
    /// A whole number within these bounds.
    Number(i64, i64),
    Truth,
    /// `7d`, `12h`, or a whole number.
    Length,
    /// `200 MiB`, or a number of bytes.
    Size,
    List(Box<ConfigKind>),
    /// A table with these keys.
    Section(Vec<ConfigKey>),
    /// A table whose keys are names that a person chooses.
    Named(Box<ConfigKind>),
    /// Something that only loading can judge.
    Other,
}

/// A key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigKey {
    pub name: String,
    pub kind: ConfigKind,
    /// What it is for, in a sentence or two.
    pub about: String,
    pub default: Option<Value>,
    pub example: Option<Value>,
    /// The variable that counts more than the file.
    pub variable: Option<String>,
    /// When a changed value counts, if not the next time it is needed.
    pub counts: Option<String>,
}

/// The sections of the file, in the order of the structs.
pub fn table() -> &'static [ConfigKey] {
    static TABLE: OnceLock<Vec<ConfigKey>> = OnceLock::new();
    TABLE.get_or_init(|| match kind(&schema()) {
        ConfigKind::Section(keys) => keys,
        ConfigKind::Text
        | ConfigKind::Choice(_)
        | ConfigKind::Number(..)
        | ConfigKind::Truth
        | ConfigKind::Length
        | ConfigKind::Size
        | ConfigKind::List(_)
        | ConfigKind::Named(_)
        | ConfigKind::Other => Vec::new(),
    })
}

/// The key at this path, and what it holds. A name that a person chooses may be any.
pub fn find(path: &[String]) -> Option<(&'static ConfigKey, &'static ConfigKind)> {
    let (first, rest) = path.split_first()?;
    let key = table().iter().find(|key| key.name == *first)?;
    rest.iter().try_fold((key, &key.kind), |(key, kind), name| match kind {
        ConfigKind::Section(keys) => keys.iter().find(|key| key.name == *name).map(|key| (key, &key.kind)),
        ConfigKind::Named(inner) => Some((key, &**inner)),
        ConfigKind::Text
        | ConfigKind::Choice(_)
        | ConfigKind::Number(..)
        | ConfigKind::Truth
        | ConfigKind::Length
        | ConfigKind::Size
        | ConfigKind::List(_)
        | ConfigKind::Other => None,
    })
}

/// Every key that holds a value, with its whole name. `NAME` stands for a name that a person chooses.
pub fn keys() -> Vec<(String, &'static ConfigKey)> {
    fn gather(path: &str, key: &'static ConfigKey, kind: &'static ConfigKind, found: &mut Vec<(String, &ConfigKey)>) {
        match kind {
            ConfigKind::Section(keys) => {
                keys.iter().for_each(|key| gather(&format!("{path}.{}", key.name), key, &key.kind, found));
            }
            ConfigKind::Named(inner) => gather(&format!("{path}.NAME"), key, inner, found),
            ConfigKind::List(inner) if matches!(**inner, ConfigKind::Section(_)) => {
                gather(&format!("{path}[]"), key, inner, found);
            }
            ConfigKind::Text
            | ConfigKind::Choice(_)
            | ConfigKind::Number(..)
            | ConfigKind::Truth
            | ConfigKind::Length
            | ConfigKind::Size
            | ConfigKind::List(_)
            | ConfigKind::Other => found.push((path.to_owned(), key)),
        }
    }
    let mut found = Vec::new();
    table().iter().for_each(|key| gather(&key.name, key, &key.kind, &mut found));
    found
}

/// The JSON Schema of the file, for editors.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<HomeConfig>().to_value();
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("title".into(), "Sluice: config.toml".into());
    }
    without_nulls(&mut schema);
    schema
}

/// TOML has no `null`: a key that is not set is not there.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| !(name == "default" && (value.is_null() || value.is_object())));
            if let Some(Value::Array(kinds)) = fields.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [one] = kinds.as_slice() {
                    let one = one.clone();
                    fields.insert("type".into(), one);
                }
            }
            if let Some(Value::Array(words)) = fields.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn kind(schema: &Value) -> ConfigKind {
    if let Some(words) = words(schema) {
        return ConfigKind::Choice(words);
    }
    let (kind_word, format) = (schema["type"].as_str(), schema["format"].as_str());
    match (kind_word, format) {
        (_, Some(LENGTH)) => ConfigKind::Length,
        (_, Some(SIZE)) => ConfigKind::Size,
        (Some("string"), _) => ConfigKind::Text,
        (Some("boolean"), _) => ConfigKind::Truth,
        (Some("integer"), format) => {
            let largest = if format == Some("uint32") { i64::from(u32::MAX) } else { i64::MAX };
            let bound = |name: &str, else_it: i64| schema[name].as_i64().unwrap_or(else_it);
            ConfigKind::Number(bound("minimum", i64::MIN), bound("maximum", largest))
        }
        (Some("array"), _) => ConfigKind::List(Box::new(kind(&schema["items"]))),
        (Some("object"), _) => match (schema["properties"].as_object(), &schema["additionalProperties"]) {
            (Some(properties), _) => ConfigKind::Section(properties.iter().map(key).collect()),
            (None, inner @ Value::Object(_)) => ConfigKind::Named(Box::new(kind(inner))),
            (None, _) => ConfigKind::Other,
        },
        // An optional value that is not a plain one.
        (None, _) => match schema["anyOf"].as_array().map(Vec::as_slice) {
            Some([one, null]) if null["type"] == "null" => kind(one),
            Some(_) | None => ConfigKind::Other,
        },
        (Some(_), _) => ConfigKind::Other,
    }
}

/// The words that can be chosen from, alone or each with a sentence.
fn words(schema: &Value) -> Option<Vec<String>> {
    let texts = |values: Vec<&Value>| values.into_iter().map(|word| word.as_str().map(str::to_owned)).collect();
    match (schema["enum"].as_array(), schema["oneOf"].as_array()) {
        (Some(words), _) => texts(words.iter().collect()),
        (None, Some(variants)) => {
            let of = |variant: &'_ Value| match (&variant["const"], variant["enum"].as_array()) {
                (Value::String(word), _) => Some(vec![word.clone()]),
                (_, Some(words)) => texts(words.iter().collect()),
                (_, None) => None,
            };
            variants.iter().map(of).collect::<Option<Vec<Vec<String>>>>().map(|words| words.concat())
        }
        (None, None) => None,
    }
}

fn key((name, schema): (&String, &Value)) -> ConfigKey {
    let text = |field: &str| schema[field].as_str().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let example = schema["examples"].as_array().and_then(|examples| examples.first());
    ConfigKey {
        name: name.clone(),
        kind: kind(schema),
        about: text("description").unwrap_or_default(),
        default: schema.get("default").cloned(),
        example: example.cloned(),
        variable: text("x-variable"),
        counts: text("x-counts"),
    }
}

/// A value as it stands in the file.
pub fn written(value: &Value) -> String {
    let table = |fields: &Map<String, Value>| {
        let pairs = fields.iter().map(|(name, value)| format!("{name} = {}", written(value)));
        format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
    };
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => table(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_says_what_it_is_for_and_shows_how_it_is_written() {
        // A truth or a list: only loading can judge it.
        let is_known =
            |name: &str, key: &ConfigKey| key.kind != ConfigKind::Other || name == "harnesses.NAME.preflight";
        let is_told =
            |name: &str, key: &ConfigKey| !key.about.is_empty() && key.example.is_some() && is_known(name, key);
        let wrong = keys().into_iter().filter(|(name, key)| !is_told(name, key));
        let wrong: Vec<String> = wrong.map(|(name, _)| name).collect();
        assert!(wrong.is_empty(), "give each of {wrong:?} a doc comment, an `example` and a kind that is known here");
    }

    #[test]
    fn an_example_loads() {
        for (name, key) in keys() {
            let Some(example) = key.example.as_ref().filter(|_| !name.contains("[]")) else { continue };
            let value = match key.kind {
                // The example of a table of names is the table.
                ConfigKind::Named(_) => written(&example["NAME"]),
                _ => written(example),
            };
            let (section, last) = name.rsplit_once('.').expect("a section");
            let text = format!("[{section}]\n{last} = {value}\n");
            let loaded = toml::from_str::<HomeConfig>(&text);
            assert!(loaded.is_ok(), "{text}: {loaded:?}");
        }
    }

    #[test]
    fn what_is_known_of_a_key_comes_from_its_field() {
        let of = |path: &str| find(&path.split('.').map(str::to_owned).collect::<Vec<_>>());
        let (key, _) = of("defaults.harness").expect("it is there");
        assert_eq!((key.variable.as_deref(), &key.default), (Some("SLUICE_HARNESS"), &None));
        let (key, kind) = of("workspaces.keep").expect("it is there");
        assert_eq!((kind, key.default.as_ref()), (&ConfigKind::Length, Some(&Value::from("7d"))));
        assert_eq!(of("workspaces.low_disk").and_then(|(key, _)| key.default.clone()), Some("1 GiB".into()));
        assert_eq!(of("serve.burst").map(|(_, kind)| kind), Some(&ConfigKind::Number(1, i64::from(u32::MAX))));
        assert_eq!(of("env.set.ANY").map(|(_, kind)| kind), Some(&ConfigKind::Text));
        assert!(
            matches!(of("harnesses.mine.output"), Some((_, ConfigKind::Choice(words))) if words.contains(&"claude".into()))
        );
        assert_eq!(of("defaults.none"), None);
    }
}
