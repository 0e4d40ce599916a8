//! A session: the process of one agent, as far as the task knows of it.
//!
//! [`Session::after`] is the law of sessions: one match over what it is and what is heard of it. A task has room for
//! two, its own and a reviewer beside it, so that "at most one of each" is a fact of the type.

use std::fmt;

/// A session of a task. The machine gives the number when it asks for the session, so that the agent can already
/// speak while its start is still being reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u32);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

/// Where a session is: `spawn_agent` starts the task's own, `spawn_reviewer` one beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The task's own.
    Main,
    /// The reviewer's, beside a worker that lives on.
    Beside,
}

/// What a session was asked to be. A reviewer can stand in either place: in `default` it takes the worker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Does the work.
    Worker,
    /// Judges it: started for a state with a verdict, or beside the worker.
    Reviewer,
}

impl Role {
    /// As sessions see it.
    pub fn word(self) -> &'static str {
        match self {
            Role::Worker => "worker",
            Role::Reviewer => "reviewer",
        }
    }
}

/// Who is in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its number.
    pub id: SessionId,
    /// What it was asked to be.
    pub role: Role,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It is gone, and nobody wrote down how.
    Lost,
    /// What was around it went away: its machine was started anew, or its terminal's server ended. That is no failure of
    /// the agent's.
    Uprooted,
}

/// Why a session is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Death {
    /// It could not be started.
    NotStarted(String),
    /// Its process ended.
    Exited(Exit),
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Session {
    /// There is none.
    Absent,
    /// It was asked for.
    Starting(Agent),
    /// It runs.
    Alive(Agent),
    /// The engine is ending it, or has tried to.
    Ending(Agent),
    /// Its agent is gone; its window may still be there to look at.
    Dead(Agent, Death),
}

/// What is heard of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The engine asks for one.
    Asked(Agent),
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
    Exited(Exit),
}

/// What becomes of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// This.
    Becomes(Session),
    /// This, and it ended by itself: the exit rules are asked.
    Died(Session),
    /// What it was.
    Stays,
    /// The machine never lets this happen.
    Never,
}

impl Session {
    /// The law: what becomes of this session when that is heard.
    pub fn after(&self, change: &Change) -> Next {
        use Session::{Absent, Alive, Dead, Ending, Starting};
        match (self, change) {
            (Absent | Dead(..), Change::Asked(agent)) => Next::Becomes(Starting(*agent)),
            // A living session is ended before another takes its place, and a start is waited for.
            (Starting(_) | Alive(_) | Ending(_), Change::Asked(_)) => Next::Never,
            (Starting(_), Change::EndAsked | Change::Ended | Change::NotEnded) => Next::Never,

            (Starting(agent), Change::Started) => Next::Becomes(Alive(*agent)),
            (Starting(agent), Change::NotStarted(why)) => Next::Becomes(Dead(*agent, Death::NotStarted(why.clone()))),
            (Starting(agent) | Alive(agent), Change::Exited(exit)) => Next::Died(Dead(*agent, Death::Exited(*exit))),

            (Alive(_), Change::Started) => Next::Stays,
            (Alive(agent), Change::EndAsked) => Next::Becomes(Ending(*agent)),
            (Alive(_), Change::NotStarted(_) | Change::Ended | Change::NotEnded) => Next::Never,

            // It ended because we ended it: no exit rule is asked. Where that fails, it is still on its way out.
            (Ending(agent), Change::Exited(exit)) => Next::Becomes(Dead(*agent, Death::Exited(*exit))),
            (Ending(_), Change::Ended) => Next::Becomes(Absent),
            (Ending(_), Change::Started | Change::EndAsked | Change::NotEnded) => Next::Stays,
            (Ending(_), Change::NotStarted(_)) => Next::Never,

            // News that come late, or twice. Its window is still cleared away when the session is ended.
            (
                Dead(..),
                Change::Started | Change::NotStarted(_) | Change::EndAsked | Change::NotEnded | Change::Exited(_),
            ) => Next::Stays,
            (Dead(..), Change::Ended) => Next::Becomes(Absent),

            (
                Absent,
                Change::Started
                | Change::NotStarted(_)
                | Change::EndAsked
                | Change::Ended
                | Change::NotEnded
                | Change::Exited(_),
            ) => Next::Never,
        }
    }

    /// Who is or was in it.
    pub fn agent(&self) -> Option<&Agent> {
        match self {
            Session::Absent => None,
            Session::Starting(agent) | Session::Alive(agent) | Session::Ending(agent) | Session::Dead(agent, _) => {
                Some(agent)
            }
        }
    }

    /// Whether a process runs or is about to.
    pub fn is_living(&self) -> bool {
        match self {
            Session::Starting(_) | Session::Alive(_) | Session::Ending(_) => true,
            Session::Absent | Session::Dead(..) => false,
        }
    }

    /// Its kind, without its data.
    pub fn word(&self) -> &'static str {
        match self {
            Session::Absent => "absent",
            Session::Starting(_) => "starting",
            Session::Alive(_) => "alive",
            Session::Ending(_) => "ending",
            Session::Dead(..) => "dead",
        }
    }

    /// One session of each kind, for drawing the law.
    pub fn samples() -> [Session; 5] {
        let agent = Agent { id: SessionId(1), role: Role::Worker };
        [
            Session::Absent,
            Session::Starting(agent),
            Session::Alive(agent),
            Session::Ending(agent),
            Session::Dead(agent, Death::Exited(Exit::Lost)),
        ]
    }
}

impl Change {
    /// Its kind, without its data.
    pub fn word(&self) -> &'static str {
        match self {
            Change::Asked(_) => "asked for",
            Change::Started => "started",
            Change::NotStarted(_) => "not started",
            Change::EndAsked => "end asked for",
            Change::Ended => "ended",
            Change::NotEnded => "not ended",
            Change::Exited(_) => "exited by itself",
        }
    }

    /// One change of each kind, for drawing the law.
    pub fn samples() -> [Change; 7] {
        [
            Change::Asked(Agent { id: SessionId(2), role: Role::Worker }),
            Change::Started,
            Change::NotStarted(String::new()),
            Change::EndAsked,
            Change::Ended,
            Change::NotEnded,
            Change::Exited(Exit::Lost),
        ]
    }
}
