//! One table of ratios, all measured in one run on one disk: `cargo xtask bench`, or only a part of it:
//! `cargo xtask bench chain`, `cargo xtask bench chain sqlite`.

use std::path::Path;
use std::process::ExitCode;

use sluice_bench::place::{Kind, Place};
use sluice_bench::table::Table;
use sluice_bench::{chain, check, crowd, fan, growth, many, moves, stranded};

/// Measures something and puts it into the table.
type Story<'a> = &'a dyn Fn(&Table);

fn main() -> ExitCode {
    // Cargo adds arguments of its own.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let kind = |word: &String| [Kind::Sqlite, Kind::Postgres].into_iter().find(|kind| kind.word() == word);
    let place = Place::new(Path::new(env!("CARGO_TARGET_TMPDIR")), words.iter().find_map(kind));
    let filter = words.iter().find(|word| kind(word).is_none());
    let stories: [(&str, Story<'_>); 9] = [
        ("floor", &|table| chain::floors(table, &place)),
        ("chain", &|table| chain::measure(table, &place)),
        ("many", &|table| many::measure(table, &place)),
        ("fan-out", &|table| fan::measure(table, &place)),
        ("move", &|table| moves::measure(table, &place)),
        ("history", &|table| growth::measure(table, &place)),
        ("crowd", &|table| crowd::measure(table, &place)),
        ("stranded", &|table| stranded::measure(table, &place)),
        ("check", &|table| check::measure(table)),
    ];
    let wanted = |story: &str| filter.as_ref().is_none_or(|word| story.contains(word.as_str()));
    if !stories.iter().any(|(name, _)| wanted(name)) {
        let names: Vec<&str> = stories.iter().map(|(name, _)| *name).collect();
        eprintln!("nothing is called so; there is: {}", names.join(", "));
        return ExitCode::from(2);
    }
    let table = Table::begin();
    stories.iter().filter(|(name, _)| wanted(name)).for_each(|(_, measure)| measure(&table));
    ExitCode::SUCCESS
}
