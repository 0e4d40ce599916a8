//! Samples of what is stored of tasks.

use std::collections::{BTreeMap, VecDeque};

use sluice_core::artifact::Verdict;
use sluice_core::lifecycle::{FieldValue, HarnessChoice, Lifecycle, Permissions, StateId};
use sluice_core::machine::Moment;
use sluice_core::name::FieldName;
use sluice_core::task::effect::{Occasion, StartSession};
use sluice_core::task::event::{Created, Moved, Settlement};
use sluice_core::task::input::Update;
use sluice_core::task::session::{Agent, Change, Death, Exit, Place, Role, Session, SessionId};
use sluice_core::task::state::{
    About, Attention, EdgeId, Job, Judged, Start, StatePrompt, Tree, Turn, Workspace, WorkspaceName,
};
use sluice_core::task::{Action, Asker, Digest, Effect, EffectKey, Event, Instruction, TaskState};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, Source, Sources, load};
use sluice_engine::codec::remark::Remarks;
use sluice_engine::codec::task_state::Kept;
use sluice_engine::codec::{task_effect, task_event, task_state};

use super::{compare, forms, json, named};

forms! {
    EVENTS, event(Event) {
        Event::Created(_) => "created",
        Event::Moved(_) => "moved",
        Event::Began { .. } => "began",
        Event::Respawning { .. } => "respawning",
        Event::Advanced { .. } => "advanced",
        Event::Crashed { .. } => "crashed",
        Event::Merged => "merged",
        Event::Cancelled => "cancelled",
        Event::Updated(_) => "updated",
        Event::FieldSet { .. } => "field_set",
        Event::WorkspaceReserved(_) => "workspace_reserved",
        Event::WorkspaceBound(_) => "workspace_bound",
        Event::WorkspaceReleased => "workspace_released",
        Event::Session { .. } => "session",
        Event::PullRequestOpened(_) => "pull_request_opened",
        Event::HookAsked { .. } => "hook_asked",
        Event::HookSettled { .. } => "hook_settled",
        Event::TurnSettled { .. } => "turn_settled",
        Event::NotWritten(_) => "not_written",
        Event::AttentionSet(_) => "attention_set",
        Event::AttentionCleared => "attention_cleared",
    }
    ASKERS, asker(Asker) {
        Asker::Person => "person",
        Asker::Engine => "engine",
        Asker::Session(_) => "session",
        Asker::Stranger => "stranger",
    }
    UPDATES, update(Update) {
        Update::Summary(_) => "summary",
        Update::Branch(_) => "branch",
        Update::PullRequest(_) => "pull_request",
    }
    VALUES, value(FieldValue) {
        FieldValue::Number(_) => "number",
        FieldValue::Text(_) => "text",
    }
    CHANGES, change(Change) {
        Change::Asked(Agent { role: Role::Worker, .. }) => "asked_worker",
        Change::Asked(Agent { role: Role::Reviewer, .. }) => "asked_reviewer",
        Change::Started => "started",
        Change::NotStarted(_) => "not_started",
        Change::EndAsked => "end_asked",
        Change::Ended => "ended",
        Change::NotEnded => "not_ended",
        Change::Exited(Exit::Code(_)) => "exited_with_code",
        Change::Exited(Exit::Signal(_)) => "exited_by_signal",
        Change::Exited(Exit::Lost) => "exited_unseen",
    }
    SETTLEMENTS, settlement(Settlement) {
        Settlement::Done => "done",
        Settlement::Idle => "idle",
        Settlement::Skipped(_) => "skipped",
        Settlement::Failed(_) => "failed",
    }
    ATTENTIONS, attention(Attention) {
        Attention::PoolFull => "pool_full",
        Attention::HookFailed(..) => "hook_failed",
        Attention::Crashed(_) => "crashed",
        Attention::NoWorkspace => "no_workspace",
        Attention::NoWorker => "no_worker",
        Attention::NoPrompt => "no_prompt",
        Attention::NotPushed(_) => "not_pushed",
        Attention::NotClosed(_) => "not_closed",
    }
    JUDGEMENTS, judged(Option<Judged>) {
        None => "unjudged",
        Some(Judged { verdict: Verdict::Pass, .. }) => "pass",
        Some(Judged { verdict: Verdict::Fail, .. }) => "fail",
    }
    INSTRUCTIONS, instruction(Instruction) {
        Instruction::AcquireWorkspace { reserved: None } => "acquire_workspace",
        Instruction::AcquireWorkspace { reserved: Some(_) } => "acquire_reserved_workspace",
        Instruction::ReleaseWorkspace { .. } => "release_workspace",
        Instruction::StartSession(StartSession { role: Role::Worker, .. }) => "start_worker",
        Instruction::StartSession(StartSession { role: Role::Reviewer, .. }) => "start_reviewer",
        Instruction::EndSession { .. } => "end_session",
        Instruction::TypeToWorker { occasion: Occasion::ReviewFailed, .. } => "type_review_failed",
        Instruction::TypeToWorker { occasion: Occasion::ChangesRequested, .. } => "type_changes_requested",
        Instruction::SpawnNext => "spawn_next",
        Instruction::PushBranch => "push_branch",
        Instruction::CreatePr => "create_pr",
        Instruction::DeleteRemoteBranch => "delete_remote_branch",
        Instruction::Notify { .. } => "notify",
        Instruction::RunCommand { .. } => "run_command",
        Instruction::WriteArtifact { feedback: None, .. } => "write_artifact",
        Instruction::WriteArtifact { feedback: Some(_), .. } => "write_artifact_with_feedback",
    }
    WORKSPACES, workspace(Workspace) {
        Workspace::Unbound => "unbound",
        Workspace::Reserved(_) => "reserved",
        Workspace::Bound(_) => "bound",
    }
    SESSIONS, session(Session) {
        Session::Absent => "absent",
        Session::Starting(_) => "starting",
        Session::Alive(_) => "alive",
        Session::Ending(_) => "ending",
        Session::Dead(_, Death::NotStarted(_)) => "not_started",
        Session::Dead(_, Death::Exited(_)) => "exited",
    }
    JOBS, job(Job) {
        Job::Hook { .. } => "hook",
        Job::Acquire => "acquire",
        Job::Start(Start { prompt: StatePrompt::Enter, .. }) => "start_entering",
        Job::Start(Start { prompt: StatePrompt::Respawn, .. }) => "start_again",
    }
    PLACES, place(Place) {
        Place::Main => "main",
        Place::Beside => "beside",
    }
}

