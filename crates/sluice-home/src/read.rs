//! Tasks and runs as the store has them, and as people see them. Nothing here changes anything.

pub mod attention;
pub(crate) mod changes;
pub mod files;
pub(crate) mod readers;
pub mod runs;
pub mod tasks;
pub mod view;
pub mod view_process;
pub mod view_run;
pub mod view_run_event;
