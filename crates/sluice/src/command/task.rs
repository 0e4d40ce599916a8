//! `sluice task`: said to the engine, and shown to whoever asked.

use std::cell::Cell;
use std::io::{IsTerminal, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use serde_json::{Value, json};
use sluice_api::client::escape;
use sluice_api::event::EventShown;
use sluice_api::task::{
    Attach, Branch, CreateTask, History, Judgement, MergeTask, Message, SessionPulse, Task, TaskAnswer, TaskFile,
    TaskList, UpdateTask,
};
use sluice_api::{Client, Problem};
use sluice_core::event_name::EventName;
use sluice_core::task::TaskKey;
use sluice_os::process::HomeNesting;
use sluice_os::tmux::Tmux;

use super::home::event_line;
use super::{task_moves, wait, watch, work};
use crate::args::{
    DiffArgs, TaskCommand, TaskCreateArgs, TaskEndArgs, TaskIdArg, TaskJudgeArgs, TaskMergeArgs, TaskUpdateArgs,
    own_words,
};
use crate::engine::{ask, connect};
use crate::output::{CliExit, CliFailure, CliOutput, harmless, print, print_as_written, print_json, say};
use crate::table;

const TASKS: &str = "/v1/lifecycle/tasks";

/// The way out where there is no task.
const MAKES_ONE: &str = "`sluice task create BRANCH SUMMARY` makes one";

pub(crate) fn run(arguments: TaskCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    match arguments {
        TaskCommand::Create(arguments) => create(arguments, output),
        TaskCommand::List { status, project, all, watch } => {
            watch::maybe(watch, || list(status.clone(), project.clone(), all, output))
        }
        TaskCommand::Show(TaskIdArg { id }) => {
            let answer: TaskAnswer = ask(|engine| engine.get(&of(&id, "")))?;
            output.show(&json!({ "task": answer.task }), || {
                print(&format!("{}{}", sheet(&answer.task), task_moves::told(&answer.task)))
            })
        }
        TaskCommand::History(TaskIdArg { id }) => {
            let history: History = ask(|engine| engine.get(&of(&id, "/history")))?;
            output.show(&history, || {
                let story = history.events.iter().filter(|event| is_told(event));
                story.for_each(|event| print(&event_line(event)));
                let id = history.events.first().map_or(id.as_str(), |event| event.correlation_id.as_str());
                say(&format!("all events of this task: sluice events --correlation {id}"));
            })
        }
        TaskCommand::Diff(DiffArgs { id, stat }) => work::diff(&of(&id, "/diff"), stat, output),
        TaskCommand::Log { id, lines, follow: false } => work::log(&of(&id, &format!("/log?lines={lines}")), output),
        TaskCommand::Log { id, lines, follow: true } => {
            work::follow_log(&of(&id, &format!("/log/stream?lines={lines}")), output)
        }
        TaskCommand::Open { id, print } => work::open(&of(&id, ""), print, output),
        TaskCommand::File { id, at, list } => file(&id, at, list, output),
        TaskCommand::Update(arguments) => update(arguments, output),
        TaskCommand::Wait { id, statuses, timeout } => wait::for_task(&id, &statuses, timeout, output),
        TaskCommand::Spawn(TaskIdArg { id }) => post(&id, "/spawn", &json!({}), output),
        TaskCommand::Respawn(TaskIdArg { id }) => post(&id, "/respawn", &json!({}), output),
        TaskCommand::Attach(TaskIdArg { id }) => attach(&id),
        TaskCommand::CreatePr(TaskIdArg { id }) => post(&id, "/create-pr", &json!({}), output),
        TaskCommand::Cancel(TaskEndArgs { id, yes }) => {
            confirm(
                yes,
                ("task cancel", &format!("task {id}")),
                &format!("Cancel task {id}? Its agents are ended; work that is not committed is kept."),
            )?;
            post(&id, "/cancel", &json!({}), output)
        }
        TaskCommand::Delete(TaskEndArgs { id, yes }) => {
            confirm(
                yes,
                ("task delete", &format!("task {id}")),
                &format!("Delete task {id} and its branch? Work that is not merged is kept."),
            )?;
            answered(&connect()?.delete(&of(&id, ""))?, output)
        }
        TaskCommand::Merge(TaskMergeArgs { id, local, strategy, force, commit }) => {
            let strategy = strategy.and_then(|it| it.to_possible_value()).map(|it| it.get_name().to_owned());
            post(&id, "/merge", &MergeTask { local, strategy, force, commit }, output)
        }
        TaskCommand::Approve(TaskJudgeArgs { id, message }) => post(&id, "/approve", &Judgement { message }, output),
        TaskCommand::Reject(TaskJudgeArgs { id, message }) => post(&id, "/reject", &Judgement { message }, output),
        TaskCommand::RequestChanges { id, message } => post(&id, "/request-changes", &Message { message }, output),
        TaskCommand::Nudge { id, text } => {
            let message = own_words(&text.join(" "));
            let message = message.map_err(|why| CliFailure::new(CliExit::Usage, "usage", why))?;
            post(&id, "/nudge", &Message { message }, output)
        }
    }
}

/// Whether an event belongs to the story that a person wants to hear; the rest is how the engine goes about it.
fn is_told(event: &EventShown) -> bool {
    const UNTOLD: [EventName; 9] = [
        EventName::ArtifactRead,
        EventName::EffectSettled,
        EventName::HookAsked,
        EventName::HookIdle,
        EventName::SessionAsked,
        EventName::SessionEnding,
        EventName::TurnSettled,
        EventName::WorkspaceBound,
        EventName::WorkspaceReserved,
    ];
    EventName::read(&event.kind).is_none_or(|name| !UNTOLD.contains(&name))
}

/// The path of a task, and of something of it.
pub(super) fn of(id: &str, rest: &str) -> String {
    format!("{TASKS}/{}{rest}", escape(id))
}

fn post(id: &str, rest: &str, body: &impl serde::Serialize, output: CliOutput) -> Result<CliExit, CliFailure> {
    answered(&connect()?.post(&of(id, rest), body)?, output)
}

fn create(arguments: TaskCreateArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let wanted = arguments.wanted();
    let context = match wanted.context.as_deref() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| {
                CliFailure::new(
                    CliExit::Usage,
                    "bad_context",
                    format!("standard input cannot be read as text: {error}"),
                )
            })?;
            Some(text)
        }
        _ => wanted.context.clone(),
    };
    let environment = || std::env::var("SLUICE_HARNESS").ok().filter(|name| !name.is_empty());
    let wanted = CreateTask {
        cwd: std::env::current_dir().ok().map(|here| here.display().to_string()),
        harness: wanted.harness.clone().or_else(environment),
        context,
        ..wanted
    };
    answered(&connect()?.post(TASKS, &wanted)?, output)
}

