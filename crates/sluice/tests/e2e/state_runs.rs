//! States that start a run: the task follows its end, and takes it along when it goes elsewhere.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::home::Home;
use super::merges::sh;
use super::process;
use super::recipes::{all_gone, first, show, text, with_shell};

/// The lifecycle of these tests: the work is checked by a run before a person sees it.
pub(crate) const CHECKED: &str = "checked";

const LIFECYCLE: &str = "
name: checked
version: 1
states:
  pending: {}
  working: { respawn_prompt: worker }
  agent-review:
    run: { recipe: verify, inputs: { branch: '{branch}' }, completed: reviewing, failed: working }
  reviewing: {}
  done: { terminal: true }
  cancelled: { terminal: true }
transitions:
  - from: pending
    to: working
    hooks: [{ action: acquire_workspace }, { action: spawn_agent, prompt: worker }]
  - from: working
    to: agent-review
    gate: { section: '## Handoff' }
    hooks: [{ action: increment_review_round }, { action: kill_session }]
  - { from: agent-review, to: working, when: review_round < 3, hooks: [{ action: spawn_agent, prompt: worker }] }
  - { from: agent-review, to: reviewing }
  - { from: agent-review, to: cancelled, hooks: [{ action: release_workspace }] }
  - { from: reviewing, to: done, hooks: [{ action: release_workspace }] }
  - { from: working, to: cancelled, hooks: [{ action: kill_session }, { action: release_workspace }] }
exit_monitoring:
  rules: [{ status: working, action: crash }]
prompts:
  worker: |
    # Task: {summary}
    Do it, commit, write ## Handoff in TASK.md, then: sluice task update --status agent-review
";

/// Puts a definition into the home.
fn definition(home: &Home, name: &str, text: &str) {
    let folder = home.place().join("workflows");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{name}.yml")), text).unwrap();
}

/// Puts the lifecycle into the home, with a recipe that checks the work with this command.
pub(crate) fn checked(home: &Home, command: &str) {
    definition(home, CHECKED, LIFECYCLE);
    let command: String = command.lines().map(|line| format!("      {line}\n")).collect();
    let head = "name: verify\ninput: [{name: branch}]\nsteps:\n  - name: check\n    type: script\n    command: |\n";
    definition(home, "verify", &format!("{head}{command}"));
}

fn create(home: &Home) -> String {
    home.create("brew", "worker: work", &["--workflow", CHECKED])
}

/// Waits until the task has started a run, and gives its id.
fn run_of(home: &Home, task: &str, count: usize) -> String {
    let event = home.until_event(task, "task.run_started", count);
    text(&event["data"]["run_id"]).to_owned()
}

fn moves(home: &Home, id: &str) -> Vec<String> {
    let events = home.history(id);
    let moved = events.iter().filter(|event| event["type"] == "status.changed");
    moved.map(|event| format!("{} → {}", text(&event["data"]["from"]), text(&event["data"]["to"]))).collect()
}

fn runs(home: &Home) -> Vec<Value> {
    home.json(&["run", "list", "--all"])["runs"].as_array().unwrap().clone()
}

#[test]
fn a_run_that_completes_moves_the_task_on() {
    let home = Home::new();
    checked(
        &home,
        "echo ${input.branch} ${run.work_order} > \"$SLUICE_HOME/noted\"; cat demo/*.md >> \"$SLUICE_HOME/noted\"",
    );
    let id = create(&home);
    let task = home.until_status(&id, "reviewing");
    assert_eq!(moves(&home, &id), ["pending → working", "working → agent-review", "agent-review → reviewing"]);
    assert_eq!((&task["attention"]["reason"], &task["run"]), (&"review".into(), &Value::Null), "{task:#}");
    // It worked where the task does, with what the state gave it.
    let noted = std::fs::read_to_string(home.place().join("noted")).unwrap();
    assert_eq!(noted, format!("brew {id}\nLine 1 by the worker.\n"));
    let run = show(&home, &run_of(&home, &id, 1));
    assert_eq!((text(&run["status"]), text(&run["task"]), text(&run["recipe"])), ("completed", id.as_str(), "verify"));
    assert_eq!(run["workspace"], task["workspace"]);
    assert!(Path::new(text(&task["workspace"])).join("TASK.md").exists(), "the worktree is still the task's");
    let told = first(&home, &id, "task.run_ended");
    assert_eq!((&told["data"]["run_status"], &told["data"]["run_id"]), (&"completed".into(), &run["id"]));
    let moved = home.history(&id).into_iter().rfind(|event| event["type"] == "status.changed").unwrap();
    assert_eq!(moved["actor"], "engine");
    home.json(&["task", "merge", &id]);
    home.until_status(&id, "done");
}

