//! Where programs are that can be started.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The program of this name, if it can be started from this folder with this PATH.
pub(crate) fn find(program: &str, path: &OsStr, folder: &Path) -> Option<PathBuf> {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0);
    // One with a `/` in it is taken as it is, and `join` does so for one that begins with it.
    let folders = if program.contains('/') { vec![folder.to_owned()] } else { std::env::split_paths(path).collect() };
    folders.into_iter().map(|folder| folder.join(program)).find(is_program)
}
