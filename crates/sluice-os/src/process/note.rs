//! The note of who runs, for whoever comes after an engine that died.
//!
//! A note is a small file under the name of what runs. When that has ended the file is put aside and used for the next:
//! to remove it and make another costs a file system more than the rest of starting a script. Nothing is synced: with
//! the machine the processes go as well.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::{ProcessFailure, ProcessIdentity, system};

/// What the names of files that are put aside begin with.
const ASIDE: &str = "aside-";
/// Bytes of a note, filled up with blanks: less than a page, so that one write is whole or has not been.
const LENGTH: usize = 512;

const MOST_ASIDE: usize = 256;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ScriptRecord {
    /// The assignment in the environment of everyone who belongs to it.
    pub(super) mark: String,
    /// Its first process, once that is known.
    pub(super) leader: Option<ProcessIdentity>,
}

/// A file that notes nothing at the moment.
struct SpareNoteFile {
    path: PathBuf,
    file: File,
}

static ASIDE_NOW: Mutex<Vec<SpareNoteFile>> = Mutex::new(Vec::new());
static MADE: AtomicU64 = AtomicU64::new(0);

/// A note that stands under its name as long as this is there.
pub(super) struct ScriptNote {
    path: PathBuf,
    file: File,
    aside: PathBuf,
}

impl ScriptNote {
    /// Notes who is about to run. A reader never sees half of it: it gets its name when it is written.
    pub(super) fn begin(path: &Path, record: &ScriptRecord) -> Result<ScriptNote, ProcessFailure> {
        let failed = |source| system(format!("noting in {} who runs", path.display()), source);
        let SpareNoteFile { path: aside, file } = spare(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        write(&file, record).and_then(|()| std::fs::rename(&aside, path)).map_err(failed)?;
        Ok(ScriptNote { path: path.to_owned(), file, aside })
    }

    pub(super) fn update(&self, record: &ScriptRecord) -> Result<(), ProcessFailure> {
        write(&self.file, record)
            .map_err(|source| system(format!("noting in {} who runs", self.path.display()), source))
    }

    pub(super) fn end(self) {
        // A note that stays names processes that are gone; the next reader finds nobody.
        if std::fs::rename(&self.path, &self.aside).is_err() {
            return;
        }
        let mut pool = pool();
        if pool.len() < MOST_ASIDE {
            pool.push(SpareNoteFile { path: self.aside, file: self.file });
        } else {
            let _ = std::fs::remove_file(&self.aside);
        }
    }
}

fn pool() -> MutexGuard<'static, Vec<SpareNoteFile>> {
    ASIDE_NOW.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file of this folder that can be written: one that was put aside and is still there, or a new one.
fn spare(folder: &Path) -> io::Result<SpareNoteFile> {
    let known = {
        let mut pool = pool();
        let place = pool.iter().position(|aside| aside.path.parent() == Some(folder));
        place.map(|place| pool.swap_remove(place))
    };
    if let Some(aside) = known.filter(|aside| aside.path.exists()) {
        return Ok(aside);
    }
    let count = MADE.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("{ASIDE}{}-{count}", std::process::id()));
    std::fs::create_dir_all(folder)?;
    let file = File::create(&path)?;
    Ok(SpareNoteFile { path, file })
}

fn write(file: &File, record: &ScriptRecord) -> io::Result<()> {
    let mut text = serde_json::to_vec(record)?;
    if text.len() > LENGTH {
        return Err(io::Error::other("the note is too long"));
    }
    text.resize(LENGTH, b' ');
    file.write_all_at(&text, 0)
}

/// Who ran by this note; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<ScriptRecord>, ProcessFailure> {
    let failed = |source| system(format!("reading {}", path.display()), source);
    match std::fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| failed(io::Error::other(error))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(failed(source)),
    }
}

/// Removes what engines that are gone have put aside in a folder.
pub fn tidy_notes(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let own = format!("{ASIDE}{}-", std::process::id());
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(ASIDE) && !name.starts_with(&own) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
