//! Why a task needs a person: what was marked, what is heard of its agent, and what follows from where it stands.
//!
//! A *mark* is set and cleared by what happens ([`TaskPending::mark`]). All else is *derived*: at the end of every decision
//! [`TaskPending::reconcile`] compares what follows from the state with what is recorded, and records the difference. So no
//! place that moves a task can forget to raise or to clear it. A mark goes before what is derived.

use std::fmt;

use super::effect::TaskAction;
use super::event::TaskEvent;
use super::input::RunEnd;
use super::pending::TaskPending;
use super::session::{SessionDeath, SessionExit, SessionNumber, TaskSession, TaskSessionPlace};
use super::state::{TaskPhase, TaskState};
use crate::artifact::Verdict;
use crate::attention::{AttentionChannel, AttentionReason, DialogKind, SessionSignal};
use crate::lifecycle::{DONE, Lifecycle, STUCK, StateId};
use crate::machine::Moment;

/// The state of a task whose summary is still missing.
pub(super) const CLARIFICATION: &str = "clarification";

/// An attention that was raised: the task has at most one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaisedAttention {
    /// Its number, counted from 1 over the task's life; 0 where an older engine raised it.
    pub number: u32,
    /// The moment since which it holds.
    pub since: Moment,
    /// Why a person should look.
    pub why: TaskAttention,
}

/// What was last heard of the agent in a session: that it waits, or is quiet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardSignal {
    /// The session that it is about.
    pub session: SessionNumber,
    /// What was said about it.
    pub signal: SessionSignal,
}

/// Why a person should look at a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskAttention {
    /// It waits for a workspace.
    PoolFull,
    /// A hook with this action failed, for this reason.
    HookFailed(TaskAction, String),
    /// Its agents crashed so often, and there is no state `stuck`.
    Crashed(u32),
    /// An agent should have been started, and there is no workspace.
    NoWorkspace,
    /// The worker should have been told something, is not there, and cannot be started.
    NoWorker,
    /// A crashed agent should be started again, and its state has no prompt for that.
    NoPrompt,
    /// Its machine or its terminal went away again and again, and its agent with it.
    Uprooted,
    /// The worker ended while a reviewer is at work.
    WorkerGone,
    /// TASK.md gives a verdict that is not the reviewer's, as far as the reviewer said it.
    Disputed {
        /// The verdict that stands in TASK.md.
        found: Verdict,
        /// What the reviewer asked for.
        asked: Verdict,
    },
    /// The branch is merged here, and the remote does not know.
    NotPushed(String),
    /// The branch is merged, and no transition leads to the end.
    NotClosed(String),
    /// The run of its state has ended, and the task has not moved.
    RunEnded {
        /// The id of the run that has ended.
        run: String,
        /// Whether the run completed, failed or was cancelled.
        end: RunEnd,
        /// What it says about that, or why the task has not moved; may be empty.
        why: String,
    },
    /// Derived: only a person leads it out of its state, and a merge can.
    Review,
    /// Derived: it stands in `clarification`.
    Clarification,
    /// Derived: it stands in `stuck`; its last agent ended in this way, if it ended by itself.
    Stuck(Option<SessionExit>),
    /// Derived: only a person leads it out of its state.
    Decision,
    /// Derived: no agent and no run is at work on it, and none is started by itself.
    Unattended,
    /// Derived: the agent that its state watches ended in this way, and is not started again by itself.
    Died(SessionExit),
    /// Derived: the agent could not be started, for this reason.
    CannotStart(String),
    /// Derived: the agent program waits for a person.
    Dialog {
        /// What the dialog is about.
        what: DialogKind,
        /// The words of the dialog.
        text: String,
        /// The channel that says so.
        by: AttentionChannel,
    },
    /// Derived: the agent has printed nothing for so many seconds.
    Quiet {
        /// How long it had been quiet, in seconds.
        seconds: u64,
    },
}

