//! The JSON Schemas against the checker: whatever is changed in a good file, a schema never refuses what the checker takes,
//! and what a schema can know it refuses as the checker does. Editors show what the schema says, long before anybody asks the
//! checker.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use sluice_core::problem::{Code, Severity};
use sluice_dialect::format::{DefinitionFormat, schema};
use sluice_dialect::prompts::{PromptLookup, PromptSource};
use sluice_dialect::read::{FileSyntax, read};
use sluice_dialect::source::Sources;
use sluice_dialect::tree::{Node, NodeValue};
use sluice_dialect::{DefinitionFile, load};

/// What needs the rest of the file, or the language of conditions and texts. No schema can know it.
const OF_THE_WHOLE: &[Code] = &[
    Code::UnknownTarget,
    Code::UnknownSource,
    Code::LeavesTerminal,
    Code::UnknownPrompt,
    Code::UnknownRespawnPrompt,
    Code::UnknownRuleTarget,
    Code::BadGuard,
    Code::Gap,
    Code::UnknownRuleState,
    Code::UnknownField,
    Code::NoWayOut,
    Code::UnknownRunTarget,
    Code::NoRunMove,
    Code::UnknownStep,
    Code::BadCondition,
    Code::NotUpstream,
    Code::BadLoop,
    Code::BadDefault,
    Code::UnknownVariable,
    Code::VariableTooLate,
    Code::BadPlaceholder,
];

/// The same for codes that are else about one place: keys that need or exclude each other, and sums.
const BESIDE_OTHERS: &[(Code, &[&str])] = &[
    // A rule that does nothing, an agent without a prompt.
    (Code::MissingKey, &["rules", "steps"]),
    // More than a year; a loop that is never taken.
    (Code::BadQuantity, &["timeout", "backoff", "every", "max_retries"]),
    // `strict` without a verdict; rules of which one says it all.
    (Code::KeyConflict, &["gate", "has_artifact", "rules"]),
];

/// Every definition that is shown to users, and the ones that others wrote.
fn good_files() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![here.join("../../examples"), here.join("tests/seeds")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|end| end.to_str()) {
                None if path.is_dir() && !path.ends_with("broken") => folders.push(path),
                Some("yml" | "yaml" | "toml") => files.push(path),
                Some(_) | None => {}
            }
        }
    }
    files.sort();
    files
}

/// A file as JSON has it.
fn plain(node: &Node) -> Value {
    match &node.value {
        NodeValue::Null => Value::Null,
        NodeValue::Bool(value) => json!(value),
        NodeValue::Integer(number) => json!(number),
        NodeValue::Decimal(number) => serde_json::from_str(number).unwrap_or_else(|_| json!(0.5)),
        NodeValue::Text(text) => json!(text.value),
        NodeValue::List(nodes) => nodes.iter().map(plain).collect(),
        NodeValue::Table(entries) => {
            entries.iter().map(|entry| (entry.key.value.clone(), plain(&entry.value))).collect::<Map<_, _>>().into()
        }
    }
}

/// Every prompt file is there.
struct AnyPrompt;

impl PromptSource for AnyPrompt {
    fn find(&mut self, written: &str) -> PromptLookup {
        PromptLookup::File { shown: written.to_owned(), bytes: b"Do it.\n".to_vec() }
    }
}

/// The codes of the errors of a document. JSON is YAML.
fn errors(document: &Value) -> Vec<Code> {
    let text = document.to_string();
    let loaded = load(&DefinitionFile { path: "a.yml", bytes: text.as_bytes() }, &mut AnyPrompt, &mut Sources::new());
    let errors = loaded.problems.iter().filter(|problem| problem.severity() == Severity::Error);
    errors.map(|problem| problem.code).collect()
}

/// What a value is changed to.
fn others(value: &Value) -> Vec<Value> {
    let long = "a".repeat(101);
    let mut others =
        vec![json!(null), json!(true), json!([]), json!({}), json!(-1), json!(0), json!(7), json!(10_000_001)];
    others.extend([json!(1.5), json!(["a"]), json!({ "a": "b" })]);
    let texts =
        ["", " ", "other", "Other", "two words", "-x", "x-", "9", "x_y", "ü", "a/b", &long, "PASS", "Pass", "input"];
    let times = ["90s", "0s", "1h30m", "1h 30m", "1h30", "30m1h", "90x", "1.5h", "9999d", "5 m", "run", "id"];
    others.extend(texts.iter().chain(&times).map(|text| json!(text)));
    others.extend([json!("## Other"), json!("## "), json!("# Other"), json!("##Other")]);
    others.retain(|other| other != value);
    others
}

