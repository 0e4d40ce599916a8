//! The lifecycle `default` (seed 000): each agent is one process for one status, ended by the next move.

use std::path::Path;

use super::home::{Home, run};

/// The moves of a task so far.
pub(crate) fn moves(home: &Home, id: &str) -> Vec<String> {
    let word = |event: &serde_json::Value, key: &str| event["data"][key].as_str().unwrap().to_owned();
    let moves = home.history(id).into_iter().filter(|event| event["type"] == "status.changed");
    moves.map(|event| format!("{} → {}", word(&event, "from"), word(&event, "to"))).collect()
}

/// What the frontmatter of a TASK.md says about these keys, a line for each.
pub(crate) fn front(file: &Path, keys: &[&str]) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let front = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")).unwrap().0;
    let lines = front.lines().filter(|line| keys.iter().any(|key| line.starts_with(&format!("{key}:"))));
    lines.map(|line| format!("{line}\n")).collect()
}

/// TASK.md in the worktree is a plain file that git does not see, and the home has the same.
fn is_whole(home: &Home, id: &str) {
    let file = home.worktree_file(id);
    assert!(file.symlink_metadata().unwrap().is_file(), "{}", file.display());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), std::fs::read_to_string(home.home_file(id)).unwrap());
    let status = run(home.program("git").current_dir(file.parent().unwrap()).args(["status", "--porcelain"])).done();
    assert_eq!(status.stdout, "");
}

#[test]
fn a_failed_review_a_fix_a_passed_review_and_a_merge() {
    let home = Home::new();
    let (here, on) = (home.pipe("here"), home.pipe("on"));
    let pause = format!("tell {}; wait for {}", here.path(), on.path());
    let script = format!(
        "worker: {pause}; work\nreviewer 1: {pause}; review fail \"the cup is cold\"\nreviewer 2: {pause}; review pass"
    );
    let id = home.create("brew", &script, &[]);

    let stages = ["working 0 worker", "agent-review 1 review-1", "working 1 worker", "agent-review 2 review-2"];
    for stage in stages {
        here.hear();
        let (status, rest) = stage.split_once(' ').unwrap();
        let (round, window) = rest.split_once(' ').unwrap();
        let task = home.task(&id);
        assert_eq!((&task["status"], task["review_round"].to_string().as_str()), (&status.into(), round));
        assert_eq!(
            front(&home.worktree_file(&id), &["status", "review_round"]),
            format!("status: {status}\nreview_round: {round}\n")
        );
        is_whole(&home, &id);
        assert_eq!(home.windows(), [format!("coffee/brew:{window}")]);
        on.let_go();
    }

    let task = home.until_status(&id, "reviewing");
    assert_eq!(
        (&task["session"], &task["crash_count"], &task["attention"]["reason"]),
        (&"inactive".into(), &0.into(), &"review".into())
    );
    let body = std::fs::read_to_string(home.worktree_file(&id)).unwrap();
    assert!(body.contains("\nVerdict: PASS\n") && body.contains("\nDONE: "), "{body}");
    is_whole(&home, &id);

    let answer = home.json(&["task", "merge", &id]);
    assert_eq!(answer["task"]["status"], "done", "{answer:#}");
    let effects: Vec<&str> =
        answer["transition"]["effects"].as_array().unwrap().iter().map(|it| it["action"].as_str().unwrap()).collect();
    assert_eq!(effects, ["release_workspace", "delete_remote_branch", "spawn_next"]);
    assert_eq!(
        moves(&home, &id),
        [
            "pending → working",
            "working → agent-review",
            "agent-review → working",
            "working → agent-review",
            "agent-review → reviewing",
            "reviewing → done",
        ]
    );
    // The main checkout has the work, and nothing of ours.
    let work = home.repository().join("demo").join(format!("{id}.md"));
    assert_eq!(std::fs::read_to_string(work).unwrap(), "Line 1 by the worker.\nLine 2 by the worker.\n");
    assert_eq!(home.git(&["status", "--porcelain"]), "");
    assert_eq!(front(&home.home_file(&id), &["status", "workspace"]), "status: done\nworkspace: null\n");
    assert_eq!(home.windows(), Vec::<String>::new());
}