const AT: Moment = Moment(1_700_000_000_000);
const S3: SessionId = SessionId(3);
const WORKER: Agent = Agent { id: S3, role: Role::Worker };

fn lifecycle() -> Lifecycle {
    let text = sluice_dialect::builtin::ALL.iter().find(|it| it.file == "default.yml").unwrap().text;
    match load(&Source { path: "default.yml", bytes: text.as_bytes() }, &mut NoPrompts, &mut Sources::default())
        .definition
    {
        Some(Definition::Lifecycle(lifecycle)) => lifecycle,
        _ => panic!("not a lifecycle"),
    }
}

fn about() -> About {
    About {
        summary: "Fix \"it\" ä".into(),
        project: "coffee".into(),
        branch: "fix".into(),
        harness: "claude".into(),
        review_harness: "codex".into(),
    }
}

fn seen() -> BTreeMap<String, Digest> {
    BTreeMap::from([("Handoff".to_owned(), Digest([0xab; 32]))])
}

fn workspace_name() -> WorkspaceName {
    WorkspaceName("coffee-1".into())
}

fn askers() -> Vec<(String, Asker)> {
    named(ASKERS, asker, vec![Asker::Person, Asker::Engine, Asker::Session(S3), Asker::Stranger])
}

fn places() -> Vec<(String, Place)> {
    named(PLACES, place, vec![Place::Main, Place::Beside])
}

