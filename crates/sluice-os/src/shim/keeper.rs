//! Who keeps an agent or a script: the process without which it is not to go on, for another machine is given its work then.
//!
//! Two things are kept apart. The keeper says until when the agent may go on; when that is over the agent is *paused*,
//! whether the keeper is dead, stopped, or only cannot reach whom it works for, and goes on when more is said. And when the
//! keeper is dead and none comes after it, or when what it works for has had another owner since, the agent is ended. What
//! is paused never does anything again unless it is kept.
//!
//! A worker says it for each of its sessions; an engine on a store that others can own says it for all of its home.
//!
//! A file names the keeper, so that one that comes after it can take its place. Its end is told by the kernel, and so is
//! that it has said something; the time is told by a clock that goes on while the machine sleeps. Nothing is asked of
//! anybody.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::signals::{ShimSignal, ShimSignals};
use crate::process::{PausedProcesses, ProcessIdentity, timespec, wait_for_any};
use crate::session::folder::SessionFolder;
use crate::session::record::{AgentEndCause, OwnershipLease, SessionKeeper, SessionSpec, boot_ms};

pub(super) struct KeeperWatch {
    keeper: Option<SessionKeeper>,
    /// The ownership under which it was started, if it is kept with all of a home.
    epoch: Option<u64>,
    /// Where it is said until when.
    folder: SessionFolder,
    /// What it works for has had another owner since.
    is_lost: bool,
    /// A handle of the process, while it lives.
    lives: Option<OwnedFd>,
    /// Until when another may come.
    comes_until: Instant,
    /// Until when the agent may go on.
    until_ms: u64,
    alarm: OwnedFd,
    has_lapsed: bool,
    /// Can be read when something was said.
    said: OwnedFd,
    paused: Option<(PausedProcesses, Instant)>,
    was_paused_for: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeeperState {
    Kept,
    /// It may not, for now.
    Lapsed,
    /// Its keeper is dead, and none has come after it.
    Gone,
}

impl KeeperWatch {
    /// Who keeps a session, if a keeper is needed.
    pub(super) fn of(spec: &SessionSpec, folder: &SessionFolder) -> io::Result<Option<KeeperWatch>> {
        match (&spec.lease, &spec.keeper) {
            (Some(lease), keeper) => KeeperWatch::under(lease, keeper.clone()).map(Some),
            (None, Some(keeper)) => KeeperWatch::new(Some(keeper.clone()), None, folder.clone()).map(Some),
            (None, None) => Ok(None),
        }
    }

    pub(super) fn under(lease: &OwnershipLease, keeper: Option<SessionKeeper>) -> io::Result<KeeperWatch> {
        KeeperWatch::new(keeper, Some(lease.epoch), SessionFolder(lease.folder.clone()))
    }

    fn new(keeper: Option<SessionKeeper>, epoch: Option<u64>, folder: SessionFolder) -> io::Result<KeeperWatch> {
        let said = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        inotify::add_watch(&said, folder.path(), inotify::WatchFlags::MOVED_TO)?;
        let alarm = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let (comes_until, was_paused_for) = (Instant::now(), Duration::ZERO);
        let mut kept = KeeperWatch {
            keeper,
            epoch,
            folder,
            is_lost: false,
            lives: None,
            comes_until,
            until_ms: 0,
            alarm,
            has_lapsed: false,
            said,
            paused: None,
            was_paused_for,
        };
        kept.look_for_keeper();
        kept.read();
        Ok(kept)
    }

    fn look_for_keeper(&mut self) {
        let Some(keeper) = &self.keeper else { return };
        let named = std::fs::read(&keeper.file).ok();
        let named: Option<ProcessIdentity> = named.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        self.lives = named.and_then(|keeper| keeper.open());
        self.comes_until = Instant::now() + Duration::from_millis(keeper.away_ms);
    }

