//! What a folder outside git looked like: the names, sizes and times of everything in it, to see afterwards whether
//! somebody who may not touch it did.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files that are looked at; of a larger folder only so many.
const MOST_FILES: usize = 100_000;

/// What a file looked like: its kind and permissions, its size, and when it was last changed.
type FileFingerprint = (u32, u64, i64, i64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderListing(BTreeMap<PathBuf, FileFingerprint>);

impl FolderListing {
    /// A folder as it is now, without `except` and what is below. Links are looked at and not followed.
    pub fn of(folder: &Path, except: &[&Path]) -> io::Result<FolderListing> {
        let mut found = BTreeMap::new();
        let mut open = vec![folder.to_owned()];
        while let Some(next) = open.pop() {
            for entry in std::fs::read_dir(&next)? {
                let path = entry?.path();
                if except.contains(&path.as_path()) {
                    continue;
                }
                let about = std::fs::symlink_metadata(&path)?;
                if about.is_dir() {
                    open.push(path.clone());
                }
                // That something was put beside it shows by itself: the time of a folder tells nothing more.
                let (size, seconds, nanoseconds) = match about.is_dir() {
                    true => (0, 0, 0),
                    false => (about.size(), about.ctime(), about.ctime_nsec()),
                };
                found.insert(path, (about.mode(), size, seconds, nanoseconds));
                if found.len() >= MOST_FILES {
                    return Ok(FolderListing(found));
                }
            }
        }
        Ok(FolderListing(found))
    }

    pub fn differs(&self, now: &FolderListing) -> Vec<PathBuf> {
        let names = self.0.keys().chain(now.0.keys().filter(|path| !self.0.contains_key(*path)));
        names.filter(|path| self.0.get(*path) != now.0.get(*path)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_touched_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["same", "changed", "gone"] {
            std::fs::write(at(name), name).unwrap();
        }
        std::fs::create_dir(at("inner")).unwrap();
        std::fs::write(at("inner/same"), "x").unwrap();
        let before = FolderListing::of(folder.path(), &[&at("home")]).unwrap();
        assert_eq!(before.differs(&FolderListing::of(folder.path(), &[&at("home")]).unwrap()), Vec::<PathBuf>::new());
        std::fs::write(at("changed"), "CHANGED").unwrap();
        std::fs::remove_file(at("gone")).unwrap();
        std::fs::write(at("inner/new"), "x").unwrap();
        std::fs::create_dir(at("home")).unwrap();
        std::fs::write(at("home/ours"), "x").unwrap();
        let mut differ = before.differs(&FolderListing::of(folder.path(), &[&at("home")]).unwrap());
        differ.sort();
        assert_eq!(differ, [at("changed"), at("gone"), at("inner/new")]);
    }
}
