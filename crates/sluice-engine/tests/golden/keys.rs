//! Nothing that is stored is lost on an engine that does not know it: a key that it does not know is refused, never dropped,
//! and a key or word that is new raises `FORMAT`, so that an older engine leaves the whole home alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sluice_engine::codec::{FORMAT, UnreadableData};

/// A key that no stored form has.
const UNKNOWN: &str = "of_a_later_version";
/// The keys under which a word stands that says which variant it is.
const TAGS: [&str; 10] = ["action", "by", "do", "effect", "event", "how", "is", "of", "who", "why"];
/// Keys that were stored before samples of them were asked for. None is added.
const UNSAMPLED: [(&str, &str); 9] = [
    ("run_event", "harness"),
    ("run_state", "base"),
    ("run_state", "cause"),
    ("run_state", "commit"),
    ("run_state", "harness"),
    ("run_state", "root"),
    ("run_state", "task"),
    ("run_state", "usage"),
    ("task_state", "remarks"),
];
/// What the families hold their stored forms in, beside which nothing is stored.
const WRAPPERS: [&str; 2] = ["data", "header"];

/// Adds a key to each table of a sample in turn. Reading must refuse it, or keep it where the keys are an author's names. A
/// refusal names the keys that are known there, and those are given: each wants a sample.
pub(crate) fn nothing_is_dropped(
    name: &str,
    form: &Value,
    again: &impl Fn(&Value) -> Result<Value, UnreadableData>,
) -> Vec<String> {
    let mut wanted = Vec::new();
    let mut places = Vec::new();
    tables(form, String::new(), &mut places);
    for place in places {
        let mut later = form.clone();
        let table = later.pointer_mut(&place).and_then(Value::as_object_mut).unwrap();
        table.insert(UNKNOWN.into(), Value::from("x"));
        match again(&later) {
            Ok(read) => {
                let kept = read.pointer(&place).is_some_and(|table| table.get(UNKNOWN).is_some());
                assert!(kept, "{name}: `{place}` drops a key that it does not know: add `deny_unknown_fields`");
            }
            Err(UnreadableData(why)) => {
                let known = why.split_once(&format!("unknown field `{UNKNOWN}`, expected")).map(|(_, known)| known);
                let known = known.unwrap_or_default().split('`').skip(1).step_by(2);
                wanted.extend(known.map(|key| path(&format!("{place}/{key}"))));
            }
        }
    }
    wanted
}

/// A place as the files of keys have it: without the numbers of lists.
fn path(pointer: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_digit());
    pointer.split('/').skip(1).fold(String::new(), |path, part| match (path.is_empty(), is_number(part)) {
        (_, true) => format!("{path}[]"),
        (true, false) => part.to_owned(),
        (false, false) => format!("{path}.{part}"),
    })
}

/// Where the tables of a form are, as JSON pointers. A variant without data is its word alone, and has no place for more.
fn tables(form: &Value, place: String, places: &mut Vec<String>) {
    match form {
        Value::Object(table) => {
            let is_wrapper = place.is_empty() && WRAPPERS.iter().any(|key| table.contains_key(*key));
            let is_word = table.len() == 1 && TAGS.iter().any(|tag| table.contains_key(*tag));
            if !is_wrapper && !is_word {
                places.push(place.clone());
            }
            // Below `$` are exact forms of an author's own data, whose keys are names.
            for (key, inner) in table.iter().filter(|(key, _)| !key.starts_with('$')) {
                let key = key.replace('~', "~0").replace('/', "~1");
                tables(inner, format!("{place}/{key}"), places);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                tables(item, format!("{place}/{index}"), places);
            }
        }
        _ => {}
    }
}

/// The keys and words of every family, each with the format of the home that brought it.
fn file(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{family}.keys"))
}

/// Compares the keys and words of a family with those that the formats of homes have brought so far.
/// `wanted` are those that a form can have.
pub(crate) fn are_known(family: &str, golden: &Map<String, Value>, wanted: &BTreeSet<String>) {
    let mut found = BTreeMap::new();
    for form in golden.values() {
        words(form, String::new(), &mut found);
    }
    // A table that stands at several places is sampled whole at one of them, so the name alone counts.
    let name = |path: &str| path.split('=').next().and_then(|it| it.rsplit('.').next()).unwrap_or_default().to_owned();
    let names: BTreeSet<String> = found.keys().map(|path| name(path)).collect();
    let is_known = |path: &String| names.contains(&name(path)) || UNSAMPLED.contains(&(family, name(path).as_str()));
    let unseen: Vec<&String> = wanted.iter().filter(|path| !is_known(path)).collect();
    assert!(unseen.is_empty(), "{family}: no golden sample has {unseen:?}: write one in tests/golden/ with it");
    let text = std::fs::read_to_string(file(family)).unwrap_or_default();
    let line =
        |line: &str| line.split_once(' ').map(|(format, path)| (path.to_owned(), format.parse::<u32>().unwrap()));
    let mut known: BTreeMap<String, u32> = text.lines().filter_map(line).collect();
    let new: Vec<String> = found.into_keys().filter(|path| !known.contains_key(path)).collect();
    if new.is_empty() {
        return;
    }
    let newest = known.values().copied().max().unwrap_or_default();
    assert!(
        newest < FORMAT,
        "{family}: format {newest} does not have {}: raise FORMAT in crates/sluice-engine/src/codec.rs, so that an older \
         engine leaves such a home alone, and run `cargo xtask update`",
        new.join(", ")
    );
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    assert!(update, "{family}: {} is new; `cargo xtask update` adds it", new.join(", "));
    known.extend(new.into_iter().map(|path| (path, FORMAT)));
    let lines: Vec<String> = known.iter().map(|(path, format)| format!("{format} {path}\n")).collect();
    std::fs::write(file(family), lines.concat()).unwrap();
}

fn words(form: &Value, path: String, found: &mut BTreeMap<String, ()>) {
    match form {
        Value::Object(table) => {
            for (key, inner) in table {
                let here = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match inner.as_str().filter(|_| TAGS.contains(&key.as_str())) {
                    Some(word) => found.insert(format!("{here}={word}"), ()),
                    None => found.insert(here.clone(), ()),
                };
                words(inner, here, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| words(item, format!("{path}[]"), found)),
        _ => {}
    }
}
