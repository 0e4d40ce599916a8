//! The note of a move of a branch that is under way: written before the first file is touched, removed after the last.
//! Its keys stay as they are: another version of this program may find it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::advance::{BranchTurn, MergeCheckout};
use super::recover::MergeSide;
use crate::file::{Durability, write_atomically};
use crate::git::{GitError, Repository, path_of, quote, remove_file, unquote};
use crate::workspace::break_stale_locks;

pub(super) const NOTE: &str = "merge.json";
/// What an earlier version left in a worktree: the commit that it stood at and the one that it was to stand at.
pub(super) const OLDER_NOTE: &str = "sluice-bringing";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MergeNote {
    version: u32,
    /// The branch; `HEAD` where none is checked out.
    pub(super) branch: String,
    /// Where it was; none if it was not there.
    pub(super) old: Option<String>,
    /// The commit that the files are from: the old one, or the empty tree.
    pub(super) from: String,
    pub(super) new: String,
    /// The checkout that goes along, and what git keeps for it, as quoted paths.
    checkout: Option<(String, String)>,
}

/// A file that differs between the two commits: its mode and blob on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MergeNoteEntry {
    pub(super) path: Vec<u8>,
    pub(super) old: Option<(String, String)>,
    pub(super) new: Option<(String, String)>,
}

impl MergeNoteEntry {
    pub(super) fn wanted(&self, side: MergeSide) -> Option<&(String, String)> {
        match side {
            MergeSide::Old => self.old.as_ref(),
            MergeSide::New => self.new.as_ref(),
        }
    }

    pub(super) fn other(&self, side: MergeSide) -> Option<&(String, String)> {
        self.wanted(if side == MergeSide::Old { MergeSide::New } else { MergeSide::Old })
    }
}

impl MergeNote {
    fn path(turn: &BranchTurn<'_>) -> PathBuf {
        turn.notes.join(NOTE)
    }

    pub(super) fn new(
        repository: &Repository,
        (branch, checkout): (&str, Option<&MergeCheckout>),
        old: Option<&str>,
        new: &str,
    ) -> Result<MergeNote, GitError> {
        let from = match old {
            Some(old) => old.to_owned(),
            None => repository.call().args(["hash-object", "-t", "tree", "/dev/null"]).text()?,
        };
        let quoted = |path: &Path| quote(path.as_os_str().as_encoded_bytes());
        Ok(MergeNote {
            version: 1,
            branch: branch.to_owned(),
            old: old.map(str::to_owned),
            from,
            new: new.to_owned(),
            checkout: checkout.map(|it| (quoted(&it.folder), quoted(&it.admin))),
        })
    }

    pub(super) fn reference(&self) -> String {
        if self.branch == "HEAD" { self.branch.clone() } else { format!("refs/heads/{}", self.branch) }
    }

    pub(super) fn tip(&self, repository: &Repository, at: Option<&MergeCheckout>) -> Result<Option<String>, GitError> {
        let name = format!("{}^{{commit}}", self.reference());
        let call = at.map_or_else(|| repository.call(), |at| at.call(repository));
        call.args(["rev-parse", "--verify", "--quiet", &name]).maybe()
    }

    pub(super) fn checkout(&self) -> Option<MergeCheckout> {
        let (folder, admin) = self.checkout.as_ref()?;
        let path = |quoted: &str| Some(path_of(Path::new(""), &unquote(quoted)?));
        Some(MergeCheckout { folder: path(folder)?, admin: path(admin)? })
    }

    /// The note that was left, and when it was written.
    pub(super) fn read(turn: &BranchTurn<'_>) -> Result<Option<(MergeNote, std::time::SystemTime)>, GitError> {
        let path = MergeNote::path(turn);
        let read = || -> std::io::Result<_> {
            Ok((serde_json::from_slice(&fs::read(&path)?)?, fs::metadata(&path)?.modified()?))
        };
        match read() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(GitError::file("cannot read", &path)),
        }
    }

    /// Takes over the note of an earlier version, and what a git that was killed with it has locked.
    pub(super) fn inherit(turn: &BranchTurn<'_>, checkout: &MergeCheckout) -> Result<(), GitError> {
        let path = checkout.admin.join(OLDER_NOTE);
        let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
        let branch = checkout.branch(turn.repository)?;
        if let Some((old, new)) = text.trim().split_once(' ')
            && MergeNote::read(turn)?.is_none()
        {
            break_stale_locks(&checkout.admin);
            MergeNote::new(turn.repository, (&branch, Some(checkout)), Some(old), new)?.write(turn)?;
        }
        remove_file(&path)
    }

    pub(super) fn write(&self, turn: &BranchTurn<'_>) -> Result<(), GitError> {
        let path = MergeNote::path(turn);
        let write = || write_atomically(&path, &serde_json::to_vec(self)?, Durability::Synced);
        write().map_err(GitError::file("cannot write", &path))
    }

    pub(super) fn remove(turn: &BranchTurn<'_>) -> Result<(), GitError> {
        remove_file(&MergeNote::path(turn))
    }

    /// The files that differ between the two commits. Submodules are no files, and stay as they are.
    pub(super) fn differing(&self, repository: &Repository) -> Result<Vec<MergeNoteEntry>, GitError> {
        // The command would read the index, which may be what the power cut has spoiled.
        let call = repository.call().env("GIT_INDEX_FILE", repository.common().join("sluice/no-index"));
        let call = call.args(["diff-tree", "-r", "-z", "--raw", "--no-renames", &self.from, &self.new]);
        let bytes = call.bytes()?;
        let mut fields = bytes.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        let mut entries = Vec::new();
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let about = String::from_utf8_lossy(about).into_owned();
            let words: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
            let [old_mode, new_mode, old_id, new_id, _] = words[..] else { return Err(call.odd(about)) };
            let side = |mode: &str, id: &str| (mode != "000000").then(|| (mode.to_owned(), id.to_owned()));
            if old_mode != "160000" && new_mode != "160000" {
                entries.push(MergeNoteEntry {
                    path: path.to_vec(),
                    old: side(old_mode, old_id),
                    new: side(new_mode, new_id),
                });
            }
        }
        Ok(entries)
    }
}
