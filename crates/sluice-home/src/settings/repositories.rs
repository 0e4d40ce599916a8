//! The repositories in which runs were started. Their branches and what is kept of their work are there, long after the store
//! has forgotten the runs, and most of these repositories are no projects.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sluice_os::file::{Durability, write_atomically};

/// So many are remembered; of more, only those that are there.
const MOST_REMEMBERED: usize = 1000;

#[derive(Debug)]
pub(crate) struct Repositories {
    file: PathBuf,
    /// The roots; nothing: no engine has written them down here yet.
    roots: Mutex<Option<BTreeSet<String>>>,
}

impl Repositories {
    /// Those in this file. One that cannot be read is written anew from the runs that the store knows.
    pub(crate) fn read(file: PathBuf) -> Repositories {
        let read = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Repositories { file, roots: Mutex::new(read) }
    }

    fn roots(&self) -> MutexGuard<'_, Option<BTreeSet<String>>> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn are_known(&self) -> bool {
        self.roots().is_some()
    }

    pub(crate) fn list(&self) -> Vec<PathBuf> {
        self.roots().iter().flatten().map(PathBuf::from).collect()
    }

    /// Adds repositories. Those that are known cost a look into memory.
    pub(crate) fn remember<'a>(&self, roots: impl IntoIterator<Item = &'a str>) {
        let mut known = self.roots();
        let before = known.as_ref().map(BTreeSet::len);
        let all = known.get_or_insert_default();
        all.extend(roots.into_iter().map(str::to_owned).collect::<Vec<_>>());
        if before == Some(all.len()) {
            return;
        }
        if all.len() > MOST_REMEMBERED {
            all.retain(|root| PathBuf::from(root).exists());
        }
        let written = serde_json::to_vec(&*all)
            .map_err(std::io::Error::from)
            .and_then(|bytes| write_atomically(&self.file, &bytes, Durability::Synced));
        if let Err(error) = written {
            tracing::warn!("{} cannot be written: {error}", self.file.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_known_to_the_next_engine() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("repositories.json");
        let first = Repositories::read(file.clone());
        assert!(!first.are_known());
        first.remember([]);
        assert!(first.are_known() && first.list().is_empty());
        first.remember(["/b", "/a"]);
        first.remember(["/a"]);
        let second = Repositories::read(file.clone());
        assert_eq!(second.list(), [PathBuf::from("/a"), PathBuf::from("/b")]);
        std::fs::write(&file, "broken").expect("written");
        assert!(!Repositories::read(file).are_known());
    }
}
