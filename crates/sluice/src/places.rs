//! Where this command is called: the home and the repository around the current folder.

use std::env;
use std::path::PathBuf;

use sluice_dialect::catalogue::CataloguePlaces;

/// The home of this command: `$SLUICE_HOME`, else `~/.sluice`.
pub(crate) fn home() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("SLUICE_HOME").or_else(|| set("HOME").map(|home| home.join(".sluice")))
}

/// The root of the repository around the current folder; the folder itself when there is none.
fn repository() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    let root = here.ancestors().find(|folder| folder.join(".git").exists()).map(PathBuf::from);
    Some(root.unwrap_or(here))
}

pub(crate) fn definitions() -> CataloguePlaces {
    CataloguePlaces { repository: repository(), home: home() }
}