fn list(status: Option<String>, project: Option<String>, all: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
    let filter = |name: &str, value: Option<String>| value.map(|value| format!("{name}={}", escape(&value)));
    let every = all.then(|| "all=true".to_owned());
    let query: Vec<String> =
        [filter("status", status), filter("project", project), every].into_iter().flatten().collect();
    let mut answer: TaskList = ask(|engine| engine.get(&format!("{TASKS}?{}", query.join("&"))))?;
    while let Some(next) = answer.next.take() {
        let path = format!("{TASKS}?{}&after={}", query.join("&"), escape(&next));
        let more: TaskList = ask(|engine| engine.get(&path))?;
        answer.tasks.extend(more.tasks);
        answer.next = more.next;
    }
    answer.tasks.sort_by(|one, other| (&one.created_at, &one.id).cmp(&(&other.created_at, &other.id)));
    match output {
        CliOutput::Json => print_json(&json!({ "tasks": answer.tasks })),
        CliOutput::People if answer.tasks.is_empty() && query.is_empty() => {
            let ended: TaskList = ask(|engine| engine.get(&format!("{TASKS}?all=true")))?;
            say(&table::none("task", ended.tasks.len(), ended.next.is_some(), MAKES_ONE));
        }
        CliOutput::People if answer.tasks.is_empty() && all => say(&table::none("such task", 0, false, MAKES_ONE)),
        CliOutput::People if answer.tasks.is_empty() => say("no such tasks; --all shows those that have ended as well"),
        CliOutput::People => {
            let columns = columns();
            let rows = answer.tasks.iter().map(|task| (colour(task), row(task, &columns)));
            table::print_coloured(&columns, "status", rows);
        }
    }
    Ok(CliExit::Done)
}

