//! Tasks and runs as the store has them, and as people see them. Nothing here changes anything.

pub(crate) mod attempts;
pub mod attention;
pub(crate) mod changes;
pub mod files;
mod naming;
mod owing;
pub(crate) mod patch;
pub(crate) mod readers;
pub mod runs;
pub mod tasks;
pub(crate) mod usage;
pub mod view;
pub mod view_process;
pub mod view_run;
pub mod view_run_event;
