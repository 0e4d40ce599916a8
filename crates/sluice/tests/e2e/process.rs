//! Processes of a test: found by the folder they belong to, ended by their number, waited for.

use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// Kills a process without warning, and waits until it is dead.
pub(crate) fn kill(pid: i32) {
    let Some(pid) = Pid::from_raw(pid) else { return };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let _ = kill_process(pid, Signal::KILL);
    let within = Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&within)), Ok(1), "{pid:?} does not die");
}

/// Stops a process, as if it hung.
pub(crate) fn stop(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
}

/// Lets it go on.
pub(crate) fn go_on(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::CONT).unwrap();
}

/// Whether a process with this number lives.
pub(crate) fn lives(pid: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim_start().starts_with('Z'))
}

/// What a process was started with.
pub(crate) fn words(pid: i32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// The processes that stand in a folder or were told of it in their environment.
pub(crate) fn of(folder: &Path) -> Vec<i32> {
    let mark = folder.as_os_str().as_encoded_bytes();
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_of = |pid: &i32| {
        let told = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let stands = std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        stands || told.windows(mark.len()).any(|part| part == mark)
    };
    pids.filter(|pid| lives(*pid) && is_of(pid)).collect()
}

/// The processes that have this assignment in their environment.
pub(crate) fn carrying(assignment: &str) -> Vec<i32> {
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has = |pid: &i32| {
        let told = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        told.split(|byte| *byte == 0).any(|one| one == assignment.as_bytes())
    };
    pids.filter(|pid| lives(*pid) && has(pid)).collect()
}

/// Ends everything that belongs to a folder. What is started meanwhile is found the next time round.
pub(crate) fn kill_all_of(folder: &Path) {
    for _ in 0..20 {
        let found = of(folder);
        if found.is_empty() {
            return;
        }
        found.into_iter().for_each(kill);
    }
}

/// Waits until a process is dead.
#[track_caller]
pub(crate) fn until_gone(pid: i32) {
    let Ok(handle) = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()) else { return };
    let within = Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&within)), Ok(1), "process {pid} does not end");
}
