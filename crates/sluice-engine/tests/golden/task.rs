//! Samples of what is stored of tasks.

use std::collections::BTreeMap;

use sluice_core::artifact::Verdict;
use sluice_core::lifecycle::{FieldValue, HarnessChoice, Permissions, StateId};
use sluice_core::machine::Moment;
use sluice_core::name::FieldName;
use sluice_core::task::effect::{Occasion, StartSession};
use sluice_core::task::event::{Created, Moved, Settlement};
use sluice_core::task::input::{RunEnd, Update};
use sluice_core::task::session::{Agent, Change, Exit, Place, Role, SessionId};
use sluice_core::task::state::{About, Asked, Attention, Checked, Commit, EdgeId, Judged, Stood, Tree, WorkspaceName};
use sluice_core::task::{Action, Asker, Digest, Effect, EffectKey, Event, Instruction, Seen};
use sluice_engine::codec::{task_effect, task_event};

use super::{compare, forms, json, named};

forms! {
    EVENTS, event(Event) {
        Event::Created(_) => "created",
        Event::Moved(_) => "moved",
        Event::Began { .. } => "began",
        Event::Respawning { .. } => "respawning",
        Event::Advanced { .. } => "advanced",
        Event::VerdictRefused { .. } => "verdict_refused",
        Event::Crashed { .. } => "crashed",
        Event::Merged { .. } => "merged",
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
        Event::RunStarted { .. } => "run_started",
        Event::RunEnded { .. } => "run_ended",
        Event::RunLeft { .. } => "run_left",
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
        Change::Exited(Exit::Uprooted) => "exited_uprooted",
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
        Attention::Uprooted => "uprooted",
        Attention::WorkerGone => "worker_gone",
        Attention::Disputed { .. } => "disputed",
        Attention::NotPushed(_) => "not_pushed",
        Attention::NotClosed(_) => "not_closed",
        Attention::RunEnded { .. } => "run_ended",
    }
    RUN_ENDS, run_end(RunEnd) {
        RunEnd::Completed => "completed",
        RunEnd::Failed => "failed",
        RunEnd::Cancelled => "cancelled",
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
        Instruction::TypeToWorker { occasion: Occasion::ReviewPassed, .. } => "type_review_passed",
        Instruction::TypeToWorker { occasion: Occasion::ChangesRequested, .. } => "type_changes_requested",
        Instruction::SpawnNext => "spawn_next",
        Instruction::PushBranch => "push_branch",
        Instruction::CreatePr => "create_pr",
        Instruction::DeleteRemoteBranch => "delete_remote_branch",
        Instruction::Notify { .. } => "notify",
        Instruction::RunCommand { .. } => "run_command",
        Instruction::StartRun { workspace: Some(_), .. } => "start_run",
        Instruction::StartRun { workspace: None, .. } => "start_run_elsewhere",
        Instruction::CancelRun { .. } => "cancel_run",
        Instruction::WriteArtifact { feedback: None, .. } => "write_artifact",
        Instruction::WriteArtifact { feedback: Some(_), .. } => "write_artifact_with_feedback",
    }
    PLACES, place(Place) {
        Place::Main => "main",
        Place::Beside => "beside",
    }
}

pub(super) const AT: Moment = Moment(1_700_000_000_000);
const S3: SessionId = SessionId(3);
/// A verdict that a reviewer asked for, and what its file said.
pub(super) const ASKED: Asked = Asked { verdict: Verdict::Fail, found: Some(Verdict::Pass) };
pub(super) const WORKER: Agent = Agent { id: S3, role: Role::Worker };

pub(super) fn about() -> About {
    About {
        summary: "Fix \"it\" ä".into(),
        project: "coffee".into(),
        branch: "fix".into(),
        harness: "claude".into(),
        review_harness: "codex".into(),
    }
}

pub(super) fn seen() -> BTreeMap<String, Seen> {
    BTreeMap::from([("Handoff".to_owned(), Seen { digest: Digest([0xab; 32]), is_planted: false })])
}

pub(super) fn workspace_name() -> WorkspaceName {
    WorkspaceName("coffee-1".into())
}

pub(super) fn askers() -> Vec<(String, Asker)> {
    named(ASKERS, asker, vec![Asker::Person, Asker::Engine, Asker::Session(S3), Asker::Stranger])
}

pub(super) fn places() -> Vec<(String, Place)> {
    named(PLACES, place, vec![Place::Main, Place::Beside])
}

pub(super) fn judgements() -> Vec<(String, Option<Judged>)> {
    let samples = vec![
        None,
        Some(Judged { verdict: Verdict::Pass, work: Stood { tree: Some(Tree("4b825dc".into())), ..Stood::default() } }),
        Some(Judged { verdict: Verdict::Fail, work: Stood::default() }),
    ];
    named(JUDGEMENTS, judged, samples)
}

/// A verdict as it is given now; older ones knew the content only.
pub(super) fn judged_a_commit() -> Judged {
    Judged { verdict: Verdict::Pass, work: stood() }
}

/// The work, with changes beside its commit.
pub(super) fn stood() -> Stood {
    Stood { commit: Some(Commit("9f2c1d7".into())), tree: Some(Tree("4b825dc".into())), dirty: true }
}