impl TaskAttention {
    /// Whether it was marked, and stays until something clears it; otherwise it follows from the state.
    pub fn is_mark(&self) -> bool {
        match self {
            TaskAttention::PoolFull
            | TaskAttention::HookFailed(..)
            | TaskAttention::Crashed(_)
            | TaskAttention::NoWorkspace
            | TaskAttention::NoWorker
            | TaskAttention::NoPrompt
            | TaskAttention::Uprooted
            | TaskAttention::WorkerGone
            | TaskAttention::Disputed { .. }
            | TaskAttention::NotPushed(_)
            | TaskAttention::NotClosed(_)
            | TaskAttention::RunEnded { .. } => true,
            TaskAttention::Review
            | TaskAttention::Clarification
            | TaskAttention::Stuck(_)
            | TaskAttention::Decision
            | TaskAttention::Unattended
            | TaskAttention::Died(_)
            | TaskAttention::CannotStart(_)
            | TaskAttention::Dialog { .. }
            | TaskAttention::Quiet { .. } => false,
        }
    }

    /// Whether a person who has looked can take it away and change nothing else. A task that waits for a worktree would lose
    /// its place in the line.
    pub fn is_dismissible(&self) -> bool {
        let is_heard = matches!(self, TaskAttention::Dialog { .. } | TaskAttention::Quiet { .. });
        is_heard || (self.is_mark() && *self != TaskAttention::PoolFull)
    }

    /// The word for it.
    pub fn reason(&self) -> AttentionReason {
        match self {
            TaskAttention::PoolFull => AttentionReason::PoolFull,
            TaskAttention::HookFailed(TaskAction::SpawnAgent | TaskAction::SpawnReviewer, _)
            | TaskAttention::NoWorkspace
            | TaskAttention::NoWorker
            | TaskAttention::CannotStart(_) => AttentionReason::CannotStart,
            TaskAttention::HookFailed(..) | TaskAttention::NotPushed(_) => AttentionReason::HookFailed,
            TaskAttention::Crashed(_)
            | TaskAttention::NoPrompt
            | TaskAttention::Uprooted
            | TaskAttention::WorkerGone
            | TaskAttention::Died(_) => AttentionReason::Crashed,
            TaskAttention::Disputed { .. } => AttentionReason::Conflict,
            TaskAttention::NotClosed(_) | TaskAttention::Decision => AttentionReason::Question,
            TaskAttention::RunEnded { .. } | TaskAttention::Stuck(_) | TaskAttention::Unattended => {
                AttentionReason::Stuck
            }
            TaskAttention::Review => AttentionReason::Review,
            TaskAttention::Clarification => AttentionReason::Clarification,
            TaskAttention::Dialog { .. } => AttentionReason::Dialog,
            TaskAttention::Quiet { .. } => AttentionReason::Quiet,
        }
    }

    /// The channel by which the engine knows it.
    pub fn said_by(&self) -> AttentionChannel {
        match self {
            TaskAttention::Dialog { by, .. } => *by,
            TaskAttention::Died(_) => AttentionChannel::Exit,
            TaskAttention::PoolFull
            | TaskAttention::HookFailed(..)
            | TaskAttention::Crashed(_)
            | TaskAttention::NoWorkspace
            | TaskAttention::NoWorker
            | TaskAttention::NoPrompt
            | TaskAttention::Uprooted
            | TaskAttention::WorkerGone
            | TaskAttention::Disputed { .. }
            | TaskAttention::NotPushed(_)
            | TaskAttention::NotClosed(_)
            | TaskAttention::RunEnded { .. }
            | TaskAttention::Review
            | TaskAttention::Clarification
            | TaskAttention::Stuck(_)
            | TaskAttention::Decision
            | TaskAttention::Unattended
            | TaskAttention::CannotStart(_)
            | TaskAttention::Quiet { .. } => AttentionChannel::Engine,
        }
    }

    /// Whether `next` is the same attention, perhaps in other words: then it keeps its number.
    fn goes_on_as(&self, next: &TaskAttention) -> bool {
        match (self, next) {
            (TaskAttention::Dialog { what, .. }, TaskAttention::Dialog { what: now, .. }) => what == now,
            (TaskAttention::Stuck(_), TaskAttention::Stuck(_))
            | (TaskAttention::Quiet { .. }, TaskAttention::Quiet { .. })
            | (TaskAttention::NotPushed(_), TaskAttention::NotPushed(_)) => true,
            (one, other) => one == other,
        }
    }
}

