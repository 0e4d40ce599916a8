//! `task wait` and `run wait`: until something is where it is wanted, has ended, or needs a person.
//!
//! They look after each event of the task or run, and ask for nothing while there is none. Not everything that needs a person
//! is an event (a pool that is full for long, a disk that is full), so they also look now and then.

use std::time::{Duration, Instant};

use sluice_api::attention::{Attention, AttentionCause, AttentionKind};
use sluice_api::client::{EngineAbsence, GONE, escape};
use sluice_api::problem::ProblemStatus;
use sluice_api::shown::{Inbox, Run, RunAnswer, RunStatus};
use sluice_api::task::{Task, TaskAnswer};
use sluice_api::{Client, Problem};

use super::{attended, run, task};
use crate::engine::connect;
use crate::output::{CliExit, CliFailure, CliOutput};

/// The state in which a task has been given up.
const CANCELLED: &str = "cancelled";

/// Looks after each line of `events`, which names the lines after what was seen last, until `look` has seen enough. Whether
/// that was within the time.
fn until(
    client: &Client,
    within: Option<Duration>,
    events: impl Fn() -> String,
    mut look: impl FnMut() -> Result<bool, Problem>,
) -> Result<bool, Problem> {
    let give_up = within.and_then(|within| Instant::now().checked_add(within));
    let left = || give_up.map(|give_up| give_up.saturating_duration_since(Instant::now()));
    let is_over = || left().is_some_and(|left| left.is_zero());
    let waited = client.with_engines(EngineAbsence::Bounded(give_up), || {
        let mut enough = false;
        while !enough && !is_over() {
            client.look_within(&events(), left(), || {
                enough = look()?;
                Ok(!enough)
            })?;
        }
        Ok(enough)
    });
    match waited {
        Err(problem) if problem.status == ProblemStatus::Unavailable && is_over() => Ok(false),
        waited => waited,
    }
}

/// Waits until a task is where it is wanted. When that can no longer be, a person has to look first, or the time is over, the
/// answer is a failure.
pub(super) fn for_task(
    id: &str,
    statuses: &[String],
    within: Option<Duration>,
    output: CliOutput,
) -> Result<CliExit, CliFailure> {
    let client = connect()?;
    let brief = |id: &str| task::of(id, "?brief=true");
    let first: TaskAnswer = first(|engine| engine.get(&brief(id)), id)?;
    let id = first.task.id.clone();
    let now = std::cell::RefCell::new(first);
    if let Some(unknown) = statuses.iter().find(|status| !now.borrow().task.statuses.contains(status)) {
        let answer = now.borrow();
        let message = format!("`{unknown}` is no status of task {id}, which follows `{}`", answer.task.workflow);
        return Err(CliFailure::new(CliExit::Usage, "bad_request", message)
            .hint(format!("one of: {}", answer.task.statuses.join(", "))));
    }
    let settled = |answer: &TaskAnswer| is_settled(answer, statuses);
    let is_settled = settled(&now.borrow());
    let in_time = is_settled
        || until(
            &client,
            within,
            || task::of(&id, &format!("/events?follow=true&after={}", now.borrow().task.version)),
            || {
                *now.borrow_mut() = client.get(&brief(&id))?;
                Ok(settled(&now.borrow()))
            },
        )
        .map_err(|problem| unreadable(&id, problem))?;
    told_of_task(now.into_inner(), statuses, in_time, output)
}

/// Whether there is nothing more to wait for. A task that is where it is wanted is there when the hooks of its move are done:
/// one of them may fail.
fn is_settled(answer: &TaskAnswer, statuses: &[String]) -> bool {
    let task = &answer.task;
    match statuses.contains(&task.status) {
        true => !answer.still_running || other_reason(task).is_some(),
        false => task.ended || task.needs_person,
    }
}

/// What a task needs a person for beside the state that it is in.
fn other_reason(task: &Task) -> Option<AttentionCause> {
    let first = task.attention.as_ref().filter(|_| task.needs_person || task.ended)?.reason;
    match first {
        AttentionCause::Review | AttentionCause::Clarification | AttentionCause::Stuck => task.also,
        AttentionCause::Question
        | AttentionCause::Gate
        | AttentionCause::Conflict
        | AttentionCause::LoopExhausted
        | AttentionCause::Timeout
        | AttentionCause::HookFailed
        | AttentionCause::Crashed
        | AttentionCause::CannotStart
        | AttentionCause::Dialog
        | AttentionCause::Quiet
        | AttentionCause::PoolFull
        | AttentionCause::WorkAtRisk
        | AttentionCause::Store
        | AttentionCause::Worker => Some(first),
    }
}

/// Looks for the first time: an engine that goes away meanwhile is started again, as by any other command.
fn first<T>(look: impl Fn(&Client) -> Result<T, Problem>, id: &str) -> Result<T, CliFailure> {
    match look(&connect()?) {
        Err(problem) if problem.code == GONE => look(&connect()?),
        seen => seen,
    }
    .map_err(|problem| unreadable(id, problem))
}

/// Why a task or run cannot be looked at: what is damaged waits for a person, and the rest can be asked for again.
fn unreadable(id: &str, problem: Problem) -> CliFailure {
    if problem.code != Problem::DAMAGED {
        return problem.into();
    }
    let message = format!("{id} needs a person ({}): {}", AttentionCause::Store, problem.message);
    CliFailure::new(CliExit::Held, "needs_person", message)
        .hint("`sluice doctor --deep` names everything that is damaged; `sluice restore FILE` puts a backup back")
}