/// What became of runs that judge: one has ended, one has not, and one was never started.
pub(super) fn checks() -> Vec<(String, Checked)> {
    let run = Some("k3f9".to_owned());
    let ended = run_ends().into_iter().map(|(name, end)| (name, run.clone(), Some(end), stood()));
    let left =
        [("left".to_owned(), run.clone(), None, stood()), ("passed_by".to_owned(), None, None, Stood::default())];
    ended.chain(left).map(|(name, run, end, work)| (name, Checked { run, end, work })).collect()
}

pub(super) fn attentions() -> Vec<(String, Attention)> {
    let samples = vec![
        Attention::PoolFull,
        Attention::HookFailed(Action::PushBranch, "no network".into()),
        Attention::Crashed(2),
        Attention::NoWorkspace,
        Attention::NoWorker,
        Attention::NoPrompt,
        Attention::Uprooted,
        Attention::WorkerGone,
        Attention::Disputed { found: Verdict::Pass, asked: Verdict::Fail },
        Attention::NotPushed("no network".into()),
        Attention::NotClosed("no way to done".into()),
        Attention::RunEnded { run: "k3f9".into(), end: RunEnd::Failed, why: "no".into() },
    ];
    named(ATTENTIONS, attention, samples)
}

pub(super) fn run_ends() -> Vec<(String, RunEnd)> {
    named(RUN_ENDS, run_end, vec![RunEnd::Completed, RunEnd::Failed, RunEnd::Cancelled])
}

fn created(sessions: u32) -> Event {
    Event::Created(Created { status: StateId(0), about: about(), by: Asker::Engine, at: AT, seen: seen(), sessions })
}

fn moved(by: Asker, judged: Option<Judged>) -> Event {
    let edge = Some(EdgeId(4));
    Event::Moved(Moved {
        turn: 2,
        from: StateId(1),
        to: StateId(2),
        edge,
        by,
        at: AT,
        seen: seen(),
        judged,
        unchecked: None,
        handed: None,
    })
}

fn changed(place: Place, change: Change) -> Event {
    Event::Session { place, session: S3, change, again: place == Place::Beside }
}

fn settled(settlement: Settlement) -> Event {
    Event::HookSettled { turn: 2, step: 1, action: Action::PushBranch, settlement }
}

fn plain_events() -> Vec<Event> {
    vec![
        created(0),
        moved(Asker::Person, None),
        Event::Began { turn: 1, edge: Some(EdgeId(4)) },
        Event::Respawning { turn: 3, place: Place::Main, by: Asker::Engine },
        Event::Advanced { session: S3, to: StateId(2) },
        Event::VerdictRefused { session: S3, asked: ASKED },
        Event::Crashed { session: S3, exit: Exit::Code(1), count: 2 },
        Event::Merged { commit: None, forced: false },
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
        Event::RunStarted { turn: 2, run: "k3f9".into(), began: None },
        Event::RunEnded { run: "k3f9".into(), end: RunEnd::Completed, why: String::new(), judged: None },
        Event::RunLeft { run: "k3f9".into() },
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
        Change::Exited(Exit::Uprooted),
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
        unchecked: None,
        handed: None,
    };
    for (name, check) in checks() {
        let passed_by = Moved { unchecked: Some(check), ..escalated.clone() };
        add(format!("moved.unchecked_{name}"), Event::Moved(passed_by));
    }
    let unsaid = Asked { verdict: Verdict::Pass, found: None };
    add("verdict_refused.without_one_in_the_file".into(), Event::VerdictRefused { session: S3, asked: unsaid });
    add("created.with_a_life_before".into(), created(2));
    let to_a_reviewer = Moved { handed: Some(stood()), ..escalated.clone() };
    let planted = BTreeMap::from([("Review".to_owned(), Seen { digest: Digest([0xcd; 32]), is_planted: true })]);
    add("moved.with_a_verdict_planted".into(), Event::Moved(Moved { seen: planted, ..escalated.clone() }));
    add("moved.to_a_reviewer_beside".into(), Event::Moved(to_a_reviewer));
    add("moved.along_no_edge".into(), Event::Moved(escalated));
    add("moved.judged_a_commit".into(), moved(Asker::Person, Some(judged_a_commit())));
    let commit = Some(Commit("9f2c1d7".into()));
    add("merged.by_force".into(), Event::Merged { commit, forced: true });
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
    for (name, end) in run_ends() {
        let ended = |judged| Event::RunEnded { run: "k3f9".into(), end, why: "why".into(), judged };
        add(format!("run_ended.{name}"), ended(None));
        add(format!("run_ended.{name}_judged"), ended(Some(stood())));
    }
    add("run_started.judging".into(), Event::RunStarted { turn: 2, run: "k3f9".into(), began: Some(stood()) });
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

fn start_run(workspace: Option<WorkspaceName>) -> Instruction {
    let inputs = vec![("branch".into(), "fix".into())];
    Instruction::StartRun { recipe: "verify".into(), inputs, workspace }
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
        tell(Occasion::ReviewPassed),
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
        start_run(Some(workspace_name())),
        start_run(None),
        Instruction::CancelRun { run: "k3f9".into() },
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
