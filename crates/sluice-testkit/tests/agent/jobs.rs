//! Without a script the agent does what the prompts ask, for the built-in lifecycles and for those of the documents.

use std::io::Write;
use std::process::Stdio;

use crate::stage::{FRONT, Stage, prompt};

const DEFAULTS: [&str; 2] = ["builtin/default.yml", "tests/seeds/000-default.yml"];
const PERSISTENTS: [&str; 2] = ["builtin/persistent.yml", "tests/seeds/002-persistent.yml"];

#[test]
fn a_worker_of_default_works_hands_over_and_goes() {
    for file in DEFAULTS {
        for name in ["worker", "worker_respawn", "worker_fix", "stuck_fix"] {
            let stage = Stage::new();
            stage.task("working", "\n## Context\nHot.\n\n## Handoff\nDONE: old\n\n## Review\nFAIL\n");
            let ended = stage.run("worker", &[&prompt(file, name)]);
            assert_eq!(ended.status.code(), Some(0), "{file} {name}: {ended:?}");
            assert_eq!(stage.calls(), ["task update --status agent-review"], "{file} {name}");
            assert_eq!(stage.commits("work"), 2);
            let text = stage.task_text();
            assert!(text.starts_with(&FRONT.replace("STATUS", "working")), "{text}");
            assert!(text.contains("\n## Context\nHot.\n\n## Handoff\n\nDONE: a line in demo/t1.md"), "{text}");
            assert!(!text.contains("DONE: old") && text.ends_with("\n## Review\nFAIL\n"), "{text}");
            assert_eq!(stage.git(&stage.work(), &["status", "--porcelain"]), "");
        }
    }
}

#[test]
fn a_worker_of_minimal_hands_over_to_a_person() {
    let stage = Stage::new();
    stage.task("working", "");
    stage.run("worker", &[&prompt("builtin/minimal.yml", "worker")]);
    assert_eq!(stage.calls(), ["task update --status reviewing"]);
}

#[test]
fn a_reviewer_judges_and_changes_nothing_else() {
    for file in DEFAULTS.into_iter().chain(PERSISTENTS) {
        let stage = Stage::new();
        stage.task("agent-review", "\n## Handoff\nDONE: x\n");
        let ended = stage.run("reviewer", &[&prompt(file, "reviewer")]);
        assert_eq!(ended.status.code(), Some(0), "{file}: {ended:?}");
        assert_eq!(stage.calls(), ["task update --status reviewing"]);
        assert_eq!(stage.commits("work"), 1);
        assert!(stage.task_text().contains("\n## Review\n\nVerdict: PASS\n"), "{}", stage.task_text());
    }
}

#[test]
fn a_persistent_worker_plans_works_waits_and_repairs() {
    for file in PERSISTENTS {
        let stage = Stage::new();
        stage.task("planning", "");
        let mut agent = stage.agent("worker", &[&prompt(file, "worker")]).stdin(Stdio::piped()).spawn().unwrap();
        let mut typed = agent.stdin.take().unwrap();
        typed
            .write_all(b"\x1b[200~Review round 1 failed. Read ## Review in TASK.md, fix every finding\x1b[201~\n")
            .unwrap();
        typed.write_all(b"\nhow is it going?\n").unwrap();
        drop(typed);
        let ended = agent.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{file}: {ended:?}");
        assert_eq!(
            stage.calls(),
            ["task update --status working", "task update --status agent-review", "task update --status agent-review"],
            "{file}"
        );
        assert_eq!(stage.commits("work"), 3, "the work and one repair");
        let text = stage.task_text();
        assert!(text.contains("## Plan\n\nAPPROACH: ") && text.contains("## Handoff\n\nDONE: "), "{text}");
        assert!(String::from_utf8_lossy(&ended.stdout).contains("heard: how is it going?"));
    }
}

#[test]
fn a_respawned_persistent_worker_waits_while_its_work_is_judged() {
    let stage = Stage::new();
    stage.task("agent-review", "");
    stage.run("worker", &[&prompt("builtin/persistent.yml", "worker_respawn")]);
    assert_eq!((stage.calls().len(), stage.commits("work")), (0, 1));
}

