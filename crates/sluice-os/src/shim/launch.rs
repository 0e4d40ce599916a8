//! Starting the agent exactly once: a launcher process waits for the word, then becomes the agent.
//!
//! The launcher is this program again, because only code that runs in the new process can give it a session and a
//! terminal of its own, and because the agent's number must be on disk before the agent does anything. Its input is a
//! channel to the shim: one byte comes in as the word to go on; what comes back is why it could not, and silence is
//! that it could.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Pid, Signal, WaitOptions, ioctl_tiocsctty, set_parent_process_death_signal, setsid, waitpid};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::stdio::{dup2_stdin, stdin, stdout};
use rustix::termios::{InputModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use super::pane;
use crate::process::{ProcessIdentity, stat};
use crate::session::folder::SessionFolder;
use crate::session::record::{
    AgentEndCause, SessionClaim, SessionId, SessionPlace, SessionSpec, StartRecord, VERSION, now_ms,
};

/// The argument that tells a launcher from a shim.
pub(super) const FLAG: &str = "--launch";
/// The variable by which the processes of a session are known, also when they have left their parents.
const MARK: &str = "SLUICE_SESSION";
const PLAIN_TERMINAL: &str = "xterm-256color";

pub(super) struct RunningAgent {
    pub(super) spec: SessionSpec,
    pub(super) agent: Pid,
    pub(super) identity: ProcessIdentity,
    pub(super) since: Instant,
    pub(super) ends: AgentChannels,
}

pub(super) enum AgentChannels {
    /// Its terminal, and the side the agent sees, to ask how much of its input it has read.
    Terminal { ours: OwnedFd, agents: OwnedFd },
    /// The pipes of one that has none.
    Headless { output: OwnedFd, errors: OwnedFd },
}

pub(super) enum LaunchOutcome {
    Running(Box<RunningAgent>),
    Refused(String),
    Ended(AgentEndCause),
}

/// Starts the agent; when this returns its number is on disk.
pub(super) fn launch(folder: &SessionFolder, shim: ProcessIdentity, spec: SessionSpec) -> io::Result<LaunchOutcome> {
    let (mut word, theirs) = UnixStream::pair()?;
    let mut command = launcher(folder)?;
    command.stdin(OwnedFd::from(theirs));
    let mut ends = match &spec.place {
        SessionPlace::Terminal { rows, columns, .. } => {
            let (ours, agents) = terminal(pane::size().unwrap_or((*rows, *columns)))?;
            command.stdout(agents.try_clone()?).stderr(agents.try_clone()?);
            Some(AgentChannels::Terminal { ours, agents })
        }
        SessionPlace::Headless { .. } => {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            None
        }
    };
    let mut child = command.spawn()?;
    drop(command); // and with it the launcher's end of the channel, or its silence would never be heard
    if let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) {
        ends = Some(AgentChannels::Headless { output: output.into(), errors: errors.into() });
    }
    let ends = ends.ok_or_else(|| io::Error::other("the launcher has no pipes"))?;
    let number = child.id().cast_signed();
    let lost = || io::Error::other("the launcher is gone");
    let agent = stat(number).ok_or_else(lost)?.identity();
    let pid = Pid::from_raw(number).ok_or_else(lost)?;
    let mark = mark(&spec.id, &shim);
    let pane = pane::place(&spec.place);
    let (since, identity) = (Instant::now(), agent.clone());
    folder.write_started(&StartRecord { version: VERSION, shim, agent, mark, at_ms: now_ms(), pane })?;
    // A launcher that could not go on is gone by now, and why it could not waits to be read.
    let _ = word.write_all(b"!");
    let mut refusal = String::new();
    word.read_to_string(&mut refusal)?;
    if refusal.is_empty() {
        return Ok(LaunchOutcome::Running(Box::new(RunningAgent { spec, agent: pid, identity, since, ends })));
    }
    waitpid(Some(pid), WaitOptions::empty())?;
    Ok(LaunchOutcome::Refused(refusal))
}

