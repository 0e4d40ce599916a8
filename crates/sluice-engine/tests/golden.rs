//! What was ever stored can be read: a sample of every stored form, as bytes that no later change may touch.
//!
//! `golden/format-N.json` holds the samples that came while `FORMAT` was N, by family and name; 3 has those before it too.
//! Each must be what its sample is written as today, and must give itself when it is read and written again. A variant
//! without a sample fails by name; a variant that [`forms!`] does not list does not compile. `cargo xtask update` adds the
//! samples that are missing. It never changes one that is there: a form that must change gets a new version, a family of its
//! own, and new samples beside the old.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "golden/formats.rs"]
mod formats;
#[path = "golden/keys.rs"]
mod keys;
#[path = "golden/run.rs"]
mod run;
#[path = "golden/task.rs"]
mod task;
#[path = "golden/task_state.rs"]
mod task_state;

use keys::FamilyKeys;
use serde_json::Value;
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

/// Reads a form and writes it again.
type Again = Box<dyn Fn(&Value) -> Result<Value, UnreadableData>>;

/// A stored form in one version, and samples of everything that it can say.
struct StoredFamily {
    name: &'static str,
    /// What each sample is written as today.
    samples: Vec<(String, Value)>,
    again: Again,
}

impl StoredFamily {
    fn new<T>(
        name: &'static str,
        samples: &[(String, T)],
        write: impl Fn(&T) -> Value,
        again: impl Fn(&Value) -> Result<Value, UnreadableData> + 'static,
    ) -> StoredFamily {
        let samples = samples.iter().map(|(name, sample)| (name.clone(), write(sample))).collect();
        StoredFamily { name, samples, again: Box::new(again) }
    }
}

#[test]
fn what_was_ever_stored_is_read_and_written_as_it_was() {
    let families =
        [notes(), run::effects(), run::events(), run::states(), task::effects(), task::events(), task_state::states()];
    let golden = formats::compared(&families);
    for StoredFamily { name: family, again, .. } in &families {
        let mut keys = FamilyKeys::default();
        // Those that no variant writes any more too.
        for (name, form) in golden.samples(family) {
            let read = again(form).unwrap_or_else(|error| panic!("{family}: `{name}`: {error}"));
            assert_eq!(read, *form, "{family}: `{name}` is not what it was when it is read and written again");
            keys::nothing_is_dropped(&format!("{family}: `{name}`"), form, again, &mut keys);
        }
        keys::are_sampled(family, golden.samples(family).map(|(_, form)| form), &keys);
    }
}

forms! {
    NOTES, note(OutboxNote) {
        OutboxNote::Settled { error: None, .. } => "settled",
        OutboxNote::Settled { error: Some(_), .. } => "settled_with_error",
        OutboxNote::Leased { .. } => "leased",
    }
}

fn notes() -> StoredFamily {
    let samples = vec![
        OutboxNote::Settled { effect: "write-4".into(), error: None },
        OutboxNote::Settled { effect: "write-4".into(), error: Some("the disk is full".into()) },
        OutboxNote::Leased { effect: "0.1.whole".into(), worker: "w1".into(), until: 90_000 },
    ];
    let write = |it: &OutboxNote| serde_json::json!({ "kind": it.kind(), "data": json(&outbox::write(it)) });
    StoredFamily::new("note.v1", &named(NOTES, note, samples), write, move |form| {
        let bytes = form["data"].to_string();
        let read = outbox::read(form["kind"].as_str().unwrap(), 1, bytes.as_bytes())?.unwrap();
        Ok(write(&read))
    })
}
