//! Harnesses from outside: what would be started, and what is made of what programs print.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "harness/invocations.rs"]
mod invocations;
#[path = "harness/own.rs"]
mod own;
#[path = "harness/preflight.rs"]
mod preflight;
#[path = "harness/recordings.rs"]
mod recordings;
#[path = "harness/results.rs"]
mod results;
#[path = "harness/screens.rs"]
mod screens;
#[path = "harness/skills.rs"]
mod skills;
#[path = "harness/streams.rs"]
mod streams;
