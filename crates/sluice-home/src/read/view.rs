//! Tasks and their events as they are shown.

use serde_json::{Value, json};
use sluice_api::task::Task;
use sluice_core::artifact::Verdict;
use sluice_core::lifecycle::FieldValue;
use sluice_core::task::TaskEvent;
use sluice_core::task::event::Settlement;
use sluice_core::task::input::TaskUpdate;
use sluice_core::task::session::{SessionChange, SessionExit, TaskSessionPlace};
use sluice_core::task::state::{RunJudgement, TaskAttention, TaskPulse, TaskSubject, TaskWorkspace, WorkSnapshot};
use sluice_engine::codec::task_event;
use sluice_store::LoggedEvent;

use crate::read::runs::{RunFacts, RunSnapshot};
use crate::read::tasks::TaskSnapshot;
use crate::read::view_run;
use crate::settings::clock::written;

/// What is known of a task beside its state.
#[derive(Clone, Debug, Default)]
pub struct TaskExtras {
    /// The name of its tmux session.
    pub tmux_session: Option<String>,
    /// How long its agent has been silent.
    pub idle_seconds: Option<u64>,
    /// Whether an agent that the task takes for living is gone, and the task has not heard of it yet.
    pub is_gone: bool,
    /// What it waits for that is tried again and again.
    pub waits: Option<String>,
}

/// A task, for people and programs.
pub fn task(seen: &TaskSnapshot, beside: TaskExtras) -> Task {
    let state = &seen.state;
    // Taken apart whole: what a task is about is shown, and a new field does not compile before it is.
    let TaskSubject { summary, project, branch, harness, review_harness } = state.about.clone();
    Task {
        id: seen.id.clone(),
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
        tmux_session: beside.tmux_session,
        session: match state.pulse() {
            TaskPulse::Active if beside.is_gone => "crashed",
            TaskPulse::Active => "active",
            TaskPulse::Crashed => "crashed",
            TaskPulse::Inactive => "inactive",
        }
        .into(),
        ended: !seen.card.open,
        idle_seconds: beside.idle_seconds,
        attention: state.attention.as_ref().map(ToString::to_string).or(beside.waits),
        pr_url: state.pull_request.clone(),
        needs_person: needs_person(seen),
        statuses: seen.lifecycle.states.iter().map(|state| state.name.to_string()).collect(),
        last_lines: Vec::new(),
        run: state.run_here().map(|run| run.id.clone()),
        created_at: written(seen.card.created),
        updated_at: written(seen.card.updated),
    }
}

/// Whether nothing goes on before a person does something. A task that waits for a worktree gets one when it is its turn.
fn needs_person(seen: &TaskSnapshot) -> bool {
    let state = &seen.state;
    // What starts an agent again is recorded together with its end.
    let is_dead = state.pulse() == TaskPulse::Crashed && state.turns.is_empty() && state.run_here().is_none();
    let is_asked = match &state.attention {
        Some(attention) => *attention != TaskAttention::PoolFull,
        None if is_dead => true,
        None => seen.lifecycle.is_left_by_persons(state.status) && seen.open_effects.is_empty(),
    };
    seen.card.open && is_asked
}

/// What an event is about, if it is known: it gives the numbers names.
#[derive(Clone, Copy)]
pub enum EventSubject<'a> {
    /// A task.
    Task(&'a TaskSnapshot),
    /// A run, and where it stands if the event is its end.
    Run(&'a RunFacts, Option<&'a RunSnapshot>),
    /// Nobody knows any more.
    Unknown,
}

/// An event of the log, for people and programs.
pub fn event(logged: &LoggedEvent, subject: EventSubject<'_>) -> Value {
    let event = &logged.event;
    let as_stored = || serde_json::from_slice(&event.data).unwrap_or(Value::Null);
    let (name, data) = match subject {
        EventSubject::Run(setting, ended) => {
            view_run::event(logged, setting, ended).unwrap_or_else(|| (event.kind.clone(), as_stored()))
        }
        EventSubject::Task(seen) => {
            let read = task_event::read(event.version, &event.data).ok();
            let mut data = match read.filter(|read| read.type_name() == event.kind) {
                Some(read) => told(&read, seen),
                None => as_stored(),
            };
            if let Value::Object(facts) = &mut data {
                facts.insert("task_id".into(), json!(seen.id));
                facts.insert("project".into(), json!(seen.state.about.project));
            }
            (event.kind.clone(), data)
        }
        EventSubject::Unknown => (event.kind.clone(), as_stored()),
    };
    json!({
        "seq": logged.cursor.0,
        "id": format!("{}:{}", logged.stream, logged.number),
        "type": name,
        "time": written(event.time),
        "actor": event.actor,
        "correlation_id": event.correlation,
        "caused_by": event.caused_by,
        "data": data,
    })
}