    /// Reads until when it is kept. What cannot be read says nothing.
    fn read(&mut self) {
        let kept = self.folder.kept_until().ok().flatten().unwrap_or_default();
        self.until_ms = kept.until_ms;
        self.is_lost |= self.epoch.is_some_and(|epoch| kept.since > epoch);
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Never nothing: that would be no alarm at all.
        let alarm = Itimerspec { it_interval: none, it_value: timespec(Duration::from_millis(self.until_ms.max(1))) };
        let _ = timerfd_settime(&self.alarm, TimerfdTimerFlags::ABSTIME, &alarm);
    }

    /// What becomes readable when something is to be looked at.
    pub(super) fn handles(&self) -> Vec<BorrowedFd<'_>> {
        // An alarm that has rung rings on.
        let alarm = (!self.has_lapsed).then_some(&self.alarm);
        self.lives.iter().chain(alarm).chain([&self.said]).map(AsFd::as_fd).collect()
    }

    /// When it has to be looked at, though nothing happens.
    pub(super) fn next_time(&self) -> Option<Instant> {
        (self.lives.is_none() && self.keeper.is_some()).then_some(self.comes_until)
    }

    pub(super) fn look(&mut self) -> KeeperState {
        let mut sink = [0; 4096];
        let mut has_news = boot_ms() >= self.until_ms;
        while rustix::io::read(&self.said, &mut sink).is_ok_and(|count| count > 0) {
            has_news = true;
        }
        if has_news {
            self.read();
        }
        if self.is_lost || self.is_gone() {
            return KeeperState::Gone;
        }
        self.has_lapsed = boot_ms() >= self.until_ms;
        if self.has_lapsed { KeeperState::Lapsed } else { KeeperState::Kept }
    }

    /// Whether its keeper is dead and none has come after it in time.
    fn is_gone(&mut self) -> bool {
        let Some(away) = self.keeper.as_ref().map(|keeper| Duration::from_millis(keeper.away_ms)) else { return false };
        if let Some(handle) = self.lives.take() {
            if wait_for_any(&[&handle], Some(Duration::ZERO)).first() != Some(&true) {
                self.lives = Some(handle);
                return false;
            }
            self.comes_until = Instant::now() + away;
        }
        if Instant::now() < self.comes_until {
            return false;
        }
        self.look_for_keeper();
        self.lives.is_none()
    }

    /// Waits until it is kept, before anything is begun. What ended it instead, if something did.
    pub(super) fn until_kept(&mut self, signals: &mut ShimSignals) -> io::Result<Option<AgentEndCause>> {
        loop {
            match self.look() {
                KeeperState::Kept => return Ok(None),
                KeeperState::Gone => return Ok(Some(AgentEndCause::Unkept)),
                KeeperState::Lapsed => {}
            }
            for heard in signals.heard() {
                match heard {
                    ShimSignal::Asked => return Ok(Some(AgentEndCause::Asked)),
                    ShimSignal::WindowGone => return Ok(Some(AgentEndCause::TerminalGone)),
                    ShimSignal::ChildEnded | ShimSignal::WindowChanged => {}
                }
            }
            self.wait(signals)?;
        }
    }

    /// Waits until something is to be looked at, or a signal is heard.
    pub(super) fn wait(&self, signals: &ShimSignals) -> io::Result<()> {
        let signal = signals.handle();
        let handles = self.handles().into_iter().chain([signal.as_fd()]);
        let mut polled: Vec<PollFd<'_>> = handles.map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN)).collect();
        let left = self.next_time().map(|at| timespec(at.saturating_duration_since(Instant::now())));
        match poll(&mut polled, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Pauses everything below this process, if it is not paused.
    pub(super) fn pause(&mut self) {
        let own = || rustix::process::getpid().as_raw_nonzero().get();
        self.paused.get_or_insert_with(|| (PausedProcesses::below(own()), Instant::now()));
    }

    /// Lets it go on, if it was paused.
    pub(super) fn go_on(&mut self) {
        if let Some((paused, since)) = self.paused.take() {
            self.was_paused_for += since.elapsed();
            paused.go_on();
        }
    }

    /// How long it has been paused: that is not of the agent's time.
    pub(super) fn paused_for(&self) -> Duration {
        self.was_paused_for + self.paused.as_ref().map_or(Duration::ZERO, |(_, since)| since.elapsed())
    }
}
