//! A process of ours around a script, on a store that another engine can own: `sluice shim --ward FOLDER EPOCH PROGRAM …`.
//!
//! It starts the script when that may begin, pauses it with all that it has started when nobody says any more that it may go
//! on, lets it go on when that is said again, and kills it when the store has had another owner since. Then it ends as the
//! script has ended. Input and outputs are the script's own; it is in the same process group, and is told to end with it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::event::poll;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, set_child_subreaper, wait};

use super::keeper::{KeeperState, KeeperWatch};
use super::signals::ShimSignals;
use crate::process::{descendants, timespec};
use crate::session::record::OwnershipLease;

/// The argument that tells a ward from a shim.
pub(crate) const FLAG: &str = "--ward";
/// What a shell says of a program that cannot be started.
const NOT_STARTED: u8 = 127;
/// How long is waited until it is looked again what is below, if that could not be found out.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub(super) fn run(folder: &OsStr, epoch: &OsStr, line: &[OsString]) -> ExitCode {
    let epoch = epoch.to_str().and_then(|text| text.parse().ok()).unwrap_or(0);
    let lease = OwnershipLease { folder: folder.into(), epoch };
    match tend(&lease, line) {
        Ok(status) => ended(status),
        Err(error) => {
            eprintln!(
                "{} cannot be run: {error}",
                line.first().map_or_else(Default::default, |it| it.to_string_lossy())
            );
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn tend(lease: &OwnershipLease, line: &[OsString]) -> io::Result<Option<WaitStatus>> {
    // The script is told to end with its group; we end when it has.
    let mut signals = ShimSignals::listen()?;
    // What it leaves is paused with it.
    set_child_subreaper(Some(getpid()))?;
    let mut kept = KeeperWatch::under(lease, None)?;
    if kept.until_kept(&mut signals)?.is_some() {
        return Ok(None);
    }
    let (program, arguments) = line.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let child = Command::new(program).args(arguments).spawn()?;
    let child = Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
    loop {
        signals.heard();
        if let Some(status) = reap(child) {
            return Ok(Some(status));
        }
        match kept.look() {
            KeeperState::Kept => kept.go_on(),
            KeeperState::Lapsed => kept.pause(),
            KeeperState::Gone => {
                kept.pause();
                kill_all();
                return Ok(None);
            }
        }
        kept.wait(&signals)?;
    }
}

/// Kills all that is below, until nothing is: what was forked meanwhile too.
fn kill_all() {
    loop {
        match descendants(getpid().as_raw_nonzero().get()) {
            Ok(below) if below.is_empty() => return,
            Ok(below) => {
                for identity in below {
                    identity.signal(Signal::KILL);
                }
                let _ = wait(WaitOptions::empty());
            }
            // It cannot be found out at the moment, and nothing of it may go on.
            Err(_) => drop(poll(&mut [], Some(&timespec(LOOK_AGAIN)))),
        }
    }
}

/// Takes note of every child that has ended. How the script did, if it is one of them.
fn reap(child: Pid) -> Option<WaitStatus> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == child => return Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Ends as the script has ended; killed, if it was not to go on.
fn ended(status: Option<WaitStatus>) -> ExitCode {
    let code = status.and_then(|status| status.exit_status());
    if let Some(code) = code {
        return ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX));
    }
    let killed = Signal::KILL.as_raw();
    let signal = status.map_or(killed, |status| status.terminating_signal().unwrap_or(killed));
    // Ours first: it may be one that we hear.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}