/// What a list shows of each task: what the table of its keys says, and how its session is.
fn columns() -> Vec<&'static str> {
    let listed = TaskKey::ALL.iter().filter(|key| key.is_column()).map(|key| key.word());
    let mut columns: Vec<&str> = listed.chain(["session", "changed"]).collect();
    columns.sort_by_key(|column| match *column {
        "id" => 0,
        "project" => 1,
        "status" => 2,
        "session" => 3,
        "changed" => 5,
        // The longest text is the last.
        "summary" => 6,
        _ => 4,
    });
    columns
}

/// What a look at a list is for: who needs a person, what is at work, what is over.
fn colour(task: &Task) -> Style {
    match task.session {
        _ if task.ended => Style::new().dimmed(),
        SessionPulse::Crashed => AnsiColor::Red.on_default(),
        _ if task.needs_person => AnsiColor::Yellow.on_default(),
        SessionPulse::Active => AnsiColor::Green.on_default(),
        SessionPulse::Inactive => Style::new(),
    }
}

fn row(task: &Task, columns: &[&str]) -> Vec<String> {
    let facts = serde_json::to_value(task).unwrap_or_default();
    let cell = |column: &&str| match (*column, &task.attention, &facts[*column]) {
        ("changed", _, _) => table::ago(&task.updated_at),
        ("summary", Some(attention), _) => {
            format!("! {}: {} · {}", attention.reason, because(&attention.text, &task.last_lines), task.summary)
        }
        (_, _, Value::Null) => String::new(),
        (_, _, value) => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    };
    columns.iter().map(cell).collect()
}

/// Why a task needs a person, in a list: what its agent said before it died comes first, because a line has little room.
fn because(text: &str, last_lines: &[String]) -> String {
    match (text.split_once(". It said "), last_lines.last()) {
        (Some((end, said)), _) => format!("{said} · {end}"),
        (None, Some(line)) => format!("{} · {text}", line.trim()),
        (None, None) => text.to_owned(),
    }
}

fn file(id: &str, version: Option<usize>, list: bool, output: CliOutput) -> Result<CliExit, CliFailure> {
    let query = version.map(|number| format!("?version={number}")).unwrap_or_default();
    let answer: TaskFile = ask(|engine| engine.get(&of(id, &format!("/file{query}"))))?;
    match output {
        CliOutput::Json if list => print_json(&json!({ "versions": answer.versions })),
        CliOutput::Json => print_json(&json!({ "file": { "version": answer.version, "text": answer.text } })),
        CliOutput::People if list => {
            let rows =
                answer.versions.iter().map(|it| vec![it.version.to_string(), it.time.clone(), it.bytes.to_string()]);
            table::print(&["version", "read at", "bytes"], rows);
        }
        CliOutput::People => print_as_written(answer.text.as_bytes()),
    }
    Ok(CliExit::Done)
}

fn update(arguments: TaskUpdateArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let TaskUpdateArgs { id, status, branch, summary } = arguments;
    let id = match id {
        Some(id) => id,
        None => ask(here)?,
    };
    let branch = branch.map(|name| if name.is_empty() { Branch::Current } else { Branch::Named(name) });
    let wanted = UpdateTask { status, branch, summary };
    let asked = Cell::new(false);
    let answer = ask(|engine| {
        // An engine that goes away has heard it or not. An agent cannot find that out, and would take a no for its own
        // mistake: a task that already stands where it was to go has been moved.
        if asked.replace(true) {
            let now: TaskAnswer = engine.get(&of(&id, ""))?;
            if wanted.status.as_ref() == Some(&now.task.status) {
                return Ok(now);
            }
        }
        engine.patch(&of(&id, ""), &wanted)
    });
    answered(&answer?, output)
}

fn here(client: &Client) -> Result<String, Problem> {
    if let Some(id) = std::env::var("SLUICE_TASK").ok().filter(|id| !id.is_empty()) {
        return Ok(id);
    }
    let folder = std::env::current_dir().map(|here| here.display().to_string()).unwrap_or_default();
    let answer: TaskAnswer = client.get(&format!("{TASKS}/here?cwd={}", escape(&folder)))?;
    Ok(answer.task.id)
}

