//! Two attempts of one step never run at once, whatever is lost: the connection, the worker, the engine, or only time.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::home::{LONG, Pipe};
use super::process;
use super::reef::{Reef, text};
use super::wire::Wire;

const DONE: &str = "completed: plan completed, implement completed, review completed, fix skipped, pr completed";

/// A workflow of one script.
const SCRIPT: &str = "[workflow]\nname = \"script\"\ndescription = \"A test\"\nversion = \"1.0.0\"\n\n[[steps]]\nid = \"only\"\nrole = \"any\"\ntype = \"script\"\n";

/// A colony, and the pipes of its first agent: it leaves a daemon, says that it begins, and waits.
fn prepared(settings: &str) -> (Reef, Pipe, Pipe) {
    let reef = Reef::new(settings, None);
    let (begins, goes) = (reef.home.pipe("begins"), reef.home.pipe("goes"));
    let (left, begin, go) = (reef.home.path("left"), begins.path(), goes.path());
    let plan = format!("leave daemon {}\ntell {begin}\nwait for {go}\ncommit \"plan\"", left.display());
    reef.scripts(&plan, "commit \"work\"", "review pass", "json {\"summary\": \"opened\"}");
    (reef, begins, goes)
}

/// The processes of a mission's agents, but not our own around them.
fn of(mission: &str) -> Vec<i32> {
    let found = process::carrying(&format!("SLUICE_RUN={mission}"));
    assert!(!found.is_empty(), "nobody is at {mission}");
    found
}

fn is_paused(pid: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
}

/// Waits until all of these processes are paused. The kernel tells that to nobody, so it is looked at.
#[track_caller]
fn until_paused(pids: &[i32]) {
    let give_up = Instant::now() + LONG;
    let (_never, quiet) = channel::<()>();
    while !pids.iter().all(|pid| is_paused(*pid)) {
        assert!(Instant::now() < give_up, "{pids:?} go on");
        let _ = quiet.recv_timeout(Duration::from_millis(10));
    }
}

/// How often a step of a mission was begun, and how often it had a result.
fn counted(reef: &Reef, mission: &str, step: &str) -> (usize, usize) {
    let count = |kind: &str| {
        let events = reef.events(&["--correlation", mission, "--type", kind]);
        events.iter().filter(|event| event["data"]["step_id"] == step).count()
    };
    (count("step.started"), count("step.completed"))
}

/// The name of the first attempt of a mission.
fn first_attempt(reef: &Reef, mission: &str) -> Value {
    reef.events(&["--correlation", mission, "--type", "attempt.started"])[0]["data"]["run_id"].clone()
}

/// What was given to another meanwhile: it is not at it, what it says does not count, and the other's does.
#[track_caller]
fn only_the_second_counts(reef: &Reef, mission: &str, first: &[i32], goes: &Pipe) {
    first.iter().for_each(|pid| process::until_gone(*pid));
    let late = json!({ "run_id": first_attempt(reef, mission), "status": "completed", "summary": "too late" });
    assert_eq!(reef.answer("POST", "/v1/runs/complete", &reef.worker, &late).short(), "409 lease_lost");
    goes.let_go();
    assert_eq!(reef.ended(mission), DONE);
    assert_eq!(reef.commits(mission), ["plan", "work"]);
    assert_eq!(counted(reef, mission, "plan"), (2, 1));
}

#[test]
fn an_agent_that_is_cut_off_is_paused_before_another_is_at_its_step() {
    // Without a word the engine waits for the lease; told that the connection is closed, for the worker to come back.
    for (settings, breaks) in [
        ("[workers]\nlease_seconds = 3\nreconnect_seconds = 60\n", Wire::breaks as fn(&Wire)),
        ("[workers]\nreconnect_seconds = 3\n", Wire::is_cut),
    ] {
        let (reef, begins, goes) = prepared(settings);
        let wire = Wire::to(&reef.url);
        let first = reef.hire_over(&wire.url(), "ann", "any");
        let mission = reef.mission("dev-task");
        begins.hear();
        let living = of(&mission);
        assert!(living.len() >= 2, "the agent and its daemon: {living:?}");
        breaks(&wire);
        let second = reef.hire("bob", "any");
        begins.hear(); // the other's agent
        assert!(living.iter().all(|pid| is_paused(*pid)), "both are at it");
        wire.is_mended();
        only_the_second_counts(&reef, &mission, &living, &goes);
        // The first is back, and can be given something.
        reef.until_event("", "crab.connected", 3);
        let crabs = reef.ask("GET", "/v1/crabs", &Value::Null);
        let state =
            |crab: &str| text(crabs.as_array().unwrap().iter().find(|it| it["crab_id"] == crab).unwrap(), "state");
        assert_eq!((state(&first.crab), state(&second.crab)), ("idle".into(), "idle".into()));
    }
}

#[test]
fn an_agent_that_was_cut_off_for_a_while_goes_on_where_it_was() {
    for breaks in [Wire::breaks, Wire::is_cut] {
        let (reef, begins, goes) = prepared("[workers]\nreconnect_seconds = 6\n");
        let wire = Wire::to(&reef.url);
        let _worker = reef.hire_over(&wire.url(), "ann", "any");
        let mission = reef.mission("dev-task");
        begins.hear();
        let living = of(&mission);
        breaks(&wire);
        until_paused(&living);
        wire.is_mended();
        goes.let_go(); // it has to go on for that
        assert_eq!(reef.ended(&mission), DONE);
        assert_eq!(reef.commits(&mission), ["plan", "work"]);
        assert_eq!(counted(&reef, &mission, "plan"), (1, 1));
    }
}

