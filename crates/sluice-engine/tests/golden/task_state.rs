//! Samples of where tasks are stored to stand.

use std::collections::{BTreeMap, VecDeque};

use sluice_core::lifecycle::{Lifecycle, StateId};
use sluice_core::name::FieldName;
use sluice_core::task::event::TaskCreation;
use sluice_core::task::session::{SessionDeath, SessionExit, SessionNumber, TaskSession, TaskSessionPlace};
use sluice_core::task::state::HeardSignal;
use sluice_core::task::state::{
    AgentStart, CommitId, EdgeId, LentWork, StatePrompt, TaskJob, TaskRun, TaskSubject, TaskTurn, TaskWorkspace,
};
use sluice_core::task::{TaskAction, TaskAsker, TaskState};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, DefinitionFile, Sources, load};
use sluice_engine::codec::remark::Remarks;
use sluice_engine::codec::task_state::{self, TaskHeader};

use super::task::{
    ASKED, AT, WORKER, about, askers, attentions, checks, creations, in_front, judged_a_commit, judgements, numbered,
    places, raised, run_ends, run_id, seen, signals, stood, workspace_name,
};
use super::{StoredFamily, forms, json, named};

forms! {
    WORKSPACES, workspace(TaskWorkspace) {
        TaskWorkspace::Unbound => "unbound",
        TaskWorkspace::Reserved(_) => "reserved",
        TaskWorkspace::Bound(_) => "bound",
    }
    SESSIONS, session(TaskSession) {
        TaskSession::Absent => "absent",
        TaskSession::Starting(_) => "starting",
        TaskSession::Alive(_) => "alive",
        TaskSession::Ending(_) => "ending",
        TaskSession::Dead(_, SessionDeath::NotStarted(_)) => "not_started",
        TaskSession::Dead(_, SessionDeath::Exited(_)) => "exited",
    }
    JOBS, job(TaskJob) {
        TaskJob::Hook { .. } => "hook",
        TaskJob::Acquire => "acquire",
        TaskJob::Start(AgentStart { prompt: StatePrompt::Enter, .. }) => "start_entering",
        TaskJob::Start(AgentStart { prompt: StatePrompt::Respawn, .. }) => "start_again",
        TaskJob::StartRun(_) => "start_run",
        TaskJob::CancelRun => "cancel_run",
        TaskJob::Tell => "tell",
    }
}

fn lifecycle() -> Lifecycle {
    let text = sluice_dialect::builtin::ALL.iter().find(|it| it.file == "default.yml").unwrap().text;
    match load(&DefinitionFile { path: "default.yml", bytes: text.as_bytes() }, &mut NoPrompts, &mut Sources::default())
        .definition
    {
        Some(Definition::Lifecycle(lifecycle)) => lifecycle,
        _ => panic!("not a lifecycle"),
    }
}

/// A task in the middle of something, so that every part of it can be there.
fn state() -> TaskState {
    let created =
        TaskCreation { status: StateId(0), about: about(), by: TaskAsker::Person, at: AT, seen: seen(), sessions: 0 };
    TaskState {
        review_round: 2,
        crash_count: 1,
        numbers: BTreeMap::from([(FieldName::new("size"), -3)]),
        texts: BTreeMap::from([(FieldName::new("mood"), "hopeful".into())]),
        turns: VecDeque::from([
            TaskTurn {
                number: 4,
                crashes: 1,
                step: 2,
                jobs: VecDeque::from([TaskJob::Hook { edge: EdgeId(3), hook: 1 }]),
                waiting: Some(TaskAction::KillSession),
            },
            TaskTurn { number: 5, crashes: 0, step: 1, jobs: VecDeque::new(), waiting: None },
        ]),
        turns_taken: 5,
        sessions_asked: 9,
        pull_request: Some("https://forge/pr/1".into()),
        events: 41,
        ..TaskState::created(&created)
    }
}

fn sessions() -> Vec<(String, TaskSession)> {
    let samples = vec![
        TaskSession::Absent,
        TaskSession::Starting(WORKER),
        TaskSession::Alive(WORKER),
        TaskSession::Ending(WORKER),
        TaskSession::Dead(WORKER, SessionDeath::NotStarted("no tmux".into())),
        TaskSession::Dead(WORKER, SessionDeath::Exited(SessionExit::Signal(9))),
    ];
    named(SESSIONS, session, samples)
}

fn jobs() -> Vec<(String, TaskJob)> {
    let start = |prompt, place, again| TaskJob::Start(AgentStart { state: StateId(2), prompt, place, again });
    let samples = vec![
        TaskJob::Hook { edge: EdgeId(3), hook: 1 },
        TaskJob::Acquire,
        start(StatePrompt::Enter, TaskSessionPlace::Main, false),
        start(StatePrompt::Respawn, TaskSessionPlace::Beside, true),
        TaskJob::StartRun(StateId(2)),
        TaskJob::CancelRun,
        TaskJob::Tell,
    ];
    named(JOBS, job, samples)
}

