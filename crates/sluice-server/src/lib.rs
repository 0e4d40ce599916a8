//! The engine's doors: HTTP with JSON, over the unix socket of its home and, for `sluice serve`, over the network.
//!
//! It translates: a request becomes a question to [`sluice_home::ask::Service`], its answer a response. Who asks is
//! known by the process at the other end of the socket, or by a token. Nothing is decided here.
//!
//! Each module uses only those above it in this list; a test fails on an import that goes down:
//!
//! - [`limits`]: how much of everything there may be
//! - [`answer`], [`caller`]: what a request says and what is sent back; who asks
//! - [`app`]: what all requests share
//! - [`table`], [`keys`], [`access`]: what is said about routes, and what holds for all of them
//! - [`follow`]: the log, for those who wait for more
//! - [`facade`]: the routes of one design document each, in its words
//! - [`page`]: the page at `/`, for people with a browser
//! - [`routes`]: all other routes, and the document that describes them
//! - [`doors`]: connections, at the socket and over the network
//! - [`engine_process`]: the life of an engine

mod access;
mod answer;
mod app;
mod caller;
mod doors;
mod engine_process;
mod facade;
mod follow;
mod keys;
mod limits;
mod page;
mod routes;
mod table;

pub use doors::network::{NetworkDoor, NetworkOptions};
pub use engine_process::signals::each_signal;
pub use engine_process::traces::traces;
pub use engine_process::{EngineOptions, run};
