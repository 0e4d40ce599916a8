//! A scripted agent in place of a model: it does what it is told, for real, and misbehaves on demand.
//!
//! `sluice demo-agent` is [`agent::main`]. The language of its scripts is described in this crate's README.

//! [`model`] is a scripted model in place of a real one, and [`kit`] the check of an agent program against it, which is
//! `sluice harness check`.

pub mod agent;
pub mod kit;
pub mod model;
