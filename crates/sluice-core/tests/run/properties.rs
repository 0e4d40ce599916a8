//! What holds whatever is said to a run.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sluice_core::machine::Moment;
use sluice_core::recipe::{Data, FailureKind, StepId};
use sluice_core::run::law::Status;
use sluice_core::run::{
    Ask, Effect, Given, Input, Mode, Origin, Outcome, Part, Report, RunState, Speaker, TimerKey, begin, decide,
};

use super::play::plan;
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

fn input(state: &RunState, steps: u32, it: &Move) -> Input {
    let words = ["PASS", "FAIL", "done", "actionable", "retry", "skip", "continue", "abort"];
    let word = words[it.word % words.len()];
    let outcome = Outcome {
        result: Some(word.into()),
        output: Data::List(vec![Data::Text("x".into()), Data::Text("y".into())]),
        ..Outcome::default()
    };
    let under_way = state.under_way();
    let anywhere = (StepId(it.pick as u32 % steps), 1 + it.word as u32 % 3, Part::Whole);
    let (step, attempt, part) = if under_way.is_empty() { anywhere } else { under_way[it.pick % under_way.len()] };
    let by = Speaker { step, attempt, part };
    let text = ["which?", "what?"][it.pick % 2].to_owned();
    match it.what % 11 {
        9 => Input::Said { by, report: Report::Completed(outcome) },
        10 => {
            let options = vec!["PASS".into(), "done".into(), "retry".into()];
            let wait = it.pick.is_multiple_of(3).then_some(std::time::Duration::from_secs(1));
            Input::Ask {
                by,
                ask: Ask { text, options, default: it.word.is_multiple_of(2).then(|| "done".into()), wait },
            }
        }
        0..=3 => Input::Ended { step, attempt, part, report: Report::Completed(outcome) },
        4 => {
            let kind = FailureKind::ALL[it.word % 3];
            Input::Ended { step, attempt, part, report: Report::Failed { kind, error: "no".into(), outcome } }
        }
        5 => Input::Timer(match it.word % 3 {
            0 => TimerKey::Timeout(step, attempt),
            1 => TimerKey::Backoff(step, attempt),
            _ => TimerKey::Question(state.questions),
        }),
        6 => Input::Answer { question: state.questions, option: word.into(), message: None },
        7 => Input::Retry { step: None, guidance: None },
        _ if it.word == 7 => Input::Cancel { reason: "so".into() },
        _ => Input::Lost { step, attempt, part },
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
        let given = Given {
            id: "r".into(), mode: Mode::Engine, inputs: Vec::new(), prompt: String::new(),
            workspace: String::new(), work_order: String::new(), origin: Origin::default(),
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
            }
            for event in &decision.events {
                state.apply(&plan, event);
            }
            for effect in &decision.effects {
                match effect {
                    Effect::SetTimer(key, _) => drop(timers.insert(*key)),
                    Effect::ClearTimer(key) => drop(timers.remove(key)),
                    _ => {}
                }
            }
            check_questions(&plan, &state, &timers);
            log.extend(decision.events.clone());
            check(&plan, &state);
        }
        let mut folded = RunState::new(&plan, given, Moment(0));
        log.iter().for_each(|event| folded.apply(&plan, event));
        prop_assert_eq!(folded, state, "the log says where the run is");
    }
}

/// Whoever is asked has a deadline that will be told, or none; and a step has a time limit unless a person is asked.
fn check_questions(plan: &sluice_core::run::Plan, state: &RunState, timers: &BTreeSet<TimerKey>) {
    let awaited: BTreeSet<TimerKey> = state
        .questions()
        .filter(|(_, question)| question.deadline.is_some())
        .map(|(_, question)| TimerKey::Question(question.id))
        .collect();
    let told = timers.iter().filter(|key| matches!(key, TimerKey::Question(_))).copied().collect();
    assert_eq!(awaited, told, "deadlines");
    for (id, (step, defined)) in (0u32..).map(StepId).zip(state.steps.iter().zip(&plan.recipe.steps)) {
        let under_way = matches!(step.status.kind(), Status::Running | Status::Stopping);
        assert!(under_way || step.said.is_empty(), "`{}` speaks, and nobody is at work", defined.name);
        assert!(under_way || step.asked.iter().all(|it| it.answer.is_some()), "`{}` asks for nobody", defined.name);
        let limited = timers.contains(&TimerKey::Timeout(id, step.attempts));
        let wanted = step.status.kind() == Status::Running && step.questions().next().is_none();
        assert!(limited || !wanted || defined.timeout.is_none(), "`{}` has no time limit", defined.name);
    }
}

fn check(plan: &sluice_core::run::Plan, state: &RunState) {
    let running =
        state.steps.iter().filter(|step| matches!(step.status.kind(), Status::Running | Status::Stopping)).count();
    assert!(running <= plan.recipe.max_parallel as usize, "more steps at once than allowed");
    let stuck = state.end.is_none()
        && !state.steps.iter().any(|step| {
            matches!(step.status.kind(), Status::Running | Status::Stopping | Status::Retrying | Status::Held)
        });
    assert!(!stuck, "nothing is under way, nobody is asked, and it has not ended: {state:#?}");
    for (step, defined) in state.steps.iter().zip(&plan.recipe.steps) {
        if let Some(back) = &defined.loop_back {
            assert!(step.turns <= back.max + step.granted, "`{}` looped more often than it may", defined.name);
        }
        assert!(step.failures <= defined.retry.max.max(1), "`{}` was tried more often than it may", defined.name);
    }
}
