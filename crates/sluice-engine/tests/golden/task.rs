//! Samples of what is stored of tasks.

use std::collections::BTreeMap;

use sluice_core::artifact::Verdict;
use sluice_core::attention::{AttentionChannel, DialogKind, SessionSignal};
use sluice_core::id::RunId;
use sluice_core::lifecycle::action::PlainAction;
use sluice_core::lifecycle::{AgentPermissions, FieldValue, HarnessChoice, StateId};
use sluice_core::machine::Moment;
use sluice_core::name::FieldName;
use sluice_core::task::effect::{Occasion, StartSession};
use sluice_core::task::event::{Settlement, TaskCreation, TaskMove};
use sluice_core::task::input::{RunEnd, TaskUpdate};
use sluice_core::task::session::{
    SessionAgent, SessionChange, SessionExit, SessionNumber, SessionRole, TaskSessionPlace,
};
use sluice_core::task::state::{
    CommitId, EdgeId, MarkBehind, RaisedAttention, RefusedVerdict, RunJudgement, TaskAttention, TaskSubject, TreeId,
    WorkSnapshot, WorkVerdict, WorktreePath,
};
use sluice_core::task::{
    EffectKey, Instruction, PlainEffect, SectionDigest, SectionSnapshot, TaskAction, TaskAsker, TaskEffect, TaskEvent,
};
use sluice_engine::codec::{task_effect, task_event};

use super::{StoredFamily, forms, json, named};