impl fmt::Display for TaskAttention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskAttention::PoolFull => f.write_str("pool full"),
            TaskAttention::HookFailed(action, reason) => write!(f, "{action} failed: {reason}"),
            TaskAttention::Crashed(count) => write!(f, "crashed {count} times"),
            TaskAttention::NoWorkspace => f.write_str("no agent was started: there is no workspace"),
            TaskAttention::NoWorker => {
                f.write_str("the worker was not told: none is alive, and there is no prompt `worker_respawn`")
            }
            TaskAttention::NoPrompt => {
                f.write_str("the agent was not started again: its state has no `respawn_prompt`")
            }
            TaskAttention::Uprooted => f.write_str(
                "the agent ended with its terminal or its machine, and is not started again by itself; respawn it",
            ),
            TaskAttention::WorkerGone => f.write_str(
                "the worker ended while the reviewer is at work; it is started again when it is to be told something",
            ),
            TaskAttention::Disputed { found, asked } if found == asked => write!(
                f,
                "TASK.md says {} now, and did not when the reviewer asked for it; look who wrote it, and move the task",
                found.word()
            ),
            TaskAttention::Disputed { found, asked } => write!(
                f,
                "TASK.md says {}, and the reviewer asked for {}; look who wrote it, and move the task",
                found.word(),
                asked.word()
            ),
            TaskAttention::NotPushed(reason) => write!(f, "merged, not pushed: {reason}"),
            TaskAttention::NotClosed(reason) => write!(f, "merged, not closed: {reason}"),
            TaskAttention::RunEnded { run, end, why } => {
                let verb = if *end == RunEnd::Cancelled { "was" } else { "has" };
                let why = if why.is_empty() { String::new() } else { format!(": {why}") };
                write!(f, "its run {run} {verb} {}{why}", end.word())
            }
            TaskAttention::Review => f.write_str("the work is ready: read it, and merge it or send it back"),
            TaskAttention::Clarification => f.write_str("it is not clear what is wanted: talk with its agent"),
            TaskAttention::Stuck(None) => f.write_str("the task is stuck: decide how it goes on"),
            TaskAttention::Stuck(Some(exit)) => {
                write!(f, "the task is stuck, its agent ended ({}): decide how it goes on", in_words(*exit))
            }
            TaskAttention::Decision => f.write_str("only a person leads the task out of this state"),
            TaskAttention::Unattended => f.write_str("no agent is at work on the task, and none is started by itself"),
            TaskAttention::Died(exit) => {
                write!(f, "the agent ended ({}), and is not started again by itself", in_words(*exit))
            }
            TaskAttention::CannotStart(reason) => write!(f, "the agent could not be started: {reason}"),
            TaskAttention::Dialog { what, text, by } => {
                SessionSignal::Waits { what: *what, text: text.clone(), by: *by }.fmt(f)
            }
            TaskAttention::Quiet { seconds } => SessionSignal::Quiet { seconds: *seconds }.fmt(f),
        }
    }
}

fn in_words(exit: SessionExit) -> String {
    match exit {
        SessionExit::Code(code) => format!("exit code {code}"),
        SessionExit::Signal(signal) => format!("signal {signal}"),
        SessionExit::Lost => "its end was not seen".to_owned(),
        SessionExit::Uprooted => "with its terminal or its machine".to_owned(),
    }
}

impl TaskState {
    /// Why a person should look: what is recorded, and for a task that an older engine left, what follows from where it
    /// stands. The next decision records that under the same number.
    pub fn raised(&self, lifecycle: &Lifecycle) -> Option<RaisedAttention> {
        let next = |why, since| RaisedAttention { number: self.attentions.saturating_add(1), since, why };
        match &self.attention {
            Some(raised) if raised.number > 0 => Some(raised.clone()),
            Some(raised) => Some(next(raised.why.clone(), self.visit.since)),
            None => self.derived_attention(lifecycle).map(|why| next(why, self.visit.since)),
        }
    }

