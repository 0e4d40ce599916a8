//! Tasks and their events as they are shown.

use serde_json::{Value, json};
use sluice_api::task::Task;
use sluice_core::artifact::Verdict;
use sluice_core::lifecycle::FieldValue;
use sluice_core::task::Event;
use sluice_core::task::event::Settlement;
use sluice_core::task::input::Update;
use sluice_core::task::session::{Change, Exit, Place};
use sluice_core::task::state::{Attention, Checked, Pulse, Stood, Workspace};
use sluice_engine::codec::task_event;
use sluice_store::Logged;

use crate::clock::written;
use crate::runs::{SeenRun, Setting};
use crate::tasks::Seen;
use crate::view_run;

/// What is known of a task beside its state.
#[derive(Clone, Debug, Default)]
pub struct Beside {
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
pub fn task(seen: &Seen, beside: Beside) -> Task {
    let state = &seen.state;
    let about = &state.about;
    Task {
        id: seen.id.clone(),
        project: about.project.clone(),
        branch: about.branch.clone(),
        workflow: seen.lifecycle.name.to_string(),
        harness: about.harness.clone(),
        review_harness: about.review_harness.clone(),
        status: seen.status().to_owned(),
        review_round: state.review_round,
        crash_count: state.crash_count,
        summary: about.summary.clone(),
        workspace: match &state.workspace {
            Workspace::Bound(name) => Some(name.0.clone()),
            Workspace::Unbound | Workspace::Reserved(_) => None,
        },
        tmux_session: beside.tmux_session,
        session: match state.pulse() {
            Pulse::Active if beside.is_gone => "crashed",
            Pulse::Active => "active",
            Pulse::Crashed => "crashed",
            Pulse::Inactive => "inactive",
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
fn needs_person(seen: &Seen) -> bool {
    let state = &seen.state;
    // What starts an agent again is recorded together with its end.
    let is_dead = state.pulse() == Pulse::Crashed && state.turns.is_empty() && state.run_here().is_none();
    let is_asked = match &state.attention {
        Some(attention) => *attention != Attention::PoolFull,
        None if is_dead => true,
        None => seen.lifecycle.is_left_by_persons(state.status) && seen.open_effects.is_empty(),
    };
    seen.card.open && is_asked
}

/// What an event is about, if it is known: it gives the numbers names.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// A task.
    Task(&'a Seen),
    /// A run, and where it stands if the event is its end.
    Run(&'a Setting, Option<&'a SeenRun>),
    /// Nobody knows any more.
    Unknown,
}

/// An event of the log, for people and programs.
pub fn event(logged: &Logged, subject: Subject<'_>) -> Value {
    let event = &logged.event;
    let as_stored = || serde_json::from_slice(&event.data).unwrap_or(Value::Null);
    let (name, data) = match subject {
        Subject::Run(setting, ended) => {
            view_run::event(logged, setting, ended).unwrap_or_else(|| (event.kind.clone(), as_stored()))
        }
        Subject::Task(seen) => {
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
        Subject::Unknown => (event.kind.clone(), as_stored()),
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
fn told(event: &Event, seen: &Seen) -> Value {
    let name = |state| seen.lifecycle.state_name(state).to_owned();
    let exit = |exit: &Exit| match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::Lost => "lost".to_owned(),
        Exit::Uprooted => "its terminal or its machine went away".to_owned(),
    };
    match event {
        Event::Created(it) => json!({
            "status": name(it.status), "summary": it.about.summary, "branch": it.about.branch,
            "harness": it.about.harness, "review_harness": it.about.review_harness,
        }),
        Event::Moved(it) => json!({
            "from": name(it.from), "to": name(it.to), "verdict": it.judged.as_ref().map(|judged| judged.verdict.word()),
            "commit": it.judged.as_ref().and_then(|judged| judged.work.commit.as_ref()).map(|commit| &commit.0),
        }),
        Event::Began { turn, .. } => json!({ "turn": turn }),
        Event::Respawning { place, .. } => json!({ "place": word(*place) }),
        Event::Advanced { session, to } => json!({ "session": session.to_string(), "to": name(*to) }),
        Event::VerdictRefused { session, asked } => json!({
            "session": session.to_string(), "asked": asked.verdict.word(), "found": asked.found.map(Verdict::word),
        }),
        Event::Crashed { session, exit: how, count } => {
            json!({ "session": session.to_string(), "exit": exit(how), "crash_count": count })
        }
        Event::Merged { commit, forced } => {
            json!({ "commit": commit.as_ref().map(|commit| &commit.0), "forced": forced })
        }
        Event::Cancelled | Event::WorkspaceReleased | Event::AttentionCleared => json!({}),
        Event::Updated(Update::Summary(text)) => json!({ "summary": text }),
        Event::Updated(Update::Branch(text)) => json!({ "branch": text }),
        Event::Updated(Update::PullRequest(url)) | Event::PullRequestOpened(url) => json!({ "pr_url": url }),
        Event::FieldSet { field, value } => match value {
            FieldValue::Number(number) => json!({ "field": field.to_string(), "value": number }),
            FieldValue::Text(text) => json!({ "field": field.to_string(), "value": text }),
        },
        Event::WorkspaceReserved(name) | Event::WorkspaceBound(name) => json!({ "workspace": name.0 }),
        Event::Session { place, session, change, .. } => {
            let how = match change {
                Change::Exited(how) => Some(exit(how)),
                Change::NotStarted(why) => Some(why.clone()),
                Change::Asked(_) | Change::Started | Change::EndAsked | Change::Ended | Change::NotEnded => None,
            };
            json!({ "place": word(*place), "session": session.to_string(), "how": how })
        }
        Event::HookAsked { turn, step, action } => json!({ "hook": format!("turn-{turn}/{step} {action}") }),
        Event::HookSettled { turn, step, action, settlement } => {
            let error = match settlement {
                Settlement::Done | Settlement::Idle => None,
                Settlement::Skipped(why) | Settlement::Failed(why) => Some(why),
            };
            json!({ "hook": format!("turn-{turn}/{step} {action}"), "action": action.word(), "error": error })
        }
        Event::TurnSettled { turn } => json!({ "turn": turn }),
        Event::RunStarted { run, .. } | Event::RunLeft { run } => json!({ "run_id": run }),
        Event::RunEnded { run, end, why, judged } => {
            let checked = |work: &Stood| Checked { run: None, end: Some(*end), work: work.clone() }.verdict();
            json!({
                "run_id": run, "run_status": end.word(), "reason": why,
                "verdict": judged.as_ref().map(|work| checked(work).word()),
                "commit": judged.as_ref().and_then(|work| work.commit.as_ref()).map(|commit| &commit.0),
            })
        }
        Event::NotWritten(why) => json!({ "action": "write_artifact", "error": why }),
        Event::AttentionSet(attention) => json!({ "attention": attention.to_string() }),
    }
}

fn word(place: Place) -> &'static str {
    match place {
        Place::Main => "main",
        Place::Beside => "beside",
    }
}
