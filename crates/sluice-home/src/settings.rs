//! What a person has set, and where the files of a home are. Nothing here needs an engine. What a worker has as well
//! stands in `sluice_worker::machine`.

pub mod attached;
pub mod backup;
pub mod bounds;
pub mod clock;
pub mod config_check;
pub mod config_edit;
pub mod config_list;
pub mod harnesses;
pub(crate) mod ids;
pub mod left_signal;
pub mod lock;
pub mod projects;
pub(crate) mod repositories;
pub mod room;
pub mod skills;
pub(crate) mod store;
pub mod tokens;

pub use sluice_os::file;
pub use sluice_worker::machine::{config, identity, log, places, units};

/// The log of all tests of this process, whose threads have no log of their own.
#[cfg(test)]
pub(crate) fn log_of_tests() -> &'static std::path::Path {
    static LOG: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();
    LOG.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("sluice-home-tests-{}.log", std::process::id()));
        log::begin(&path);
        path
    })
}
