//! The task machine: what becomes of one task, given its lifecycle and what is asked of it or told to it.
//!
//! ```text
//!  Input ──► decide ──► events (facts, applied to the state)  +  effects (instructions; their outcomes are inputs)
//!               └─────► Refusal (nothing has happened)
//! ```
//!
//! The law stands in two tables: [`law::answer`] says what a task does with an input, [`session::Session::after`] what
//! becomes of a session. The stories behind the first stand in `moves` (transition, guard, gate), `hooks` and
//! `outcomes` (one job after another), `spawn` (agents), `exits` (agents that end by themselves), `runs` (what a state
//! starts), `merge` (what may be merged), and `commands` (what else people ask for). `docs/machines/task.md` is drawn from the tables.
//!
//! Nothing here reads a clock, a file or a screen. The body of TASK.md comes in with the input; its frontmatter is
//! only ever written, so a status that somebody forges there has no effect.

mod apply;
mod commands;
pub mod effect;
pub mod event;
mod exits;
mod hooks;
pub mod input;
pub mod law;
mod ledger;
mod merge;
mod moves;
mod outcomes;
mod runs;
mod seen;
pub mod session;
mod spawn;
pub mod state;

pub use effect::{Action, Effect, EffectKey, Instruction};
pub use event::Event;
pub use input::{Asker, Create, Evidence, Input};
pub use ledger::frontmatter;
pub use seen::{Digest, Seen};
pub use state::TaskState;

use event::Created;
use law::{Answer, Row, answer};
use ledger::Ledger;

use crate::lifecycle::Lifecycle;
use crate::machine::{Decision, Moment, Refusal, RefusalCode};

/// The most moves and starts that can be under way at once.
const MOST_OPEN_TURNS: usize = 64;

type Answered = Result<(), Refusal>;

/// Creates a task. The first event of the decision is the creation; [`TaskState::fold`] makes the state of them.
pub fn create(lifecycle: &Lifecycle, create: &Create, now: Moment) -> Result<Decision<Event, Effect>, Refusal> {
    may_create(create.by)?;
    let unclear = create.about.summary.trim().is_empty();
    let status = match &create.status {
        Some(name) => lifecycle.find(name.as_str()),
        None => lifecycle.find(commands::CLARIFICATION).filter(|_| unclear).or(lifecycle.initial.first().copied()),
    };
    let Some(status) = status.filter(|status| lifecycle.initial.contains(status)) else {
        let names: Vec<&str> = lifecycle.initial.iter().map(|state| lifecycle.state_name(*state)).collect();
        let wanted = create.status.as_ref().map_or("", |name| name.as_str());
        let message = format!("A task of `{}` cannot be created in `{wanted}`", lifecycle.name);
        return Err(
            Refusal::new(RefusalCode::NoTransition, message).hint(format!("choose one of: {}", names.join(", ")))
        );
    };
    let seen = seen::sections(lifecycle, None, status, &create.evidence.body);
    let created =
        Created { status, about: create.about.clone(), by: create.by, at: now, seen, sessions: create.sessions };
    let mut ledger = Ledger::new(lifecycle, TaskState::created(&created), now);
    ledger.record_creation(Event::Created(created));
    if create.spawn {
        // Where nothing can be started, the task is created all the same, and waits.
        let begun = commands::spawn(&mut ledger, create.by, &create.evidence, &create.room);
        drop(begun);
    }
    Ok(ledger.finish().0)
}

/// What follows from an input.
pub fn decide(
    lifecycle: &Lifecycle,
    state: &TaskState,
    input: &Input,
    now: Moment,
) -> Result<Decision<Event, Effect>, Refusal> {
    trace(lifecycle, state, input, now).0
}

/// What follows from an input, and which rows of the law say so.
pub fn trace(
    lifecycle: &Lifecycle,
    state: &TaskState,
    input: &Input,
    now: Moment,
) -> (Result<Decision<Event, Effect>, Refusal>, Vec<Row>) {
    let mut ledger = Ledger::new(lifecycle, state.clone(), now);
    match answered(&mut ledger, input) {
        Ok(()) => {
            let (decision, rows) = ledger.finish();
            (Ok(decision), rows)
        }
        Err(refusal) => (Err(refusal), ledger.rows),
    }
}

