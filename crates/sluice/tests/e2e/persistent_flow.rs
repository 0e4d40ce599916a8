//! The lifecycle `persistent` (seed 002): one worker from the plan to the merge, a reviewer beside it each round.

use super::default_flow::{front, moves};
use super::home::Home;
use super::merges::sh;

const STATES: [&str; 9] =
    ["pending", "planning", "clarification", "working", "agent-review", "reviewing", "stuck", "done", "cancelled"];
const WORKFLOW: [&str; 2] = ["--workflow", "persistent"];
/// It reads what is typed, and nothing else.
const LISTENS: &str =
    "worker: wait for notification; wait for notification; wait for notification; hang\nreviewer: hang";

/// Appends to TASK.md in the worktree, as a person might.
fn append(home: &Home, id: &str, text: &str) {
    let file = home.worktree_file(id);
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{before}\n{text}\n")).unwrap();
}

/// What is said to moving the task to each of these states, a line for each.
fn tried<'a>(home: &Home, id: &str, states: impl IntoIterator<Item = &'a str>) -> String {
    let from = home.task(id)["status"].as_str().unwrap().to_owned();
    let lines = states.into_iter().map(|to| {
        let said = home.refused(&["task", "update", id, "--status", to]);
        format!("{from} → {to}: {said}\n")
    });
    lines.collect()
}

