//! What is done to a home without its engine, and who may do it: serving it, and putting a copy in the place of its store.
//!
//! No engine is there to ask, so the command asks itself who it is, by the same function. Whoever is turned away is
//! written into a file of the home, and the next engine makes events of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sluice_api::event::AccessDenied;
use sluice_api::problem::Problem;
use sluice_os::process::HomeNesting;
use sluice_os::session::{ProcessAsker, Sessions};

use crate::ask::Requester;
use crate::settings::clock::id_from;
use crate::settings::places::HomePaths;

/// The largest file of those who were turned away; beyond it the command adds no line, and the engine reads none.
const LARGEST: u64 = 64 << 10;
/// The newest so many are told of; the others are counted.
const MOST: usize = 100;
/// The longest of the words that are believed of the file: everything of this user can write it.
const LONGEST: usize = 200;
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct DeniedLine {
    v: u32,
    at: String,
    reason: String,
    command: String,
    process: u32,
}

/// Refuses a command of nobody's, which is called so.
pub fn must_be_person(places: &HomePaths, command: &str) -> Result<(), Problem> {
    let within = HomeNesting::enter(places.home());
    let refused = match Sessions::asker_without_engine(&within) {
        ProcessAsker::Outside => return Ok(()),
        ProcessAsker::Session(_) | ProcessAsker::Script(_) | ProcessAsker::Started => {
            Requester::Nobody.must_be_person(&format!("`sluice {command}`")).err()
        }
        ProcessAsker::Gone => Some(Requester::unknown()),
    };
    let Some(problem) = refused else { return Ok(()) };
    let line = DeniedLine {
        v: VERSION,
        at: format!("{:.3}", Timestamp::now()),
        reason: problem.code.clone(),
        command: command.to_owned(),
        process: std::process::id(),
    };
    // Whether it could be written down or not, they are turned away.
    let _ = add(&file(places), &line);
    Err(problem)
}

fn file(places: &HomePaths) -> PathBuf {
    places.home().join("denied.jsonl")
}

/// Opens the file, if it is one: a pipe or device in its place holds up no command and no engine.
fn open(options: &mut OpenOptions, file: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let file = options.custom_flags(flags.cast_signed()).open(file)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn add(file: &Path, line: &DeniedLine) -> io::Result<()> {
    let line = format!("{}\n", serde_json::to_string(line)?);
    let mut file = open(OpenOptions::new().create(true).append(true).mode(0o600), file)?;
    if file.metadata()?.len() + line.len() as u64 > LARGEST {
        return Ok(());
    }
    file.write_all(line.as_bytes())
}

/// Those who were turned away since an engine last ran, set aside.
pub(crate) struct DeniedBacklog {
    aside: PathBuf,
    /// Each with an id that is always the same: one who is told of again is told of once.
    pub(crate) turned: Vec<(String, AccessDenied)>,
}

impl DeniedBacklog {
    /// Those whom an engine set aside that ended before they were stored, else those that came since.
    pub(crate) fn take(places: &HomePaths) -> Option<DeniedBacklog> {
        let file = file(places);
        let aside = file.with_extension("taken.jsonl");
        if !aside.exists() {
            fs::rename(&file, &aside).ok()?;
        }
        let turned = open(OpenOptions::new().read(true), &aside).and_then(read).unwrap_or_default();
        Some(DeniedBacklog { aside, turned })
    }

    /// They are stored. Whether the file is gone: otherwise they are told of again, under the same ids.
    pub(crate) fn remove(self) -> bool {
        fs::remove_file(self.aside).is_ok()
    }
}

fn read(file: File) -> io::Result<Vec<(String, AccessDenied)>> {
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut turned: Vec<(String, AccessDenied)> = text.lines().filter_map(turned).collect();
    let excess = turned.len().saturating_sub(MOST);
    turned.drain(..excess);
    if let Some((_, first)) = turned.first_mut() {
        first.unrecorded = excess as u64;
    }
    Ok(turned)
}

/// What a line says, if it is one of ours.
fn turned(line: &str) -> Option<(String, AccessDenied)> {
    let DeniedLine { v, at, reason, command, process } = serde_json::from_str(line).ok()?;
    let is_ours = v == VERSION && reason.len() <= LONGEST && command.len() <= LONGEST;
    let at = at.parse::<Timestamp>().ok().filter(|_| is_ours)?;
    let turned = AccessDenied {
        reason,
        token: None,
        who: Some(Requester::Nobody.label()),
        method: "sluice".to_owned(),
        path: command,
        peer: format!("process {process}"),
        unrecorded: 0,
        at: Some(format!("{at:.3}")),
    };
    Some((id_from(&["denied", line]), turned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(process: u32) -> DeniedLine {
        let text = |text: &str| text.to_owned();
        DeniedLine {
            v: VERSION,
            at: text("2026-11-17T00:00:00.000Z"),
            reason: text("x"),
            command: text("serve"),
            process,
        }
    }

    #[test]
    fn what_stands_in_the_file_is_bounded_and_told_until_it_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let places = HomePaths::new(folder.path());
        let own = file(&places);
        assert!(DeniedBacklog::take(&places).is_none());
        (0..150).for_each(|process| add(&own, &line(process)).unwrap());
        let first = DeniedBacklog::take(&places).unwrap();
        assert_eq!((first.turned.len(), first.turned[0].1.unrecorded), (MOST, 50));
        assert_eq!(first.turned[0].1.peer, "process 50");
        // The engine ended before they were stored, and others came: the first once more, under the same ids.
        add(&own, &line(1000)).unwrap();
        let ids = |them: &DeniedBacklog| them.turned.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        let again = DeniedBacklog::take(&places).unwrap();
        assert_eq!(ids(&again), ids(&first));
        assert!(again.remove());
        let others = DeniedBacklog::take(&places).unwrap();
        assert_eq!(others.turned.iter().map(|(_, it)| it.peer.as_str()).collect::<Vec<_>>(), ["process 1000"]);
        assert!(others.remove());
        assert!(DeniedBacklog::take(&places).is_none());
        // What is not ours, or too much, is not read, and a pipe holds up nothing.
        let mine = serde_json::to_string(&line(1)).unwrap();
        let long = serde_json::to_string(&DeniedLine { command: "x".repeat(300), ..line(2) }).unwrap();
        let late = mine.replace("\"v\":1", "\"v\":2");
        fs::write(&own, format!("no\n{long}\n{late}\n{mine}\n{}\n{mine}\n", "x".repeat(1 << 20))).unwrap();
        let read = DeniedBacklog::take(&places).unwrap();
        assert_eq!(read.turned.len(), 1);
        assert!(read.remove());
        std::process::Command::new("mkfifo").arg(&own).status().unwrap();
        assert!(add(&own, &line(1)).is_err());
        let nothing = DeniedBacklog::take(&places).unwrap();
        assert!(nothing.turned.is_empty());
        assert!(nothing.remove());
        assert!(DeniedBacklog::take(&places).is_none());
    }
}
