//! The definitions of Sluice and the checker that makes them.
//!
//! A file becomes a *draft* (names that may lead nowhere, texts still unread, each with its place), and [`check`]
//! makes the draft a *definition*: a [`lifecycle::Lifecycle`] or a [`recipe::Recipe`] in which every name leads
//! somewhere and every question that can be answered beforehand has been. There is no other way to make one.
//!
//! Nothing here reads a file, a clock or the environment, and nothing depends on the order of a hash map. That is
//! checked: see this crate's manifest and its `clippy.toml`.

#![warn(missing_docs)]

pub mod artifact;
pub mod attention;
pub mod check;
pub mod event_name;
pub mod expr;
pub mod findings;
pub mod id;
pub mod lifecycle;
pub mod machine;
pub mod name;
pub mod problem;
pub mod recipe;
pub mod run;
pub mod span;
pub mod task;
pub mod text;
mod words;