#[test]
fn a_run_that_fails_leads_elsewhere() {
    let home = Home::new();
    checked(&home, "test \"$(grep -c Line demo/*.md)\" -ge 2");
    let id = create(&home);
    home.until_status(&id, "reviewing");
    let back =
        ["working → agent-review", "agent-review → working", "working → agent-review", "agent-review → reviewing"];
    assert_eq!(moves(&home, &id)[1..], back);
    let mut ends: Vec<String> = runs(&home).iter().map(|run| text(&run["status"]).to_owned()).collect();
    ends.sort();
    assert_eq!(ends, ["completed", "failed"]);
}

#[test]
fn whoever_moves_the_task_elsewhere_cancels_its_run() {
    let home = Home::new();
    let told = home.pipe("told");
    checked(&home, &format!("echo $$ > \"$SLUICE_HOME/pid\"; echo > {}; exec sleep 600", told.path()));
    let id = create(&home);
    told.hear();
    let run = run_of(&home, &id, 1);
    let task = home.task(&id);
    assert_eq!((text(&task["status"]), text(&task["run"])), ("agent-review", run.as_str()));
    let pid: i32 = std::fs::read_to_string(home.place().join("pid")).unwrap().trim().parse().unwrap();
    assert!(process::lives(pid));
    let worktree = text(&task["workspace"]).to_owned();
    let answer = home.json(&["task", "cancel", &id, "--yes"]);
    all_gone(&[pid]);
    let task = &answer["task"];
    assert_eq!((text(&task["status"]), &task["workspace"], &task["run"]), ("cancelled", &Value::Null, &Value::Null));
    let ended = show(&home, &run);
    assert_eq!((text(&ended["status"]), text(&ended["error"])), ("cancelled", "its task moved on"));
    let hooks: Vec<String> = home
        .history(&id)
        .iter()
        .filter(|event| event["type"] == "hook.done")
        .map(|event| text(&event["data"]["action"]).to_owned())
        .collect();
    assert_eq!(hooks[hooks.len() - 2..], ["cancel_run", "release_workspace"], "the worktree is given back last");
    assert!(Path::new(&worktree).exists(), "it is the pool's, not the run's");
}

#[test]
fn the_engine_is_killed_while_the_run_goes_on() {
    let home = Home::new();
    let (told, go) = (home.pipe("told"), home.pipe("go"));
    checked(&home, &format!("echo > {}; cat {}", told.path(), go.path()));
    let id = create(&home);
    told.hear();
    let run = run_of(&home, &id, 1);
    home.kill_engine();
    // The next engine begins the script anew: one cannot be adopted.
    assert_eq!(text(&home.task(&id)["run"]), run);
    told.hear();
    go.let_go();
    home.until_status(&id, "reviewing");
    let ids: Vec<String> = runs(&home).iter().map(|run| text(&run["id"]).to_owned()).collect();
    assert_eq!(ids, [run], "it was started once");
    assert_eq!(moves(&home, &id).len(), 3);
}

#[test]
fn a_run_that_a_person_gave_up_marks_the_task_and_is_started_again() {
    let home = Home::new();
    let told = home.pipe("told");
    let rest = format!("test -e \"$SLUICE_HOME/fine\" || {{ echo > {}; exec sleep 600; }}", told.path());
    checked(&home, &rest);
    let id = create(&home);
    told.hear();
    let run = run_of(&home, &id, 1);
    home.json(&["run", "cancel", &run]);
    let task = home.until(&id, "marked", |task| !task["attention"].is_null());
    assert!(text(&task["attention"]["text"]).starts_with(&format!("its run {run} was cancelled")), "{task:#}");
    assert_eq!(text(&task["status"]), "agent-review");
    std::fs::write(home.place().join("fine"), "").unwrap();
    home.json(&["task", "respawn", &id]);
    let task = home.until_status(&id, "reviewing");
    assert_eq!(task["attention"]["reason"], "review", "{task:#}");
    assert_eq!(runs(&home).len(), 2);
}

