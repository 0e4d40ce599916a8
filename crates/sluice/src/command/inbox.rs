//! `sluice inbox`, `answer` and `run wait`: what waits for a person, and how it is answered.

use std::time::Duration;

use serde_json::json;
use sluice_api::Client;
use sluice_api::attention::{Attention, AttentionAnswer, AttentionCause, AttentionKind, AttentionNote};
use sluice_api::client::escape;
use sluice_api::notice::{ChannelOutcome, ChannelReport, NotifyReport};
use sluice_api::problem::ProblemStatus;
use sluice_api::shown::{Inbox, Run, RunAnswer, RunStatus};
use sluice_api::task::TaskAnswer;

use super::{run, task};
use crate::args::AnswerArgs;
use crate::engine::connect;
use crate::output::{CliExit, CliFailure, CliOutput, print, say};
use crate::table;

pub(crate) fn inbox(output: CliOutput) -> Result<CliExit, CliFailure> {
    let answer: Inbox = connect()?.get("/v1/inbox")?;
    output.show(&answer, || {
        if answer.questions.is_empty() {
            say("nothing waits for you");
        }
        answer.questions.iter().for_each(|attention| print(&block(attention)));
    })
}

/// One thing that waits: why, what it is about, since when, what was printed last, and the command that answers it.
fn block(attention: &Attention) -> String {
    let project = attention.project.as_ref().map(|project| format!(" of {project}")).unwrap_or_default();
    let step = attention.step.as_ref().map(|step| format!(", step {step}")).unwrap_or_default();
    let said = format!("said by {}", attention.said_by);
    let mut text = format!(
        "{:<14} {}{project}{step} · since {} · {said}\n  {}\n",
        attention.reason,
        table::line(&attention.title, 200),
        attention.since,
        table::line(&attention.text, 2000)
    );
    for line in &attention.evidence {
        text.push_str(&format!("  | {}\n", table::line(line, 2000)));
    }
    if let (Some(default), Some(deadline)) = (&attention.default, &attention.deadline) {
        text.push_str(&format!("  `{}` is the answer at {deadline}\n", table::line(default, 200)));
    }
    let takes_words = attention.kind == AttentionKind::Clarification;
    text.push_str(&command(&attention.id, &attention.options, takes_words));
    text.push('\n');
    text
}

/// The command that answers, and what else can be answered.
fn command(id: &str, options: &[String], takes_words: bool) -> String {
    match options.split_first() {
        None if takes_words => format!("  sluice answer {id} TEXT\n"),
        None => String::new(),
        Some((first, rest)) => {
            let rest = match rest.is_empty() {
                true => String::new(),
                false => format!("    (or: {})", rest.join(", ")),
            };
            format!("  sluice answer {id} {}{rest}\n", typed(first))
        }
    }
}

/// An option as it is typed: what sends work back needs words.
fn typed(option: &str) -> String {
    match option {
        "request-changes" => "request-changes --message TEXT".to_owned(),
        other => other.to_owned(),
    }
}

/// The way out for a task that needs a person.
pub(super) fn way_out(note: &AttentionNote) -> Option<String> {
    let (first, rest) = note.choices.split_first()?;
    let rest = if rest.is_empty() { String::new() } else { format!("; or: {}", rest.join(", ")) };
    Some(format!("`sluice answer {} {}`{rest}", note.id, typed(first)))
}

pub(crate) fn answer(arguments: AnswerArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let AnswerArgs { id, option, message } = arguments;
    let answer: AttentionAnswer =
        connect()?.post("/v1/inbox", &json!({ "id": id, "option": option, "message": message }))?;
    output.show(&answer, || {
        answer.run.iter().for_each(run::print_run);
        if let Some(after) = &answer.task {
            let notes = answer.notes.clone();
            task::tell(&TaskAnswer { task: after.clone(), transition: None, notes, still_running: false });
        }
    })
}

/// Sends a test message through every channel through which a person is told.
pub(crate) fn test_channels(output: CliOutput) -> Result<CliExit, CliFailure> {
    let report: NotifyReport = connect()?.post("/v1/notify/test", &json!({}))?;
    output.show(&report, || {
        for ChannelReport { channel, outcome, why } in &report.channels {
            let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            print(&format!("{outcome:<8} {}\n", table::line(&format!("{channel}{why}"), 2000)));
        }
        if report.channels.iter().all(|it| it.outcome == ChannelOutcome::Absent) {
            say("hint: `[notify]` in config.toml sets a command or webhooks (docs/working-with-tasks.md)");
        }
    })?;
    let failed = report.channels.iter().any(|it| it.outcome == ChannelOutcome::Failed);
    Ok(if failed { CliExit::Refused } else { CliExit::Done })
}

/// Looks at a run after everything that happens to it, until it has ended or needs a person.
pub(super) fn wait_for_run(id: &str, within: Option<Duration>, output: CliOutput) -> Result<CliExit, CliFailure> {
    let client = connect()?;
    let path = |id: &str| format!("{}/{}", run::RUNS, escape(id));
    let RunAnswer { run: mut now } = client.get(&path(id))?;
    let id = now.id.clone();
    let mut wanted = asked(&client, &now)?;
    let mut in_time = true;
    if !is_over(&now) && wanted.is_none() {
        let events = format!("{}/events?follow=true&after={}", path(&id), now.version);
        in_time = client.lines_within(&events, within, |_| {
            now = client.get::<RunAnswer>(&path(&id))?.run;
            wanted = asked(&client, &now)?;
            Ok(!is_over(&now) && wanted.is_none())
        })?;
    }
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
            let message = format!("run {id} needs a person ({}): {}", attention.reason, attention.text);
            let takes_words = attention.kind == AttentionKind::Clarification;
            let way = command(&attention.id, &attention.options, takes_words);
            let way = if way.is_empty() { look } else { format!("answer it with {}", way.trim()) };
            CliFailure::new(CliExit::Held, "needs_person", message).hint(way)
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

/// What a run waits for, if a person is needed for it; what passes by itself is waited for.
fn asked(client: &Client, run: &Run) -> Result<Option<Attention>, sluice_api::Problem> {
    if is_over(run) {
        return Ok(None);
    }
    let passes = |attention: &Attention| {
        matches!(attention.reason, AttentionCause::Timeout | AttentionCause::WorkAtRisk)
            && attention.kind == AttentionKind::Wait
    };
    match client.get::<Inbox>("/v1/inbox") {
        Ok(inbox) => {
            let mut own = inbox.questions.into_iter().filter(|it| it.run.as_deref() == Some(run.id.as_str()));
            Ok(own.find(|it| !passes(it)))
        }
        Err(problem) if problem.status == ProblemStatus::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}
