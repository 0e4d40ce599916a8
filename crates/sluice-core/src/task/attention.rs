//! Why a task needs a person: every kind of attention, in words and as a table. Which one a task has is decided in
//! `reconcile`.

use std::fmt;

use super::effect::TaskAction;
use super::input::RunEnd;
use super::session::{SessionExit, SessionNumber};
use crate::artifact::Verdict;
use crate::attention::{AttentionChannel, AttentionReason, DialogKind, SessionSignal};
use crate::id::RunId;
use crate::machine::Moment;

/// An attention that was raised: the task has at most one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaisedAttention {
    /// Its number, counted from 1 over the task's life; 0 where an older engine raised it.
    pub number: u32,
    /// The moment since which it holds.
    pub since: Moment,
    /// Why a person should look.
    pub why: TaskAttention,
    /// The mark that this is in front of, because it is more urgent.
    pub behind: Option<MarkBehind>,
}

/// A mark behind an attention that is more urgent. It is in front again when that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkBehind {
    /// The number that it has itself.
    pub number: u32,
    /// The moment since which it holds.
    pub since: Moment,
    /// Why a person should look.
    pub why: TaskAttention,
}

impl RaisedAttention {
    /// The mark, in front or behind.
    pub fn mark(&self) -> Option<MarkBehind> {
        match self.why.is_mark() {
            true => Some(MarkBehind { number: self.number, since: self.since, why: self.why.clone() }),
            false => self.behind.clone(),
        }
    }

    /// What a person takes away who has looked: what is in front, or the mark behind what only the task's next move takes away.
    pub(super) fn dismissed(&self) -> Option<&TaskAttention> {
        let behind = self.behind.as_ref().map(|mark| &mark.why);
        std::iter::once(&self.why).chain(behind).find(|why| why.is_dismissible())
    }
}

impl From<MarkBehind> for RaisedAttention {
    fn from(mark: MarkBehind) -> RaisedAttention {
        RaisedAttention { number: mark.number, since: mark.since, why: mark.why, behind: None }
    }
}

impl fmt::Display for RaisedAttention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.behind {
            Some(mark) => write!(f, "{}; also: {}", self.why, mark.why),
            None => self.why.fmt(f),
        }
    }
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
        run: RunId,
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

/// What is fixed about a kind of attention.
struct AttentionTraits {
    /// The word for it.
    reason: AttentionReason,
    /// The channel by which the engine knows it.
    said_by: AttentionChannel,
    /// What raises it, and so what takes it away.
    origin: AttentionOrigin,
    /// What a person tries again, if that could help.
    cure: AttentionCure,
    /// How much it keeps the task from going on.
    urgency: AttentionUrgency,
}

/// How much an attention keeps a task from going on, the least first. What is more urgent is in front of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AttentionUrgency {
    /// Something went wrong beside it: the task goes on.
    Beside,
    /// The task rests: no agent is at work, or it is not known whether one is.
    Rests,
    /// Only a person's decision leads on.
    Decides,
    /// A person must know it before deciding, or has decided already and waits for room.
    First,
    /// A living agent waits for a person.
    Asks,
}

/// What raises an attention, and so what takes it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttentionOrigin {
    /// Something that happened marked it; it stays until something else that happens, or a person, clears it.
    Mark,
    /// It is marked, and only what it waits for clears it: the task would lose its place in the line.
    Queue,
    /// It follows from what is heard of a living agent, until a person has looked.
    Signal,
    /// It follows from where the task stands, as long as it stands there.
    State,
}

/// What a person tries again, if that could help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttentionCure {
    /// An agent, a run or a worktree could not be had: it is started again.
    Start,
    /// Hooks failed: they are done again, or left undone.
    Hooks,
    /// The merge is not pushed: it is pushed again.
    Push,
    /// Nothing of that kind.
    Other,
}

impl AttentionTraits {
    const fn new(reason: AttentionReason, origin: AttentionOrigin, urgency: AttentionUrgency) -> AttentionTraits {
        AttentionTraits { reason, said_by: AttentionChannel::Engine, origin, cure: AttentionCure::Other, urgency }
    }

    const fn with(self, cure: AttentionCure) -> AttentionTraits {
        AttentionTraits { cure, ..self }
    }
}

