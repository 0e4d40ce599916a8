//! Who keeps a session: the process without which its agent is not to go on, for another machine is given its work then.
//!
//! A file names it, so that one that comes after it can take its place. Its end is told by the kernel; whether another has
//! come is looked at once, when the time to come back is over. Nothing is asked of anybody, and nothing touched meanwhile.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::process::{Identity, wait_for_any};
use crate::session::record::Keeper;

/// The keeper of a session, as far as its shim knows.
pub(super) struct Kept {
    keeper: Keeper,
    /// A handle of the process, while it lives.
    lives: Option<OwnedFd>,
    /// Until when another may come.
    until: Instant,
}

impl Kept {
    /// Looks who keeps it.
    pub(super) fn new(keeper: Keeper) -> Kept {
        let mut kept = Kept { keeper, lives: None, until: Instant::now() };
        kept.look();
        kept
    }

    fn away(&self) -> Duration {
        Duration::from_millis(self.keeper.away_ms)
    }

    fn look(&mut self) {
        let named = std::fs::read(&self.keeper.file).ok();
        let named: Option<Identity> = named.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        self.lives = named.and_then(|keeper| keeper.open());
        self.until = Instant::now() + self.away();
    }

    /// What becomes readable when it ends.
    pub(super) fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.lives.as_ref().map(AsFd::as_fd)
    }

    /// When it has to be looked at, though nothing happens.
    pub(super) fn next_time(&self) -> Option<Instant> {
        self.lives.is_none().then_some(self.until)
    }

    /// Whether it has been away for too long.
    pub(super) fn is_gone(&mut self) -> bool {
        if let Some(handle) = self.lives.take() {
            if wait_for_any(&[&handle], Some(Duration::ZERO)).first() != Some(&true) {
                self.lives = Some(handle);
                return false;
            }
            self.until = Instant::now() + self.away();
        }
        if Instant::now() < self.until {
            return false;
        }
        self.look();
        self.lives.is_none()
    }

    /// How long the agent may take to end then.
    pub(super) fn grace(&self) -> Duration {
        self.away() / 5
    }
}