forms! {
    EVENTS, event(TaskEvent) {
        TaskEvent::Created(_) => "created",
        TaskEvent::Moved(_) => "moved",
        TaskEvent::Began { .. } => "began",
        TaskEvent::Respawning { .. } => "respawning",
        TaskEvent::Retrying { .. } => "retrying",
        TaskEvent::Advanced { .. } => "advanced",
        TaskEvent::VerdictRefused { .. } => "verdict_refused",
        TaskEvent::Crashed { .. } => "crashed",
        TaskEvent::Merged { .. } => "merged",
        TaskEvent::Cancelled => "cancelled",
        TaskEvent::Updated(_) => "updated",
        TaskEvent::FieldSet { .. } => "field_set",
        TaskEvent::WorkspaceReserved(_) => "workspace_reserved",
        TaskEvent::WorkspaceBound(_) => "workspace_bound",
        TaskEvent::WorkspaceReleased => "workspace_released",
        TaskEvent::WorkspaceLent { .. } => "workspace_lent",
        TaskEvent::Session { .. } => "session",
        TaskEvent::PullRequestOpened(_) => "pull_request_opened",
        TaskEvent::HookAsked { .. } => "hook_asked",
        TaskEvent::HookSettled { .. } => "hook_settled",
        TaskEvent::TurnSettled { .. } => "turn_settled",
        TaskEvent::RunStarted { .. } => "run_started",
        TaskEvent::RunEnded { .. } => "run_ended",
        TaskEvent::RunLeft { .. } => "run_left",
        TaskEvent::NotWritten(_) => "not_written",
        TaskEvent::Signalled { .. } => "signalled",
        TaskEvent::AttentionSet(_) => "attention_set",
        TaskEvent::AttentionCleared => "attention_cleared",
    }
    ASKERS, asker(TaskAsker) {
        TaskAsker::Person => "person",
        TaskAsker::Engine => "engine",
        TaskAsker::Session(_) => "session",
        TaskAsker::Stranger => "stranger",
    }
    UPDATES, update(TaskUpdate) {
        TaskUpdate::Summary(_) => "summary",
        TaskUpdate::Branch(_) => "branch",
        TaskUpdate::PullRequest(_) => "pull_request",
    }
    VALUES, value(FieldValue) {
        FieldValue::Number(_) => "number",
        FieldValue::Text(_) => "text",
    }
    CHANGES, change(SessionChange) {
        SessionChange::Asked(SessionAgent { role: SessionRole::Worker, .. }) => "asked_worker",
        SessionChange::Asked(SessionAgent { role: SessionRole::Reviewer, .. }) => "asked_reviewer",
        SessionChange::Started => "started",
        SessionChange::NotStarted(_) => "not_started",
        SessionChange::EndAsked => "end_asked",
        SessionChange::Ended => "ended",
        SessionChange::NotEnded => "not_ended",
        SessionChange::Exited(SessionExit::Code(_)) => "exited_with_code",
        SessionChange::Exited(SessionExit::Signal(_)) => "exited_by_signal",
        SessionChange::Exited(SessionExit::Lost) => "exited_unseen",
        SessionChange::Exited(SessionExit::Uprooted) => "exited_uprooted",
    }
    SETTLEMENTS, settlement(Settlement) {
        Settlement::Done => "done",
        Settlement::Idle => "idle",
        Settlement::Skipped(_) => "skipped",
        Settlement::Failed(_) => "failed",
    }
    ATTENTIONS, attention(TaskAttention) {
        TaskAttention::PoolFull => "pool_full",
        TaskAttention::HookFailed(..) => "hook_failed",
        TaskAttention::Crashed(_) => "crashed",
        TaskAttention::NoWorkspace => "no_workspace",
        TaskAttention::NoWorker => "no_worker",
        TaskAttention::NoPrompt => "no_prompt",
        TaskAttention::Uprooted => "uprooted",
        TaskAttention::WorkerGone => "worker_gone",
        TaskAttention::Disputed { .. } => "disputed",
        TaskAttention::NotPushed(_) => "not_pushed",
        TaskAttention::NotClosed(_) => "not_closed",
        TaskAttention::RunEnded { .. } => "run_ended",
        TaskAttention::Review => "review",
        TaskAttention::Clarification => "clarification",
        TaskAttention::Stuck(None) => "stuck",
        TaskAttention::Stuck(Some(_)) => "stuck_after_an_end",
        TaskAttention::Decision => "decision",
        TaskAttention::Unattended => "unattended",
        TaskAttention::Died(_) => "died",
        TaskAttention::CannotStart(_) => "cannot_start",
        TaskAttention::Dialog { .. } => "dialog",
        TaskAttention::Quiet { .. } => "quiet",
    }
    SIGNALS, signal(SessionSignal) {
        SessionSignal::Waits { .. } => "waits",
        SessionSignal::Quiet { .. } => "quiet",
        SessionSignal::Works { .. } => "works",
    }
    RUN_ENDS, run_end(RunEnd) {
        RunEnd::Completed => "completed",
        RunEnd::Failed => "failed",
        RunEnd::Cancelled => "cancelled",
    }
    JUDGEMENTS, judged(Option<WorkVerdict>) {
        None => "unjudged",
        Some(WorkVerdict { verdict: Verdict::Pass, .. }) => "pass",
        Some(WorkVerdict { verdict: Verdict::Fail, .. }) => "fail",
    }
    INSTRUCTIONS, instruction(Instruction) {
        Instruction::AcquireWorkspace { reserved: None } => "acquire_workspace",
        Instruction::AcquireWorkspace { reserved: Some(_) } => "acquire_reserved_workspace",
        Instruction::ReleaseWorkspace { .. } => "release_workspace",
        Instruction::StartSession(StartSession { role: SessionRole::Worker, .. }) => "start_worker",
        Instruction::StartSession(StartSession { role: SessionRole::Reviewer, .. }) => "start_reviewer",
        Instruction::EndSession { .. } => "end_session",
        Instruction::TypeToWorker { occasion: Occasion::ReviewFailed, .. } => "type_review_failed",
        Instruction::TypeToWorker { occasion: Occasion::ReviewPassed, .. } => "type_review_passed",
        Instruction::TypeToWorker { occasion: Occasion::ChangesRequested, .. } => "type_changes_requested",
        Instruction::TypeToWorker { occasion: Occasion::Answered, .. } => "type_answered",
        Instruction::Plain(_) => "plain",
        Instruction::RunCommand { .. } => "run_command",
        Instruction::StartRun { workspace: Some(_), .. } => "start_run",
        Instruction::StartRun { workspace: None, .. } => "start_run_elsewhere",
        Instruction::CancelRun { .. } => "cancel_run",
        Instruction::WriteArtifact { feedback: None, .. } => "write_artifact",
        Instruction::WriteArtifact { feedback: Some(_), .. } => "write_artifact_with_feedback",
    }
    PLACES, place(TaskSessionPlace) {
        TaskSessionPlace::Main => "main",
        TaskSessionPlace::Beside => "beside",
    }
}

pub(super) const AT: Moment = Moment(1_700_000_000_000);
const PUSH: TaskAction = TaskAction::Plain(PlainAction::PushBranch);
const S3: SessionNumber = SessionNumber(3);
/// A verdict that a reviewer asked for, and what its file said.
pub(super) const ASKED: RefusedVerdict = RefusedVerdict { verdict: Verdict::Fail, found: Some(Verdict::Pass) };
pub(super) const WORKER: SessionAgent = SessionAgent { id: S3, role: SessionRole::Worker };

