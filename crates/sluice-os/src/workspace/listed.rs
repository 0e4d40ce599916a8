//! What the index of a worktree says beside its changes: files whose changes git was told not to see, and repositories
//! that lie inside and are known to git only as a commit's id.
//!
//! It only looks. Neither of them shows in `git status`, and a reset or a removal would take their work along.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::site::WorktreeSite;
use crate::git::{GitError, path_of};

/// git's mode of another repository's commit.
const LINK: &[u8] = b"160000";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexListing {
    /// Files that are marked as `assume-unchanged` or `skip-worktree`; not those that a sparse checkout leaves out.
    pub(crate) hidden: BTreeSet<Vec<u8>>,
    /// Folders that hold a repository, or files, where the index has a commit's id. Submodules are not among them:
    /// their repositories lie in what git keeps for the worktree.
    pub(crate) repositories: BTreeSet<Vec<u8>>,
}

impl IndexListing {
    pub(crate) fn of(site: &WorktreeSite) -> Result<IndexListing, GitError> {
        let call = site.call().looking().args(["ls-files", "-v", "--stage", "-z"]);
        let (mut listed, mut absent) = (IndexListing::default(), Vec::new());
        for record in call.bytes()?.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            let odd = || call.odd(String::from_utf8_lossy(record));
            let tab = record.iter().position(|byte| *byte == b'\t').ok_or_else(odd)?;
            let (words, path) = (&record[..tab], &record[tab + 1..]);
            let (tag, mode) = match words {
                [tag, b' ', rest @ ..] => (tag, rest.split(|byte| *byte == b' ').next().unwrap_or_default()),
                _ => return Err(odd()),
            };
            let full = path_of(&site.folder, path);
            if mode == LINK {
                if holds_work(site, &full) {
                    listed.repositories.insert(path.to_vec());
                }
            } else if tag.is_ascii_lowercase() || (*tag == b'S' && fs::symlink_metadata(&full).is_ok()) {
                listed.hidden.insert(path.to_vec());
            } else if *tag == b'S' {
                absent.push(path.to_vec());
            }
        }
        if !absent.is_empty() && !is_sparse(site)? {
            listed.hidden.extend(absent);
        }
        Ok(listed)
    }

    /// Lets git see changes of these files again, in the worktree's index or in another.
    pub(crate) fn show(&self, site: &WorktreeSite, index: Option<&Path>) -> Result<(), GitError> {
        if self.hidden.is_empty() {
            return Ok(());
        }
        let paths: Vec<u8> = self.hidden.iter().flat_map(|path| path.iter().copied().chain([0])).collect();
        // git takes one of them at a time.
        for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
            let mut call = site.call();
            if let Some(index) = index {
                call = call.env("GIT_INDEX_FILE", index);
            }
            call.args(["update-index", flag, "-z", "--stdin"]).input(paths.clone()).run()?;
        }
        Ok(())
    }
}

fn is_sparse(site: &WorktreeSite) -> Result<bool, GitError> {
    let said = site.call().args(["config", "--type=bool", "--get", "core.sparseCheckout"]).maybe()?;
    Ok(said.as_deref() == Some("true"))
}

/// Whether a folder for another repository holds something that is nowhere else.
fn holds_work(site: &WorktreeSite, folder: &Path) -> bool {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => return false,
        Ok(false) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return false,
        // What cannot be looked at may hold anything.
        Err(_) => return true,
    }
    let link = fs::read(folder.join(".git")).ok().and_then(|link| super::site::link_target(&link));
    let Some(repository) = link.and_then(|named| fs::canonicalize(folder.join(named)).ok()) else { return true };
    let of_worktree = fs::canonicalize(site.admin.join("modules"));
    let of_all = fs::canonicalize(site.repository.common().join("modules"));
    ![of_worktree, of_all].into_iter().flatten().any(|modules| repository.starts_with(modules))
}
