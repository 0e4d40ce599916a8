//! Samples of what is stored of runs.

use std::collections::BTreeMap;

use sluice_core::lifecycle::AgentPermissions;
use sluice_core::machine::Moment;
use sluice_core::name::Role;
use sluice_core::recipe::{Data, FailureKind, StepId, StepWorkspace};
use sluice_core::run::effect::RunScript;
use sluice_core::run::state::{AgentQuestion, AttemptProgress, ItemState, ItemStatus, QuestionAnswer, RunTurn};
use sluice_core::run::{
    AgentUsage, Answerer, AttemptPart, AttemptReport, Perform, QuestionKind, RunConclusion, RunEffect, RunEvent,
    RunJob, RunMode, RunOrigin, RunParameters, RunPlan, RunQuestion, RunState, SkipReason, StepFailure, StepOutcome,
    StepState, StepStatus, TimerKey,
};
use sluice_core::task::state::{CommitId, TreeId, WorkSnapshot};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, DefinitionFile, Sources, load};
use sluice_engine::codec::{run_effect, run_event, run_state, task_effect, task_state};

use super::{StoredFamily, forms, json, named};

forms! {
    EVENTS, event(RunEvent) {
        RunEvent::Started { .. } => "started",
        RunEvent::StepReady(_) => "step_ready",
        RunEvent::StepStarted { items: None, .. } => "step_started",
        RunEvent::StepStarted { items: Some(_), .. } => "step_started_with_items",
        RunEvent::PartStarted { .. } => "part_started",
        RunEvent::PartEnded { result: Ok(_), .. } => "part_ended",
        RunEvent::PartEnded { result: Err(_), .. } => "part_ended_with_error",
        RunEvent::PartLost { until: None, .. } => "part_lost",
        RunEvent::PartLost { until: Some(_), .. } => "part_lost_until",
        RunEvent::AttemptFailed { .. } => "attempt_failed",
        RunEvent::StepCompleted { .. } => "step_completed",
        RunEvent::StepFailed { .. } => "step_failed",
        RunEvent::StepRetried { .. } => "step_retried",
        RunEvent::StepSkipped { .. } => "step_skipped",
        RunEvent::StepHeld { .. } => "step_held",
        RunEvent::Answered { by: Answerer::Person, message: None, .. } => "answered",
        RunEvent::Answered { by: Answerer::Person, message: Some(_), .. } => "answered_with_message",
        RunEvent::Answered { by: Answerer::Deadline, .. } => "answered_by_deadline",
        RunEvent::Asked { .. } => "asked",
        RunEvent::Withdrawn { .. } => "withdrawn",
        RunEvent::Blocked { .. } => "blocked",
        RunEvent::Said { report: AttemptReport::Completed(_), .. } => "said_completed",
        RunEvent::Said { report: AttemptReport::Failed { .. }, .. } => "said_failed",
        RunEvent::StepStopping { .. } => "step_stopping",
        RunEvent::LoopedBack { .. } => "looped_back",
        RunEvent::Reopened { guidance: None, .. } => "reopened",
        RunEvent::Reopened { guidance: Some(_), .. } => "reopened_with_guidance",
        RunEvent::Ending { .. } => "ending",
        RunEvent::StepCancelled { .. } => "step_cancelled",
        RunEvent::Ended { .. } => "ended",
    }
    FAILURES, failure(StepFailure) {
        StepFailure::Attempt { kind: FailureKind::Failed, .. } => "attempt_failed",
        StepFailure::Attempt { kind: FailureKind::Timeout, .. } => "attempt_timeout",
        StepFailure::Attempt { kind: FailureKind::Crashed, .. } => "attempt_crashed",
        StepFailure::Attempt { kind: FailureKind::Lost, .. } => "attempt_lost",
        StepFailure::Upstream(_) => "upstream",
        StepFailure::Undefined(_) => "undefined",
        StepFailure::LoopExhausted => "loop_exhausted",
        StepFailure::Aborted => "aborted",
    }
    SKIPS, skip(SkipReason) {
        SkipReason::Condition => "condition",
        SkipReason::Join => "join",
        SkipReason::Person => "person",
    }
    QUESTIONS, question(RunQuestion) {
        RunQuestion { kind: QuestionKind::Gate, .. } => "gate",
        RunQuestion { kind: QuestionKind::MaxIterations, .. } => "max_iterations",
        RunQuestion { kind: QuestionKind::PartialFailure, .. } => "partial_failure",
        RunQuestion { kind: QuestionKind::LoopExhausted, .. } => "loop_exhausted",
        RunQuestion { kind: QuestionKind::Clarification, .. } => "clarification",
        RunQuestion { kind: QuestionKind::Undecided, .. } => "undecided",
    }
    ENDS, end(RunConclusion) {
        RunConclusion::Completed { .. } => "completed",
        RunConclusion::Failed { .. } => "failed",
        RunConclusion::Cancelled { .. } => "cancelled",
    }
    PARTS, part(AttemptPart) {
        AttemptPart::Whole => "whole",
        AttemptPart::Item(_) => "item",
        AttemptPart::Turn(_) => "turn",
        AttemptPart::Arbiter(_) => "arbiter",
    }
    MODES, mode(RunMode) {
        RunMode::Engine => "engine",
        RunMode::ByHand => "by_hand",
    }
    EFFECTS, effect(RunEffect) {
        RunEffect::Perform(_) => "perform",
        RunEffect::Stop { .. } => "stop",
        RunEffect::SetTimer(..) => "set_timer",
        RunEffect::ClearTimer(_) => "clear_timer",
        RunEffect::Notify(_) => "notify",
        RunEffect::RunCommand(_) => "run_command",
        RunEffect::Start { .. } => "start",
        RunEffect::Release => "release",
        RunEffect::Repeat { .. } => "repeat",
    }
    JOBS, job(RunJob) {
        RunJob::Agent { .. } => "agent",
        RunJob::Arbiter { .. } => "arbiter",
        RunJob::Script(_) => "script",
        RunJob::Gate(_) => "gate",
        RunJob::Task { .. } => "task",
    }
    STATUSES, status(StepStatus) {
        StepStatus::Waiting => "waiting",
        StepStatus::Ready => "ready",
        StepStatus::Running(AttemptProgress::Single) => "running",
        StepStatus::Running(AttemptProgress::Turns { .. }) => "running_in_turns",
        StepStatus::Running(AttemptProgress::Items { .. }) => "running_over_items",
        StepStatus::Stopping(..) => "stopping",
        StepStatus::Retrying { progress: None, .. } => "retrying",
        StepStatus::Retrying { progress: Some(_), .. } => "retrying_from_progress",
        StepStatus::Held { progress: None, .. } => "held",
        StepStatus::Held { progress: Some(_), .. } => "held_with_progress",
        StepStatus::Completed => "completed",
        StepStatus::Failed(_) => "failed",
        StepStatus::Skipped(_) => "skipped",
        StepStatus::Cancelled => "cancelled",
    }
    ITEMS, item(ItemStatus) {
        ItemStatus::Waiting => "waiting",
        ItemStatus::Running => "running",
        ItemStatus::Completed(_) => "completed",
        ItemStatus::Failed(_) => "failed",
    }
}

