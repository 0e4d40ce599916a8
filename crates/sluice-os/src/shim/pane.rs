//! The tmux window that the shim itself runs in: where a person looks and types.

use std::collections::VecDeque;
use std::io;

use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, isatty, tcgetattr, tcgetwinsize, tcsetattr};

use crate::process::ProcessIdentity;
use crate::session::record::{SessionPane, SessionPlace};

/// Bytes that may wait to be shown. Beyond that the agent's output is not read: a terminal slows down who prints.
const MOST_WAITING: usize = 256 * 1024;

pub(super) fn place(wanted: &SessionPlace) -> Option<SessionPane> {
    let SessionPlace::Terminal { window: Some(_), .. } = wanted else { return None };
    let variable = std::env::var("TMUX").ok()?;
    // socket, server, session; the socket's path may hold commas
    let mut parts = variable.rsplitn(3, ',');
    let session = parts.next()?;
    let server = ProcessIdentity::of(parts.next()?.parse().ok()?)?;
    Some(SessionPane { session: format!("${session}"), pane: std::env::var("TMUX_PANE").ok()?, server })
}

/// Whether this process was started in a tmux window, even if that is gone by now.
pub(super) fn was_given() -> bool {
    std::env::var_os("TMUX_PANE").is_some()
}

pub(super) fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(stdin()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

pub(super) struct ShimPane {
    waiting: VecDeque<u8>,
}

impl ShimPane {
    /// The window this process runs in, made ready to pass every key on; nothing if it runs in none.
    pub(super) fn open(wanted: &SessionPlace) -> io::Result<Option<Self>> {
        if !matches!(wanted, SessionPlace::Terminal { window: Some(_), .. }) || !isatty(stdin()) || !isatty(stdout()) {
            return Ok(None);
        }
        let mut modes = tcgetattr(stdin())?;
        modes.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &modes)?;
        ioctl_fionbio(stdin(), true)?;
        ioctl_fionbio(stdout(), true)?;
        Ok(Some(Self { waiting: VecDeque::new() }))
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= MOST_WAITING
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn show(&mut self, bytes: &[u8]) {
        self.waiting.extend(bytes);
    }

    /// Shows what can be shown at once. An error means that the window is gone.
    pub(super) fn flush(&mut self) -> Result<(), Errno> {
        while !self.waiting.is_empty() {
            match write(stdout(), self.waiting.as_slices().0) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The keys that were pressed. An error means that the window is gone.
    pub(super) fn keys(&self) -> Result<Vec<u8>, Errno> {
        let mut buffer = vec![0; 4096];
        match read(stdin(), &mut buffer) {
            Ok(0) => Err(Errno::IO),
            Ok(count) => {
                buffer.truncate(count);
                Ok(buffer)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
