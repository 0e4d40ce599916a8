//! TASK.md from outside: taken apart, put together, healed, read and written.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "taskfile/disk.rs"]
mod disk;
#[path = "taskfile/healing.rs"]
mod healing;
#[path = "taskfile/sections.rs"]
mod sections;
#[path = "taskfile/values.rs"]
mod values;

use std::collections::BTreeMap;

use sluice_os::taskfile::{FrontmatterTruth, FrontmatterValues, ParsedTaskFile, heal};

/// Keys of an engine, in its order; which a task has is its caller's matter.
const KEYS: &[&str] = &[
    "id",
    "project",
    "branch",
    "workflow",
    "harness",
    "review_harness",
    "status",
    "review_round",
    "crash_count",
    "summary",
    "workspace",
    "tmux_session",
    "pr_url",
    "created_at",
    "updated_at",
];

fn parse(bytes: &[u8]) -> ParsedTaskFile {
    ParsedTaskFile::parse(bytes, KEYS)
}

/// A whole new file.
fn render(values: &FrontmatterValues, body: &[u8]) -> Vec<u8> {
    let truth = FrontmatterTruth { keys: KEYS, values: values.clone(), written: BTreeMap::new() };
    [heal(b"", &truth).bytes.as_slice(), body].concat()
}
