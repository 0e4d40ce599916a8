//! One home: the engine with its store, the tasks it keeps, the worktrees it lends and the sessions it starts.
//!
//! Each module uses only those above it in this list; a test fails on an import that goes down:
//!
//! - [`settings`]: what a person has set, and where the files of a home are
//! - [`background`]: threads, timers and turns
//! - [`fence`]: what stops everything here when the store becomes another engine's
//! - [`read`]: tasks and runs as the store has them, and as people see them
//! - [`home`]: the open home, on which everything below works
//! - [`spans`]: the traces of tasks and runs
//! - [`definitions`], [`evidence`]: files that tasks and runs are started from, and what runs leave
//! - [`start`]: how tasks and runs begin
//! - [`roster`]: workers on other machines
//! - [`effect`]: what the engine decided, done on this machine
//! - [`ask`]: what a person, an agent or a worker can ask
//! - [`facade`]: the same, in the words of one design document
//! - [`watch`]: what follows from the log by itself
//! - [`open`]: a home from its files to its threads
//! - [`doctor`]: what is wrong with a home, for a person

pub use sluice_core::id;
pub use sluice_dialect::duration;
pub(crate) use sluice_worker::{perform, undone};

pub mod ask;
mod background;
pub mod definitions;
pub mod doctor;
mod effect;
pub mod evidence;
mod facade;
mod fence;
pub mod home;
mod open;
pub mod read;
pub mod roster;
pub mod settings;
mod spans;
mod start;
mod watch;
