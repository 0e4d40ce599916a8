//! What the chores and their tests share.

pub mod api_clients;
pub mod api_fuzz;
pub mod generated;
pub mod sarif;
mod served_home;
pub mod update;

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}
