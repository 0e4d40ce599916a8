//! What agents say about their work, and that they say it about their own.

use super::play::{play, played};
use super::questions::AGENT;

#[test]
fn what_an_agent_says_counts_more_than_how_its_process_ends() {
    insta::assert_snapshot!(play(AGENT, "say build complete result=PASS\nsay build complete result=PASS\nfail build exit=1"), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > say build complete result=PASS
    build/whole says that it is done: build did it
    > say build complete result=PASS
    > fail build exit=1
    build completed, PASS
    ship started, attempt 1
        clear timer timeout.0.1
        perform ship/1.whole script: "ship" []
    "#);
    insta::assert_snapshot!(play(AGENT, "say build complete result=PASS\nsay build fail\ncomplete build"), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > say build complete result=PASS
    build/whole says that it is done: build did it
    > say build fail
    build/whole says that it failed: it broke
    > complete build
    build failed: Attempt { kind: Failed, error: "it broke" }
    ship failed: Upstream(StepId(0))
    run ended: Failed { error: "`build` failed: it broke" }
        clear timer timeout.0.1
    "#);
    insta::assert_snapshot!(play(AGENT, "say build complete\nlost build"), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > say build complete
    build/whole says that it is done: build did it
    > lost build
    build completed
    ship started, attempt 1
        clear timer timeout.0.1
        perform ship/1.whole script: "ship" []
    "#);
    insta::assert_snapshot!(play(AGENT, "say build complete\ntimer timeout build\nfail build timeout"), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > say build complete
    build/whole says that it is done: build did it
    > timer timeout build
    build stopping
        clear timer timeout.0.1
        stop build/1.whole
    > fail build timeout
    build completed
    ship started, attempt 1
        perform ship/1.whole script: "ship" []
    "#);
    insta::assert_snapshot!(play(AGENT, "complete build\nsay build fail"), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > complete build
    build completed
    ship started, attempt 1
        clear timer timeout.0.1
        perform ship/1.whole script: "ship" []
    > say build fail
    refused: not_ready: attempt 1 of `build` is not under way
    "#);
}

#[test]
fn what_an_agent_leaves_out_is_taken_from_its_end() {
    let mut play =
        played(AGENT, "say build complete summary= result=PASS\ncomplete build summary=long output=7 exit=0");
    let outcome = play.state.take().unwrap().steps[0].latest.clone().unwrap();
    assert_eq!(
        (outcome.summary.as_str(), outcome.result.as_deref(), outcome.exit_code),
        ("long", Some("PASS"), Some(0))
    );
}

#[test]
fn an_agent_speaks_about_its_own_step_only() {
    insta::assert_snapshot!(play(
        AGENT,
        "agent build: ask build which?
        agent build: answer 1 this
        agent build: cancel
        stranger: say build complete
        person: answer 1 this
        complete build
        agent build: say ship complete
        agent ship: say build complete"
    ), @r#"
    run started
    build started, attempt 1
        set timer timeout.0.1 at 60000
        perform build/1.whole agent: "build it"
    > agent build: ask build which?
    build/whole asks: question 1 (which?)
        clear timer timeout.0.1
        notify: `build` asks: which?
    > agent build: answer 1 this
    refused: not_yours: Not allowed: an agent may speak about its own step only
    > agent build: cancel
    refused: not_yours: Not allowed: an agent may speak about its own step only
    > stranger: say build complete
    refused: not_yours: Not allowed: a session may speak about its own task or step only
    > person: answer 1 this
    build question 1 answered: this
        set timer timeout.0.1 at 60000
    > complete build
    build completed
    ship started, attempt 1
        clear timer timeout.0.1
        perform ship/1.whole script: "ship" []
    > agent build: say ship complete
    refused: not_yours: Not allowed: an agent may speak about its own step only
    > agent ship: say build complete
    refused: not_yours: Not allowed: an agent may speak about its own step only
    "#);
}

#[test]
fn a_run_is_held_while_all_that_is_at_work_waits_for_a_person() {
    let status = |script: &str| played(AGENT, script).state.unwrap().status();
    assert_eq!(status("ask build which?"), "held");
    assert_eq!(status("ask build which?\nanswer 1 this"), "running");
    let two = "name: two\nmax_parallel: 2\nsteps:\n  - {name: a, needs: [], prompt: x}\n  - {name: b, needs: [], prompt: x}\n";
    let play = played(two, "ask a which?");
    let state = play.state.unwrap();
    assert_eq!((state.status(), state.steps[0].word(), state.steps[1].word()), ("running", "held", "running"));
}