fn failures() -> Vec<(String, StepFailure)> {
    let attempt = |kind| StepFailure::Attempt { kind, error: "exit 1".into() };
    let kinds = FailureKind::ALL.into_iter().map(attempt);
    let others = [
        StepFailure::Upstream(StepId(2)),
        StepFailure::Undefined("size".into()),
        StepFailure::LoopExhausted,
        StepFailure::Aborted,
    ];
    named(FAILURES, failure, kinds.chain(others).collect())
}

fn skips() -> Vec<(String, SkipReason)> {
    named(SKIPS, skip, vec![SkipReason::Condition, SkipReason::Join, SkipReason::Person])
}

fn questions() -> Vec<(String, RunQuestion)> {
    let kinds = [
        QuestionKind::Gate,
        QuestionKind::MaxIterations,
        QuestionKind::PartialFailure,
        QuestionKind::LoopExhausted,
        QuestionKind::Clarification,
        QuestionKind::Undecided,
    ];
    let samples = kinds.map(|kind| RunQuestion::new(3, kind, "tests fail"));
    named(QUESTIONS, question, samples.to_vec())
}

/// A question of an agent, with options.
fn clarification() -> RunQuestion {
    RunQuestion { choices: vec!["a".into(), "b".into()], ..RunQuestion::new(4, QuestionKind::Clarification, "which?") }
}

