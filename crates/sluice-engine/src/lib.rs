//! The loop of Sluice: what is said to tasks and runs comes in, decisions are committed, effects are handed out, and
//! their outcomes come back.
//!
//! [`reactor`] is the loop as a machine without clock, thread or channel; [`host`] drives it with real ones. Tasks and
//! runs are [`actor`]s to it. What is stored is translated by [`codec`]. Who performs what is decided by [`scheduler`].
//! Nothing here knows git, tmux or HTTP.

pub mod actor;
pub mod codec;
pub mod host;
pub mod ledger;
pub mod loader;
pub mod ownership;
pub mod reactor;
pub mod record;
pub mod run_actor;
pub mod scheduler;
pub mod task_actor;
pub mod workers;
