//! Ports for worktrees: each gets a range of its own, so that servers of two worktrees do not want the same port.
//!
//! A range is a link in a folder of the home, named by its number, that leads to the worktree. It is the worktree's until its
//! folder is gone. Nothing here opens a port.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The first port of the first range.
const FIRST_PORT: u16 = 20_000;
/// How many ports a worktree has.
const PORTS: u16 = 20;
/// So many ranges there are below the last port.
const RANGES: u16 = (u16::MAX - FIRST_PORT) / PORTS;
/// So many ranges are given before it is looked which of them are free again.
const LOOK_AT: usize = 64;

/// The ranges of a home. An engine and workers may share it: of several processes that want a range, one makes its link.
#[derive(Debug)]
pub struct PortRanges {
    folder: PathBuf,
    given: Mutex<GivenRanges>,
}

#[derive(Debug, Default)]
struct GivenRanges {
    by_worktree: BTreeMap<PathBuf, u16>,
    /// With so many, it is looked which are free again; none: the folder has not been read.
    look_at: Option<usize>,
}

impl PortRanges {
    /// The ranges that are noted in this folder, which need not be there.
    pub fn new(folder: PathBuf) -> PortRanges {
        PortRanges { folder, given: Mutex::default() }
    }

    /// The first port of a worktree's range, the same for as long as the worktree is there. Nothing for a folder that is no
    /// worktree, or where more worktrees live than there are ranges.
    pub fn base(&self, worktree: &Path) -> io::Result<Option<u16>> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let is_its = |range: &u16| std::fs::read_link(self.link(*range)).is_ok_and(|it| it == worktree);
        if let Some(range) = given.by_worktree.get(worktree).copied().filter(is_its) {
            return Ok(Some(first_port(range)));
        }
        if !worktree.join(".git").is_file() {
            return Ok(None);
        }
        if given.look_at.is_none_or(|most| given.by_worktree.len() >= most) {
            self.look(&mut given)?;
        }
        loop {
            if let Some(range) = given.by_worktree.get(worktree).copied().filter(is_its) {
                return Ok(Some(first_port(range)));
            }
            let taken: BTreeSet<u16> = given.by_worktree.values().copied().collect();
            let Some(range) = (0..RANGES).find(|range| !taken.contains(range)) else { return Ok(None) };
            match symlink(worktree, self.link(range)) {
                // Another process has it.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => self.look(&mut given)?,
                made => {
                    made?;
                    given.by_worktree.insert(worktree.to_owned(), range);
                }
            }
        }
    }

    fn link(&self, range: u16) -> PathBuf {
        self.folder.join(range.to_string())
    }

    /// Reads which ranges are given, and frees those of worktrees that are gone.
    fn look(&self, given: &mut GivenRanges) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        given.by_worktree.clear();
        for entry in std::fs::read_dir(&self.folder)? {
            let link = entry?.path();
            let range = link.file_name().and_then(|name| name.to_str()?.parse::<u16>().ok());
            let (Some(range), Ok(worktree)) = (range, std::fs::read_link(&link)) else { continue };
            match std::fs::symlink_metadata(&worktree) {
                Err(error) if error.kind() == ErrorKind::NotFound => std::fs::remove_file(&link)?,
                // One that cannot be looked at may be there.
                Ok(_) | Err(_) => drop(given.by_worktree.insert(worktree, range)),
            }
        }
        given.look_at = Some((2 * given.by_worktree.len()).max(LOOK_AT).min(usize::from(RANGES)));
        Ok(())
    }
}

fn first_port(range: u16) -> u16 {
    FIRST_PORT + PORTS * range
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worktree(folder: &Path, name: &str) -> PathBuf {
        let worktree = folder.join(name);
        std::fs::create_dir(&worktree).unwrap();
        std::fs::write(worktree.join(".git"), "gitdir: nowhere\n").unwrap();
        worktree
    }

    #[test]
    fn each_worktree_has_a_range_while_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let ranges = || PortRanges::new(folder.path().join("ports"));
        let (one, two) = (worktree(folder.path(), "one"), worktree(folder.path(), "two"));
        let first = ranges();
        assert_eq!(first.base(folder.path()).unwrap(), None, "it is no worktree");
        assert_eq!(first.base(&one).unwrap(), Some(20_000));
        assert_eq!(first.base(&two).unwrap(), Some(20_020));
        assert_eq!(first.base(&one).unwrap(), Some(20_000));
        // The next process knows them, and lends again what is free.
        assert_eq!(ranges().base(&two).unwrap(), Some(20_020));
        std::fs::remove_dir_all(&one).unwrap();
        let next = ranges();
        assert_eq!(next.base(&worktree(folder.path(), "three")).unwrap(), Some(20_000));
        assert_eq!(next.base(&two).unwrap(), Some(20_020));
    }

    #[test]
    fn ranges_of_removed_worktrees_are_found_again_and_never_run_out_before() {
        let folder = tempfile::tempdir().unwrap();
        let ranges = PortRanges::new(folder.path().join("ports"));
        for number in 0..3 * LOOK_AT {
            let it = worktree(folder.path(), &number.to_string());
            let base = ranges.base(&it).unwrap().unwrap();
            assert!(usize::from(base) <= usize::from(FIRST_PORT) + usize::from(PORTS) * LOOK_AT, "{base}");
            std::fs::remove_dir_all(&it).unwrap();
        }
        let all: Vec<PathBuf> = (0..=RANGES).map(|number| worktree(folder.path(), &format!("w{number}"))).collect();
        let bases: Vec<Option<u16>> = all.iter().map(|it| ranges.base(it).unwrap()).collect();
        let mut different: Vec<u16> = bases.iter().copied().flatten().collect();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), usize::from(RANGES));
        assert_eq!(bases.last(), Some(&None), "there is none left");
    }
}