/// What an event of a task says, in names instead of numbers.
fn told(event: &TaskEvent, seen: &TaskSnapshot) -> Value {
    let name = |state| seen.lifecycle.state_name(state).to_owned();
    match event {
        TaskEvent::Created(it) => created(&it.about, &name(it.status)),
        TaskEvent::Moved(it) => json!({
            "from": name(it.from), "to": name(it.to), "verdict": it.judged.as_ref().map(|judged| judged.verdict.word()),
            "commit": it.judged.as_ref().and_then(|judged| judged.work.commit.as_ref()).map(|commit| &commit.0),
        }),
        TaskEvent::Began { turn, .. } => json!({ "turn": turn }),
        TaskEvent::Respawning { place, .. } => json!({ "place": word(*place) }),
        TaskEvent::Advanced { session, to } => json!({ "session": session.to_string(), "to": name(*to) }),
        TaskEvent::VerdictRefused { session, asked } => json!({
            "session": session.to_string(), "asked": asked.verdict.word(), "found": asked.found.map(Verdict::word),
        }),
        TaskEvent::Crashed { session, exit: how, count } => {
            json!({ "session": session.to_string(), "exit": exit(how), "crash_count": count })
        }
        TaskEvent::Merged { commit, forced } => {
            json!({ "commit": commit.as_ref().map(|commit| &commit.0), "forced": forced })
        }
        TaskEvent::Cancelled | TaskEvent::WorkspaceReleased | TaskEvent::AttentionCleared => json!({}),
        TaskEvent::Updated(TaskUpdate::Summary(text)) => json!({ "summary": text }),
        TaskEvent::Updated(TaskUpdate::Branch(text)) => json!({ "branch": text }),
        TaskEvent::Updated(TaskUpdate::PullRequest(url)) | TaskEvent::PullRequestOpened(url) => {
            json!({ "pr_url": url })
        }
        TaskEvent::FieldSet { field, value } => match value {
            FieldValue::Number(number) => json!({ "field": field.to_string(), "value": number }),
            FieldValue::Text(text) => json!({ "field": field.to_string(), "value": text }),
        },
        TaskEvent::WorkspaceReserved(name) | TaskEvent::WorkspaceBound(name) => json!({ "workspace": name.0 }),
        TaskEvent::Session { place, session, change, .. } => {
            let how = match change {
                SessionChange::Exited(how) => Some(exit(how)),
                SessionChange::NotStarted(why) => Some(why.clone()),
                SessionChange::Asked(_)
                | SessionChange::Started
                | SessionChange::EndAsked
                | SessionChange::Ended
                | SessionChange::NotEnded => None,
            };
            json!({ "place": word(*place), "session": session.to_string(), "how": how })
        }
        TaskEvent::HookAsked { turn, step, action } => json!({ "hook": format!("turn-{turn}/{step} {action}") }),
        TaskEvent::HookSettled { turn, step, action, settlement } => {
            let error = match settlement {
                Settlement::Done | Settlement::Idle => None,
                Settlement::Skipped(why) | Settlement::Failed(why) => Some(why),
            };
            json!({ "hook": format!("turn-{turn}/{step} {action}"), "action": action.word(), "error": error })
        }
        TaskEvent::TurnSettled { turn } => json!({ "turn": turn }),
        TaskEvent::RunStarted { run, .. } | TaskEvent::RunLeft { run } => json!({ "run_id": run }),
        TaskEvent::RunEnded { run, end, why, judged } => {
            let checked =
                |work: &WorkSnapshot| RunJudgement { run: None, end: Some(*end), work: work.clone() }.verdict();
            json!({
                "run_id": run, "run_status": end.word(), "reason": why,
                "verdict": judged.as_ref().map(|work| checked(work).word()),
                "commit": judged.as_ref().and_then(|work| work.commit.as_ref()).map(|commit| &commit.0),
            })
        }
        TaskEvent::NotWritten(why) => json!({ "action": "write_artifact", "error": why }),
        TaskEvent::AttentionSet(attention) => json!({ "attention": attention.to_string() }),
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

fn created(about: &TaskSubject, status: &str) -> Value {
    // The project is told with every event.
    let TaskSubject { summary, project: _, branch, harness, review_harness } = about;
    json!({
        "status": status, "summary": summary, "branch": branch, "harness": harness, "review_harness": review_harness,
    })
}

fn word(place: TaskSessionPlace) -> &'static str {
    match place {
        TaskSessionPlace::Main => "main",
        TaskSessionPlace::Beside => "beside",
    }
}