    /// The mark that the task has.
    pub(super) fn marked(&self) -> Option<&TaskAttention> {
        self.attention.as_ref().map(|raised| &raised.why).filter(|why| why.is_mark())
    }

    /// Whether the task has this mark.
    pub fn is_marked(&self, mark: &TaskAttention) -> bool {
        self.marked() == Some(mark)
    }

    /// What follows from where the task stands, whatever is marked.
    pub fn derived_attention(&self, lifecycle: &Lifecycle) -> Option<TaskAttention> {
        if lifecycle.state(self.status).terminal {
            return None;
        }
        if let Some(told) = self.told_attention() {
            return Some(told);
        }
        // A task that has not begun waits for its turn.
        let is_new = lifecycle.initial.first() == Some(&self.status) && self.turns_taken == 0;
        if is_new || !self.turns.is_empty() || self.has_open_run() {
            return None;
        }
        let name = lifecycle.state_name(self.status);
        let is_persons = lifecycle.is_left_by_persons(self.status);
        // An agent that was started in this stay works; one that came here with the task waits.
        let works = self.has_living_agent() && self.turns_taken > self.visit.turn;
        let dead = self.watched_death();
        match (name, dead) {
            (STUCK, _) if works => None,
            (STUCK, Some(TaskAttention::Died(exit))) => Some(TaskAttention::Stuck(Some(exit))),
            (STUCK, _) => Some(TaskAttention::Stuck(None)),
            (_, _) if is_persons && works => None,
            (_, _) if is_persons && lifecycle.is_merged_from(self.status) => Some(TaskAttention::Review),
            (_, Some(why)) => Some(why),
            (CLARIFICATION, None) => Some(TaskAttention::Clarification),
            (_, None) if is_persons => Some(TaskAttention::Decision),
            (_, None) if self.has_living_agent() => None,
            (_, None) => Some(TaskAttention::Unattended),
        }
    }

    /// The end of the agent that the status watches, if it is dead.
    fn watched_death(&self) -> Option<TaskAttention> {
        match self.session(self.visit.watch) {
            TaskSession::Dead(_, SessionDeath::NotStarted(reason)) => Some(TaskAttention::CannotStart(reason.clone())),
            TaskSession::Dead(_, SessionDeath::Exited(exit)) => Some(TaskAttention::Died(*exit)),
            TaskSession::Absent | TaskSession::Starting(_) | TaskSession::Alive(_) | TaskSession::Ending(_) => None,
        }
    }

    /// What the agent of a living session is said to wait for.
    fn told_attention(&self) -> Option<TaskAttention> {
        let heard = self.signal.as_ref().filter(|heard| self.hears(heard.session))?;
        match &heard.signal {
            SessionSignal::Waits { what, text, by } => {
                Some(TaskAttention::Dialog { what: *what, text: text.clone(), by: *by })
            }
            SessionSignal::Quiet { seconds } => Some(TaskAttention::Quiet { seconds: *seconds }),
            SessionSignal::Works { .. } => None,
        }
    }

    /// Whether `session` is a living one of the task, which the engine is not ending.
    fn hears(&self, session: SessionNumber) -> bool {
        TaskSessionPlace::ALL.into_iter().any(|place| match self.session(place) {
            TaskSession::Starting(agent) | TaskSession::Alive(agent) => agent.id == session,
            TaskSession::Absent | TaskSession::Ending(_) | TaskSession::Dead(..) => false,
        })
    }

    /// Whether the task waits for the agent of `session` to go on: it lives, it is the one that the status watches, and no
    /// person, run or hook is to act first. An agent that stops or falls silent then needs a person.
    pub fn awaits(&self, lifecycle: &Lifecycle, session: SessionNumber) -> bool {
        let is_watched = match self.session(self.visit.watch) {
            TaskSession::Alive(agent) => agent.id == session,
            TaskSession::Absent | TaskSession::Starting(_) | TaskSession::Ending(_) | TaskSession::Dead(..) => false,
        };
        let began_here = self.turns_taken > self.visit.turn;
        is_watched
            && self.turns.is_empty()
            && !self.has_open_run()
            && !lifecycle.state(self.status).terminal
            && (began_here || !lifecycle.is_left_by_persons(self.status))
    }