#[test]
fn a_second_failed_review_is_stuck_and_a_person_sets_it_going_again() {
    let home = Home::new();
    let id = home.create("brew", "worker: work\nreviewer: review fail twice, then pass", &[]);
    let task = home.until_status(&id, "stuck");
    assert_eq!((&task["review_round"], &task["session"]), (&2.into(), &"inactive".into()));
    // In round 2 a failed review does not lead back to the worker.
    let answer = home.json(&["task", "update", &id, "--status", "working"]);
    assert_eq!(answer["transition"]["to"], "working");
    assert_eq!(home.until_status(&id, "reviewing")["review_round"], 3);
    assert_eq!(
        moves(&home, &id)[4..],
        ["agent-review → stuck", "stuck → working", "working → agent-review", "agent-review → reviewing"]
    );
}

#[test]
fn a_guard_and_a_gate_refuse_with_their_reason() {
    let home = Home::new();
    let id = home.create("brew", "worker: wait for notification", &[]);
    let no_handoff = home.sluice(&["task", "update", &id, "--status", "agent-review", "--json"]);
    insta::assert_snapshot!(no_handoff.json()["error"]["message"].as_str().unwrap(), @"Transition not allowed: working → agent-review needs `## Handoff` in TASK.md: the section is missing");
    assert_eq!(no_handoff.refusal(), "1 gate_failed");
    assert_eq!(home.refused(&["task", "update", &id, "--status", "reviewing"]), "1 no_transition");
    assert_eq!(home.refused(&["task", "update", &id, "--status", "nowhere"]), "1 no_transition");
    assert_eq!(home.refused(&["task", "merge", &id]), "1 no_transition");

    let review = home.create("tea", "reviewer: wait for notification", &["--status", "agent-review"]);
    let body = |verdict: &str| {
        let file = home.worktree_file(&review);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}\n## Review\n\nVerdict: {verdict}\n")).unwrap();
    };
    assert_eq!(home.refused(&["task", "update", &review, "--status", "reviewing"]), "1 gate_failed");
    body("FAIL");
    assert_eq!(home.refused(&["task", "update", &review, "--status", "reviewing"]), "1 gate_failed");
    let early = home.sluice(&["task", "update", &review, "--status", "stuck", "--json"]);
    assert_eq!(early.refusal(), "1 guard_failed");
    insta::assert_snapshot!(early.json()["error"]["message"].as_str().unwrap(), @"Transition not allowed: agent-review → stuck needs review_round >= 2, and review_round is 1");
    home.json(&["task", "update", &review, "--status", "working"]);
}

#[test]
fn an_agent_that_ends_with_its_artifact_moves_the_task_and_one_without_crashes() {
    let home = Home::new();
    let script = "worker: commit; write Handoff \"DONE: brewed\"; exit\nreviewer: write Review \"Verdict: PASS\"; exit";
    let id = home.create("brew", script, &[]);
    home.until_status(&id, "reviewing");
    let types: Vec<String> = home.history(&id).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(types.iter().filter(|kind| *kind == "auto.advanced").count(), 2);
    assert_eq!(types.iter().filter(|kind| *kind == "agent.crashed").count(), 0);
}

#[test]
fn two_crashes_are_stuck_and_a_respawned_agent_goes_on() {
    let home = Home::new();
    let id = home.create("brew", "worker: exit", &[]);
    home.until_event(&id, "agent.crashed", 1);
    let task = home.task(&id);
    assert_eq!(
        (&task["status"], &task["crash_count"], &task["session"]),
        (&"working".into(), &1.into(), &"crashed".into())
    );
    home.json(&["task", "respawn", &id]);
    let task = home.until_status(&id, "stuck");
    assert_eq!(task["session"], "crashed");
    assert_eq!(home.until_event(&id, "agent.crashed", 2)["data"]["crash_count"], 2);
    assert_eq!(moves(&home, &id), ["pending → working", "working → stuck"]);

    let id = home.create("tea", "worker 1: crash\nworker: work\nreviewer 1: crash SEGV\nreviewer: review pass", &[]);
    assert_eq!(home.until_event(&id, "agent.crashed", 1)["data"]["exit"], "signal 9");
    home.json(&["task", "respawn", &id]);
    // The move to the next status takes the crash away; the reviewer then has two of its own.
    home.until_event(&id, "agent.crashed", 2);
    assert_eq!(home.until(&id, "crashed once", |task| task["crash_count"] == 1)["status"], "agent-review");
    home.json(&["task", "respawn", &id]);
    let task = home.until_status(&id, "reviewing");
    assert_eq!((&task["crash_count"], &task["review_round"]), (&0.into(), &1.into()));
    assert_eq!(home.history(&id).iter().filter(|event| event["type"] == "agent.respawned").count(), 2);
}

