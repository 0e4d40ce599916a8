//! What the engine writes about itself: lines in a file, which is turned over before it grows too large. Code says it with
//! `tracing`, with a level and with fields; this decides where it goes.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sluice_os::redact::redacted;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// A log is turned over when it has so many bytes.
const LARGEST: u64 = 5 << 20;
/// So many old ones are kept.
const OLD: u32 = 3;
/// The variable that says from which level on something is written: error, warn, info, debug, trace or off.
const LEVEL: &str = "SLUICE_LOG";

/// Writes everything that this process says to the file at this path, from now on. A file that cannot be written is done
/// without: it must not keep the engine from working.
pub fn begin(path: &Path) {
    // A process has one log: the first that was named.
    let _ = tracing::subscriber::set_global_default(subscriber(path));
}

/// Writes what this thread says to the file at this path, until the guard is dropped.
pub fn begin_here(path: &Path) -> DefaultGuard {
    tracing::subscriber::set_default(subscriber(path))
}

fn subscriber(path: &Path) -> impl Subscriber + Send + Sync {
    let level = std::env::var(LEVEL).ok().and_then(|text| text.parse().ok()).unwrap_or(LevelFilter::INFO);
    let lines = tracing_subscriber::fmt().with_ansi(false).with_target(false).with_timer(LineStart);
    lines.with_max_level(level).with_writer(LogFile::open(path)).finish()
}

/// What a line begins with: the time, and the process.
struct LineStart;

impl FormatTime for LineStart {
    fn format_time(&self, line: &mut Writer<'_>) -> fmt::Result {
        write!(line, "{} {}", jiff::Timestamp::now(), std::process::id())
    }
}

struct LogFile {
    path: PathBuf,
    file: Option<File>,
}

impl LogFile {
    fn open(path: &Path) -> Mutex<LogFile> {
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let file = folder.ok().and_then(|()| append(path));
        Mutex::new(LogFile { path: path.to_owned(), file })
    }

    fn turn_over(&self) {
        let numbered = |number: u32| PathBuf::from(format!("{}.{number}", self.path.display()));
        for number in (1..OLD).rev() {
            let _ = std::fs::rename(numbered(number), numbered(number + 1));
        }
        let _ = std::fs::rename(&self.path, numbered(1));
    }
}

/// Takes one event at a time, whole.
impl Write for LogFile {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let length = self.file.as_ref().and_then(|file| file.metadata().ok()).map(|it| it.len());
        if length.is_some_and(|length| length >= LARGEST) {
            self.turn_over();
            self.file = append(&self.path);
        }
        if let Some(file) = self.file.as_mut() {
            let text = String::from_utf8_lossy(event);
            let _ = writeln!(file, "{}", redacted(&text.trim_end().replace('\n', " ")));
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn append(path: &Path) -> Option<File> {
    OpenOptions::new().create(true).append(true).open(path).ok()
}

pub fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a fault of Sluice's own: {}", text.unwrap_or("it panicked"))
}