pub(super) fn states() -> StoredFamily {
    let created = TaskCreation {
        status: StateId(0),
        about: TaskSubject::default(),
        by: TaskAsker::Person,
        at: AT,
        seen: BTreeMap::new(),
        sessions: 0,
    };
    let mut samples = vec![("new".to_owned(), TaskState::created(&created)), ("middle".to_owned(), state())];
    for (name, creation) in creations() {
        samples.push((format!("created.{name}"), TaskState::created(&creation)));
    }
    let mut add = |name: String, change: &dyn Fn(&mut TaskState)| {
        let mut state = state();
        change(&mut state);
        samples.push((name, state));
    };
    for (name, by) in askers() {
        add(format!("by.{name}"), &|state| state.visit.by = by);
    }
    for (name, place) in places() {
        add(format!("watch.{name}"), &|state| state.visit.watch = place);
    }
    add("uprooted".into(), &|state| state.visit.uprooted = 2);
    add("handed".into(), &|state| state.visit.handed = Some(stood()));
    add("asked".into(), &|state| state.visit.asked = Some(ASKED));
    add("helped".into(), &|state| state.visit.helped = true);
    for (name, job) in jobs() {
        add(format!("undone.{name}"), &|state| state.undone = vec![job]);
    }
    let workspaces =
        vec![TaskWorkspace::Unbound, TaskWorkspace::Reserved(workspace_name()), TaskWorkspace::Bound(workspace_name())];
    for (name, workspace) in named(WORKSPACES, workspace, workspaces) {
        add(format!("workspace.{name}"), &|state| state.workspace = workspace.clone());
    }
    let lent = || Some(LentWork { workspace: workspace_name(), commit: CommitId("9f2c1d7".into()) });
    add("workspace.lent".into(), &|state| state.lent = lent());
    // The first job of its only turn waits until there is a worktree.
    let waits = || TaskTurn { number: 5, crashes: 0, step: 1, jobs: VecDeque::from([TaskJob::Acquire]), waiting: None };
    add("workspace.awaited".into(), &|state| {
        state.lent = lent();
        state.turns = VecDeque::from([waits()]);
    });
    for (name, session) in sessions() {
        add(format!("main.{name}"), &|state| state.main = session.clone());
        add(format!("beside.{name}"), &|state| state.beside = session.clone());
    }
    for (name, attention) in attentions() {
        add(format!("attention.{name}"), &|state| state.attention = Some(raised(attention.clone())));
    }
    add("attention.numbered".into(), &|state| {
        state.attention = Some(numbered());
        state.attentions = 2;
    });
    add("attention.in_front".into(), &|state| {
        state.attention = Some(in_front());
        state.attentions = 2;
    });
    add("attentions".into(), &|state| state.attentions = 3);
    for (name, signal) in signals() {
        let signal = HeardSignal { session: SessionNumber(3), signal };
        add(format!("signal.{name}"), &|state| state.signal = Some(signal.clone()));
    }
    for (name, judged) in judgements() {
        add(format!("judged.{name}"), &|state| state.judged = judged.clone());
    }
    add("judged.a_commit".into(), &|state| state.judged = Some(judged_a_commit()));
    for (name, check) in checks() {
        add(format!("checked.{name}"), &|state| state.checked = Some(check.clone()));
    }
    add("merged".into(), &|state| state.merged = Some(CommitId("9f2c1d7".into())));
    let run = |end, began| Some(TaskRun { id: run_id(), turn: 4, end, began, accompanied: false });
    add("run.open".into(), &|state| state.run = run(None, None));
    add("run.judging".into(), &|state| state.run = run(None, Some(stood())));
    let accompanied = |run: TaskRun| TaskRun { accompanied: true, ..run };
    add("run.accompanied".into(), &|state| state.run = run(None, Some(stood())).map(accompanied));
    for (name, end) in run_ends() {
        add(format!("run.{name}"), &|state| state.run = run(Some(end), None));
    }
    for (name, job) in jobs() {
        add(format!("job.{name}"), &|state| state.turns[1].jobs.push_back(job));
    }
    let kept = |state: &TaskState| TaskHeader {
        id: "task-1".into(),
        definition: "d1".into(),
        state: state.clone(),
        open: vec!["write-41".into(), "turn-4/2 kill_session".into()],
        remarks: Remarks::default(),
    };
    let write = |it: &TaskState| json(&task_state::write(&kept(it)));
    let lifecycle = lifecycle();
    StoredFamily::new("task_state.v1", &samples, write, move |form| {
        let read = task_state::read(&lifecycle, form.to_string().as_bytes())?;
        assert_eq!(read, kept(&read.state), "its name, definition and order are kept");
        Ok(json(&task_state::write(&read)))
    })
}
