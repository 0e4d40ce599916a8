//! The folder of a session: which file holds what, and how it is written.
//!
//! | file | who writes it | what it says |
//! |---|---|---|
//! | `spec.json` | engine | what is to be run |
//! | `claim.json` | the first shim, or an engine that gives up | who alone may start the agent |
//! | `started.json` | shim | who runs; before the agent's first instruction |
//! | `kept.json` | worker | until when the agent may go on, if somebody must keep it |
//! | `ended.json` | engine | that we want it to end; before any signal |
//! | `exit.json` | shim | how the agent ended; before anything else is done about it |
//! | `exit.room` | shim | nothing: it keeps room for `exit.json` while the agent runs |
//! | `output.log`, `output.N.log` | shim | what the agent printed; `errors.…` beside it when headless |
//! | `control.sock` | shim | where text for the agent is taken |
//! | `shim.log` | shim | what went wrong in the shim itself |

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::record::{ExitRecord, KeeperTerm, SessionClaim, SessionEndRequest, SessionSpec, StartRecord};
use crate::file::{Durability, FileDraft};

/// Where the shim takes text for its agent.
pub(crate) const CONTROL: &str = "control.sock";
pub(crate) const SHIM_LOG: &str = "shim.log";
/// Bytes that are kept free for the exit record while the agent runs, and the file that keeps them.
const EXIT_BYTES: usize = 4096;
const EXIT_ROOM: &str = "exit.room";

#[derive(Debug, Clone)]
pub(crate) struct SessionFolder(pub(crate) PathBuf);

impl SessionFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder, for its owner only: the environment of the agent stands in it.
    pub(crate) fn create(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        self.0.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
    }

    pub(crate) fn spec(&self) -> io::Result<Option<SessionSpec>> {
        self.read("spec.json")
    }

    pub(crate) fn claim(&self) -> io::Result<Option<SessionClaim>> {
        self.read("claim.json")
    }

    pub(crate) fn started(&self) -> io::Result<Option<StartRecord>> {
        self.read("started.json")
    }

    pub(crate) fn asked(&self) -> io::Result<Option<SessionEndRequest>> {
        self.read("ended.json")
    }

    pub(crate) fn exit(&self) -> io::Result<Option<ExitRecord>> {
        self.read("exit.json")
    }

    pub(crate) fn kept_until(&self) -> io::Result<Option<KeeperTerm>> {
        self.read("kept.json")
    }

    /// Written whole, but not durable: with the machine the agent goes as well.
    pub(crate) fn write_kept(&self, kept: KeeperTerm) -> io::Result<()> {
        self.draft("kept.json", &kept, Durability::Cached)?.place()
    }

    /// Keeps what was run, but not with which environment: there may be secrets in it.
    pub(crate) fn forget_environment(&self) -> io::Result<()> {
        let Some(mut spec) = self.spec()? else { return Ok(()) };
        spec.environment.clear();
        self.write_spec(&spec)
    }

    pub(crate) fn write_spec(&self, spec: &SessionSpec) -> io::Result<()> {
        self.write("spec.json", spec)
    }

    pub(crate) fn write_started(&self, record: &StartRecord) -> io::Result<()> {
        self.write("started.json", record)
    }

    pub(crate) fn write_asked(&self, asked: &SessionEndRequest) -> io::Result<()> {
        self.write("ended.json", asked)
    }

    /// Takes the room for the exit record before the agent runs: an agent that fills the disk must not be run again because nothing
    /// could be written about its end.
    pub(crate) fn reserve_exit(&self) -> io::Result<()> {
        std::fs::write(self.0.join(EXIT_ROOM), [b' '; EXIT_BYTES])
    }

    pub(crate) fn write_exit(&self, exit: &ExitRecord) -> io::Result<()> {
        self.write_exit_by(exit, || self.write("exit.json", exit))?;
        // It is not needed any more, and does no harm.
        let _ = std::fs::remove_file(self.0.join(EXIT_ROOM));
        Ok(())
    }

    fn write_exit_by(&self, exit: &ExitRecord, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match write() {
            Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                self.write_exit_in_room(exit).map_err(|_| error)
            }
            written => written,
        }
    }

    /// Writes over the room that was taken, which needs no more of it. What is left of it stays blank behind the record.
    fn write_exit_in_room(&self, exit: &ExitRecord) -> io::Result<()> {
        let mut text = serde_json::to_vec(exit)?;
        if text.len() > EXIT_BYTES {
            return Err(io::ErrorKind::StorageFull.into());
        }
        text.resize(EXIT_BYTES, b' ');
        let room = self.0.join(EXIT_ROOM);
        let mut file = File::options().write(true).open(&room)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&room, self.0.join("exit.json"))?;
        File::open(&self.0)?.sync_all()
    }

    /// Takes the one right to start the agent. Says whether it was still free.
    pub(crate) fn take_claim(&self, claim: &SessionClaim) -> io::Result<bool> {
        self.draft("claim.json", claim, Durability::Synced)?.claim()
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        match std::fs::read(self.0.join(name)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Written whole, durable when this returns.
    fn write(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        self.draft(name, value, Durability::Synced)?.place()
    }

    fn draft(&self, name: &str, value: &impl Serialize, durability: Durability) -> io::Result<FileDraft> {
        let draft = FileDraft::private(&self.0.join(name), durability)?;
        draft.write(&serde_json::to_vec_pretty(value)?)?;
        Ok(draft)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::record::{AgentEnd, AgentEndCause, VERSION};

    #[test]
    fn the_end_of_an_agent_that_filled_the_disk_is_written() {
        let place = tempfile::tempdir().unwrap();
        let folder = SessionFolder(place.path().to_owned());
        let (end, cause) = (AgentEnd::NotStarted("no".to_owned()), AgentEndCause::Itself);
        let record = ExitRecord { version: VERSION, end, cause, at_ms: 1, duration_ms: 2 };
        let is_full = || Err(io::ErrorKind::StorageFull.into());
        assert!(folder.write_exit_by(&record, is_full).is_err(), "no room was taken");
        folder.reserve_exit().unwrap();
        folder.write_exit_by(&record, is_full).unwrap();
        assert_eq!(format!("{:?}", folder.exit().unwrap().unwrap()), format!("{record:?}"));
        // With room it is written as ever, and what was taken goes.
        folder.reserve_exit().unwrap();
        folder.write_exit(&record).unwrap();
        assert!(folder.exit().unwrap().is_some() && !place.path().join(EXIT_ROOM).exists());
    }
}
