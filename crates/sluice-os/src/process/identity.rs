//! Which process is meant: its number and when it started, so that a number used again is not mistaken for it.
//!
//! Everything is read from `/proc`. A process that has ended and only waits to be reaped counts as gone.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::passing::PassingError;

/// How long a process may take to become another program before it is said that it cannot be looked at.
const BETWEEN_PROGRAMS: Duration = Duration::from_secs(2);

/// A process, told from every other that has or had its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// When it started, in clock ticks since the machine did.
    pub start: u64,
    pub boot: String,
}

/// What `/proc/PID/stat` says about a process, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    pub(crate) start: u64,
    /// It has ended and waits to be reaped.
    pub(crate) ended: bool,
    /// What it is at: it runs nothing of its own until somebody lets it go on, or until the kernel has done something for
    /// it.
    pub(crate) rest: ProcessRest,
}

/// Whether a process can do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessRest {
    None,
    Stopped,
    /// The kernel does something for it, and looks at its signals before it goes on.
    Deaf,
}

impl ProcessIdentity {
    /// The process that has this number now, if it has not ended.
    pub fn of(pid: i32) -> Option<Self> {
        stat(pid).filter(|stat| !stat.ended).map(|stat| stat.identity())
    }

    pub fn own() -> Option<Self> {
        Self::of(rustix::process::getpid().as_raw_nonzero().get())
    }

    /// Whether the machine has not been started anew since.
    pub fn is_of_this_boot(&self) -> bool {
        self.boot == boot() || boot().is_empty()
    }

    /// Whether it still runs. If that cannot be found out, because no file can be opened at the moment, say, it does:
    /// what is taken for dead is cleared away.
    pub fn lives(&self) -> bool {
        if self.boot != boot() {
            return boot().is_empty();
        }
        match look_up(self.pid) {
            Ok(found) => found.is_some_and(|stat| !stat.ended && stat.start == self.start),
            Err(_) => true,
        }
    }

    /// A handle of it that never means another process; nothing if it has gone, or if no handle is to be had.
    pub(crate) fn open(&self) -> Option<OwnedFd> {
        self.handle().ok().flatten()
    }

    /// The same, with "it has gone" told from "no handle is to be had".
    pub(super) fn handle(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            // Only a process that still is who it was after the handle was made is the one behind the handle.
            Ok(handle) => Ok(self.lives().then_some(handle)),
            Err(Errno::SRCH | Errno::INVAL) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a signal to it and to no other process. Says whether it was there.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        self.open().is_some_and(|handle| pidfd_send_signal(handle, signal).is_ok())
    }
}

impl ProcessStat {
    pub(crate) fn identity(&self) -> ProcessIdentity {
        ProcessIdentity { pid: self.pid, start: self.start, boot: boot().to_owned() }
    }
}

/// Which start of the machine this is; nothing if that cannot be read at the moment.
pub(crate) fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    if let Some(boot) = BOOT.get() {
        return boot;
    }
    match std::fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Ok(text) => BOOT.get_or_init(|| text.trim().to_owned()),
        Err(_) => "",
    }
}

/// What is known about the process with this number, also when it only waits to be reaped.
pub(crate) fn stat(pid: i32) -> Option<ProcessStat> {
    look_up(pid).ok().flatten()
}

/// Bytes of the line that the kernel gives about a process: it is whole when that many are asked for at once.
const LONGEST_STAT: usize = 4096;

/// The same, with "there is none" told from "it cannot be found out".
pub(super) fn look_up(pid: i32) -> io::Result<Option<ProcessStat>> {
    let read = || {
        let mut line = vec![0; LONGEST_STAT];
        let length = File::open(format!("/proc/{pid}/stat"))?.read(&mut line)?;
        line.truncate(length);
        Ok(line)
    };
    seen(pid, read())
}

/// Whom we may not look at is another's, and for us as good as none.
fn seen(pid: i32, read: io::Result<Vec<u8>>) -> io::Result<Option<ProcessStat>> {
    match read {
        Ok(bytes) => Ok(parse(pid, &bytes)),
        Err(error) if error.is_passing() => Err(error),
        Err(_) => Ok(None),
    }
}

/// The name in brackets may hold anything, brackets too: the fields start after the last one.
fn fields(bytes: &[u8]) -> Option<Vec<&str>> {
    let name_end = bytes.iter().rposition(|byte| *byte == b')')?;
    Some(std::str::from_utf8(bytes.get(name_end + 1..)?).ok()?.split_ascii_whitespace().collect())
}

fn has_ended(state: &str) -> bool {
    matches!(state, "Z" | "X" | "x")
}

fn parse(pid: i32, bytes: &[u8]) -> Option<ProcessStat> {
    let fields = fields(bytes)?;
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<i32>().ok());
    let state = *fields.first()?;
    Some(ProcessStat {
        pid,
        ended: has_ended(state),
        rest: match state {
            "T" | "t" => ProcessRest::Stopped,
            "D" => ProcessRest::Deaf,
            _ => ProcessRest::None,
        },
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        start: fields.get(19)?.parse().ok()?,
    })
}

/// Every process that has not ended and that we may look at. If one cannot be looked at now, nobody knows who is left.
pub(crate) fn everyone() -> io::Result<Vec<ProcessStat>> {
    Ok(all()?.into_iter().filter(|stat| !stat.ended).collect())
}

/// The children of a process that have ended, and whose end no process has taken note of.
pub(crate) fn dead_children(of: i32) -> Vec<ProcessIdentity> {
    let all = all().unwrap_or_default(); // those that are not seen now are seen the next time
    all.iter().filter(|stat| stat.ended && stat.parent == of).map(ProcessStat::identity).collect()
}

