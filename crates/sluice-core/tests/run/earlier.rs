//! Bugs of earlier systems that a run could have: a script for each. Those that a task could have are in
//! `tests/task/plays/`, under names of their own; here is which script answers which of them.
//!
//! | the bug | the script |
//! |---|---|
//! | a status forged by editing TASK.md | `a_forged_status_has_no_effect.play` |
//! | an agent that exits inside a living terminal and is never noticed | `an_agent_that_exits_is_noticed_whatever_its_terminal_does.play` |
//! | a session that kills itself before its later hooks ran | `a_session_that_ends_itself_loses_no_hook.play` |
//! | a loop that runs once and then forgets its bound | [`a_loop_keeps_its_bound_over_every_turn`] |
//! | an old verdict that wins over a new one | `an_old_verdict_does_not_win_over_a_new_one.play`, [`a_first_fail_skips_nothing_for_good_and_the_newest_verdict_counts`] |
//! | a downstream step skipped for good by a first FAIL | the same |
//! | two steps of one run assigned at once | [`two_steps_of_one_workspace_are_never_under_way_at_once`] |
//! | work of one colony given to another's worker | `work_of_one_group_is_never_given_to_anothers_worker` in the engine's scheduler |
//! | a lost worker that keeps its step for ever | [`a_step_whose_workers_are_lost_again_and_again_fails_at_last`], `a_lost_worker_gives_its_step_back…` |
//! | a retry or an approval that resumes one step too far | [`a_retry_or_an_answer_resumes_the_step_itself`] |
//! | `when` ignored inside loops | [`a_condition_inside_a_loop_is_asked_in_every_round`] |
//! | a time limit that is parsed and never applied | [`a_time_limit_is_applied_to_every_kind_of_step`], `a_time_limit_is_applied…` |
//! | a cancel that does not find the running process | [`a_cancel_finds_everything_that_is_under_way`] |
//! | prompt text that reaches a shell; a value that injects a command | [`what_looks_like_a_command_stays_a_value`] |
//! | an unknown reference that blocks for ever | `an_undefined_value_fails_the_step_and_names_it`; most of them fail at load |

use sluice_core::recipe::{Data, StepId};
use sluice_core::run::StepOutcome;
use sluice_core::run::effect::TimerKey;
use sluice_core::run::law::StepStatusKind;

use super::play::{Play, play, played};
use super::scripts::{ARBITER, DIAMOND, FAN_OUT, GATE, RETRY, REVIEW_LOOP, SEQUENCE, SKIPPED_IN_LOOP};

fn status(play: &Play, step: &str) -> StepStatusKind {
    let id = play.plan.recipe.find(step).unwrap();
    play.state.as_ref().unwrap().step(id).status.kind()
}

