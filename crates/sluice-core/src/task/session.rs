//! A session: the process of one agent, as far as the task knows of it.
//!
//! [`TaskSession::after`] is the law of sessions: one match over what it is and what is heard of it. A task has room for
//! two, its own and a reviewer beside it, so that "at most one of each" is a fact of the type.

use std::fmt;

use crate::words::words;

/// A session of a task. The machine gives the number when it asks for the session, so that the agent can already
/// speak while its start is still being reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionNumber(pub u32);

impl fmt::Display for SessionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

/// Where a session is: `spawn_agent` starts the task's own, `spawn_reviewer` one beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskSessionPlace {
    /// The task's own place, for its worker or a reviewer that follows it.
    Main,
    /// The reviewer's, beside a worker that lives on.
    Beside,
}

impl TaskSessionPlace {
    /// Both places of a task.
    pub const ALL: [TaskSessionPlace; 2] = [TaskSessionPlace::Main, TaskSessionPlace::Beside];
}

words! {
    /// What a session was asked to be. A reviewer can stand in either place: in `default` it takes the worker's.
    SessionRole {
        /// The agent that does the work.
        Worker = "worker",
        /// Judges it: started for a state with a verdict, or beside the worker.
        Reviewer = "reviewer",
    }
}

/// Who is in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionAgent {
    /// The session's number, unique in its task.
    pub id: SessionNumber,
    /// What it was asked to be.
    pub role: SessionRole,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionExit {
    /// The process ended by itself, with this exit status.
    Code(i32),
    /// A signal of this number ended the process.
    Signal(i32),
    /// It is gone, and nobody wrote down how.
    Lost,
    /// What was around it went away: its machine was started anew, or its terminal's server ended. That is no failure of
    /// the agent's.
    Uprooted,
}

/// Why a session is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionDeath {
    /// It could not be started.
    NotStarted(String),
    /// Its process ended, in this way.
    Exited(SessionExit),
}

/// What is in one of a task's two places for sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskSession {
    /// There is no session in this place.
    Absent,
    /// A session was asked for, and has not been heard of.
    Starting(SessionAgent),
    /// The session runs, as far as its watcher knows.
    Alive(SessionAgent),
    /// The engine is ending it, or has tried to.
    Ending(SessionAgent),
    /// Its agent is gone; its window may still be there to look at.
    Dead(SessionAgent, SessionDeath),
}

/// What is heard of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// The engine asks for one.
    Asked(SessionAgent),
    /// It runs: the outcome of asking, or it was found alive after a restart.
    Started,
    /// It could not be started.
    NotStarted(String),
    /// The engine ends it.
    EndAsked,
    /// The engine has ended it.
    Ended,
    /// The engine could not end it.
    NotEnded,
    /// Its process ended by itself.
    Exited(SessionExit),
}

/// What becomes of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionTransition {
    /// The session is this from now on.
    Becomes(TaskSession),
    /// This, and it ended by itself: the exit rules are asked.
    Died(TaskSession),
    /// The session stays what it was.
    Stays,
    /// The machine never lets this happen.
    Never,
}

