//! Nothing that is stored is lost on an engine that does not know it: a key that it does not know is refused, never dropped;
//! and every key that a form can have is in a sample.

use std::collections::BTreeSet;

use serde_json::Value;
use sluice_engine::codec::UnreadableData;

/// A key that no stored form has.
const UNKNOWN: &str = "of_a_later_version";
/// The keys under which a word stands that says which variant it is.
const TAGS: [&str; 10] = ["action", "by", "do", "effect", "event", "how", "is", "of", "who", "why"];
/// Keys that were stored before samples of them were asked for. None is added.
const UNSAMPLED: [(&str, &str); 9] = [
    ("run_event.v1", "harness"),
    ("run_state.v1", "base"),
    ("run_state.v1", "cause"),
    ("run_state.v1", "commit"),
    ("run_state.v1", "harness"),
    ("run_state.v1", "root"),
    ("run_state.v1", "task"),
    ("run_state.v1", "usage"),
    ("task_state.v1", "remarks"),
];
/// What the families hold their stored forms in, beside which nothing is stored.
const WRAPPERS: [&str; 2] = ["data", "header"];

/// What is known of the keys of a family, each with its place.
#[derive(Default)]
pub(crate) struct FamilyKeys {
    /// Those that a form can have: each wants a sample.
    wanted: BTreeSet<String>,
    /// The tables whose keys are an author's names, and no sample of anything.
    of_authors: BTreeSet<String>,
}

/// Adds a key to each table of a sample in turn. Reading must refuse it, or keep it where the keys are an author's names. A
/// refusal names the keys that are known there.
pub(crate) fn nothing_is_dropped(
    name: &str,
    form: &Value,
    again: &dyn Fn(&Value) -> Result<Value, UnreadableData>,
    keys: &mut FamilyKeys,
) {
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
                keys.of_authors.insert(path(&place));
            }
            Err(UnreadableData(why)) => {
                let known = why.split_once(&format!("unknown field `{UNKNOWN}`, expected")).map(|(_, known)| known);
                let known = known.unwrap_or_default().split('`').skip(1).step_by(2);
                keys.wanted.extend(known.map(|key| path(&format!("{place}/{key}"))));
            }
        }
    }
}

/// A place without the numbers of lists.
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

/// Fails by name on a key that a form can have and no sample has.
pub(crate) fn are_sampled<'a>(family: &str, forms: impl Iterator<Item = &'a Value>, keys: &FamilyKeys) {
    let is_own = |path: &String| !path.rsplit_once('.').is_some_and(|(table, _)| keys.of_authors.contains(table));
    // A table that stands at several places is sampled whole at one of them, so the name alone counts.
    let name = |path: &str| path.split('=').next().and_then(|it| it.rsplit('.').next()).unwrap_or_default().to_owned();
    let names: BTreeSet<String> = forms.flat_map(words).filter(is_own).map(|path| name(&path)).collect();
    let is_known = |path: &String| names.contains(&name(path)) || UNSAMPLED.contains(&(family, name(path).as_str()));
    let unseen: Vec<&String> = keys.wanted.iter().filter(|path| !is_known(path)).collect();
    assert!(unseen.is_empty(), "{family}: no golden sample has {unseen:?}: write one in tests/golden/ with it");
}

/// The keys of a form and the words of its variants, each with its place.
pub(crate) fn words(form: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    add_words(form, String::new(), &mut found);
    found
}

fn add_words(form: &Value, path: String, found: &mut BTreeSet<String>) {
    match form {
        Value::Object(table) => {
            for (key, inner) in table {
                let here = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match inner.as_str().filter(|_| TAGS.contains(&key.as_str())) {
                    Some(word) => found.insert(format!("{here}={word}")),
                    None => found.insert(here.clone()),
                };
                add_words(inner, here, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_words(item, format!("{path}[]"), found)),
        _ => {}
    }
}
