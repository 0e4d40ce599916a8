//! The built-in harnesses, read from `table.toml`. A test reads the whole table, so a mistake in it is found there.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::stream::HarnessFormat;
use super::{Harness, HarnessCommands, HarnessEnvironment, HarnessWatchdogs, OwnFolder};

const TABLE: &str = include_str!("table.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HarnessRow {
    interactive: Vec<String>,
    headless: Vec<String>,
    reduced_interactive: Option<Vec<String>>,
    reduced_headless: Option<Vec<String>>,
    output: String,
    version: Vec<String>,
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    reduced_set: BTreeMap<String, String>,
    #[serde(default)]
    headless_set: BTreeMap<String, String>,
    #[serde(default)]
    unset: Vec<String>,
    skills_folder: Option<String>,
    own_folder: Option<OwnFolderRow>,
    remark: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnFolderRow {
    variable: String,
    usual: String,
    shared: Vec<String>,
}

pub(super) fn harnesses() -> BTreeMap<String, Harness> {
    let rows: BTreeMap<String, HarnessRow> =
        toml::from_str(TABLE).expect("the table of harnesses is ours and is tested");
    rows.into_iter().map(|(name, row)| (name.clone(), harness(name, row))).collect()
}

fn harness(name: String, row: HarnessRow) -> Harness {
    let output = HarnessFormat::read(&row.output).expect("the table of harnesses is ours and is tested");
    Harness {
        name,
        output,
        skills_folder: row.skills_folder,
        remark: row.remark,
        watchdogs: watchdogs(output),
        commands: HarnessCommands {
            interactive: Some(row.interactive),
            headless: Some(row.headless),
            reduced_interactive: row.reduced_interactive,
            reduced_headless: row.reduced_headless,
        },
        environment: HarnessEnvironment {
            set: row.set,
            reduced_set: row.reduced_set,
            headless_set: row.headless_set,
            unset: row.unset,
        },
        version: row.version,
        own_folder: row.own_folder.map(|it| OwnFolder { variable: it.variable, usual: it.usual, shared: it.shared }),
    }
}

/// A stream has a sign of life soon and a final message; text may have neither.
pub(super) fn watchdogs(output: HarnessFormat) -> HarnessWatchdogs {
    match output {
        HarnessFormat::Text | HarnessFormat::Aider => HarnessWatchdogs::SILENT,
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
        | HarnessFormat::Agy => HarnessWatchdogs::STREAMING,
    }
}
