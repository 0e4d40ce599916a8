//! Tasks and their events as they are shown.

use serde::Serialize;
use serde_json::Value;
use sluice_api::event::{EventShown, TaskEventData, TaskEventShown};
use sluice_api::task::{CreatedTask, LentWorkspace, SessionPulse, Task};
use sluice_core::artifact::Verdict;
use sluice_core::id::RunId;
use sluice_core::lifecycle::FieldValue;
use sluice_core::task::TaskEvent;
use sluice_core::task::effect::TaskAction;
use sluice_core::task::event::Settlement;
use sluice_core::task::input::{RunEnd, TaskUpdate};
use sluice_core::task::session::{SessionChange, SessionExit, TaskSessionPlace};
use sluice_core::task::state::{
    RaisedAttention, RunJudgement, TaskAttention, TaskPulse, TaskSubject, TaskWorkspace, WorkSnapshot,
};
use sluice_engine::codec::task_event;
use sluice_store::LoggedEvent;

use crate::read::attention;
use crate::read::runs::{RunFacts, RunSnapshot};
use crate::read::tasks::TaskSnapshot;
use crate::read::view_run_event;
use crate::settings::clock::written;

pub(crate) fn task(seen: &TaskSnapshot) -> Task {
    let state = &seen.state;
    // Taken apart whole: what a task is about is shown, and a new field does not compile before it is.
    let TaskSubject { summary, project, branch, harness, review_harness } = state.about.clone();
    Task {
        id: seen.id.to_string(),
        project,
        branch,
        workflow: seen.lifecycle.name.to_string(),
        harness,
        review_harness,
        status: seen.status().to_owned(),
        review_round: state.review_round,
        crash_count: state.crash_count,
        summary,
        workspace: match &state.workspace {
            TaskWorkspace::Bound(name) => Some(name.0.clone()),
            TaskWorkspace::Unbound | TaskWorkspace::Reserved(_) => None,
        },
        lent: state
            .lent_on()
            .filter(|_| seen.card.open)
            .map(|lent| LentWorkspace { workspace: lent.workspace.0.clone(), commit: lent.commit.0.clone() }),
        tmux_session: None,
        session: match state.pulse() {
            TaskPulse::Active => SessionPulse::Active,
            TaskPulse::Crashed => SessionPulse::Crashed,
            TaskPulse::Inactive => SessionPulse::Inactive,
        },
        ended: !seen.card.open,
        idle_seconds: None,
        attention: attention::note(seen),
        also: attention::also(seen),
        pr_url: state.pull_request.clone(),
        needs_person: needs_person(seen),
        statuses: seen.lifecycle.states.iter().map(|state| state.name.to_string()).collect(),
        last_lines: Vec::new(),
        moves: None,
        kept: Vec::new(),
        run: state.run_here().map(|run| run.id.to_string()),
        version: seen.version,
        created_at: written(seen.card.created),
        updated_at: written(seen.card.updated),
    }
}

/// Whether nothing goes on before a person does something. A task that waits for a worktree gets one when it is its turn, and
/// one that has not begun waits until a person or another task's end starts it.
fn needs_person(seen: &TaskSnapshot) -> bool {
    let state = &seen.state;
    let is_asked = match state.raised(&seen.lifecycle) {
        Some(raised) => raised.why != TaskAttention::PoolFull,
        None => state.turns_taken == 0 && state.turns.is_empty(),
    };
    seen.card.open && is_asked
}

/// What an event is about, if it is known: it gives the numbers names.
#[derive(Clone, Copy)]
pub enum EventSubject<'a> {
    Task(&'a TaskSnapshot),
    /// A run, and where it stands if the event is its end.
    Run(&'a RunFacts, Option<&'a RunSnapshot>),
    Unknown,
}

