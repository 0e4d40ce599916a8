//! One script per rule. The name of a test is the rule.

use super::play::play;

pub(crate) const REVIEW_LOOP: &str = r#"
[workflow]
name = "dev-task"
[[steps]]
id = "plan"
prompt = "{{mission_prompt}}"
[[steps]]
id = "implement"
depends_on = ["plan"]
prompt = "context: {{context}}"
[[steps]]
id = "review"
depends_on = ["implement"]
prompt = "review with {{context}}"
[[steps]]
id = "fix"
depends_on = ["review"]
condition = "review.result == 'FAIL'"
max_retries = 2
prompt = "fix in {{worktree_path}}"
[[steps]]
id = "pr"
depends_on = ["review"]
condition = "review.result == 'PASS'"
prompt = "open a pull request"
"#;

pub(crate) const DIAMOND: &str = "
name: diamond
max_parallel: 2
steps:
  - {name: a, type: script, needs: [], command: echo a}
  - {name: b, type: script, needs: [a], command: echo b}
  - {name: c, type: script, needs: [a], command: echo c}
  - {name: d, type: script, needs: [b, c], command: echo d}
  - {name: e, type: script, needs: [c], command: echo e}
";

pub(crate) const SEQUENCE: &str = "
name: sequence
input: [{name: who, default: you}]
on_complete: [{action: notify, message: 'done: ${greet.output}'}]
on_fail: [{action: run_command, command: 'echo ${run.id}'}, {action: start, recipe: clean-up}]
steps:
  - {name: greet, type: script, output: greeting, command: 'echo ${run.work_order}'}
  - {name: use, type: script, command: 'echo ${greeting} \"${greet.output}\"'}
  - {name: tidy, type: script, always: true, command: rm -f x}
";

pub(crate) const RETRY: &str = "
name: retry
timeout: 1h
steps:
  - {name: flaky, type: script, timeout: 10s, retry: {max: 2, backoff: 1s}, command: try}
";

pub(crate) const GATE: &str = "
name: gate
steps:
  - {name: tests, type: gate, command: make test, message: look at it}
  - {name: ship, type: script, command: ship}
";

