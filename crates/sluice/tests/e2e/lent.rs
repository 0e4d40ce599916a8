//! Worktrees that are lent on: a task that waits for a person leaves its worktree to the next, and takes one up again on the
//! same commit. Nothing is taken from under an agent, or from a tree that is not as its last commit.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use serde_json::Value;

use super::home::{Home, LONG, Pipe};
use super::merges::sh;

const PASSES: &str = "worker: work\nreviewer: review pass";
const REVIEWED: [&str; 2] = ["--workflow", "reviewed"];

/// A home with one worktree.
fn narrow() -> Home {
    let home = Home::new();
    home.json(&["project", "update", "coffee", "--pool-size", "1"]);
    home
}

/// A task that waits for a person, and its worktree.
fn waits(home: &Home, branch: &str, script: &str, more: &[&str]) -> (String, PathBuf) {
    let id = home.create(branch, script, more);
    let task = home.until_status(&id, "reviewing");
    (id, PathBuf::from(task["workspace"].as_str().unwrap()))
}

#[track_caller]
fn is_in(home: &Home, id: &str, workspace: &Path) {
    let task = home.until(id, "begun", |task| task["session"] == "active");
    assert_eq!((&task["workspace"], &task["attention"]), (&workspace.to_str().into(), &Value::Null), "{task:#}");
}

#[track_caller]
fn is_lent(home: &Home, id: &str, workspace: &Path, commit: &str) {
    let task = home.task(id);
    assert_eq!((&task["workspace"], &task["attention"]["reason"]), (&Value::Null, &"review".into()), "{task:#}");
    assert_eq!(task["lent"], serde_json::json!({ "workspace": workspace.to_str(), "commit": commit }), "{task:#}");
}

#[test]
fn a_task_that_waits_for_a_person_leaves_its_worktree_to_the_next_and_is_merged_without_one() {
    let home = narrow();
    let (first, workspace) = waits(&home, "first", PASSES, &[]);
    let commit = home.git(&["rev-parse", "first"]);
    let second = home.create("second", "worker: hang", &[]);
    is_in(&home, &second, &workspace);
    is_lent(&home, &first, &workspace, &commit);
    let lent = home.until_event(&first, "workspace.lent", 1);
    assert_eq!((&lent["data"]["branch"], &lent["data"]["commit"]), (&"first".into(), &commit.as_str().into()));
    let shown = home.sluice(&["task", "show", &first]).done().stdout;
    assert!(shown.contains("takes one up again when it moves"), "{shown}");
    // Its file is the home's, and the other task has its own.
    let body = std::fs::read_to_string(home.home_file(&first)).unwrap();
    assert!(body.contains("## Review") && body.contains("\nworkspace: null\n"), "{body}");
    let other = std::fs::read_to_string(workspace.join("TASK.md")).unwrap();
    assert!(other.contains(second.as_str()), "{other}");
    let merged = home.json(&["task", "merge", &first]);
    assert_eq!((&merged["task"]["status"], &merged["task"]["lent"]), (&"done".into(), &Value::Null));
    assert_eq!(home.git(&["rev-parse", "main"]), commit);
    is_in(&home, &second, &workspace);
}

