//! Folders outside git in which steps work. No copy of such a folder is made for an arbiter, so it is compared with what it
//! was.

use std::path::{Path, PathBuf};

use sluice_os::listing::FolderListing;

use crate::undone::PerformError;

/// Makes a scratch folder, or finds it.
pub fn make(folder: &Path) -> Result<(), PerformError> {
    std::fs::create_dir_all(folder).map_err(PerformError::at("cannot make", folder))
}

/// A folder that an arbiter looks at, and may not change.
pub struct WatchedFolder {
    pub folder: PathBuf,
    home: PathBuf,
    before: FolderListing,
}

impl WatchedFolder {
    /// The folder as it is now, without the home if that is in it.
    pub fn of(folder: PathBuf, home: &Path) -> Result<WatchedFolder, PerformError> {
        let before = listed(&folder, home)?;
        Ok(WatchedFolder { folder, home: home.to_owned(), before })
    }

    pub fn must_be_as_before(&self) -> Result<(), PerformError> {
        let differs = self.before.differs(&listed(&self.folder, &self.home)?);
        match differs.first() {
            None => Ok(()),
            Some(first) => Err(PerformError::from(format!(
                "the arbiter changed the work, which it may not: {} ({} in all); outside git it cannot be put back",
                first.strip_prefix(&self.folder).unwrap_or(first).display(),
                differs.len()
            ))),
        }
    }
}

fn listed(folder: &Path, home: &Path) -> Result<FolderListing, PerformError> {
    // Looking is enough for git to write its index anew.
    let index = folder.join(".git/index");
    FolderListing::of(folder, &[home, &index]).map_err(PerformError::at("cannot look at", folder))
}
