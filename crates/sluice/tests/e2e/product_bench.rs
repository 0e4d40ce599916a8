//! The benchmark of the product, once through with a handful of runs and without peers, so that it goes on working. It times
//! nothing here: what must hold is that every run completes.

use std::path::PathBuf;

use sluice_bench::product::peers::Peers;
use sluice_bench::product::{STORIES, Scale, Stage};

#[test]
fn every_story_of_the_product_benchmark_can_be_told() {
    let disk = tempfile::Builder::new().prefix("e2e-").tempdir().unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_sluice"));
    let stage = Stage::new(program, disk.path(), Scale::smoke(), Peers::default());
    for (_, measure) in STORIES {
        measure(&stage);
    }
}
