//! Room on disk: how much a file system has free, and how much a folder takes.
//!
//! It only looks. How much is little is for the caller to say.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a block, as `stat` counts them.
const BLOCK: u64 = 512;

/// Bytes that this user can still write on the file system of a folder. Of a folder that is not there yet the nearest one above
/// counts.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let there = folder.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("/"));
    let disk = rustix::fs::statvfs(there)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The file system that a folder is on, by the number that the kernel gives it.
pub fn file_system(folder: &Path) -> Option<u64> {
    folder.metadata().ok().map(|about| about.dev())
}

/// What a folder takes on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FolderSize {
    pub bytes: u64,
    /// Whether everything was counted; otherwise the folder takes at least so much.
    pub is_whole: bool,
}

/// How many files may still be looked at to tell sizes. A folder can have any number of them, and each costs a look at the disk.
#[derive(Debug)]
pub struct SizeBudget {
    files: usize,
}

impl SizeBudget {
    pub fn new(files: usize) -> SizeBudget {
        SizeBudget { files }
    }

    /// What a folder or file takes, without what links in it lead to. A file with several names in it counts once.
    pub fn size(&mut self, path: &Path) -> FolderSize {
        let mut size = FolderSize { bytes: 0, is_whole: true };
        let mut linked = BTreeSet::new();
        let mut left: Vec<PathBuf> = vec![path.to_owned()];
        while let Some(path) = left.pop() {
            let Some(files) = self.files.checked_sub(1) else {
                return FolderSize { is_whole: false, ..size };
            };
            self.files = files;
            // A file that vanished meanwhile takes nothing.
            let Ok(about) = path.symlink_metadata() else { continue };
            if about.nlink() < 2 || about.is_dir() || linked.insert((about.dev(), about.ino())) {
                size.bytes = size.bytes.saturating_add(about.blocks().saturating_mul(BLOCK));
            }
            if about.is_dir() {
                match std::fs::read_dir(&path) {
                    Ok(entries) => left.extend(entries.flatten().map(|entry| entry.path())),
                    Err(_) => size.is_whole = false,
                }
            }
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_counted_whole_or_said_to_be_larger() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("deep")).unwrap();
        std::fs::write(folder.path().join("deep/one"), vec![1; 100_000]).unwrap();
        let before = SizeBudget::new(10).size(folder.path());
        assert!(before.is_whole && before.bytes >= 100_000, "{before:?}");
        std::fs::hard_link(folder.path().join("deep/one"), folder.path().join("two")).unwrap();
        let after = SizeBudget::new(10).size(folder.path());
        assert!(after.bytes < before.bytes + 100_000, "{before:?}, {after:?}");
        let mut little = SizeBudget::new(2);
        assert!(!little.size(folder.path()).is_whole);
        assert!(!little.size(folder.path()).is_whole, "nothing is left for the next");
        assert!(free_bytes(&folder.path().join("not/there")).unwrap() > 0);
    }
}
