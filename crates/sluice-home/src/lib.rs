//! One home: the engine with its store, the tasks it keeps, the worktrees it lends and the sessions it starts.
//!
//! [`service::Service`] is what can be asked of a home; commands and servers translate to it. Deciding is the core's,
//! going round is the engine's, git and processes are the worker's: here they are put together.

pub use sluice_dialect::duration;

pub mod attached;
mod attempts;
pub mod backup;
pub mod bounds;
mod branches;
mod checkouts;
pub mod clock;
pub mod colonies;
mod committed;
pub mod config;
pub mod crabs;
pub mod definitions;
pub mod denied;
pub mod doctor;
pub mod evidence;
mod exits;
mod fence;
pub mod files;
mod follower;
pub mod ground;
mod hands;
mod house;
mod identity;
mod ids;
mod judged;
mod lane;
mod later;
mod lists;
pub mod lock;
pub mod log;
mod merges;
mod mirrors;
pub mod missions;
mod patrols;
mod perform;
pub mod places;
mod programs;
pub mod projects;
mod queue;
pub mod rooms;
pub mod runs;
pub mod service;
mod shelves;
pub mod skills;
mod spans;
mod state_runs;
mod strays;
pub mod tasks;
mod threads;
pub mod tokens;
mod triggers;
mod turns;
mod undone;
pub mod view;
pub mod view_process;
pub mod view_run;
mod work;
pub mod workbench;
pub mod worker;
