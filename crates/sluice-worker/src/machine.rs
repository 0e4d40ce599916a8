//! The folder on this machine in which Sluice works: where its files are, what a person has set, which machine it is, and
//! its log. An engine's home is one, and a worker has one of its own.

pub mod config;
pub mod identity;
pub mod log;
pub mod places;
pub mod units;
