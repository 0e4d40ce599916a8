//! What this process is left with. Whoever asks to get the orphans below it is their parent when their own goes away, so
//! that they can still be recognised; and somebody has to take note of their end.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

use super::ProcessIdentity;
use super::identity::dead_children;

/// How long a child stays dead before it is taken for one that no thread waits for. Our own are waited for at once.
const UNWANTED: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct StrayProcesses {
    dead: BTreeMap<ProcessIdentity, Instant>,
}

impl StrayProcesses {
    /// From now on this process gets the orphans below it.
    pub fn adopt() -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        Ok(Self::default())
    }

    /// Takes note of the end of those that no thread waits for.
    pub fn reap(&mut self, now: Instant) {
        let found = dead_children(getpid().as_raw_nonzero().get());
        self.dead.retain(|identity, _| found.contains(identity));
        for identity in found {
            let since = *self.dead.entry(identity.clone()).or_insert(now);
            if let (true, Some(pid)) = (now.duration_since(since) >= UNWANTED, Pid::from_raw(identity.pid)) {
                // Another thread may have been quicker.
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
                self.dead.remove(&identity);
            }
        }
    }
}
