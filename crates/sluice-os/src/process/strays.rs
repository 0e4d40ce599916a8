//! What this process is left with. Whoever asks to get the orphans below it is their parent when their own goes away, so
//! that they can still be recognised; and somebody has to take note of their end.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

use super::ProcessIdentity;
use super::identity::{carries, dead_children};

/// How long a child stays dead before it is taken for one that no thread waits for. Our own are waited for at once.
const UNWANTED: Duration = Duration::from_secs(10);

/// Whether a child of this process carries this assignment. Whoever gets the orphans below it has what a script left behind as
/// its child, so that this tells of it at the cost of one file. Where it cannot be told, there may be one.
pub fn has_marked_child(assignment: &str) -> bool {
    let own = getpid().as_raw_nonzero().get();
    // Orphans come to the first thread.
    let Ok(children) = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")) else { return true };
    let mut children = children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
    children.any(|pid| carries(pid, assignment).unwrap_or(true))
}

/// Whether a process that we may look at works in this folder or below it. Where it cannot be told, there may be one.
pub fn lives_below(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else { return true };
    let numbers = entries.flatten().map(|entry| entry.path());
    let mut processes =
        numbers.filter(|path| path.file_name().is_some_and(|it| it.as_encoded_bytes()[0].is_ascii_digit()));
    // Whom we may not look at is another's.
    processes.any(|path| std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
}

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
