//! The built-in harnesses, read from `table.toml`. A test reads the whole table, so a mistake in it is found there.

use std::collections::BTreeMap;

use super::stream::HarnessFormat;
use super::{Harness, HarnessWatchdogs};

const TABLE: &str = include_str!("table.toml");

pub(super) fn harnesses() -> BTreeMap<String, Harness> {
    let mut rows: BTreeMap<String, Harness> =
        toml::from_str(TABLE).expect("the table of harnesses is ours and is tested");
    for (name, harness) in &mut rows {
        harness.name.clone_from(name);
        harness.watchdogs = watchdogs(harness.output);
    }
    rows
}

/// A stream has a sign of life soon and a final message; text may have neither, and may begin as silently as it goes on.
pub(super) fn watchdogs(output: HarnessFormat) -> HarnessWatchdogs {
    let streaming = HarnessWatchdogs::STREAMING;
    match output {
        HarnessFormat::Text | HarnessFormat::Aider => HarnessWatchdogs { start_up: streaming.silence, ..streaming },
        HarnessFormat::Claude
        | HarnessFormat::Codex
        | HarnessFormat::Gemini
        | HarnessFormat::Opencode
        | HarnessFormat::Goose
        | HarnessFormat::Cursor
        | HarnessFormat::Amp
        | HarnessFormat::Pi
        | HarnessFormat::Copilot
        | HarnessFormat::Qwen
        | HarnessFormat::Agy => streaming,
    }
}