fn go(home: &Home, id: &str, to: &str) {
    let answer = home.json(&["task", "update", id, "--status", to]);
    assert_eq!(answer["transition"]["to"], to);
    let failed: Vec<_> =
        answer["transition"]["effects"].as_array().unwrap().iter().filter(|it| !it["error"].is_null()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

fn session_ids(home: &Home, id: &str, kind: &str) -> Vec<String> {
    let events = home.history(id).into_iter().filter(|event| event["type"] == kind);
    events.map(|event| event["data"]["session"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_worker_lives_on_and_is_told_and_the_reviewer_has_a_window_of_its_own() {
    let home = Home::new();
    let (here, on) = (home.pipe("here"), home.pipe("on"));
    let pause = format!("tell {}; wait for {}", here.path(), on.path());
    let script = format!(
        "worker: work\nreviewer 1: {pause}; review fail\nreviewer 2: {pause}; review pass\nreviewer: review pass"
    );
    let id = home.create("brew", &script, &WORKFLOW);

    here.hear();
    assert_eq!(home.windows(), ["coffee/brew:review-1", "coffee/brew:worker"]);
    let task = home.task(&id);
    assert_eq!((&task["status"], &task["tmux_session"]), (&"agent-review".into(), &"coffee/brew".into()));
    on.let_go();
    // The worker was told of the failed review, mended the work and handed over again: it is the same session.
    here.hear();
    assert_eq!(home.windows(), ["coffee/brew:review-2", "coffee/brew:worker"]);
    on.let_go();
    home.until_status(&id, "reviewing");
    assert_eq!(home.windows(), ["coffee/brew:worker"]);
    assert_eq!(session_ids(&home, &id, "agent.spawned"), ["s1", "s2", "s3"]);
    assert_eq!(session_ids(&home, &id, "session.ended"), ["s2", "s3"]);

    // A person wants changes.
    let answer = home.json(&["task", "request-changes", &id, "--message", "Hotter.\nMuch hotter."]);
    assert_eq!((&answer["transition"]["from"], &answer["transition"]["to"]), (&"reviewing".into(), &"working".into()));
    // Reviewer 3 passes it without a pause.
    here_pass(&home, &id);
    let body = std::fs::read_to_string(home.worktree_file(&id)).unwrap();
    assert!(body.contains("## Feedback\n\nHotter.\nMuch hotter.\n"), "{body}");

    let answer = home.json(&["task", "merge", &id]);
    assert_eq!(answer["task"]["status"], "done");
    assert_eq!(home.windows(), Vec::<String>::new());
    assert_eq!(session_ids(&home, &id, "agent.spawned").len(), 4);
    assert_eq!(
        moves(&home, &id),
        [
            "pending → planning",
            "planning → working",
            "working → agent-review",
            "agent-review → working",
            "working → agent-review",
            "agent-review → reviewing",
            "reviewing → working",
            "working → agent-review",
            "agent-review → reviewing",
            "reviewing → done",
        ]
    );
}

/// Waits until the third review has passed.
fn here_pass(home: &Home, id: &str) {
    home.until(id, "reviewed three times", |task| task["review_round"] == 3 && task["status"] == "reviewing");
    home.until_status(id, "reviewing");
}

#[test]
fn every_row_of_the_table_and_every_move_that_is_not_in_it() {
    let home = Home::new();
    let id = home.create("brew", LISTENS, &[&WORKFLOW[..], &["--no-spawn"]].concat());
    let mut refusals = String::new();
    let but = |ways: &[&str]| -> Vec<&str> { STATES.into_iter().filter(|state| !ways.contains(state)).collect() };

    refusals += &tried(&home, &id, but(&["planning", "cancelled"]));
    go(&home, &id, "planning");
    refusals += &tried(&home, &id, but(&["clarification", "cancelled"]));
    go(&home, &id, "clarification");
    refusals += &tried(&home, &id, but(&["planning", "cancelled"]));
    go(&home, &id, "planning");
    append(&home, &id, "## Plan\n\nAPPROACH: heat");
    go(&home, &id, "working");
    refusals += &tried(&home, &id, but(&["clarification", "stuck", "cancelled"]));
    go(&home, &id, "clarification");
    go(&home, &id, "planning");
    go(&home, &id, "working");
    append(&home, &id, "## Handoff\n\nDONE: heated");
    let heat = "echo hot > cup; git add cup; git commit -qm heat";
    sh(&home, home.worktree_file(&id).parent().unwrap(), heat);
    go(&home, &id, "agent-review");
    refusals += &tried(&home, &id, but(&["cancelled"]));
    append(&home, &id, "## Review\n\nVerdict: FAIL\n\nCold.");
    go(&home, &id, "working");
    go(&home, &id, "agent-review");
    // The old verdict is of another round.
    refusals += "round 2\n";
    refusals += &tried(&home, &id, but(&["cancelled"]));
    append(&home, &id, "## Review\n\nVerdict: PASS\n\nHot.");
    go(&home, &id, "reviewing");
    refusals += &tried(&home, &id, but(&["working", "done", "cancelled"]));
    go(&home, &id, "working");
    go(&home, &id, "agent-review");
    append(&home, &id, "## Review\n\nVerdict: FAIL\n\nToo hot.");
    go(&home, &id, "stuck");
    refusals += &tried(&home, &id, but(&["reviewing", "cancelled"]));
    go(&home, &id, "reviewing");
    assert_eq!(home.refused(&["task", "merge", &id]), "1 failed_verdict");
    assert_eq!(home.json(&["task", "merge", &id, "--force"])["task"]["status"], "done");
    refusals += &tried(&home, &id, STATES);
    let given_up = home.create("tea", LISTENS, &[&WORKFLOW[..], &["--no-spawn"]].concat());
    go(&home, &given_up, "cancelled");
    refusals += &tried(&home, &given_up, STATES);
    insta::assert_snapshot!(refusals, @"
    pending → pending: 1 no_transition
    pending → clarification: 1 no_transition
    pending → working: 1 no_transition
    pending → agent-review: 1 no_transition
    pending → reviewing: 1 no_transition
    pending → stuck: 1 no_transition
    pending → done: 1 no_transition
    planning → pending: 1 no_transition
    planning → planning: 1 no_transition
    planning → working: 1 gate_failed
    planning → agent-review: 1 no_transition
    planning → reviewing: 1 no_transition
    planning → stuck: 1 no_transition
    planning → done: 1 no_transition
    clarification → pending: 1 no_transition
    clarification → clarification: 1 no_transition
    clarification → working: 1 no_transition
    clarification → agent-review: 1 no_transition
    clarification → reviewing: 1 no_transition
    clarification → stuck: 1 no_transition
    clarification → done: 1 no_transition
    working → pending: 1 no_transition
    working → planning: 1 no_transition
    working → working: 1 no_transition
    working → agent-review: 1 gate_failed
    working → reviewing: 1 no_transition
    working → done: 1 no_transition
    agent-review → pending: 1 no_transition
    agent-review → planning: 1 no_transition
    agent-review → clarification: 1 no_transition
    agent-review → working: 1 gate_failed
    agent-review → agent-review: 1 no_transition
    agent-review → reviewing: 1 gate_failed
    agent-review → stuck: 1 guard_failed
    agent-review → done: 1 no_transition
    round 2
    agent-review → pending: 1 no_transition
    agent-review → planning: 1 no_transition
    agent-review → clarification: 1 no_transition
    agent-review → working: 1 guard_failed
    agent-review → agent-review: 1 no_transition
    agent-review → reviewing: 1 gate_failed
    agent-review → stuck: 1 gate_failed
    agent-review → done: 1 no_transition
    reviewing → pending: 1 no_transition
    reviewing → planning: 1 no_transition
    reviewing → clarification: 1 no_transition
    reviewing → agent-review: 1 no_transition
    reviewing → reviewing: 1 no_transition
    reviewing → stuck: 1 no_transition
    stuck → pending: 1 no_transition
    stuck → planning: 1 no_transition
    stuck → clarification: 1 no_transition
    stuck → working: 1 no_transition
    stuck → agent-review: 1 no_transition
    stuck → stuck: 1 no_transition
    stuck → done: 1 no_transition
    done → pending: 1 finished
    done → planning: 1 finished
    done → clarification: 1 finished
    done → working: 1 finished
    done → agent-review: 1 finished
    done → reviewing: 1 finished
    done → stuck: 1 finished
    done → done: 1 finished
    done → cancelled: 1 finished
    cancelled → pending: 1 finished
    cancelled → planning: 1 finished
    cancelled → clarification: 1 finished
    cancelled → working: 1 finished
    cancelled → agent-review: 1 finished
    cancelled → reviewing: 1 finished
    cancelled → stuck: 1 finished
    cancelled → done: 1 finished
    cancelled → cancelled: 1 finished
    ");
}

#[test]
fn cancelling_and_getting_stuck_from_everywhere() {
    let home = Home::new();
    home.json(&["project", "update", "coffee", "--pool-size", "6"]);
    let create = |branch: &str| home.create(branch, LISTENS, &WORKFLOW);
    let ids = ["planning", "clarification", "working", "agent-review", "reviewing", "stuck"]
        .map(|state| (state, create(state)));
    for (state, id) in &ids {
        match *state {
            "planning" => {}
            "clarification" => go(&home, id, "clarification"),
            further => {
                append(&home, id, "## Plan\n\nTOUCHING: the pot");
                go(&home, id, "working");
                append(&home, id, "## Handoff\n\nREMAINING: nothing");
                match further {
                    "working" => {}
                    "stuck" => go(&home, id, "stuck"),
                    reviewed => {
                        go(&home, id, "agent-review");
                        if reviewed == "reviewing" {
                            append(&home, id, "## Review\n\nverdict: pass");
                            go(&home, id, "reviewing");
                        }
                    }
                }
            }
        }
    }
    for (state, id) in &ids {
        let answer = home.json(&["task", "cancel", id, "--yes"]);
        assert_eq!(
            (&answer["transition"]["from"], &answer["transition"]["to"]),
            (&(*state).into(), &"cancelled".into())
        );
        assert_eq!((&answer["task"]["workspace"], &answer["task"]["session"]), (&().into(), &"inactive".into()));
    }
    assert_eq!(home.windows(), Vec::<String>::new());
}

#[test]
fn whoever_gets_stuck_gets_an_agent_that_talks_with_a_person() {
    let home = Home::new();
    let id = home.create("brew", "worker 1: work\nreviewer: review fail", &WORKFLOW);
    // worker 2 is the one that `stuck` starts: it does its usual job, which is to ask and wait.
    home.until_status(&id, "stuck");
    let task = home.until(&id, "attended", |task| task["session"] == "active");
    assert_eq!((&task["review_round"], &task["status"]), (&2.into(), &"stuck".into()));
    assert_eq!(home.windows(), ["coffee/brew:worker"]);
    home.json(&["task", "nudge", &id, "heat it"]);
    home.until_status(&id, "reviewing");
    // Nobody has reviewed what was made of it with the person, who now says so.
    assert_eq!(home.refused(&["task", "merge", &id]), "1 stale_verdict");
    assert_eq!(home.json(&["task", "merge", &id, "--force"])["task"]["status"], "done");
}

#[test]
fn a_reviewer_that_crashes_is_started_again_and_twice_is_stuck() {
    let home = Home::new();
    let id = home.create("brew", "worker: work\nreviewer 1: crash\nreviewer: review pass", &WORKFLOW);
    home.until_status(&id, "reviewing");
    assert_eq!(session_ids(&home, &id, "agent.crashed").len(), 1);
    assert_eq!(session_ids(&home, &id, "agent.respawned").len(), 1);
    assert_eq!(home.windows(), ["coffee/brew:worker"]);

    let id = home.create("tea", "worker: work\nreviewer: crash", &WORKFLOW);
    home.until_status(&id, "stuck");
    assert_eq!(session_ids(&home, &id, "agent.crashed").len(), 2);
    assert_eq!(moves(&home, &id).last().unwrap(), "agent-review → stuck");
}

/// The worker lives beside its reviewer, and both can write into TASK.md.
#[test]
fn a_worker_that_turns_fail_into_pass_gains_nothing() {
    let home = Home::new();
    let (here, on) = (home.pipe("here"), home.pipe("on"));
    let pause = format!("tell {}; wait for {}", here.path(), on.path());
    let script = format!(
        "worker: work\n\
         reviewer 1: write Review \"Verdict: FAIL\\n\\nCold.\"; {pause}; refused update working; exit\n\
         reviewer 2: {pause}; review fail\nreviewer: hang"
    );
    let id = home.create("brew", &script, &WORKFLOW);
    here.hear();
    let file = home.worktree_file(&id);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("Verdict: FAIL"), "{text}");
    std::fs::write(&file, text.replace("Verdict: FAIL", "Verdict: PASS")).unwrap();
    on.let_go();

    home.until_event(&id, "session.exited", 1);
    let history = home.history(&id);
    let told = |kind: &str| history.iter().find(|event| event["type"] == kind).map(|event| event["data"].clone());
    assert_eq!(told("auto.advanced"), None);
    let refused = told("verdict.refused").unwrap();
    assert_eq!((&refused["asked"], &refused["found"]), (&"FAIL".into(), &"PASS".into()));
    // Another reviewer is started, which says its verdict itself.
    here.hear();
    let task = home.task(&id);
    assert_eq!((&task["status"], &task["crash_count"]), (&"agent-review".into(), &1.into()));
    let attention = task["attention"]["text"].as_str().unwrap();
    assert!(attention.starts_with("TASK.md says PASS, and the reviewer asked for FAIL"), "{attention}");
    on.let_go();
    home.until(&id, "reviewed again", |task| task["review_round"] == 2);
    assert_eq!(moves(&home, &id)[2..4], ["working → agent-review", "agent-review → working"]);
}

/// A verdict is for what the reviewer was handed, and not for what the worker beside it commits before it is said.
#[test]
fn what_a_worker_commits_beside_its_reviewer_is_not_judged() {
    let home = Home::new();
    let (here, on) = (home.pipe("here"), home.pipe("on"));
    let script = format!("worker: work\nreviewer: tell {}; wait for {}; review pass", here.path(), on.path());
    let id = home.create("brew", &script, &WORKFLOW);
    here.hear();
    let folder = std::path::PathBuf::from(home.task(&id)["workspace"].as_str().unwrap());
    let handed = sh(&home, &folder, "git rev-parse HEAD");
    sh(&home, &folder, "echo evil > evil; git add evil; git commit -qm evil");
    on.let_go();
    home.until_status(&id, "reviewing");
    let history = home.history(&id);
    let judged = history.iter().rfind(|event| event["data"]["verdict"] == "PASS").unwrap();
    assert_eq!(judged["data"]["commit"], handed.as_str());
    assert_eq!(home.refused(&["task", "merge", &id]), "1 stale_verdict");
    sh(&home, &folder, "git reset -q --hard HEAD^");
    home.json(&["task", "merge", &id]);
    assert_eq!(home.git(&["rev-parse", "main"]), handed);
}

#[test]
fn where_no_worker_lives_a_new_one_is_started_instead_of_being_told() {
    let home = Home::new();
    let script = "worker 1: write Plan \"APPROACH: heat\"; update working; commit; write Handoff \"DONE: x\"; update agent-review; exit\n\
                  worker: work\nreviewer: review fail once, then pass";
    let id = home.create("brew", script, &WORKFLOW);
    home.until(&id, "reviewed", |task| task["status"] == "reviewing" && task["review_round"] == 2);
    let prompts: Vec<_> = home.history(&id).into_iter().filter(|event| event["type"] == "agent.respawned").collect();
    assert_eq!(prompts.len(), 1, "{prompts:#?}");
    assert_eq!(front(&home.worktree_file(&id), &["crash_count"]), "crash_count: 0\n");
}

#[test]
fn a_worker_that_crashes_twice_while_planning_is_stuck() {
    let home = Home::new();
    let id = home.create("brew", "worker 1: crash\nworker 2: crash\nworker 3: hang", &WORKFLOW);
    home.until_event(&id, "agent.crashed", 1);
    home.json(&["task", "respawn", &id]);
    home.until_status(&id, "stuck");
    assert_eq!(moves(&home, &id), ["pending → planning", "planning → stuck"]);
    assert_eq!(home.until(&id, "attended", |task| task["session"] == "active")["status"], "stuck");
}