/// What the tasks of the samples are about. It stays as it is: a new field is set in one of [`creations`].
#[expect(clippy::needless_update, reason = "a field that is added has no place here")]
pub(super) fn about() -> TaskSubject {
    TaskSubject {
        summary: "Fix \"it\" ä".into(),
        project: "coffee".into(),
        branch: "fix".into(),
        harness: "claude".into(),
        review_harness: "codex".into(),
        ..TaskSubject::default()
    }
}

pub(super) fn seen() -> BTreeMap<String, SectionSnapshot> {
    BTreeMap::from([("Handoff".to_owned(), SectionSnapshot { digest: SectionDigest([0xab; 32]), is_planted: false })])
}

pub(super) fn workspace_name() -> WorktreePath {
    WorktreePath("coffee-1".into())
}

pub(super) fn askers() -> Vec<(String, TaskAsker)> {
    named(ASKERS, asker, vec![TaskAsker::Person, TaskAsker::Engine, TaskAsker::Session(S3), TaskAsker::Stranger])
}

pub(super) fn places() -> Vec<(String, TaskSessionPlace)> {
    named(PLACES, place, vec![TaskSessionPlace::Main, TaskSessionPlace::Beside])
}

pub(super) fn judgements() -> Vec<(String, Option<WorkVerdict>)> {
    let samples = vec![
        None,
        Some(WorkVerdict {
            verdict: Verdict::Pass,
            work: WorkSnapshot { tree: Some(TreeId("4b825dc".into())), ..WorkSnapshot::default() },
        }),
        Some(WorkVerdict { verdict: Verdict::Fail, work: WorkSnapshot::default() }),
    ];
    named(JUDGEMENTS, judged, samples)
}

/// A verdict as it is given now; older ones knew the content only.
pub(super) fn judged_a_commit() -> WorkVerdict {
    WorkVerdict { verdict: Verdict::Pass, work: stood() }
}

/// The work, with changes beside its commit.
pub(super) fn stood() -> WorkSnapshot {
    WorkSnapshot { commit: Some(CommitId("9f2c1d7".into())), tree: Some(TreeId("4b825dc".into())), dirty: true }
}

/// What became of runs that judge: one has ended, one has not, and one was never started.
pub(super) fn checks() -> Vec<(String, RunJudgement)> {
    let run = Some(run_id());
    let ended = run_ends().into_iter().map(|(name, end)| (name, run.clone(), Some(end), stood()));
    let left = [
        ("left".to_owned(), run.clone(), None, stood()),
        ("passed_by".to_owned(), None, None, WorkSnapshot::default()),
    ];
    ended.chain(left).map(|(name, run, end, work)| (name, RunJudgement { run, end, work })).collect()
}

pub(super) fn run_id() -> RunId {
    "k3f9".parse().unwrap()
}

pub(super) fn attentions() -> Vec<(String, TaskAttention)> {
    let samples = vec![
        TaskAttention::PoolFull,
        TaskAttention::HookFailed(PUSH, "no network".into()),
        TaskAttention::Crashed(2),
        TaskAttention::NoWorkspace,
        TaskAttention::NoWorker,
        TaskAttention::NoPrompt,
        TaskAttention::Uprooted,
        TaskAttention::WorkerGone,
        TaskAttention::Disputed { found: Verdict::Pass, asked: Verdict::Fail },
        TaskAttention::NotPushed("no network".into()),
        TaskAttention::NotClosed("no way to done".into()),
        TaskAttention::RunEnded { run: run_id(), end: RunEnd::Failed, why: "no".into() },
        TaskAttention::Review,
        TaskAttention::Clarification,
        TaskAttention::Stuck(None),
        TaskAttention::Stuck(Some(SessionExit::Code(1))),
        TaskAttention::Decision,
        TaskAttention::Unattended,
        TaskAttention::Died(SessionExit::Signal(9)),
        TaskAttention::CannotStart("claude is not on the PATH".into()),
        TaskAttention::Dialog { what: DialogKind::Trust, text: "trust?".into(), by: AttentionChannel::Screen },
        TaskAttention::Quiet { seconds: 300 },
    ];
    named(ATTENTIONS, attention, samples)
}

