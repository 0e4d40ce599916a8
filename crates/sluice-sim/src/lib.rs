//! The whole engine in a simulated world.
//!
//! The reactor is the real one, and so are the machines, the stored forms, the store in memory and the terms in which an
//! engine owns it. Everything around them is played: one engine or two that want the same store, clocks that are set, a
//! store that cannot be reached or does not answer, threads, workers that are slow, fail, answer twice, answer late or
//! vanish, a pool of workspaces, scripts and agents that work, ask, crash and outlive the engine, people who start, answer,
//! move, merge, cancel, retry and give up, and a hand that kills, stops and cuts off processes between any two steps.
//! One number decides all of it, so a life that goes wrong can be lived again ([`SimLife::live`] with the same seed).
//!
//! After every step the [`watch`] looks at what was promised.

mod agents;
pub mod bug;
mod chance;
mod definitions;
mod disorder;
mod engine;
mod ground;
mod hands;
mod lending;
mod owning;
mod people;
mod peril;
mod silence;
mod state_runs;
mod threads;
mod watch;
mod work;
mod works;
mod world;

pub use bug::SimBug;
pub use world::{SimFailure, SimLife};
