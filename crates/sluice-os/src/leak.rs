//! Whether something outside its workspace was touched: the main checkout before and after, compared.
//!
//! It only looks, and it never fails anything: what cannot be seen is not compared.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::git::{CheckoutChanges, Repository, first_of, path_of, shown};

const NAMED_FILES: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckoutSnapshot {
    head: Option<Option<String>>,
    branch: Option<Option<String>>,
    index: Option<[u8; 32]>,
    stash: Option<Vec<String>>,
    files: Option<BTreeMap<Vec<u8>, ChangedFileMark>>,
}

/// What can be seen of a changed file without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChangedFileMark {
    staged: bool,
    unstaged: bool,
    size: u64,
    written: Option<SystemTime>,
}

impl CheckoutSnapshot {
    pub fn take(repository: &Repository) -> CheckoutSnapshot {
        let call = || repository.call().looking();
        let head = call().args(["rev-parse", "--verify", "--quiet", "HEAD"]).maybe().ok();
        let branch = call().args(["symbolic-ref", "--quiet", "HEAD"]).maybe().ok();
        let index = call().args(["ls-files", "--stage", "-z"]).bytes().ok();
        let stash = call().args(["stash", "list", "--format=%H"]).text().ok();
        let files = CheckoutChanges::of(call()).ok().map(|changes| marks(repository, &changes));
        CheckoutSnapshot {
            head,
            branch,
            index: index.map(|bytes| Sha256::digest(&bytes).into()),
            stash: stash.map(|text| text.lines().map(str::to_owned).collect()),
            files,
        }
    }

    /// Takes what we have done ourselves between these two looks for what was there from the start. What had changed
    /// before is still a difference.
    pub fn absorb(&mut self, before: &CheckoutSnapshot, after: &CheckoutSnapshot) {
        fn follow<T: Clone + PartialEq>(own: &mut T, before: &T, after: &T) {
            if own == before {
                own.clone_from(after);
            }
        }
        follow(&mut self.head, &before.head, &after.head);
        follow(&mut self.branch, &before.branch, &after.branch);
        follow(&mut self.index, &before.index, &after.index);
        follow(&mut self.stash, &before.stash, &after.stash);
        if let (Some(own), Some(before), Some(after)) = (&mut self.files, &before.files, &after.files) {
            let paths: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
            for path in paths.into_iter().filter(|path| before.get(*path) != after.get(*path)) {
                if own.get(path) == before.get(path) {
                    match after.get(path) {
                        Some(mark) => drop(own.insert(path.clone(), mark.clone())),
                        None => drop(own.remove(path)),
                    }
                }
            }
        }
    }

    /// What has changed since, a sentence each; nothing if nothing has.
    pub fn difference(&self, after: &CheckoutSnapshot) -> Vec<String> {
        let mut found = Vec::new();
        if let (Some(before), Some(after)) = (&self.branch, &after.branch)
            && before != after
        {
            let name = |it: &Option<String>| match it {
                Some(reference) => format!("`{}`", reference.trim_start_matches("refs/heads/")),
                None => "no branch".to_owned(),
            };
            found.push(format!("the main checkout went from {} to {}", name(before), name(after)));
        }
        if let (Some(before), Some(after)) = (&self.head, &after.head)
            && before != after
        {
            let short = |it: &Option<String>| it.as_ref().map_or("nothing", |id| id.get(..12).unwrap_or(id)).to_owned();
            found.push(format!("HEAD of the main checkout went from {} to {}", short(before), short(after)));
        }
        // A commit changes the index with it, which need not be said twice.
        else if matches!((&self.index, &after.index), (Some(before), Some(after)) if before != after) {
            found.push("the index of the main checkout changed".to_owned());
        }
        if let (Some(before), Some(after)) = (&self.stash, &after.stash)
            && before != after
        {
            found.push(format!("the list of stashes went from {} to {} entries", before.len(), after.len()));
        }
        if let (Some(before), Some(after)) = (&self.files, &after.files) {
            found.extend(files_differ(before, after));
        }
        found
    }
}

fn marks(repository: &Repository, changes: &CheckoutChanges) -> BTreeMap<Vec<u8>, ChangedFileMark> {
    let tracked = changes.tracked.iter().map(|(path, change)| (path, change.staged, change.unstaged));
    let unmerged = changes.unmerged.iter().map(|it| (&it.path, true, true));
    let unknown = changes.untracked.iter().chain(&changes.nested).map(|path| (path, false, true));
    let mark = |(path, staged, unstaged): (&Vec<u8>, bool, bool)| {
        let seen = std::fs::symlink_metadata(path_of(repository.folder(), path)).ok();
        let size = seen.as_ref().map_or(0, std::fs::Metadata::len);
        (path.clone(), ChangedFileMark { staged, unstaged, size, written: seen.and_then(|it| it.modified().ok()) })
    };
    tracked.chain(unmerged).chain(unknown).map(mark).collect()
}

fn files_differ(
    before: &BTreeMap<Vec<u8>, ChangedFileMark>,
    after: &BTreeMap<Vec<u8>, ChangedFileMark>,
) -> Option<String> {
    let paths: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
    let paths = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
    let named: Vec<String> = paths.map(|path| shown(path)).collect();
    (!named.is_empty()).then(|| format!("files of the main checkout changed: {}", first_of(named, NAMED_FILES)))
}
