//! A scripted agent in place of a model: it does what it is told, for real, and misbehaves on demand.
//!
//! `sluice demo-agent` is [`agent::main`]. The language of its scripts is described in this crate's README.

pub mod agent;
