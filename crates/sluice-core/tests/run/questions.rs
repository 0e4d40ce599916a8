//! Questions: of steps that are held, and of agents.

use sluice_core::machine::Moment;
use sluice_core::run::StepStatus;

use super::play::{Play, play, played};
use super::scripts::{ARBITER, GATE};

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

pub(crate) const AGENT: &str = "
name: agent
steps:
  - {name: build, timeout: 1m, prompt: build it}
  - {name: ship, type: script, command: ship}
";

const UNDEFINED_ITEM: &str = "
name: undefined-item
steps:
  - {name: each, type: parallel-agents, for_each: [{a: 1}, {b: 2}], max_concurrent: 2, prompt: 'do ${item.a}'}
";

/// The scripts of this file, for the test that looks for rows of the law that none takes.
pub(crate) const ALL: &[(&str, &str)] = &[
    (AGENT, "ask build which?\nanswer 1 this\nask build what?\nsay build complete\ncomplete build"),
    (UNDEFINED_ITEM, "complete each/item-0"),
    (
        FAN_OUT_ASKS,
        "ask each/item-0 which?\nask each/item-1 what?\ncomplete each/item-1\nanswer 1 it\nsay each/item-0 fail",
    ),
    (FAN_OUT_ASKS, "ask each/item-0 which?\ncomplete each/item-1\ncomplete each/item-0"),
];

/// The third item cannot be told what to do, so that the first two are ended when one of them has.
const FAN_OUT_ASKS: &str = "
name: fan-out-asks
steps:
  - {name: each, type: parallel-agents, for_each: [{a: 1}, {a: 2}, {b: 3}], max_concurrent: 2, prompt: 'do ${item.a}'}
";