fn told_of_task(
    answer: TaskAnswer,
    statuses: &[String],
    in_time: bool,
    output: CliOutput,
) -> Result<CliExit, CliFailure> {
    let (task, id) = (&answer.task, &answer.task.id);
    let is_there = statuses.contains(&task.status) || (statuses.is_empty() && task.ended && task.status != CANCELLED);
    // A task that has ended is not waited for, whatever it still owes; the inbox has that.
    let is_asked = !statuses.is_empty();
    let other = other_reason(task).filter(|_| is_asked);
    if is_there && other.is_none() && !(is_asked && answer.still_running) {
        return task::answered(&answer, output);
    }
    let story = format!("`sluice task history {id}` tells what happened");
    let about = task.attention.as_ref().map(|attention| format!(": {}", attention.text)).unwrap_or_default();
    if task.ended && !is_there {
        let message = format!("task {id} has ended in `{}`", task.status);
        return Err(CliFailure::new(CliExit::Refused, "not_there", message).hint(story));
    }
    if !in_time && (!is_there || other.is_none()) {
        let message = format!("the time is over, and task {id} is in `{}`{about}", task.status);
        return Err(CliFailure::new(CliExit::Unavailable, "timeout", message).hint("nothing was changed; wait again"));
    }
    let way = task.attention.as_ref().and_then(|note| {
        let command = note.command()?;
        Some(with_others(format!("`{command}`"), &note.choices))
    });
    let hint = way.unwrap_or_else(|| "`sluice inbox` shows what waits for you".to_owned());
    let reason = other.or_else(|| task.attention.as_ref().map(|note| note.reason));
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    attended::ring(output, &format!("{} needs you{reason}", task.branch));
    let message = format!("task {id} is in `{}` and needs a person{reason}{about}", task.status);
    Err(CliFailure::new(CliExit::Held, "needs_person", message).hint(hint))
}

/// A command, and what else can be answered.
fn with_others(command: String, options: &[String]) -> String {
    let is_other = |option: &&String| !command.contains(&format!(" {option}"));
    let others: Vec<&str> = options.iter().filter(is_other).map(String::as_str).collect();
    if others.is_empty() { command } else { format!("{command}; or: {}", others.join(", ")) }
}

/// Waits until a run has ended or needs a person.
pub(super) fn for_run(id: &str, within: Option<Duration>, output: CliOutput) -> Result<CliExit, CliFailure> {
    let client = connect()?;
    let path = |id: &str| format!("{}/{}", run::RUNS, escape(id));
    let look = |client: &Client, id: &str| {
        let RunAnswer { run } = client.get(&path(id))?;
        let wanted = asked(client, &run)?;
        Ok::<_, Problem>((run, wanted))
    };
    let first = first(|engine| look(engine, id), id)?;
    let id = first.0.id.clone();
    let now = std::cell::RefCell::new(first);
    let settled = |(run, wanted): &(Run, Option<Attention>)| is_over(run) || wanted.is_some();
    let is_settled = settled(&now.borrow());
    let in_time = is_settled
        || until(
            &client,
            within,
            || format!("{}/events?follow=true&after={}", path(&id), now.borrow().0.version),
            || {
                *now.borrow_mut() = look(&client, &id)?;
                Ok(settled(&now.borrow()))
            },
        )
        .map_err(|problem| unreadable(&id, problem))?;
    let (now, wanted) = now.into_inner();
    told_of_run(now, wanted, in_time, output)
}

fn told_of_run(now: Run, wanted: Option<Attention>, in_time: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
    let id = now.id.clone();
    let look = format!("`sluice run show {id}` tells more");
    let failure = match (now.status, wanted) {
        (RunStatus::Completed, _) => {
            let answer = RunAnswer { run: now };
            return output.show(&answer, || run::print_run(&answer.run));
        }
        (RunStatus::Failed | RunStatus::Cancelled, _) => {
            let why = now.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
            CliFailure::new(CliExit::Refused, "not_there", format!("run {id} is {}{why}", now.status)).hint(look)
        }
        (RunStatus::Held | RunStatus::Running, Some(attention)) => {
            attended::ring(output, &format!("{} needs you ({})", attention.title, attention.reason));
            let message = format!("run {id} needs a person ({}): {}", attention.reason, attention.text);
            let way = attention.command().map(|command| format!("answer it with `{command}`"));
            let way = way.map(|way| with_others(way, &attention.options));
            CliFailure::new(CliExit::Held, "needs_person", message).hint(way.unwrap_or(look))
        }
        (RunStatus::Held | RunStatus::Running, None) => {
            let waits = if in_time { "the engine has ended the answer" } else { "the time is over" };
            CliFailure::new(CliExit::Unavailable, "timeout", format!("{waits}, and run {id} is {}", now.status))
                .hint("nothing was changed; wait again")
        }
    };
    Err(failure)
}

fn is_over(run: &Run) -> bool {
    match run.status {
        RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled => true,
        RunStatus::Running | RunStatus::Held => false,
    }
}

/// What a run waits for, if a person is needed for it; what passes by itself is waited for. A full disk does not.
fn asked(client: &Client, run: &Run) -> Result<Option<Attention>, Problem> {
    if is_over(run) {
        return Ok(None);
    }
    let passes =
        |attention: &Attention| attention.reason == AttentionCause::Timeout && attention.kind == AttentionKind::Wait;
    match client.get::<Inbox>("/v1/inbox") {
        Ok(inbox) => {
            let mut own = inbox.questions.into_iter().filter(|it| it.run.as_deref() == Some(run.id.as_str()));
            Ok(own.find(|it| !passes(it)))
        }
        Err(problem) if problem.status == ProblemStatus::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}
