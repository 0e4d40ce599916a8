//! The engine's doors: HTTP with JSON, over the unix socket of its home and, for `sluice serve`, over the network.
//!
//! It translates: a request becomes a question to [`sluice_home::ask::Service`], its answer a response. Who asks is
//! known by the process at the other end of the socket, or by a token. Nothing is decided here.

mod access;
mod answer;
mod caller;
mod control;
mod cors;
mod crab_socket;
mod document;
mod door;
mod events;
mod feed;
mod follow;
mod glob;
mod grimoires;
mod home_socket;
mod keys;
mod limits;
mod live;
mod metrics;
mod network;
mod patient;
mod projects;
mod room;
mod routes;
mod run;
mod run_events;
mod runs;
mod signals;
mod table;
mod tasks;
mod tokens;
mod traces;
mod watchdog;
mod whole;

pub use network::{NetworkDoor, NetworkOptions};
pub use run::{EngineOptions, run};
pub use signals::each_signal;
pub use traces::traces;
