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

use sluice_os::taskfile::{FrontmatterTruth, FrontmatterValues, heal};

/// A whole new file.
pub(crate) fn render(values: &FrontmatterValues, body: &[u8]) -> Vec<u8> {
    let truth = FrontmatterTruth { values: values.clone(), ..FrontmatterTruth::default() };
    [&heal(b"", &truth).bytes, body].concat()
}
