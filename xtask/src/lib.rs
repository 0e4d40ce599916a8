//! What the chores and their tests share.

pub mod api_clients;
pub mod api_fuzz;
pub mod generated;
pub mod page_bench;
mod page_scripts;
pub mod page_test;
pub mod pictures;
pub mod sarif;
mod served_home;
pub mod update;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// How a chore has ended, with what is in its way on stderr.
pub fn said(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