fn reports() -> [AttemptReport; 2] {
    let failed = AttemptReport::Failed { kind: FailureKind::Failed, error: "no tools".into(), outcome: outcome() };
    [AttemptReport::Completed(outcome()), failed]
}

/// A question that does not wait for ever.
fn urgent() -> RunQuestion {
    RunQuestion {
        default: Some("skip".into()),
        deadline: Some(AT),
        ..RunQuestion::new(3, QuestionKind::Gate, "tests fail")
    }
}

/// A question that says since when it waits.
fn dated() -> RunQuestion {
    RunQuestion { since: AT, ..RunQuestion::new(3, QuestionKind::Gate, "tests fail") }
}

fn answer(message: Option<&str>, by: Answerer) -> RunEvent {
    RunEvent::Answered { step: STEP, question: 3, option: "retry".into(), message: message.map(str::to_owned), by }
}

fn ends() -> Vec<(String, RunConclusion)> {
    let samples = vec![
        RunConclusion::Completed { summary: "all good".into() },
        RunConclusion::Failed { error: "step b failed".into() },
        RunConclusion::Cancelled { reason: "not needed".into() },
    ];
    named(ENDS, end, samples)
}

fn parts() -> Vec<(String, AttemptPart)> {
    named(PARTS, part, vec![AttemptPart::Whole, AttemptPart::Item(7), AttemptPart::Turn(2), AttemptPart::Arbiter(2)])
}

fn outcome() -> StepOutcome {
    let table = vec![
        ("none".to_owned(), Data::Null),
        ("yes".to_owned(), Data::Bool(true)),
        ("number".to_owned(), Data::Number("12".into())),
        ("fraction".to_owned(), Data::Number("1.5".into())),
        ("text".to_owned(), Data::Text("ä \" \n".into())),
        ("list".to_owned(), Data::List(vec![Data::Text("x".into())])),
    ];
    StepOutcome {
        summary: "done".into(),
        result: Some("PASS".into()),
        output: Data::Table(table.into_iter().collect()),
        exit_code: Some(1),
        stderr: Some("warning".into()),
        commit: None,
        usage: None,
    }
}

fn given(mode: RunMode) -> RunParameters {
    RunParameters {
        id: "run-1".parse().unwrap(),
        mode,
        inputs: vec![("size".into(), Data::Number("3".into())), ("name".into(), Data::Text("x".into()))],
        prompt: "Do it".into(),
        workspace: "/work".into(),
        scratch: String::new(),
        work_order: "order".into(),
        origin: RunOrigin::default(),
    }
}

fn script() -> RunScript {
    RunScript { script: "make \"$V\"".into(), environment: vec![("V".into(), "all".into())] }
}

const STEP: StepId = StepId(4);
const AT: Moment = Moment(1_700_000_000_000);