fn judgements() -> Vec<(String, Option<Judged>)> {
    let samples = vec![
        None,
        Some(Judged { verdict: Verdict::Pass, tree: Some(Tree("4b825dc".into())) }),
        Some(Judged { verdict: Verdict::Fail, tree: None }),
    ];
    named(JUDGEMENTS, judged, samples)
}

fn attentions() -> Vec<(String, Attention)> {
    let samples = vec![
        Attention::PoolFull,
        Attention::HookFailed(Action::PushBranch, "no network".into()),
        Attention::Crashed(2),
        Attention::NoWorkspace,
        Attention::NoWorker,
        Attention::NoPrompt,
        Attention::NotPushed("no network".into()),
        Attention::NotClosed("no way to done".into()),
    ];
    named(ATTENTIONS, attention, samples)
}

fn moved(by: Asker, judged: Option<Judged>) -> Event {
    let edge = Some(EdgeId(4));
    Event::Moved(Moved { turn: 2, from: StateId(1), to: StateId(2), edge, by, at: AT, seen: seen(), judged })
}

fn changed(place: Place, change: Change) -> Event {
    Event::Session { place, session: S3, change, again: place == Place::Beside }
}

fn settled(settlement: Settlement) -> Event {
    Event::HookSettled { turn: 2, step: 1, action: Action::PushBranch, settlement }
}

fn plain_events() -> Vec<Event> {
    vec![
        Event::Created(Created { status: StateId(0), about: about(), by: Asker::Engine, at: AT, seen: seen() }),
        moved(Asker::Person, None),
        Event::Began { turn: 1, edge: Some(EdgeId(4)) },
        Event::Respawning { turn: 3, place: Place::Main, by: Asker::Engine },
        Event::Advanced { session: S3, to: StateId(2) },
        Event::Crashed { session: S3, exit: Exit::Code(1), count: 2 },
        Event::Merged,
        Event::Cancelled,
        Event::Updated(Update::Summary("Fix that".into())),
        Event::FieldSet { field: FieldName::new("size"), value: FieldValue::Number(-3) },
        Event::WorkspaceReserved(workspace_name()),
        Event::WorkspaceBound(workspace_name()),
        Event::WorkspaceReleased,
        changed(Place::Main, Change::Started),
        Event::PullRequestOpened("https://forge/pr/1".into()),
        Event::HookAsked { turn: 2, step: 1, action: Action::PushBranch },
        settled(Settlement::Done),
        Event::TurnSettled { turn: 2 },
        Event::NotWritten("the disk is full".into()),
        Event::AttentionSet(Attention::PoolFull),
        Event::AttentionCleared,
    ]
}

fn changes() -> Vec<(String, Change)> {
    let samples = vec![
        Change::Asked(WORKER),
        Change::Asked(Agent { id: S3, role: Role::Reviewer }),
        Change::Started,
        Change::NotStarted("no tmux".into()),
        Change::EndAsked,
        Change::Ended,
        Change::NotEnded,
        Change::Exited(Exit::Code(1)),
        Change::Exited(Exit::Signal(9)),
        Change::Exited(Exit::Lost),
    ];
    named(CHANGES, change, samples)
}

