//! How long a check takes, beside the floor: letting the YAML parser go over the same bytes and doing nothing with it.

use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{DefinitionFile, Sources, load};

use crate::definitions::{graph, lifecycle, sequence};
use crate::table::Table;
use crate::turns::{each, take_turns};

/// Checks of large files.
pub fn measure(table: &Table) {
    let files = [
        ("10,000 steps in a sequence", sequence(10_000)),
        ("10,000 steps in a graph", graph(10_000)),
        ("1,000 states", lifecycle(1_000)),
    ];
    for (what, file) in files {
        let turn = take_turns(
            5,
            &mut || {
                each(1, || {
                    assert!(granit_parser::Parser::new_from_str(&file).all(|event| event.is_ok()));
                })
            },
            &mut || {
                each(1, || {
                    let source = DefinitionFile { path: "x.yml", bytes: file.as_bytes() };
                    let loaded = load(&source, &mut NoPrompts, &mut Sources::new());
                    assert!(loaded.is_usable(), "{:?}", loaded.problems.first());
                })
            },
        );
        table.turn(&format!("check: {what} / parsing it"), turn, "under 1 s");
    }
}
