//! What the hooks of a session said and no engine has acted on yet, in the session's private folder: the last call that no engine
//! took, and the end of a turn of which it is not known yet what it means. The engine reads both when it adopts the session.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sluice_api::attention::{AgentNews, SignalSession};
use sluice_os::file::{Durability, FileDraft};
use sluice_os::session::SessionId;

use super::places::HomePaths;

/// Bytes of such a file that are read.
const LONGEST: u64 = 1 << 20;

/// Where it stands what a session's hooks said.
pub struct LeftSignal {
    /// What `sluice hook` leaves while no engine answers.
    untold: PathBuf,
    /// What the engine keeps until it knows what the end of a turn means.
    turn: PathBuf,
}

impl LeftSignal {
    pub fn of(places: &HomePaths, session: &SessionId) -> LeftSignal {
        let private = places.attempt(session.as_str());
        LeftSignal { untold: private.join("signal.json"), turn: private.join("turn-ended.json") }
    }

    /// Leaves a call for the next engine, in place of the one before. A tool that has ended says nothing about another that waits.
    pub fn leave(&self, said: &SignalSession) {
        let waits = read(&self.untold).filter(|before| before.news == AgentNews::Waits);
        let is_another = said.dialog.is_some() && waits.is_some_and(|before| before.dialog != said.dialog);
        if !(said.news == AgentNews::Works && is_another) {
            write(&self.untold, said);
        }
    }

    /// Takes the call that no engine took.
    pub fn take(&self) -> Option<SignalSession> {
        std::fs::symlink_metadata(&self.untold).ok()?;
        let said = read(&self.untold);
        remove(&self.untold);
        said
    }

    /// The end of a turn that an engine was about to judge.
    pub(crate) fn turn(&self) -> Option<SignalSession> {
        read(&self.turn)
    }

    /// Keeps the end of a turn until it is judged.
    pub(crate) fn keep_turn(&self, said: &SignalSession) {
        write(&self.turn, said);
    }

    /// The end of a turn is judged, or the agent went on.
    pub(crate) fn forget_turn(&self) {
        remove(&self.turn);
    }
}

/// What cannot be written is lost as it was before: nothing waits for it.
fn write(path: &Path, said: &SignalSession) {
    let written = serde_json::to_vec(said).map_err(std::io::Error::other).and_then(|bytes| {
        let draft = FileDraft::private(path, Durability::Cached)?;
        draft.write(&bytes)?;
        draft.place()
    });
    if let Err(error) = written {
        tracing::warn!("{} cannot be written: {error}", path.display());
    }
}

fn read(path: &Path) -> Option<SignalSession> {
    // Its agent can write there: a pipe is not waited for, and no link is followed.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!("{} cannot be removed: {error}", path.display());
    }
}
