//! Ending a session, whoever started it and whether its shim still lives.

use std::time::Duration;

use rustix::process::Signal;

use super::record::{SessionEndRequest, SessionId, StartRecord, milliseconds, now_ms};
use super::standing::{EndedSession, LivingSession, SessionStanding};
use super::{SessionFailure, Sessions, reading, system};
use crate::process::{ProcessIdentity, ProcessKin, end_all, wait_for_any};

/// How long an asking process may take to exit before its session is ended all the same.
pub const ASKER_EXITS_WITHIN: Duration = Duration::from_secs(2);
/// How much longer than the grace a shim may take before it is ended by force.
const SHIM_MARGIN: Duration = Duration::from_secs(2);

impl Sessions {
    /// Ends a session: TERM to the agent's group, KILL after the grace, and nothing of it is left when this returns.
    /// One that is over stays as it was. That we want it is on disk before anything is done.
    pub fn end(&self, id: &SessionId, grace: Duration, why: &str) -> Result<EndedSession, SessionFailure> {
        let folder = self.known(id)?;
        let over = folder.exit().map_err(|source| reading(id, source))?.is_some();
        if !over && folder.asked().map_err(|source| reading(id, source))?.is_none() {
            let asked = SessionEndRequest { at_ms: now_ms(), grace_ms: milliseconds(grace), why: why.to_owned() };
            folder.write_asked(&asked).map_err(|source| reading(id, source))?;
        }
        match self.adopt(id)? {
            SessionStanding::Gone(gone) => Ok(gone),
            SessionStanding::Living(living) => {
                let started = folder.started().map_err(|source| reading(id, source))?;
                self.end_living(id, &living, started, grace)
            }
        }
    }

    /// Ends a session that asked for it itself, once the process that asked has exited, or after
    /// [`ASKER_EXITS_WITHIN`]: it shall still see its answer.
    pub fn end_when_gone(
        &self,
        id: &SessionId,
        asker: &ProcessIdentity,
        grace: Duration,
        why: &str,
    ) -> Result<EndedSession, SessionFailure> {
        if let Some(asker) = asker.open() {
            wait_for_any(&[asker], Some(ASKER_EXITS_WITHIN));
        }
        self.end(id, grace, why)
    }

    fn end_living(
        &self,
        id: &SessionId,
        living: &LivingSession,
        started: Option<StartRecord>,
        grace: Duration,
    ) -> Result<EndedSession, SessionFailure> {
        // The shim does it: it is the parent, so it cannot hit another process, and it knows its descendants.
        if let Some(shim) = living.shim.open() {
            living.shim.signal(Signal::TERM);
            living.shim.signal(Signal::CONT); // one that is stopped hears nothing
            wait_for_any(&[shim], Some(grace + SHIM_MARGIN));
        }
        if living.shim.lives() {
            // It does not work (it was stopped, perhaps): it goes with everything else.
            let mark = started.map(|started| started.mark);
            let kin = ProcessKin { leader: Some(living.agent.clone()), mark };
            let everyone = || {
                let found = kin.living()?.into_iter().chain(Some(living.shim.clone()));
                Ok(found.filter(ProcessIdentity::lives).collect())
            };
            let left =
                end_all(everyone, Duration::ZERO).map_err(|source| system(format!("ending session {id}"), source))?;
            if let Some(stubborn) = left.first() {
                return Err(SessionFailure::Stubborn { id: id.clone(), pid: stubborn.pid });
            }
        }
        match self.adopt(id)? {
            SessionStanding::Gone(gone) => Ok(gone),
            SessionStanding::Living(living) => Err(SessionFailure::Stubborn { id: id.clone(), pid: living.shim.pid }),
        }
    }
}