pub(crate) const ARBITER: &str = "
name: arbiter
steps:
  - name: polish
    type: agent-loop
    max_iterations: 2
    prompt: 'polish, turn ${iteration}. ${history}'
    arbiter_prompt: 'judge ${output}'
  - {name: ship, type: script, when: \"polish.result == 'done'\", command: ship}
";

pub(crate) const FAN_OUT: &str = "
name: fan-out
steps:
  - {name: list, type: script, output: things, command: ls}
  - name: each
    type: parallel-agents
    for_each: ${things}
    max_concurrent: 2
    prompt: 'look at ${item}, number ${index}'
  - {name: sum, type: script, command: 'echo ${each.output}'}
";

pub(crate) const JOINS: &str = "
name: joins
max_parallel: 9
steps:
  - {name: a, type: script, needs: [], command: a}
  - {name: b, type: script, needs: [], when: input.wanted, command: b}
  - {name: all, type: script, needs: [a, b], join: all_completed, command: all}
  - {name: any, type: script, needs: [a, b], join: any_completed, command: any}
  - {name: none, type: script, needs: [a, b], command: none}
";

pub(crate) const HOLDING_LOOP: &str = "
name: holding
steps:
  - {name: work, type: script, needs: [], command: work}
  - {name: check, type: script, needs: [work], command: check}
  - {name: mend, type: script, needs: [check], when: \"check.result == 'FAIL'\", loop: {to: work, max: 1, on_exhausted: hold}, command: mend}
  - {name: after, type: script, needs: [mend], command: after}
";

pub(crate) const PATROL: &str = "
template: patrol
repeat: {every: 5m}
steps:
  - {id: look, title: Look around}
  - {id: act, needs: [look], description: Act on it}
  - {id: rest, needs: [look], description: Rest}
";

/// Every script there is, for the test that looks for rows of the law that none takes.
pub(crate) const ALL: &[(&str, &str)] = &[
    (REVIEW_LOOP, PASSES),
    (REVIEW_LOOP, FAILS_ONCE),
    (REVIEW_LOOP, EXHAUSTED),
    (REVIEW_LOOP, "complete plan\nfail implement"),
    (DIAMOND, "complete a\ncomplete b\ncancel"),
    (NARROW, "complete a\ncancel"),
    (DIAMOND, "complete a\nfail b\ncomplete c\ncomplete e\nretry b\ncomplete b\ncomplete d"),
    (SEQUENCE, "fail greet\ncomplete tidy"),
    (RETRY, "fail flaky\ntimer backoff flaky\ntimer timeout flaky\nfail flaky\ntimer backoff flaky\ncomplete flaky"),
    (RETRY, "timer timeout flaky\ncomplete flaky"),
    (RETRY, "fail flaky\ncancel"),
    (RETRY, "timer timeout flaky\ncancel"),
    (RETRY, "fail flaky\ntimer backoff flaky\nfail flaky\ntimer backoff flaky\ntimer timeout flaky\nfail flaky"),
    (GATE, "fail tests exit=2\nanswer 1 retry\nfail tests exit=2\nanswer 2 skip\ncomplete ship"),
    (GATE, "fail tests exit=2\nanswer 1 abort"),
    (GATE, "fail tests\ncancel"),
    (TIMED_GATE, "timer timeout slow\nfail slow"),
    (TIMED_FAN, "timer timeout each\ncomplete each/item-0\ncomplete each/item-1"),
    (
        ARBITER,
        "complete polish/turn-1\ncomplete polish/arbiter-1 result=actionable\ncomplete polish/turn-2\ncomplete polish/arbiter-2 result=actionable\nanswer 1 continue",
    ),
    (FAN_OUT, "complete list output=[a,b]\nfail each/item-0\ncomplete each/item-1\nanswer 1 continue\ncomplete sum"),
    (FAN_OUT, "complete list"),
    (JOINS, "complete a\ncomplete any\ncomplete none"),
    (HOLDING_LOOP, HOLDS),
    (
        HOLDING_LOOP,
        "complete work\ncomplete check result=FAIL\ncomplete mend\ncomplete work\ncomplete check result=FAIL\nanswer 1 abort",
    ),
    (PATROL, BY_HAND),
    (SKIPPED_IN_LOOP, LOOPS_OVER_SKIPPED),
    (UNDEFINED, "complete first"),
    (LATE_UNDEFINED, "complete plan\ncomplete each/item-0"),
];

const NARROW: &str = "
name: narrow
steps:
  - {name: a, type: script, needs: [], command: a}
  - {name: b, type: script, needs: [a], command: b}
  - {name: c, type: script, needs: [a], command: c}
";
const PASSES: &str = "complete plan\ncomplete implement\ncomplete review result=PASS\ncomplete pr";
const FAILS_ONCE: &str = "
    complete plan
    complete implement
    complete review result=FAIL
    complete fix
    complete review result=PASS
    complete pr";
const EXHAUSTED: &str = "
    complete plan
    complete implement
    complete review result=FAIL
    complete fix
    complete review result=FAIL
    complete fix
    complete review result=FAIL";
const HOLDS: &str = "
    complete work
    complete check result=FAIL
    complete mend
    complete work
    complete check result=FAIL
    answer 1 retry
    complete mend
    complete work
    complete check result=PASS
    complete after";
const BY_HAND: &str = "
    start by hand
    hand act start
    hand look start
    close
    hand look complete
    hand act start
    hand rest complete
    hand act fail no tools
    hand rest skip
    close
    retry act
    hand act complete
    close all is well";
const TIMED_GATE: &str = "
name: timed-gate
steps:
  - {name: slow, type: gate, timeout: 5s, command: make test}
";
const TIMED_FAN: &str = "
name: timed-fan
steps:
  - {name: each, type: parallel-agents, timeout: 5s, for_each: [a, b, c], max_concurrent: 2, prompt: do}
";
pub(crate) const SKIPPED_IN_LOOP: &str = "
name: skipping
steps:
  - {name: work, type: script, needs: [], command: work}
  - {name: extra, type: script, needs: [work], when: \"work.result == 'MORE'\", command: extra}
  - {name: check, type: script, needs: [extra], always: true, command: check}
  - {name: mend, type: script, needs: [check], when: \"check.result == 'FAIL'\", loop: {to: work, max: 3}, command: mend}
";
const LOOPS_OVER_SKIPPED: &str = "
    complete work
    complete check result=FAIL
    complete mend
    complete work result=MORE
    fail extra
    complete check result=FAIL
    complete mend
    complete work
    complete check result=PASS";
const UNDEFINED: &str = "
name: undefined
steps:
  - {name: first, type: script, output: made, command: one}
  - {name: second, type: script, command: 'echo ${made.part}'}
";
const LATE_UNDEFINED: &str = "
name: late
steps:
  - {name: plan, type: script, command: plan}
  - {name: each, type: parallel-agents, for_each: [{a: 1}, {b: 2}], max_concurrent: 1, prompt: 'do ${item.a}'}
";

#[test]
fn a_review_that_passes_skips_the_fix_and_opens_the_pull_request() {
    insta::assert_snapshot!(play(REVIEW_LOOP, PASSES));
}

#[test]
fn a_review_that_fails_is_fixed_and_reviewed_again_and_the_newest_verdict_counts() {
    insta::assert_snapshot!(play(REVIEW_LOOP, FAILS_ONCE));
}

#[test]
fn a_loop_has_a_bound_and_using_it_up_fails_the_run() {
    insta::assert_snapshot!(play(REVIEW_LOOP, EXHAUSTED));
}

#[test]
fn a_loop_may_ask_a_person_when_it_is_used_up() {
    insta::assert_snapshot!(play(HOLDING_LOOP, HOLDS));
}

#[test]
fn a_loop_runs_again_what_was_skipped_or_failed_inside_it() {
    insta::assert_snapshot!(play(SKIPPED_IN_LOOP, LOOPS_OVER_SKIPPED));
}

#[test]
fn a_failure_reaches_what_needs_it_and_nothing_else() {
    insta::assert_snapshot!(play(DIAMOND, "complete a\nfail b\ncomplete c\ncomplete e"));
}

#[test]
fn a_failed_step_can_be_tried_again_with_guidance_and_what_waited_for_it_runs() {
    insta::assert_snapshot!(play(
        REVIEW_LOOP,
        "complete plan\nfail implement\nretry implement use the other library\ncomplete implement"
    ));
}

#[test]
fn fork_and_join_run_side_by_side_within_the_limit() {
    insta::assert_snapshot!(play(DIAMOND, "complete a\ncomplete c\ncomplete b\ncomplete d\ncomplete e"));
}

#[test]
fn joins() {
    insta::assert_snapshot!(play(JOINS, "complete a\ncomplete any\ncomplete none"));
}

#[test]
fn variables_travel_to_later_steps_and_hooks_run_at_the_end() {
    insta::assert_snapshot!(play(SEQUENCE, "complete greet output=hello\ncomplete use\ncomplete tidy"));
    insta::assert_snapshot!("a_sequence_stops_at_its_first_failure", play(SEQUENCE, "fail greet\ncomplete tidy"));
}

#[test]
fn an_undefined_value_fails_the_step_and_names_it() {
    insta::assert_snapshot!(play(UNDEFINED, "complete first"));
    insta::assert_snapshot!(
        "an_undefined_value_of_an_item",
        play(LATE_UNDEFINED, "complete plan\ncomplete each/item-0")
    );
}

#[test]
fn a_value_that_no_command_can_be_given_fails_its_step() {
    let long = format!("complete greet output={}", "x".repeat(200_000));
    let nul = "complete greet output=a\0b";
    let after = |line: &str| play(SEQUENCE, line).split_once(line).unwrap().1.replace(&"x".repeat(200_000), "x…");
    insta::assert_snapshot!("a_value_that_is_too_long_for_a_command", after(&long));
    insta::assert_snapshot!("a_value_with_a_nul_for_a_command", after(nul));
    // The hook at the end cannot be done either, and says so instead.
    insta::assert_snapshot!(
        "a_hook_that_is_given_too_much",
        after_end(HOOKED, &format!("complete big output={}", "x".repeat(200_000)))
    );
}

fn after_end(recipe: &str, line: &str) -> String {
    play(recipe, line).split_once("run ended").unwrap().1.to_owned()
}

const HOOKED: &str = "
name: hooked
on_complete: [{action: run_command, command: 'echo ${big.output}'}]
steps:
  - {name: big, type: script, command: big}
";

#[test]
fn failed_attempts_are_made_again_after_a_growing_wait() {
    insta::assert_snapshot!(play(
        RETRY,
        "fail flaky\nwait 1\ntimer backoff flaky\nfail flaky\ntimer backoff flaky\nfail flaky"
    ));
}

#[test]
fn a_time_limit_is_applied_and_the_next_attempt_waits_until_the_last_has_ended() {
    insta::assert_snapshot!(play(RETRY, "timer timeout flaky\nfail flaky\ntimer backoff flaky\ncomplete flaky"));
    insta::assert_snapshot!(
        "a_result_that_was_faster_than_the_end_counts",
        play(RETRY, "timer timeout flaky\ncomplete flaky")
    );
    insta::assert_snapshot!("a_run_has_a_time_limit_too", play(RETRY, "timer run\ncomplete flaky"));
    insta::assert_snapshot!(
        "old_timers_do_nothing",
        play(RETRY, "fail flaky\ntimer backoff flaky\ntimer backoff flaky 1\ntimer timeout flaky 1")
    );
}

#[test]
fn a_gate_that_fails_asks_and_resumes_exactly_where_it_stopped() {
    insta::assert_snapshot!(
        "gate_retry",
        play(
            GATE,
            "fail tests exit=2\nanswer 1 maybe\nanswer 1 retry fix the tests first\ncomplete tests\ncomplete ship"
        )
    );
    insta::assert_snapshot!("gate_skip", play(GATE, "fail tests exit=2\nanswer 1 skip\nanswer 1 skip\ncomplete ship"));
    insta::assert_snapshot!("gate_abort", play(GATE, "fail tests exit=2\nanswer 1 abort"));
    insta::assert_snapshot!("gate_timeout", play(TIMED_GATE, "timer timeout slow\nfail slow"));
}

#[test]
fn an_arbiter_ends_the_loop_or_lets_it_go_on() {
    insta::assert_snapshot!(
        "arbiter_done",
        play(
            ARBITER,
            "complete polish/turn-1 output=v1\ncomplete polish/arbiter-1 result=actionable summary=again\ncomplete polish/turn-2 output=v2\ncomplete polish/arbiter-2 result=done\ncomplete ship"
        )
    );
    insta::assert_snapshot!(
        "arbiter_max",
        play(
            ARBITER,
            "complete polish/turn-1\ncomplete polish/arbiter-1 result=actionable\ncomplete polish/turn-2\ncomplete polish/arbiter-2 result=actionable\nanswer 1 retry\ncomplete polish/turn-3\ncomplete polish/arbiter-3 result=done"
        )
    );
    insta::assert_snapshot!(
        "arbiter_unclear",
        play(ARBITER, "complete polish/turn-1\ncomplete polish/arbiter-1 result=hm")
    );
}

#[test]
fn a_fan_out_keeps_its_limit_and_its_order() {
    insta::assert_snapshot!(
        "fan_out",
        play(
            FAN_OUT,
            "complete list output=[a,b,c]\ncomplete each/item-1 output=B\ncomplete each/item-2 output=C\ncomplete each/item-0 output=A\ncomplete sum"
        )
    );
    insta::assert_snapshot!(
        "fan_out_partial",
        play(
            FAN_OUT,
            "complete list output=[a,b,c]\nfail each/item-0\ncomplete each/item-1\ncomplete each/item-2\nanswer 1 retry\ncomplete each/item-0 output=A\ncomplete sum"
        )
    );
    insta::assert_snapshot!("fan_out_of_nothing", play(FAN_OUT, "complete list output=[]"));
    insta::assert_snapshot!(
        "fan_out_timeout",
        play(TIMED_FAN, "timer timeout each\ncomplete each/item-0\ncomplete each/item-1")
    );
}

#[test]
fn a_lost_worker_gives_its_step_back_and_its_late_answer_is_refused() {
    insta::assert_snapshot!(play(SEQUENCE, "lost greet\ncomplete greet attempt=1\ncomplete greet"));
    insta::assert_snapshot!(
        "a_lost_item_is_done_again_by_itself",
        play(TIMED_FAN, "lost each/item-0\ncomplete each/item-1\ncomplete each/item-0")
    );
    insta::assert_snapshot!(
        "a_lost_turn_goes_on_where_it_was",
        play(ARBITER, "complete polish/turn-1 output=v1\nlost polish/arbiter-1\ncomplete polish/arbiter-1 result=done")
    );
}

#[test]
fn cancelling_stops_what_is_under_way_and_nothing_is_said_afterwards() {
    insta::assert_snapshot!(play(DIAMOND, "complete a\ncancel enough\ncomplete b\ncancel\nretry"));
}

#[test]
fn steps_done_by_hand_one_at_a_time_and_the_end_said_by_a_person() {
    insta::assert_snapshot!(play(PATROL, BY_HAND));
}

#[test]
fn a_patrol_starts_again_when_it_has_ended() {
    insta::assert_snapshot!(play(PATROL, "complete look\ncomplete act\ncomplete rest"));
}

/// A turn that failed is told, and is no reason for the next to be left out; only a person ends a patrol.
#[test]
fn a_patrol_goes_on_after_a_turn_that_failed_and_says_so() {
    let failed = play(PATROL, "fail look\ncancel");
    let told = "notify: a turn of the patrol `patrol` failed: `look` failed: it broke";
    assert!(failed.contains("ended: Failed") && failed.contains("repeat at") && failed.contains(told), "{failed}");
    assert!(failed.contains("ended: Cancelled"), "{failed}");
    let cancelled = play(PATROL, "cancel");
    assert!(cancelled.contains("ended: Cancelled") && !cancelled.contains("repeat"), "{cancelled}");
}

/// A step is told the folder that it works in, and a hook the one where the file says that the run works.
#[test]
fn a_step_is_told_its_own_folder_and_the_folders_are_given_back_unless_the_run_failed() {
    let recipe = "
name: folders
workspace: none
steps:
  - {name: a, prompt: 'in ${run.workspace}'}
  - {name: b, workspace: shared, prompt: 'in ${run.workspace}'}
on_complete:
  - {action: notify, message: 'ended in ${run.workspace}'}
";
    let done = play(recipe, "complete a\ncomplete b");
    let told =
        ["a/1.whole agent: \"in /scratch\"", "b/1.whole agent: \"in /tree\"", "ended in /scratch", "release what"];
    assert!(told.iter().all(|words| done.contains(words)), "{done}");
    let failed = play(recipe, "fail a");
    assert!(failed.contains("ended: Failed") && !failed.contains("release what"), "{failed}");
}
