//! Events, effects, refusals and states, one a line. What only keeps the books is left out.

use sluice_core::lifecycle::{AgentPermissions, FieldValue, HarnessChoice, Lifecycle};
use sluice_core::machine::Refusal;
use sluice_core::task::event::Settlement;
use sluice_core::task::input::{TaskAsker, TaskUpdate};
use sluice_core::task::session::{SessionChange, SessionExit};
use sluice_core::task::state::{RaisedAttention, TaskWorkspace};
use sluice_core::task::{Instruction, TaskEffect, TaskEvent, TaskState};

fn line(what: &str, rest: String) -> String {
    format!("{what:<20} {rest}").trim_end().to_owned()
}

fn asker(by: TaskAsker) -> String {
    match by {
        TaskAsker::Person => "a person".to_owned(),
        TaskAsker::Engine => "the engine".to_owned(),
        TaskAsker::Session(id) => id.to_string(),
        TaskAsker::Stranger => "a stranger".to_owned(),
    }
}

fn value(value: &FieldValue) -> String {
    match value {
        FieldValue::Number(number) => number.to_string(),
        FieldValue::Text(text) => text.clone(),
    }
}

fn exit(exit: SessionExit) -> String {
    match exit {
        SessionExit::Code(code) => format!("code {code}"),
        SessionExit::Signal(signal) => format!("signal {signal}"),
        SessionExit::Uprooted => "uprooted".into(),
        SessionExit::Lost => "lost".to_owned(),
    }
}

pub(crate) fn event(lifecycle: &Lifecycle, event: &TaskEvent) -> Option<String> {
    let name = |state| lifecycle.state_name(state);
    let rest = match event {
        TaskEvent::Created(created) => {
            let by =
                if created.by == TaskAsker::Person { String::new() } else { format!(", by {}", asker(created.by)) };
            format!("in {}, {:?}{by}", name(created.status), created.about.summary)
        }
        TaskEvent::Updated(TaskUpdate::Summary(long)) if long.len() > 200 => format!("Summary of {} bytes", long.len()),
        TaskEvent::Moved(moved) => format!("{} → {}, by {}", name(moved.from), name(moved.to), asker(moved.by)),
        TaskEvent::Respawning { by, .. } | TaskEvent::Retrying { by, .. } => format!("by {}", asker(*by)),
        TaskEvent::Advanced { session, to } => format!("{session} left its artifact: to {}", name(*to)),
        TaskEvent::VerdictRefused { session, asked } => {
            let found = asked.found.map_or("nothing", |found| found.word());
            format!("{session} asked for {}, and TASK.md says {found}", asked.verdict.word())
        }
        TaskEvent::Crashed { session, exit: how, count } => format!("{session}, {}: crash {count}", exit(*how)),
        TaskEvent::Updated(update) => format!("{update:?}"),
        TaskEvent::FieldSet { field, value: to } => format!("{field} = {}", value(to)),
        TaskEvent::WorkspaceLent { workspace, branch, commit } => format!("{}, {branch} at {}", workspace.0, commit.0),
        TaskEvent::WorkspaceReserved(name) | TaskEvent::WorkspaceBound(name) => name.0.clone(),
        TaskEvent::Session { session, change, .. } => match change {
            SessionChange::Asked(_) | SessionChange::EndAsked => return None,
            SessionChange::NotStarted(reason) => format!("{session}: {reason}"),
            SessionChange::Exited(how) => format!("{session}, {}", exit(*how)),
            SessionChange::Started | SessionChange::Ended | SessionChange::NotEnded => session.to_string(),
        },
        TaskEvent::PullRequestOpened(url) => url.clone(),
        TaskEvent::HookSettled { action, settlement, .. } => match settlement {
            Settlement::Done => return None,
            Settlement::Idle => action.to_string(),
            Settlement::Skipped(reason) | Settlement::Failed(reason) => format!("{action}: {reason}"),
        },
        TaskEvent::HookAsked { .. } => return None,
        TaskEvent::TurnSettled { turn } => format!("turn-{turn}"),
        TaskEvent::RunStarted { run, .. } | TaskEvent::RunLeft { run } => run.to_string(),
        TaskEvent::RunEnded { run, end, why, judged } => {
            let commit = judged.as_ref().and_then(|work| work.commit.as_ref());
            let judged = commit.map_or(String::new(), |commit| format!(", judged {}", commit.0));
            format!("{run} {}{judged} {why}", end.word())
        }
        TaskEvent::NotWritten(reason) => format!("write_artifact: {reason}"),
        TaskEvent::Signalled { session, signal } => format!("{session}: {signal}, by {}", signal.by().word()),
        TaskEvent::AttentionSet(raised) => {
            let RaisedAttention { number, why, .. } = raised;
            format!("{number} {}: {raised}", why.reason().word())
        }
        TaskEvent::Merged { commit, forced } => match (commit, forced) {
            (Some(commit), true) => format!("{} by force", commit.0),
            (Some(commit), false) => commit.0.clone(),
            (None, _) => String::new(),
        },
        TaskEvent::Began { .. } | TaskEvent::Cancelled | TaskEvent::WorkspaceReleased | TaskEvent::AttentionCleared => {
            String::new()
        }
    };
    Some(line(event.type_name(), rest))
}

