//! Benchmarks: what is measured, and the floor that it is held against.
//!
//! The disk's mood changes from second to second, so a number alone says little. Floor and measurement take turns, and
//! the turn whose ratio is in the middle is printed. Nothing here asserts a time: `cargo xtask bench` prints one table.
//!
//! `floor`, `engine`, `place`, `line`, `machine`, `steps`, `table` and `turns` are what is measured with; `product` drives the
//! built program; the other modules are one story each.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should say where")]

pub mod chain;
pub mod check;
pub mod crowd;
pub mod definitions;
pub mod engine;
pub mod fan;
pub mod floor;
pub mod growth;
pub mod line;
pub mod machine;
pub mod many;
pub mod moves;
pub mod place;
pub mod product;
pub mod steps;
pub mod stranded;
pub mod table;
pub mod turns;
