//! What follows from the log by itself: triggers, the runs of states, what is swept away.

pub(crate) mod attempts;
pub(crate) mod follower;
pub(crate) mod notify;
mod retention;
pub(crate) mod state_runs;
mod telling;
pub(crate) mod triggers;