pub fn event(logged: &LoggedEvent, subject: EventSubject<'_>) -> EventShown {
    let event = &logged.event;
    let (kind, data) = match subject {
        EventSubject::Run(setting, ended) => {
            view_run_event::event(logged, setting, ended).unwrap_or_else(|| (event.kind.clone(), as_stored(logged)))
        }
        EventSubject::Task(seen) => (event.kind.clone(), of_task(logged, seen)),
        EventSubject::Unknown => (event.kind.clone(), as_stored(logged)),
    };
    EventShown {
        seq: logged.cursor.0,
        id: format!("{}:{}", logged.stream, logged.number),
        kind,
        time: written(event.time),
        actor: event.actor.clone(),
        correlation_id: event.correlation.clone(),
        subject: match subject {
            EventSubject::Task(seen) => Some(format!("{}/{}", seen.state.about.project, seen.state.about.branch)),
            EventSubject::Run(facts, _) => Some(facts.plan.recipe.name.to_string()),
            EventSubject::Unknown => None,
        },
        caused_by: event.caused_by.clone(),
        data,
    }
}

fn as_stored(logged: &LoggedEvent) -> Value {
    serde_json::from_slice(&logged.event.data).unwrap_or(Value::Null)
}

/// What an event in the log of a task says: an event of the task itself, or a remark about it.
fn of_task(logged: &LoggedEvent, seen: &TaskSnapshot) -> Value {
    let event = &logged.event;
    let (task_id, project) = (seen.id.clone(), seen.state.about.project.clone());
    let read = task_event::read(event.version, &event.data).ok();
    if let Some(read) = read.filter(|read| read.type_name() == event.kind) {
        return as_json(&TaskEventShown { data: told(&read, seen), task_id: String::from(task_id), project });
    }
    let mut data = as_stored(logged);
    if let Value::Object(facts) = &mut data {
        facts.insert("task_id".into(), Value::String(String::from(task_id)));
        facts.insert("project".into(), Value::String(project));
    }
    data
}

pub(crate) fn as_json(data: &impl Serialize) -> Value {
    serde_json::to_value(data).unwrap_or_default()
}

/// What an event of a task says, in names instead of numbers.
fn told(event: &TaskEvent, seen: &TaskSnapshot) -> TaskEventData {
    let name = |state| seen.lifecycle.state_name(state).to_owned();
    match event {
        TaskEvent::Created(it) => created(name(it.status), &it.about),
        TaskEvent::Moved(it) => {
            let verdict = it.judged.as_ref().map(|judged| judged.verdict.word());
            let commit = it.judged.as_ref().and_then(|judged| commit(&judged.work));
            TaskEventData::Moved { from: name(it.from), to: name(it.to), verdict, commit }
        }
        TaskEvent::Began { turn, .. } | TaskEvent::TurnSettled { turn } => TaskEventData::Turn { turn: *turn },
        TaskEvent::Respawning { place, .. } => TaskEventData::Place { place: word(*place) },
        TaskEvent::Advanced { session, to } => TaskEventData::Advanced { session: session.to_string(), to: name(*to) },
        TaskEvent::VerdictRefused { session, asked } => TaskEventData::VerdictRefused {
            session: session.to_string(),
            asked: asked.verdict.word(),
            found: asked.found.map(Verdict::word),
        },
        TaskEvent::Crashed { session, exit: how, count } => {
            let (session, exit) = (session.to_string(), exit(how));
            TaskEventData::Crashed { session, exit, crash_count: *count, last_lines: Vec::new() }
        }
        TaskEvent::Merged { commit, forced } => {
            TaskEventData::Merged { commit: commit.as_ref().map(|commit| commit.0.clone()), forced: *forced }
        }
        TaskEvent::Cancelled
        | TaskEvent::Retrying { .. }
        | TaskEvent::WorkspaceReleased
        | TaskEvent::AttentionCleared => TaskEventData::Nothing {},
        TaskEvent::Updated(TaskUpdate::Summary(text)) => TaskEventData::Summary { summary: text.clone() },
        TaskEvent::Updated(TaskUpdate::Branch(text)) => TaskEventData::Branch { branch: text.clone() },
        TaskEvent::Updated(TaskUpdate::PullRequest(url)) | TaskEvent::PullRequestOpened(url) => {
            TaskEventData::PullRequest { pr_url: url.clone() }
        }
        TaskEvent::FieldSet { field, value } => {
            TaskEventData::Field { field: field.to_string(), value: of_field(value) }
        }
        TaskEvent::WorkspaceReserved(name) | TaskEvent::WorkspaceBound(name) => {
            TaskEventData::Workspace { workspace: name.0.clone() }
        }
        TaskEvent::WorkspaceLent { workspace, branch, commit } => TaskEventData::WorkspaceLent {
            workspace: workspace.0.clone(),
            branch: branch.clone(),
            commit: commit.0.clone(),
        },
        TaskEvent::Session { place, session, change, .. } => {
            TaskEventData::Session { place: word(*place), session: session.to_string(), how: how(change) }
        }
        TaskEvent::HookAsked { turn, step, action } => TaskEventData::HookAsked { hook: hook(*turn, *step, *action) },
        TaskEvent::HookSettled { turn, step, action, settlement } => TaskEventData::HookSettled {
            hook: hook(*turn, *step, *action),
            action: action.word(),
            error: why_not(settlement),
        },
        TaskEvent::RunStarted { run, .. } | TaskEvent::RunLeft { run } => {
            TaskEventData::Run { run_id: run.to_string() }
        }
        TaskEvent::RunEnded { run, end, why, judged } => run_ended(run, *end, why, judged.as_ref()),
        TaskEvent::NotWritten(why) => {
            TaskEventData::NotWritten { action: TaskAction::WriteArtifact.word(), error: why.clone() }
        }
        TaskEvent::Signalled { session, signal } => TaskEventData::Signalled {
            session: session.to_string(),
            said_by: attention::source(signal.by()),
            text: signal.to_string(),
        },
        TaskEvent::AttentionSet(raised) => needed(raised, seen),
    }
}