#[test]
fn an_agent_asks_goes_on_and_is_told() {
    insta::assert_snapshot!(play(
        AGENT,
        "ask build which database? options=postgres,sqlite
        answer 1 mysql
        answer 1 postgres the shared one
        answer 1 postgres
        complete build
        complete ship"
    ), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > ask build which database? options=postgres,sqlite
    build/whole asks: question 1 (which database?) postgres|sqlite
        clear timer timeout.0.1
        notify: `build` asks: which database?
    > answer 1 mysql
    refused: not_ready: `mysql` is not an answer to question 1
    hint: choose from postgres, sqlite
    > answer 1 postgres the shared one
    build question 1 answered: postgres
        set timer timeout.0.1 at 60000
    > answer 1 postgres
    refused: not_ready: question 1 is not open
    > complete build
    build completed
    ship started, attempt 1
        clear timer timeout.0.1
        perform ship/1.whole script: "ship" []
    > complete ship
    ship completed
    run ended: Completed { summary: "" }
    "#);
}

#[test]
fn whoever_asks_the_same_again_finds_the_question_or_its_answer() {
    insta::assert_snapshot!(play(
        AGENT,
        "ask build which database?
        ask build which database?
        answer 1 postgres
        ask build which database?
        lost build
        ask build which database?
        ask build which table?"
    ), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > ask build which database?
    build/whole asks: question 1 (which database?)
        clear timer timeout.0.1
        notify: `build` asks: which database?
    > ask build which database?
    > answer 1 postgres
    build question 1 answered: postgres
        set timer timeout.0.1 at 60000
    > ask build which database?
    > lost build
    build to be tried again at 0
    build started, attempt 2
        clear timer timeout.0.1
        set timer timeout.0.2 at 60000
        perform build/2.whole agent: "build it\n\n## Answers\n\nYou asked: which database?\nA person answered: postgres\n"
    > ask build which database?
    > ask build which table?
    build/whole asks: question 2 (which table?)
        clear timer timeout.0.2
        notify: `build` asks: which table?
    "#);
}

#[test]
fn an_agents_question_may_have_a_deadline() {
    insta::assert_snapshot!(play(
        AGENT,
        "ask build which? options=a,b default=b wait=60
        wait 60
        timer question 1
        ask build what? wait=60
        wait 60
        timer question 2
        timer question 2
        complete build"
    ), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > ask build which? options=a,b default=b wait=60
    build/whole asks: question 1 (which?) a|b
        clear timer timeout.0.1
        set timer question.1 at 60000
        notify: `build` asks: which?
    > wait 60
    > timer question 1
    build question 1 answered: b, because nobody did in time
        clear timer question.1
        set timer timeout.0.1 at 120000
    > ask build what? wait=60
    build/whole asks: question 2 (what?)
        clear timer timeout.0.1
        set timer question.2 at 120000
        notify: `build` asks: what?
    > wait 60
    > timer question 2
    build question 2 withdrawn
        clear timer question.2
        set timer timeout.0.1 at 180000
    > timer question 2
    > complete build
    build completed
    ship started, attempt 1
        clear timer timeout.0.1
        perform ship/1.whole script: "ship" []
    "#);
}

#[test]
fn a_question_is_withdrawn_when_the_attempt_ends() {
    insta::assert_snapshot!(play(AGENT, "ask build which? wait=60\ncomplete build\nanswer 1 this"), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > ask build which? wait=60
    build/whole asks: question 1 (which?)
        clear timer timeout.0.1
        set timer question.1 at 60000
        notify: `build` asks: which?
    > complete build
    build question 1 withdrawn
    build completed
    ship started, attempt 1
        clear timer question.1
        clear timer timeout.0.1
        perform ship/1.whole script: "ship" []
    > answer 1 this
    refused: not_ready: question 1 is not open
    "#);
    insta::assert_snapshot!(play(AGENT, "ask build which?\nlost build\nanswer 1 this\nask build which?"), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > ask build which?
    build/whole asks: question 1 (which?)
        clear timer timeout.0.1
        notify: `build` asks: which?
    > lost build
    build question 1 withdrawn
    build to be tried again at 0
    build started, attempt 2
        clear timer timeout.0.1
        set timer timeout.0.2 at 60000
        perform build/2.whole agent: "build it"
    > answer 1 this
    refused: not_ready: question 1 is not open
    > ask build which?
    build/whole asks: question 2 (which?)
        clear timer timeout.0.2
        notify: `build` asks: which?
    "#);
    insta::assert_snapshot!(play(AGENT, "ask build which? wait=60\ncancel enough\nanswer 1 this"), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > ask build which? wait=60
    build/whole asks: question 1 (which?)
        clear timer timeout.0.1
        set timer question.1 at 60000
        notify: `build` asks: which?
    > cancel enough
    build question 1 withdrawn
    run ended: Cancelled { reason: "enough" }
        clear timer question.1
        stop build/1.whole
        clear timer timeout.0.1
    > answer 1 this
    refused: finished: run <id> has ended (cancelled)
    "#);
}

#[test]
fn a_time_limit_stands_still_while_a_person_is_asked() {
    insta::assert_snapshot!(play(
        AGENT,
        "wait 30
        ask build which?
        wait 60
        timer timeout build
        answer 1 this
        wait 60
        timer timeout build
        fail build timeout"
    ), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > wait 30
    > ask build which?
    build/whole asks: question 1 (which?)
        clear timer timeout.0.1
        notify: `build` asks: which?
    > wait 60
    > timer timeout build
    > answer 1 this
    build question 1 answered: this
        set timer timeout.0.1 at 150000
    > wait 60
    > timer timeout build
    build stopping
        clear timer timeout.0.1
        stop build/1.whole
    > fail build timeout
    build failed: Attempt { kind: Timeout, error: "it took longer than its `timeout`" }
    ship failed: Upstream(StepId(0))
    run ended: Failed { error: "`build` failed: it took longer than its `timeout`" }
    "#);
}

#[test]
fn a_question_must_be_one_that_a_person_can_answer() {
    insta::assert_snapshot!(play(
        AGENT,
        "ask build
        ask build which? options=a, default=a
        ask build which? options=a,b default=c
        ask build which? attempt=2
        ask ship which?"
    ), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > ask build
    refused: not_ready: a question must say something
    hint: say what you want to know
    > ask build which? options=a, default=a
    refused: not_ready: an option must say something
    hint: leave the empty option out
    > ask build which? options=a,b default=c
    refused: not_ready: the default `c` is none of the options
    hint: make it one of them
    > ask build which? attempt=2
    refused: not_ready: attempt 2 of `build` is not under way
    > ask ship which?
    refused: not_ready: `ship` has no agent that could speak for it
    hint: a script or gate speaks by its exit code and by what it prints
    "#);
    let mut play = played(AGENT, "");
    play.log.clear();
    play.line(&format!("ask build {}", "x".repeat(20_000)));
    insta::assert_snapshot!(play.log, @"
    refused: not_ready: a question has at most 20 options and 16384 bytes
    hint: write what is long into a file, and name it in the question
    ");
    for number in 1..=101 {
        play.log.clear();
        play.line(&format!("ask build number {number}"));
        play.line(&format!("answer {number} yes"));
    }
    insta::assert_snapshot!(play.log, @"
    refused: not_ready: `build` has asked 100 questions, and no step may ask more
    hint: decide, and say in the summary what you have decided
    refused: not_ready: question 101 is not open
    ");
}

#[test]
fn items_and_turns_ask_for_themselves() {
    insta::assert_snapshot!(play(
        FAN_OUT_ASKS,
        "ask each/item-0 which?
        ask each/item-1 which?
        answer 2 the second
        lost each/item-1
        answer 1 the first
        lost each/item-0"
    ), @r#"
    run started
    each started, attempt 1, 3 items
    each/item-0 started
    each/item-1 started
        perform each/1.item-0 agent: "do 1"
        perform each/1.item-1 agent: "do 2"
    > ask each/item-0 which?
    each/item-0 asks: question 1 (which?)
        notify: `each` asks: which?
    > ask each/item-1 which?
    each/item-1 asks: question 2 (which?)
        notify: `each` asks: which?
    > answer 2 the second
    each question 2 answered: the
    > lost each/item-1
    each/item-1 lost
    each/item-1 started
        perform each/2.item-1 agent: "do 2\n\n## Answers\n\nYou asked: which?\nA person answered: the. second\n"
    > answer 1 the first
    each question 1 answered: the
    > lost each/item-0
    each/item-0 lost
    each/item-0 started
        perform each/3.item-0 agent: "do 1\n\n## Answers\n\nYou asked: which?\nA person answered: the. first\n"
    "#);
    insta::assert_snapshot!(play(
        ARBITER,
        "ask polish/turn-1 how bright?
        answer 1 very
        complete polish/turn-1
        ask polish/arbiter-1 is it enough?
        complete polish/arbiter-1 result=actionable"
    ), @r#"
    run started
    polish started, attempt 1
        perform polish/1.turn-1 agent: "polish, turn 1. "
    > ask polish/turn-1 how bright?
    polish/turn-1 asks: question 1 (how bright?)
        notify: `polish` asks: how bright?
    > answer 1 very
    polish question 1 answered: very
    > complete polish/turn-1
    polish/turn-1 completed
        perform polish/1.arbiter-1 arbiter: "judge \n\n## Answers\n\nYou asked: how bright?\nA person answered: very\n\n\n## What you judge\n\n\n\n## Earlier turns\n\n"
    > ask polish/arbiter-1 is it enough?
    polish/arbiter-1 asks: question 2 (is it enough?)
        notify: `polish` asks: is it enough?
    > complete polish/arbiter-1 result=actionable
    polish question 2 withdrawn
    polish/arbiter-1 completed
        perform polish/1.turn-2 agent: "polish, turn 2. Turn 1: polish did it\nArbiter: actionable polish did it\n\n\n## Answers\n\nYou asked: how bright?\nA person answered: very\n"
    "#);
}

#[test]
fn an_item_that_cannot_be_told_what_to_do_ends_the_others_first() {
    insta::assert_snapshot!(play(UNDEFINED_ITEM, "complete each/item-0"), @r#"
    run started
    each started, attempt 1, 2 items
    each/item-0 started
    each stopping
        perform each/1.item-0 agent: "do 1"
        stop each/1.item-0
    > complete each/item-0
    each/item-0 completed
    each failed: Undefined("item.a")
    run ended: Failed { error: "`each` failed: `item.a` is not defined" }
    "#);
}

#[test]
fn a_run_says_once_each_time_that_it_waits_for_a_person() {
    let mut play = played(GATE, "fail tests exit=2");
    assert_eq!(play.blocked, ["look at it (the check failed: exit code 2)"]);
    // A wrong answer and a question that is still open begin nothing anew; another failed check does.
    play.line("answer 1 maybe");
    assert_eq!(play.blocked.len(), 1);
    play.line("answer 1 retry");
    play.line("fail tests exit=3");
    assert_eq!(play.blocked[1..], ["look at it (the check failed: exit code 3)"]);
    play.line("answer 2 abort");
    assert_eq!(play.blocked.len(), 2);
}

#[test]
fn work_of_its_own_that_is_in_conflict_is_a_question() {
    let recipe = "name: own\nmax_parallel: 2\nsteps:\n  - {name: a, needs: [], prompt: p, workspace: own, retry: {max: 2}}\n  \
                  - {name: b, needs: [], prompt: p}\n";
    insta::assert_snapshot!(play(recipe, "fail a error=conflict\nanswer 1 retry\nfail b error=conflict"), @r#"
    run started
    a started, attempt 1
    b started, attempt 1
        perform a/1.whole agent: "p"
        perform b/1.whole agent: "p"
    > fail a error=conflict
    a held: question 1 (conflict: it broke) retry|continue|skip|abort
        notify: `a` needs a person: conflict: it broke
    > answer 1 retry
    a question 1 answered: retry
    a started, attempt 2
        perform a/2.whole agent: "p"
    > fail b error=conflict
    b failed: Attempt { kind: Failed, error: "conflict: it broke" }
    "#);
}
