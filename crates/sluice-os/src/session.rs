//! Sessions: agents at work, each under a shim of ours that outlives the engine.
//!
//! This is the engine's side: start, adopt, watch, end, type. What is known about a session stands in its folder, so a
//! new engine knows as much as the old one. Nothing here knows what a session is for.
//!
//! # How an end is noticed
//!
//! The engine holds a handle (pidfd) of every shim and waits for all of them in one thread. There is no socket on which
//! a shim would report: a report can be lost with the engine, and a killed shim makes none, while the end of a process
//! is told by the kernel in each case. What happened is then read from the folder.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

mod activity;
mod asker;
mod end;
pub(crate) mod folder;
mod keep;
pub(crate) mod output;
pub(crate) mod record;
pub(crate) mod say;
mod screen;
mod standing;
mod start;
mod watch;

pub use activity::SessionActivity;
pub use asker::ProcessAsker;
pub use end::ASKER_EXITS_WITHIN;
pub use keep::LeaseFolder;
pub use output::{SessionChunk, SessionStream};
pub use record::{
    AgentEnd, AgentEndCause, ExitRecord, KeeperTerm, OwnershipLease, SessionEndRequest, SessionId, SessionKeeper,
    SessionLimits, SessionPane, SessionPlace, SessionSpec, SessionWindow, TypedText, boot_ms,
};
pub use say::{LONGEST_TEXT, SayDelivery, SayRequest};
pub use screen::{LAST_LINE, SessionScreen};
pub use standing::{EndedSession, LivingSession, SessionEnding, SessionStanding};
pub use start::SessionStart;

use crate::tmux::{self, Tmux};
use folder::SessionFolder;
use record::StartRecord;
use standing::SessionLook;
use watch::SessionWatcher;

#[derive(Debug)]
pub struct SessionConfig {
    /// The folder that holds one folder for each session.
    pub folder: PathBuf,
    /// The command that runs a shim; the session's folder is its last argument. At least two words, such as
    /// `sluice shim`: a single one tmux would hand to a shell.
    pub program: Vec<OsString>,
    /// The server whose windows show sessions. Without it they run all the same.
    pub tmux: Option<Tmux>,
}

#[derive(Debug, thiserror::Error)]
pub enum SessionFailure {
    #[error("{0}")]
    Refused(String),
    #[error("there is no session {0}")]
    Unknown(SessionId),
    #[error("session {id} could not be started: {why}")]
    Start { id: SessionId, why: String },
    /// The shim has come, and has not started the agent yet.
    #[error("session {id} has not started its agent within {} seconds; the machine is busy", limit.as_secs())]
    Late { id: SessionId, limit: Duration },
    #[error("session {id} is not over: process {pid} would not end")]
    Stubborn { id: SessionId, pid: i32 },
    #[error(transparent)]
    Tmux(#[from] tmux::TmuxFailure),
    #[error("{doing}")]
    System { doing: String, source: io::Error },
}

/// All sessions of one home. Dropping it ends no session: the next one adopts them.
#[derive(Debug)]
pub struct Sessions {
    config: SessionConfig,
    watcher: SessionWatcher,
    saying: say::PendingSays,
}

impl Sessions {
    /// The sessions in a folder, which is made if it is not there.
    pub fn new(mut config: SessionConfig) -> Result<Self, SessionFailure> {
        if config.program.len() < 2 {
            return Err(SessionFailure::Refused("the command that runs a shim needs at least two words".to_owned()));
        }
        let doing = || format!("opening the sessions in {}", config.folder.display());
        std::fs::create_dir_all(&config.folder).map_err(|source| system(doing(), source))?;
        config.folder = config.folder.canonicalize().map_err(|source| system(doing(), source))?;
        let watcher = SessionWatcher::new().map_err(|source| system("watching sessions", source))?;
        let sessions = Self { config, watcher, saying: say::PendingSays::default() };
        // Whoever asks must be known from the first moment, also by sessions of an engine before this one.
        for id in sessions.list()? {
            let folder = sessions.folder(&id);
            match standing::look(&folder) {
                Ok(standing::SessionLook::Living(record)) => sessions.watcher.know(&id, &record),
                Ok(standing::SessionLook::Unclaimed | standing::SessionLook::Starting(_)) => {
                    sessions.watcher.expect(&id, &folder)
                }
                Ok(standing::SessionLook::Over) | Err(_) => {}
            }
        }
        Ok(sessions)
    }

    pub fn tmux(&self) -> Option<&Tmux> {
        self.config.tmux.as_ref()
    }

    /// Every session that has a folder, whether it lives or not.
    pub fn list(&self) -> Result<Vec<SessionId>, SessionFailure> {
        let failed = |source| system("listing sessions", source);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.config.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            found.extend(name.to_str().and_then(|name| SessionId::new(name).ok()));
        }
        found.sort();
        Ok(found)
    }

    /// Whether it was asked for before, whatever became of it.
    pub fn is_known(&self, id: &SessionId) -> bool {
        self.folder(id).path().is_dir()
    }

    pub fn is_living(&self, id: &SessionId) -> bool {
        self.watcher.knows(id)
    }

    /// The sessions that are alive, with the folder that each works in.
    pub fn at_work(&self) -> Vec<(SessionId, PathBuf)> {
        let folder = |id: &SessionId| self.folder(id).spec().ok().flatten().map(|spec| spec.folder);
        self.watcher.known().into_iter().filter_map(|(id, _)| folder(&id).map(|folder| (id, folder))).collect()
    }