#[test]
fn changes_wait_in_line_for_a_worktree_and_go_on_where_the_work_was() {
    let home = narrow();
    let (here, on) = (home.pipe("here"), home.pipe("on"));
    let script =
        format!("worker 1: work\nworker: tell {}; wait for {}; work\nreviewer: review pass", here.path(), on.path());
    let (first, workspace) = waits(&home, "first", &script, &REVIEWED);
    let commit = home.git(&["rev-parse", "first"]);
    let second = home.create("second", "worker: hang", &[]);
    is_in(&home, &second, &workspace);

    let answer = home.json(&["task", "request-changes", &first, "--message", "Hotter."]);
    let task = &answer["task"];
    assert_eq!((&task["status"], &task["attention"]["text"]), (&"working".into(), &"pool full".into()), "{answer:#}");
    assert_eq!((&task["needs_person"], &answer["still_running"]), (&false.into(), &true.into()), "{answer:#}");
    let third = home.create("third", "worker: hang", &[]);
    assert_eq!(home.task(&third)["attention"]["text"], "pool full");
    // An engine that is started anew knows who waits.
    home.sluice(&["stop"]).done();
    assert_eq!(home.task(&first)["attention"]["text"], "pool full");

    home.json(&["task", "cancel", &second, "--yes"]);
    here.hear();
    is_in(&home, &first, &workspace);
    assert_eq!(home.task(&first)["lent"], Value::Null);
    assert_eq!(
        sh(&home, &workspace, "git rev-parse --abbrev-ref HEAD; git rev-parse HEAD"),
        format!("first\n{commit}")
    );
    let body = std::fs::read_to_string(workspace.join("TASK.md")).unwrap();
    assert!(body.contains("## Feedback\n\nHotter.\n") && body.contains("## Handoff"), "{body}");
    assert_eq!(home.task(&third)["attention"]["text"], "pool full");
    // When it waits for a person again, the next in line has the worktree.
    on.let_go();
    is_in(&home, &third, &workspace);
    home.until_status(&first, "reviewing");
    assert_eq!(home.json(&["task", "merge", &first])["task"]["status"], "done");
}

#[test]
fn a_tree_that_is_not_as_its_last_commit_is_never_taken() {
    let home = narrow();
    let (first, workspace) = waits(&home, "first", PASSES, &[]);
    let messes = [
        ("echo new > new", "rm new"),
        ("echo more >> README.md", "git checkout -q README.md"),
        ("echo more >> README.md; git add README.md", "git reset -q --hard"),
        (
            "git update-index --assume-unchanged README.md; echo more >> README.md",
            "git update-index --no-assume-unchanged README.md; git checkout -q README.md",
        ),
        ("git switch -q -c other", "git switch -q first; git branch -q -D other"),
        ("git checkout -q --detach", "git switch -q first"),
        ("git init -q inside; echo x > inside/x", "rm -rf inside"),
        ("git bisect start -q", "git bisect reset"),
        (": > \"$(git rev-parse --git-dir)/index.lock\"", "rm \"$(git rev-parse --git-dir)/index.lock\""),
        ("mv TASK.md ../kept", "mv ../kept TASK.md"),
    ];
    for (mess, clean) in messes {
        sh(&home, &workspace, mess);
        let next = home.create("next", "worker: hang", &[]);
        assert_eq!(home.task(&next)["attention"]["text"], "pool full", "{mess}");
        assert_eq!(home.task(&first)["workspace"], workspace.to_str().unwrap(), "{mess}");
        home.json(&["task", "cancel", &next, "--yes"]);
        sh(&home, &workspace, clean);
    }
    let commit = home.git(&["rev-parse", "first"]);
    // What waits begins by itself when the tree is clean.
    sh(&home, &workspace, "echo new > new");
    let next = home.create("last", "worker: hang", &[]);
    assert_eq!(home.task(&next)["attention"]["text"], "pool full");
    sh(&home, &workspace, "rm new");
    is_in(&home, &next, &workspace);
    is_lent(&home, &first, &workspace, &commit);
}

#[test]
fn a_worktree_in_which_a_worker_waits_is_never_taken() {
    let home = narrow();
    let (first, workspace) = waits(&home, "first", PASSES, &["--workflow", "persistent"]);
    assert_eq!(home.task(&first)["session"], "active");
    let second = home.create("second", "worker: hang", &[]);
    assert_eq!(home.task(&second)["attention"]["text"], "pool full");
    assert_eq!(home.task(&first)["workspace"], workspace.to_str().unwrap());
    assert_eq!(home.json(&["task", "merge", &first])["task"]["status"], "done");
    is_in(&home, &second, &workspace);
}

