//! What is done in the world for tasks and runs: git worktrees, agent sessions, commands, pull requests.
//!
//! Nothing here knows what a task or a run is or where it stands. Each part is told what to do, does it at most once
//! under the same name, and says how it went. No value ever becomes part of a shell script.

pub mod disk;
pub mod file;
pub mod forge;
pub mod git;
pub mod harness;
pub mod leak;
pub mod listing;
pub mod lock;
pub mod merge;
pub mod passing;
pub mod ports;
pub mod process;
pub mod redact;
pub mod remote_worktree;
pub mod session;
pub mod shim;
pub mod taskfile;
pub mod tmux;
pub mod workspace;
