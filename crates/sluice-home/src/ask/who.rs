//! Who asks, and what follows from that. This is the one place where it is decided.
//!
//! At the socket it is a process. What belongs to a session is that session. What the engine itself started (scripts,
//! gates, hooks, git, gh) and what these leave behind is its step, or nobody; it is a person only where its step says
//! `acts_as: person`. Everybody else on this machine is a person. Over the network a token says it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_core::id::{RunId, TaskId};
use sluice_core::machine::RefusalCode;
use sluice_core::run::{RunAsker, Speaker};
use sluice_core::task::TaskAsker;
use sluice_core::task::session::SessionNumber;
use sluice_engine::host::in_the_name_of;
use sluice_engine::run_actor::performed;
use sluice_os::process::ProcessIdentity;
use sluice_os::session::{ProcessAsker, SessionId};

use super::Service;
use crate::background::locked;
use crate::home::engine::refusal;
use crate::home::session_of;

/// What somebody can do who is taken for nobody and should not be.
const NOBODY_HINT: &str = "ask from a shell that Sluice did not start; a script or gate that is to act for a person says \
                           `acts_as: person` in its recipe";

/// Who may tell what the agent of a session does.
const THAT_SESSION: &str = "that session itself";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requester {
    /// A person, or a program that a person trusts.
    Person {
        /// What they are called: the name of their user, or of their token.
        name: String,
    },
    Session {
        task: TaskId,
        number: SessionNumber,
    },
    /// The agent or script of a step.
    Step {
        run: RunId,
        speaker: Speaker,
    },
    /// A worker on another machine.
    Worker {
        token: String,
    },
    Reader {
        token: String,
    },
    /// A process that the engine started, or that was left behind by one, and that speaks for no step.
    Nobody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestAccess {
    Look,
    Change,
}

impl Requester {
    pub fn person(name: impl Into<String>) -> Requester {
        Requester::Person { name: name.into() }
    }

    pub fn is_person(&self) -> bool {
        matches!(self, Requester::Person { .. })
    }

    pub(super) fn to(&self, task: &TaskId) -> TaskAsker {
        if let Requester::Session { task: own, number } = self
            && own == task
        {
            return TaskAsker::Session(*number);
        }
        if self.is_person() { TaskAsker::Person } else { TaskAsker::Stranger }
    }

    pub(super) fn to_run(&self, run: &RunId) -> RunAsker {
        if let Requester::Step { run: own, speaker } = self
            && own == run
        {
            return RunAsker::Agent(*speaker);
        }
        if self.is_person() { RunAsker::Person } else { RunAsker::Stranger }
    }

    /// Asks something in their name: what comes of it says who it was.
    pub fn asking<T>(&self, ask: impl FnOnce() -> T) -> T {
        if let Requester::Person { name } = self { in_the_name_of(name, ask) } else { ask() }
    }

    pub fn label(&self) -> String {
        match self {
            Requester::Person { name } => format!("person:{name}"),
            Requester::Session { task, number } => format!("session:{task}.{}", number.0),
            Requester::Step { run, speaker } => format!("step:{run}.{}.{}", speaker.step.0, speaker.attempt),
            Requester::Worker { token } => format!("worker:{token}"),
            Requester::Reader { token } => format!("reader:{token}"),
            Requester::Nobody => "nobody".to_owned(),
        }
    }

    /// Only a person or a worker may do this. The token that a worker has; a person needs none.
    pub(crate) fn keeper(&self, what: &str) -> Result<Option<&str>, Problem> {
        match self {
            Requester::Person { .. } => Ok(None),
            Requester::Worker { token } => Ok(Some(token)),
            Requester::Session { .. } | Requester::Step { .. } | Requester::Reader { .. } | Requester::Nobody => {
                Err(self.is_not_for(what, "a worker"))
            }
        }
    }

    pub fn must_be_person(&self, what: &str) -> Result<(), Problem> {
        if self.is_person() { Ok(()) } else { Err(self.is_not_for(what, "a person")) }
    }

    /// Only a person may do this, or a session of the task. Asked before anything is done.
    pub(super) fn must_be_of(&self, task: &TaskId) -> Result<(), Problem> {
        match self.to(task) {
            TaskAsker::Person | TaskAsker::Engine | TaskAsker::Session(_) => Ok(()),
            TaskAsker::Stranger => {
                Err(self.is_not_for(&format!("changing task {task}"), "a person or its own session"))
            }
        }
    }

    /// Only the session of this name may do this: neither another one nor a person.
    pub(super) fn must_be_session(&self, session: &str) -> Result<(&TaskId, SessionNumber), Problem> {
        match self {
            Requester::Session { task, number } if session == format!("{task}.{}", number.0) => Ok((task, *number)),
            Requester::Person { .. }
            | Requester::Session { .. }
            | Requester::Step { .. }
            | Requester::Worker { .. }
            | Requester::Reader { .. }
            | Requester::Nobody => Err(self.is_not_for("a signal of a session", THAT_SESSION)),
        }
    }

    pub fn unknown() -> Problem {
        // Without a file descriptor nothing can be looked at.
        if let Err(error) = std::fs::File::open("/dev/null") {
            let message = format!("the engine cannot see who asks: {error}");
            return Problem::unavailable(message).hint("ask again in a moment; `sluice doctor` shows its open files");
        }
        let message = "the calling process is gone or cannot be looked at, so it cannot be recognised";
        Problem::new(ProblemStatus::Forbidden, "unknown_asker", message)
    }

    fn is_not_for(&self, what: &str, whom: &str) -> Problem {
        let other = match self {
            Requester::Person { .. } => "a person",
            Requester::Session { .. } | Requester::Step { .. } if whom == THAT_SESSION => "another session",
            Requester::Session { .. } | Requester::Step { .. } => "a session",
            Requester::Worker { .. } => "a worker",
            Requester::Reader { .. } => "a reader",
            Requester::Nobody => "a process that Sluice started",
        };
        let message = format!("Not allowed: {what} is for {whom}, not for {other}");
        let problem = refusal(RefusalCode::NotYours, message);
        if *self == Requester::Nobody { problem.hint(NOBODY_HINT) } else { problem }
    }
}

impl Service {
    /// Who a process on this machine is, of the user with this number. One that cannot be looked at any more is not taken
    /// for a person. Sessions inherit from a person who asks for a change.
    pub fn who(&self, process: &ProcessIdentity, user: u32, wants: RequestAccess) -> Result<Requester, Problem> {
        match self.home.context.sessions.asker(process, &self.home.context.within) {
            ProcessAsker::Outside => {
                if wants == RequestAccess::Change {
                    self.home.context.surroundings.follow(process, &self.home.context.config().env);
                }
                Ok(Requester::Person { name: user_name(user) })
            }
            ProcessAsker::Session(id) => {
                let who = whose(&id).ok_or_else(|| Problem::fault(format!("a session called {id}")))?;
                self.home.asks(id, process.clone());
                Ok(who)
            }
            ProcessAsker::Script(name) => {
                let id = SessionId::new(&name).map_err(Problem::fault)?;
                self.acting(whose(&id).unwrap_or(Requester::Nobody))
            }
            ProcessAsker::Started => Ok(Requester::Nobody),
            ProcessAsker::Gone => Err(Requester::unknown()),
        }
    }

    /// A person gave this engine an environment of its own: what it was started with stays for its sessions.
    pub fn keep_environment(&self) {
        self.home.context.surroundings.stay(&self.home.context.config().env);
    }

    /// A step that acts for a person does so under its own name. Anybody else is who they are.
    fn acting(&self, who: Requester) -> Result<Requester, Problem> {
        let Requester::Step { run, speaker } = &who else { return Ok(who) };
        let Some(setting) = self.home.tasks.setting(run)? else { return Ok(who) };
        match setting.plan.recipe.steps.get(speaker.step.0 as usize) {
            Some(step) if step.acts_as_person => Ok(Requester::Person { name: format!("{run}/{}", step.name) }),
            Some(_) | None => Ok(who),
        }
    }
}

pub(super) fn whose(id: &SessionId) -> Option<Requester> {
    if let Some((task, number)) = session_of(id) {
        return Some(Requester::Session { task, number });
    }
    let (run, rest) = id.as_str().split_once('.')?;
    let (step, attempt, part) = performed(rest)?;
    Some(Requester::Step { run: run.parse().ok()?, speaker: Speaker { step, attempt, part } })
}

/// What the system calls a user; the number where it has no name for it.
fn user_name(user: u32) -> String {
    static KNOWN: Mutex<BTreeMap<u32, String>> = Mutex::new(BTreeMap::new());
    let mut known = locked(&KNOWN);
    let found = known.entry(user).or_insert_with(|| {
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let named = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, number) = (fields.next()?, fields.nth(1)?);
            (number.parse() == Ok(user)).then(|| name.to_owned())
        });
        named.unwrap_or_else(|| format!("user-{user}"))
    });
    found.clone()
}
