//! The shim's loop while its agent runs: copy, keep, type, and see the end.
//!
//! One thread waits for everything at once. At the end the exit record is on disk before anything else is done; then what
//! the agent left running is ended; then the rest of the output is kept.

mod end;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::process::Pid;
use rustix::termios::{Winsize, tcsetwinsize};

use super::control::{ReceivedSay, ShimControl};
use super::keeper::KeeperWatch;
use super::launch::{AgentChannels, RunningAgent};
use super::log::ShimLog;
use super::note;
use super::pane::{self, ShimPane};
use super::scan::TerminalScanner;
use super::signals::{ShimSignal, ShimSignals};
use super::typing::{AGENT_HAS_ENDED, SayTyping, ShimKeyboard, TypingNext, not};
use crate::process::{GRACE, ProcessIdentity, ProcessKin, timespec};
use crate::redact::Redactor;
use crate::session::SessionStream;
use crate::session::folder::SessionFolder;
use crate::session::record::{AgentEndCause, SessionSpec};
use crate::session::say::SayDelivery;

/// How long an agent may take to end when its window has gone, and what it left running when it has ended.
const SHORT_GRACE: Duration = Duration::from_millis(500);
/// How long killed processes may take to disappear, and pipes that strangers hold to be closed.
const GIVE_UP: Duration = Duration::from_secs(5);
/// How often the processes that are left are looked for, and killed when it is time.
const LOOK_AGAIN: Duration = Duration::from_millis(25);
/// Keys that may wait for an agent that does not read. More stay in the window.
const MOST_KEYS: usize = 64 * 1024;
const MOST_TEXTS: usize = 16;
/// How often and how long a full disk is tried again, in seconds, before the exit record is given up.
const RECORD_TRIES: u32 = 60;

enum RelayPhase {
    /// The agent is at work.
    Running,
    /// The agent was told to end.
    Ending { kill_at: Option<Instant>, cause: AgentEndCause },
    /// The agent has ended and that is on disk; what it left running is being ended.
    Leftovers { kill_at: Instant, give_up: Instant },
}

/// Something the agent writes to, and where it is kept.
struct RelaySource {
    handle: Option<OwnedFd>,
    log: ShimLog,
}

/// The side of the agent's terminal that the agent sees, and what is known about it.
struct AgentTerminal {
    agents: OwnedFd,
    scanner: TerminalScanner,
    keys: VecDeque<u8>,
}

#[derive(Clone, Copy)]
enum RelayWait {
    Signal,
    Source(usize),
    PaneKeys,
    PaneRoom,
    KeyRoom,
    Control,
    Keeper,
}

pub(super) struct ShimRelay {
    folder: SessionFolder,
    signals: ShimSignals,
    spec: SessionSpec,
    agent: Pid,
    identity: ProcessIdentity,
    /// What it has left and is to end, if that is not everything below the shim.
    left: Option<ProcessKin>,
    since: Instant,
    sources: Vec<RelaySource>,
    terminal: Option<AgentTerminal>,
    pane: Option<ShimPane>,
    control: ShimControl,
    typing: Option<SayTyping>,
    /// What waits to be typed, and when each came.
    texts: VecDeque<(Instant, ReceivedSay)>,
    /// When the typing wants to go on, and whether it waits for room.
    typing_next: Option<(Instant, bool)>,
    /// What was delivered under a name, the latest last.
    delivered: VecDeque<(String, SayDelivery)>,
    keeper: Option<KeeperWatch>,
    phase: RelayPhase,
}

