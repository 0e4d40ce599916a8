//! Room on the disk for worktrees: said in the log before there is none, and asked for before a worktree is made. A checkout
//! that is broken off half-way by a full disk costs more than one that waits.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sluice_api::workspace::DiskRoom;

use crate::background::locked;
use crate::home::Home;
use crate::settings::room::{self, WAY_OUT};
use crate::undone::{PerformError, UnavailableReason};

/// What a wait for room says.
pub(crate) const LOW_DISK: &str = "low disk: ";

/// How often the room is looked at.
const LOOK: Duration = Duration::from_secs(10);

/// What was said of the room, and when it was looked at.
#[derive(Debug, Default)]
pub(crate) struct RoomWatch(Mutex<RoomNote>);

#[derive(Debug, Default)]
struct RoomNote {
    looked: Option<Instant>,
    /// The file systems that are low, by a folder on each.
    low: Vec<String>,
    /// Those that have no room left: a person is told of them.
    short: Vec<String>,
}

impl RoomWatch {
    /// Looks, unless it did so a short while ago. A file system that becomes low is a line in the log, and so is one that has
    /// room again.
    pub(crate) fn look(&self, home: &Home) {
        let mut note = locked(&self.0);
        if note.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return;
        }
        note.looked = Some(Instant::now());
        let config = home.context.config();
        let seen = room::rooms(&home.context.places, &config.workspaces);
        let short: Vec<String> = seen.iter().filter(|room| room.is_short).map(|room| room.path.clone()).collect();
        if short != note.short {
            home.notices.stir(); // no event tells of it, and none could be stored
            note.short = short;
        }
        for seen in seen {
            let was_low = note.low.contains(&seen.path);
            if seen.is_low && !was_low {
                tracing::warn!("{}; {WAY_OUT}", room::warning(&seen, &config.workspaces));
                note.low.push(seen.path);
            } else if !seen.is_low && was_low {
                tracing::info!("{} has enough room again", seen.path);
                note.low.retain(|path| *path != seen.path);
            }
        }
    }
}

/// The file systems of a home, as they are now.
pub(crate) fn rooms(home: &Home) -> Vec<DiskRoom> {
    room::rooms(&home.context.places, &home.context.config().workspaces)
}

/// Makes sure that there is room for a new worktree in this folder. One that is there is only put on another branch.
pub(crate) fn must_be_there(home: &Home, folder: &Path) -> Result<(), PerformError> {
    let config = home.context.config();
    // A file system that cannot be asked is no reason to wait: git says what is wrong with it.
    match room::room(folder, &config.workspaces) {
        Ok(room) if room.is_short && !folder.exists() => {
            Err(UnavailableReason(format!("{LOW_DISK}{}; {WAY_OUT}", room::warning(&room, &config.workspaces))).into())
        }
        Ok(_) | Err(_) => Ok(()),
    }
}
