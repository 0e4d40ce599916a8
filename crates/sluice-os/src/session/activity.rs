//! Which sessions print something, told by the kernel: nothing is asked again and again of one that is silent.
//!
//! A session is told of once, when its agent next prints, and not again before it is armed anew. So an agent that prints all
//! the time costs no more than one that prints now and then.

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

use super::{SessionId, Sessions};
use crate::process::wait_for_any;

/// Bytes of one reading of what the kernel tells.
const READ: usize = 4096;

/// Waits for what sessions print.
#[derive(Debug)]
pub struct SessionActivity {
    events: OwnedFd,
    wake: OwnedFd,
    armed: Mutex<BTreeMap<i32, SessionId>>,
}

impl SessionActivity {
    pub fn new() -> io::Result<SessionActivity> {
        let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(SessionActivity { events, wake, armed: Mutex::default() })
    }

    /// Tells of this session when its agent next prints something. Whether it can.
    pub fn arm(&self, sessions: &Sessions, id: &SessionId) -> bool {
        let flags = WatchFlags::MODIFY | WatchFlags::ONESHOT | WatchFlags::ONLYDIR;
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        match add_watch(&self.events, sessions.folder(id).path(), flags) {
            Ok(watch) => {
                armed.insert(watch, id.clone());
                true
            }
            Err(_) => false,
        }
    }

    /// Lets the thread go on that waits.
    pub fn wake(&self) {
        // The write can only fail when it was done before.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Waits until one that is armed prints something, until it is woken, or for so long. Those that have printed.
    pub fn wait(&self, limit: Option<Duration>) -> Vec<SessionId> {
        wait_for_any(&[self.events.as_fd(), self.wake.as_fd()], limit);
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        let mut space = [MaybeUninit::uninit(); READ];
        let mut reader = Reader::new(&self.events, &mut space);
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut heard = Vec::new();
        while let Ok(event) = reader.next() {
            heard.extend(armed.remove(&event.wd()));
        }
        heard
    }
}