fn plain_events() -> Vec<RunEvent> {
    vec![
        RunEvent::Started { given: Box::new(given(RunMode::Engine)), at: AT },
        RunEvent::StepReady(STEP),
        RunEvent::StepStarted { step: STEP, attempt: 2, at: AT, items: None },
        RunEvent::StepStarted { step: STEP, attempt: 2, at: AT, items: Some(vec![Data::Text("x".into()), Data::Null]) },
        RunEvent::PartStarted { step: STEP, part: AttemptPart::Whole },
        RunEvent::PartEnded { step: STEP, part: AttemptPart::Item(1), result: Ok(outcome()) },
        RunEvent::PartEnded { step: STEP, part: AttemptPart::Item(1), result: Err("exit 1".into()) },
        RunEvent::PartLost { step: STEP, part: AttemptPart::Whole, until: None },
        RunEvent::PartLost { step: STEP, part: AttemptPart::Item(1), until: Some(AT) },
        RunEvent::AttemptFailed { step: STEP, outcome: outcome() },
        RunEvent::StepCompleted { step: STEP, outcome: outcome(), at: AT },
        RunEvent::StepFailed { step: STEP, failure: StepFailure::Aborted, at: AT },
        RunEvent::StepRetried { step: STEP, failure: StepFailure::Aborted, until: AT },
        RunEvent::StepSkipped { step: STEP, reason: SkipReason::Join, at: AT },
        RunEvent::StepHeld { step: STEP, question: questions().remove(0).1 },
        answer(None, Answerer::Person),
        answer(Some("again"), Answerer::Person),
        answer(None, Answerer::Deadline),
        RunEvent::Asked { step: STEP, part: AttemptPart::Item(1), question: clarification() },
        RunEvent::Withdrawn { step: STEP, question: 4 },
        RunEvent::Blocked { step: STEP, reason: "the check failed".into() },
        RunEvent::Said { step: STEP, part: AttemptPart::Whole, report: reports()[0].clone() },
        RunEvent::Said { step: STEP, part: AttemptPart::Whole, report: reports()[1].clone() },
        RunEvent::StepStopping { step: STEP, failure: StepFailure::Aborted },
        RunEvent::LoopedBack { from: STEP, to: StepId(1) },
        RunEvent::Reopened { step: STEP, guidance: None },
        RunEvent::Reopened { step: STEP, guidance: Some("look at b".into()) },
        RunEvent::Ending { end: RunConclusion::Cancelled { reason: "not needed".into() }, at: AT },
        RunEvent::StepCancelled { step: STEP, at: AT },
        RunEvent::Ended { end: RunConclusion::Completed { summary: String::new() }, at: AT },
    ]
}

pub(super) fn events() -> StoredFamily {
    let mut samples = named(EVENTS, event, plain_events());
    let mut add = |name: String, event: RunEvent| samples.push((name, event));
    for (name, mode) in named(MODES, mode, vec![RunMode::Engine, RunMode::ByHand]) {
        add(format!("started.{name}"), RunEvent::Started { given: Box::new(given(mode)), at: AT });
    }
    let origin = RunOrigin { task: "task-1".parse().ok(), cause: vec!["release".into()], ..RunOrigin::default() };
    let of_task = RunParameters { origin, ..given(RunMode::Engine) };
    add("started.by_a_state".into(), RunEvent::Started { given: Box::new(of_task), at: AT });
    let began = Some(WorkSnapshot {
        commit: Some(CommitId("9f2c1d7".into())),
        tree: Some(TreeId("4b825dc".into())),
        dirty: true,
    });
    let judging = RunParameters {
        origin: RunOrigin { task: "task-1".parse().ok(), began, ..RunOrigin::default() },
        ..given(RunMode::Engine)
    };
    add("started.by_a_state_that_judges".into(), RunEvent::Started { given: Box::new(judging), at: AT });
    let origin = RunOrigin { root: "/repository".into(), base: "a1b2".into(), ..RunOrigin::default() };
    let in_worktree = RunParameters { origin, ..given(RunMode::Engine) };
    add("started.in_a_worktree".into(), RunEvent::Started { given: Box::new(in_worktree), at: AT });
    let with_scratch = RunParameters { scratch: "/home/scratch/run-1".into(), ..given(RunMode::Engine) };
    add("started.with_scratch".into(), RunEvent::Started { given: Box::new(with_scratch), at: AT });
    let definition = "verify.yml in the commit a1b2 of `main`".into();
    let from_commit =
        RunParameters { origin: RunOrigin { definition, ..RunOrigin::default() }, ..given(RunMode::Engine) };
    add("started.from_a_commit".into(), RunEvent::Started { given: Box::new(from_commit), at: AT });
    for (name, failure) in failures() {
        add(format!("step_failed.{name}"), RunEvent::StepFailed { step: STEP, failure, at: AT });
    }
    for (name, reason) in skips() {
        add(format!("step_skipped.{name}"), RunEvent::StepSkipped { step: STEP, reason, at: AT });
    }
    for (name, question) in questions() {
        add(format!("step_held.{name}"), RunEvent::StepHeld { step: STEP, question });
    }
    add("step_held.urgent".into(), RunEvent::StepHeld { step: STEP, question: urgent() });
    add("step_held.dated".into(), RunEvent::StepHeld { step: STEP, question: dated() });
    for (name, end) in ends() {
        add(format!("ended.{name}"), RunEvent::Ended { end, at: AT });
    }
    for (name, part) in parts() {
        add(format!("part_started.{name}"), RunEvent::PartStarted { step: STEP, part });
    }
    let exact = ["1.50", "1e400", "123456789012345678901234567890"].map(|number| Data::Number(number.into()));
    let odd = Data::Table(vec![("$number".into(), Data::Text("7".into()))]);
    let output = Data::List(exact.into_iter().chain([odd]).collect());
    let outcome = StepOutcome { output, ..StepOutcome::default() };
    add("step_completed.exact".into(), RunEvent::StepCompleted { step: STEP, outcome, at: AT });
    let usage = AgentUsage { input: Some(9), cached: Some(3), output: Some(2), total: Some(11), cost: Some(1500) };
    let outcome = StepOutcome { usage: Some(Box::new(usage)), ..StepOutcome::default() };
    add("step_completed.used".into(), RunEvent::StepCompleted { step: STEP, outcome, at: AT });
    let outcome = StepOutcome { commit: Some("a1b2".into()), ..StepOutcome::default() };
    add("step_completed.elsewhere".into(), RunEvent::StepCompleted { step: STEP, outcome, at: AT });
    add("step_completed.bare".into(), RunEvent::StepCompleted { step: STEP, outcome: StepOutcome::default(), at: AT });
    let write = |it: &RunEvent| json(&run_event::write(it));
    StoredFamily::new("run_event.v1", &samples, write, move |form| {
        Ok(write(&run_event::read(1, form.to_string().as_bytes())?))
    })
}

