//! The table of the law is what the page shows, and every row of it is taken by a script.

use std::collections::BTreeSet;
use std::path::Path;

use sluice_core::run::law::{StepHappening, StepStatusKind, next, page};

use super::play::{Row, played};
use super::{questions, scripts};

#[test]
#[expect(clippy::disallowed_methods, reason = "the page is a file; only the core itself does no I/O")]
fn the_page_shows_the_law() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/machines/run.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, page()).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == page(), "docs/machines/run.md is out of date: run `cargo xtask update`");
}

#[test]
fn every_row_is_taken_by_a_script() {
    let scripts = scripts::ALL.iter().chain(questions::ALL);
    let taken: BTreeSet<Row> = scripts.flat_map(|(recipe, script)| played(recipe, script).rows).collect();
    let all =
        StepStatusKind::ALL.into_iter().flat_map(|status| StepHappening::ALL.map(|happening| (status, happening)));
    let untaken: Vec<Row> =
        all.filter(|(status, it)| next(*status, *it).is_some()).filter(|row| !taken.contains(row)).collect();
    assert!(untaken.is_empty(), "no script takes these rows of the law: {untaken:?}");
    let illegal: Vec<&Row> = taken.iter().filter(|(status, it)| next(*status, *it).is_none()).collect();
    assert!(illegal.is_empty(), "scripts take rows that are not in the law: {illegal:?}");
}
