//! Scripts: where they are found, whom they are for, what they say.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::stage::Stage;

fn said(stage: &Stage, role: &str, script: &str) -> (Option<i32>, String) {
    let ended = stage.agent(role, &["prompt"]).env("SLUICE_DEMO", script).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    let text = text.lines().filter(|line| !line.contains(", attempt ")).collect::<Vec<_>>().join("\n");
    (ended.status.code(), text)
}

#[test]
fn crash_once_then_ok_stands_in_the_summary() {
    let stage = Stage::new();
    stage.task("working", "");
    let text = stage
        .task_text()
        .replace("Brew better coffee", "\"Brew. demo: exit 3 twice, then commit \\\"hot\\\"; exit 5\"");
    std::fs::write(stage.work().join("TASK.md"), text).unwrap();
    let codes: Vec<_> = (0..4).map(|_| stage.run("worker", &["prompt"]).status.code().unwrap()).collect();
    assert_eq!(codes, [3, 3, 5, 5]);
    assert_eq!(stage.commits("work"), 3);
    // The reviewer has no part in it and does its job; another task in this worktree is counted by itself.
    assert_eq!(stage.run("reviewer", &["# Review"]).status.code(), Some(0));
    let other = stage.agent("worker", &["prompt"]).env("SLUICE_TASK", "t2").output().unwrap();
    assert_eq!(other.status.code(), Some(3));
}

#[test]
fn lines_in_the_task_are_chains_of_their_own() {
    let stage = Stage::new();
    stage.task("agent-review", "\ndemo: exit 3 once, then say done\ndemo: review fail once, then pass\n");
    assert_eq!(stage.run("worker", &["p"]).status.code(), Some(3));
    assert!(String::from_utf8_lossy(&stage.run("worker", &["p"]).stdout).ends_with("done\n"));
    stage.run("reviewer", &["p"]);
    assert!(stage.task_text().contains("Verdict: FAIL"));
    stage.run("reviewer", &["p"]);
    assert!(stage.task_text().contains("Verdict: PASS") && !stage.task_text().contains("Verdict: FAIL"));
    assert_eq!(stage.calls(), ["task update --status working", "task update --status reviewing"]);
}

#[test]
fn a_block_has_sections_for_roles_and_attempts() {
    let stage = Stage::new();
    let script = "
# the whole story
worker 1: say first
worker 2+: say later
worker 3:
  say \"third; time\"
  json {\"a\": [1, 2], \"b\": \"x; y\"}
any: say somebody
";
    stage.task("working", &format!("\n## Context\n```demo{script}```\n"));
    let run = |role: &str| {
        let text = String::from_utf8(stage.run(role, &["p"]).stdout).unwrap();
        text.lines().skip(1).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(run("worker"), "first");
    assert_eq!(run("worker"), "later");
    assert_eq!(run("worker"), "third; time\n```json\n{\"a\": [1, 2], \"b\": \"x; y\"}\n```");
    assert_eq!(run("worker"), "later");
    assert_eq!(run("planner"), "somebody");
}

#[test]
fn steps_do_what_they_say() {
    let stage = Stage::new();
    stage.task("working", "old\n");
    let script = "edit a/b.md \"hot\\nhotter\"; commit \"brew: hot\"; write Notes \"mine\"; delete a/b.md; git checkout --quiet -- a/b.md; sluice task show $SLUICE_TASK \"two words\"; say bye";
    let (code, text) = said(&stage, "worker", script);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(std::fs::read_to_string(stage.work().join("a/b.md")).unwrap(), "hot\nhotter\n");
    assert_eq!(stage.git(&stage.work(), &["log", "-1", "--format=%an: %s"]), "Demo Agent: brew: hot");
    assert!(stage.task_text().ends_with("old\n\n## Notes\n\nmine\n"));
    assert_eq!(stage.calls(), ["task show t1 two words"]);
}

#[test]
fn refusals_can_be_expected_or_not() {
    let stage = Stage::new();
    stage.refuse("reviewing");
    assert_eq!(said(&stage, "worker", "update reviewing; say on").0, Some(4));
    assert!(said(&stage, "worker", "try update reviewing; say on").1.ends_with("on"));
    assert!(said(&stage, "worker", "refused update reviewing; say on").1.ends_with("on"));
    assert_eq!(said(&stage, "worker", "refused update working; say on").0, Some(9));
}

#[test]
fn a_dropped_token_is_gone_for_what_it_calls() {
    let stage = Stage::new();
    said(&stage, "worker", "update a; drop token; update b; try merge");
    assert_eq!(
        stage.calls(),
        ["task update --status a", "task update --status b token=none", "task merge t1 --local token=none"]
    );
}

#[test]
fn a_file_can_hold_the_script() {
    let stage = Stage::new();
    let path = stage.path("play.demo");
    std::fs::write(&path, "reviewer: say judge\nworker: say work\n").unwrap();
    assert_eq!(said(&stage, "worker", &format!("@{}", path.display())).1, "work");
    let ended = stage.run("reviewer", &["prompt", "--script", path.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&ended.stdout).ends_with("judge\n"));
}

#[test]
fn what_is_not_understood_is_named() {
    let stage = Stage::new();
    for script in ["dance", "update", "exit soon", "print many MB", "crash LOUDLY"] {
        let (code, text) = said(&stage, "worker", script);
        assert_eq!(code, Some(2), "{script}");
        assert!(text.starts_with("demo: I do not "), "{text}");
    }
    assert_eq!(stage.run("worker", &["--frobnicate"]).status.code(), Some(2));
    assert_eq!(said(&stage, "worker", "@/nowhere").0, Some(2));
    assert_eq!(said(&stage, "worker", "write Handoff").1, "demo: there is no TASK.md to write to");
}

#[test]
fn pipes_hold_it_where_a_test_wants_it() {
    let stage = Stage::new();
    let (here, go) = (stage.fifo("here"), stage.fifo("go"));
    let script = format!("tell {}; wait for {}; update done", here.display(), go.display());
    let mut agent = stage.start(&script);
    assert_eq!(std::fs::read_to_string(&here).unwrap(), "worker 1\n");
    assert!(agent.0.try_wait().unwrap().is_none() && stage.calls().is_empty(), "it waits");
    drop(std::fs::OpenOptions::new().write(true).open(&go).unwrap());
    assert_eq!(agent.0.wait().unwrap().code(), Some(0));
    assert_eq!(stage.calls(), ["task update --status done"]);
}

#[test]
fn notifications_are_waited_for() {
    let stage = Stage::new();
    let mut agent = stage
        .agent("worker", &["p"])
        .env("SLUICE_DEMO", "wait for notification; say more; wait for notification; say never")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut typed = agent.stdin.take().unwrap();
    typed.write_all(b"fix it\n").unwrap();
    drop(typed);
    let mut text = String::new();
    agent.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(agent.wait().unwrap().code(), Some(0));
    assert!(text.ends_with("demo: heard: fix it\nmore\n"), "{text}");
}
