//! The engine's doors: HTTP with JSON, over the unix socket of its home.
//!
//! It translates: a request becomes a question to [`sluice_home::service::Service`], its answer a response. Who asks is
//! known by the process at the other end of the socket. Nothing is decided here.

mod answer;
mod events;
mod routes;
mod run;
mod run_events;
mod runs;

pub use run::run;