    /// Folds a signal: one that says that the agent works leaves nothing behind.
    pub(super) fn signalled(&mut self, session: SessionNumber, signal: &SessionSignal) {
        self.signal = match signal {
            SessionSignal::Works { .. } => None,
            SessionSignal::Waits { .. } | SessionSignal::Quiet { .. } => {
                Some(HeardSignal { session, signal: signal.clone() })
            }
        };
    }

    /// Folds an attention that was raised.
    pub(super) fn raise(&mut self, raised: &RaisedAttention) {
        self.attentions = self.attentions.max(raised.number);
        self.attention = Some(raised.clone());
    }

    /// Folds that a person need not look any more. What was heard of the agent was looked at.
    pub(super) fn lower(&mut self) {
        let is_told = |why: &TaskAttention| matches!(why, TaskAttention::Dialog { .. } | TaskAttention::Quiet { .. });
        if self.attention.take().is_some_and(|raised| is_told(&raised.why)) {
            self.signal = None;
        }
    }
}

impl Lifecycle {
    /// Whether a transition leads from `state` to where a merged task ends.
    pub fn is_merged_from(&self, state: StateId) -> bool {
        let done = self.find(DONE);
        done.is_some() && self.transitions.iter().any(|edge| edge.from == state && Some(edge.to) == done)
    }
}

impl TaskPending<'_> {
    /// A person should look. What comes after a push that failed does not hide it.
    pub(super) fn mark(&mut self, attention: TaskAttention) {
        let attention = match (self.state.marked(), attention) {
            (Some(TaskAttention::NotPushed(_)), again @ TaskAttention::NotPushed(_)) | (None, again) => again,
            (Some(TaskAttention::NotPushed(known)), later) => {
                let later = later.to_string();
                TaskAttention::NotPushed(if known.contains(&later) {
                    known.clone()
                } else {
                    format!("{known}; {later}")
                })
            }
            (Some(_), later) => later,
        };
        self.raise(attention);
    }

    /// Records why a person should look, unless that is recorded. The same attention in other words keeps its number.
    fn raise(&mut self, why: TaskAttention) {
        let (number, since) = match &self.state.attention {
            Some(raised) if raised.number > 0 && raised.why == why => return,
            Some(raised) if raised.number > 0 && raised.why.goes_on_as(&why) => (raised.number, raised.since),
            Some(_) | None => (self.state.attentions.saturating_add(1), self.now),
        };
        self.record(TaskEvent::AttentionSet(RaisedAttention { number, since, why }));
    }

    pub(super) fn clear_attention(&mut self) {
        if self.state.attention.is_some() {
            self.record(TaskEvent::AttentionCleared);
        }
    }

    /// A person has looked. What follows from where the task stands goes when the task moves.
    pub(super) fn dismiss(&mut self) {
        if self.state.attention.as_ref().is_some_and(|raised| raised.why.is_dismissible()) {
            self.clear_attention();
        }
    }

    /// Something is heard of the agent in a session. About another than a living one it says nothing any more.
    pub(super) fn heard_signal(&mut self, session: SessionNumber, signal: &SessionSignal) {
        if !self.state.hears(session) {
            return;
        }
        let known = self.state.signal.as_ref().filter(|heard| heard.session == session).map(|heard| &heard.signal);
        if let Some(signal) = SessionSignal::after(known, signal) {
            self.record(TaskEvent::Signalled { session, signal });
        }
    }

    /// Records what follows from the state, where it is not what is recorded.
    pub(super) fn reconcile(&mut self) {
        // What is over changes no more, even if an older engine gave its mark no number.
        if self.state.phase(self.lifecycle) == TaskPhase::Finished && self.is_unchanged() {
            return;
        }
        let derived = self.state.derived_attention(self.lifecycle);
        match (self.state.marked().cloned(), derived) {
            (Some(mark), _) => self.raise(mark),
            (None, Some(why)) => self.raise(why),
            (None, None) => self.clear_attention(),
        }
    }
}