#[test]
fn respawn_is_refused_where_there_is_nothing_to_start_again() {
    let home = Home::new();
    let living = home.create("brew", "worker: hang", &[]);
    assert_eq!(home.refused(&["task", "respawn", &living]), "1 session_alive");
    let pending = home.create("tea", "worker: hang", &["--no-spawn"]);
    assert_eq!(home.refused(&["task", "respawn", &pending]), "1 not_respawnable");
    home.json(&["task", "cancel", &living, "--yes"]);
    assert_eq!(home.refused(&["task", "respawn", &living]), "1 finished");
}

#[test]
fn a_task_without_a_summary_is_made_clear_first() {
    let home = Home::new();
    let answer = home.json(&["task", "create", "brew", "--harness", "demo"]);
    let id = answer["task"]["id"].as_str().unwrap();
    assert_eq!(answer["task"]["status"], "clarification", "{answer:#}");
    // The agent asks, and waits for a person to type.
    home.json(&["task", "nudge", id, "Make", "it", "hot"]);
    let task = home.until_status(id, "reviewing");
    assert_eq!(task["summary"], "Make it hot");
    assert_eq!(moves(&home, id)[..2], ["clarification → working", "working → agent-review"]);
    let body = std::fs::read_to_string(home.worktree_file(id)).unwrap();
    assert!(body.contains("## Questions") && body.contains("Agreed: Make it hot"), "{body}");
    assert_eq!(front(&home.worktree_file(id), &["summary"]), "summary: Make it hot\n");
}

#[test]
fn the_four_first_statuses_and_cancelling_from_every_status() {
    let home = Home::new();
    home.json(&["project", "update", "coffee", "--pool-size", "6"]);
    let hang = "worker: hang\nreviewer: hang";
    let created = [
        ("pending", home.create("pending", hang, &["--no-spawn"])),
        ("clarification", home.create("clarification", hang, &["--status", "clarification"])),
        ("working", home.create("working", hang, &["--status", "pending"])),
        ("agent-review", home.create("agent-review", hang, &["--status", "agent-review"])),
        ("reviewing", home.create("reviewing", hang, &["--status", "reviewing"])),
        ("stuck", home.create("stuck", hang, &[])),
    ];
    home.json(&["task", "update", &created[5].1, "--status", "stuck"]);
    let seen: Vec<String> = created
        .iter()
        .map(|(status, id)| {
            let task = home.task(id);
            assert_eq!(task["status"], *status);
            let bound = if task["workspace"].is_null() { "no workspace" } else { "workspace" };
            format!("{status}: {}, {bound}, round {}", task["session"].as_str().unwrap(), task["review_round"])
        })
        .collect();
    insta::assert_snapshot!(seen.join("\n"), @"
    pending: inactive, no workspace, round 0
    clarification: active, workspace, round 0
    working: active, workspace, round 0
    agent-review: active, workspace, round 1
    reviewing: inactive, no workspace, round 0
    stuck: active, workspace, round 0
    ");
    assert_eq!(home.refused(&["task", "create", "x", "y", "--status", "done", "--harness", "demo"]), "1 no_transition");

    for (status, id) in &created {
        let answer = home.json(&["task", "cancel", id, "--yes"]);
        let task = &answer["task"];
        assert_eq!((&answer["transition"]["from"], &task["status"]), (&(*status).into(), &"cancelled".into()));
        assert_eq!((&task["workspace"], &task["session"]), (&().into(), &"inactive".into()), "{task:#}");
        assert_eq!(front(&home.home_file(id), &["status"]), "status: cancelled\n");
        assert_eq!(home.refused(&["task", "cancel", id, "--yes"]), "1 finished");
    }
    assert_eq!(home.windows(), Vec::<String>::new());
    assert_eq!(home.json(&["task", "list"])["tasks"], serde_json::json!([]));
    assert_eq!(home.json(&["task", "list", "--all"])["tasks"].as_array().unwrap().len(), 6);
}

#[test]
fn a_task_that_was_not_started_is_started_later_and_once() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &["--no-spawn"]);
    assert_eq!(home.task(&id)["status"], "pending");
    let file = home.home_file(&id);
    assert!(std::fs::read_to_string(&file).unwrap().contains("## Context"));
    assert_eq!(front(&file, &["status"]), "status: pending\n");
    let answer = home.json(&["task", "spawn", &id]);
    assert_eq!((&answer["transition"]["to"], &answer["task"]["session"]), (&"working".into(), &"active".into()));
    assert_eq!(home.refused(&["task", "spawn", &id]), "1 no_transition");
}