fn perform(job: RunJob) -> RunEffect {
    RunEffect::Perform(Box::new(Perform {
        step: STEP,
        attempt: 2,
        part: AttemptPart::Turn(1),
        role: Role::new("planner"),
        job,
        workspace: StepWorkspace::Own,
        harness: Some("codex".into()),
        permissions: AgentPermissions::Reduced,
    }))
}

pub(super) fn effects() -> StoredFamily {
    let plain = vec![
        perform(RunJob::Agent { prompt: "Do it".into(), folder_at: Vec::new() }),
        RunEffect::Stop { step: STEP, attempt: 2, part: AttemptPart::Whole },
        RunEffect::SetTimer(TimerKey::Run, AT),
        RunEffect::ClearTimer(TimerKey::Run),
        RunEffect::Notify("done".into()),
        RunEffect::RunCommand(script()),
        RunEffect::Start { recipe: "next".into() },
        RunEffect::Release,
        RunEffect::Repeat { at: AT },
    ];
    let mut samples = named(EFFECTS, effect, plain);
    // Timers are stored as such, and not as effects.
    samples.retain(|(_, effect)| run_effect::write(effect).is_some());
    let text = |text: &str| Some(text.to_owned());
    let jobs = vec![
        RunJob::Agent { prompt: "Do it".into(), folder_at: Vec::new() },
        RunJob::Arbiter { prompt: "Judge it".into(), folder_at: Vec::new() },
        RunJob::Script(script()),
        RunJob::Gate(script()),
        RunJob::Task {
            summary: "Fix it".into(),
            branch: text("fix"),
            workflow: None,
            project: text("coffee"),
            context: text("see b"),
        },
    ];
    samples.extend(named(JOBS, job, jobs).into_iter().map(|(name, job)| (format!("perform.{name}"), perform(job))));
    let elsewhere = || ("Look into burrows/mission-m/".to_owned(), vec![10]);
    let (prompt, folder_at) = elsewhere();
    samples.push(("perform.agent.elsewhere".into(), perform(RunJob::Agent { prompt, folder_at })));
    let (prompt, folder_at) = elsewhere();
    samples.push(("perform.arbiter.elsewhere".into(), perform(RunJob::Arbiter { prompt, folder_at })));
    samples.push((
        "perform.plain".into(),
        RunEffect::Perform(Box::new(Perform {
            step: STEP,
            attempt: 1,
            part: AttemptPart::Whole,
            role: Role::new("any"),
            job: RunJob::Script(script()),
            workspace: StepWorkspace::Run,
            harness: None,
            permissions: AgentPermissions::Full,
        })),
    ));
    for (name, workspace) in [("perform.in_scratch", StepWorkspace::Scratch), ("perform.here", StepWorkspace::Here)] {
        let RunEffect::Perform(plain) = perform(RunJob::Script(script())) else { panic!("it performs") };
        samples.push((name.into(), RunEffect::Perform(Box::new(Perform { workspace, ..*plain }))));
    }
    let write = |it: &RunEffect| json(&run_effect::write(it).unwrap());
    StoredFamily::new("run_effect.v1", &samples, write, move |form| {
        Ok(write(&run_effect::read(form.to_string().as_bytes())?))
    })
}