fn all() -> io::Result<Vec<ProcessStat>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            found.extend(look_up(pid)?);
        }
    }
    Ok(found)
}

/// The assignments that a process was started with, `NAME=value`; none of one that has gone or is another user's.
///
/// A process that is becoming another program (`exec`) shows nothing, or a part, for a moment. It is asked again until
/// it shows all: a process that is taken for a stranger is not ended with its script.
pub(crate) fn environment(pid: i32) -> io::Result<Vec<Vec<u8>>> {
    let give_up = Instant::now() + BETWEEN_PROGRAMS;
    loop {
        let text = match std::fs::read(format!("/proc/{pid}/environ")) {
            Ok(text) => text,
            Err(error) if error.is_passing() => return Err(error),
            Err(_) => return Ok(Vec::new()),
        };
        if environment_length(pid)?.is_none_or(|bytes| bytes == text.len()) {
            return Ok(text.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect());
        }
        if Instant::now() >= give_up {
            return Err(Errno::AGAIN.into());
        }
        std::thread::yield_now();
    }
}

/// How many bytes the environment of a process has; nothing of one that has ended, and where the kernel does not say. Of
/// a process that is becoming another program the kernel says a length that nothing has.
fn environment_length(pid: i32) -> io::Result<Option<usize>> {
    /// The flag of a process that is the kernel's own.
    const OF_KERNEL: u64 = 0x0020_0000;
    let layout = |pid: i32| match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(bytes) => Ok(fields(&bytes).and_then(|fields| {
            let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
            let is_ours = !has_ended(fields.first()?) && number(6)? & OF_KERNEL == 0;
            is_ours.then_some((number(23)?, number(48)?.saturating_sub(number(47)?)))
        })),
        Err(error) if error.is_passing() => Err(error),
        Err(_) => Ok(None),
    };
    let own = rustix::process::getpid().as_raw_nonzero().get();
    Ok(match layout(pid)? {
        // Where its code lies is the last that the kernel notes of a new program.
        Some((0, _)) if layout(own)?.is_none_or(|(code, _)| code == 0) => None,
        Some((0, _)) => Some(usize::MAX),
        Some((_, length)) => usize::try_from(length).ok(),
        None => None,
    })
}

/// Whether a process has a terminal that can interrupt it: a person sits there.
pub fn has_terminal(process: &ProcessIdentity) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", process.pid)).unwrap_or_default();
    let fields = text.rsplit_once(") ").map(|(_, fields)| fields).unwrap_or_default();
    fields.split(' ').nth(4).is_some_and(|terminal| terminal != "0")
}

/// What a process was started with, by its name; nothing if it is gone, or cannot be looked at. What is no text is left out.
pub fn environment_of(process: &ProcessIdentity) -> Vec<(String, String)> {
    let read = environment(process.pid).unwrap_or_default();
    // Another may have its number by now.
    if ProcessIdentity::of(process.pid).as_ref() != Some(process) {
        return Vec::new();
    }
    let text = |assignment: Vec<u8>| {
        let (name, value) = std::str::from_utf8(&assignment).ok()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    read.into_iter().filter_map(text).collect()
}

/// Whether a process was started with this assignment in its environment, `NAME=value`.
pub(crate) fn carries(pid: i32, assignment: &str) -> io::Result<bool> {
    Ok(environment(pid)?.iter().any(|entry| entry == assignment.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_brackets_and_blanks_does_not_shift_the_fields() {
        let line = b"42 (a) Z 1 (b)) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        let expected = ProcessStat {
            pid: 42,
            parent: 7,
            group: 8,
            session: 9,
            start: 98765,
            ended: false,
            rest: ProcessRest::None,
        };
        assert_eq!(parse(42, line), Some(expected));
        assert_eq!(
            parse(42, b"42 (a) T 7 8 9 0 -1 1 1 2 3 4 5 6 7 8 20 0 1 0 98765 1").unwrap().rest,
            ProcessRest::Stopped
        );
        assert_eq!(parse(42, b"42 (cut"), None);
        assert_eq!(parse(42, b""), None);
    }

    #[test]
    fn who_may_not_be_looked_at_is_nobody_of_ours_and_who_cannot_be_now_may_be() {
        for others in [Errno::PERM, Errno::ACCESS, Errno::SRCH, Errno::NOENT] {
            assert_eq!(seen(42, Err(others.into())).unwrap(), None, "{others:?}");
        }
        for short in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            seen(42, Err(short.into())).unwrap_err();
        }
    }

    #[test]
    fn a_process_is_known_by_its_environment_while_it_becomes_another_program() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("again");
        std::fs::write(&program, "exec /bin/sh \"$0\"").unwrap();
        let mut child = std::process::Command::new("/bin/sh")
            .arg(&program)
            .env_clear()
            .envs([("LONG", "x".repeat(9000).as_str()), ("MINE", "yes")])
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        let unknown = (0..10_000).filter(|_| !carries(pid, "MINE=yes").unwrap()).count();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(unknown, 0, "times that it was taken for a stranger");
        assert_eq!(environment(pid).unwrap(), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn another_start_time_or_machine_start_is_another_process() {
        let own = ProcessIdentity::own().unwrap();
        assert!(own.lives());
        assert!(!ProcessIdentity { start: own.start + 1, ..own.clone() }.lives());
        assert!(!ProcessIdentity { boot: "another".to_owned(), ..own }.lives());
    }
}
