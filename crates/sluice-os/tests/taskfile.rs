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
