//! Looks for a lifecycle file that breaks the reader, the checker, a report or a picture.

#![no_main]

#[path = "../../crates/sluice-dialect/tests/hostile/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::exercise("fuzz.yml", bytes));
