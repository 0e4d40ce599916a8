//! Looks for a text that breaks the readers of commands, prompts and expressions, or a place that lies outside it.

#![no_main]

#[path = "../../crates/sluice-dialect/tests/hostile/texts.rs"]
mod texts;

libfuzzer_sys::fuzz_target!(|text: &str| texts::exercise(text));
