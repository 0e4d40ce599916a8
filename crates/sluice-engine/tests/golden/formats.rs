//! The files of golden samples, one for each format of homes. A key or word that is new raises `FORMAT`, so that an older
//! engine leaves the whole home alone: what a format brought is what its file has and none before it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sluice_engine::codec::FORMAT;

use super::StoredFamily;
use super::keys::words;

/// The samples of a format: those of each family, by name.
type FormatSamples = BTreeMap<String, Map<String, Value>>;

/// Every sample that there is, by the format of the home that brought it.
pub(crate) struct GoldenSamples(BTreeMap<u32, FormatSamples>);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

impl GoldenSamples {
    fn read() -> GoldenSamples {
        let mut formats = BTreeMap::new();
        for entry in std::fs::read_dir(folder()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let Some(format) = name.strip_prefix("format-").and_then(|rest| rest.strip_suffix(".json")) else {
                continue;
            };
            let format: u32 = format.parse().unwrap();
            assert!(format <= FORMAT, "{name} is of a later format than {FORMAT}, which codec.rs says is today's");
            let text = std::fs::read_to_string(folder().join(&name)).unwrap();
            formats.insert(format, serde_json::from_str(&text).unwrap());
        }
        GoldenSamples(formats)
    }

    /// The samples of a family, whatever format brought them.
    pub(crate) fn samples(&self, family: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.0.values().filter_map(move |samples| samples.get(family)).flatten()
    }

    fn find(&self, family: &str, name: &str) -> Option<&Value> {
        let mut found = self.samples(family).filter(|(it, _)| *it == name);
        let first = found.next().map(|(_, form)| form);
        assert!(found.next().is_none(), "{family}: there are two golden samples of `{name}`");
        first
    }

    /// The newest format that brought a key or word, and all keys and words.
    fn newest(&self) -> (u32, BTreeSet<String>) {
        let (mut newest, mut known) = (0, BTreeSet::new());
        for (format, samples) in &self.0 {
            let before = known.len();
            for (family, forms) in samples {
                known.extend(forms.values().flat_map(words).map(|word| format!("{family}: {word}")));
            }
            newest = if known.len() > before { *format } else { newest };
        }
        (newest, known)
    }

    /// Adds samples to the file of today's format.
    fn add(&mut self, missing: Vec<(&'static str, String, Value)>) {
        let samples = self.0.entry(FORMAT).or_default();
        for (family, name, form) in missing {
            samples.entry(family.to_owned()).or_default().insert(name, form);
        }
        // A sample is a line, so that a difference shows which it is.
        let line = |(name, form): (&String, &Value)| format!("  {name:?}: {form}");
        let table = |(family, forms): (&String, &Map<String, Value>)| {
            format!("{family:?}: {{\n{}\n}}", forms.iter().map(line).collect::<Vec<_>>().join(",\n"))
        };
        let tables: Vec<String> = samples.iter().map(table).collect();
        let path = folder().join(format!("format-{FORMAT}.json"));
        std::fs::write(path, format!("{{\n{}\n}}\n", tables.join(",\n"))).unwrap();
    }
}

/// The golden samples, after what is written today was compared with them and what is missing was added.
pub(crate) fn compared(families: &[StoredFamily]) -> GoldenSamples {
    let mut golden = GoldenSamples::read();
    let mut missing = Vec::new();
    for StoredFamily { name: family, samples, .. } in families {
        for (name, today) in samples {
            match golden.find(family, name) {
                Some(form) => assert_eq!(today, form, "{family}: `{name}` is written in another way than it was"),
                None => missing.push((*family, name.clone(), today.clone())),
            }
        }
    }
    if missing.is_empty() {
        return golden;
    }
    let (newest, known) = golden.newest();
    let found = missing
        .iter()
        .flat_map(|(family, _, form)| words(form).into_iter().map(move |word| format!("{family}: {word}")));
    let new: BTreeSet<String> = found.filter(|word| !known.contains(word)).collect();
    assert!(
        new.is_empty() || newest < FORMAT,
        "format {newest} does not have {new:?}: raise FORMAT in crates/sluice-engine/src/codec.rs, so that an older engine \
         leaves such a home alone, and run `cargo xtask update`"
    );
    let names: Vec<String> = missing.iter().map(|(family, name, _)| format!("{family}: `{name}`")).collect();
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    assert!(update, "no golden sample of {}; `cargo xtask update` adds them", names.join(", "));
    golden.add(missing);
    golden
}
