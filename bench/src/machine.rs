//! The machine that is measured on: how busy it is, what a process takes of it, and what a folder takes of its disk.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// How busy the machine is with other things.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!("load {}", text.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
}

/// The `sluice` that was built beside this program.
pub fn built_program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let program = own.parent()?.parent()?.join("sluice");
    program.is_file().then_some(program)
}

/// Seconds of CPU that a process has used.
pub fn cpu(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = text.rsplit(')').next().unwrap_or_default();
    let fields: Vec<f64> = rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
    fields.iter().sum::<f64>() / 100.0
}

/// Resident memory of a process, in MiB.
pub fn resident(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}

/// Bytes that a folder takes on the disk, with everything below it. What vanishes meanwhile does not count.
pub fn disk(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            bytes += about.blocks() * 512;
            if about.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    bytes
}

/// Waits for nothing but the time.
pub fn rest(time: Duration) {
    let (_sender, receiver) = channel::<()>();
    let _ = receiver.recv_timeout(time);
}

/// Runs a command to its end and gives what it prints; otherwise what went wrong.
pub fn run(command: &mut Command) -> Result<String, String> {
    let ran = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    match ran.status.success() {
        true => Ok(said),
        false => Err(format!("{command:?}: {} {said}{}", ran.status, String::from_utf8_lossy(&ran.stderr))),
    }
}