impl ShimRelay {
    pub(super) fn new(
        folder: SessionFolder,
        signals: ShimSignals,
        control: ShimControl,
        keeper: Option<KeeperWatch>,
        running: RunningAgent,
    ) -> io::Result<Self> {
        let limits = running.spec.limits;
        let secrets =
            Redactor::of(running.spec.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let kept = (limits.output_head, limits.output_tail);
        let log = |stream| ShimLog::create(folder.path(), stream, kept, secrets.clone());
        let (sources, terminal) = match running.ends {
            AgentChannels::Terminal { ours, agents } => {
                let terminal = AgentTerminal { agents, scanner: TerminalScanner::default(), keys: VecDeque::new() };
                (vec![RelaySource { handle: Some(ours), log: log(SessionStream::Output)? }], Some(terminal))
            }
            AgentChannels::Headless { output, errors } => {
                let output = RelaySource { handle: Some(output), log: log(SessionStream::Output)? };
                (vec![output, RelaySource { handle: Some(errors), log: log(SessionStream::Errors)? }], None)
            }
        };
        for source in &sources {
            if let Some(handle) = &source.handle {
                ioctl_fionbio(handle, true)?;
            }
        }
        let told = |error: &io::Error| note(&folder, &format!("no window: {error}"));
        let pane = ShimPane::open(&running.spec.place).inspect_err(told).ok().flatten();
        let first = running.spec.typed.as_ref().filter(|_| terminal.is_some()).map(ReceivedSay::first);
        Ok(Self {
            folder,
            signals,
            keeper,
            spec: running.spec,
            agent: running.agent,
            identity: running.identity,
            left: None,
            since: running.since,
            sources,
            terminal,
            pane,
            control,
            typing: None,
            texts: first.into_iter().map(|first| (Instant::now(), first)).collect(),
            typing_next: None,
            delivered: VecDeque::new(),
            phase: RelayPhase::Running,
        })
    }

    /// Until nothing of the session is left.
    pub(super) fn run(mut self) -> io::Result<()> {
        if self.pane.is_none() {
            self.window_gone(); // it may have gone before we looked
        }
        self.reap();
        self.type_on();
        self.keep_time();
        while !self.is_over() {
            let ready = self.wait()?;
            for awaited in ready {
                self.serve(awaited);
            }
            self.type_on();
            self.keep_time();
        }
        if let Some(typing) = self.typing.take() {
            typing.agent_ended(self.sources.first().map_or(0, |source| source.log.came()));
        }
        for source in &mut self.sources {
            let _ = source.log.finish();
        }
        for (_, received) in self.texts.drain(..) {
            received.caller.answer(&not(AGENT_HAS_ENDED));
        }
        if let Some(pane) = &mut self.pane {
            let _ = pane.flush();
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        match self.phase {
            RelayPhase::Running | RelayPhase::Ending { .. } => false,
            RelayPhase::Leftovers { give_up, .. } => {
                let read_out = self.sources.iter().all(|source| source.handle.is_none());
                (read_out && self.leftovers().is_ok_and(|left| left.is_empty())) || Instant::now() >= give_up
            }
        }
    }

    fn wait(&self) -> io::Result<Vec<RelayWait>> {
        let mut waiting: Vec<(RelayWait, BorrowedFd<'_>, PollFlags)> = Vec::new();
        let signals = self.signals.handle();
        waiting.push((RelayWait::Signal, signals.as_fd(), PollFlags::IN));
        let blocked = self.pane.as_ref().is_some_and(ShimPane::is_full);
        for (index, source) in self.sources.iter().enumerate().filter(|_| !blocked) {
            waiting.extend(source.handle.as_ref().map(|it| (RelayWait::Source(index), it.as_fd(), PollFlags::IN)));
        }
        if let Some(pane) = &self.pane {
            if self.terminal.as_ref().is_some_and(|it| it.keys.len() < MOST_KEYS) {
                waiting.push((RelayWait::PaneKeys, rustix::stdio::stdin(), PollFlags::IN));
            }
            if pane.is_waiting() {
                waiting.push((RelayWait::PaneRoom, rustix::stdio::stdout(), PollFlags::OUT));
            }
        }
        let keys_wait = self.may_press() && self.terminal.as_ref().is_some_and(|it| !it.keys.is_empty());
        if keys_wait || self.typing_next.is_some_and(|(_, room)| room) {
            let ours = self.sources.first().and_then(|source| source.handle.as_ref());
            waiting.extend(ours.map(|ours| (RelayWait::KeyRoom, ours.as_fd(), PollFlags::OUT)));
        }
        let callers = self.control.handles().into_iter();
        waiting.extend(callers.map(|handle| (RelayWait::Control, handle, PollFlags::IN)));
        let keeper = self.keeper.iter().flat_map(KeeperWatch::handles);
        waiting.extend(keeper.map(|handle| (RelayWait::Keeper, handle, PollFlags::IN)));
        let mut polled: Vec<PollFd<'_>> =
            waiting.iter().map(|(_, handle, flags)| PollFd::from_borrowed_fd(*handle, *flags)).collect();
        let left = self.next_time().map(|at| timespec(at.saturating_duration_since(Instant::now())));
        match poll(&mut polled, left.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(vec![RelayWait::Signal]),
            Err(error) => return Err(error.into()),
        }
        let ready = waiting.iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
        Ok(ready.map(|((awaited, ..), _)| *awaited).collect())
    }

    /// When something is to be done even if nothing happens.
    fn next_time(&self) -> Option<Instant> {
        let phase = match self.phase {
            RelayPhase::Running => {
                self.time_limit().into_iter().chain(self.keeper.as_ref().and_then(KeeperWatch::next_time)).min()
            }
            RelayPhase::Ending { kill_at, .. } => kill_at,
            RelayPhase::Leftovers { give_up, .. } => Some(give_up.min(Instant::now() + LOOK_AGAIN)),
        };
        let waiting = self.texts.iter().map(|(came, received)| received.give_up(*came));
        phase.into_iter().chain(self.typing_next.map(|(at, _)| at)).chain(waiting).min()
    }

    fn time_limit(&self) -> Option<Instant> {
        let paused = self.keeper.as_ref().map_or(Duration::ZERO, KeeperWatch::paused_for);
        self.spec.limits.run_for_ms.map(|limit| self.since + Duration::from_millis(limit) + paused)
    }

    fn serve(&mut self, awaited: RelayWait) {
        match awaited {
            RelayWait::Signal => self.hear(),
            RelayWait::Source(index) => self.take_output(index),
            RelayWait::PaneKeys => match self.pane.as_ref().map(ShimPane::keys) {
                Some(Ok(keys)) => self.terminal.iter_mut().for_each(|terminal| terminal.keys.extend(&keys)),
                Some(Err(_)) => self.window_gone(),
                None => {}
            },
            RelayWait::PaneRoom => {
                if self.pane.as_mut().is_some_and(|pane| pane.flush().is_err()) {
                    self.window_gone();
                }
            }
            RelayWait::KeyRoom => self.press_keys(),
            RelayWait::Keeper => {} // that is looked at whenever something happens
            RelayWait::Control => {
                for received in self.control.serve() {
                    self.take_text(received);
                }
            }
        }
    }

    fn hear(&mut self) {
        for heard in self.signals.heard() {
            match heard {
                ShimSignal::ChildEnded => self.reap(),
                ShimSignal::WindowGone => self.window_gone(),
                ShimSignal::Asked => {
                    let asked = self.folder.asked().ok().flatten();
                    let grace = asked.map_or(GRACE, |asked| Duration::from_millis(asked.grace_ms));
                    self.end(AgentEndCause::Asked, grace);
                }
                ShimSignal::WindowChanged => {
                    let ours = self.sources.first().and_then(|source| source.handle.as_ref());
                    if let (Some(ours), Some((rows, columns)), Some(_)) = (ours, pane::size(), &self.pane) {
                        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
                        let _ = tcsetwinsize(ours, size);
                    }
                }
            }
        }
    }

    fn take_output(&mut self, index: usize) {
        let Some(source) = self.sources.get_mut(index) else { return };
        let Some(handle) = &source.handle else { return };
        let mut buffer = vec![0; 64 * 1024];
        let count = match read(handle, &mut buffer) {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok(0) | Err(_) => {
                source.handle = None; // all who could write to it are gone
                return;
            }
            Ok(count) => count,
        };
        let bytes = &buffer[..count];
        if let Err(error) = source.log.write(bytes) {
            note(&self.folder, &format!("output is missing: {error}"));
        }
        if let Some(terminal) = &mut self.terminal {
            let answers = terminal.scanner.read(bytes);
            // Where tmux would answer, somebody must: programs wait for it.
            if self.pane.is_none() {
                terminal.keys.extend(answers.concat());
            }
        }
        if let Some(pane) = &mut self.pane {
            pane.show(bytes);
            if pane.flush().is_err() {
                self.window_gone();
            }
        }
    }

    /// Whether keys go to the agent: nothing is half typed.
    fn may_press(&self) -> bool {
        !self.typing.as_ref().is_some_and(SayTyping::has_begun)
    }

    /// Passes on what a person pressed. While a text is typed it waits: keys in the middle of it would spoil it.
    fn press_keys(&mut self) {
        if !self.may_press() {
            return;
        }
        let ours = self.sources.first().and_then(|source| source.handle.as_ref());
        let (Some(ours), Some(terminal)) = (ours, &mut self.terminal) else { return };
        match write(ours, terminal.keys.as_slices().0) {
            Ok(count) => drop(terminal.keys.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => terminal.keys.clear(),
        }
    }

    fn take_text(&mut self, received: ReceivedSay) {
        let Some(received) = self.said_before(received) else { return };
        let reason = match (&self.terminal, &self.phase) {
            (None, _) => "the agent has no terminal to type into: it runs headless",
            (Some(_), RelayPhase::Running) if self.texts.len() < MOST_TEXTS => {
                return self.texts.push_back((Instant::now(), received));
            }
            (Some(_), RelayPhase::Running) => "too many texts wait to be typed",
            (Some(_), RelayPhase::Ending { .. } | RelayPhase::Leftovers { .. }) => "the agent is ending",
        };
        received.caller.answer(&not(reason));
    }

    /// An order that was given before under the same name is not followed again: whoever asks now is told what came of
    /// it, now or when it is known. Gives any other back.
    fn said_before(&mut self, received: ReceivedSay) -> Option<ReceivedSay> {
        let Some(name) = &received.order.once else { return Some(received) };
        if let Some((_, delivery)) = self.delivered.iter().find(|(said, _)| said == name) {
            received.caller.answer(delivery);
            return None;
        }
        let waiting = self.texts.iter_mut().map(|(_, it)| (&it.order, &mut it.caller));
        let typing = self.typing.as_mut().map(SayTyping::order_and_caller);
        match typing.into_iter().chain(waiting).find(|(order, _)| order.once.as_ref() == Some(name)) {
            Some((_, caller)) => *caller = received.caller,
            None => return Some(received),
        }
        None
    }

    /// Remembers what was delivered under a name, and tells the asker.
    fn typed(&mut self, delivery: SayDelivery) {
        let Some(typing) = self.typing.take() else { return };
        let (name, caller) = typing.end();
        if let (None, SayDelivery::NotDelivered { reason }) = (&caller.0, &delivery) {
            note(&self.folder, &format!("the prompt was not typed: {reason}"));
        }
        caller.answer(&delivery);
        if let (Some(name), SayDelivery::Delivered { .. }) = (name, &delivery) {
            self.delivered.push_back((name, delivery));
            self.delivered.drain(..self.delivered.len().saturating_sub(MOST_TEXTS));
        }
    }

    /// A caller that waits behind a text that the agent does not read is told so when its time is over.
    fn give_up_waiting(&mut self) {
        let now = Instant::now();
        let (late, waiting) =
            std::mem::take(&mut self.texts).into_iter().partition(|(came, received)| now >= received.give_up(*came));
        self.texts = waiting;
        let late: VecDeque<(Instant, ReceivedSay)> = late;
        for (_, received) in late {
            received.caller.answer(&not("the agent has not read yet what was typed before"));
        }
    }

    fn type_on(&mut self) {
        if self.typing.is_some() {
            self.give_up_waiting();
        }
        loop {
            let (Some(source), Some(terminal)) = (self.sources.first(), &self.terminal) else { return };
            let Some(ours) = &source.handle else { return };
            let now = Instant::now();
            let printed = source.log.came();
            if self.typing.is_none() {
                self.typing = self.texts.pop_front().map(|(_, received)| SayTyping::new(received, now, printed));
            }
            let Some(typing) = &mut self.typing else { return };
            let keyboard =
                ShimKeyboard { ours, agents: &terminal.agents, brackets: terminal.scanner.brackets, printed };
            self.typing_next = match typing.step(&keyboard, now) {
                TypingNext::Writable(at) => Some((at, true)),
                TypingNext::At(at) => Some((at, false)),
                TypingNext::Done(delivery) => {
                    self.typed(delivery);
                    None
                }
            };
            if self.typing_next.is_some() {
                return;
            }
        }
    }
}
