//! What is started here goes on only while the store is this engine's. Where the store can only be its own, and at a worker,
//! there is no fence.

use std::ffi::OsString;
use std::path::Path;

use sluice_os::process::{self, ProcessScript, ScriptCancel, ScriptWard};
use sluice_os::session::{
    AgentEndCause, EndedSession, OwnershipLease, SessionEnding, SessionFailure, SessionSpec, SessionStanding,
    SessionStart,
};

use crate::perform::PerformContext;
use crate::undone::described;

const GIVEN_UP: &str = "another engine owns the store";

/// What stops everything that was started here when the store becomes another engine's.
pub trait StoreFence: Send + Sync {
    /// What something gets that is started now: it is paused when this runs out.
    fn lease(&self) -> OwnershipLease;

    /// Whether the store is surely this engine's at this moment.
    fn may_act(&self) -> bool;

    /// Waits until the store is surely this engine's. Whether it is: it may be lost.
    fn until_it_may_act(&self) -> bool;

    fn script_begins(&self);

    fn script_ends(&self);
}

/// A script that runs while this lives.
struct FencedScript<'a>(&'a dyn StoreFence);

impl Drop for FencedScript<'_> {
    fn drop(&mut self) {
        self.0.script_ends();
    }
}

impl PerformContext {
    /// What a session gets that is started now; nothing where the store can only be this engine's.
    pub fn lease(&self) -> Option<OwnershipLease> {
        self.fence.as_ref().map(|fence| fence.lease())
    }

    /// Starts a session, or adopts the one that was started under this name before. One that has ended only because the
    /// store was another engine's meanwhile has done nothing that counts: it is begun anew.
    pub fn start_session(&self, spec: &SessionSpec) -> Result<SessionStart, SessionFailure> {
        let started = self.sessions.start(spec)?;
        match &started.standing {
            SessionStanding::Gone(gone) if self.fence.is_some() && !started.fresh && was_given_up(gone) => {
                self.sessions.forget(&spec.id)?;
                self.sessions.start(spec)
            }
            SessionStanding::Gone(_) | SessionStanding::Living(_) => Ok(started),
        }
    }

    /// Waits until the store is surely this engine's. Whether it is; otherwise nothing is to be begun any more.
    pub fn until_it_may_act(&self) -> bool {
        self.fence.as_ref().is_none_or(|fence| fence.until_it_may_act())
    }

    pub fn may_act(&self) -> bool {
        self.fence.as_ref().is_none_or(|fence| fence.may_act())
    }

    /// Runs a script to its end, under the home's fence if it has one.
    pub fn run_script(
        &self,
        script: &ProcessScript,
        cancel: &ScriptCancel,
    ) -> Result<process::ProcessOutcome, process::ProcessFailure> {
        let Some(fence) = &self.fence else { return process::run(script, cancel) };
        fence.script_begins();
        let _running = FencedScript(fence.as_ref());
        let ward = ScriptWard { program: shim(&self.program), lease: fence.lease() };
        process::run(&ProcessScript { ward: Some(ward), ..script.clone() }, cancel)
    }

    /// Ends everything that lives: the store is another's. What is paused or about to be has been told so already.
    pub fn end_everything(&self) {
        for id in self.sessions.living() {
            if let Err(failure) = self.sessions.end(&id, std::time::Duration::ZERO, GIVEN_UP) {
                tracing::warn!("{id} is not over: {}", described(&failure));
            }
        }
    }
}

/// Whether a session has ended because the store was another's.
pub fn was_given_up(gone: &EndedSession) -> bool {
    let asked = gone.asked.as_ref().is_some_and(|asked| asked.why == GIVEN_UP);
    asked || matches!(&gone.how, SessionEnding::Exited(exit) if exit.cause == AgentEndCause::Unkept)
}

pub fn shim(program: &Path) -> Vec<OsString> {
    vec![program.into(), "shim".into()]
}