impl TaskAttention {
    /// The table of attentions: the one place that tells one kind from another, but for the words that people read.
    fn traits(&self) -> AttentionTraits {
        use AttentionCure as Cure;
        use AttentionOrigin as Origin;
        use AttentionReason as Reason;
        use AttentionUrgency::{Asks, Beside, Decides, First, Rests};
        let marked = |reason, urgency| AttentionTraits::new(reason, Origin::Mark, urgency);
        let stands = |reason, urgency| AttentionTraits::new(reason, Origin::State, urgency);
        let heard = |reason, urgency| AttentionTraits::new(reason, Origin::Signal, urgency);
        match self {
            TaskAttention::PoolFull => AttentionTraits::new(Reason::PoolFull, Origin::Queue, First),
            TaskAttention::HookFailed(action, _) => match (action.starts_agent(), action.is_start()) {
                (true, _) => marked(Reason::CannotStart, Rests).with(Cure::Start),
                (false, true) => marked(Reason::HookFailed, Rests).with(Cure::Start),
                (false, false) => marked(Reason::HookFailed, Beside).with(Cure::Hooks),
            },
            TaskAttention::NoWorkspace => marked(Reason::CannotStart, Rests).with(Cure::Start),
            TaskAttention::NoWorker => marked(Reason::CannotStart, Rests),
            TaskAttention::Crashed(_) | TaskAttention::NoPrompt | TaskAttention::Uprooted => {
                marked(Reason::Crashed, Rests)
            }
            TaskAttention::WorkerGone => marked(Reason::Crashed, Beside),
            TaskAttention::Disputed { .. } => marked(Reason::Conflict, First),
            TaskAttention::NotPushed(_) => marked(Reason::WorkAtRisk, First).with(Cure::Push),
            TaskAttention::NotClosed(_) => marked(Reason::Question, First),
            TaskAttention::RunEnded { .. } => marked(Reason::Stuck, Decides),
            TaskAttention::Review => stands(Reason::Review, Decides),
            // To talk with the agent takes one: a mark says why there is none.
            TaskAttention::Clarification => stands(Reason::Clarification, Rests),
            TaskAttention::Stuck(_) => stands(Reason::Stuck, Decides),
            TaskAttention::Unattended => stands(Reason::Stuck, Rests),
            TaskAttention::Decision => stands(Reason::Question, Decides),
            TaskAttention::Died(_) => {
                AttentionTraits { said_by: AttentionChannel::Exit, ..stands(Reason::Crashed, Rests) }
            }
            TaskAttention::CannotStart(_) => stands(Reason::CannotStart, Rests).with(Cure::Start),
            TaskAttention::Dialog { by, .. } => AttentionTraits { said_by: *by, ..heard(Reason::Dialog, Asks) },
            TaskAttention::Quiet { .. } => heard(Reason::Quiet, Rests),
        }
    }

    /// Whether it is in front of `mark`. Of two that are as urgent the mark is in front: it says what happened.
    pub fn goes_before(&self, mark: &TaskAttention) -> bool {
        self.traits().urgency > mark.traits().urgency
    }

    /// Whether it was marked, and stays until something clears it; otherwise it follows from the state.
    pub fn is_mark(&self) -> bool {
        match self.traits().origin {
            AttentionOrigin::Mark | AttentionOrigin::Queue => true,
            AttentionOrigin::Signal | AttentionOrigin::State => false,
        }
    }

    /// Whether it tells that an agent has ended.
    pub fn is_about_an_end(&self) -> bool {
        self.traits().reason == AttentionReason::Crashed || matches!(self, TaskAttention::Stuck(Some(_)))
    }

    /// Whether it follows from what is heard of a living agent.
    pub fn is_heard(&self) -> bool {
        self.traits().origin == AttentionOrigin::Signal
    }

    /// Whether a person who has looked can take it away and change nothing else. A task that waits for a worktree would lose
    /// its place in the line.
    pub fn is_dismissible(&self) -> bool {
        match self.traits().origin {
            AttentionOrigin::Mark | AttentionOrigin::Signal => true,
            AttentionOrigin::Queue | AttentionOrigin::State => false,
        }
    }

    /// The word for it.
    pub fn reason(&self) -> AttentionReason {
        self.traits().reason
    }

    /// The channel by which the engine knows it.
    pub fn said_by(&self) -> AttentionChannel {
        self.traits().said_by
    }

    /// What a person tries again, if that could help.
    pub(super) fn cure(&self) -> AttentionCure {
        self.traits().cure
    }

    /// Whether `next` is the same attention, perhaps in other words: then it keeps its number.
    pub(super) fn goes_on_as(&self, next: &TaskAttention) -> bool {
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