fn plan() -> RunPlan {
    let text = "name: one\nsteps:\n  - {name: a, type: script, command: 'true'}\n";
    match load(&DefinitionFile { path: "one.yml", bytes: text.as_bytes() }, &mut NoPrompts, &mut Sources::default())
        .definition
    {
        Some(Definition::Recipe(recipe)) => RunPlan::new(recipe),
        _ => panic!("not a recipe"),
    }
}

/// A run of one step with one item.
fn run(end: Option<RunConclusion>, step: StepState, item: ItemStatus) -> RunState {
    let item = ItemState { status: item, ..ItemState::new(Data::Text("x".into())) };
    let items = BTreeMap::from([((StepId(0), 0), item)]);
    RunState::restore(&plan(), given(RunMode::Engine), AT, end, vec![step], items, 3)
}

fn step(status: StepStatus) -> StepState {
    StepState {
        status,
        round: 1,
        attempts: 2,
        since: 2,
        failures: 3,
        losses: 4,
        turns: 5,
        granted: 6,
        latest: Some(outcome()),
        left: None,
        guidance: vec!["look at b".into()],
        asks: 0,
        asked: Vec::new(),
        said: Vec::new(),
        began: Some(AT),
        ended: Some(AT),
    }
}

/// A step whose agents have asked and said something.
fn speaking() -> StepState {
    let [completed, failed] = reports();
    let answer = |by| Some(QuestionAnswer { option: "a".into(), message: Some("for now".into()), by });
    let asked = |part, answer| AgentQuestion { part, question: clarification(), answer };
    StepState {
        asks: 7,
        asked: vec![
            asked(AttemptPart::Item(0), None),
            asked(AttemptPart::Item(1), answer(Answerer::Person)),
            asked(AttemptPart::Item(1), answer(Answerer::Deadline)),
        ],
        said: vec![(AttemptPart::Item(0), completed), (AttemptPart::Item(1), failed)],
        ..step(StepStatus::Running(AttemptProgress::Single))
    }
}

fn statuses() -> Vec<StepStatus> {
    let turns = || AttemptProgress::Turns {
        turn: 2,
        limit: 5,
        said: vec![
            RunTurn { work: outcome(), verdict: Some(outcome()) },
            RunTurn { work: StepOutcome::default(), verdict: None },
        ],
    };
    let items = || AttemptProgress::Items { total: 9, next: 4, running: 2, failed: 1 };
    let question = || questions().remove(0).1;
    let failure = || StepFailure::Attempt { kind: FailureKind::Timeout, error: "too long".into() };
    vec![
        StepStatus::Waiting,
        StepStatus::Ready,
        StepStatus::Running(AttemptProgress::Single),
        StepStatus::Running(turns()),
        StepStatus::Running(items()),
        StepStatus::Stopping(items(), failure()),
        StepStatus::Retrying { failure: failure(), until: AT, progress: None },
        StepStatus::Retrying { failure: failure(), until: AT, progress: Some(turns()) },
        StepStatus::Held { question: question(), progress: None },
        StepStatus::Held { question: question(), progress: Some(items()) },
        StepStatus::Completed,
        StepStatus::Failed(StepFailure::Upstream(StepId(1))),
        StepStatus::Skipped(SkipReason::Join),
        StepStatus::Cancelled,
    ]
}

