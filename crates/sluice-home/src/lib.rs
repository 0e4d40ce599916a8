//! One home: the engine with its store, the tasks it keeps, the worktrees it lends and the sessions it starts.
//!
//! Each module uses only those above it in this list; a test fails on an import that goes down:
//!
//! - [`settings`]: what a person has set, and where the files of a home are
//! - [`background`], [`undone`]: threads, timers and turns; why something could not be done
//! - [`read`]: tasks and runs as the store has them, and as people see them
//! - [`perform`]: how a step is carried out, on this machine or at a worker
//! - [`home`]: the open home, on which everything below works
//! - [`spans`]: the traces of tasks and runs
//! - [`definitions`], [`evidence`]: files that tasks and runs are started from, and what runs leave
//! - [`start`]: how tasks and runs begin
//! - [`roster`]: workers on other machines
//! - [`effect`]: what the engine decided, done on this machine
//! - [`ask`]: what a person, an agent or a worker can ask
//! - [`watch`]: what follows from the log by itself
//! - [`open`]: a home from its files to its threads
//! - [`worker`]: the other end of the roster, on a machine of its own
//! - [`doctor`]: what is wrong with a home, for a person

pub use sluice_dialect::duration;

pub mod ask;
mod background;
pub mod definitions;
pub mod doctor;
mod effect;
pub mod evidence;
pub mod home;
mod open;
pub mod perform;
pub mod read;
pub mod roster;
pub mod settings;
mod spans;
mod start;
mod undone;
mod watch;
pub mod worker;
