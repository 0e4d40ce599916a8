//! What an agent must give because the recipe goes on by it.

use super::play::play;
use super::scripts::REVIEW_LOOP;

const FAN: &str = "
name: fan
steps:
  - {name: find, retry: {max: 1}, output: found, prompt: find}
  - {name: each, type: parallel-agents, on_failure: continue, for_each: '${found.files}', prompt: 'do ${item}'}
  - {name: ship, type: script, when: '!find.output.risky', command: ship}
";

#[test]
fn a_review_without_a_verdict_has_failed() {
    let log = play(REVIEW_LOOP, "complete plan\ncomplete implement\ncomplete review");
    insta::assert_snapshot!(log.rsplit_once("> complete review").unwrap().1, @r#"

    review failed: Attempt { kind: Failed, error: "it did not give `review.result`, which `fix` depends on" }
    fix failed: Upstream(StepId(2))
    pr failed: Upstream(StepId(2))
    run ended: Failed { error: "`review` failed: it did not give `review.result`, which `fix` depends on" }
    "#);
}

#[test]
fn a_list_that_a_fan_out_goes_over_is_asked_for_and_a_truth_value_is_not() {
    let log = play(FAN, "complete find output=[a,b]");
    insta::assert_snapshot!(log.rsplit_once("> complete find").unwrap().1, @"
     output=[a,b]
    find to be tried again at 1000
        set timer backoff.0.1 at 1000
    ");
}

#[test]
fn an_item_in_conflict_with_others_is_held_whatever_on_failure_says() {
    let recipe = "
name: fan
steps:
  - {name: each, type: parallel-agents, on_failure: continue, for_each: [a, b], prompt: 'do ${item}'}
";
    let log = play(recipe, "fail each/item-0\nfail each/item-1 error=conflict");
    insta::assert_snapshot!(log.rsplit_once("> fail each/item-1").unwrap().1, @"
     error=conflict
    each/item-1 failed
    each held: question 1 (2 of 2 items failed; item 1: conflict: it broke) retry|continue|skip|abort
        notify: `each` needs a person: 2 of 2 items failed; item 1: conflict: it broke
    ");
    let log = play(recipe, "fail each/item-0\nfail each/item-1");
    insta::assert_snapshot!(log.rsplit_once("> fail each/item-1").unwrap().1, @r#"

    each/item-1 failed
    each completed, [{"error":"it broke"},{"error":"it broke"}]
    run ended: Completed { summary: "" }
    "#);
}

#[test]
fn a_step_is_read_before_a_variable_of_its_name() {
    let recipe = "
name: same
steps:
  - {name: review, output: review, prompt: judge}
  - {name: ship, type: script, when: \"review.result == 'PASS' && review.status == 'completed'\", command: ship}
";
    let log = play(recipe, "complete review result=PASS output=[a]");
    assert!(log.contains("\nreview completed") && log.contains("\nship started"), "{log}");
}