/// A document that differs from a good one in one place.
struct Mutant {
    /// Where, as a JSON pointer.
    place: String,
    /// How.
    change: String,
    document: Value,
}

/// Every document that differs from this one in one place.
fn mutants(document: &Value) -> Vec<Mutant> {
    let mut places = vec![String::new()];
    let mut mutants = Vec::new();
    while let Some(place) = places.pop() {
        let here = document.pointer(&place).unwrap();
        let mut with = |change: String, value: Value| {
            let mut changed = document.clone();
            *changed.pointer_mut(&place).unwrap() = value;
            mutants.push(Mutant { place: place.clone(), change, document: changed });
        };
        if !place.is_empty() {
            others(here).into_iter().for_each(|other| with(format!("= {other}"), other));
        }
        match here {
            Value::Object(entries) => {
                let mut more = entries.clone();
                more.insert("unknown".into(), json!("x"));
                with("with another key".into(), more.into());
                for (key, value) in entries {
                    let mut without = entries.clone();
                    without.shift_remove(key);
                    with(format!("without `{key}`"), without.clone().into());
                    for name in ["two words", "Other", "9", ""] {
                        without.insert(name.into(), value.clone());
                        with(format!("`{key}` is `{name}`"), without.clone().into());
                        without.shift_remove(name);
                    }
                    places.push(format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")));
                }
            }
            Value::Array(items) => places.extend((0..items.len()).map(|index| format!("{place}/{index}"))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    mutants
}

/// A definition as JSON, and its format.
fn good(path: &Path) -> Option<(DefinitionFormat, Value)> {
    let text = std::fs::read_to_string(path).unwrap();
    let file = Sources::new().add(path.display().to_string(), text.clone());
    let node = read(file, &text, FileSyntax::of(path, &text)).node.unwrap();
    DefinitionFormat::recognise(&node).ok().map(|format| (format, plain(&node)))
}

/// What is known of mutants that a schema takes and the checker does not.
#[derive(Default)]
struct Comparison {
    all: usize,
    /// By code and key: how many, and one of them.
    passed: BTreeMap<(Code, String), (usize, String)>,
    too_strict: Vec<String>,
}

impl Comparison {
    fn note(&mut self, mutant: &Mutant, takes: bool) {
        self.all += 1;
        let errors = errors(&mutant.document);
        let told = format!("{} {}", mutant.place, mutant.change);
        if !takes && errors.is_empty() {
            self.too_strict.push(told);
        } else if takes {
            let key = mutant.place.rsplit('/').find(|part| part.parse::<u32>().is_err()).unwrap_or_default();
            for code in errors {
                self.passed.entry((code, key.to_owned())).or_insert((0, told.clone())).0 += 1;
            }
        }
    }
}

#[test]
fn a_schema_says_what_the_checker_says_as_far_as_it_can_know() {
    let validators: BTreeMap<DefinitionFormat, Validator> = DefinitionFormat::ALL
        .into_iter()
        .map(|format| (format, jsonschema::validator_for(&schema(format)).expect("a schema")))
        .collect();
    let (mut compared, mut seen) = (Comparison::default(), BTreeSet::new());
    for (format, document) in good_files().iter().filter_map(|path| good(path)) {
        assert!(validators[&format].is_valid(&document), "{document}");
        for mutant in mutants(&document) {
            // What is changed in one transition or step need not be changed so in all of them, nor under every name.
            let (place, named) = (mutant.place.split('/'), ["states", "prompts"]);
            let mut kind: Vec<&str> = place.filter(|part| part.parse::<u32>().is_err()).collect();
            if kind.len() > 2 && named.contains(&kind[1]) {
                kind[2] = "*";
            }
            if seen.insert((format, kind.join("/"), mutant.change.clone())) {
                compared.note(&mutant, validators[&format].is_valid(&mutant.document));
            }
        }
    }
    let Comparison { all, passed, too_strict } = compared;
    assert!(all > 3000, "{all}");
    assert_eq!(too_strict, Vec::<String>::new());
    let is_known = |(code, key): &(Code, String)| {
        let beside = BESIDE_OTHERS.iter().any(|(known, keys)| known == code && keys.contains(&key.as_str()));
        beside || OF_THE_WHOLE.contains(code)
    };
    let unknown: Vec<_> = passed.iter().filter(|(key, _)| !is_known(key)).collect();
    assert!(unknown.is_empty(), "of {all}: {unknown:#?}");
}
