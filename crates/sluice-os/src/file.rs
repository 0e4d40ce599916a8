//! Files that are written whole or not at all: a draft beside the file, then its name.
//!
//! A reader sees the old file or the new one. A draft that is not put in place is removed, and what a process that was
//! killed has left is removed by the next process that writes into the folder. A link in the place of a file is replaced,
//! not followed.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tempfile::TempPath;

/// What stands between the name of a file and the process that writes it in the name of its draft.
pub(crate) const DRAFT: &str = ".sluice-";
/// So many folders are remembered as swept; then they are swept again.
const MOST_SWEPT: usize = 1000;
const USUAL_MODE: u32 = 0o644;
/// The mode of a file that only its owner reads.
const PRIVATE_MODE: u32 = 0o600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The disk has it: it is there after a power cut.
    Synced,
    /// The system has it: it may be the old file after a power cut. For what is written again when it is missing.
    Cached,
}

/// Writes a file. One that is replaced keeps its mode.
pub fn write_atomically(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let draft = FileDraft::of(path, durability)?;
    draft.write(bytes)?;
    draft.place()
}

/// A file before it has its name. It is gone when this is dropped.
pub struct FileDraft {
    file: File,
    draft: TempPath,
    path: PathBuf,
    folder: PathBuf,
    durability: Durability,
}

impl FileDraft {
    /// A draft of this file, with the mode of the one that is there.
    pub fn of(path: &Path, durability: Durability) -> io::Result<FileDraft> {
        let there = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file);
        let draft = FileDraft::with_mode(path, durability, USUAL_MODE)?;
        if let Some(there) = there {
            draft.file().set_permissions(Permissions::from_mode(there.mode() & 0o777))?;
        }
        Ok(draft)
    }

    /// A draft of this file that only its owner can read, whatever is there.
    pub fn private(path: &Path, durability: Durability) -> io::Result<FileDraft> {
        FileDraft::with_mode(path, durability, PRIVATE_MODE)
    }

    fn with_mode(path: &Path, durability: Durability, mode: u32) -> io::Result<FileDraft> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let begins = format!(".{name}{DRAFT}");
        sweep_once(folder);
        let (file, draft) = create(folder, &begins, mode)?;
        let draft = TempPath::try_from_path(draft)?;
        Ok(FileDraft { file, draft, path: path.to_owned(), folder: folder.to_owned(), durability })
    }

    /// The file that will have the name.
    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.file().write_all(bytes)?;
        match self.durability {
            Durability::Synced => self.file().sync_all(),
            Durability::Cached => Ok(()),
        }
    }

    /// Gives the file its name, in place of one that has it.
    pub fn place(self) -> io::Result<()> {
        self.draft.persist(&self.path).map_err(|failed| failed.error)?;
        sync_folder(&self.folder, self.durability)
    }

    /// Gives the file its name unless another file has it; whether it has the name now. Of many that try, one succeeds.
    pub fn claim(self) -> io::Result<bool> {
        match self.draft.persist_noclobber(&self.path) {
            Ok(_) => sync_folder(&self.folder, self.durability).map(|()| true),
            Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(failed) => Err(failed.error),
        }
    }
}

/// A new file. `tempfile` could make it too, but its errors lack the system's number, by which a shortage is known.
fn create(folder: &Path, begins: &str, mode: u32) -> io::Result<(File, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let draft = folder.join(format!("{begins}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft) {
            // Left by a process that had this one's number, as in a container that was started again.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (file, draft)),
        }
    }
}

fn sync_folder(folder: &Path, durability: Durability) -> io::Result<()> {
    match durability {
        Durability::Synced => File::open(folder)?.sync_all(),
        Durability::Cached => Ok(()),
    }
}

/// Removes the drafts of processes that are gone, before this process first writes into a folder: a folder may hold a file
/// for every run there was, and is not listed for each of them.
fn sweep_once(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if swept.contains(folder) {
        return;
    }
    if swept.len() >= MOST_SWEPT {
        swept.clear();
    }
    swept.insert(folder.to_owned());
    drop(swept);
    remove_stale_drafts(folder);
}

fn remove_stale_drafts(folder: &Path) {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    for name in names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with('.')) {
        let writer = name.rsplit_once(DRAFT).and_then(|(_, rest)| rest.split('-').next()?.parse().ok());
        if writer.and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH)) {
            // A process that cannot remove it cannot write either, and is told so.
            drop(std::fs::remove_file(folder.join(name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn a_file_is_replaced_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("projects.json");
        for durability in [Durability::Synced, Durability::Cached] {
            write_atomically(&path, b"first", durability).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
            write_atomically(&path, b"second", durability).unwrap();
            assert_eq!((std::fs::read(&path).unwrap(), mode(&path)), (b"second".to_vec(), 0o640));
        }
        assert_eq!(names(folder.path()), ["projects.json"]);
    }

    #[test]
    fn a_private_file_is_its_owners() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        std::fs::write(&path, "").unwrap();
        let draft = FileDraft::private(&path, Durability::Synced).unwrap();
        draft.write(b"[]").unwrap();
        draft.place().unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn what_cannot_be_put_in_place_leaves_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("inside"), "").unwrap();
        write_atomically(&path, b"text", Durability::Synced).unwrap_err();
        drop(FileDraft::of(&folder.path().join("unwanted"), Durability::Cached).unwrap());
        assert_eq!(names(folder.path()), ["taken"]);
        let nowhere = write_atomically(&folder.path().join("nowhere/file"), b"text", Durability::Cached).unwrap_err();
        assert_eq!(nowhere.raw_os_error(), Some(Errno::NOENT.raw_os_error()), "the number of the error is not lost");
    }

    #[test]
    fn a_claim_succeeds_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("claim.json");
        let claim = |text: &str| {
            let draft = FileDraft::private(&path, Durability::Synced).unwrap();
            draft.write(text.as_bytes()).unwrap();
            draft.claim().unwrap()
        };
        assert_eq!((claim("one"), claim("two")), (true, false));
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(names(folder.path()), ["claim.json"]);
    }

    #[test]
    fn the_drafts_of_dead_processes_go_and_those_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let dead = std::process::Command::new("true").spawn().and_then(|mut child| child.wait().map(|_| child.id()));
        let own = FileDraft::of(&folder.path().join("file"), Durability::Cached).unwrap();
        let living = format!(".file.sluice-{}-a", std::os::unix::process::parent_id());
        for name in [format!(".file.sluice-{}-a", dead.unwrap()), living.clone(), ".file.sluice-a".to_owned()] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        remove_stale_drafts(folder.path());
        write_atomically(&folder.path().join("file"), b"text", Durability::Cached).unwrap();
        let mut expected = vec![living, ".file.sluice-a".to_owned(), "file".to_owned()];
        expected.push(own.draft.file_name().unwrap().to_str().unwrap().to_owned());
        expected.sort();
        assert_eq!(names(folder.path()), expected);
    }
}
