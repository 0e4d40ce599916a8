//! The way to the engine: something is said to a task or a run, and the answer is durable when it comes.

use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_core::id::{RunId, TaskId};
use sluice_core::machine::{ASKED, Refusal, RefusalCode};
use sluice_core::run::RunInput;
use sluice_core::task::input::WorkspaceReservation;
use sluice_core::task::{TaskAsker, TaskInput, decide};
use sluice_engine::actor::{Actor, ActorChange, ActorInput};
use sluice_engine::host::{EngineClock, EngineHandle, PendingAnswer};
use sluice_engine::reactor::{EventRange, ReactorAnswer, ReactorMessage, ReactorToken};
use sluice_store::{Digest, StreamId};

use super::Home;
use crate::read::runs;
use crate::read::tasks::{TaskSnapshot, stream};

/// How long the engine may take to answer before what was asked is given up.
const GIVE_UP: Duration = Duration::from_secs(30);
/// How long it may take before it is asked whether something is in the store's way.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn ask(home: &Home, task: &TaskId, input: TaskInput) -> Result<EventRange, Problem> {
    say_to(home, stream(task), task.as_str(), ActorInput::Task(home.context.clean().task_input(input)))
}

/// Says something to a run and waits until it is durable. No secret in it is stored.
pub(crate) fn say(home: &Home, run: &RunId, input: RunInput) -> Result<EventRange, Problem> {
    say_to(home, runs::stream(run), run.as_str(), ActorInput::Run(home.context.clean().input(input)))
}

/// Says something to what is in a stream and is called `id`, and waits until it is durable.
pub(crate) fn say_to(home: &Home, stream: StreamId, id: &str, said: ActorInput) -> Result<EventRange, Problem> {
    asked(home, id, |token| ReactorMessage::Say { token: Some(token), stream, said })
}

/// Begins a stream for what is called `id`, and waits until it is durable.
pub(crate) fn create(
    home: &Home,
    stream: StreamId,
    id: &str,
    (actor, change): (impl Actor + 'static, ActorChange),
    blobs: Vec<(Digest, Vec<u8>)>,
) -> Result<EventRange, Problem> {
    let actor = Box::new(actor);
    asked(home, id, |token| ReactorMessage::Create { token: Some(token), stream, actor, change, blobs })
}

/// Asks the engine for something about what is called `id`, and waits until it is durable.
pub(crate) fn asked(
    home: &Home,
    id: &str,
    message: impl FnOnce(ReactorToken) -> ReactorMessage,
) -> Result<EventRange, Problem> {
    wait(&home.engine, &home.engine.ask(message), id)
}

/// Waits for the engine's answer, but not long where it is known why there is none. What is given up is taken back, so that
/// it is not done later all the same; where that is too late, the caller hears that it will be done.
pub(crate) fn wait(engine: &EngineHandle, asked: &PendingAnswer, id: &str) -> Result<EventRange, Problem> {
    let began = Instant::now();
    loop {
        match asked.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(answer) => return answered(answer, id),
            Err(RecvTimeoutError::Disconnected) => {
                // The engine has ended, or ends. What it ended of is known by now.
                let silent = || Problem::unavailable("the engine does not answer").hint("see `sluice doctor`");
                return Err(engine.hindrance().map_or_else(silent, Problem::unavailable));
            }
        }
        let hindrance = engine.hindrance();
        if hindrance.is_none() && began.elapsed() < GIVE_UP {
            continue;
        }
        let why = hindrance.unwrap_or_else(|| "the engine has no answer from its store yet".into());
        if engine.withdraw(asked) {
            return Err(Problem::unavailable(why).hint("nothing was done; ask again when that has passed"));
        }
        // It may have been answered a moment ago.
        return match asked.try_recv() {
            Ok(answer) => answered(answer, id),
            Err(_) => Err(Problem::accepted(id, &why)),
        };
    }
}

