//! Scripts and checks: programs that are started, waited for and read to their end.
//!
//! Each runs in a process group of its own, and nothing of the group outlives it. A script's text is given to `sh` as
//! one argument, and values travel in the environment only: nothing here puts a script together. On the engine's own
//! machine a script needs no shim: when the engine dies, [`kill_leftover`] ends what it left before the step runs again.
//! Elsewhere it is a session, because another machine is given its step. Where another engine can own the store, a
//! [`ScriptWard`] stands around it, which stops it whatever becomes of its engine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, test_kill_process, test_kill_process_group, waitpid,
};

mod capture;
mod identity;
mod mark;
mod note;
mod pause;
mod pipes;
mod running;
mod strays;
mod sweep;
mod within;

pub use capture::{CapturedOutput, LONGEST_FILE};
use identity::look_up;
pub use identity::{ProcessIdentity, environment_of, has_terminal};
pub(crate) use identity::{ProcessStat, boot, environment, stat};
pub use note::tidy_notes;
pub(crate) use pause::PausedProcesses;
pub(crate) use running::script_of;
pub use strays::{StrayProcesses, has_marked_child, lives_below};
pub use sweep::KEPT;
pub(crate) use sweep::{ProcessKin, descendants, end_all, timespec, wait_for_any};
pub use within::{HomeNesting, WITHIN};
pub(crate) use within::{MOST_ANCESTORS, within};

use crate::session::OwnershipLease;
use crate::shim::WARD;
use note::{ScriptNote, ScriptRecord};
use pipes::{PipeEvent, ScriptPipes};
use running::RunningScript;

/// Bytes of one argument or one variable that the kernel takes.
pub const LONGEST_ARGUMENT: usize = 128 * 1024 - 1;
/// The usual grace: how long a program may take to end when it is told to, before it is killed.
pub const GRACE: Duration = Duration::from_secs(5);
/// How long what a script left running in its group may take to finish by itself, and again to end when told to.
pub const LEFTOVER_GRACE: Duration = Duration::from_millis(200);
/// The ending of the file with what a script printed.
pub const OUTPUT: &str = "out";
/// The ending of the file with what it printed as errors.
pub const ERRORS: &str = "err";
/// The variable by which the processes of a script are found when its number was not noted in time.
pub(crate) const MARK: &str = "SLUICE_PROCESS";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptProgram {
    Arguments(Vec<String>),
    /// A script for `sh -c`.
    Shell(String),
}

#[derive(Debug, Clone)]
pub struct ProcessScript {
    pub program: ScriptProgram,
    /// Its whole environment; nothing is inherited.
    pub environment: BTreeMap<String, String>,
    pub folder: PathBuf,
    pub input: Vec<u8>,
    /// When it is ended, if it has not ended by itself.
    pub timeout: Option<Duration>,
    /// How long it may take to end when it is told to, before it is killed.
    pub grace: Duration,
    /// Bytes of each of its two outputs that are kept.
    pub output_limit: usize,
    /// Where an output goes that is longer, up to [`LONGEST_FILE`], with [`OUTPUT`] and [`ERRORS`] as endings.
    pub output_file: Option<PathBuf>,
    /// The file in which its number is noted while it runs, for [`kill_leftover`].
    pub record: PathBuf,
    /// What its processes speak for when they ask for something; nothing unless given.
    pub speaks_for: Option<String>,
    /// What pauses and ends it when it is not to go on; nothing unless given.
    pub ward: Option<ScriptWard>,
}

/// A process of ours around a script, without which nothing would pause it: `sluice shim --ward`.
#[derive(Debug, Clone)]
pub struct ScriptWard {
    pub program: Vec<OsString>,
    pub lease: OwnershipLease,
}