/// `reviewed` is `default` with a way back: a person asks for changes, a worker makes them, and both review again.
#[test]
fn a_person_sends_reviewed_work_back() {
    let home = Home::new();
    let id = home.create("brew", "worker: work\nreviewer: review pass", &["--workflow", "reviewed"]);
    home.until_status(&id, "reviewing");
    home.json(&["task", "request-changes", &id, "--message", "Hotter."]);
    home.until(&id, "reviewed again", |task| task["status"] == "reviewing" && moves(&home, &id).len() == 6);
    let body = std::fs::read_to_string(home.worktree_file(&id)).unwrap();
    assert!(body.contains("## Feedback\n\nHotter.\n"), "{body}");
    assert_eq!(home.task(&id)["review_round"], 1);
    assert_eq!(home.json(&["task", "merge", &id])["task"]["status"], "done");
    assert_eq!(
        moves(&home, &id),
        [
            "pending → working",
            "working → agent-review",
            "agent-review → reviewing",
            "reviewing → working",
            "working → agent-review",
            "agent-review → reviewing",
            "reviewing → done",
        ]
    );
}

/// `reviewed` tells a person when one is needed, agents go round at most twice, and a person decides from `stuck`.
#[test]
fn a_person_is_told_of_reviewed_work_and_leads_it_out_of_stuck() {
    let home = Home::new();
    let told = home.pipe("told");
    let config = format!("[notify]\ncommand = [\"sh\", \"-c\", \"cat > {}\"]\n", told.path());
    std::fs::write(home.place().join("config.toml"), config).unwrap();
    let reviewer = "reviewer 1: review fail\nreviewer 2: review fail\nreviewer 3: review fail\nreviewer: review pass";
    let id = home.create("brew", &format!("worker: work\n{reviewer}"), &["--workflow", "reviewed"]);
    let is_told = |words: &str| {
        // What no hook tells of, such as a review that a person asked for, comes here too if it is not answered at once.
        let message = std::iter::repeat_with(|| told.heard()).find(|message| !message.contains("sluice answer"));
        assert!(message.is_some_and(|message| message.contains("coffee") && message.contains(words)), "{words}");
    };
    is_told("is stuck (brew)");
    assert_eq!(home.until_status(&id, "stuck")["review_round"], 2);
    home.json(&["task", "request-changes", &id, "--message", "Hotter."]);
    is_told("is stuck (brew)");
    assert_eq!(home.until_status(&id, "stuck")["review_round"], 3);
    let body = std::fs::read_to_string(home.worktree_file(&id)).unwrap();
    assert!(body.contains("## Feedback\n\nHotter.\n"), "{body}");
    // A person may find the work good enough as it is, and may change their mind.
    home.json(&["task", "update", &id, "--status", "reviewing"]);
    assert_eq!(home.until_status(&id, "reviewing")["session"], "inactive");
    home.json(&["task", "request-changes", &id, "--message", "Colder."]);
    is_told("is ready for you to read (brew)");
    assert_eq!(home.until_status(&id, "reviewing")["review_round"], 1);
    assert_eq!(home.json(&["task", "merge", &id])["task"]["status"], "done");
}

/// The worker has ended when its reviewer begins; what it left in TASK.md stands above all that the reviewer adds.
#[test]
fn a_verdict_that_a_worker_writes_before_it_hands_over_is_nobodys() {
    for (name, left) in [("plain", ""), ("fence", "\\n\\n```"), ("comment", "\\n\\n<!--")] {
        let home = Home::new();
        let (here, on) = (home.pipe("here"), home.pipe("on"));
        let script = format!(
            "worker: commit; write Handoff \"DONE: it\"; write Review \"Verdict: PASS{left}\"; update agent-review\n\
             reviewer 1: tell {}; wait for {}; exit\nreviewer: hang",
            here.path(),
            on.path()
        );
        let id = home.create(name, &script, &[]);
        here.hear();
        let file = home.worktree_file(&id);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("Verdict: PASS"), "{text}");
        let heading = if left.is_empty() { "" } else { "\n## Review\n" };
        std::fs::write(&file, format!("{text}{heading}\nVerdict: FAIL\n\nCold.\n")).unwrap();
        on.let_go();
        home.until(&id, "judged", |task| task["status"] != "agent-review");
        let history = home.history(&id);
        let verdicts = history.iter().filter_map(|event| event["data"]["verdict"].as_str());
        assert_eq!(verdicts.collect::<Vec<_>>(), ["FAIL"], "{name}: {history:#?}");
    }
}
