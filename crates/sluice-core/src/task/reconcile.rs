//! Which attention a task has: a function of where it stands, and never of the order in which it got there.
//!
//! A *mark* is set and cleared by what happens ([`TaskPending::mark`]). All else is *derived*: at the end of every decision
//! [`TaskPending::reconcile`] compares what follows from the state with what is recorded, and records the difference. So no
//! place that moves a task can forget to raise or to clear it. What keeps the task most from going on is in front
//! ([`TaskAttention::goes_before`]); a mark that something is in front of is kept behind it, and is in front again when that is
//! over.
//!
//! While hooks are under way nothing follows yet, because one of them may start the agent that a person would be sent to.
//! From the moment at which they have settled, the same state has the same attention, however it was reached.

use super::attention::{HeardSignal, MarkBehind, RaisedAttention, TaskAttention};
use super::effect::TaskAction;
use super::event::TaskEvent;
use super::pending::TaskPending;
use super::session::{SessionDeath, SessionNumber, TaskSession, TaskSessionPlace};
use super::state::{TaskPhase, TaskState};
use crate::attention::SessionSignal;
use crate::lifecycle::{DONE, Lifecycle, STUCK, StateId};

/// The state of a task whose summary is still missing.
pub(super) const CLARIFICATION: &str = "clarification";

impl TaskState {
    /// Why a person should look: what is recorded, and for a task that an older engine left, what follows from where it
    /// stands. The next decision records that under the same number.
    pub fn raised(&self, lifecycle: &Lifecycle) -> Option<RaisedAttention> {
        let number = self.attentions.saturating_add(1);
        let next = |why, since| RaisedAttention { number, since, why, behind: None };
        match &self.attention {
            Some(raised) if raised.number > 0 => Some(raised.clone()),
            Some(raised) => Some(next(raised.why.clone(), self.visit.since)),
            None => self.derived_attention(lifecycle).map(|why| next(why, self.visit.since)),
        }
    }

    /// The mark that the task has, in front or behind what is more urgent.
    pub(super) fn marked(&self) -> Option<&TaskAttention> {
        let raised = self.attention.as_ref()?;
        if raised.why.is_mark() { Some(&raised.why) } else { raised.behind.as_ref().map(|mark| &mark.why) }
    }

    /// Whether the task has this mark.
    pub fn is_marked(&self, mark: &TaskAttention) -> bool {
        self.marked() == Some(mark)
    }

    /// Whether the task is marked because TASK.md could not be written.
    pub(super) fn is_unwritten(&self) -> bool {
        matches!(self.marked(), Some(TaskAttention::HookFailed(TaskAction::WriteArtifact, _)))
    }

    /// What follows from where the task stands, whatever is marked.
    pub fn derived_attention(&self, lifecycle: &Lifecycle) -> Option<TaskAttention> {
        match self.told_attention().filter(|_| !lifecycle.state(self.status).terminal) {
            // Silence says less than where the task stands: an agent that has asked something waits quietly.
            Some(quiet @ TaskAttention::Quiet { .. }) => self.resting_attention(lifecycle).or(Some(quiet)),
            Some(told) => Some(told),
            None => self.resting_attention(lifecycle),
        }
    }