impl ScriptWard {
    fn line(&self) -> Vec<OsString> {
        let OwnershipLease { folder, epoch } = &self.lease;
        let told: [OsString; 3] = [WARD.into(), folder.into(), epoch.to_string().into()];
        self.program.iter().cloned().chain(told).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnding {
    Code(i32),
    /// By a signal that was not ours.
    Signal(i32),
    TimedOut,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessOutcome {
    pub ending: ProcessEnding,
    pub stdout: CapturedOutput,
    pub stderr: CapturedOutput,
    pub duration: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum ProcessFailure {
    #[error("{program} cannot be started in {folder}")]
    Start { program: String, folder: PathBuf, source: io::Error },
    #[error("{what} is {bytes} bytes long and a program can be given {LONGEST_ARGUMENT}: pass it in a file")]
    TooLong { what: String, bytes: usize },
    /// The operating system failed us after the script had begun: it is ended, and may have done a part.
    #[error("{doing}, so the script was ended after it had begun")]
    Begun { doing: String, source: io::Error },
    #[error("{doing}")]
    System { doing: String, source: io::Error },
}

#[derive(Debug, Clone)]
pub struct ScriptCancel(Arc<OwnedFd>);

impl ScriptCancel {
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Ends the scripts that were given this. It stays cancelled.
    pub fn cancel(&self) {
        // The write can only fail when it was done before.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// Runs a script to its end. Blocks until nothing of its process group is left.
pub fn run(script: &ProcessScript, cancel: &ScriptCancel) -> Result<ProcessOutcome, ProcessFailure> {
    check_lengths(script)?;
    let mark = new_mark();
    let assignment = format!("{MARK}={mark}");
    // Noted before and after the start: whoever finds only the first knows the mark at least.
    let note = ScriptNote::begin(&script.record, &ScriptRecord { mark: assignment.clone(), leader: None })?;
    let running = RunningScript::begin(&assignment, script.speaks_for.as_ref());
    let started = Instant::now();
    let mut child = match spawn(script, &mark) {
        Ok(child) => child,
        Err(failure) => {
            note.end();
            return Err(failure);
        }
    };
    let leader = leader_of(&child);
    leader.iter().for_each(|leader| running.started(leader));
    let followed = leader.and_then(|leader| {
        note.update(&ScriptRecord { mark: assignment.clone(), leader: Some(leader.clone()) })?;
        follow(script, cancel, &mut child, leader, &assignment, started)
    });
    let are_all_ended = match &followed {
        Ok((_, are_all_ended)) => *are_all_ended,
        // Without pipes to read there is no point in letting it go on. Its leader is not reaped, so the group is this one.
        Err(_) => {
            let ended = end_marked(&assignment, Duration::ZERO);
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
            ended.is_ok()
        }
    };
    // What could not be found now is found by its note.
    if are_all_ended {
        note.end();
    }
    followed.map(|(outcome, _)| outcome).map_err(begun)
}

/// What went wrong with a script that is started already.
fn begun(failure: ProcessFailure) -> ProcessFailure {
    match failure {
        ProcessFailure::System { doing, source } => ProcessFailure::Begun { doing, source },
        other @ (ProcessFailure::Start { .. } | ProcessFailure::Begun { .. } | ProcessFailure::TooLong { .. }) => other,
    }
}

/// Ends what a script left behind when the engine that ran it died, and forgets it. Says how many processes that were.
pub fn kill_leftover(record: &Path) -> Result<usize, ProcessFailure> {
    let Some(found) = note::read(record)? else { return Ok(0) };
    let kin = ProcessKin { leader: found.leader, mark: Some(found.mark) };
    let unseen = |source| system(format!("looking for what an earlier attempt left ({})", record.display()), source);
    let before = kin.living().map_err(unseen)?.len();
    let left = end_all(|| kin.living(), LEFTOVER_GRACE).map_err(unseen)?;
    if let Some(stubborn) = left.first() {
        let doing = format!("ending process {} of an earlier attempt, which would not go", stubborn.pid);
        return Err(system(doing, io::ErrorKind::TimedOut));
    }
    // A note that stays names processes that are gone; the next reader finds nobody.
    let _ = std::fs::remove_file(record);
    Ok(before)
}

/// Ends everything that carries this assignment in its environment: TERM, and KILL for what is still there after the
/// grace. Says how many would not go; an error says that it cannot be found out at the moment.
pub fn end_marked(assignment: &str, grace: Duration) -> Result<usize, ProcessFailure> {
    let kin = ProcessKin { leader: None, mark: Some(assignment.to_owned()) };
    let left = end_all(|| kin.living(), grace);
    left.map(|left| left.len()).map_err(|source| system(format!("looking for processes with {assignment}"), source))
}

fn system(doing: impl Into<String>, source: impl Into<io::Error>) -> ProcessFailure {
    ProcessFailure::System { doing: doing.into(), source: source.into() }
}

fn check_lengths(script: &ProcessScript) -> Result<(), ProcessFailure> {
    let arguments = match &script.program {
        ScriptProgram::Arguments(arguments) => arguments.clone(),
        ScriptProgram::Shell(text) => vec![text.clone()],
    };
    let arguments = arguments.iter().enumerate().map(|(index, it)| (format!("argument {}", index + 1), it.len()));
    let variables = script.environment.iter().map(|(name, it)| (format!("the value of {name}"), name.len() + it.len()));
    match arguments.chain(variables).find(|(_, bytes)| *bytes >= LONGEST_ARGUMENT) {
        Some((what, bytes)) => Err(ProcessFailure::TooLong { what, bytes }),
        None => Ok(()),
    }
}

/// A text that no other script of this machine has.
fn new_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // Who we are never changes.
    static OWN: OnceLock<Option<ProcessIdentity>> = OnceLock::new();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let (pid, start) = OWN.get_or_init(ProcessIdentity::own).as_ref().map_or((0, 0), |own| (own.pid, own.start));
    format!("{pid}.{start}.{count}")
}

fn spawn(script: &ProcessScript, mark: &str) -> Result<Child, ProcessFailure> {
    let shell = |text: &String| vec!["/bin/sh".to_owned(), "-c".to_owned(), text.clone()];
    let arguments = match &script.program {
        ScriptProgram::Arguments(arguments) => arguments.clone(),
        ScriptProgram::Shell(text) => shell(text),
    };
    let program = arguments.first().cloned().unwrap_or_default();
    let mut line = script.ward.as_ref().map(ScriptWard::line).unwrap_or_default();
    line.extend(arguments.iter().map(OsString::from));
    let mut command = Command::new(line.first().cloned().unwrap_or_default());
    command.args(line.iter().skip(1));
    command.env_clear().envs(&script.environment).env(MARK, mark);
    command.current_dir(&script.folder).env("PWD", &script.folder).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|source| ProcessFailure::Start { program, folder: script.folder.clone(), source })
}

/// The first process of a script, which may have ended already and is not reaped.
fn leader_of(child: &Child) -> Result<ProcessIdentity, ProcessFailure> {
    let unseen = |source: io::Error| system("looking at a process just started", source);
    let found = look_up(child.id().cast_signed()).map_err(unseen)?;
    Ok(found.ok_or_else(|| unseen(io::ErrorKind::NotFound.into()))?.identity())
}

/// Reads and feeds a started script until it has ended. Says too whether all is ended that is to end with it.
fn follow(
    script: &ProcessScript,
    cancel: &ScriptCancel,
    child: &mut Child,
    leader: ProcessIdentity,
    mark: &str,
    started: Instant,
) -> Result<(ProcessOutcome, bool), ProcessFailure> {
    let group = Pid::from_raw(leader.pid).ok_or_else(|| system("a process without number", io::ErrorKind::NotFound))?;
    let mut pipes = ScriptPipes::new(child, script)?;
    let mut ended_because: Option<ProcessEnding> = None;
    let mut next = script.timeout.map(|timeout| started + timeout);
    let signal = |signal| {
        // The leader is not reaped yet, so the group still is this one; if it cannot be told, it has ended.
        let _ = kill_process_group(group, signal);
    };
    loop {
        let watched = if ended_because.is_none() { Some(&*cancel.0) } else { None };
        let news = pipes.turn(watched, next)?;
        let reason = match news {
            PipeEvent::Exited => break,
            PipeEvent::Pipe => continue,
            PipeEvent::Cancelled => ProcessEnding::Cancelled,
            PipeEvent::Late => ProcessEnding::TimedOut,
        };
        if ended_because.is_none() {
            ended_because = Some(reason);
            signal(Signal::TERM);
            next = Some(Instant::now() + script.grace);
        } else {
            signal(Signal::KILL);
            next = None;
        }
    }
    let duration = started.elapsed();
    // What left the group is not ours to end when the script ended by itself: a server, perhaps. When it is ended, all
    // that it started goes with it.
    let kin = ProcessKin { leader: Some(leader), mark: ended_because.map(|_| mark.to_owned()) };
    let (ending, are_all_ended) = finish(&mut pipes, group, &kin, ended_because)?;
    let (stdout, stderr) = pipes.finish();
    Ok((ProcessOutcome { ending, stdout, stderr, duration }, are_all_ended))
}

/// After the leader's end: what is left in its group may finish what it prints, and is ended. How the script ended, and
/// whether all is ended that is to end with it: how it ended stays known where that is not.
fn finish(
    pipes: &mut ScriptPipes,
    group: Pid,
    kin: &ProcessKin,
    because: Option<ProcessEnding>,
) -> Result<(ProcessEnding, bool), ProcessFailure> {
    if because.is_none() {
        pipes.drain(LEFTOVER_GRACE);
    }
    let (_, status) = waitpid(Some(group), WaitOptions::empty())
        .map_err(|error| system("waiting for a script", error))?
        .ok_or_else(|| system("waiting for a script", io::ErrorKind::WouldBlock))?;
    let mut are_all_ended = true;
    if because.is_some() || has_members(group) {
        let ended = end_all(|| kin.living(), if because.is_none() { LEFTOVER_GRACE } else { Duration::ZERO });
        // The group is ended all the same; of what left it, if that is to end, the next to look must take care.
        are_all_ended = because.is_none() || ended.is_ok();
        if has_members(group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
    pipes.drain(Duration::ZERO);
    let ending = because.unwrap_or_else(|| match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ProcessEnding::Code(code),
        (None, signal) => ProcessEnding::Signal(signal.unwrap_or_default()),
    });
    Ok((ending, are_all_ended))
}

/// Whether a group whose leader is reaped still has members. As long as it has, no process is given its number; one that
/// has the number leads another group.
fn has_members(group: Pid) -> bool {
    test_kill_process(group) == Err(Errno::SRCH) && test_kill_process_group(group).is_ok()
}

#[cfg(test)]
mod tests;
