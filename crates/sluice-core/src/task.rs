//! The task machine: what becomes of one task, given its lifecycle and what is asked of it or told to it.
//!
//! ```text
//!  Input ──► decide ──► events (facts, applied to the state)  +  effects (instructions; their outcomes are inputs)
//!               └─────► Refusal (nothing has happened)
//! ```
//!
//! The law stands in two tables: [`law::answer`] says what a task does with an input, [`session::TaskSession::after`] what
//! becomes of a session. The stories behind the first stand in `moves` (transition, guard, gate), `hooks` and
//! `outcomes` (one job after another), `spawn` (agents), `exits` (agents that end by themselves), `runs` (what a state
//! starts), `merge` (what may be merged), `lent` (worktrees that are lent on), and `commands` (what else people ask for).
//! `reconcile` says which `attention` of a person the task needs. `choices` and `actions` tell what could be done, and do nothing;
//! `ways` knows which way leads on and which way back. `docs/machines/task.md` is drawn from the tables.
//!
//! Nothing here reads a clock, a file or a screen. The body of TASK.md comes in with the input; its frontmatter is
//! only ever written, so a status that somebody forges there has no effect.

pub mod actions;
mod apply;
pub mod attention;
pub mod choices;
mod commands;
pub mod effect;
pub mod event;
mod exits;
mod hooks;
pub mod input;
mod keys;
pub mod law;
mod lent;
mod merge;
mod moves;
mod outcomes;
mod pending;
mod reconcile;
mod runs;
mod seen;
pub mod session;
mod spawn;
pub mod state;
mod ways;

pub use effect::{EffectKey, Instruction, PlainEffect, TaskAction, TaskEffect};
pub use event::TaskEvent;
pub use input::{Evidence, NewTask, TaskAsker, TaskInput};
pub use keys::{TaskKey, frontmatter};
pub use seen::{SectionDigest, SectionSnapshot};
pub use state::TaskState;

use event::TaskCreation;
use law::{LawRow, TaskResponse, answer};
use pending::TaskPending;

use crate::lifecycle::Lifecycle;
use crate::machine::{ASKED, Decision, Moment, Refusal, RefusalCode};

/// The most moves and starts that can be under way at once.
const MOST_OPEN_TURNS: usize = 64;

type TaskInputResult = Result<(), Refusal>;