pub(super) fn states() -> StoredFamily {
    let ended = |end| run(end, step(StepStatus::Completed), ItemStatus::Waiting);
    let mut samples = vec![
        ("header".to_owned(), ended(None)),
        ("step.bare".to_owned(), run(None, StepState::default(), ItemStatus::Waiting)),
    ];
    samples.extend(ends().into_iter().map(|(name, end)| (format!("header.{name}"), ended(Some(end)))));
    let mut ending = run(None, step(StepStatus::Ready), ItemStatus::Waiting);
    ending.ending = Some(RunConclusion::Cancelled { reason: "not needed".into() });
    samples.push(("header.ending".to_owned(), ending));
    let mut at_work = run(None, step(StepStatus::Ready), ItemStatus::Waiting);
    at_work.work = Some("9f2c1d7".into());
    samples.push(("header.at_a_commit".to_owned(), at_work));
    let mut outside = run(None, step(StepStatus::Ready), ItemStatus::Waiting);
    outside.given.scratch = "/home/scratch/run-1".into();
    samples.push(("given.with_scratch".to_owned(), outside));
    let left = StepState { since: 1, left: Some(outcome()), ..step(StepStatus::Failed(StepFailure::Aborted)) };
    samples.push(("step.left".to_owned(), run(None, left, ItemStatus::Waiting)));
    let mut lost = run(None, step(StepStatus::Ready), ItemStatus::Waiting);
    for item in lost.items.values_mut() {
        *item = ItemState { attempt: 3, losses: 2, due: Some(AT), ..item.clone() };
    }
    samples.push(("item.lost".to_owned(), lost));
    samples.push(("step.speaking".to_owned(), run(None, speaking(), ItemStatus::Waiting)));
    let urgent = StepStatus::Held { question: urgent(), progress: None };
    samples.push(("step.held.urgent".to_owned(), run(None, step(urgent), ItemStatus::Waiting)));
    let dated = StepStatus::Held { question: dated(), progress: None };
    samples.push(("step.held.dated".to_owned(), run(None, step(dated), ItemStatus::Waiting)));
    for (name, status) in named(STATUSES, status, statuses()) {
        samples.push((format!("step.{name}"), run(None, step(status), ItemStatus::Waiting)));
    }
    let items = vec![
        ItemStatus::Waiting,
        ItemStatus::Running,
        ItemStatus::Completed(outcome()),
        ItemStatus::Failed("exit 1".into()),
    ];
    for (name, status) in named(ITEMS, item, items) {
        samples.push((format!("item.{name}"), run(None, step(StepStatus::Ready), status)));
    }
    let write = |it: &RunState| {
        serde_json::json!({
            "header": json(&run_state::write_header(it, "d1")),
            "given": json(&run_state::write_given(&it.given)),
            "step": json(&run_state::write_step(&it.steps[0])),
            "item": json(&run_state::write_item(&it.items[&(StepId(0), 0)])),
        })
    };
    StoredFamily::new("run_state.v1", &samples, write, move |form| {
        let bytes = |name: &str| form[name].to_string().into_bytes();
        let rows = [
            (run_state::GIVEN, bytes("given")),
            (run_state::step_key(StepId(0)), bytes("step")),
            (run_state::item_key(StepId(0), 0), bytes("item")),
        ];
        assert_eq!(run_state::definition_of(&bytes("header"))?, "d1");
        Ok(write(&run_state::read(&plan(), &bytes("header"), &rows)?))
    })
}

#[test]
fn what_a_later_program_wrote_is_refused_with_both_versions() {
    let said = |error: sluice_engine::codec::UnreadableData| error.0;
    let later = br#"{"version":2,"something":"else"}"#;
    let known = "this program knows up to 1";
    assert_eq!(said(run_effect::read(later).unwrap_err()), format!("an effect of version 2; {known}"));
    assert_eq!(said(run_state::definition_of(later).unwrap_err()), format!("a run of version 2; {known}"));
    assert_eq!(said(run_state::read(&plan(), later, &[]).unwrap_err()), format!("a run of version 2; {known}"));
    assert_eq!(said(run_event::read(2, b"{}").unwrap_err()), format!("an event of version 2; {known}"));
    assert_eq!(said(task_state::definition_of(later).unwrap_err()), format!("a task of version 2; {known}"));
    assert_eq!(said(task_effect::read("write-1", later).unwrap_err()), format!("an effect of version 2; {known}"));
}