fn answered(answer: ReactorAnswer, id: &str) -> Result<EventRange, Problem> {
    match answer {
        ReactorAnswer::Done(recorded) => Ok(recorded),
        ReactorAnswer::Refused(refusal) => Err(refused_of(id, &refusal)),
        ReactorAnswer::NotFound => Err(Problem::not_found(format!("there is no `{id}`"))),
        ReactorAnswer::Conflict => {
            let message = format!("{id} was changed by another request at the same time");
            Err(Problem::new(ProblemStatus::Conflict, "conflict", message).hint("look at it, and ask again"))
        }
        ReactorAnswer::Fault(why) => Err(Problem::fault(format!("{id} has stopped: {why}"))
            .hint("what is stored of it stays as it is; `sluice doctor` tells more")),
    }
}

/// What is refused of this task or run, by its id.
pub(crate) fn refused_of(id: &str, said: &Refusal) -> Problem {
    let problem = refused(said);
    let hint = problem.hint.map(|hint| hint.replace(ASKED, id));
    Problem { message: problem.message.replace(ASKED, id), hint, ..problem }
}

pub(crate) fn refused(said: &Refusal) -> Problem {
    Problem { hint: said.hint.clone(), ..refusal(said.code, said.message.clone()) }
}

/// A refusal that is no machine's.
pub(crate) fn refusal(code: RefusalCode, message: impl Into<String>) -> Problem {
    let status = match code {
        RefusalCode::NotYours => ProblemStatus::Forbidden,
        RefusalCode::LeaseLost => ProblemStatus::Conflict,
        _ => ProblemStatus::Refused,
    };
    Problem::new(status, code.as_str(), message)
}

pub(crate) fn begin(
    home: &Home,
    seen: &TaskSnapshot,
    by: TaskAsker,
    room: WorkspaceReservation,
) -> Result<EventRange, Problem> {
    let spawn = |evidence| TaskInput::Spawn { by, evidence, room: room.clone() };
    let asked = home.evidence(seen).and_then(|evidence| ask(home, &seen.id, spawn(evidence)));
    home.tasks.caught_up(&seen.id, &asked);
    home.reservations.answered(&seen.id, &room, &asked);
    asked
}

/// Asks something of a task that may need a worktree again, because its own was lent on.
pub(crate) fn ask_with_room(
    home: &Home,
    seen: &TaskSnapshot,
    input: impl Fn(WorkspaceReservation) -> TaskInput,
) -> Result<EventRange, Problem> {
    let room = room_again(home, seen, &input)?;
    let asked = ask(home, &seen.id, input(room.clone()));
    home.tasks.refresh(&seen.id);
    home.reservations.answered(&seen.id, &room, &asked);
    asked
}

/// A worktree for a task whose own was lent on, if what is asked of it needs one. Tasks that wait already come first.
pub(crate) fn room_again(
    home: &Home,
    seen: &TaskSnapshot,
    input: impl Fn(WorkspaceReservation) -> TaskInput,
) -> Result<WorkspaceReservation, Problem> {
    if seen.state.lent_on().is_none() {
        return Ok(WorkspaceReservation::Unasked);
    }
    let mut then = seen.state.clone();
    let decided = decide(&seen.lifecycle, &seen.state, &input(WorkspaceReservation::Full), home.clock.now());
    let events = decided.map(|decision| decision.events).unwrap_or_default();
    events.iter().for_each(|event| then.apply(&seen.lifecycle, event));
    let is_before = |it: &Arc<TaskSnapshot>| it.state.about.project == seen.state.about.project && it.id != seen.id;
    match then.waits_for_worktree() {
        false => Ok(WorkspaceReservation::Unasked),
        true if home.tasks.waiting().iter().any(is_before) => Ok(WorkspaceReservation::Full),
        true => room(home, seen),
    }
}

/// A worktree for a task that may need one.
pub(crate) fn room(home: &Home, seen: &TaskSnapshot) -> Result<WorkspaceReservation, Problem> {
    if crate::read::tasks::had(&seen.state.workspace).is_some() {
        return Ok(WorkspaceReservation::Unasked);
    }
    let (project, pool) = home.pool_of(seen)?;
    home.branches.look(home);
    Ok(home.reservations.reserve(home, &pool, project.pool_size, &seen.id))
}
