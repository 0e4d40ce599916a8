//! What is done to a home without its engine, and who may do it: serving it, and putting a copy in the place of its store.
//!
//! No engine is there to ask, so the command asks itself who it is, by the same function. Whoever is turned away is
//! written into a file of the home, and the next engine makes events of it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use jiff::Timestamp;
use sluice_api::problem::Problem;
use sluice_worker::process::Within;
use sluice_worker::session::{Asker, Sessions};

use crate::places::Places;
use crate::service::{Turned, Who};

/// The largest file of those who were turned away; beyond, nobody is added.
const LARGEST: u64 = 64 << 10;

/// Refuses a command of nobody's, which is called so.
pub fn must_be_person(places: &Places, command: &str) -> Result<(), Problem> {
    let within = Within::enter(places.home());
    let refused = match Sessions::asker_without_engine(&within) {
        Asker::Outside => return Ok(()),
        Asker::Session(_) | Asker::Script(_) | Asker::Started => {
            Who::Nobody.must_be_person(&format!("`sluice {command}`")).err()
        }
        Asker::Gone => Some(Who::unknown()),
    };
    let Some(problem) = refused else { return Ok(()) };
    let turned = Turned {
        reason: problem.code.clone(),
        token: None,
        who: Some(Who::Nobody.label()),
        method: "sluice".to_owned(),
        path: command.to_owned(),
        peer: format!("process {}", std::process::id()),
        unrecorded: 0,
        at: Some(format!("{:.3}", Timestamp::now())),
    };
    // Whether it could be written down or not, they are turned away.
    let _ = add(&file(places), &turned);
    Err(problem)
}

fn file(places: &Places) -> PathBuf {
    places.home().join("denied.jsonl")
}

fn add(file: &PathBuf, turned: &Turned) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(file)?;
    if file.metadata()?.len() >= LARGEST {
        return Ok(());
    }
    let line = format!("{}\n", serde_json::to_string(turned)?);
    file.write_all(line.as_bytes())
}

/// Those who were turned away since an engine last ran.
pub(crate) fn meanwhile(places: &Places) -> Vec<Turned> {
    let file = file(places);
    let Ok(text) = std::fs::read_to_string(&file) else { return Vec::new() };
    let _ = std::fs::remove_file(&file);
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
