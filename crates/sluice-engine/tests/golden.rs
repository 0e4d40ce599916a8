//! What was ever stored can be read: a sample of every stored form, as bytes that no later change may touch.
//!
//! `golden/FAMILY.v1.json` holds the samples of a family by name. Each must be what its sample is written as today, and
//! must give itself when it is read and written again. A variant without a sample fails by name; a variant that
//! [`forms!`] does not list does not compile. `cargo xtask update` adds the samples that are
//! missing. It never changes one that is there: a form that must change gets a new version, and new
//! samples beside the old.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "golden/keys.rs"]
mod keys;
#[path = "golden/run.rs"]
mod run;
#[path = "golden/task.rs"]
mod task;
#[path = "golden/task_state.rs"]
mod task_state;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};
use sluice_engine::codec::UnreadableData;
use sluice_engine::codec::outbox::{self, OutboxNote};

/// Names for the variants of an enum: a list of all of them, and a match that must know every one.
macro_rules! forms {
    ($($names:ident, $name:ident($type:ty) { $($pattern:pat => $word:literal,)+ })+) => {$(
        const $names: &[&str] = &[$($word,)+];

        fn $name(it: &$type) -> &'static str {
            match it { $($pattern => $word,)+ }
        }
    )+};
}
pub(crate) use forms;

/// The samples by name; all of `names` must be there, and none twice.
fn named<T>(names: &[&'static str], name: impl Fn(&T) -> &'static str, samples: Vec<T>) -> Vec<(String, T)> {
    let found: Vec<&str> = samples.iter().map(&name).collect();
    for wanted in names {
        let count = found.iter().filter(|found| found == &wanted).count();
        assert_eq!(count, 1, "there must be one sample of `{wanted}`: write it in tests/golden/");
    }
    samples.into_iter().map(|sample| (name(&sample).to_owned(), sample)).collect()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// Compares the samples of a family with its file. `again` reads a sample and writes it.
fn compare<T>(
    family: &str,
    samples: &[(String, T)],
    write: impl Fn(&T) -> Value,
    again: impl Fn(&Value) -> Result<Value, UnreadableData>,
) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{family}.v1.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|_| "{}".into());
    let mut golden: Map<String, Value> = serde_json::from_str(&text).unwrap();
    let missing: Vec<&(String, T)> = samples.iter().filter(|(name, _)| !golden.contains_key(name)).collect();
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
        let update = std::env::var_os("UPDATE_GOLDEN").is_some();
        assert!(update, "{family}: no golden sample of {}; `cargo xtask update` adds them", names.join(", "));
        for (name, sample) in missing {
            golden.insert(name.clone(), write(sample));
        }
        // A sample is a line, so that a difference shows which it is.
        let lines: Vec<String> = golden.iter().map(|(name, form)| format!("  {name:?}: {form}")).collect();
        std::fs::write(&path, format!("{{\n{}\n}}\n", lines.join(",\n"))).unwrap();
    }
    for (name, sample) in samples {
        assert_eq!(write(sample), golden[name], "{family}: `{name}` is written in another way than it was");
    }
    let mut wanted = BTreeSet::new();
    // Those that no variant writes any more too.
    for (name, form) in &golden {
        let read = again(form).unwrap_or_else(|error| panic!("{family}: `{name}`: {error}"));
        assert_eq!(read, *form, "{family}: `{name}` is not what it was when it is read and written again");
        wanted.extend(keys::nothing_is_dropped(&format!("{family}: `{name}`"), form, &again));
    }
    keys::are_known(family, &golden, &wanted);
}

forms! {
    NOTES, note(OutboxNote) {
        OutboxNote::Settled { error: None, .. } => "settled",
        OutboxNote::Settled { error: Some(_), .. } => "settled_with_error",
        OutboxNote::Leased { .. } => "leased",
    }
}

#[test]
fn notes_of_the_loop() {
    let samples = vec![
        OutboxNote::Settled { effect: "write-4".into(), error: None },
        OutboxNote::Settled { effect: "write-4".into(), error: Some("the disk is full".into()) },
        OutboxNote::Leased { effect: "0.1.whole".into(), worker: "w1".into(), until: 90_000 },
    ];
    let write = |it: &OutboxNote| serde_json::json!({ "kind": it.kind(), "data": json(&outbox::write(it)) });
    compare("note", &named(NOTES, note, samples), write, |form| {
        let bytes = form["data"].to_string();
        let read = outbox::read(form["kind"].as_str().unwrap(), 1, bytes.as_bytes())?.unwrap();
        Ok(write(&read))
    });
}