pub(crate) fn effect(effect: &TaskEffect) -> String {
    let rest = match &effect.instruction {
        Instruction::AcquireWorkspace { reserved } => {
            reserved.as_ref().map_or("any".to_owned(), |reserved| reserved.0.clone())
        }
        Instruction::ReleaseWorkspace { workspace } => workspace.0.clone(),
        Instruction::StartSession(start) => {
            let harness = match start.harness {
                HarnessChoice::Task => "task",
                HarnessChoice::Review => "review",
            };
            let permissions = match start.permissions {
                AgentPermissions::Full => "full",
                AgentPermissions::Reduced => "reduced",
            };
            let prompt = start.prompt.lines().next().unwrap_or_default();
            let (session, role, window) = (start.session, start.role.word(), &start.window);
            format!("{session} {role} in {window}, harness {harness}, {permissions}, {prompt:?}")
        }
        Instruction::EndSession { sessions, whole } => {
            let names: Vec<String> = sessions.iter().map(ToString::to_string).collect();
            format!("{}{}", names.join(" "), if *whole { ", all of it" } else { "" })
        }
        Instruction::TypeToWorker { session, occasion, text } => {
            format!("{session} {occasion:?}: {}…", text.chars().take(40).collect::<String>())
        }
        Instruction::Plain(plain) => plain.texts().join(", ").replace('\0', "\\0"),
        Instruction::RunCommand { workspace, script, environment } => {
            format!("in {}: {} with {environment:?}", workspace.0, script.trim_end())
        }
        Instruction::StartRun { recipe, inputs, workspace } => {
            let place = workspace.as_ref().map_or("a worktree of its own", |name| &name.0);
            format!("{recipe} with {inputs:?} in {place}")
        }
        Instruction::CancelRun { run } => run.to_string(),
        Instruction::WriteArtifact { frontmatter, feedback } => {
            let keys = ["status", "review_round", "crash_count", "workspace"];
            let shown = keys.map(|key| frontmatter.get(key).map_or(String::new(), value)).join(", ");
            format!("{shown}{}", feedback.as_ref().map_or(String::new(), |text| format!("; feedback: {text}")))
        }
    };
    format!("→ {}", line(&effect.key.to_string(), rest))
}

pub(crate) fn refusal(refusal: &Refusal) -> Vec<String> {
    let hint = refusal.hint.as_ref().map(|hint| line("hint", hint.clone()));
    std::iter::once(line("refused", refusal.to_string())).chain(hint).collect()
}

pub(crate) fn state(state: &TaskState) -> String {
    let workspace = match &state.workspace {
        TaskWorkspace::Unbound if state.lent.is_some() => "workspace lent on".to_owned(),
        TaskWorkspace::Unbound => "no workspace".to_owned(),
        TaskWorkspace::Reserved(name) => format!("{} reserved", name.0),
        TaskWorkspace::Bound(name) => name.0.clone(),
    };
    let run = state
        .run
        .as_ref()
        .map_or(String::new(), |run| format!(", run {} {}", run.id, run.end.map_or("open", |end| end.word())));
    let attention = state.attention.as_ref().map_or(String::new(), |raised| format!(", attention: {raised}"));
    format!(
        "round {}, crashes {}, {workspace}, main {}, beside {}{run}{attention}",
        state.review_round,
        state.crash_count,
        state.main.word(),
        state.beside.word()
    )
}