/// As an older engine raised it, without a number.
pub(super) fn raised(why: TaskAttention) -> RaisedAttention {
    RaisedAttention { number: 0, since: Moment(0), why, behind: None }
}

pub(super) fn numbered() -> RaisedAttention {
    RaisedAttention { number: 2, since: AT, why: TaskAttention::Review, behind: None }
}

/// What is more urgent than a mark, in front of it.
pub(super) fn in_front() -> RaisedAttention {
    RaisedAttention { behind: Some(MarkBehind { number: 1, since: AT, why: TaskAttention::WorkerGone }), ..numbered() }
}

/// What is heard of an agent: of each kind, and of each channel and kind of dialog.
pub(super) fn signals() -> Vec<(String, SessionSignal)> {
    let waits = |what, by| SessionSignal::Waits { what, text: "trust?".into(), by };
    let by = AttentionChannel::Hook;
    let kinds = vec![waits(DialogKind::Trust, by), SessionSignal::Quiet { seconds: 300 }, SessionSignal::Works { by }];
    let mut all = named(SIGNALS, signal, kinds);
    all.extend(DialogKind::ALL.map(|what| (format!("waits_{}", what.word()), waits(what, by))));
    all.extend(AttentionChannel::ALL.map(|by| (format!("waits_by_{}", by.word()), waits(DialogKind::Other, by))));
    all
}

pub(super) fn run_ends() -> Vec<(String, RunEnd)> {
    named(RUN_ENDS, run_end, vec![RunEnd::Completed, RunEnd::Failed, RunEnd::Cancelled])
}

fn creation() -> TaskCreation {
    TaskCreation { status: StateId(0), about: about(), by: TaskAsker::Engine, at: AT, seen: seen(), sessions: 0 }
}

/// Tasks that are created with something that the others lack. Each is a sample of the event, and of the state after it.
pub(super) fn creations() -> Vec<(&'static str, TaskCreation)> {
    vec![("with_a_life_before", TaskCreation { sessions: 2, ..creation() })]
}

fn moved(by: TaskAsker, judged: Option<WorkVerdict>) -> TaskEvent {
    let edge = Some(EdgeId(4));
    TaskEvent::Moved(TaskMove {
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
        said: false,
    })
}

fn changed(place: TaskSessionPlace, change: SessionChange) -> TaskEvent {
    TaskEvent::Session { place, session: S3, change, again: place == TaskSessionPlace::Beside }
}

fn settled(settlement: Settlement) -> TaskEvent {
    TaskEvent::HookSettled { turn: 2, step: 1, action: PUSH, settlement }
}

fn plain_events() -> Vec<TaskEvent> {
    vec![
        TaskEvent::Created(creation()),
        moved(TaskAsker::Person, None),
        TaskEvent::Began { turn: 1, edge: Some(EdgeId(4)) },
        TaskEvent::Respawning { turn: 3, place: TaskSessionPlace::Main, by: TaskAsker::Engine },
        TaskEvent::Retrying { turn: 3, by: TaskAsker::Person },
        TaskEvent::Advanced { session: S3, to: StateId(2) },
        TaskEvent::VerdictRefused { session: S3, asked: ASKED },
        TaskEvent::Crashed { session: S3, exit: SessionExit::Code(1), count: 2 },
        TaskEvent::Merged { commit: None, forced: false },
        TaskEvent::Cancelled,
        TaskEvent::Updated(TaskUpdate::Summary("Fix that".into())),
        TaskEvent::FieldSet { field: FieldName::new("size"), value: FieldValue::Number(-3) },
        TaskEvent::WorkspaceReserved(workspace_name()),
        TaskEvent::WorkspaceBound(workspace_name()),
        TaskEvent::WorkspaceReleased,
        TaskEvent::WorkspaceLent {
            workspace: workspace_name(),
            branch: "fix".into(),
            commit: CommitId("9f2c1d7".into()),
        },
        changed(TaskSessionPlace::Main, SessionChange::Started),
        TaskEvent::PullRequestOpened("https://forge/pr/1".into()),
        TaskEvent::HookAsked { turn: 2, step: 1, action: PUSH },
        settled(Settlement::Done),
        TaskEvent::TurnSettled { turn: 2 },
        TaskEvent::RunStarted { turn: 2, run: run_id(), began: None },
        TaskEvent::RunEnded { run: run_id(), end: RunEnd::Completed, why: String::new(), judged: None },
        TaskEvent::RunLeft { run: run_id() },
        TaskEvent::NotWritten("the disk is full".into()),
        TaskEvent::Signalled { session: S3, signal: SessionSignal::Quiet { seconds: 300 } },
        TaskEvent::AttentionSet(raised(TaskAttention::PoolFull)),
        TaskEvent::AttentionCleared,
    ]
}