    /// What follows from where the task stands, whatever is heard of its agent.
    fn resting_attention(&self, lifecycle: &Lifecycle) -> Option<TaskAttention> {
        if lifecycle.state(self.status).terminal {
            return None;
        }
        // A task that has not begun waits for its turn.
        let is_new = lifecycle.initial.first() == Some(&self.status) && self.turns_taken == 0;
        if is_new || !self.turns.is_empty() || self.has_open_run() {
            return None;
        }
        let is_persons = lifecycle.is_left_by_persons(self.status);
        // An agent that a person has set to work here works; every other has come here with the task, or waits to be told.
        let works = self.visit.helped && self.session(self.visit.watch).is_living();
        let dead = self.watched_death();
        match (lifecycle.state_name(self.status), dead) {
            // Its agent asks a person, also where a person has started it and where the agent itself may move the task on.
            (CLARIFICATION, dead) => Some(dead.unwrap_or(TaskAttention::Clarification)),
            (STUCK, _) if works => None,
            (STUCK, Some(TaskAttention::Died(exit))) => Some(TaskAttention::Stuck(Some(exit))),
            (STUCK, _) => Some(TaskAttention::Stuck(None)),
            (_, _) if is_persons && works => None,
            (_, _) if is_persons && lifecycle.is_merged_from(self.status) => Some(TaskAttention::Review),
            (_, Some(why)) => Some(why),
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

    /// Whether the agent in `place` lives and is said to wait for a person, or to have fallen silent.
    pub(super) fn waits_in(&self, place: TaskSessionPlace) -> bool {
        let heard = self.signal.as_ref().map(|heard| heard.session);
        match self.session(place) {
            TaskSession::Alive(agent) => heard == Some(agent.id),
            TaskSession::Absent | TaskSession::Starting(_) | TaskSession::Ending(_) | TaskSession::Dead(..) => false,
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
    /// person, run or hook is to act first. An agent that stops or falls silent then needs a person; one that has asked a person
    /// already does.
    pub fn awaits(&self, lifecycle: &Lifecycle, session: SessionNumber) -> bool {
        let is_watched = match self.session(self.visit.watch) {
            TaskSession::Alive(agent) => agent.id == session,
            TaskSession::Absent | TaskSession::Starting(_) | TaskSession::Ending(_) | TaskSession::Dead(..) => false,
        };
        is_watched
            && self.turns.is_empty()
            && !self.has_open_run()
            && !lifecycle.state(self.status).terminal
            && (self.visit.helped || !lifecycle.is_left_by_persons(self.status))
            && self.resting_attention(lifecycle).is_none()
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

    /// Folds an attention that was raised. A mark that is neither in front nor behind any more leaves nothing to be done again.
    pub(super) fn raise(&mut self, raised: &RaisedAttention) {
        let had_mark = self.marked().is_some();
        let behind = raised.behind.as_ref().map_or(0, |mark| mark.number);
        self.attentions = self.attentions.max(raised.number).max(behind);
        self.attention = Some(raised.clone());
        if had_mark && self.marked().is_none() {
            self.undone.clear();
        }
    }

    /// Folds that a person need not look any more at what is in front. What was heard of the agent was looked at.
    pub(super) fn lower(&mut self) {
        let Some(raised) = self.attention.take() else { return };
        if raised.why.is_heard() {
            self.signal = None;
        }
        if raised.why.is_mark() {
            self.undone.clear();
        }
        self.attention = raised.behind.map(RaisedAttention::from);
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
        let derived = self.state.attention.as_ref().map(|raised| raised.why.clone()).filter(|why| !why.is_mark());
        self.raise(Some(attention), derived);
    }

    /// Records why a person should look, unless that is recorded: what follows from the state if it is more urgent than the mark,
    /// else the mark. The same attention in other words keeps its number.
    fn raise(&mut self, mark: Option<TaskAttention>, derived: Option<TaskAttention>) {
        let (why, behind) = match (mark, derived) {
            (Some(mark), Some(why)) if why.goes_before(&mark) => (why, Some(mark)),
            (Some(why), _) | (None, Some(why)) => (why, None),
            (None, None) => return self.clear_attention(),
        };
        let mut next = self.state.attentions;
        let mut numbered = |why: TaskAttention| {
            let known = self.known(&why).filter(|known| known.number > 0);
            let (number, since) = known.map_or_else(
                || {
                    next = next.saturating_add(1);
                    (next, self.now)
                },
                |known| (known.number, known.since),
            );
            MarkBehind { number, since, why }
        };
        let behind = behind.map(&mut numbered);
        let raised = RaisedAttention { behind, ..numbered(why).into() };
        if self.state.attention.as_ref() != Some(&raised) {
            self.record(TaskEvent::AttentionSet(raised));
        }
    }

    /// What is recorded, in front or behind, that goes on as `why`.
    fn known(&self, why: &TaskAttention) -> Option<MarkBehind> {
        let raised = self.state.attention.as_ref()?;
        let front = MarkBehind { number: raised.number, since: raised.since, why: raised.why.clone() };
        std::iter::once(front).chain(raised.behind.clone()).find(|known| known.why.goes_on_as(why))
    }

    /// A person need not look any more, neither at what is in front nor at what is behind it.
    pub(super) fn clear_attention(&mut self) {
        while self.state.attention.is_some() {
            self.record(TaskEvent::AttentionCleared);
        }
    }

    /// The mark is over. What is in front of it stays.
    pub(super) fn clear_mark(&mut self) {
        let Some(raised) = &self.state.attention else { return };
        if raised.why.is_mark() {
            self.record(TaskEvent::AttentionCleared);
        } else if raised.behind.is_some() {
            let alone = RaisedAttention { behind: None, ..raised.clone() };
            self.record(TaskEvent::AttentionSet(alone));
        }
    }

    /// A person has looked. What follows from where the task stands goes when the task moves.
    pub(super) fn dismiss(&mut self) {
        match self.state.attention.as_ref().and_then(RaisedAttention::dismissed) {
            Some(why) if why.is_mark() => self.clear_mark(),
            Some(_) => self.record(TaskEvent::AttentionCleared),
            None => {}
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
        self.raise(self.state.marked().cloned(), derived);
    }
}