/// This program again, called as it was itself.
fn launcher(folder: &SessionFolder) -> io::Result<Command> {
    // The path of the program may lead to a newer one by now; this leads to the one that runs.
    let mut command = Command::new("/proc/self/exe");
    let mut arguments: Vec<_> = std::env::args_os().collect();
    arguments.pop();
    let mut arguments = arguments.into_iter();
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).arg(FLAG).arg(folder.path());
    Ok(command)
}

pub(super) fn terminal((rows, columns): (u16, u16)) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let agents = ioctl_tiocgptpeer(&ours, flags)?;
    tcsetwinsize(&ours, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    let mut modes = tcgetattr(&agents)?;
    modes.input_modes |= InputModes::IUTF8;
    tcsetattr(&agents, OptionalActions::Now, &modes)?;
    Ok((ours, agents))
}

/// An assignment that the environment of no other session of this machine has.
fn mark(id: &SessionId, shim: &ProcessIdentity) -> String {
    format!("{MARK}={id}.{}.{}", shim.pid, shim.start)
}

/// The life of a launcher, which ends by becoming the agent.
pub(super) fn become_agent(folder: &SessionFolder) -> ExitCode {
    let Ok(channel) = fcntl_dupfd_cloexec(stdin(), 3) else { return ExitCode::FAILURE };
    let mut channel = UnixStream::from(channel);
    let failure = match prepare(folder, &mut channel) {
        Ok(Some(mut command)) => {
            let error = command.exec();
            format!("{} cannot be started: {error}", command.get_program().to_string_lossy())
        }
        Ok(None) => return ExitCode::FAILURE, // the shim is dead
        Err(error) => {
            // A channel that is closed with the word unread loses what was said on it.
            let _ = channel.read(&mut [0]);
            format!("{error}")
        }
    };
    let _ = channel.write_all(failure.as_bytes());
    ExitCode::from(127)
}

/// Everything up to the last step, which needs the word.
fn prepare(folder: &SessionFolder, channel: &mut UnixStream) -> io::Result<Option<Command>> {
    // If the shim is killed the agent is told so by the kernel, even when no engine runs.
    set_parent_process_death_signal(Some(Signal::TERM))?;
    setsid()?;
    let spec = folder.spec()?.ok_or_else(|| io::Error::other("there is no spec.json"))?;
    let Some(SessionClaim::Shim { shim }) = folder.claim()? else { return Ok(None) };
    let mut command = Command::new(spec.arguments.first().map(String::as_str).unwrap_or_default());
    command.args(spec.arguments.iter().skip(1));
    command.env_clear().envs(&spec.environment);
    if let Some((name, value)) = mark(&spec.id, &shim).split_once('=') {
        command.env(name, value);
    }
    let input: OwnedFd = match &spec.place {
        SessionPlace::Terminal { .. } => {
            ioctl_tiocsctty(stdout())?;
            let shown = pane::place(&spec.place).and_then(|_| std::env::var_os("TERM"));
            command.env("TERM", shown.unwrap_or_else(|| PLAIN_TERMINAL.into()));
            stdout().as_fd().try_clone_to_owned()?
        }
        SessionPlace::Headless { input } => {
            let path = input.clone().unwrap_or_else(|| "/dev/null".into());
            let named = |error| io::Error::other(format!("its input {} cannot be read: {error}", path.display()));
            std::fs::File::open(&path).map_err(named)?.into()
        }
    };
    if !spec.folder.is_dir() {
        return Err(io::Error::other(format!("{} is not a folder", spec.folder.display())));
    }
    // What it inherited names the folder of whoever started it.
    command.current_dir(&spec.folder).env("PWD", &spec.folder);
    let mut word = [0];
    if channel.read(&mut word)? == 0 {
        return Ok(None);
    }
    dup2_stdin(input)?;
    Ok(Some(command))
}