#[test]
fn a_task_whose_agent_crashed_is_respawned_where_its_work_was() {
    let home = narrow();
    let first = home.create("first", "worker 1: crash\nworker: hang", &[]);
    let crashed = home.until(&first, "crashed", |task| task["session"] == "crashed");
    let workspace = PathBuf::from(crashed["workspace"].as_str().unwrap());
    let second = home.create("second", "worker: hang", &[]);
    is_in(&home, &second, &workspace);
    assert_eq!(home.json(&["task", "respawn", &first])["task"]["attention"]["text"], "pool full");
    assert_eq!(home.refused(&["task", "spawn", &first]), "1 no_transition");
    // It is given up while it waits.
    let third = home.create("third", "worker 1: crash\nworker: hang", &[]);
    home.json(&["task", "cancel", &first, "--yes"]);
    home.json(&["task", "cancel", &second, "--yes"]);
    home.until(&third, "crashed", |task| task["session"] == "crashed");
    let fourth = home.create("fourth", "worker: hang", &[]);
    is_in(&home, &fourth, &workspace);
    home.json(&["project", "update", "coffee", "--pool-size", "2"]);
    home.json(&["task", "respawn", &third]);
    // The scripted agent counts its starts in the worktree, so in this one it crashes as in the first.
    home.until_event(&third, "session.exited", 2);
    let task = home.task(&third);
    let elsewhere = task["workspace"].as_str().is_some_and(|path| path != workspace.to_str().unwrap());
    assert!(elsewhere, "{task:#}");
}

#[test]
fn a_branch_that_moved_or_went_while_its_worktree_was_lent_on() {
    let home = narrow();
    let script = "worker: work\nreviewer: review pass";
    let (first, workspace) = waits(&home, "first", script, &REVIEWED);
    let commit = home.git(&["rev-parse", "first"]);
    let second = home.create("second", "worker: hang", &[]);
    is_in(&home, &second, &workspace);
    let beside = home.path("beside");
    sh(&home, &home.repository(), &format!("git worktree add -q {} first", beside.display()));
    sh(&home, &beside, "git commit -q --allow-empty -m more; git checkout -q --detach");
    assert_eq!(home.refused(&["task", "merge", &first]), "1 stale_verdict");
    // A branch that is gone is made again at the commit that the worktree was at.
    home.git(&["branch", "-q", "-D", "first"]);
    home.json(&["task", "request-changes", &first, "--message", "Hotter."]);
    home.json(&["task", "cancel", &second, "--yes"]);
    home.until_status(&first, "reviewing");
    home.git(&["merge-base", "--is-ancestor", &commit, "first"]);
    assert_eq!(home.json(&["task", "merge", &first])["task"]["status"], "done");
}

/// A `git` that stops while a worktree is given back, before or after it has left the branch, until it is let go on.
const STOPS: &str = r#"#!/bin/sh
PATH=${PATH#*:}
case "$*" in
*"checkout --quiet --force --detach"*)
    if [ -e STOP ]; then
        if grep -q after STOP; then git "$@"; fi
        echo here > HERE
        read -r _ < GO
        exit 1
    fi ;;
esac
exec git "$@"
"#;

/// A task whose worktree is lent on at the moment at which the engine is killed: the task knows it, and the worktree does not.
fn killed_in_between(script: &str, stop: &str) -> (Home, String, PathBuf, String) {
    let home = narrow();
    let (here, on): (Pipe, Pipe) = (home.pipe("here"), home.pipe("on"));
    home.sluice(&["stop"]).done();
    let text = STOPS.replace("STOP", home.path("stop").to_str().unwrap());
    std::fs::write(home.path("git.text"), text.replace("HERE", here.path()).replace("GO", on.path())).unwrap();
    sh(&home, &home.path(""), "mkdir programs; cp git.text programs/git; chmod 755 programs/git");
    let (first, workspace) = waits(&home, "first", script, &REVIEWED);
    let commit = home.git(&["rev-parse", "first"]);
    // The window of its agent closes a moment after the agent has ended. Until then the worktree is not lent on: the next task would
    // be created and wait, and would be next in line after the kill.
    let give_up = Instant::now() + LONG;
    while !home.windows().is_empty() {
        assert!(Instant::now() < give_up, "{:?}", home.windows());
    }
    std::fs::write(home.path("stop"), stop).unwrap();
    let create = ["task", "create", "lost", "Lost", "--harness", "demo"];
    let mut creating = home.command(&create).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    here.hear();
    assert!(creating.try_wait().unwrap().is_none(), "it is created, and waits for a worktree");
    home.kill_engine();
    drop(creating.wait_with_output());
    std::fs::remove_file(home.path("stop")).unwrap();
    on.let_go();
    is_lent(&home, &first, &workspace, &commit);
    (home, first, workspace, commit)
}

