//! The note of a move of the default branch that is under way: written before the first file is touched, removed after
//! the last. Its keys stay as they are: another version of this program may find it.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::advance::{Checkout, remove};
use crate::git::{GitError, Repository, path_of, quote, unquote};

/// What is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    version: u32,
    /// The default branch.
    pub(super) branch: String,
    /// Where it was; none if it was not there.
    pub(super) old: Option<String>,
    /// The commit that the files are from: the old one, or the empty tree.
    pub(super) from: String,
    /// Where it goes.
    pub(super) new: String,
    /// The checkout that goes along, and what git keeps for it, as quoted paths.
    checkout: Option<(String, String)>,
}

/// A file that differs between the two commits: its mode and blob on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: Vec<u8>,
    pub(super) old: Option<(String, String)>,
    pub(super) new: Option<(String, String)>,
}

impl Note {
    /// The folder of what concerns merges into the repository.
    pub(super) fn folder(repository: &Repository) -> PathBuf {
        repository.common().join("sluice")
    }

    fn path(repository: &Repository) -> PathBuf {
        Note::folder(repository).join("merge.json")
    }

    pub(super) fn new(
        repository: &Repository,
        checkout: Option<&Checkout>,
        old: Option<&str>,
        new: &str,
    ) -> Result<Note, GitError> {
        let from = match old {
            Some(old) => old.to_owned(),
            None => repository.call().args(["hash-object", "-t", "tree", "/dev/null"]).text()?,
        };
        let quoted = |path: &Path| quote(path.as_os_str().as_encoded_bytes());
        Ok(Note {
            version: 1,
            branch: repository.default_branch().to_owned(),
            old: old.map(str::to_owned),
            from,
            new: new.to_owned(),
            checkout: checkout.map(|it| (quoted(&it.folder), quoted(&it.admin))),
        })
    }

    /// The checkout that goes along.
    pub(super) fn checkout(&self) -> Option<Checkout> {
        let (folder, admin) = self.checkout.as_ref()?;
        let path = |quoted: &str| Some(path_of(Path::new(""), &unquote(quoted)?));
        Some(Checkout { folder: path(folder)?, admin: path(admin)? })
    }

    /// The note that was left, and when it was written.
    pub(super) fn read(repository: &Repository) -> Result<Option<(Note, std::time::SystemTime)>, GitError> {
        let path = Note::path(repository);
        let failed = GitError::file("cannot read", &path);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(failed)?,
        };
        let failed = GitError::file("cannot read", &path);
        let written = fs::metadata(&path).and_then(|it| it.modified()).map_err(failed)?;
        let note =
            serde_json::from_slice(&bytes).map_err(|error| GitError::file("cannot read", &path)(error.into()))?;
        Ok(Some((note, written)))
    }

    /// Writes it, durably.
    pub(super) fn write(&self, repository: &Repository) -> Result<(), GitError> {
        let path = Note::path(repository);
        let new = path.with_extension("new");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(Note::folder(repository))?.sync_all()
        };
        write().map_err(GitError::file("cannot write", &path))
    }

    /// What it was about is done.
    pub(super) fn remove(repository: &Repository) -> Result<(), GitError> {
        remove(&Note::path(repository))
    }

    /// The files that differ between the two commits. Submodules are no files, and stay as they are.
    pub(super) fn differing(&self, repository: &Repository) -> Result<Vec<Entry>, GitError> {
        let call = repository.call().args(["diff-tree", "-r", "-z", "--raw", "--no-renames", &self.from, &self.new]);
        let bytes = call.bytes()?;
        let mut fields = bytes.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        let mut entries = Vec::new();
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let about = String::from_utf8_lossy(about).into_owned();
            let words: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
            let [old_mode, new_mode, old_id, new_id, _] = words[..] else { return Err(call.odd(about)) };
            let side = |mode: &str, id: &str| (mode != "000000").then(|| (mode.to_owned(), id.to_owned()));
            if old_mode != "160000" && new_mode != "160000" {
                entries.push(Entry { path: path.to_vec(), old: side(old_mode, old_id), new: side(new_mode, new_id) });
            }
        }
        Ok(entries)
    }
}