fn changes() -> Vec<(String, SessionChange)> {
    let samples = vec![
        SessionChange::Asked(WORKER),
        SessionChange::Asked(SessionAgent { id: S3, role: SessionRole::Reviewer }),
        SessionChange::Started,
        SessionChange::NotStarted("no tmux".into()),
        SessionChange::EndAsked,
        SessionChange::Ended,
        SessionChange::NotEnded,
        SessionChange::Exited(SessionExit::Code(1)),
        SessionChange::Exited(SessionExit::Signal(9)),
        SessionChange::Exited(SessionExit::Lost),
        SessionChange::Exited(SessionExit::Uprooted),
    ];
    named(CHANGES, change, samples)
}

pub(super) fn events() -> StoredFamily {
    let mut samples = named(EVENTS, event, plain_events());
    let mut add = |name: String, event: TaskEvent| samples.push((name, event));
    for (name, by) in askers() {
        add(format!("moved.by_{name}"), moved(by, None));
    }
    for (name, judged) in judgements() {
        add(format!("moved.{name}"), moved(TaskAsker::Engine, judged));
    }
    let escalated = TaskMove {
        turn: 2,
        from: StateId(1),
        to: StateId(5),
        edge: None,
        by: TaskAsker::Engine,
        at: AT,
        seen: BTreeMap::new(),
        judged: None,
        unchecked: None,
        handed: None,
        said: false,
    };
    for (name, check) in checks() {
        let passed_by = TaskMove { unchecked: Some(check), ..escalated.clone() };
        add(format!("moved.unchecked_{name}"), TaskEvent::Moved(passed_by));
    }
    let unsaid = RefusedVerdict { verdict: Verdict::Pass, found: None };
    add("verdict_refused.without_one_in_the_file".into(), TaskEvent::VerdictRefused { session: S3, asked: unsaid });
    for (name, creation) in creations() {
        add(format!("created.{name}"), TaskEvent::Created(creation));
    }
    let to_a_reviewer = TaskMove { handed: Some(stood()), ..escalated.clone() };
    let planted = BTreeMap::from([(
        "Review".to_owned(),
        SectionSnapshot { digest: SectionDigest([0xcd; 32]), is_planted: true },
    )]);
    add("moved.with_a_verdict_planted".into(), TaskEvent::Moved(TaskMove { seen: planted, ..escalated.clone() }));
    add("moved.with_an_answer".into(), TaskEvent::Moved(TaskMove { said: true, ..escalated.clone() }));
    add("moved.to_a_reviewer_beside".into(), TaskEvent::Moved(to_a_reviewer));
    add("moved.along_no_edge".into(), TaskEvent::Moved(escalated));
    add("moved.judged_a_commit".into(), moved(TaskAsker::Person, Some(judged_a_commit())));
    let commit = Some(CommitId("9f2c1d7".into()));
    add("merged.by_force".into(), TaskEvent::Merged { commit, forced: true });
    add("began.by_its_prompt".into(), TaskEvent::Began { turn: 1, edge: None });
    for (name, place) in places() {
        add(format!("respawning.{name}"), TaskEvent::Respawning { turn: 3, place, by: TaskAsker::Person });
        add(format!("session.{name}"), changed(place, SessionChange::Started));
    }
    for (name, update) in named(
        UPDATES,
        update,
        vec![
            TaskUpdate::Summary("Fix that".into()),
            TaskUpdate::Branch("other".into()),
            TaskUpdate::PullRequest("https://p".into()),
        ],
    ) {
        add(format!("updated.{name}"), TaskEvent::Updated(update));
    }
    for (name, value) in named(VALUES, value, vec![FieldValue::Number(3), FieldValue::Text("x".into())]) {
        add(format!("field_set.{name}"), TaskEvent::FieldSet { field: FieldName::new("size"), value });
    }
    for (name, change) in changes() {
        add(format!("session.{name}"), changed(TaskSessionPlace::Main, change));
    }
    let settlements =
        vec![Settlement::Done, Settlement::Idle, Settlement::Skipped("no".into()), Settlement::Failed("no".into())];
    for (name, settlement) in named(SETTLEMENTS, settlement, settlements) {
        add(format!("hook_settled.{name}"), settled(settlement));
    }
    for (name, attention) in attentions() {
        add(format!("attention_set.{name}"), TaskEvent::AttentionSet(raised(attention)));
    }
    add("attention_set.numbered".into(), TaskEvent::AttentionSet(numbered()));
    add("attention_set.in_front".into(), TaskEvent::AttentionSet(in_front()));
    for (name, signal) in signals() {
        add(format!("signalled.{name}"), TaskEvent::Signalled { session: S3, signal });
    }
    for (name, end) in run_ends() {
        let ended = |judged| TaskEvent::RunEnded { run: run_id(), end, why: "why".into(), judged };
        add(format!("run_ended.{name}"), ended(None));
        add(format!("run_ended.{name}_judged"), ended(Some(stood())));
    }
    add("run_started.judging".into(), TaskEvent::RunStarted { turn: 2, run: run_id(), began: Some(stood()) });
    for action in TaskAction::ALL {
        add(format!("hook_asked.{action}"), TaskEvent::HookAsked { turn: 2, step: 1, action: *action });
    }
    let write = |it: &TaskEvent| json(&task_event::write(it));
    StoredFamily::new("task_event.v1", &samples, write, move |form| {
        Ok(write(&task_event::read(1, form.to_string().as_bytes())?))
    })
}