    /// Whether a session that is over went down with what was around it, and not by itself: the machine was started
    /// anew, or the tmux server that it was shown in is gone.
    pub fn was_uprooted(&self, id: &SessionId, gone: &EndedSession) -> bool {
        let Ok(Some(started)) = self.folder(id).started() else { return false };
        let in_another_boot = !started.shim.is_of_this_boot();
        match &gone.how {
            SessionEnding::Lost { .. } => in_another_boot,
            SessionEnding::Exited(exit) if exit.cause == AgentEndCause::TerminalGone => {
                in_another_boot || started.pane.is_some_and(|pane| !pane.server.lives())
            }
            // A machine that goes down tells everybody first.
            SessionEnding::Exited(exit) => {
                in_another_boot && matches!(exit.end, AgentEnd::Signal(_) | AgentEnd::Code(129..))
            }
        }
    }

    pub fn living(&self) -> Vec<SessionId> {
        self.watcher.known().into_iter().map(|(id, _)| id).collect()
    }

    /// The last bytes of what an agent printed.
    pub fn output_tail(
        &self,
        id: &SessionId,
        stream: SessionStream,
        limit: usize,
    ) -> Result<SessionChunk, SessionFailure> {
        output::read_tail(self.known(id)?.path(), stream, limit).map_err(|source| reading(id, source))
    }

    pub fn output_from(
        &self,
        id: &SessionId,
        stream: SessionStream,
        from: u64,
        limit: usize,
    ) -> Result<SessionChunk, SessionFailure> {
        output::read_from(self.known(id)?.path(), stream, from, limit).map_err(|source| reading(id, source))
    }

    /// For how many seconds an agent has printed nothing.
    pub fn idle_seconds(&self, id: &SessionId) -> Result<u64, SessionFailure> {
        let last = output::last_change(self.known(id)?.path());
        Ok(last.and_then(|last| SystemTime::now().duration_since(last).ok()).unwrap_or_default().as_secs())
    }

    /// Types a text into the agent's terminal and waits until the agent has read it, or for as long as it says.
    pub fn say(&self, id: &SessionId, text: &SayRequest) -> Result<SayDelivery, SessionFailure> {
        let folder = self.known(id)?;
        let said = say::say(id, &folder, text, &self.saying);
        said.map_err(|source| system(format!("typing into session {id}"), source))
    }

    /// A caller that waits until this agent has read a text waits no longer: it is about to be ended.
    pub fn cut_short(&self, id: &SessionId) {
        self.saying.cut_short(id);
    }

    /// Where a person looks at a session: the socket of the tmux server, and the pane there; or why there is none.
    pub fn pane(&self, id: &SessionId) -> Result<(PathBuf, String), SessionFailure> {
        let (tmux, pane) = self.shown(id)?;
        Ok((tmux.socket().to_owned(), pane))
    }

    /// What stands on the screen of a living session now; or why there is none to look at.
    pub fn screen(&self, id: &SessionId) -> Result<String, SessionFailure> {
        let (tmux, pane) = self.shown(id)?;
        Ok(tmux.screen(&pane)?)
    }

    /// How many bytes an agent has printed.
    pub fn printed(&self, id: &SessionId) -> u64 {
        output::printed(self.folder(id).path())
    }

    /// For how long an agent has printed nothing; `None` if it has printed nothing yet.
    pub fn still_for(&self, id: &SessionId) -> Option<Duration> {
        let last = output::last_change(self.folder(id).path())?;
        Some(SystemTime::now().duration_since(last).unwrap_or_default())
    }

    pub fn forget(&self, id: &SessionId) -> Result<(), SessionFailure> {
        let folder = self.known(id)?;
        match self.adopt(id)? {
            SessionStanding::Living(_) => {
                Err(SessionFailure::Refused(format!("session {id} still runs: end it first")))
            }
            SessionStanding::Gone(_) => std::fs::remove_dir_all(folder.path())
                .map_err(|source| system(format!("removing the folder of session {id}"), source)),
        }
    }

    /// The tmux pane of a living session. Names of an earlier server mean something else in this one. It only looks: one that is
    /// about to be started is not given up because a person wants to see it.
    fn shown(&self, id: &SessionId) -> Result<(&Tmux, String), SessionFailure> {
        let log = "what it prints is in its log";
        let Some(tmux) = &self.config.tmux else {
            return Err(SessionFailure::Refused(format!("there is no tmux to look at session {id} with; {log}")));
        };
        let folder = self.known(id)?;
        loop {
            let why = match standing::look(&folder).map_err(|source| reading(id, source))? {
                SessionLook::Living(StartRecord { pane: Some(pane), .. }) if pane.server.lives() => {
                    return Ok((tmux, pane.pane));
                }
                SessionLook::Starting(shim) => {
                    standing::await_start(id, &folder, &shim)?;
                    continue;
                }
                SessionLook::Living(_) => "has no tmux window",
                SessionLook::Unclaimed => "is not started yet",
                SessionLook::Over => "has ended",
            };
            return Err(SessionFailure::Refused(format!("session {id} {why}; {log}")));
        }
    }

    fn folder(&self, id: &SessionId) -> SessionFolder {
        SessionFolder(self.config.folder.join(id.as_str()))
    }

    fn known(&self, id: &SessionId) -> Result<SessionFolder, SessionFailure> {
        let folder = self.folder(id);
        if folder.path().is_dir() { Ok(folder) } else { Err(SessionFailure::Unknown(id.clone())) }
    }
}

/// How long an agent may take to end, unless the caller knows better.
pub const GRACE: Duration = crate::process::GRACE;

fn system(doing: impl Into<String>, source: impl Into<io::Error>) -> SessionFailure {
    SessionFailure::System { doing: doing.into(), source: source.into() }
}

fn reading(id: &SessionId, source: impl Into<io::Error>) -> SessionFailure {
    system(format!("reading the folder of session {id}"), source)
}
