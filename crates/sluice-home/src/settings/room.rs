//! The room on the file systems of a home, and how much of it is little: `low_disk` and `least_free` in `config.toml`.

use std::path::{Path, PathBuf};

use sluice_api::workspace::DiskRoom;
use sluice_os::disk;

use super::config::WorkspacesConfig;
use super::places::HomePaths;
use super::units::written_size;

/// The way out of a disk that is low.
pub const WAY_OUT: &str = "`sluice workspace list` shows what takes it, `sluice workspace gc` removes what may go";

/// The file systems of a home: that of the home, and those of its worktrees where they are others.
pub fn rooms(places: &HomePaths, config: &WorkspacesConfig) -> Vec<DiskRoom> {
    let mut seen = Vec::new();
    let folders = [places.home().to_owned(), places.workspaces(), places.runs()];
    folders
        .into_iter()
        .filter_map(|folder| {
            let there = folder.ancestors().find(|above| above.is_dir()).map(Path::to_owned)?;
            let system = disk::file_system(&there)?;
            let is_new = !seen.contains(&system);
            seen.push(system);
            Some(there).filter(|_| is_new)
        })
        .filter_map(|folder| room(&folder, config).ok())
        .collect()
}

/// The room for a folder, which need not be there yet.
pub fn room(folder: &Path, config: &WorkspacesConfig) -> std::io::Result<DiskRoom> {
    let free_bytes = disk::free_bytes(folder)?;
    Ok(DiskRoom {
        path: folder.display().to_string(),
        free_bytes,
        is_low: free_bytes < config.low_disk.max(config.least_free),
        is_short: free_bytes < config.least_free,
    })
}

/// What to say of a file system that is low.
pub fn warning(room: &DiskRoom, config: &WorkspacesConfig) -> String {
    let (free, least) = (written_size(room.free_bytes), written_size(config.least_free));
    let path = PathBuf::from(&room.path);
    match room.is_short {
        true => format!(
            "{free} is free at {}, less than `least_free` ({least}): no new worktree is made until there is more",
            path.display()
        ),
        false => format!(
            "{free} is free at {}, less than `low_disk` ({}); below {least} no new worktree is made",
            path.display(),
            written_size(config.low_disk)
        ),
    }
}
