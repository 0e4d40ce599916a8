//! The scripted agent from outside, with real git and a `sluice` that only takes notes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "agent/jobs.rs"]
mod jobs;
#[path = "agent/misbehaviours.rs"]
mod misbehaviours;
#[path = "agent/scripts.rs"]
mod scripts;
#[path = "agent/stage.rs"]
mod stage;
