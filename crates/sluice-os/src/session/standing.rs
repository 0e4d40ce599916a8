//! How a session stands, as its folder and the processes say: it lives, or it is over and how.

use std::time::Duration;

use rustix::fs::inotify;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::folder::SessionFolder;
use super::keep::is_held;
use super::record::{AgentEndCause, ExitRecord, SessionClaim, SessionEndRequest, SessionId, SessionPane, StartRecord};
use super::{SessionFailure, Sessions, reading, system};
use crate::process::{ProcessIdentity, ProcessKin, end_all, wait_for_any};

/// How long a shim may take from its first sign of life to the agent's start.
pub(super) const START_WITHIN: Duration = Duration::from_secs(10);
/// How long what a dead shim left may take to end.
const ORPHAN_GRACE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStanding {
    Living(LivingSession),
    /// It is over, and no process of it is left.
    Gone(EndedSession),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivingSession {
    pub shim: ProcessIdentity,
    pub agent: ProcessIdentity,
    /// When it started, in milliseconds since 1970.
    pub started_at_ms: u64,
    pub pane: Option<SessionPane>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSession {
    pub how: SessionEnding,
    /// That we wanted it to end, if we did.
    pub asked: Option<SessionEndRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEnding {
    /// Its agent ended and its shim wrote down how.
    Exited(ExitRecord),
    /// No shim could write down how.
    Lost { why: String },
}

impl From<StartRecord> for LivingSession {
    fn from(record: StartRecord) -> Self {
        Self { shim: record.shim, agent: record.agent, started_at_ms: record.at_ms, pane: record.pane }
    }
}

impl Sessions {
    /// Whether a shim has come for this session, whatever became of it. It only looks: one for which none has come can still be
    /// started.
    pub fn has_begun(&self, id: &SessionId) -> bool {
        match self.known(id).ok().and_then(|folder| look(&folder).ok()) {
            Some(SessionLook::Starting(_) | SessionLook::Living(_) | SessionLook::Over) => true,
            Some(SessionLook::Unclaimed) | None => false,
        }
    }

    /// How a session stands. One that was never started is given up, so that it cannot start later; what a dead shim
    /// left is ended first. A shim that is just starting is waited for.
    pub fn adopt(&self, id: &SessionId) -> Result<SessionStanding, SessionFailure> {
        let folder = self.known(id)?;
        loop {
            match look(&folder).map_err(|source| reading(id, source))? {
                SessionLook::Living(record) => {
                    self.watcher.know(id, &record);
                    return Ok(SessionStanding::Living(record.into()));
                }
                SessionLook::Over => return settle(id, &folder).map(SessionStanding::Gone),
                SessionLook::Starting(shim) => await_start(id, &folder, &shim)?,
                SessionLook::Unclaimed => {
                    folder.take_claim(&SessionClaim::Nobody).map_err(|source| reading(id, source))?;
                }
            }
        }
    }
}

pub(super) enum SessionLook {
    Unclaimed,
    /// A shim has come, and has not started the agent yet.
    Starting(ProcessIdentity),
    /// The shim lives and has started the agent.
    Living(StartRecord),
    /// The shim is dead, or none may come any more.
    Over,
}

pub(super) fn look(folder: &SessionFolder) -> std::io::Result<SessionLook> {
    let shim = match folder.claim()? {
        None => return Ok(SessionLook::Unclaimed),
        Some(SessionClaim::Nobody) => return Ok(SessionLook::Over),
        Some(SessionClaim::Shim { shim }) => shim,
    };
    // First whether it lives, then what it wrote: what a dead shim wrote is complete.
    let lives = shim.lives();
    Ok(match folder.started()? {
        _ if !lives => SessionLook::Over,
        Some(record) => SessionLook::Living(record),
        // There may be an exit without a start: the shim is about to end then.
        None => SessionLook::Starting(shim),
    })
}

/// Waits until the folder changes in a way that matters, or the shim ends.
pub(super) fn await_start(
    id: &SessionId,
    folder: &SessionFolder,
    shim: &ProcessIdentity,
) -> Result<(), SessionFailure> {
    let failed = |error: rustix::io::Errno| system(format!("watching the folder of session {id}"), error);
    let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
    let changes = inotify::init(flags).map_err(failed)?;
    let interesting = inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::CREATE;
    inotify::add_watch(&changes, folder.path(), interesting).map_err(failed)?;
    let Some(ended) = shim.open() else { return Ok(()) };
    let handles = [changes, ended];
    // Only now is nothing missed: what happened before the watch is seen by this look.
    let before @ (_, is_started) = signs(folder).map_err(|source| reading(id, source))?;
    let mut deadline = std::time::Instant::now() + START_WITHIN;
    loop {
        if is_started || signs(folder).map_err(|source| reading(id, source))? != before {
            return Ok(());
        }
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() && is_held(folder) {
            deadline = std::time::Instant::now() + START_WITHIN; // it starts when somebody says that it may
            continue;
        }
        if left.is_zero() {
            return Err(SessionFailure::Late { id: id.clone(), limit: START_WITHIN });
        }
        let ready = wait_for_any(&handles, Some(left));
        if ready.get(1) == Some(&true) {
            return Ok(());
        }
        let mut sink = [0; 4096];
        while rustix::io::read(&handles[0], &mut sink).is_ok_and(|count| count > 0) {}
    }
}

/// What a start leaves in a folder, in this order: whether it is claimed, and whether it is started.
fn signs(folder: &SessionFolder) -> std::io::Result<(bool, bool)> {
    Ok((folder.claim()?.is_some(), folder.started()?.is_some()))
}

/// Of a session whose shim is dead: ends what is left, and says how it ended.
pub(super) fn settle(id: &SessionId, folder: &SessionFolder) -> Result<EndedSession, SessionFailure> {
    let read = |source| reading(id, source);
    let claim = folder.claim().map_err(read)?;
    let started = folder.started().map_err(read)?;
    if let Some(SessionClaim::Shim { shim }) = &claim {
        reap(shim);
    }
    let exit = folder.exit().map_err(read)?;
    if let Some(started) = &started {
        let ended_by_itself = exit.as_ref().is_some_and(|exit| exit.cause == AgentEndCause::Itself);
        let may_leave = ended_by_itself && folder.spec().map_err(read)?.is_some_and(|spec| spec.may_leave);
        let mark = (!may_leave).then(|| started.mark.clone());
        let kin = ProcessKin { leader: Some(started.agent.clone()), mark };
        let left = end_all(|| kin.living(), ORPHAN_GRACE)
            .map_err(|source| system(format!("ending what session {id} left"), source))?;
        if let Some(stubborn) = left.first() {
            return Err(SessionFailure::Stubborn { id: id.clone(), pid: stubborn.pid });
        }
    }
    let asked = folder.asked().map_err(read)?;
    let how = match (exit, claim, started) {
        (Some(exit), ..) => SessionEnding::Exited(exit),
        (None, None | Some(SessionClaim::Nobody), _) => SessionEnding::Lost { why: "it was never started".to_owned() },
        (None, Some(SessionClaim::Shim { shim }), None) => {
            SessionEnding::Lost { why: format!("its shim (process {}) died before it had started the agent", shim.pid) }
        }
        (None, Some(SessionClaim::Shim { shim }), Some(_)) => {
            SessionEnding::Lost { why: format!("its shim (process {}) died", shim.pid) }
        }
    };
    Ok(EndedSession { how, asked })
}

/// A shim that we started ourselves stays as an entry in the process table until we look at it.
pub(super) fn reap(shim: &ProcessIdentity) {
    let ended = crate::process::stat(shim.pid).is_some_and(|stat| stat.ended && stat.identity() == *shim);
    if let (true, Some(pid)) = (ended, Pid::from_raw(shim.pid)) {
        // Of another's child we learn nothing, and need not.
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}
