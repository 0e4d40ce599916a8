//! Keeping a session: its keeper says until when the agent may go on. After that the shim pauses it, until more is said.

use super::record::{KeptUntil, SessionId, boot_ms};
use super::{Failure, Sessions, reading};

impl Sessions {
    /// Says until when a session is kept, by [`boot_ms`]. If it was paused it goes on.
    pub fn keep(&self, id: &SessionId, until_ms: u64) -> Result<(), Failure> {
        self.known(id)?.write_kept(KeptUntil { until_ms }).map_err(|source| reading(id, source))
    }

    /// Whether its agent is paused, or about to be, because nobody has said that it may go on.
    pub fn is_paused(&self, id: &SessionId) -> bool {
        let kept = self.known(id).ok().and_then(|folder| folder.kept_until().ok()?);
        kept.is_some_and(|kept| kept.until_ms <= boot_ms())
    }
}