fn answered(ledger: &mut Ledger<'_>, input: &Input) -> Answered {
    may_ask(ledger, input)?;
    let phase = ledger.state.phase(ledger.lifecycle);
    ledger.rows.push(Row::Task(phase, input.kind()));
    let status = ledger.lifecycle.state_name(ledger.state.status);
    match answer(phase, input.kind()) {
        Answer::Refuse(RefusalCode::Finished) => {
            Err(Refusal::new(RefusalCode::Finished, format!("Not allowed: the task is over, in `{status}`")))
        }
        Answer::Refuse(code) => {
            let message = format!("Not allowed: the task has begun, and is in `{status}`");
            Err(Refusal::new(code, message).hint("respawn starts its agent again"))
        }
        Answer::Ignore => Ok(()),
        Answer::Move | Answer::Respawn if ledger.state.turns.len() >= MOST_OPEN_TURNS => {
            let message = format!("Not allowed yet: {MOST_OPEN_TURNS} moves are under way, and none has settled");
            Err(Refusal::new(RefusalCode::NotReady, message)
                .hint("wait for their hooks, or look at what holds them up"))
        }
        Answer::Begin
        | Answer::Move
        | Answer::Keep
        | Answer::Check
        | Answer::Close
        | Answer::Respawn
        | Answer::Update
        | Answer::Clear
        | Answer::Await
        | Answer::Follow
        | Answer::Settle
        | Answer::Report => carry_out(ledger, input, false),
        Answer::Watch => carry_out(ledger, input, true),
        Answer::Note => carry_out(ledger, input, false),
    }
}

fn carry_out(ledger: &mut Ledger<'_>, input: &Input, watching: bool) -> Answered {
    match input {
        Input::Spawn { by, evidence, room } => commands::spawn(ledger, *by, evidence, room)?,
        Input::Move { by, to, evidence, room } => moves::go(ledger, *by, to.as_str(), evidence, room)?,
        Input::Verdict { by, to, evidence } => moves::keep_verdict(ledger, *by, to.as_str(), evidence),
        Input::Cancel { by, evidence } => {
            moves::go(ledger, *by, moves::CANCELLED, evidence, &input::Room::Unasked)?;
        }
        Input::RequestChanges { by, message, evidence } => commands::request_changes(ledger, *by, message, evidence)?,
        Input::Merge { by, force, evidence } => merge::may(ledger, *by, *force, evidence)?,
        Input::Merged { by, commit, forced, push_failed, evidence } => {
            ledger.clear_attention();
            ledger.record(Event::Merged { commit: commit.clone(), forced: *forced });
            merge::closed(ledger, *by, push_failed.as_ref(), evidence);
        }
        Input::Respawn { by } => commands::respawn(ledger, *by)?,
        Input::Update { update, .. } => commands::update(ledger, update),
        Input::ClearAttention { .. } => ledger.clear_attention(),
        Input::SessionExited { session, exit, evidence } => {
            exits::exited(ledger, *session, *exit, evidence, watching);
        }
        Input::SessionAdopted { session } => {
            if let Some(place) = ledger.place_of(*session) {
                let again = hooks::starts_again(ledger);
                ledger.heard(place, session::Change::Started, again);
            }
        }
        Input::RunReopened { run } => runs::reopened(ledger, run),
        Input::RunEnded { run, end, why, own, evidence } => runs::ended(ledger, run, *end, why, *own, evidence),
        Input::EffectDone { key, outcome } => outcomes::done(ledger, *key, outcome),
    }
    Ok(())
}

/// Work comes from people, and from the engine where a recipe asks for it. An agent that hands out work for people is
/// none of our sessions.
fn may_create(by: Asker) -> Answered {
    match by {
        Asker::Person | Asker::Engine => Ok(()),
        Asker::Session(_) | Asker::Stranger => {
            let message = "Not allowed: a session may change its own task only, and not create another";
            Err(Refusal::new(RefusalCode::NotYours, message).hint("write in TASK.md what else should be done"))
        }
    }
}

/// A session may move and describe its own task; the rest is for people and the engine.
fn may_ask(ledger: &Ledger<'_>, input: &Input) -> Answered {
    let refuse = |message: String| Err(Refusal::new(RefusalCode::NotYours, message));
    match input.asker() {
        Asker::Person | Asker::Engine => Ok(()),
        Asker::Stranger => refuse("Not allowed: a session may change its own task only, and this is another".into()),
        Asker::Session(id) if ledger.place_of(id).is_none() => {
            refuse(format!("Not allowed: session {id} is no longer a session of this task"))
        }
        Asker::Session(_) => match input {
            Input::Move { .. }
            | Input::Verdict { .. }
            | Input::Cancel { .. }
            | Input::Update { .. }
            | Input::SessionExited { .. }
            | Input::SessionAdopted { .. }
            | Input::RunReopened { .. }
            | Input::RunEnded { .. }
            | Input::EffectDone { .. } => Ok(()),
            Input::Spawn { .. }
            | Input::RequestChanges { .. }
            | Input::Merge { .. }
            | Input::Merged { .. }
            | Input::Respawn { .. }
            | Input::ClearAttention { .. } => {
                refuse(format!("Not allowed: `{}` is for a person to ask, not for a session", input.kind().words()))
            }
        },
    }
}
