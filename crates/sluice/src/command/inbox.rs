//! `sluice inbox`, `answer` and `notify test`: what waits for a person, and how it is answered.

use std::collections::BTreeSet;
use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use serde_json::json;
use sluice_api::attention::{Attention, AttentionAnswer, AttentionCause, AttentionSource};
use sluice_api::notice::{ChannelOutcome, ChannelReport, NotifyReport, RefusedNotice};
use sluice_api::shell::{answer_command, shell_word};
use sluice_api::shown::Inbox;
use sluice_api::task::TaskAnswer;

use super::{attended, run, task, watch};
use crate::args::{AnswerArgs, InboxArgs};
use crate::engine::{ask, connect};
use crate::output::{CliExit, CliFailure, CliOutput, harmless, print, print_coloured, say};
use crate::table;

/// Lines of what was printed last that are shown of each thing; `task log` and `run log` show more.
const MOST_EVIDENCE: usize = 3;
/// Characters of a title, at the most and at the least, and of what stands behind it.
const LONGEST_TITLE: usize = 60;
const SHORTEST_TITLE: usize = 12;
const LONGEST_ABOUT: usize = 100;

/// Shows what waits; with `--watch` again after everything that happens, and rings for what is new.
pub(crate) fn inbox(arguments: &InboxArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let mut known: Option<BTreeSet<String>> = None;
    watch::maybe(arguments.watch, || {
        let answer: Inbox = ask(|engine| engine.get("/v1/inbox"))?;
        let waiting: BTreeSet<String> = answer.questions.iter().map(|attention| attention.id.clone()).collect();
        let mut new = answer.questions.iter().filter(|it| known.as_ref().is_some_and(|known| !known.contains(&it.id)));
        if let Some(first) = new.next() {
            let title = format!("{} needs you ({})", first.title, first.reason);
            let more = new.count();
            let more = if more == 0 { String::new() } else { format!(", and {more} more") };
            attended::ring(output, &format!("{title}{more}"));
        }
        known = Some(waiting);
        output.show(&answer, || show(&answer.questions))
    })
}

/// Everything that waits, the oldest first, and at the end how much that is: there a person sees it on a short terminal.
fn show(waiting: &[Attention]) {
    if waiting.is_empty() {
        return say("nothing waits for you");
    }
    let width = table::width();
    waiting.iter().for_each(|attention| print_coloured(&block(attention, width)));
    let mut reasons: Vec<(AttentionCause, usize)> = Vec::new();
    for attention in waiting {
        match reasons.iter_mut().find(|(reason, _)| *reason == attention.reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((attention.reason, 1)),
        }
    }
    let words: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let things = if waiting.len() == 1 { "1 thing waits".to_owned() } else { format!("{} things wait", waiting.len()) };
    table::wrapped(&format!("{things} for you: {}", words.join(", ")), width, "").iter().for_each(|line| say(line));
}

/// One thing that waits: what it is, why, since when, what was printed last, and the command that solves it.
fn block(attention: &Attention, width: Option<usize>) -> String {
    let bold = Style::new().bold();
    let colour = colour(attention.reason);
    let mut more = Vec::new();
    more.extend(attention.step.as_ref().map(|step| format!("step {step}")));
    more.extend(attention.project.as_ref().map(|project| format!("in {project}")));
    more.push(format!("for {}", table::ago(&attention.since)));
    match attention.said_by {
        AttentionSource::Engine => {}
        by @ (AttentionSource::Protocol | AttentionSource::Hook | AttentionSource::Exit | AttentionSource::Screen) => {
            more.push(format!("by its {by}"));
        }
    }
    let more = table::line(&format!(" · {}", more.join(" · ")), LONGEST_ABOUT);
    let reason = attention.reason.to_string();
    let room = width.map_or(LONGEST_TITLE, |width| width.saturating_sub(reason.len() + 2 + more.chars().count()));
    let title = harmless(&table::line(&attention.title, room.clamp(SHORTEST_TITLE, LONGEST_TITLE)));
    let mut text = format!("{colour}{reason}{colour:#}  {bold}{title}{bold:#}{}\n", harmless(&more));
    let mut paragraph = |words: &str, indent: &str| {
        for line in table::wrapped(&harmless(&table::line(words, 2000)), width, indent) {
            text.push_str(&format!("{line}\n"));
        }
    };
    paragraph(&attention.text, "    ");
    let shown = attention.evidence.len().saturating_sub(MOST_EVIDENCE);
    for line in &attention.evidence[shown..] {
        let longest = width.map_or(2000, |width| width.saturating_sub(6));
        text.push_str(&format!("    | {}\n", harmless(&table::line(line, longest))));
    }
    if let (Some(default), Some(deadline)) = (&attention.default, &attention.deadline) {
        text.push_str(&format!("    `{}` is the answer at {deadline}\n", harmless(&table::line(default, 200))));
    }
    let command = attention.command();
    text.extend(command.iter().map(|command| format!("  → {bold}{}{bold:#}\n", harmless(command))));
    let others = others(attention, command.as_deref());
    if !others.is_empty() {
        for line in table::wrapped(&format!("or `sluice answer {} …`: {others}", attention.id), width, "    ") {
            text.push_str(&format!("{}\n", harmless(&line)));
        }
    }
    text.push('\n');
    text
}

/// What else can be answered.
fn others(attention: &Attention, command: Option<&str>) -> String {
    let is_shown = |option: &&String| {
        let answer = answer_command(&attention.id, option);
        let attach = option.as_str() == "attach" && command.is_some_and(|it| it.starts_with("sluice task attach"));
        attach || command.is_some_and(|it| it == answer)
    };
    let typed = |option: &String| match option.as_str() {
        "request-changes" => "request-changes --message TEXT".to_owned(),
        other => shell_word(other),
    };
    let rest: Vec<String> = attention.options.iter().filter(|it| !is_shown(it)).map(typed).collect();
    rest.join(", ")
}

/// Red: something went wrong. Yellow: something waits.
fn colour(reason: AttentionCause) -> Style {
    if reason.is_failure() { AnsiColor::Red.on_default() } else { AnsiColor::Yellow.on_default() }
}

pub(crate) fn answer(arguments: AnswerArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let AnswerArgs { id, option, message } = arguments;
    let answer: AttentionAnswer =
        connect()?.post("/v1/inbox", &json!({ "id": id, "option": option, "message": message }))?;
    let is_at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if let Some(task) = answer.task.as_ref().filter(|_| option == "attach" && is_at_terminal) {
        return task::attach(&task.id);
    }
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
        for RefusedNotice { channel, id, why } in &report.given_up {
            print(&format!("given up {}\n", table::line(&format!("{channel}: the message about {id}: {why}"), 2000)));
        }
        if report.channels.iter().all(|it| it.outcome == ChannelOutcome::Absent) {
            say("hint: `[notify]` in config.toml sets a command or webhooks (docs/working-with-tasks.md)");
        }
    })?;
    let failed = report.channels.iter().any(|it| it.outcome == ChannelOutcome::Failed);
    Ok(if failed { CliExit::Refused } else { CliExit::Done })
}
