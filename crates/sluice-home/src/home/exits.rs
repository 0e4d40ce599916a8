//! Sessions that ended: noticed at once, and looked for again and again as the backstop.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sluice_core::id::TaskId;
use sluice_core::task::session::{SessionExit, SessionNumber, TaskSession};
use sluice_core::task::{Evidence, TaskInput};
use sluice_os::process::StrayProcesses;
use sluice_os::session::{AgentEnd, EndedSession, SessionEnding, SessionId};

use crate::home::Home;
use crate::home::errand::Errand;
use crate::perform::fence::was_given_up;
use crate::undone::UnavailableReason;

/// The shortest time between two comparisons, whatever a lifecycle says.
const SOONEST: Duration = Duration::from_secs(1);
const LATEST: Duration = Duration::from_secs(30);

/// A session is over: the task hears of it, with what its files say now.
pub(crate) fn over(home: &Arc<Home>, task: &TaskId, number: SessionNumber, id: &SessionId, gone: &EndedSession) {
    let is_given_up = was_given_up(gone);
    if gone.asked.is_some() && !is_given_up {
        return; // we ended it, and whoever asked for that says so
    }
    let exit = match &gone.how {
        _ if is_given_up || home.context.sessions.was_uprooted(id, gone) => SessionExit::Uprooted,
        SessionEnding::Exited(record) => match &record.end {
            AgentEnd::Code(code) => SessionExit::Code(*code),
            AgentEnd::Signal(signal) => SessionExit::Signal(*signal),
            // There was no agent that could crash. The next start says why there is none, as a rule before it answers.
            AgentEnd::NotStarted(_) => SessionExit::Uprooted,
        },
        SessionEnding::Lost { .. } => SessionExit::Lost,
    };
    report(home, task, number, id, exit);
}

/// Nothing is known here of a session that the task takes for living: the engine of another home started it, perhaps on a
/// machine that is lost. That is no crash of the agent's.
pub(crate) fn elsewhere(home: &Arc<Home>, task: &TaskId, number: SessionNumber) {
    if let Ok(id) = crate::home::session_id(task, number) {
        report(home, task, number, &id, SessionExit::Uprooted);
    }
}

/// Tells the task. It ended all the same if its file cannot be read now, and is judged when that can be.
fn report(home: &Arc<Home>, task: &TaskId, number: SessionNumber, id: &SessionId, exit: SessionExit) {
    if exit == SessionExit::Uprooted {
        home.uproot(task);
    }
    let is_told = tell(home, task, number, id, exit).is_ok();
    if is_told || !home.takes(id) {
        return;
    }
    let taken = ExitHold { home: Arc::downgrade(home), id: id.clone() };
    let task = task.to_owned();
    Errand::run(home, format!("the end of {id}"), move |home, _| Ok(tell(home, &task, number, &taken.id, exit)?));
}

fn tell(
    home: &Home,
    task: &TaskId,
    number: SessionNumber,
    id: &SessionId,
    exit: SessionExit,
) -> Result<(), UnavailableReason> {
    let Ok(Some(seen)) = home.tasks.load(task) else { return Ok(()) }; // the next comparison looks again
    home.look_for_leaks(id, &seen);
    let evidence = match home.evidence(&seen) {
        Ok(evidence) => evidence,
        Err(problem) if problem.is_passing() => return Err(UnavailableReason(problem.message)),
        // A file that cannot be read is no artifact: that is a crash, and somebody looks at it.
        Err(_) => Evidence::default(),
    };
    home.input(task, TaskInput::SessionExited { session: number, exit, evidence });
    Ok(())
}

/// A session whose end is being told. As long as this is there, no comparison looks at it.
struct ExitHold {
    home: Weak<Home>,
    id: SessionId,
}

impl Drop for ExitHold {
    fn drop(&mut self) {
        self.home.upgrade().iter().for_each(|home| home.leaves(&self.id));
    }
}

/// Compares the sessions that open tasks take for living with those that live, until the home is closed; and takes note of
/// the end of what scripts have left behind.
pub(crate) fn keep_looking(home: Weak<Home>, mut strays: StrayProcesses) {
    loop {
        let Some(strong) = home.upgrade() else { return };
        let wait = look(&strong);
        drop(strong);
        strays.reap(Instant::now());
        std::thread::park_timeout(wait);
    }
}

/// Looks once; says when to look again.
fn look(home: &Arc<Home>) -> Duration {
    let mut soonest = LATEST;
    for seen in home.tasks.open() {
        let interval = Duration::from_secs(u64::from(seen.lifecycle.exits.poll_interval));
        soonest = soonest.min(interval.max(SOONEST));
        for session in [&seen.state.main, &seen.state.beside] {
            if let TaskSession::Alive(agent) = session {
                home.watch(&seen.id, agent.id);
            }
        }
    }
    soonest
}
