//! Workspaces on real repositories: what is at risk is kept and comes back byte for byte, whatever is done to it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod acquire;
mod bound;
mod cleanse;
mod edges;
mod forge;
mod ground;
mod interrupted;
mod leak;
mod lend;
mod machine;
mod merge;
mod power;
mod power_cuts;
mod risk;
mod spare;