fn run_ended(run: &RunId, end: RunEnd, why: &str, judged: Option<&WorkSnapshot>) -> TaskEventData {
    TaskEventData::RunEnded {
        run_id: run.to_string(),
        run_status: end.word(),
        reason: why.to_owned(),
        verdict: judged.map(|work| verdict(end, work)),
        commit: judged.and_then(commit),
    }
}

fn needed(raised: &RaisedAttention, seen: &TaskSnapshot) -> TaskEventData {
    TaskEventData::Attention {
        id: format!("{}/{}", seen.id, raised.number),
        reason: attention::cause(raised.why.reason()),
        attention: raised.to_string(),
        said_by: attention::source(raised.why.said_by()),
    }
}

fn created(status: String, about: &TaskSubject) -> TaskEventData {
    // The project is told with every event.
    let TaskSubject { summary, project: _, branch, harness, review_harness } = about.clone();
    TaskEventData::Created(CreatedTask { status, summary, branch, harness, review_harness })
}

fn of_field(value: &FieldValue) -> Value {
    match value {
        FieldValue::Number(number) => Value::from(*number),
        FieldValue::Text(text) => Value::from(text.as_str()),
    }
}

fn why_not(settlement: &Settlement) -> Option<String> {
    match settlement {
        Settlement::Done | Settlement::Idle => None,
        Settlement::Skipped(why) | Settlement::Failed(why) => Some(why.clone()),
    }
}

fn exit(exit: &SessionExit) -> String {
    match exit {
        SessionExit::Code(code) => format!("exit code {code}"),
        SessionExit::Signal(signal) => format!("signal {signal}"),
        SessionExit::Lost => "lost".to_owned(),
        SessionExit::Uprooted => "its terminal or its machine went away".to_owned(),
    }
}

/// How a session ended, or why it was not started.
fn how(change: &SessionChange) -> Option<String> {
    match change {
        SessionChange::Exited(how) => Some(exit(how)),
        SessionChange::NotStarted(why) => Some(why.clone()),
        SessionChange::Asked(_)
        | SessionChange::Started
        | SessionChange::EndAsked
        | SessionChange::Ended
        | SessionChange::NotEnded => None,
    }
}

fn hook(turn: u32, step: u32, action: TaskAction) -> String {
    format!("turn-{turn}/{step} {action}")
}

pub(crate) fn commit(work: &WorkSnapshot) -> Option<String> {
    work.commit.as_ref().map(|commit| commit.0.clone())
}

fn verdict(end: RunEnd, work: &WorkSnapshot) -> &'static str {
    RunJudgement { run: None, end: Some(end), work: work.clone() }.verdict().word()
}

fn word(place: TaskSessionPlace) -> &'static str {
    match place {
        TaskSessionPlace::Main => "main",
        TaskSessionPlace::Beside => "beside",
    }
}