fn start(role: SessionRole) -> Instruction {
    let beside = role == SessionRole::Reviewer;
    Instruction::StartSession(StartSession {
        session: S3,
        place: if beside { TaskSessionPlace::Beside } else { TaskSessionPlace::Main },
        role,
        window: "review-1".into(),
        prompt: "# Review".into(),
        harness: if beside { HarnessChoice::Review } else { HarnessChoice::Task },
        permissions: if beside { AgentPermissions::Reduced } else { AgentPermissions::Full },
        workspace: workspace_name(),
    })
}

fn start_run(workspace: Option<WorktreePath>) -> Instruction {
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
        start(SessionRole::Worker),
        start(SessionRole::Reviewer),
        Instruction::EndSession { sessions: vec![S3, SessionNumber(4)], whole: true },
        tell(Occasion::ReviewFailed),
        tell(Occasion::ReviewPassed),
        tell(Occasion::ChangesRequested),
        tell(Occasion::Answered),
        Instruction::RunCommand {
            workspace: workspace_name(),
            script: "make \"$V\"".into(),
            environment: vec![("V".into(), "all".into())],
        },
        start_run(Some(workspace_name())),
        start_run(None),
        Instruction::CancelRun { run: run_id() },
        Instruction::WriteArtifact { frontmatter: frontmatter(), feedback: None },
        Instruction::WriteArtifact { frontmatter: frontmatter(), feedback: Some("smaller".into()) },
    ]
}

pub(super) fn effects() -> StoredFamily {
    let key = |instruction: &Instruction| match instruction {
        Instruction::WriteArtifact { .. } => EffectKey::Write { events: 41 },
        _ => EffectKey::Job { turn: 2, step: 1, action: PUSH },
    };
    let other: Vec<&str> = INSTRUCTIONS.iter().copied().filter(|name| *name != "plain").collect();
    // Every plain action has a sample by itself: the table has its name and its keys.
    let plain = PlainAction::ALL
        .iter()
        .map(|action| (action.word().to_owned(), Instruction::Plain(action.effect(|_| "ready".to_owned()))));
    let instructions = named(&other, instruction, instructions()).into_iter().chain(plain);
    let mut samples: Vec<(String, TaskEffect)> =
        instructions.map(|(name, instruction)| (name, TaskEffect { key: key(&instruction), instruction })).collect();
    for action in TaskAction::ALL {
        let key = EffectKey::Job { turn: 7, step: 2, action: *action };
        samples.push((
            format!("key.{action}"),
            TaskEffect { key, instruction: Instruction::Plain(PlainEffect::SpawnNext {}) },
        ));
    }
    let write = |it: &TaskEffect| {
        let data = json(&task_effect::write(&it.instruction));
        serde_json::json!({ "id": it.key.to_string(), "kind": it.instruction.kind(), "data": data })
    };
    StoredFamily::new("task_effect.v1", &samples, write, move |form| {
        Ok(write(&task_effect::read(form["id"].as_str().unwrap(), form["data"].to_string().as_bytes())?))
    })
}
