//! The whole engine in a simulated world.
//!
//! The reactor is the real one, and so are the machines, the stored forms and the store in memory. Everything around
//! them is played: the clock, the disk that a commit is on its way to, workers that are slow, fail, answer twice, answer
//! late or vanish, a pool of workspaces, agents that work, ask, crash and outlive the engine, people who start, answer,
//! move, merge, cancel and retry, and a hand that kills the process between any two steps.
//! One number decides all of it, so a life that goes wrong can be lived again ([`Life::live`] with the same seed).
//!
//! After every step the [`watch`] looks at what was promised.

mod agents;
pub mod bug;
mod chance;
mod definitions;
mod disorder;
mod ground;
mod hands;
mod people;
mod peril;
mod state_runs;
mod watch;
mod work;
mod world;

pub use bug::Bug;
pub use world::{Life, Wrong};
