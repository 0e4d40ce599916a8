//! How long a check takes, beside the floor: letting the YAML parser go over the same bytes and doing nothing with it.

use divan::{Bencher, black_box};
use sluice_bench::{graph, lifecycle, sequence};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Source, Sources, load};

fn main() {
    divan::main();
}

fn file(name: &str) -> String {
    match name {
        "10,000 steps in a sequence" => sequence(10_000),
        "10,000 steps in a graph" => graph(10_000),
        "1,000 states" => lifecycle(1_000),
        other => panic!("no file {other}"),
    }
}

const FILES: [&str; 3] = ["10,000 steps in a sequence", "10,000 steps in a graph", "1,000 states"];

#[divan::bench(args = FILES, sample_count = 10)]
fn check(bencher: Bencher<'_, '_>, name: &str) {
    let file = file(name);
    bencher.bench(|| {
        let source = Source { path: "x.yml", bytes: black_box(file.as_bytes()) };
        let loaded = load(&source, &mut NoPrompts, &mut Sources::new());
        assert!(loaded.is_usable(), "{:?}", loaded.problems.first());
    });
}

#[divan::bench(args = FILES, sample_count = 10)]
fn floor_parse_only(bencher: Bencher<'_, '_>, name: &str) {
    let file = file(name);
    bencher.bench(|| granit_parser::Parser::new_from_str(black_box(&file)).filter(Result::is_ok).count());
}
