//! What is said between a command and the engine, and the client that says it.
//!
//! The engine answers HTTP with JSON, over a unix socket in its home or over TCP. These are the shapes of what goes over
//! the wire; nothing here knows how a task is kept or moved.

#![warn(missing_docs)]

pub mod attention;
pub mod board;
pub mod changes;
pub mod client;
pub mod control;
pub mod diff;
pub mod event;
pub mod grimoire;
pub mod notice;
pub mod page_link;
pub mod problem;
pub mod project;
pub mod run;
pub mod schedules;
pub mod screen;
pub mod shell;
pub mod shown;
pub mod task;
pub mod timeline;
pub mod token;
pub mod usage;
mod words;
pub mod work;
pub mod workers;
pub mod workspace;

pub use client::Client;
pub use problem::Problem;
