//! What holds whatever is said to a run.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sluice_core::machine::{Decision, Moment};
use sluice_core::recipe::{Data, FailureKind, StepId};
use sluice_core::run::law::StepStatusKind;
use sluice_core::run::{
    AttemptPart, AttemptReport, QuestionRequest, RunEffect, RunEvent, RunInput, RunMode, RunOrigin, RunParameters,
    RunPlan, RunState, Speaker, StepOutcome, TimerKey, begin, decide,
};

use super::play::{plan, usable_plan};
use super::scripts::{
    ARBITER, DIAMOND, FAN_OUT, GATE, HOLDING_LOOP, JOINS, PATROL, RETRY, REVIEW_LOOP, SEQUENCE, SKIPPED_IN_LOOP,
};

const RECIPES: [&str; 11] =
    [SKIPPED_IN_LOOP, REVIEW_LOOP, DIAMOND, SEQUENCE, RETRY, GATE, ARBITER, FAN_OUT, JOINS, HOLDING_LOOP, PATROL];

#[derive(Clone, Debug)]
struct Move {
    what: u8,
    pick: usize,
    word: usize,
}

fn input(state: &RunState, steps: u32, it: &Move) -> RunInput {
    let words = ["PASS", "FAIL", "done", "actionable", "retry", "skip", "continue", "abort"];
    let word = words[it.word % words.len()];
    let outcome = StepOutcome {
        result: Some(word.into()),
        output: Data::List(vec![Data::Text("x".into()), Data::Text("y".into())]),
        ..StepOutcome::default()
    };
    let under_way = state.under_way();
    let anywhere = (StepId(it.pick as u32 % steps), 1 + it.word as u32 % 3, AttemptPart::Whole);
    let (step, attempt, part) = if under_way.is_empty() { anywhere } else { under_way[it.pick % under_way.len()] };
    let by = Speaker { step, attempt, part };
    let text = ["which?", "what?"][it.pick % 2].to_owned();
    match it.what % 11 {
        9 => RunInput::Said { by, report: AttemptReport::Completed(outcome) },
        10 => {
            let options = vec!["PASS".into(), "done".into(), "retry".into()];
            let wait = it.pick.is_multiple_of(3).then_some(std::time::Duration::from_secs(1));
            RunInput::Ask {
                by,
                ask: QuestionRequest { text, options, default: it.word.is_multiple_of(2).then(|| "done".into()), wait },
            }
        }
        0..=3 => RunInput::Ended { step, attempt, part, report: AttemptReport::Completed(outcome) },
        4 => {
            let kind = FailureKind::ALL[it.word % FailureKind::ALL.len()];
            RunInput::Ended { step, attempt, part, report: AttemptReport::Failed { kind, error: "no".into(), outcome } }
        }
        5 => RunInput::Timer(match it.word % 3 {
            0 => TimerKey::Timeout(step, attempt),
            1 => TimerKey::Backoff(step, attempt),
            _ => TimerKey::Question(state.questions),
        }),
        8 if it.word % 4 == 1 => RunInput::Timer(TimerKey::Run),
        8 if it.word % 4 == 2 => {
            let retrying = |step: &u32| state.step(StepId(*step)).attempts;
            let step = it.pick as u32 % steps;
            RunInput::Timer(TimerKey::Backoff(StepId(step), retrying(&step)))
        }
        6 => RunInput::Answer { question: state.questions, option: word.into(), message: None },
        7 => RunInput::Retry { step: None, guidance: None },
        _ if it.word == 7 => RunInput::Cancel { reason: "so".into() },
        _ => RunInput::Lost { step, attempt, part },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_is_said(
        recipe in 0..RECIPES.len(),
        moves in prop::collection::vec((any::<u8>(), 0..50usize, 0..50usize), 1..60),
    ) {
        let plan = plan(RECIPES[recipe]);
        let given = RunParameters {
            id: "r".parse().unwrap(), mode: RunMode::Engine, inputs: Vec::new(), prompt: String::new(),
            workspace: String::new(), scratch: String::new(), work_order: String::new(), origin: RunOrigin::default(),
        };
        let mut state = RunState::new(&plan, given.clone(), Moment(0));
        let mut decision = begin(&plan, given.clone(), Moment(0));
        let mut log = Vec::new();
        let mut timers = BTreeSet::new();
        for (turn, (what, pick, word)) in std::iter::once((0, 0, 0)).chain(moves).enumerate() {
            if turn > 0 {
                let said = input(&state, plan.recipe.steps.len() as u32, &Move { what, pick, word });
                let before = state.clone();
                let answer = decide(&plan, &state, &said, Moment(turn as i64));
                prop_assert_eq!(&answer, &decide(&plan, &state, &said, Moment(turn as i64)), "decided the same twice");
                prop_assert_eq!(&state, &before, "deciding changes nothing");
                let Ok(answer) = answer else { continue };
                decision = answer;
                if let RunInput::Timer(key) = said {
                    timers.remove(&key);
                }
            }
            take(&plan, &mut state, &decision, &mut timers);
            check_questions(&plan, &state);
            log.extend(decision.events.clone());
            check(&plan, &state);
        }
        let mut folded = RunState::new(&plan, given, Moment(0));
        log.iter().for_each(|event| folded.apply(&plan, event));
        prop_assert_eq!(folded, state, "the log says where the run is");
    }
}

/// Applies a decision. The timers that are set are those that the state needs: none is missing, and none is left.
fn take(
    plan: &RunPlan,
    state: &mut RunState,
    decision: &Decision<RunEvent, RunEffect>,
    timers: &mut BTreeSet<TimerKey>,
) {
    for event in &decision.events {
        state.apply(plan, event);
    }
    for effect in &decision.effects {
        match effect {
            RunEffect::SetTimer(key, _) => drop(timers.insert(*key)),
            RunEffect::ClearTimer(key) => drop(timers.remove(key)),
            _ => {}
        }
    }
    assert_eq!(*timers, state.timers(plan), "timers, after {:#?}", decision.events);
}

/// A step has a time limit unless a person is asked.
fn check_questions(plan: &RunPlan, state: &RunState) {
    let timers = state.timers(plan);
    for (id, (step, defined)) in (0u32..).map(StepId).zip(state.steps.iter().zip(&plan.recipe.steps)) {
        let under_way = matches!(step.status.kind(), StepStatusKind::Running | StepStatusKind::Stopping);
        assert!(under_way || step.said.is_empty(), "`{}` speaks, and nobody is at work", defined.name);
        assert!(under_way || step.asked.iter().all(|it| it.answer.is_some()), "`{}` asks for nobody", defined.name);
        let limited = timers.contains(&TimerKey::Timeout(id, step.since));
        let wanted = step.status.kind() == StepStatusKind::Running && step.questions().next().is_none();
        assert!(limited || !wanted || defined.timeout.is_none(), "`{}` has no time limit", defined.name);
    }
}

fn check(plan: &RunPlan, state: &RunState) {
    let running = state
        .steps
        .iter()
        .filter(|step| matches!(step.status.kind(), StepStatusKind::Running | StepStatusKind::Stopping))
        .count();
    assert!(running <= plan.recipe.max_parallel as usize, "more steps at once than allowed");
    let stuck = state.end.is_none()
        && !state.steps.iter().any(|step| {
            matches!(
                step.status.kind(),
                StepStatusKind::Running | StepStatusKind::Stopping | StepStatusKind::Retrying | StepStatusKind::Held
            )
        });
    assert!(!stuck, "nothing is under way, nobody is asked, and it has not ended: {state:#?}");
    for (step, defined) in state.steps.iter().zip(&plan.recipe.steps) {
        if let Some(back) = &defined.loop_back {
            assert!(step.turns <= back.max + step.granted, "`{}` looped more often than it may", defined.name);
        }
        assert!(step.failures <= defined.retry.max.max(1), "`{}` was tried more often than it may", defined.name);
    }
}

/// A step of a random recipe: what it needs, what its condition reads, whereto it loops.
type Drawn = (u8, Vec<usize>, usize, u8, usize, u8);

/// A recipe of these steps, each after some of those before it.
fn drawn(steps: &[Drawn], max_parallel: usize) -> String {
    let mut text = format!("name: drawn\nmax_parallel: {max_parallel}\nsteps:\n");
    let mut before: Vec<BTreeSet<usize>> = Vec::new();
    for (index, (kind, needs, reads, word, back, more)) in steps.iter().enumerate() {
        let needs: BTreeSet<usize> = needs.iter().filter(|_| index > 0).map(|need| need % index.max(1)).collect();
        let mut above = needs.clone();
        needs.iter().for_each(|need| above.extend(before[*need].iter().copied()));
        let listed: Vec<String> = needs.iter().map(|need| format!("s{need}")).collect();
        let work =
            ["type: agent, prompt: p", "type: agent, prompt: p", "type: gate, command: c"][usize::from(kind % 3)];
        text.push_str(&format!("  - {{name: s{index}, {work}, needs: [{}]", listed.join(", ")));
        let pick = |number: usize| above.iter().nth(number % above.len().max(1)).copied();
        if let Some(read) = pick(*reads).filter(|_| word % 3 > 0) {
            let is = ["== 'PASS'", "== 'FAIL'", "!= 'PASS'"][usize::from(word / 3 % 3)];
            text.push_str(&format!(", when: \"s{read}.result {is}\""));
        }
        if let Some(to) = pick(*back).filter(|_| more % 2 > 0) {
            let on = ["fail", "hold"][usize::from(more / 2 % 2)];
            text.push_str(&format!(", loop: {{to: s{to}, max: {}, on_exhausted: {on}}}", 1 + more / 4 % 2));
        }
        text.push_str(["", ", always: true", ", join: any_completed", ""][usize::from(more / 8 % 4)]);
        text.push_str("}\n");
        before.push(above);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_random_recipe_always_ends_or_asks(
        steps in prop::collection::vec(
            (any::<u8>(), prop::collection::vec(0..6usize, 0..3), 0..6usize, any::<u8>(), 0..6usize, any::<u8>()), 2..7,
        ),
        max_parallel in 1..3usize,
        moves in prop::collection::vec((0..50usize, 0..50usize), 400),
    ) {
        let text = drawn(&steps, max_parallel);
        let Ok(plan) = usable_plan(&text) else { return Ok(()) };
        let given = RunParameters {
            id: "r".parse().unwrap(), mode: RunMode::Engine, inputs: Vec::new(), prompt: String::new(),
            workspace: String::new(), scratch: String::new(), work_order: String::new(), origin: RunOrigin::default(),
        };
        let mut state = RunState::new(&plan, given.clone(), Moment(0));
        let mut timers = BTreeSet::new();
        take(&plan, &mut state, &begin(&plan, given, Moment(0)), &mut timers);
        for (turn, (pick, word)) in moves.into_iter().enumerate() {
            check(&plan, &state);
            if state.end.is_some() {
                break;
            }
            let under_way = state.under_way();
            let result = ["PASS", "FAIL"][word % 2];
            let outcome = StepOutcome { result: Some(result.into()), ..StepOutcome::default() };
            let said = match (under_way.is_empty(), state.question()) {
                (false, _) => {
                    let (step, attempt, part) = under_way[pick % under_way.len()];
                    let failed = AttemptReport::Failed { kind: FailureKind::Failed, error: "no".into(), outcome: StepOutcome::default() };
                    let report = if word % 7 == 6 { failed } else { AttemptReport::Completed(outcome) };
                    RunInput::Ended { step, attempt, part, report }
                }
                (true, Some((_, question))) => {
                    let option = ["retry", "skip", "abort"][if turn > 200 { 1 + word % 2 } else { word % 3 }];
                    RunInput::Answer { question: question.id, option: option.into(), message: None }
                }
                (true, None) => match timers.pop_first() {
                    Some(key) => RunInput::Timer(key),
                    None => panic!("nothing is under way and nobody is asked:\n{text}"),
                },
            };
            let decision = decide(&plan, &state, &said, Moment(turn as i64));
            let decision = decision.unwrap_or_else(|refusal| panic!("{refusal} after {said:?}:\n{text}"));
            take(&plan, &mut state, &decision, &mut timers);
        }
        prop_assert!(state.end.is_some(), "it goes on for ever:\n{text}");
    }
}