#[test]
fn events() {
    let mut samples = named(EVENTS, event, plain_events());
    let mut add = |name: String, event: Event| samples.push((name, event));
    for (name, by) in askers() {
        add(format!("moved.by_{name}"), moved(by, None));
    }
    for (name, judged) in judgements() {
        add(format!("moved.{name}"), moved(Asker::Engine, judged));
    }
    let escalated = Moved {
        turn: 2,
        from: StateId(1),
        to: StateId(5),
        edge: None,
        by: Asker::Engine,
        at: AT,
        seen: BTreeMap::new(),
        judged: None,
    };
    add("moved.along_no_edge".into(), Event::Moved(escalated));
    add("began.by_its_prompt".into(), Event::Began { turn: 1, edge: None });
    for (name, place) in places() {
        add(format!("respawning.{name}"), Event::Respawning { turn: 3, place, by: Asker::Person });
        add(format!("session.{name}"), changed(place, Change::Started));
    }
    for (name, update) in named(
        UPDATES,
        update,
        vec![
            Update::Summary("Fix that".into()),
            Update::Branch("other".into()),
            Update::PullRequest("https://p".into()),
        ],
    ) {
        add(format!("updated.{name}"), Event::Updated(update));
    }
    for (name, value) in named(VALUES, value, vec![FieldValue::Number(3), FieldValue::Text("x".into())]) {
        add(format!("field_set.{name}"), Event::FieldSet { field: FieldName::new("size"), value });
    }
    for (name, change) in changes() {
        add(format!("session.{name}"), changed(Place::Main, change));
    }
    let settlements =
        vec![Settlement::Done, Settlement::Idle, Settlement::Skipped("no".into()), Settlement::Failed("no".into())];
    for (name, settlement) in named(SETTLEMENTS, settlement, settlements) {
        add(format!("hook_settled.{name}"), settled(settlement));
    }
    for (name, attention) in attentions() {
        add(format!("attention_set.{name}"), Event::AttentionSet(attention));
    }
    for action in Action::ALL {
        add(format!("hook_asked.{action}"), Event::HookAsked { turn: 2, step: 1, action: *action });
    }
    let write = |it: &Event| json(&task_event::write(it));
    compare("task_event", &samples, write, |form| write(&task_event::read(1, form.to_string().as_bytes()).unwrap()));
}

fn start(role: Role) -> Instruction {
    let beside = role == Role::Reviewer;
    Instruction::StartSession(StartSession {
        session: S3,
        place: if beside { Place::Beside } else { Place::Main },
        role,
        window: "review-1".into(),
        prompt: "# Review".into(),
        harness: if beside { HarnessChoice::Review } else { HarnessChoice::Task },
        permissions: if beside { Permissions::Reduced } else { Permissions::Full },
        workspace: workspace_name(),
    })
}

fn instructions() -> Vec<Instruction> {
    let frontmatter = || {
        BTreeMap::from([
            ("review_round".to_owned(), FieldValue::Number(1)),
            ("status".to_owned(), FieldValue::Text("working".into())),
        ])
    };
    let tell = |occasion: Occasion| Instruction::TypeToWorker { session: S3, occasion, text: "go on".into() };
    vec![
        Instruction::AcquireWorkspace { reserved: None },
        Instruction::AcquireWorkspace { reserved: Some(workspace_name()) },
        Instruction::ReleaseWorkspace { workspace: workspace_name() },
        start(Role::Worker),
        start(Role::Reviewer),
        Instruction::EndSession { sessions: vec![S3, SessionId(4)], whole: true },
        tell(Occasion::ReviewFailed),
        tell(Occasion::ChangesRequested),
        Instruction::SpawnNext,
        Instruction::PushBranch,
        Instruction::CreatePr,
        Instruction::DeleteRemoteBranch,
        Instruction::Notify { message: "ready".into() },
        Instruction::RunCommand {
            workspace: workspace_name(),
            script: "make \"$V\"".into(),
            environment: vec![("V".into(), "all".into())],
        },
        Instruction::WriteArtifact { frontmatter: frontmatter(), feedback: None },
        Instruction::WriteArtifact { frontmatter: frontmatter(), feedback: Some("smaller".into()) },
    ]
}

#[test]
fn effects() {
    let key = |instruction: &Instruction| match instruction {
        Instruction::WriteArtifact { .. } => EffectKey::Write { events: 41 },
        _ => EffectKey::Job { turn: 2, step: 1, action: Action::PushBranch },
    };
    let instructions = named(INSTRUCTIONS, instruction, instructions()).into_iter();
    let mut samples: Vec<(String, Effect)> =
        instructions.map(|(name, instruction)| (name, Effect { key: key(&instruction), instruction })).collect();
    for action in Action::ALL {
        let key = EffectKey::Job { turn: 7, step: 2, action: *action };
        samples.push((format!("key.{action}"), Effect { key, instruction: Instruction::SpawnNext }));
    }
    let write = |it: &Effect| {
        let data = json(&task_effect::write(&it.instruction));
        serde_json::json!({ "id": it.key.to_string(), "kind": task_effect::kind(&it.instruction), "data": data })
    };
    compare("task_effect", &samples, write, |form| {
        write(&task_effect::read(form["id"].as_str().unwrap(), form["data"].to_string().as_bytes()).unwrap())
    });
}

