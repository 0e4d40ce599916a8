//! One thread that waits for the end of every shim.
//!
//! A handle of a process can be read when the process ends, so nothing is asked again and again. Once a second the
//! processes are looked at all the same, as the backstop for a kernel that gave no handle.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use super::folder::SessionFolder;
use super::record::{SessionId, StartRecord};
use super::standing::{EndedSession, SessionLook, SessionStanding, look, reap, settle};
use super::{SessionFailure, Sessions};
use crate::process::wait_for_any;

/// How often living sessions are looked at although nothing was heard.
const BACKSTOP: Duration = Duration::from_secs(1);

/// What is called when a session is over. It runs on a thread of its own and may take its time.
type SessionCallback = Box<dyn FnOnce(SessionId, Result<EndedSession, SessionFailure>) + Send>;

struct WatchedSession {
    record: StartRecord,
    shim: Option<Arc<OwnedFd>>,
    waiting: Vec<(SessionFolder, SessionCallback)>,
}

#[derive(Default)]
struct WatcherState {
    living: BTreeMap<SessionId, WatchedSession>,
    /// Those whose shim may start the agent at any moment: that is on disk before the agent can ask for anything, and
    /// before anybody here has heard of it.
    starting: BTreeMap<SessionId, SessionFolder>,
    stopping: bool,
}

struct WatcherShared {
    state: Mutex<WatcherState>,
    wake: OwnedFd,
}

/// The thread, and what it shares with those who ask.
pub(super) struct SessionWatcher {
    shared: Arc<WatcherShared>,
    thread: Option<JoinHandle<()>>,
}

impl Sessions {
    /// Calls `then` once the session is over and no process of it is left; at once if it is over already.
    pub fn watch(
        &self,
        id: &SessionId,
        then: impl FnOnce(SessionId, Result<EndedSession, SessionFailure>) + Send + 'static,
    ) -> Result<(), SessionFailure> {
        let folder = self.known(id)?;
        match self.adopt(id)? {
            SessionStanding::Gone(gone) => {
                then(id.clone(), Ok(gone));
            }
            SessionStanding::Living(_) => self.watcher.watch(id, folder, Box::new(then)),
        }
        Ok(())
    }
}

impl SessionWatcher {
    pub(super) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(WatcherShared { state: Mutex::default(), wake });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("session watcher".to_owned()).spawn(move || theirs.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(super) fn know(&self, id: &SessionId, record: &StartRecord) {
        let mut state = self.shared.lock();
        state.starting.remove(id);
        state.living.entry(id.clone()).or_insert_with(|| WatchedSession {
            record: record.clone(),
            shim: record.shim.open().map(Arc::new),
            waiting: Vec::new(),
        });
        drop(state);
        self.shared.wake();
    }

    pub(super) fn expect(&self, id: &SessionId, folder: &SessionFolder) {
        let mut state = self.shared.lock();
        if !state.living.contains_key(id) {
            state.starting.insert(id.clone(), folder.clone());
        }
    }

    pub(super) fn knows(&self, id: &SessionId) -> bool {
        let state = self.shared.lock();
        if state.living.contains_key(id) {
            return true;
        }
        let starting = state.starting.get(id).cloned();
        drop(state);
        starting.is_some_and(|folder| matches!(look(&folder), Ok(SessionLook::Living(_))))
    }

    /// The sessions that are taken for living, with those that have just come to life.
    pub(super) fn known(&self) -> Vec<(SessionId, StartRecord)> {
        let starting = self.shared.lock().starting.clone();
        for (id, folder) in starting {
            match look(&folder) {
                Ok(SessionLook::Living(record)) => self.know(&id, &record),
                Ok(SessionLook::Over) => drop(self.shared.lock().starting.remove(&id)),
                Ok(SessionLook::Unclaimed | SessionLook::Starting(_)) | Err(_) => {}
            }
        }
        self.shared.lock().living.iter().map(|(id, watched)| (id.clone(), watched.record.clone())).collect()
    }

    fn watch(&self, id: &SessionId, folder: SessionFolder, callback: SessionCallback) {
        let mut state = self.shared.lock();
        match state.living.get_mut(id) {
            Some(watched) => watched.waiting.push((folder, callback)),
            // It ended after it was adopted a moment ago.
            None => {
                drop(state);
                report(id.clone(), vec![(folder, callback)]);
            }
        }
    }
}

impl WatcherShared {
    fn lock(&self) -> MutexGuard<'_, WatcherState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // The write can only fail when it was done before.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn run(&self) {
        loop {
            let shims: Vec<(SessionId, Option<Arc<OwnedFd>>)> = {
                let state = self.lock();
                if state.stopping {
                    return;
                }
                state.living.iter().map(|(id, watched)| (id.clone(), watched.shim.clone())).collect()
            };
            let mut handles: Vec<BorrowedFd<'_>> = vec![self.wake.as_fd()];
            handles.extend(shims.iter().filter_map(|(_, shim)| shim.as_ref().map(|shim| shim.as_fd())));
            let backstop = (!shims.is_empty()).then_some(BACKSTOP);
            wait_for_any(&handles, backstop);
            let mut sink = [0; 8];
            let _ = rustix::io::read(&self.wake, &mut sink);
            self.take_ended();
        }
    }

    /// Looks at every shim: it costs one small file of the kernel each, and it is right whatever woke us.
    fn take_ended(&self) {
        let ended: Vec<(SessionId, WatchedSession)> =
            self.lock().living.extract_if(.., |_, watched| !watched.record.shim.lives()).collect();
        for (id, watched) in ended {
            reap(&watched.record.shim);
            report(id, watched.waiting);
        }
    }
}

/// Settles what is left of a session and tells those who wait. On a thread of its own, because ending what a dead shim
/// left takes a moment in which others may end.
fn report(id: SessionId, waiting: Vec<(SessionFolder, SessionCallback)>) {
    if waiting.is_empty() {
        return; // whoever asks next settles it
    }
    let tell = move || {
        for (folder, callback) in waiting {
            let gone = settle(&id, &folder);
            callback(id.clone(), gone);
        }
    };
    on_own_thread("session end", tell);
}

/// Does something on a thread of its own; where none is to be had it is done here, because it must be done.
fn on_own_thread<A: FnOnce() + Send + 'static>(name: &str, act: A) {
    let (give, given) = channel::<A>();
    match std::thread::Builder::new().name(name.to_owned()).spawn(move || given.recv().map_or((), |act| act())) {
        Ok(_) => drop(give.send(act)),
        Err(_) => act(),
    }
}

impl Drop for SessionWatcher {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            // It ends without fail; what it would say in a panic has been said.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for SessionWatcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Watcher").finish_non_exhaustive()
    }
}
