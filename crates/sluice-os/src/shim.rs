//! The shim: a small process of ours around one agent. The binary runs it as `sluice shim FOLDER`.
//!
//! It starts the agent once and never again, records who runs, copies between the agent's terminal and the tmux
//! window, keeps the output, types what it is asked to type, waits for the agent's end and records that before it does
//! anything else. Then it ends what the agent left running, and itself. It outlives the engine and needs nothing of it.
//!
//! It tells nobody that the agent has ended: the engine watches the shim's process, which works also when the shim is
//! killed, when the engine was restarted meanwhile, and without an address at which it would have to be reached.
//!
//! It knows nothing about tasks, and it never looks at what the agent prints but for what its terminal must know.
//!
//! # Windows in which a kill must do no harm
//!
//! 1. Before the claim: nothing was started. Another shim may come, or the engine gives up by taking the claim itself.
//! 2. After the claim, before `started.json`: the agent's process exists at most as a *launcher*, which waits for a
//!    word from the shim before it becomes the agent. Without it (the shim is dead) it goes away.
//! 3. After `started.json`: the agent may run. If the shim dies its terminal goes with it, the kernel tells the agent
//!    (TERM), and whoever watches the shim ends the rest, which is found by group, session and mark.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::process::ProcessIdentity;
use crate::session::folder::{SHIM_LOG, SessionFolder};
use crate::session::record::{AgentEnd, AgentEndCause, ExitRecord, SessionClaim, VERSION, now_ms};

mod control;
mod keeper;
mod launch;
mod log;
mod pane;
mod relay;
mod scan;
mod signals;
mod typing;
mod ward;

pub(crate) use ward::FLAG as WARD;

/// Runs a shim, or the launcher that becomes its agent, with the arguments that follow `shim` on the command line.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    match arguments.as_slice() {
        [flag, folder] if flag == launch::FLAG => launch::become_agent(&SessionFolder(folder.into())),
        [flag, folder, epoch, line @ ..] if flag == ward::FLAG => ward::run(folder, epoch, line),
        [folder] if Path::new(folder).is_absolute() => tend(&SessionFolder(folder.into())),
        _ => {
            eprintln!("shim: give it the folder of a session, as an absolute path; it is for the engine's own use");
            ExitCode::from(2)
        }
    }
}

fn tend(folder: &SessionFolder) -> ExitCode {
    match claim_and_relay(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(folder, &format!("{error}"));
            ExitCode::FAILURE
        }
    }
}

fn claim_and_relay(folder: &SessionFolder) -> io::Result<()> {
    // First of all, so that no signal ends the shim without its doing.
    let mut signals = signals::ShimSignals::listen()?;
    // In a tmux window it leads a session already; elsewhere it must not die with the terminal of whoever started it.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    std::env::set_current_dir(folder.path())?;
    let shim = ProcessIdentity::own().ok_or_else(|| io::Error::other("/proc says nothing about this process"))?;
    if !folder.take_claim(&SessionClaim::Shim { shim: shim.clone() })? {
        return Ok(()); // another one is or was at it
    }
    if let Err(error) = folder.reserve_exit() {
        note(folder, &format!("no room is kept for the exit record: {error}"));
    }
    if folder.asked()?.is_some() {
        return not_started(folder, AgentEndCause::Asked, "it was ended before it started");
    }
    let spec = folder.spec().and_then(|spec| spec.ok_or_else(|| io::Error::other("there is no spec.json")));
    // Before the agent can run: whoever knows that it does can say something to it.
    let control = control::ShimControl::listen()?;
    let mut kept = None;
    let launched = spec.and_then(|spec| {
        kept = keeper::KeeperWatch::of(&spec, folder)?;
        // Nothing begins that would have to be paused at once: it may be somebody else's work by now.
        match kept.as_mut().map_or(Ok(None), |kept| kept.until_kept(&mut signals))? {
            Some(cause) => Ok(launch::LaunchOutcome::Ended(cause)),
            None => launch::launch(folder, shim, spec),
        }
    });
    let relayed = match launched {
        Ok(launch::LaunchOutcome::Running(running)) => {
            relay::ShimRelay::new(folder.clone(), signals, control, kept, *running)?.run()
        }
        Ok(launch::LaunchOutcome::Refused(why)) => not_started(folder, AgentEndCause::Itself, &why),
        Ok(launch::LaunchOutcome::Ended(cause)) => not_started(folder, cause, "it was ended before it started"),
        Err(error) => not_started(folder, AgentEndCause::Itself, &format!("{error}")),
    };
    if let Err(error) = folder.forget_environment() {
        note(folder, &format!("the environment of the agent stays on disk: {error}"));
    }
    relayed
}

fn not_started(folder: &SessionFolder, cause: AgentEndCause, why: &str) -> io::Result<()> {
    let end = AgentEnd::NotStarted(why.to_owned());
    folder.write_exit(&ExitRecord { version: VERSION, end, cause, at_ms: now_ms(), duration_ms: 0 })
}

/// Writes down what went wrong in the shim. If even that fails there is no one left to tell.
fn note(folder: &SessionFolder, what: &str) {
    let file = OpenOptions::new().create(true).append(true).open(folder.path().join(SHIM_LOG));
    let _ = file.and_then(|mut file| writeln!(file, "{what}"));
}