#[test]
fn a_run_that_is_tried_again_is_waited_for_again() {
    let home = Home::new();
    let go = home.pipe("go");
    checked(
        &home,
        &format!("test -e \"$SLUICE_HOME/again\" || exit 1\ncat {}\ntest -e \"$SLUICE_HOME/fine\"", go.path()),
    );
    definition(&home, CHECKED, &LIFECYCLE.replace(", failed: working", ""));
    let id = create(&home);
    let marked = |task: &Value| !task["attention"].is_null();
    let run = run_of(&home, &id, 1);
    home.until(&id, "marked", marked);
    std::fs::write(home.place().join("again"), "").unwrap();
    home.json(&["run", "retry", &run]);
    let task = home.task(&id);
    assert_eq!((&task["attention"], &task["needs_person"]), (&Value::Null, &false.into()), "{task:#}");
    assert!(home.sluice(&["task", "merge", &id]).code == 1);
    // Failing again it is told again, and it can be tried again.
    go.let_go();
    let task = home.until(&id, "marked", marked);
    assert!(text(&task["attention"]["text"]).starts_with(&format!("its run {run} has failed")), "{task:#}");
    std::fs::write(home.place().join("fine"), "").unwrap();
    home.json(&["run", "retry", &run]);
    let mut waits = home.command(&["task", "wait", &id, "--status", "reviewing"]).spawn().unwrap();
    go.let_go();
    assert_eq!(waits.wait().unwrap().code(), Some(0));
    assert_eq!(home.task(&id)["attention"]["reason"], "review");
    assert_eq!(runs(&home).len(), 1);
}

#[test]
fn a_task_is_not_created_where_its_runs_could_not_be_started() {
    let home = Home::new();
    definition(&home, CHECKED, LIFECYCLE);
    let arguments = ["task", "create", "brew", "Brew", "--harness", "demo", "--workflow", CHECKED, "--json"];
    let ran = home.sluice(&arguments);
    assert_eq!(ran.refusal(), "3 unusable_workflow", "{ran:?}");
    let message = ran.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`agent-review`") && message.contains("there is no recipe or file `verify`"), "{message}");
    for (recipe, why) in [
        (
            "name: verify\nsteps: [{name: a, type: script, command: 'true'}]\ninput: [{name: size}]\n",
            "needs the input `size`",
        ),
        ("name: verify\nsteps: [{name: a, type: script, command: 'true'}]\ninput: []\n", "has no input `branch`"),
    ] {
        definition(&home, "verify", recipe);
        let ran = home.sluice(&arguments);
        assert!(ran.json()["error"]["message"].as_str().unwrap().contains(why), "{ran:?}");
    }
    assert_eq!(home.json(&["task", "list", "--all"])["tasks"], serde_json::json!([]));
}

#[test]
fn a_recipe_that_is_gone_when_its_state_is_entered_marks_the_task() {
    let home = Home::new();
    let (told, go) = (home.pipe("told"), home.pipe("go"));
    checked(&home, "true");
    let script = format!("worker: tell {}; wait for {}; work", told.path(), go.path());
    let id = home.create("brew", &script, &["--workflow", CHECKED]);
    told.hear();
    let recipe = home.place().join("workflows/verify.yml");
    let text_of_it = std::fs::read_to_string(&recipe).unwrap();
    std::fs::remove_file(&recipe).unwrap();
    go.let_go();
    let task = home.until(&id, "marked", |task| !task["attention"].is_null());
    let why = text(&task["attention"]["text"]);
    assert!(why.starts_with("start_run failed: there is no recipe or file `verify` in the commit "), "{why}");
    std::fs::write(&recipe, text_of_it).unwrap();
    home.json(&["task", "respawn", &id]);
    home.until_status(&id, "reviewing");
}

/// The worktree of a task, and the commit there.
fn standing(home: &Home, task: &str) -> (PathBuf, String) {
    let folder = PathBuf::from(text(&home.task(task)["workspace"]));
    let commit = sh(home, &folder, "git rev-parse HEAD");
    (folder, commit)
}

