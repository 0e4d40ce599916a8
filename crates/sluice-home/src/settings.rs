//! What a person has set, and where the files of a home are. Nothing here needs an engine.

pub mod attached;
pub mod backup;
pub mod bounds;
pub mod clock;
pub mod config;
pub(crate) mod identity;
pub(crate) mod ids;
pub mod lock;
pub mod log;
pub mod places;
pub(crate) mod programs;
pub mod projects;
pub mod skills;
pub(crate) mod store;
pub mod tokens;
