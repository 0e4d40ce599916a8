//! Finding the processes that belong to something, and ending all of them.
//!
//! Signals go through handles (pidfd), so a number that was used again meanwhile is never hit.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use super::identity::{ProcessIdentity, ProcessStat, carries, everyone};

/// How long killed processes may take to disappear before it is said that they would not.
const KILLED_WITHIN: Duration = Duration::from_secs(5);
/// How often the search is repeated while killed processes disappear.
const SEARCH_AGAIN: Duration = Duration::from_millis(20);

/// How long is waited instead when the kernel refuses to wait for something.
const UNABLE: Duration = Duration::from_secs(1);

/// The assignment in the environment of those who must outlive the session in which they happened to be started: an
/// engine that a command of an agent started, and the shims and the tmux server of such an engine. An agent could use
/// it to leave something running; that would be malice, and against malice none of this helps.
pub const KEPT: (&str, &str) = ("SLUICE_KEPT", "1");

pub(super) fn is_kept(pid: i32) -> io::Result<bool> {
    carries(pid, &format!("{}={}", KEPT.0, KEPT.1))
}

/// By what the processes of one session or script are known once no process of ours is their parent any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessKin {
    /// The first of them; the others are in its process group or session.
    pub(crate) leader: Option<ProcessIdentity>,
    /// An assignment in their environment that no other process has.
    pub(crate) mark: Option<String>,
}

impl ProcessKin {
    /// Those that live. An error says that it cannot be found out, and never that there are none.
    pub(crate) fn living(&self) -> io::Result<Vec<ProcessIdentity>> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let everyone = everyone()?;
        let mut found = Vec::new();
        for stat in everyone.iter().filter(|stat| stat.pid != own) {
            let by_leader = self.leader.as_ref().is_some_and(|leader| follows(stat, leader, &everyone));
            let belongs = by_leader || self.mark.as_ref().map_or(Ok(false), |mark| carries(stat.pid, mark))?;
            if belongs && !is_kept(stat.pid)? {
                found.push(stat.identity());
            }
        }
        Ok(found)
    }
}

/// Whether a process is the leader or in its group or session. While the group has members its number is not given
/// to a new process, so a process that has the number and is not the leader means that the group is gone.
fn follows(stat: &ProcessStat, leader: &ProcessIdentity, everyone: &[ProcessStat]) -> bool {
    let in_group = stat.group == leader.pid || stat.session == leader.pid || stat.pid == leader.pid;
    let reused = || everyone.iter().any(|other| other.pid == leader.pid && other.identity() != *leader);
    in_group && stat.start >= leader.start && stat.identity().boot == leader.boot && !reused()
}

/// The children of a process, their children, and so on, but nothing that is [`KEPT`] and nothing below that.
pub(crate) fn descendants(of: i32) -> io::Result<Vec<ProcessIdentity>> {
    Ok(below(of)?.iter().map(ProcessStat::identity).collect())
}

pub(super) fn below(of: i32) -> io::Result<Vec<ProcessStat>> {
    let everyone = everyone()?;
    let mut children: BTreeMap<i32, Vec<&ProcessStat>> = BTreeMap::new();
    for stat in &everyone {
        children.entry(stat.parent).or_default().push(stat);
    }
    let mut found = Vec::new();
    let mut open = vec![of];
    while let Some(parent) = open.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if !is_kept(child.pid)? {
                found.push((*child).clone());
                open.push(child.pid);
            }
        }
    }
    Ok(found)
}

/// Ends all that `find` finds: TERM, and KILL for those that are still there after `grace`. It searches again after
/// each end, because what is ended may have started others. Gives those that would not go; an error says that it cannot
/// be found out who is left.
pub(crate) fn end_all(
    find: impl Fn() -> io::Result<Vec<ProcessIdentity>>,
    grace: Duration,
) -> io::Result<Vec<ProcessIdentity>> {
    let kill_at = Instant::now() + grace;
    let give_up = kill_at + KILLED_WITHIN;
    let mut told = BTreeSet::new();
    loop {
        let mut found: Vec<(ProcessIdentity, OwnedFd)> = Vec::new();
        for identity in find()? {
            found.extend(identity.handle()?.map(|handle| (identity, handle)));
        }
        let now = Instant::now();
        if found.is_empty() || now >= give_up {
            return Ok(found.into_iter().map(|(identity, _)| identity).collect());
        }
        for (identity, handle) in &found {
            // A signal that cannot be sent is not news: the next search says who is left.
            if now >= kill_at {
                let _ = pidfd_send_signal(handle, Signal::KILL);
            } else if told.insert(identity.clone()) {
                let _ = pidfd_send_signal(handle, Signal::TERM);
            }
        }
        let until = if now >= kill_at { SEARCH_AGAIN } else { kill_at - now };
        let handles: Vec<&OwnedFd> = found.iter().map(|(_, handle)| handle).collect();
        wait_for_any(&handles, Some(until));
    }
}

/// Waits until one of the handles can be read (of a process: it has ended) or the time is over. Says which can.
pub(crate) fn wait_for_any(handles: &[impl AsFd], within: Option<Duration>) -> Vec<bool> {
    let deadline = within.map(|within| Instant::now() + within);
    let mut waiting: Vec<PollFd<'_>> = handles.iter().map(|it| PollFd::new(it, PollFlags::IN)).collect();
    loop {
        let left = deadline.map(|deadline| timespec(deadline.saturating_duration_since(Instant::now())));
        match poll(&mut waiting, left.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return waiting.iter().map(|it| !it.revents().is_empty()).collect(),
            Err(_) => {
                // Nothing can be waited for. A caller in a loop must not spin.
                let left = deadline.map_or(UNABLE, |deadline| deadline.saturating_duration_since(Instant::now()));
                let _ = poll(&mut [], Some(&timespec(left.min(UNABLE))));
                return vec![false; waiting.len()];
            }
        }
    }
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
