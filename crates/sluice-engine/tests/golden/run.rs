//! Samples of what is stored of runs.

use std::collections::BTreeMap;

use sluice_core::lifecycle::Permissions;
use sluice_core::machine::Moment;
use sluice_core::name::Role;
use sluice_core::recipe::{Data, FailureKind, StepId};
use sluice_core::run::effect::Script;
use sluice_core::run::state::{Answer, Asked, ItemState, ItemStatus, Progress, Turn};
use sluice_core::run::{
    Answerer, Effect, End, Event, Failure, Given, Job, Mode, Origin, Outcome, Part, Perform, Plan, Question,
    QuestionKind, Report, RunState, SkipReason, StepState, StepStatus, TimerKey, Usage,
};
use sluice_core::task::state::{Commit, Stood, Tree};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, Source, Sources, load};
use sluice_engine::codec::{run_effect, run_event, run_state, task_effect, task_state};

use super::{compare, forms, json, named};

forms! {
    EVENTS, event(Event) {
        Event::Started { .. } => "started",
        Event::StepReady(_) => "step_ready",
        Event::StepStarted { items: None, .. } => "step_started",
        Event::StepStarted { items: Some(_), .. } => "step_started_with_items",
        Event::PartStarted { .. } => "part_started",
        Event::PartEnded { result: Ok(_), .. } => "part_ended",
        Event::PartEnded { result: Err(_), .. } => "part_ended_with_error",
        Event::PartLost { until: None, .. } => "part_lost",
        Event::PartLost { until: Some(_), .. } => "part_lost_until",
        Event::AttemptFailed { .. } => "attempt_failed",
        Event::StepCompleted { .. } => "step_completed",
        Event::StepFailed { .. } => "step_failed",
        Event::StepRetried { .. } => "step_retried",
        Event::StepSkipped { .. } => "step_skipped",
        Event::StepHeld { .. } => "step_held",
        Event::Answered { by: Answerer::Person, message: None, .. } => "answered",
        Event::Answered { by: Answerer::Person, message: Some(_), .. } => "answered_with_message",
        Event::Answered { by: Answerer::Deadline, .. } => "answered_by_deadline",
        Event::Asked { .. } => "asked",
        Event::Withdrawn { .. } => "withdrawn",
        Event::Blocked { .. } => "blocked",
        Event::Said { report: Report::Completed(_), .. } => "said_completed",
        Event::Said { report: Report::Failed { .. }, .. } => "said_failed",
        Event::StepStopping { .. } => "step_stopping",
        Event::LoopedBack { .. } => "looped_back",
        Event::Reopened { guidance: None, .. } => "reopened",
        Event::Reopened { guidance: Some(_), .. } => "reopened_with_guidance",
        Event::Ending { .. } => "ending",
        Event::StepCancelled { .. } => "step_cancelled",
        Event::Ended { .. } => "ended",
    }
    FAILURES, failure(Failure) {
        Failure::Attempt { kind: FailureKind::Failed, .. } => "attempt_failed",
        Failure::Attempt { kind: FailureKind::Timeout, .. } => "attempt_timeout",
        Failure::Attempt { kind: FailureKind::Crashed, .. } => "attempt_crashed",
        Failure::Attempt { kind: FailureKind::Lost, .. } => "attempt_lost",
        Failure::Upstream(_) => "upstream",
        Failure::Undefined(_) => "undefined",
        Failure::LoopExhausted => "loop_exhausted",
        Failure::Aborted => "aborted",
    }
    SKIPS, skip(SkipReason) {
        SkipReason::Condition => "condition",
        SkipReason::Join => "join",
        SkipReason::Person => "person",
    }
    QUESTIONS, question(Question) {
        Question { kind: QuestionKind::Gate, .. } => "gate",
        Question { kind: QuestionKind::MaxIterations, .. } => "max_iterations",
        Question { kind: QuestionKind::PartialFailure, .. } => "partial_failure",
        Question { kind: QuestionKind::LoopExhausted, .. } => "loop_exhausted",
        Question { kind: QuestionKind::Clarification, .. } => "clarification",
        Question { kind: QuestionKind::Undecided, .. } => "undecided",
    }
    ENDS, end(End) {
        End::Completed { .. } => "completed",
        End::Failed { .. } => "failed",
        End::Cancelled { .. } => "cancelled",
    }
    PARTS, part(Part) {
        Part::Whole => "whole",
        Part::Item(_) => "item",
        Part::Turn(_) => "turn",
        Part::Arbiter(_) => "arbiter",
    }
    MODES, mode(Mode) {
        Mode::Engine => "engine",
        Mode::ByHand => "by_hand",
    }
    EFFECTS, effect(Effect) {
        Effect::Perform(_) => "perform",
        Effect::Stop { .. } => "stop",
        Effect::SetTimer(..) => "set_timer",
        Effect::ClearTimer(_) => "clear_timer",
        Effect::Notify(_) => "notify",
        Effect::RunCommand(_) => "run_command",
        Effect::Start { .. } => "start",
        Effect::Repeat { .. } => "repeat",
    }
    JOBS, job(Job) {
        Job::Agent { .. } => "agent",
        Job::Arbiter { .. } => "arbiter",
        Job::Script(_) => "script",
        Job::Gate(_) => "gate",
        Job::Task { .. } => "task",
    }
    STATUSES, status(StepStatus) {
        StepStatus::Waiting => "waiting",
        StepStatus::Ready => "ready",
        StepStatus::Running(Progress::Single) => "running",
        StepStatus::Running(Progress::Turns { .. }) => "running_in_turns",
        StepStatus::Running(Progress::Items { .. }) => "running_over_items",
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

fn failures() -> Vec<(String, Failure)> {
    let attempt = |kind| Failure::Attempt { kind, error: "exit 1".into() };
    let kinds = FailureKind::ALL.into_iter().map(attempt);
    let others =
        [Failure::Upstream(StepId(2)), Failure::Undefined("size".into()), Failure::LoopExhausted, Failure::Aborted];
    named(FAILURES, failure, kinds.chain(others).collect())
}

fn skips() -> Vec<(String, SkipReason)> {
    named(SKIPS, skip, vec![SkipReason::Condition, SkipReason::Join, SkipReason::Person])
}

fn questions() -> Vec<(String, Question)> {
    let kinds = [
        QuestionKind::Gate,
        QuestionKind::MaxIterations,
        QuestionKind::PartialFailure,
        QuestionKind::LoopExhausted,
        QuestionKind::Clarification,
        QuestionKind::Undecided,
    ];
    let samples = kinds.map(|kind| Question::new(3, kind, "tests fail"));
    named(QUESTIONS, question, samples.to_vec())
}

/// A question of an agent, with options.
fn clarification() -> Question {
    Question { choices: vec!["a".into(), "b".into()], ..Question::new(4, QuestionKind::Clarification, "which?") }
}

fn reports() -> [Report; 2] {
    let failed = Report::Failed { kind: FailureKind::Failed, error: "no tools".into(), outcome: outcome() };
    [Report::Completed(outcome()), failed]
}

/// A question that does not wait for ever.
fn urgent() -> Question {
    Question { default: Some("skip".into()), deadline: Some(AT), ..Question::new(3, QuestionKind::Gate, "tests fail") }
}

fn answer(message: Option<&str>, by: Answerer) -> Event {
    Event::Answered { step: STEP, question: 3, option: "retry".into(), message: message.map(str::to_owned), by }
}

fn ends() -> Vec<(String, End)> {
    let samples = vec![
        End::Completed { summary: "all good".into() },
        End::Failed { error: "step b failed".into() },
        End::Cancelled { reason: "not needed".into() },
    ];
    named(ENDS, end, samples)
}

fn parts() -> Vec<(String, Part)> {
    named(PARTS, part, vec![Part::Whole, Part::Item(7), Part::Turn(2), Part::Arbiter(2)])
}

fn outcome() -> Outcome {
    let table = vec![
        ("none".to_owned(), Data::Null),
        ("yes".to_owned(), Data::Bool(true)),
        ("number".to_owned(), Data::Number("12".into())),
        ("fraction".to_owned(), Data::Number("1.5".into())),
        ("text".to_owned(), Data::Text("ä \" \n".into())),
        ("list".to_owned(), Data::List(vec![Data::Text("x".into())])),
    ];
    Outcome {
        summary: "done".into(),
        result: Some("PASS".into()),
        output: Data::Table(table.into_iter().collect()),
        exit_code: Some(1),
        stderr: Some("warning".into()),
        commit: None,
        usage: None,
    }
}

fn given(mode: Mode) -> Given {
    Given {
        id: "run-1".into(),
        mode,
        inputs: vec![("size".into(), Data::Number("3".into())), ("name".into(), Data::Text("x".into()))],
        prompt: "Do it".into(),
        workspace: "/work".into(),
        work_order: "order".into(),
        origin: Origin::default(),
    }
}

fn script() -> Script {
    Script { script: "make \"$V\"".into(), environment: vec![("V".into(), "all".into())] }
}

const STEP: StepId = StepId(4);
const AT: Moment = Moment(1_700_000_000_000);

fn plain_events() -> Vec<Event> {
    vec![
        Event::Started { given: Box::new(given(Mode::Engine)), at: AT },
        Event::StepReady(STEP),
        Event::StepStarted { step: STEP, attempt: 2, at: AT, items: None },
        Event::StepStarted { step: STEP, attempt: 2, at: AT, items: Some(vec![Data::Text("x".into()), Data::Null]) },
        Event::PartStarted { step: STEP, part: Part::Whole },
        Event::PartEnded { step: STEP, part: Part::Item(1), result: Ok(outcome()) },
        Event::PartEnded { step: STEP, part: Part::Item(1), result: Err("exit 1".into()) },
        Event::PartLost { step: STEP, part: Part::Whole, until: None },
        Event::PartLost { step: STEP, part: Part::Item(1), until: Some(AT) },
        Event::AttemptFailed { step: STEP, outcome: outcome() },
        Event::StepCompleted { step: STEP, outcome: outcome(), at: AT },
        Event::StepFailed { step: STEP, failure: Failure::Aborted, at: AT },
        Event::StepRetried { step: STEP, failure: Failure::Aborted, until: AT },
        Event::StepSkipped { step: STEP, reason: SkipReason::Join, at: AT },
        Event::StepHeld { step: STEP, question: questions().remove(0).1 },
        answer(None, Answerer::Person),
        answer(Some("again"), Answerer::Person),
        answer(None, Answerer::Deadline),
        Event::Asked { step: STEP, part: Part::Item(1), question: clarification() },
        Event::Withdrawn { step: STEP, question: 4 },
        Event::Blocked { step: STEP, reason: "the check failed".into() },
        Event::Said { step: STEP, part: Part::Whole, report: reports()[0].clone() },
        Event::Said { step: STEP, part: Part::Whole, report: reports()[1].clone() },
        Event::StepStopping { step: STEP, failure: Failure::Aborted },
        Event::LoopedBack { from: STEP, to: StepId(1) },
        Event::Reopened { step: STEP, guidance: None },
        Event::Reopened { step: STEP, guidance: Some("look at b".into()) },
        Event::Ending { end: End::Cancelled { reason: "not needed".into() }, at: AT },
        Event::StepCancelled { step: STEP, at: AT },
        Event::Ended { end: End::Completed { summary: String::new() }, at: AT },
    ]
}

#[test]
fn events() {
    let mut samples = named(EVENTS, event, plain_events());
    let mut add = |name: String, event: Event| samples.push((name, event));
    for (name, mode) in named(MODES, mode, vec![Mode::Engine, Mode::ByHand]) {
        add(format!("started.{name}"), Event::Started { given: Box::new(given(mode)), at: AT });
    }
    let origin = Origin { task: "task-1".into(), cause: vec!["release".into()], ..Origin::default() };
    let of_task = Given { origin, ..given(Mode::Engine) };
    add("started.by_a_state".into(), Event::Started { given: Box::new(of_task), at: AT });
    let began = Some(Stood { commit: Some(Commit("9f2c1d7".into())), tree: Some(Tree("4b825dc".into())), dirty: true });
    let judging = Given { origin: Origin { task: "task-1".into(), began, ..Origin::default() }, ..given(Mode::Engine) };
    add("started.by_a_state_that_judges".into(), Event::Started { given: Box::new(judging), at: AT });
    let origin = Origin { root: "/repository".into(), base: "a1b2".into(), ..Origin::default() };
    let in_worktree = Given { origin, ..given(Mode::Engine) };
    add("started.in_a_worktree".into(), Event::Started { given: Box::new(in_worktree), at: AT });
    let definition = "verify.yml in the commit a1b2 of `main`".into();
    let from_commit = Given { origin: Origin { definition, ..Origin::default() }, ..given(Mode::Engine) };
    add("started.from_a_commit".into(), Event::Started { given: Box::new(from_commit), at: AT });
    for (name, failure) in failures() {
        add(format!("step_failed.{name}"), Event::StepFailed { step: STEP, failure, at: AT });
    }
    for (name, reason) in skips() {
        add(format!("step_skipped.{name}"), Event::StepSkipped { step: STEP, reason, at: AT });
    }
    for (name, question) in questions() {
        add(format!("step_held.{name}"), Event::StepHeld { step: STEP, question });
    }
    add("step_held.urgent".into(), Event::StepHeld { step: STEP, question: urgent() });
    for (name, end) in ends() {
        add(format!("ended.{name}"), Event::Ended { end, at: AT });
    }
    for (name, part) in parts() {
        add(format!("part_started.{name}"), Event::PartStarted { step: STEP, part });
    }
    let exact = ["1.50", "1e400", "123456789012345678901234567890"].map(|number| Data::Number(number.into()));
    let odd = Data::Table(vec![("$number".into(), Data::Text("7".into()))]);
    let output = Data::List(exact.into_iter().chain([odd]).collect());
    let outcome = Outcome { output, ..Outcome::default() };
    add("step_completed.exact".into(), Event::StepCompleted { step: STEP, outcome, at: AT });
    let usage = Usage { input: Some(9), cached: Some(3), output: Some(2), total: Some(11), cost: Some(1500) };
    let outcome = Outcome { usage: Some(Box::new(usage)), ..Outcome::default() };
    add("step_completed.used".into(), Event::StepCompleted { step: STEP, outcome, at: AT });
    let outcome = Outcome { commit: Some("a1b2".into()), ..Outcome::default() };
    add("step_completed.elsewhere".into(), Event::StepCompleted { step: STEP, outcome, at: AT });
    add("step_completed.bare".into(), Event::StepCompleted { step: STEP, outcome: Outcome::default(), at: AT });
    let write = |it: &Event| json(&run_event::write(it));
    compare("run_event", &samples, write, |form| write(&run_event::read(1, form.to_string().as_bytes()).unwrap()));
}

fn perform(job: Job) -> Effect {
    Effect::Perform(Box::new(Perform {
        step: STEP,
        attempt: 2,
        part: Part::Turn(1),
        role: Role::new("planner"),
        job,
        own_workspace: true,
        harness: Some("codex".into()),
        permissions: Permissions::Reduced,
    }))
}

#[test]
fn effects() {
    let plain = vec![
        perform(Job::Agent { prompt: "Do it".into(), folder_at: Vec::new() }),
        Effect::Stop { step: STEP, attempt: 2, part: Part::Whole },
        Effect::SetTimer(TimerKey::Run, AT),
        Effect::ClearTimer(TimerKey::Run),
        Effect::Notify("done".into()),
        Effect::RunCommand(script()),
        Effect::Start { recipe: "next".into() },
        Effect::Repeat { at: AT },
    ];
    let mut samples = named(EFFECTS, effect, plain);
    // Timers are stored as such, and not as effects.
    samples.retain(|(_, effect)| run_effect::write(effect).is_some());
    let text = |text: &str| Some(text.to_owned());
    let jobs = vec![
        Job::Agent { prompt: "Do it".into(), folder_at: Vec::new() },
        Job::Arbiter { prompt: "Judge it".into(), folder_at: Vec::new() },
        Job::Script(script()),
        Job::Gate(script()),
        Job::Task {
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
    samples.push(("perform.agent.elsewhere".into(), perform(Job::Agent { prompt, folder_at })));
    let (prompt, folder_at) = elsewhere();
    samples.push(("perform.arbiter.elsewhere".into(), perform(Job::Arbiter { prompt, folder_at })));
    samples.push((
        "perform.plain".into(),
        Effect::Perform(Box::new(Perform {
            step: STEP,
            attempt: 1,
            part: Part::Whole,
            role: Role::new("any"),
            job: Job::Script(script()),
            own_workspace: false,
            harness: None,
            permissions: Permissions::Full,
        })),
    ));
    let write = |it: &Effect| json(&run_effect::write(it).unwrap());
    compare("run_effect", &samples, write, |form| write(&run_effect::read(form.to_string().as_bytes()).unwrap()));
}

fn plan() -> Plan {
    let text = "name: one\nsteps:\n  - {name: a, type: script, command: 'true'}\n";
    match load(&Source { path: "one.yml", bytes: text.as_bytes() }, &mut NoPrompts, &mut Sources::default()).definition
    {
        Some(Definition::Recipe(recipe)) => Plan::new(recipe),
        _ => panic!("not a recipe"),
    }
}

/// A run of one step with one item.
fn run(end: Option<End>, step: StepState, item: ItemStatus) -> RunState {
    let item = ItemState { status: item, ..ItemState::new(Data::Text("x".into())) };
    let items = BTreeMap::from([((StepId(0), 0), item)]);
    RunState::restore(&plan(), given(Mode::Engine), AT, end, vec![step], items, 3)
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
    let answer = |by| Some(Answer { option: "a".into(), message: Some("for now".into()), by });
    let asked = |part, answer| Asked { part, question: clarification(), answer };
    StepState {
        asks: 7,
        asked: vec![
            asked(Part::Item(0), None),
            asked(Part::Item(1), answer(Answerer::Person)),
            asked(Part::Item(1), answer(Answerer::Deadline)),
        ],
        said: vec![(Part::Item(0), completed), (Part::Item(1), failed)],
        ..step(StepStatus::Running(Progress::Single))
    }
}

fn statuses() -> Vec<StepStatus> {
    let turns = || Progress::Turns {
        turn: 2,
        limit: 5,
        said: vec![
            Turn { work: outcome(), verdict: Some(outcome()) },
            Turn { work: Outcome::default(), verdict: None },
        ],
    };
    let items = || Progress::Items { total: 9, next: 4, running: 2, failed: 1 };
    let question = || questions().remove(0).1;
    let failure = || Failure::Attempt { kind: FailureKind::Timeout, error: "too long".into() };
    vec![
        StepStatus::Waiting,
        StepStatus::Ready,
        StepStatus::Running(Progress::Single),
        StepStatus::Running(turns()),
        StepStatus::Running(items()),
        StepStatus::Stopping(items(), failure()),
        StepStatus::Retrying { failure: failure(), until: AT, progress: None },
        StepStatus::Retrying { failure: failure(), until: AT, progress: Some(turns()) },
        StepStatus::Held { question: question(), progress: None },
        StepStatus::Held { question: question(), progress: Some(items()) },
        StepStatus::Completed,
        StepStatus::Failed(Failure::Upstream(StepId(1))),
        StepStatus::Skipped(SkipReason::Join),
        StepStatus::Cancelled,
    ]
}

#[test]
fn states() {
    let ended = |end| run(end, step(StepStatus::Completed), ItemStatus::Waiting);
    let mut samples = vec![
        ("header".to_owned(), ended(None)),
        ("step.bare".to_owned(), run(None, StepState::default(), ItemStatus::Waiting)),
    ];
    samples.extend(ends().into_iter().map(|(name, end)| (format!("header.{name}"), ended(Some(end)))));
    let mut ending = run(None, step(StepStatus::Ready), ItemStatus::Waiting);
    ending.ending = Some(End::Cancelled { reason: "not needed".into() });
    samples.push(("header.ending".to_owned(), ending));
    let mut at_work = run(None, step(StepStatus::Ready), ItemStatus::Waiting);
    at_work.work = Some("9f2c1d7".into());
    samples.push(("header.at_a_commit".to_owned(), at_work));
    let left = StepState { since: 1, left: Some(outcome()), ..step(StepStatus::Failed(Failure::Aborted)) };
    samples.push(("step.left".to_owned(), run(None, left, ItemStatus::Waiting)));
    let mut lost = run(None, step(StepStatus::Ready), ItemStatus::Waiting);
    for item in lost.items.values_mut() {
        *item = ItemState { attempt: 3, losses: 2, due: Some(AT), ..item.clone() };
    }
    samples.push(("item.lost".to_owned(), lost));
    samples.push(("step.speaking".to_owned(), run(None, speaking(), ItemStatus::Waiting)));
    let urgent = StepStatus::Held { question: urgent(), progress: None };
    samples.push(("step.held.urgent".to_owned(), run(None, step(urgent), ItemStatus::Waiting)));
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
    compare("run_state", &samples, write, |form| {
        let bytes = |name: &str| form[name].to_string().into_bytes();
        let rows = [
            (run_state::GIVEN, bytes("given")),
            (run_state::step_key(StepId(0)), bytes("step")),
            (run_state::item_key(StepId(0), 0), bytes("item")),
        ];
        assert_eq!(run_state::definition_of(&bytes("header")).unwrap(), "d1");
        write(&run_state::read(&plan(), &bytes("header"), &rows).unwrap())
    });
}

#[test]
fn what_a_later_program_wrote_is_refused_with_both_versions() {
    let said = |error: sluice_engine::codec::Unreadable| error.0;
    let later = br#"{"version":2,"something":"else"}"#;
    let known = "this program knows up to 1";
    assert_eq!(said(run_effect::read(later).unwrap_err()), format!("an effect of version 2; {known}"));
    assert_eq!(said(run_state::definition_of(later).unwrap_err()), format!("a run of version 2; {known}"));
    assert_eq!(said(run_state::read(&plan(), later, &[]).unwrap_err()), format!("a run of version 2; {known}"));
    assert_eq!(said(run_event::read(2, b"{}").unwrap_err()), format!("an event of version 2; {known}"));
    assert_eq!(said(task_state::definition_of(later).unwrap_err()), format!("a task of version 2; {known}"));
    assert_eq!(said(task_effect::read("write-1", later).unwrap_err()), format!("an effect of version 2; {known}"));
}