#[track_caller]
fn refused_merge(home: &Home, id: &str) -> (String, String) {
    let ran = home.sluice(&["task", "merge", id, "--json"]);
    let message = ran.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    (ran.refusal(), message)
}

#[test]
fn a_run_judges_the_commit_that_it_was_started_on() {
    let home = Home::new();
    let (told, go) = (home.pipe("told"), home.pipe("go"));
    checked(&home, &format!("echo > {}; cat {}", told.path(), go.path()));
    let id = create(&home);
    told.hear();
    let run = run_of(&home, &id, 1);
    let (folder, judged) = standing(&home, &id);
    let later = "echo x > later; git add later; git commit -qm later; git rev-parse HEAD";
    let during = sh(&home, &folder, later);
    assert_eq!(home.refused(&["task", "merge", &id]), "1 no_transition", "its check goes on");
    go.let_go();
    home.until_status(&id, "reviewing");
    let ended = first(&home, &id, "task.run_ended");
    assert_eq!((&ended["data"]["verdict"], &ended["data"]["commit"]), (&"PASS".into(), &judged.as_str().into()));
    let stale = |now: &str| {
        let (judged, now) = (&judged[..12], &now[..12]);
        let message = format!("Merge not allowed: run {run} checked {judged}, and the work is now {now}");
        assert_eq!(refused_merge(&home, &id), ("1 stale_verdict".to_owned(), message));
    };
    stale(&during);
    sh(&home, &folder, "git reset -q --hard HEAD^");
    stale(&sh(&home, &folder, later));
    sh(&home, &folder, "git reset -q --hard HEAD^");
    home.json(&["task", "merge", &id]);
    home.until_status(&id, "done");
    assert_eq!(home.git(&["rev-parse", "main"]), judged);
}

/// A commit of a file, if it is not there.
fn commits(file: &str) -> String {
    let commit = "git -c user.name=Run -c user.email=run@example.invalid commit -qm tidied";
    format!("test -e {file} || {{ echo x > {file}; git add {file}; {commit}; }}")
}

#[test]
fn what_the_agents_of_a_run_commit_is_judged_by_it() {
    let home = Home::new();
    with_shell(&home);
    let (told, go) = (home.pipe("told"), home.pipe("go"));
    definition(&home, CHECKED, LIFECYCLE);
    let steps = format!(
        "name: verify\ninput: [{{name: branch}}]\nsteps:\n  - {{name: look, type: script, command: 'true'}}\n  \
         - {{name: tidy, type: agent, harness: shell, prompt: \"{}; echo tidied\"}}\n  \
         - {{name: check, type: script, command: 'echo > {}; cat {}; ls tidied-*'}}\n  \
         - {{name: mend, type: agent, harness: shell, when: \"check.exit_code != 0\", prompt: 'echo never'}}\n",
        commits("tidied-${input.branch}"),
        told.path(),
        go.path()
    );
    definition(&home, "verify", &steps);
    for (branch, outsider) in [("brew", ""), ("brew-2", "echo x > later; git add later; git commit -qm later")] {
        let id = home.create(branch, "worker: work", &["--workflow", CHECKED]);
        told.hear();
        // The next engine begins the script anew, and the agent has said where it left the work.
        home.kill_engine();
        home.task(&id);
        told.hear();
        let (folder, tidied) = standing(&home, &id);
        sh(&home, &folder, outsider);
        go.let_go();
        home.until_status(&id, "reviewing");
        let ended = first(&home, &id, "task.run_ended");
        if outsider.is_empty() {
            assert_eq!(text(&ended["data"]["commit"]), tidied);
            home.json(&["task", "merge", &id]);
            assert_eq!(home.git(&["rev-parse", "main"]), tidied);
        } else {
            let begun = sh(&home, &folder, "git rev-parse HEAD^^");
            assert_eq!(text(&ended["data"]["commit"]), begun);
            assert_eq!(refused_merge(&home, &id).0, "1 stale_verdict");
        }
    }
}