impl TaskSession {
    /// The law: what becomes of this session when that is heard.
    pub fn after(&self, change: &SessionChange) -> SessionTransition {
        use TaskSession::{Absent, Alive, Dead, Ending, Starting};
        match (self, change) {
            (Absent | Dead(..), SessionChange::Asked(agent)) => SessionTransition::Becomes(Starting(*agent)),
            // A living session is ended before another takes its place, and a start is waited for.
            (Starting(_) | Alive(_) | Ending(_), SessionChange::Asked(_)) => SessionTransition::Never,
            (Starting(_), SessionChange::EndAsked | SessionChange::Ended | SessionChange::NotEnded) => {
                SessionTransition::Never
            }

            (Starting(agent), SessionChange::Started) => SessionTransition::Becomes(Alive(*agent)),
            (Starting(agent), SessionChange::NotStarted(why)) => {
                SessionTransition::Becomes(Dead(*agent, SessionDeath::NotStarted(why.clone())))
            }
            (Starting(agent) | Alive(agent), SessionChange::Exited(exit)) => {
                SessionTransition::Died(Dead(*agent, SessionDeath::Exited(*exit)))
            }

            (Alive(_), SessionChange::Started) => SessionTransition::Stays,
            (Alive(agent), SessionChange::EndAsked) => SessionTransition::Becomes(Ending(*agent)),
            (Alive(_), SessionChange::NotStarted(_) | SessionChange::Ended | SessionChange::NotEnded) => {
                SessionTransition::Never
            }

            // It ended because we ended it: no exit rule is asked. Where that fails, it is still on its way out.
            (Ending(agent), SessionChange::Exited(exit)) => {
                SessionTransition::Becomes(Dead(*agent, SessionDeath::Exited(*exit)))
            }
            (Ending(_), SessionChange::Ended) => SessionTransition::Becomes(Absent),
            (Ending(_), SessionChange::Started | SessionChange::EndAsked | SessionChange::NotEnded) => {
                SessionTransition::Stays
            }
            (Ending(_), SessionChange::NotStarted(_)) => SessionTransition::Never,

            // News that come late, or twice. Its window is still cleared away when the session is ended.
            (
                Dead(..),
                SessionChange::Started
                | SessionChange::NotStarted(_)
                | SessionChange::EndAsked
                | SessionChange::NotEnded
                | SessionChange::Exited(_),
            ) => SessionTransition::Stays,
            (Dead(..), SessionChange::Ended) => SessionTransition::Becomes(Absent),

            (
                Absent,
                SessionChange::Started
                | SessionChange::NotStarted(_)
                | SessionChange::EndAsked
                | SessionChange::Ended
                | SessionChange::NotEnded
                | SessionChange::Exited(_),
            ) => SessionTransition::Never,
        }
    }

    /// Who is or was in it.
    pub fn agent(&self) -> Option<&SessionAgent> {
        match self {
            TaskSession::Absent => None,
            TaskSession::Starting(agent)
            | TaskSession::Alive(agent)
            | TaskSession::Ending(agent)
            | TaskSession::Dead(agent, _) => Some(agent),
        }
    }

    /// Whether a process runs or is about to.
    pub fn is_living(&self) -> bool {
        match self {
            TaskSession::Starting(_) | TaskSession::Alive(_) | TaskSession::Ending(_) => true,
            TaskSession::Absent | TaskSession::Dead(..) => false,
        }
    }

    /// Its kind, without its data.
    pub fn word(&self) -> &'static str {
        match self {
            TaskSession::Absent => "absent",
            TaskSession::Starting(_) => "starting",
            TaskSession::Alive(_) => "alive",
            TaskSession::Ending(_) => "ending",
            TaskSession::Dead(..) => "dead",
        }
    }

    /// One session of each kind, for drawing the law.
    pub fn samples() -> [TaskSession; 5] {
        let agent = SessionAgent { id: SessionNumber(1), role: SessionRole::Worker };
        [
            TaskSession::Absent,
            TaskSession::Starting(agent),
            TaskSession::Alive(agent),
            TaskSession::Ending(agent),
            TaskSession::Dead(agent, SessionDeath::Exited(SessionExit::Lost)),
        ]
    }
}

impl SessionChange {
    /// Its kind, without its data.
    pub fn word(&self) -> &'static str {
        match self {
            SessionChange::Asked(_) => "asked for",
            SessionChange::Started => "started",
            SessionChange::NotStarted(_) => "not started",
            SessionChange::EndAsked => "end asked for",
            SessionChange::Ended => "ended",
            SessionChange::NotEnded => "not ended",
            SessionChange::Exited(_) => "exited by itself",
        }
    }

    /// One change of each kind, for drawing the law.
    pub fn samples() -> [SessionChange; 7] {
        [
            SessionChange::Asked(SessionAgent { id: SessionNumber(2), role: SessionRole::Worker }),
            SessionChange::Started,
            SessionChange::NotStarted(String::new()),
            SessionChange::EndAsked,
            SessionChange::Ended,
            SessionChange::NotEnded,
            SessionChange::Exited(SessionExit::Lost),
        ]
    }
}
