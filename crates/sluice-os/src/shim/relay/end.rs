//! The end of an agent, and of what it has left: told by somebody, by the time, by its keeper, or by itself.
//!
//! The order is the promise of this file: the exit record is on disk before anything else is done.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::poll;
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus, getpid, kill_process_group, wait};

use super::{GIVE_UP, RECORD_TRIES, RelayPhase, SHORT_GRACE, ShimRelay};
use crate::process::{GRACE, ProcessIdentity, ProcessKin, descendants, timespec};
use crate::session::record::{AgentEnd, AgentEndCause, ExitRecord, VERSION, milliseconds, now_ms};
use crate::shim::keeper::{KeeperState, KeeperWatch};
use crate::shim::{note, pane};

impl ShimRelay {
    pub(super) fn keep_time(&mut self) {
        let now = Instant::now();
        let keeping = self.keeper.as_mut().map(KeeperWatch::look);
        match (keeping, &mut self.phase) {
            (None, _) => {}
            (Some(KeeperState::Kept), _) => self.keeper.iter_mut().for_each(KeeperWatch::go_on),
            (Some(KeeperState::Lapsed), RelayPhase::Running) => self.keeper.iter_mut().for_each(KeeperWatch::pause),
            (Some(KeeperState::Gone), RelayPhase::Running) => self.end(AgentEndCause::Unkept, Duration::ZERO),
            // It has no time any more in which to end.
            (Some(KeeperState::Lapsed | KeeperState::Gone), RelayPhase::Ending { kill_at, .. }) => {
                *kill_at = kill_at.map(|kill_at| kill_at.min(now));
            }
            (Some(KeeperState::Lapsed | KeeperState::Gone), RelayPhase::Leftovers { kill_at, .. }) => {
                *kill_at = now.min(*kill_at)
            }
        }
        match self.phase {
            RelayPhase::Running if self.time_limit().is_some_and(|limit| now >= limit) => {
                self.end(AgentEndCause::TimeLimit, GRACE)
            }
            RelayPhase::Ending { kill_at: Some(kill_at), cause } if now >= kill_at => {
                self.phase = RelayPhase::Ending { kill_at: None, cause };
                let _ = kill_process_group(self.agent, Signal::KILL);
                signal_all(&below(), Signal::KILL);
            }
            RelayPhase::Leftovers { kill_at, .. } if now >= kill_at => {
                signal_all(&self.leftovers().unwrap_or_default(), Signal::KILL);
            }
            RelayPhase::Running | RelayPhase::Ending { .. } | RelayPhase::Leftovers { .. } => {}
        }
    }

    /// The window was closed or its server has died: as any program whose terminal goes away, the agent ends.
    pub(super) fn window_gone(&mut self) {
        self.pane = None;
        if pane::was_given() {
            self.end(AgentEndCause::TerminalGone, SHORT_GRACE);
        }
    }

    /// Tells the agent to end. Being told twice only shortens the time it has.
    pub(super) fn end(&mut self, cause: AgentEndCause, grace: Duration) {
        let sooner = Instant::now() + grace;
        match &mut self.phase {
            // It may be somebody else's work by now: it is not let go on to hear of its end.
            RelayPhase::Running
                if cause == AgentEndCause::Unkept || self.keeper.as_ref().is_some_and(KeeperWatch::is_paused) =>
            {
                signal_all(&below(), Signal::KILL);
                self.phase = RelayPhase::Ending { kill_at: None, cause };
            }
            RelayPhase::Running => {
                // It is not reaped yet, so the group still is this one.
                let _ = kill_process_group(self.agent, Signal::TERM);
                let _ = kill_process_group(self.agent, Signal::CONT); // one that is stopped hears nothing
                self.phase = RelayPhase::Ending { kill_at: Some(sooner), cause };
            }
            RelayPhase::Ending { kill_at: Some(kill_at), .. } => *kill_at = sooner.min(*kill_at),
            RelayPhase::Ending { kill_at: None, .. } | RelayPhase::Leftovers { .. } => {}
        }
    }

    /// Takes note of every child that has ended: the agent, and what came to us because its own parent is gone.
    pub(super) fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.agent => self.agent_ended(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn agent_ended(&mut self, status: WaitStatus) {
        let end = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => AgentEnd::Code(code),
            (None, signal) => AgentEnd::Signal(signal.unwrap_or_default()),
        };
        let cause = match self.phase {
            RelayPhase::Ending { cause, .. } => cause,
            RelayPhase::Running | RelayPhase::Leftovers { .. } => AgentEndCause::Itself,
        };
        let duration_ms = milliseconds(self.since.elapsed());
        self.record(&ExitRecord { version: VERSION, end, cause, at_ms: now_ms(), duration_ms });
        if self.spec.may_leave && cause == AgentEndCause::Itself {
            self.left = Some(ProcessKin { leader: Some(self.identity.clone()), mark: None });
        }
        signal_all(&self.leftovers().unwrap_or_default(), Signal::TERM);
        self.terminal = None; // our hold on the agent's side: its output ends when all others have let go
        let now = Instant::now();
        self.phase = RelayPhase::Leftovers { kill_at: now + SHORT_GRACE, give_up: now + SHORT_GRACE + GIVE_UP };
    }

    /// What the agent has left and is to end: everything below the shim, or what stayed where the agent was.
    pub(super) fn leftovers(&self) -> io::Result<Vec<ProcessIdentity>> {
        match &self.left {
            Some(kin) => kin.living(),
            None => descendants(getpid().as_raw_nonzero().get()),
        }
    }

    fn record(&self, record: &ExitRecord) {
        for _ in 0..RECORD_TRIES {
            match self.folder.write_exit(record) {
                Ok(()) => return,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return, // the whole folder was taken away
                Err(error) => note(&self.folder, &format!("the exit record cannot be written: {error}")),
            }
            let _ = poll(&mut [], Some(&timespec(Duration::from_secs(1))));
        }
    }
}

/// Everything below the shim, also what left its group or session: what loses its parent becomes the shim's child. What
/// cannot be found at the moment is a leftover when the agent has ended, and is looked for again then.
fn below() -> Vec<ProcessIdentity> {
    descendants(getpid().as_raw_nonzero().get()).unwrap_or_default()
}

fn signal_all(all: &[ProcessIdentity], signal: Signal) {
    for identity in all {
        identity.signal(signal);
    }
}
