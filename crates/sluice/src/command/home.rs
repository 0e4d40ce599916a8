//! Commands about the home itself: its log, its health, its copy, its end.

use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};
use sluice_api::board::BoardRows;
use sluice_api::client::{EngineAbsence, escape, named};
use sluice_api::event::EventShown;
use sluice_api::{Client, Problem};
use sluice_home::doctor::EngineSign;
use sluice_home::settings::backup::{DisplacedStore, MissingLogPolicy};

use crate::args::{BackupArgs, CompletionsArgs, DoctorArgs, EventsArgs, RestoreArgs, SkillCommand};
use crate::engine::{connect, places, running, wait_for_end};
use crate::output::{CliExit, CliFailure, CliOutput, print, print_bytes, say};

pub(crate) fn events(arguments: &EventsArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let client = connect()?;
    std::thread::spawn(end_with_the_reader);
    let mut damaged = false;
    let mut take = |line: &str| {
        damaged |= line.contains("\"type\":\"store.damaged\"");
        match output {
            CliOutput::Json => print_bytes(format!("{line}\n").as_bytes()),
            CliOutput::People => match serde_json::from_str(line) {
                Ok(event) => print(&whole_line(&event)),
                Err(_) => print(&format!("{line}\n")),
            },
        }
    };
    let read = match arguments.follow {
        true => follow_events(&client, arguments, &mut take),
        false => client.lines(&format!("/v1/events?{}", filters(arguments).join("&")), |line| {
            take(line);
            Ok(true)
        }),
    };
    match (read.map_err(CliFailure::from), output) {
        (Ok(()), _) if damaged => {
            say("error: some of the log is damaged; it stands there as `store.damaged`");
            say("hint: `sluice doctor --deep` names everything; `sluice restore FILE` puts a backup back");
            Ok(CliExit::Unavailable)
        }
        (Ok(()), _) => Ok(CliExit::Done),
        (Err(failure), CliOutput::People) => Err(failure),
        // One object a line, to the end.
        (Err(failure), CliOutput::Json) => {
            print_bytes(format!("{}\n", failure.document()).as_bytes());
            Ok(failure.exit)
        }
    }
}

/// What is wanted of the log, as the route says it.
fn filters(arguments: &EventsArgs) -> Vec<String> {
    let EventsArgs { follow: _, all: _, kind, since, correlation } = arguments;
    let pair = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}={}", escape(value)));
    [pair("type", kind), pair("since", since), pair("correlation", correlation)].into_iter().flatten().collect()
}

/// Takes events as they happen. When the engine goes away, the next one goes on after the last event that was taken.
fn follow_events(client: &Client, arguments: &EventsArgs, take: &mut impl FnMut(&str)) -> Result<(), Problem> {
    client.health()?;
    let mut last = match arguments.all || arguments.since.is_some() {
        true => None,
        // The end of the log: no row has this id, and the answer says where the log was read to.
        false => Some(client.get::<BoardRows>("/v1/board/rows?id=-")?.cursor),
    };
    client.with_engines(EngineAbsence::Bounded(None), || {
        let after = last.map(|last| format!("after={last}"));
        let query: Vec<String> =
            filters(arguments).into_iter().chain(["follow=true".to_owned()]).chain(after).collect();
        client.lines(&format!("/v1/events?{}", query.join("&")), |line| {
            take(line);
            last = serde_json::from_str::<EventShown>(line).ok().map(|event| event.seq).or(last);
            Ok(true)
        })
    })
}

/// Ends this process when nobody reads what it prints any more (`| head`): the next event, at which that would be noticed,
/// may be hours away.
pub(super) fn end_with_the_reader() {
    let stdout = std::io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let ended = poll(&mut watched, None).is_ok();
    if ended && watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
        std::process::exit(0);
    }
}

/// An event on a line: when, what, whose, who, and the facts.
fn whole_line(event: &EventShown) -> String {
    let subject = event.subject.as_deref().map(|subject| format!("{subject} ")).unwrap_or_default();
    line_of(event, &format!("{:<28} ", crate::table::line(&format!("{subject}{}", event.correlation_id), 60)))
}

/// An event of one task on a line: when, what, who, and the facts.
pub(crate) fn event_line(event: &EventShown) -> String {
    line_of(event, "")
}

fn line_of(event: &EventShown, whose: &str) -> String {
    let fact = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let facts: Vec<String> = event
        .data
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, value)| !value.is_null() && *key != "project" && *key != "task_id")
        .map(|(key, value)| format!("{key}={}", crate::table::line(&fact(value), 80)))
        .collect();
    format!("{}  {:<20} {whose}{:<12} {}\n", event.time, event.kind, event.actor, facts.join(" "))
}