/// The lines of a log that say this.
fn lines(log: &str, says: &str) -> Vec<String> {
    log.lines().filter(|line| line.contains(says)).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn a_loop_keeps_its_bound_over_every_turn() {
    let turn = "complete review result=FAIL\ncomplete fix\n";
    let log = play(REVIEW_LOOP, &format!("complete plan\ncomplete implement\n{turn}{turn}complete review result=FAIL"));
    assert_eq!(lines(&log, "loops back").len(), 2, "{log}");
    assert_eq!(lines(&log, "run ended").len(), 1, "{log}");
    // A person grants one more turn, and only one.
    let log = play(
        REVIEW_LOOP,
        &format!(
            "complete plan\ncomplete implement\n{turn}{turn}complete review result=FAIL\nretry fix\ncomplete fix\n{turn}"
        ),
    );
    assert_eq!(lines(&log, "loops back").len(), 3, "{log}");
    assert_eq!(lines(&log, "fix failed: LoopExhausted").len(), 2, "{log}");
}

#[test]
fn a_first_fail_skips_nothing_for_good_and_the_newest_verdict_counts() {
    let first = "complete plan\ncomplete implement\ncomplete review result=FAIL";
    assert_eq!(status(&played(REVIEW_LOOP, first), "pr"), StepStatusKind::Waiting);
    let fixed = format!("{first}\ncomplete fix\ncomplete review result=PASS");
    assert_eq!(status(&played(REVIEW_LOOP, &fixed), "pr"), StepStatusKind::Running);
    assert_eq!(status(&played(REVIEW_LOOP, &fixed), "fix"), StepStatusKind::Skipped);
}

#[test]
fn two_steps_of_one_workspace_are_never_under_way_at_once() {
    let one = DIAMOND.replace("max_parallel: 2", "max_parallel: 1");
    insta::assert_snapshot!(play(&one, "complete a\ncomplete c attempt=1\ncomplete b\ncomplete c\ncomplete d\ncomplete e"), @r#"
    run started
    a started, attempt 1
        perform a/1.whole script: "echo a" []
    > complete a
    a completed
    b started, attempt 1
    c ready
        perform b/1.whole script: "echo b" []
    > complete c attempt=1
    refused: not_ready: attempt 1 of `c` is over
    > complete b
    b completed
    c started, attempt 1
        perform c/1.whole script: "echo c" []
    > complete c
    c completed
    d started, attempt 1
    e ready
        perform d/1.whole script: "echo d" []
    > complete d
    d completed
    e started, attempt 1
        perform e/1.whole script: "echo e" []
    > complete e
    e completed
    run ended: Completed { summary: "" }
    "#);
}

#[test]
fn a_step_whose_workers_are_lost_again_and_again_fails_at_last() {
    let lost = "lost flaky\ntimer backoff flaky\n";
    let log = play(RETRY, &lost.repeat(10));
    assert_eq!(lines(&log, "flaky started").len(), 11, "{log}");
    // Not at once, and less and less often.
    let waits = ["at 0", "at 1000", "at 2000", "at 4000", "at 8000", "at 16000", "at 32000", "at 60000"];
    let told = lines(&log, "to be tried again");
    waits.iter().zip(&told).for_each(|(wait, told)| assert!(told.ends_with(wait), "{wait}: {log}"));
    // Then it counts as a crash, and `retry` says how often that is allowed.
    let play = played(RETRY, &lost.repeat(13));
    assert_eq!(status(&play, "flaky"), StepStatusKind::Failed, "{}", play.log);
}

/// An engine that starts takes a timer for one of a wrong clock only if it is later than it can have been set.
#[test]
fn a_loss_that_counts_as_a_failure_waits_as_its_retry_says_also_after_a_restart() {
    let slow = RETRY.replace("backoff: 1s", "backoff: 10m");
    let longest = |losses: usize| {
        let play = played(&slow, &format!("{}lost flaky", "lost flaky\ntimer backoff flaky\n".repeat(losses - 1)));
        let state = play.state.as_ref().unwrap();
        let longest = state.longest(&play.plan, TimerKey::Backoff(StepId(0), state.steps[0].attempts)).unwrap();
        let told = lines(&play.log, "to be tried again").pop().unwrap().to_owned();
        (told.rsplit(' ').next().unwrap().parse::<u128>().unwrap(), longest.as_millis())
    };
    assert_eq!(longest(9), (60_000, 60_000));
    // The eleventh is the first that counts so, and the next wait is twice as long.
    assert_eq!((longest(11), longest(12)), ((600_000, 600_000), (1_200_000, 1_200_000)));
}

#[test]
fn a_retry_or_an_answer_resumes_the_step_itself() {
    let retried = played(REVIEW_LOOP, "complete plan\nfail implement\nretry implement");
    assert_eq!(
        (status(&retried, "implement"), status(&retried, "review")),
        (StepStatusKind::Running, StepStatusKind::Waiting)
    );
    let answered = played(GATE, "fail tests exit=2\nanswer 1 retry");
    assert_eq!(
        (status(&answered, "tests"), status(&answered, "ship")),
        (StepStatusKind::Running, StepStatusKind::Waiting)
    );
    let skipped = played(GATE, "fail tests exit=2\nanswer 1 skip");
    assert_eq!(
        (status(&skipped, "tests"), status(&skipped, "ship")),
        (StepStatusKind::Skipped, StepStatusKind::Running)
    );
}

#[test]
fn a_condition_inside_a_loop_is_asked_in_every_round() {
    let round = |extra: &str| format!("{extra}complete check result=FAIL\ncomplete mend\n");
    let script = [
        "complete work\n".to_owned(),
        round(""),
        "complete work result=MORE\n".to_owned(),
        round("complete extra\n"),
        "complete work\n".to_owned(),
    ];
    let log = play(SKIPPED_IN_LOOP, &script.concat());
    assert_eq!(
        lines(&log, "extra s"),
        ["extra skipped: Condition", "extra started, attempt 1", "extra skipped: Condition"]
    );
}

#[test]
fn a_time_limit_is_applied_to_every_kind_of_step() {
    let limited = |recipe: &str| recipe.replace("type: agent-loop", "timeout: 5s\n    type: agent-loop");
    let stops = |recipe: &str, script: &str| lines(&play(recipe, script), "stop ");
    assert_eq!(stops(&limited(ARBITER), "timer timeout polish"), ["stop polish/1.turn-1"]);
    assert_eq!(stops(&limited(ARBITER), "complete polish/turn-1\ntimer timeout polish"), ["stop polish/1.arbiter-1"]);
    let agent = "name: agent\nsteps:\n  - {name: a, timeout: 5s, prompt: do it}\n";
    assert_eq!(stops(agent, "timer timeout a"), ["stop a/1.whole"]);
    let task = "name: task\nsteps:\n  - {name: a, type: task, timeout: 5s, summary: do it}\n";
    assert_eq!(stops(task, "timer timeout a"), ["stop a/1.whole"]);
    let each = FAN_OUT.replace("for_each: ${things}", "timeout: 5s\n    for_each: ${things}");
    assert_eq!(
        stops(&each, "complete list output=[a,b,c]\ntimer timeout each"),
        ["stop each/1.item-0", "stop each/1.item-1"]
    );
}

#[test]
fn a_cancel_finds_everything_that_is_under_way() {
    let stops = |recipe: &str, script: &str| lines(&play(recipe, &format!("{script}\ncancel")), "stop ");
    assert_eq!(stops(DIAMOND, "complete a"), ["stop b/1.whole", "stop c/1.whole"]);
    assert_eq!(stops(FAN_OUT, "complete list output=[a,b,c]"), ["stop each/1.item-0", "stop each/1.item-1"]);
    assert_eq!(stops(ARBITER, ""), ["stop polish/1.turn-1"]);
    assert_eq!(stops(ARBITER, "complete polish/turn-1"), ["stop polish/1.arbiter-1"]);
    assert_eq!(stops(ARBITER, "ask polish/turn-1 which?"), ["stop polish/1.turn-1"]);
    // One that is being ended because of its time limit is asked for once more; the last attempt, never an older one.
    assert_eq!(stops(RETRY, "timer timeout flaky"), ["stop flaky/1.whole", "stop flaky/1.whole"]);
    assert_eq!(stops(RETRY, "lost flaky"), ["stop flaky/2.whole"]);
    assert_eq!(stops(RETRY, "fail flaky"), [""; 0]);
}

#[test]
fn what_looks_like_a_command_stays_a_value() {
    let log = play(SEQUENCE, "complete greet output=\";rm${IFS}-rf${IFS}/;$(reboot)`reboot`");
    let asked = lines(&log, "perform use");
    let [line] = asked.as_slice() else { panic!("{log}") };
    let (script, environment) = line.split_once(" [").unwrap();
    assert!(!script.contains("reboot") && !script.contains("rm$"), "{script}");
    assert!(environment.contains("reboot"), "{environment}");
    // A prompt is told to an agent; there is no script that it could become part of.
    let prompt =
        "name: agent\nsteps:\n  - {name: a, type: script, command: ls}\n  - {name: b, prompt: 'look at ${a.output}'}\n";
    let log = play(prompt, "complete a output=$(reboot)");
    assert_eq!(lines(&log, "perform b"), [r#"perform b/1.whole agent: "look at $(reboot)""#]);
}

#[test]
fn the_state_is_never_what_a_late_worker_says() {
    let mut play = played(SEQUENCE, "lost greet\ncomplete greet output=new\ncomplete greet attempt=1 output=old");
    let latest = play.state.take().unwrap().steps[0].latest.clone();
    assert_eq!(latest.map(|StepOutcome { output, .. }| output), Some(Data::Text("new".into())));
}

#[test]
fn an_item_waits_for_those_before_it_only_while_they_can_still_end() {
    let each = FAN_OUT.replace("for_each: ${things}", "timeout: 5s\n    for_each: ${things}");
    let is_held_up = |script: &str| {
        let play = played(&each, &format!("complete list output=[a,b,c]\n{script}"));
        play.state.as_ref().unwrap().has_open_before(play.plan.recipe.find("each").unwrap(), 1)
    };
    assert!(is_held_up(""), "the first one is at work");
    assert!(is_held_up("lost each/item-0"), "it is made again");
    assert!(!is_held_up("complete each/item-0"));
    assert!(is_held_up("timer timeout each"), "it is being ended");
    // Nothing is made again in a step that is being ended.
    assert!(!is_held_up("timer timeout each\nlost each/item-0"));
}