#[test]
fn an_engine_that_is_killed_while_a_worktree_is_lent_on_is_followed_by_one_that_finishes_it() {
    for stop in ["before", "after"] {
        let (home, first, workspace, commit) = killed_in_between(PASSES, stop);
        let second = home.create("second", "worker: hang", &[]);
        is_in(&home, &second, &workspace);
        is_lent(&home, &first, &workspace, &commit);
        assert_eq!(home.json(&["task", "merge", &first])["task"]["status"], "done");
        assert_eq!(home.git(&["rev-parse", "main"]), commit);
    }
}

#[test]
fn an_engine_that_is_killed_before_the_task_knows_has_changed_nothing() {
    let home = narrow();
    let (first, workspace) = waits(&home, "first", PASSES, &[]);
    let commit = home.git(&["rev-parse", "first"]);
    let store = home.store();
    let hold = format!(
        "CREATE TRIGGER held BEFORE INSERT ON log WHEN NEW.stream = (SELECT number FROM stream WHERE id LIKE '%{first}') \
         BEGIN SELECT RAISE(ABORT, 'held'); END"
    );
    store.execute_batch(&hold).unwrap();
    let create = ["task", "create", "lost", "Lost", "--harness", "demo"];
    let creating = home.command(&create).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    drop(creating.wait_with_output());
    home.kill_engine();
    store.execute_batch("DROP TRIGGER held").unwrap();
    assert_eq!(home.task(&first)["workspace"], workspace.to_str().unwrap());
    assert!(workspace.join("TASK.md").exists());
    let second = home.create("second", "worker: hang", &[]);
    is_in(&home, &second, &workspace);
    is_lent(&home, &first, &workspace, &commit);
}

#[test]
fn after_such_a_kill_the_task_can_take_its_worktree_up_again() {
    for stop in ["before", "after"] {
        let script = "worker 1: work\nworker: hang\nreviewer: review pass";
        let (home, first, workspace, commit) = killed_in_between(script, stop);
        let answer = home.json(&["task", "request-changes", &first, "--message", "Hotter."]);
        assert_eq!(answer["task"]["status"], "working");
        is_in(&home, &first, &workspace);
        let head = sh(&home, &workspace, "git rev-parse --abbrev-ref HEAD; git rev-parse HEAD");
        assert_eq!(head, format!("first\n{commit}"));
        let body = std::fs::read_to_string(workspace.join("TASK.md")).unwrap();
        assert!(body.contains("## Feedback\n\nHotter.\n") && body.contains("## Handoff"), "{body}");
    }
}

/// What comes into the worktree after the kill is work. It stays, or it is kept where the worktree was given back half-way.
#[test]
fn after_such_a_kill_a_tree_that_is_not_clean_any_more_loses_nothing() {
    let (home, first, workspace, _) = killed_in_between(PASSES, "before");
    restored_task_file(&home, &first, &workspace);
    std::fs::write(workspace.join("new"), "work\n").unwrap();
    let second = home.create("second", "worker: hang", &[]);
    assert_eq!(home.task(&second)["attention"]["text"], "pool full");
    let task = home.task(&first);
    assert_eq!((&task["workspace"], &task["lent"]), (&workspace.to_str().into(), &Value::Null), "{task:#}");
    assert_eq!(std::fs::read_to_string(workspace.join("new")).unwrap(), "work\n");
    assert_eq!(home.refused(&["task", "merge", &first]), "1 uncommitted");

    let (home, first, workspace, _) = killed_in_between(PASSES, "after");
    std::fs::write(workspace.join("new"), "work\n").unwrap();
    let second = home.create("second", "worker: hang", &[]);
    is_in(&home, &second, &workspace);
    assert!(!workspace.join("new").exists());
    let into = home.path("rescued");
    home.json(&["workspace", "restore", &first, "--into", into.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(into.join("new")).unwrap(), "work\n");
}

/// As before the engine began to give the worktree back: the file of the task goes first.
fn restored_task_file(home: &Home, id: &str, workspace: &Path) {
    std::fs::copy(home.home_file(id), workspace.join("TASK.md")).unwrap();
}