#[test]
fn an_unclear_task_is_asked_about_and_then_done() {
    let cases = [
        ("builtin/default.yml", "task update --status working"),
        ("tests/seeds/000-default.yml", "task update --status working"),
        ("builtin/persistent.yml", "task update --status planning"),
    ];
    for (file, resumed) in cases {
        let stage = Stage::new();
        stage.task("clarification", "");
        let mut agent = stage.agent("worker", &[&prompt(file, "clarification")]).stdin(Stdio::piped()).spawn().unwrap();
        agent.stdin.take().unwrap().write_all(b"Hotter coffee\n").unwrap();
        let ended = agent.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let calls = stage.calls();
        assert_eq!(&calls[..2], ["task update --summary Hotter coffee", resumed]);
        // The document's prompt ends here; its task moves on when the agent has gone and left its handoff.
        let handed_over = calls.last().unwrap() == "task update --status agent-review";
        assert_eq!(handed_over, file.starts_with("builtin"), "{file}");
        assert!(stage.task_text().contains("## Handoff\n"));
        assert!(stage.task_text().contains("## Questions\n\n1. "));
    }
    // Nobody comes.
    let stage = Stage::new();
    stage.task("clarification", "");
    assert_eq!(stage.run("worker", &[&prompt("builtin/default.yml", "clarification")]).status.code(), Some(0));
    assert_eq!(stage.calls().len(), 0);
}

#[test]
fn a_stuck_persistent_task_waits_for_a_person() {
    for file in PERSISTENTS {
        let stage = Stage::new();
        stage.task("stuck", "");
        let mut agent = stage.agent("worker", &[&prompt(file, "stuck_fix")]).stdin(Stdio::piped()).spawn().unwrap();
        agent.stdin.take().unwrap().write_all(b"go on\n").unwrap();
        agent.wait_with_output().unwrap();
        assert_eq!(stage.calls(), ["task update --status reviewing"], "{file}");
    }
}

#[test]
fn a_refusal_ends_it_with_the_same_exit_status() {
    let stage = Stage::new();
    stage.task("working", "");
    stage.refuse("agent-review");
    let ended = stage.run("worker", &[&prompt("builtin/default.yml", "worker")]);
    assert_eq!(ended.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&ended.stdout).contains("refused: agent-review"));
}

#[test]
fn a_step_of_a_run_answers_like_the_example_in_its_prompt() {
    let stage = Stage::new();
    let words = "# Implement\n\nCommit everything.\n\n```json\n{\"summary\": \"what\", \"result\": \"PASS\"}\n```\n";
    let mut agent = stage.agent("worker", &[]);
    agent.env_remove("SLUICE_TASK").env("SLUICE_RUN", "r1").env("SLUICE_STEP", "implement").stdin(Stdio::piped());
    let mut agent = agent.spawn().unwrap();
    agent.stdin.take().unwrap().write_all(words.as_bytes()).unwrap();
    let ended = agent.wait_with_output().unwrap();
    assert!(
        String::from_utf8_lossy(&ended.stdout).ends_with("```json\n{\"summary\":\"what\",\"result\":\"PASS\"}\n```\n")
    );
    assert_eq!(stage.commits("work"), 2);
    // Who judges commits nothing, and without an example there is still an answer.
    let ended = stage.run("reviewer", &["# Review\nmake no commits"]);
    assert!(String::from_utf8_lossy(&ended.stdout).contains("\"result\":\"PASS\""));
    assert_eq!(stage.commits("work"), 2);
}

#[test]
fn a_prompt_comes_by_word_by_stdin_or_by_file() {
    let stage = Stage::new();
    let file = stage.path("long prompt.md");
    std::fs::write(&file, "demo: say heard").unwrap();
    let path = file.to_str().unwrap();
    let sentence = format!("Read the file {path} to its end. It holds everything you are asked to do; do it.");
    for words in [
        vec!["demo: say heard"],
        vec!["--prompt-file", path],
        vec![sentence.as_str()],
        vec!["--reduced", sentence.as_str()],
    ] {
        let ended = stage.run("worker", &words);
        assert!(String::from_utf8_lossy(&ended.stdout).ends_with("heard\n"), "{words:?}: {ended:?}");
    }
}