pub(super) fn attach(id: &str) -> Result<CliExit, CliFailure> {
    let Attach { socket, target } = connect()?.get(&of(id, "/attach"))?;
    // What is run is decided here. An engine elsewhere only names a place, which may be on another machine.
    let is_pane = target.strip_prefix('%').is_some_and(|it| !it.is_empty() && it.chars().all(|it| it.is_ascii_digit()));
    let is_here = std::fs::metadata(&socket).is_ok_and(|it| it.file_type().is_socket());
    if !is_pane || !is_here {
        let message = format!("the session of task {id} is not on this machine");
        return Err(CliFailure::new(CliExit::Refused, "not_here", message)
            .hint("log in on the engine's machine and say `sluice task attach` there"));
    }
    // A client of tmux runs what its server says, and agents can talk to that server: what it runs is no person.
    let within = HomeNesting::enter(&crate::places::home().unwrap_or_default());
    within.mark().map_err(|error| Problem::fault(format!("tmux cannot be marked as an agent's: {error}")))?;
    let command = Tmux::new("tmux", socket).attach_command(&target);
    let mut tmux = std::process::Command::new("tmux");
    // Inside another tmux it would refuse to nest.
    let error = tmux.args(&command[1..]).envs([within.assignment()]).env_remove("TMUX").exec();
    Err(CliFailure::new(CliExit::Unavailable, "no_tmux", format!("tmux cannot be run: {error}"))
        .hint("install tmux; `sluice doctor` tells more"))
}

/// Asks a person, unless that has been answered.
pub(super) fn confirm(yes: bool, (command, what): (&str, &str), question: &str) -> Result<(), CliFailure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let message =
            format!("`{command}` needs your confirmation, and there is no terminal to ask on; nothing was changed");
        return Err(CliFailure::new(CliExit::Usage, "not_confirmed", message).hint("add --yes to confirm"));
    }
    let _ = write!(anstream::stderr(), "{} [y/N] ", harmless(question));
    let mut answer = String::new();
    let _ = std::io::stdin().read_line(&mut answer);
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => {
            let message = format!("you did not confirm; {what} is unchanged");
            Err(CliFailure::new(CliExit::Refused, "not_confirmed", message))
        }
    }
}

pub(super) fn answered(answer: &TaskAnswer, output: CliOutput) -> Result<CliExit, CliFailure> {
    output.show(answer, || tell(answer))
}

pub(super) fn tell(answer: &TaskAnswer) {
    let task = &answer.task;
    match &answer.transition {
        Some(transition) => say(&format!("{}: {} → {}", task.id, transition.from, transition.to)),
        None => say(&format!("{}: {}", task.id, task.status)),
    }
    let effects = answer.transition.iter().flat_map(|transition| &transition.effects);
    for effect in effects.filter(|effect| effect.error.is_some()) {
        let reason = effect.error.as_deref().unwrap_or_default();
        say(&format!("  {} {}: {reason}", effect.action, effect.status));
    }
    answer.notes.iter().for_each(|note| say(&format!("  {note}")));
    if let Some(attention) = &task.attention {
        say(&format!("  attention: {} ({})", attention.text, attention.reason));
    }
    if answer.still_running {
        say("  still running; `sluice task show` tells when it has settled");
    }
    print(&format!("{}\n", task.id));
}

/// Everything about a task, a line for each fact.
fn sheet(task: &Task) -> String {
    let Ok(Value::Object(facts)) = serde_json::to_value(task) else { return String::new() };
    let is_told = |(key, value): &(&String, &Value)| {
        !value.is_null() && !["statuses", "needs_person", "last_lines", "moves", "version"].contains(&key.as_str())
    };
    let lines = facts.iter().filter(is_told).map(|(key, value)| {
        let text = match (key.as_str(), &task.lent) {
            ("attention", _) => {
                task.attention.as_ref().map(|it| format!("{} ({})", it.text, it.reason)).unwrap_or_default()
            }
            ("lent", Some(lent)) => {
                format!(
                    "{} to another task; the task takes one up again when it moves, at {}",
                    lent.workspace, lent.commit
                )
            }
            ("created_at" | "updated_at", _) => {
                let at = value.as_str().unwrap_or_default();
                format!("{at} ({} ago)", table::ago(at))
            }
            _ => value.as_str().map_or_else(|| value.to_string(), |text| table::line(text, 2000)),
        };
        format!("{:<15} {text}\n", key.replace('_', " "))
    });
    let said = task.last_lines.iter().map(|line| format!("  | {}\n", table::line(line, 2000)));
    let head = if task.last_lines.is_empty() { "" } else { "\nits agent died, and printed last\n" };
    lines.chain([head.to_owned()]).chain(said).collect()
}