/// Creates a task. The first event of the decision is the creation; [`TaskState::fold`] makes the state of them.
pub fn create(
    lifecycle: &Lifecycle,
    create: &NewTask,
    now: Moment,
) -> Result<Decision<TaskEvent, TaskEffect>, Refusal> {
    may_create(create.by)?;
    let unclear = create.about.summary.trim().is_empty();
    let status = match &create.status {
        Some(name) => lifecycle.find(name.as_str()),
        None => lifecycle.find(reconcile::CLARIFICATION).filter(|_| unclear).or(lifecycle.initial.first().copied()),
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
        TaskCreation { status, about: create.about.clone(), by: create.by, at: now, seen, sessions: create.sessions };
    let mut ledger = TaskPending::new(lifecycle, TaskState::created(&created), now);
    ledger.record_creation(TaskEvent::Created(created));
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
    input: &TaskInput,
    now: Moment,
) -> Result<Decision<TaskEvent, TaskEffect>, Refusal> {
    trace(lifecycle, state, input, now).0
}

/// What follows from an input, and which rows of the law say so.
pub fn trace(
    lifecycle: &Lifecycle,
    state: &TaskState,
    input: &TaskInput,
    now: Moment,
) -> (Result<Decision<TaskEvent, TaskEffect>, Refusal>, Vec<LawRow>) {
    let mut ledger = TaskPending::new(lifecycle, state.clone(), now);
    match answered(&mut ledger, input) {
        Ok(()) => {
            let (decision, rows) = ledger.finish();
            (Ok(decision), rows)
        }
        Err(refusal) => (Err(refusal), ledger.rows),
    }
}

fn answered(ledger: &mut TaskPending<'_>, input: &TaskInput) -> TaskInputResult {
    may_ask(ledger, input)?;
    let phase = ledger.state.phase(ledger.lifecycle);
    ledger.rows.push(LawRow::Task(phase, input.kind()));
    let status = ledger.lifecycle.state_name(ledger.state.status);
    match answer(phase, input.kind()) {
        TaskResponse::Refuse(RefusalCode::Finished) => {
            let message = format!("task {ASKED} has ended in `{status}` and cannot change");
            Err(Refusal::new(RefusalCode::Finished, message).hint("create a new task with `sluice task create`"))
        }
        TaskResponse::Refuse(RefusalCode::NotReady) => {
            let message = format!("Not allowed: the task is in `{status}`, and does not wait for a person");
            Err(Refusal::new(RefusalCode::NotReady, message))
        }
        TaskResponse::Refuse(code) => {
            let message = format!("Not allowed: the task has begun, and is in `{status}`");
            Err(Refusal::new(code, message).hint("respawn starts its agent again"))
        }
        TaskResponse::Ignore => Ok(()),
        TaskResponse::Move | TaskResponse::Respawn | TaskResponse::Retry
            if ledger.state.turns.len() >= MOST_OPEN_TURNS =>
        {
            let message = format!("Not allowed yet: {MOST_OPEN_TURNS} moves are under way, and none has settled");
            Err(Refusal::new(RefusalCode::NotReady, message)
                .hint("wait for their hooks, or look at what holds them up"))
        }
        TaskResponse::Watch => carry_out(ledger, input, true),
        TaskResponse::Begin
        | TaskResponse::Move
        | TaskResponse::Keep
        | TaskResponse::Check
        | TaskResponse::Close
        | TaskResponse::Respawn
        | TaskResponse::Update
        | TaskResponse::Clear
        | TaskResponse::Retry
        | TaskResponse::Lend
        | TaskResponse::TakeUp
        | TaskResponse::Hear
        | TaskResponse::Await
        | TaskResponse::Follow
        | TaskResponse::Settle
        | TaskResponse::Report
        | TaskResponse::Note => carry_out(ledger, input, false),
    }
}

fn carry_out(ledger: &mut TaskPending<'_>, input: &TaskInput, watching: bool) -> TaskInputResult {
    ledger.room = input.room();
    match input {
        TaskInput::Spawn { by, evidence, room } => commands::spawn(ledger, *by, evidence, room)?,
        TaskInput::Move { by, to, evidence, room, feedback } => {
            ledger.feedback.clone_from(feedback);
            moves::go(ledger, *by, to.as_str(), evidence, room)?;
        }
        TaskInput::Verdict { by, to, evidence } => moves::keep_verdict(ledger, *by, to.as_str(), evidence),
        TaskInput::Cancel { by, evidence } => {
            moves::go(ledger, *by, moves::CANCELLED, evidence, &input::WorkspaceReservation::Unasked)?;
        }
        TaskInput::RequestChanges { by, message, evidence, .. } => {
            commands::request_changes(ledger, *by, message, evidence)?
        }
        TaskInput::Merge { by, force, evidence } => merge::may(ledger, *by, *force, evidence)?,
        TaskInput::Merged { by, commit, forced, push_failed, evidence, feedback } => {
            ledger.feedback.clone_from(feedback);
            ledger.clear_attention();
            ledger.record(TaskEvent::Merged { commit: commit.clone(), forced: *forced });
            merge::closed(ledger, *by, push_failed.as_ref(), evidence);
        }
        TaskInput::Respawn { by, .. } => commands::respawn(ledger, *by)?,
        TaskInput::Update { update, .. } => commands::update(ledger, update),
        TaskInput::ClearAttention { .. } => ledger.dismiss(),
        TaskInput::Retry { by, .. } => commands::retry(ledger, *by)?,
        TaskInput::Signal { session, signal } => ledger.heard_signal(*session, signal),
        TaskInput::Lend { workspace, events, work } => lent::lend(ledger, workspace, *events, work)?,
        TaskInput::TakeUp { .. } => lent::take_up(ledger),
        TaskInput::SessionExited { session, exit, evidence } => {
            exits::exited(ledger, *session, *exit, evidence, watching);
        }
        TaskInput::SessionAdopted { session } => {
            if let Some(place) = ledger.place_of(*session) {
                let again = hooks::starts_again(ledger);
                ledger.heard(place, session::SessionChange::Started, again);
            }
        }
        TaskInput::RunReopened { run } => runs::reopened(ledger, run),
        TaskInput::RunEnded { run, end, why, own, evidence } => runs::ended(ledger, run, *end, why, *own, evidence),
        TaskInput::EffectDone { key, outcome } => outcomes::done(ledger, *key, outcome),
    }
    Ok(())
}

/// Work comes from people, and from the engine where a recipe asks for it. An agent that hands out work for people is
/// none of our sessions.
fn may_create(by: TaskAsker) -> TaskInputResult {
    match by {
        TaskAsker::Person | TaskAsker::Engine => Ok(()),
        TaskAsker::Session(_) | TaskAsker::Stranger => {
            let message = "Not allowed: a session may change its own task only, and not create another";
            Err(Refusal::new(RefusalCode::NotYours, message).hint("write in TASK.md what else should be done"))
        }
    }
}

/// A session may move and describe its own task; the rest is for people and the engine.
fn may_ask(ledger: &TaskPending<'_>, input: &TaskInput) -> TaskInputResult {
    let refuse = |message: String| Err(Refusal::new(RefusalCode::NotYours, message));
    match input.asker() {
        TaskAsker::Person | TaskAsker::Engine => Ok(()),
        TaskAsker::Stranger => {
            refuse("Not allowed: a session may change its own task only, and this is another".into())
        }
        TaskAsker::Session(id) if ledger.place_of(id).is_none() => {
            refuse(format!("Not allowed: session {id} is no longer a session of this task"))
        }
        TaskAsker::Session(_) => match input {
            TaskInput::Move { .. }
            | TaskInput::Verdict { .. }
            | TaskInput::Cancel { .. }
            | TaskInput::Update { .. }
            | TaskInput::Lend { .. }
            | TaskInput::TakeUp { .. }
            | TaskInput::SessionExited { .. }
            | TaskInput::SessionAdopted { .. }
            | TaskInput::Signal { .. }
            | TaskInput::RunReopened { .. }
            | TaskInput::RunEnded { .. }
            | TaskInput::EffectDone { .. } => Ok(()),
            TaskInput::Spawn { .. }
            | TaskInput::RequestChanges { .. }
            | TaskInput::Merge { .. }
            | TaskInput::Merged { .. }
            | TaskInput::Respawn { .. }
            | TaskInput::Retry { .. }
            | TaskInput::ClearAttention { .. } => {
                refuse(format!("Not allowed: `{}` is for a person to ask, not for a session", input.kind().words()))
            }
        },
    }
}