#[test]
fn an_agent_goes_on_where_it_was_when_the_engine_is_back() {
    let (mut reef, begins, goes) = prepared("[workers]\nreconnect_seconds = 4\n");
    let _worker = reef.hire("ann", "any");
    let mission = reef.mission("dev-task");
    begins.hear();
    let living = of(&mission);
    reef.kill_engine();
    until_paused(&living);
    reef.serve();
    goes.let_go();
    assert_eq!(reef.ended(&mission), DONE);
    assert_eq!(reef.commits(&mission), ["plan", "work"]);
    assert_eq!(counted(&reef, &mission, "plan"), (1, 1));
}

#[test]
fn an_agent_whose_worker_hangs_is_paused_all_the_same() {
    let (reef, begins, goes) = prepared("[workers]\nlease_seconds = 3\n");
    let first = reef.hire("ann", "any");
    let mission = reef.mission("dev-task");
    begins.hear();
    let living = of(&mission);
    first.hangs();
    let _second = reef.hire("bob", "any");
    begins.hear();
    assert!(living.iter().all(|pid| is_paused(*pid)), "both are at it");
    first.goes_on();
    only_the_second_counts(&reef, &mission, &living, &goes);
}

#[test]
fn an_engine_that_was_stopped_for_longer_than_a_lease_takes_no_work_away() {
    let (reef, begins, goes) = prepared("[workers]\nlease_seconds = 2\nreconnect_seconds = 2\n");
    let _worker = reef.hire("ann", "any");
    let mission = reef.mission("dev-task");
    begins.hear();
    let living = of(&mission);
    let engine = Pid::from_raw(reef.engine.as_ref().unwrap().pid()).unwrap();
    kill_process(engine, Signal::STOP).unwrap();
    until_paused(&living);
    let (_never, quiet) = channel::<()>();
    let _ = quiet.recv_timeout(Duration::from_secs(4)); // two whole leases
    kill_process(engine, Signal::CONT).unwrap();
    goes.let_go();
    assert_eq!(reef.ended(&mission), DONE);
    assert_eq!(counted(&reef, &mission, "plan"), (1, 1));
}

#[test]
fn a_copy_of_a_worker_is_refused_while_the_worker_is_there() {
    let (reef, begins, goes) = prepared("");
    let _worker = reef.hire("ann", "any");
    let mission = reef.mission("dev-task");
    begins.hear();
    let (copy, from) = (reef.machine("bob"), reef.machine("ann"));
    let copied = std::process::Command::new("cp").arg("-a").arg(&from).arg(&copy).status().unwrap();
    assert!(copied.success());
    std::fs::rename(copy.join("workers/ann"), copy.join("workers/bob")).unwrap();
    let (code, said) = reef.hire_unheard("bob", "any", &reef.worker, &reef.colony).ended();
    assert_ne!(code, Some(0));
    assert!(said.contains("already works from another home; this home is a copy of that one"), "{said}");
    assert!(said.contains("remove the file `workers/ann/crab`"), "{said}");
    goes.let_go();
    assert_eq!(reef.ended(&mission), DONE);
    assert_eq!(counted(&reef, &mission, "plan"), (1, 1));
    // As a worker of its own it is welcome.
    std::fs::remove_file(copy.join("workers/bob/crab")).unwrap();
    drop(reef.hire("bob", "any"));
}

#[test]
fn a_script_ends_with_its_worker_before_another_is_at_it() {
    let reef = Reef::new("[workers]\nreconnect_seconds = 2\n", None);
    let (begins, goes) = (reef.home.pipe("begins"), reef.home.pipe("goes"));
    let command = format!("command = \"echo begin > {}; cat {}; echo made it\"\n", begins.path(), goes.path());
    reef.workflow("script", &format!("{SCRIPT}{command}"));
    let first = reef.hire("ann", "any");
    let mission = reef.mission("script");
    begins.hear();
    let living = of(&mission);
    first.kill();
    assert!(living.iter().all(|pid| process::lives(*pid)), "for a moment it may come back");
    let _second = reef.hire("bob", "any");
    begins.hear();
    assert!(living.iter().all(|pid| !process::lives(*pid)), "both are at it");
    goes.let_go();
    assert_eq!(reef.ended(&mission), "completed: only completed");
    assert_eq!(reef.look(&mission)["tasks"][0]["summary"], "made it");
    assert_eq!(counted(&reef, &mission, "only"), (2, 1));
}

#[test]
fn a_script_whose_worker_is_back_at_once_runs_once() {
    let reef = Reef::new("", None);
    let (begins, goes) = (reef.home.pipe("begins"), reef.home.pipe("goes"));
    let command = format!("command = \"echo begin > {}; cat {}; echo oh >&2; exit 3\"\n", begins.path(), goes.path());
    reef.workflow("script", &format!("{SCRIPT}{command}"));
    let first = reef.hire("ann", "any");
    let mission = reef.mission("script");
    begins.hear();
    first.kill();
    let _again = reef.hire("ann", "any");
    goes.let_go();
    assert_eq!(reef.ended(&mission), "failed: only failed");
    let seen = reef.look(&mission);
    assert!(seen.to_string().contains("it ended with exit code 3: oh"), "{seen:#}");
    assert_eq!(counted(&reef, &mission, "only"), (1, 0));
}
