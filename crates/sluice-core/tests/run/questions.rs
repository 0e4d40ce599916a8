//! Questions that do not wait for ever.

use sluice_core::machine::Moment;
use sluice_core::run::StepStatus;

use super::play::{Play, played};
use super::scripts::GATE;

/// A run whose gate has failed, with a question that has a deadline and perhaps a default. No file can say that yet.
fn urgent(default: Option<&str>) -> Play {
    let mut play = played(GATE, "fail tests exit=2");
    let state = play.state.as_mut().unwrap();
    if let StepStatus::Held { question, .. } = &mut state.steps[0].status {
        question.deadline = Some(Moment(5000));
        question.default = default.map(str::to_owned);
    }
    play.log.clear();
    play
}

#[test]
fn a_question_that_nobody_answers_in_time_is_answered_with_its_default() {
    let mut play = urgent(Some("skip"));
    play.line("timer question 1");
    play.line("timer question 1");
    insta::assert_snapshot!(play.log, @r#"
    tests question 1 answered: skip, because nobody did in time
    tests skipped: Person
    ship started, attempt 1
        clear timer question.1
        perform ship/1.whole script: "ship" []
    "#);
}

#[test]
fn an_answer_in_time_clears_the_deadline() {
    let mut play = urgent(Some("skip"));
    play.line("answer 1 retry");
    play.line("timer question 1");
    insta::assert_snapshot!(play.log, @r#"
    tests question 1 answered: retry
    tests started, attempt 2
        clear timer question.1
        perform tests/2.whole gate: "make test"
    "#);
}

#[test]
fn without_a_default_a_person_is_still_waited_for() {
    let mut play = urgent(None);
    play.line("timer question 1");
    play.line("answer 1 abort");
    insta::assert_snapshot!(play.log, @r#"
    tests question 1 answered: abort
    tests failed: Aborted
    ship failed: Upstream(StepId(0))
    run ended: Failed { error: "`tests` failed: a person gave it up" }
        clear timer question.1
    "#);
}

#[test]
fn the_end_of_the_run_clears_the_deadline() {
    let mut play = urgent(Some("skip"));
    play.line("cancel");
    insta::assert_snapshot!(play.log, @r#"
    run ended: Cancelled { reason: "" }
        clear timer question.1
    "#);
}
