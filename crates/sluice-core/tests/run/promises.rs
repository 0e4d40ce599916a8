//! What a run promises about its end: it comes, nothing is left behind, and what was lost or failed is told.

use sluice_core::recipe::Data;
use sluice_core::run::law::StepStatusKind;
use sluice_core::run::{StepOutcome, StepState};

use super::play::{Play, play, played};
use super::scripts::{ARBITER, GATE, RETRY, REVIEW_LOOP};

fn step<'a>(play: &'a Play, name: &str) -> &'a StepState {
    play.state.as_ref().unwrap().step(play.plan.recipe.find(name).unwrap())
}

fn left(play: &Play, name: &str) -> StepOutcome {
    step(play, name).left.clone().unwrap_or_default()
}

const MUTUAL: &str = "
name: mutual
steps:
  - {name: look, type: agent, needs: [], prompt: look}
  - {name: mend, type: agent, needs: [look], when: \"look.result == 'FAIL'\", prompt: mend, loop: {to: look, max: 2}}
  - {name: tune, type: agent, needs: [look], when: \"look.result != 'PASS'\", prompt: tune, loop: {to: look, max: 2}}
";

#[test]
fn two_loops_to_one_step_whose_conditions_are_false_end_the_run() {
    let log = play(MUTUAL, "complete look result=PASS");
    assert!(log.contains("mend skipped") && log.contains("tune skipped"), "{log}");
    assert!(log.contains("run ended: Completed"), "{log}");
    // While one of them can still change what the other reads, the other waits.
    let waits = played(MUTUAL, "complete look result=FAIL");
    assert_eq!(
        (step(&waits, "mend").status.kind(), step(&waits, "tune").status.kind()),
        (StepStatusKind::Running, StepStatusKind::Ready)
    );
}

const ITEMS: &str = "
name: items
steps:
  - {name: each, type: parallel-agents, for_each: [a, b, c], max_concurrent: 2, prompt: '${item}', timeout: 10m}
";

#[test]
fn each_item_has_its_own_losses_and_each_try_its_own_number() {
    let lost = "lost each/item-0\ntimer backoff each\n";
    let play = played(ITEMS, &format!("{}complete each/item-1\nlost each/item-2", lost.repeat(10)));
    // Ten losses of the first are no loss of the third, which is made again at once.
    assert!(play.log.ends_with("perform each/12.item-2 agent: \"c\"\n"), "{}", play.log);
    let numbers = play.log.lines().filter(|line| line.contains("item-0 agent")).count();
    assert_eq!(numbers, 11, "{}", play.log);
    let names: std::collections::BTreeSet<&str> =
        play.log.lines().filter(|line| line.contains("perform")).filter_map(|line| line.split(' ').nth(5)).collect();
    assert_eq!(names.len(), 14, "each performance has its own name: {names:?}");
    // A lost item keeps its place until it begins again, and what it waits for ends with the step.
    let stopped = played(ITEMS, "lost each/item-0\nlost each/item-0\ntimer timeout each\nfail each/item-1");
    assert!(stopped.log.contains("clear timer backoff.0.3"), "{}", stopped.log);
    assert!(stopped.log.contains("run ended: Failed"), "{}", stopped.log);
    assert!(stopped.state.unwrap().timers(&stopped.plan).is_empty());
}

#[test]
fn a_signal_is_a_failure_under_retry() {
    let log = play(GATE, "fail tests crashed exit=137");
    assert!(log.contains("held: question 1") && !log.contains("attempt 2"), "{log}");
    let log = play(
        RETRY,
        "fail flaky crashed\ntimer backoff flaky\nfail flaky crashed\ntimer backoff flaky\nfail flaky crashed",
    );
    assert!(log.contains("attempt 3") && log.contains("run ended: Failed"), "{log}");
}

const TIDY: &str = "
name: tidy
timeout: 1h
max_parallel: 2
steps:
  - {name: work, type: agent, needs: [], prompt: work, timeout: 10m}
  - {name: more, type: agent, needs: [work], prompt: more}
  - {name: clean, type: script, needs: [more], always: true, command: 'echo ${work.status}'}
";

#[test]
fn what_always_runs_does_so_after_a_cancel_and_after_the_time_limit() {
    for (end, word) in [("cancel enough", "Cancelled"), ("timer run", "Failed")] {
        let begun = played(TIDY, &format!("{end}\nfail work"));
        // First what is under way has ended, and nothing but the tidying begins.
        let places: Vec<Option<usize>> = ["run is being ended", "stop work/1.whole", "work cancelled", "clean started"]
            .iter()
            .map(|what| begun.log.find(what))
            .collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {}", begun.log);
        assert!(!begun.log.contains("more started"), "{}", begun.log);
        let over = played(TIDY, &format!("{end}\nfail work\ncomplete clean"));
        assert!(over.log.contains(&format!("run ended: {word}")), "{}", over.log);
        assert!(over.state.unwrap().timers(&over.plan).is_empty());
        // It has a bound, and a second word ends it at once.
        for at_once in ["timer run", "cancel now"] {
            let log = play(TIDY, &format!("{end}\nfail work\n{at_once}"));
            assert!(log.contains("run ended:") && log.contains("stop clean/1.whole"), "{log}");
        }
    }
}

#[test]
fn no_timer_outlives_its_run_and_a_retry_sets_its_time_limit_again() {
    for script in ["cancel", "timer run", "lost flaky\nlost flaky\ncancel", "fail flaky\ncancel"] {
        let ended = played(RETRY, script);
        let state = ended.state.unwrap();
        assert!(state.end.is_some() && state.timers(&ended.plan).is_empty(), "{script}: {}", ended.log);
        assert!(ended.log.contains("clear timer run"), "{script}: {}", ended.log);
    }
    let spent = "fail flaky\ntimer backoff flaky\n".repeat(2) + "fail flaky\n";
    let log = play(RETRY, &format!("{spent}wait 60\nretry flaky"));
    assert_eq!(log.matches("set timer run at").count(), 2, "{log}");
    assert!(log.contains("set timer run at 3660000"), "{log}");
}

#[test]
fn a_result_is_taken_as_it_is_meant_and_one_that_nobody_knows_fails_its_step() {
    let before = "complete plan\ncomplete implement\n";
    for (said, meant) in [("fail", "fix started"), ("Fail", "fix started"), ("pass", "pr started")] {
        let log = play(REVIEW_LOOP, &format!("{before}complete review result={said}"));
        assert!(log.contains(meant), "{said}: {log}");
    }
    let log = play(REVIEW_LOOP, &format!("{before}complete review result=MAYBE"));
    let why = "its result `MAYBE` is none of those that `fix` and others wait for: `FAIL`, `PASS`";
    assert!(log.contains(why) && log.contains("run ended: Failed"), "{log}");
    // A manifest that does not say how often is reviewed again once.
    let once = REVIEW_LOOP.replace("max_retries = 2\n", "");
    let log = play(&once, &format!("{before}complete review result=FAIL\ncomplete fix\ncomplete review result=PASS"));
    assert!(log.contains("fix loops back to review") && log.contains("pr started"), "{log}");
    let turn = "complete review result=FAIL\ncomplete fix\n";
    let log = play(&once, &format!("{before}{turn}complete review result=FAIL"));
    assert!(log.contains("fix failed: LoopExhausted"), "{log}");
}

#[test]
fn an_arbiter_is_understood_in_any_spelling_and_asked_about_when_it_cannot_decide() {
    for said in ["DONE", "Done", "done"] {
        let log = play(ARBITER, &format!("complete polish/turn-1\ncomplete polish/arbiter-1 result={said}"));
        assert!(log.contains("polish completed, done"), "{said}: {log}");
    }
    let undecided = "complete polish/turn-1\ncomplete polish/arbiter-1\n";
    let log = play(ARBITER, &format!("{undecided}answer 1 retry\ncomplete polish/turn-2"));
    assert!(log.contains("held: question 1 (the arbiter said neither `done` nor `actionable`)"), "{log}");
    assert!(log.contains("perform polish/2.turn-2") && log.contains("perform polish/2.arbiter-2"), "{log}");
}

#[test]
fn what_a_failed_command_left_is_there_after_any_end() {
    let failed = played(GATE, "fail tests exit=3 output=red");
    assert_eq!((left(&failed, "tests").exit_code, left(&failed, "tests").output), (Some(3), Data::Text("red".into())));
    let lost = played(RETRY, &"lost flaky\ntimer backoff flaky\n".repeat(13));
    assert_eq!(left(&lost, "flaky").exit_code, Some(-1));
    assert_eq!(left(&lost, "flaky").stderr.as_deref(), Some("its worker went away"));
    // What comes after it reads them.
    let reads = "
name: reads
steps:
  - {name: build, type: script, needs: [], command: make}
  - {name: tell, type: script, needs: [build], always: true, command: 'echo ${build.exit_code} ${build.stderr} ${build.output}'}
";
    let log = play(reads, "fail build exit=2 output=red");
    let tell = log.lines().find(|line| line.contains("perform tell")).unwrap_or_default();
    assert!(tell.contains("\"2\"") && tell.contains("\"red\"") && tell.contains("it broke"), "{log}");
}
