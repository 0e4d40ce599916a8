//! The modules of `sluice-worker`, `sluice-home` and `sluice-server` stand in layers, in the order in which their `lib.rs` lists them, and an
//! import leads upwards only. So no two of them can need each other.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use xtask::root;

/// The crates whose modules stand in layers.
const LAYERED: [&str; 3] = ["crates/sluice-worker/src", "crates/sluice-home/src", "crates/sluice-server/src"];

#[test]
fn imports_lead_to_the_layers_above() {
    for source in LAYERED {
        let library = std::fs::read_to_string(root().join(source).join("lib.rs")).unwrap();
        let order = layers(&library);
        let declared: BTreeSet<&str> = library.lines().filter_map(declares).collect();
        assert_eq!(
            order.iter().map(String::as_str).collect::<BTreeSet<_>>(),
            declared,
            "{source}/lib.rs lists its modules"
        );
        let found = wrong(&root().join(source), &order);
        assert!(found.is_empty(), "{source}: an import leads down the list of lib.rs:\n{}", found.join("\n"));
    }
}

#[test]
fn an_import_that_leads_down_is_seen() {
    let order = ["read".to_owned(), "home".to_owned(), "ask".to_owned()];
    let uses = |text: &str| imported(text).into_iter().filter(|name| leads_down(&order, "home", name)).count();
    assert_eq!(uses("use crate::ask::Service;"), 1);
    assert_eq!(uses("use crate::{ask, read};"), 1);
    assert_eq!(uses("fn x() { crate::ask::open() }"), 1);
    assert_eq!(uses("use crate::read::view;\nuse crate::home::engine;\n// crate::ask\n"), 0);
    assert_eq!(uses("#[cfg(test)]\nmod tests {\n    use crate::ask::Service;\n}"), 0);
}

/// The modules in the order of the list: those that one line names stand beside each other, in their order.
fn layers(library: &str) -> Vec<String> {
    let listed =
        library.lines().filter_map(|line| line.strip_prefix("//! - ")?.split_once(": ")).map(|(names, _)| names);
    listed.flat_map(|names| names.split(", ")).map(|name| name.trim_matches(['[', ']', '`']).to_owned()).collect()
}

fn declares(line: &str) -> Option<&str> {
    line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')
}

/// Every import of a file that leads to a layer below its own.
fn wrong(source: &Path, order: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files(source) {
        let path = file.strip_prefix(source).unwrap().with_extension("");
        let module = path.iter().next().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let down = imported(&text).into_iter().filter(|name| module != "lib" && leads_down(order, &module, name));
        found.extend(down.map(|name| format!("{} uses crate::{name}", path.display())));
    }
    found
}

fn leads_down(order: &[String], from: &str, to: &str) -> bool {
    let place = |name: &str| order.iter().position(|it| it == name);
    matches!((place(from), place(to)), (Some(from), Some(to)) if to > from)
}

/// The modules of its crate that a file names, outside its tests.
fn imported(text: &str) -> BTreeSet<String> {
    let own = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code: String =
        own.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
    let mut names = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            // The names before a `::` of their own, or alone.
            Some(group) => {
                let group = group.split(';').next().unwrap_or_default();
                names.extend(
                    group.split([',', '{', '}']).map(|it| it.trim().split("::").next().unwrap_or_default().to_owned()),
                );
            }
            None => {
                let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
                names.insert(name.to_owned());
            }
        }
    }
    names
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.extend(Some(path).filter(|path| path.extension().is_some_and(|end| end == "rs"))),
        }
    }
    found
}
