//! What was done to make a worktree ready for work, noted in the folder that git keeps for it: a worktree that is made anew has
//! no note, and one that is lent again keeps its own.
//!
//! It only notes. What is to be done, and when again, is decided elsewhere.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::site::{admin_of, gone};
use crate::file::{Durability, write_atomically};

/// The file with the note.
const NOTE: &str = "sluice-setup";
/// Bytes of a file that are read at once.
const PIECE: usize = 64 << 10;

/// How far a worktree is ready. Digests say with what it was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupNote {
    /// What was brought from the main checkout; empty: nothing yet.
    #[serde(default)]
    pub furnished: String,
    /// The command that ended well; empty: none has.
    #[serde(default)]
    pub setup: String,
    /// Whether it is to be torn down, because the worktree is about to be removed.
    #[serde(default)]
    pub leaves: bool,
}

/// A worktree with its note.
#[derive(Clone, Debug)]
pub struct SetupSite {
    folder: PathBuf,
    admin: PathBuf,
}

impl SetupSite {
    /// The worktree of this folder; nothing where it is none.
    pub fn of(folder: &Path) -> Option<SetupSite> {
        admin_of(folder).map(|admin| SetupSite { folder: folder.to_owned(), admin })
    }

    /// The main checkout, as far as it can be told by where git keeps the worktree.
    pub fn main(&self) -> PathBuf {
        let common = self.admin.parent().and_then(Path::parent).unwrap_or(&self.admin);
        let around = common.parent().filter(|_| common.file_name().is_some_and(|name| name == ".git"));
        around.unwrap_or(common).to_owned()
    }

    /// A name for the worktree that no other has.
    pub fn key(&self) -> String {
        let sum = digest([self.folder.as_os_str().as_encoded_bytes()]);
        format!("worktree-{}", &sum[..16])
    }

    /// What was done here. A note that cannot be understood is none: then it is done again.
    pub fn note(&self) -> std::io::Result<Option<SetupNote>> {
        match fs::read(self.admin.join(NOTE)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn write(&self, note: &SetupNote) -> std::io::Result<()> {
        write_atomically(&self.admin.join(NOTE), &serde_json::to_vec(note)?, Durability::Synced)
    }

    pub fn forget(&self) -> std::io::Result<()> {
        gone(fs::remove_file(self.admin.join(NOTE)))
    }

    /// A digest of some texts, and of what the worktree is lent for.
    pub fn digest_of_lending(&self, texts: &[&[u8]]) -> String {
        let lent = fs::read(self.admin.join(super::site::BINDING)).unwrap_or_default();
        digest(texts.iter().copied().chain([lent.as_slice()]))
    }

    /// A digest of a command and of what these files of the worktree hold. Only a file counts, and where a link leads.
    pub fn digest_of_files(&self, command: &str, files: &[String]) -> std::io::Result<String> {
        let mut parts = vec![command.as_bytes().to_vec()];
        for path in files {
            parts.push(path.as_bytes().to_vec());
            parts.push(content_of(&self.folder.join(path))?);
        }
        Ok(digest(parts.iter().map(Vec::as_slice)))
    }
}

/// What a file holds, as a digest, or where a link leads; another word for what is neither.
pub(super) fn content_of(full: &Path) -> std::io::Result<Vec<u8>> {
    let about = match fs::symlink_metadata(full) {
        Ok(about) => about,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(b"none".to_vec());
        }
        Err(error) => return Err(error),
    };
    if about.is_symlink() {
        return Ok(fs::read_link(full)?.into_os_string().into_encoded_bytes());
    }
    if !about.is_file() {
        return Ok(b"no file".to_vec());
    }
    let (mut sum, mut file, mut piece) = (Sha256::new(), fs::File::open(full)?, vec![0; PIECE]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(sum.finalize().to_vec()),
            read => sum.update(&piece[..read]),
        }
    }
}

/// The lengths go in too: no two lists have the same bytes.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut sum = Sha256::new();
    for part in parts {
        sum.update(part.len().to_le_bytes());
        sum.update(part);
    }
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_what_was_done_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let admin = folder.path().join("admin");
        fs::create_dir(&admin).unwrap();
        assert!(SetupSite::of(folder.path()).is_none(), "it is no worktree");
        fs::write(folder.path().join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
        let site = SetupSite::of(folder.path()).unwrap();
        assert_eq!(site.note().unwrap(), None);
        let note = SetupNote { setup: "a".into(), ..SetupNote::default() };
        site.write(&note).unwrap();
        assert_eq!(site.note().unwrap(), Some(note));
        fs::write(admin.join(NOTE), "{").unwrap();
        assert_eq!(site.note().unwrap(), None);
        site.forget().unwrap();
        site.forget().unwrap();
    }

    #[test]
    fn a_digest_changes_with_the_command_and_with_each_file() {
        let folder = tempfile::tempdir().unwrap();
        let site = SetupSite { folder: folder.path().to_owned(), admin: folder.path().to_owned() };
        let files = ["lock".to_owned(), "other".to_owned()];
        let mut seen = std::collections::BTreeSet::new();
        let mut new = |command: &str| seen.insert(site.digest_of_files(command, &files).unwrap());
        assert!(new("npm ci"));
        assert!(!new("npm ci"));
        assert!(new("npm i"));
        fs::write(folder.path().join("lock"), "1").unwrap();
        assert!(new("npm ci"));
        fs::rename(folder.path().join("lock"), folder.path().join("other")).unwrap();
        assert!(new("npm ci"));
        fs::create_dir(folder.path().join("lock")).unwrap();
        assert!(new("npm ci"));
    }
}