#[test]
fn what_the_code_under_test_commits_is_judged_by_nobody() {
    let home = Home::new();
    // A name of the run beside the commit, as an agent could put it there, makes no difference.
    checked(&home, &format!("export GIT_REFLOG_ACTION=\"sluice run $SLUICE_RUN\"; {}", commits("planted")));
    let id = create(&home);
    home.until_status(&id, "reviewing");
    let (folder, _) = standing(&home, &id);
    let begun = sh(&home, &folder, "git rev-parse HEAD^");
    assert_eq!(text(&first(&home, &id, "task.run_ended")["data"]["commit"]), begun);
    assert_eq!(refused_merge(&home, &id).0, "1 stale_verdict");
    assert_eq!(home.git(&["log", "--format=%s", "main", "--", "planted"]), "");
}

#[test]
fn work_that_is_put_elsewhere_during_a_run_and_back_is_not_judged_by_it() {
    let home = Home::new();
    definition(&home, CHECKED, LIFECYCLE);
    // What the code under test can do: the check sees an older commit, and the branch stands where it stood at the end.
    let steps = "name: verify\ninput: [{name: branch}]\nsteps:\n  \
        - {name: build, type: script, command: 'git checkout -q --detach HEAD^'}\n  \
        - {name: check, type: script, command: 'true'}\n  \
        - {name: after, type: script, command: 'git checkout -q ${input.branch}'}\n";
    definition(&home, "verify", steps);
    let id = create(&home);
    home.until_status(&id, "reviewing");
    assert_eq!(refused_merge(&home, &id).0, "1 stale_verdict");
}

#[test]
fn what_no_command_of_a_run_has_looked_at_is_not_judged_by_it() {
    let home = Home::new();
    with_shell(&home);
    definition(&home, CHECKED, LIFECYCLE);
    let steps = format!(
        "name: verify\ninput: [{{name: branch}}]\nsteps:\n  - {{name: check, type: script, command: 'true'}}\n  \
         - {{name: late, type: agent, harness: shell, prompt: \"{}; echo late\"}}\n",
        commits("late")
    );
    definition(&home, "verify", &steps);
    let id = create(&home);
    home.until_status(&id, "reviewing");
    assert_eq!(refused_merge(&home, &id).0, "1 stale_verdict");
}

#[test]
fn a_run_without_the_tasks_worktree_looks_at_the_tasks_branch() {
    let home = Home::new();
    checked(&home, "cat demo/*.md > \"$SLUICE_HOME/noted\"; git rev-parse HEAD >> \"$SLUICE_HOME/noted\"");
    let given_back =
        LIFECYCLE.replacen("{ action: kill_session }]", "{ action: kill_session }, { action: release_workspace }]", 1);
    definition(&home, CHECKED, &given_back);
    let id = create(&home);
    let task = home.until_status(&id, "reviewing");
    assert_eq!(task["workspace"], Value::Null);
    let tip = home.git(&["rev-parse", "brew"]);
    let noted = std::fs::read_to_string(home.place().join("noted")).unwrap();
    assert_eq!(noted, format!("Line 1 by the worker.\n{tip}\n"));
    home.json(&["task", "merge", &id]);
    assert_eq!(home.git(&["rev-parse", "main"]), tip);
}

#[test]
fn a_run_that_has_not_completed_is_no_licence() {
    let home = Home::new();
    let told = home.pipe("told");
    let rest = format!("echo > {}; exec sleep 600", told.path());
    checked(&home, &rest);
    let id = create(&home);
    told.hear();
    let run = run_of(&home, &id, 1);
    home.json(&["task", "update", &id, "--status", "reviewing"]);
    let message = format!("Merge not allowed: the task went on before run {run}, which checks the work, had ended");
    assert_eq!(refused_merge(&home, &id), ("1 failed_verdict".to_owned(), message));
    // Given up, and passed by.
    let id = home.create("brew-2", "worker: work", &["--workflow", CHECKED]);
    told.hear();
    let run = run_of(&home, &id, 1);
    home.json(&["run", "cancel", &run]);
    home.until(&id, "marked", |task| !task["attention"].is_null());
    home.json(&["task", "update", &id, "--status", "reviewing"]);
    let message =
        format!("Merge not allowed: run {run}, which checks the work, was cancelled, and nothing has changed since");
    assert_eq!(refused_merge(&home, &id), ("1 failed_verdict".to_owned(), message));
    home.json(&["task", "merge", &id, "--force"]);
    home.until_status(&id, "done");
}