/// A task in the middle of something, so that every part of it can be there.
fn state() -> TaskState {
    let created = Created { status: StateId(0), about: about(), by: Asker::Person, at: AT, seen: seen() };
    TaskState {
        review_round: 2,
        crash_count: 1,
        numbers: BTreeMap::from([(FieldName::new("size"), -3)]),
        texts: BTreeMap::from([(FieldName::new("mood"), "hopeful".into())]),
        turns: VecDeque::from([
            Turn {
                number: 4,
                crashes: 1,
                step: 2,
                jobs: VecDeque::from([Job::Hook { edge: EdgeId(3), hook: 1 }]),
                waiting: Some(Action::KillSession),
            },
            Turn { number: 5, crashes: 0, step: 1, jobs: VecDeque::new(), waiting: None },
        ]),
        turns_taken: 5,
        sessions_asked: 9,
        pull_request: Some("https://forge/pr/1".into()),
        events: 41,
        ..TaskState::created(&created)
    }
}

fn sessions() -> Vec<(String, Session)> {
    let samples = vec![
        Session::Absent,
        Session::Starting(WORKER),
        Session::Alive(WORKER),
        Session::Ending(WORKER),
        Session::Dead(WORKER, Death::NotStarted("no tmux".into())),
        Session::Dead(WORKER, Death::Exited(Exit::Signal(9))),
    ];
    named(SESSIONS, session, samples)
}

fn jobs() -> Vec<(String, Job)> {
    let start = |prompt, place, again| Job::Start(Start { state: StateId(2), prompt, place, again });
    let samples = vec![
        Job::Hook { edge: EdgeId(3), hook: 1 },
        Job::Acquire,
        start(StatePrompt::Enter, Place::Main, false),
        start(StatePrompt::Respawn, Place::Beside, true),
    ];
    named(JOBS, job, samples)
}

#[test]
fn states() {
    let created =
        Created { status: StateId(0), about: About::default(), by: Asker::Person, at: AT, seen: BTreeMap::new() };
    let mut samples = vec![("new".to_owned(), TaskState::created(&created)), ("middle".to_owned(), state())];
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
    let workspaces =
        vec![Workspace::Unbound, Workspace::Reserved(workspace_name()), Workspace::Bound(workspace_name())];
    for (name, workspace) in named(WORKSPACES, workspace, workspaces) {
        add(format!("workspace.{name}"), &|state| state.workspace = workspace.clone());
    }
    for (name, session) in sessions() {
        add(format!("main.{name}"), &|state| state.main = session.clone());
        add(format!("beside.{name}"), &|state| state.beside = session.clone());
    }
    for (name, attention) in attentions() {
        add(format!("attention.{name}"), &|state| state.attention = Some(attention.clone()));
    }
    for (name, judged) in judgements() {
        add(format!("judged.{name}"), &|state| state.judged = judged.clone());
    }
    for (name, job) in jobs() {
        add(format!("job.{name}"), &|state| state.turns[1].jobs.push_back(job));
    }
    let kept = |state: &TaskState| Kept {
        id: "task-1".into(),
        definition: "d1".into(),
        state: state.clone(),
        open: vec!["write-41".into(), "turn-4/2 kill_session".into()],
        remarks: Remarks::default(),
    };
    let write = |it: &TaskState| json(&task_state::write(&kept(it)));
    let lifecycle = lifecycle();
    compare("task_state", &samples, write, |form| {
        let read = task_state::read(&lifecycle, form.to_string().as_bytes()).unwrap();
        assert_eq!(read, kept(&read.state), "its name, definition and order are kept");
        json(&task_state::write(&read))
    });
}
