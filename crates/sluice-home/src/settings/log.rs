//! What the engine writes about itself: lines in a file, which is turned over before it grows too large.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sluice_worker::redact::redacted;

/// A log is turned over when it has so many bytes.
const LARGEST: u64 = 5 << 20;
/// So many old ones are kept.
const OLD: u32 = 3;

/// The log. There is one for a process, or it could not be turned over.
pub struct HomeLog {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl HomeLog {
    /// The log at this path. One that cannot be written is done without: it must not keep the engine from working.
    pub fn open(path: &Path) -> HomeLog {
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let file = folder.ok().and_then(|()| append(path));
        HomeLog { path: path.to_owned(), file: Mutex::new(file) }
    }

    /// Writes a line.
    pub fn line(&self, text: &str) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let full = file.as_ref().and_then(|file| file.metadata().ok()).is_some_and(|it| it.len() >= LARGEST);
        if full {
            *file = None;
            self.turn_over();
            *file = append(&self.path);
        }
        if let Some(file) = file.as_mut() {
            let text = redacted(&text.replace('\n', " "));
            let _ = writeln!(file, "{} {} {text}", jiff::Timestamp::now(), std::process::id());
        }
    }

    fn turn_over(&self) {
        let numbered = |number: u32| PathBuf::from(format!("{}.{number}", self.path.display()));
        for number in (1..OLD).rev() {
            let _ = std::fs::rename(numbered(number), numbered(number + 1));
        }
        let _ = std::fs::rename(&self.path, numbered(1));
    }
}

fn append(path: &Path) -> Option<File> {
    OpenOptions::new().create(true).append(true).open(path).ok()
}

/// What a panic said.
pub(crate) fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a fault of Sluice's own: {}", text.unwrap_or("it panicked"))
}