pub(crate) fn stop(output: CliOutput) -> Result<CliExit, CliFailure> {
    let told = |message: &str, stopped: bool| output.show(&json!({ "stopped": stopped }), || say(message));
    if let Some(client) = Client::of_environment()? {
        client.post::<Value>("/v1/stop", &json!({}))?;
        return told("the engine has been told to end; sessions go on", true);
    }
    let places = places()?;
    let Some(client) = running(&places)? else { return told("no engine runs here", false) };
    client.post::<Value>("/v1/stop", &json!({}))?;
    wait_for_end(&places);
    told("the engine has ended; sessions go on", true)
}

pub(crate) fn backup(arguments: &BackupArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let file = std::path::absolute(&arguments.file).unwrap_or_else(|_| arguments.file.clone());
    let answer: Value = connect()?.post("/v1/backup", &json!({ "file": file.display().to_string() }))?;
    output.show(&answer, || say(&format!("copied to {}", file.display())))
}

pub(crate) fn restore(arguments: &RestoreArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let places = places()?;
    let home = places.home().display().to_string();
    if let Some(url) = named() {
        let message = format!("SLUICE_URL names {url}, and only a home of this machine can be restored");
        return Err(CliFailure::new(CliExit::Usage, "bad_request", message)
            .hint(format!("restore that one on its own machine; without SLUICE_URL this restores {home}")));
    }
    crate::engine::make_home(&places)?;
    // What is no copy ends nobody. And nobody starts an engine before the copy is in its place.
    let log = if arguments.without_log { MissingLogPolicy::MayBeMissing } else { MissingLogPolicy::Needed };
    sluice_home::settings::backup::look(&arguments.file, log)?;
    let _starting = crate::engine::starting(&places)?;
    if !crate::engine::end_background(&places)? {
        sluice_home::ask::denied::must_be_person(&places, "restore")?;
    }
    let DisplacedStore { aside, passed_over } = sluice_home::settings::backup::restore(&places, &arguments.file, log)?;
    let file = arguments.file.display().to_string();
    let document = json!({ "restored": file, "home": home, "aside": aside, "passed_over": passed_over });
    output.show(&document, || {
        say(&format!("the home {home} is restored from {file}"));
        aside.iter().for_each(|path| say(&format!("the store before it is kept as {path}")));
        let newer = |path: &PathBuf| say(&format!("it holds less than what an engine saved: {}", path.display()));
        passed_over.iter().for_each(newer);
    })
}

pub(crate) fn doctor(arguments: &DoctorArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let places = places()?;
    let (engine, sign) = match running(&places) {
        Ok(Some(engine)) => (Some(engine), EngineSign::Answers),
        Ok(None) => (None, EngineSign::None),
        // It runs all the same, and the rest can be looked at without it.
        Err(_) => (None, EngineSign::Silent),
    };
    let mut findings: Vec<_> = named().map(|url| sluice_home::doctor::elsewhere(&places, &url)).into_iter().collect();
    findings.extend(sluice_home::doctor::examine(&places, sign, arguments.deep));
    // Who is known to whom only the engine can say; if none runs, none is started for it.
    let list = engine.and_then(|engine| engine.get("/v1/workspaces").ok());
    findings.extend(sluice_home::doctor::worktrees(list.as_ref()));
    findings.extend(sluice_api::client::paused().map(sluice_home::doctor::paused));
    let is_damaged = findings.iter().any(|finding| finding.name == sluice_home::doctor::DAMAGE);
    let is_well = findings.iter().all(|finding| finding.status != sluice_home::doctor::DoctorStatus::Broken);
    output.show(&json!({ "ok": is_well, "checks": findings }), || {
        for finding in &findings {
            print(&format!("{:<8} {:<14} {}\n", finding.status.word(), finding.name, finding.found));
            finding.remedy.iter().for_each(|remedy| print(&format!("{:<23} → {remedy}\n", "")));
        }
    })?;
    Ok(match (is_damaged, is_well) {
        (true, _) => CliExit::Unavailable,
        (false, true) => CliExit::Done,
        (false, false) => CliExit::Refused,
    })
}

pub(crate) fn completions(arguments: &CompletionsArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::args::command_line(), "sluice", &mut script);
    let text = String::from_utf8_lossy(&script);
    let document = json!({ "completions": { "shell": arguments.shell.to_string(), "script": text } });
    output.show(&document, || print_bytes(&script))
}

pub(crate) fn skill(arguments: &SkillCommand, output: CliOutput) -> Result<CliExit, CliFailure> {
    let SkillCommand::Install { harness } = arguments;
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from).unwrap_or_default();
    let installed = sluice_home::settings::skills::install(&home, harness.as_deref())?;
    output.show(&json!({ "installed": installed }), || installed.iter().for_each(|path| print(&format!("{path}\n"))))
}
