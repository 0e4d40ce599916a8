//! Triggers (seed 003): recipes that an event of the engine's own log starts, once, and never in a circle.

use std::time::Instant;

use serde_json::Value;

use super::home::{Home, LONG};

/// Puts a recipe into the home.
fn recipe(home: &Home, name: &str, text: &str) {
    let folder = home.place().join("workflows");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{name}.yml")), format!("name: {name}\n{text}")).unwrap();
}

/// Waits until a run of a recipe has ended, and gives it.
pub(crate) fn until_ended(home: &Home, recipe: &str) -> Value {
    let mut happening = home.follow(&["--type", "*.completed"]);
    while let Some(event) = happening.next(Instant::now() + LONG) {
        if event["data"]["recipe"] == recipe && event["data"]["step_id"].is_null() {
            let id = event["correlation_id"].as_str().unwrap();
            return home.json(&["run", "show", id])["run"].take();
        }
    }
    panic!("no run of {recipe} has ended");
}

/// How many runs there are of a recipe.
pub(crate) fn count(home: &Home, recipe: &str) -> usize {
    let runs = home.json(&["run", "list", "--all"]);
    runs["runs"].as_array().unwrap().iter().filter(|run| run["recipe"] == recipe).count()
}

fn all_was_looked_at(home: &Home) {
    all_was_looked_at_by(home, "mark");
}

/// A run of this name that is started last; the end of what it starts says that everything before it has been looked at.
pub(crate) fn all_was_looked_at_by(home: &Home, mark: &str) {
    let steps = "steps: [{name: mark, type: script, command: 'true'}]\n";
    recipe(home, mark, steps);
    let after = format!("after-{mark}");
    recipe(home, &after, &format!("trigger: {{event: run.completed, where: \"recipe == '{mark}'\"}}\n{steps}"));
    home.json(&["start", mark]);
    until_ended(home, &after);
}

const DONE: &str = "trigger: {event: status.changed, where: \"to == 'done'\"}
input:
  - {name: task_id}
  - {name: to}
  - {name: from}
  - {name: event, type: object}
steps:
  - {name: tell, type: script, command: 'echo ${input.task_id} ${input.from} ${input.to} ${input.event.type} ${run.work_order}'}
";

fn merge_a_task(home: &Home, branch: &str) -> String {
    let id = home.create(branch, "worker: work\nreviewer: review pass", &[]);
    home.until_status(&id, "reviewing");
    home.sluice(&["task", "merge", &id]).done();
    id
}

#[test]
fn an_event_starts_a_recipe_once_also_across_restarts() {
    let home = Home::new();
    recipe(&home, "on-done", DONE);
    assert_eq!(home.sluice(&["check", home.place().join("workflows/on-done.yml").to_str().unwrap()]).code, 0);
    let task = merge_a_task(&home, "brew");
    let run = until_ended(&home, "on-done");
    assert_eq!(run["steps"][0]["output"], format!("{task} reviewing done status.changed {task}"), "{run:#}");
    assert!(run["workspace"].as_str().unwrap().starts_with(home.place().to_str().unwrap()), "in the task's project");

    // The log is read again from its beginning, as after a crash before it was written down how far it was read.
    home.kill_engine();
    set_followed(&home, Some(0));
    all_was_looked_at(&home);
    assert_eq!(count(&home, "on-done"), 1);
    assert_eq!(count(&home, "mark"), 1);
}

#[test]
fn what_the_engine_starts_begins_at_the_default_branch_whatever_is_checked_out() {
    let home = Home::new();
    let at = "steps: [{name: at, type: script, command: 'git rev-parse HEAD'}]\n";
    let trigger = "trigger: {event: task.merged}\non_complete: [{action: start, recipe: after}]\n";
    recipe(&home, "on-merge", &format!("{trigger}{at}"));
    recipe(&home, "after", at);
    recipe(&home, "mine", at);
    home.git(&["checkout", "--quiet", "-b", "private"]);
    home.git(&["commit", "--quiet", "--allow-empty", "--message", "private"]);
    merge_a_task(&home, "brew");
    let merged = home.git(&["rev-parse", "main"]);
    assert_eq!(until_ended(&home, "on-merge")["steps"][0]["output"], merged);
    assert_eq!(until_ended(&home, "after")["steps"][0]["output"], merged);
    // What a person starts begins where they stand.
    home.json(&["start", "mine"]);
    assert_eq!(until_ended(&home, "mine")["steps"][0]["output"], home.git(&["rev-parse", "private"]));
}

/// Changes how far the log of a home whose engine is dead was followed.
fn set_followed(home: &Home, upto: Option<i64>) {
    home.store().execute("UPDATE owner SET followed = ?1", [upto]).unwrap();
}

#[test]
fn what_happened_before_the_home_was_followed_starts_nothing() {
    let home = Home::new();
    home.json(&["start", "--detach", "worker-execute", "--harness", "demo"]);
    home.kill_engine();
    set_followed(&home, None);
    recipe(&home, "late", "trigger: {event: process.created}\nsteps: [{name: a, type: script, command: 'true'}]\n");
    all_was_looked_at(&home);
    assert_eq!(count(&home, "late"), 0);
}

#[test]
fn a_recipe_is_not_started_by_what_followed_from_its_own_runs() {
    let home = Home::new();
    let steps = "steps: [{name: a, type: script, command: 'true'}]\n";
    recipe(&home, "first", steps);
    // Each waits for the end of any run, also of its own and of the other's.
    recipe(&home, "ping", &format!("trigger: {{event: run.completed}}\n{steps}"));
    recipe(&home, "pong", &format!("trigger: {{event: run.completed}}\n{steps}"));
    home.json(&["start", "first"]);
    all_was_looked_at(&home);
    // first: ping, pong; ping: pong; pong: ping. And the same for the mark and what it starts.
    let mut happening = home.follow(&["--type", "run.completed"]);
    let mut ended = 0;
    while ended < expected() {
        happening.next(Instant::now() + LONG).unwrap();
        ended += 1;
    }
    all_were(&home);
}

/// `first`, `ping`, `pong`, `ping→pong`, `pong→ping`: 5; `mark` the same and `after-mark` with its followers in each order.
fn expected() -> usize {
    // mark → every order of any of {ping, pong, after-mark}, where `after-mark` only comes directly after `mark`:
    // mark, ping, pong, ping→pong, pong→ping, after-mark, after-mark→ping, →pong, →ping→pong, →pong→ping.
    5 + 10
}

/// Every run has ended, and there are as many as there can be.
fn all_were(home: &Home) {
    assert_eq!((count(home, "ping"), count(home, "pong")), (6, 6));
    assert_eq!(home.json(&["run", "list"])["runs"].as_array().unwrap().len(), 0);
}

#[test]
fn a_recipe_of_a_project_hears_its_own_project_and_hides_the_homes() {
    let home = Home::new();
    recipe(&home, "greet", "trigger: {event: task.created}\nsteps: [{name: a, type: script, command: 'echo home'}]\n");
    let folder = home.repository().join(".sluice/workflows");
    std::fs::create_dir_all(&folder).unwrap();
    let text =
        "name: greet\ntrigger: {event: task.created}\nsteps: [{name: a, type: script, command: 'echo project'}]\n";
    std::fs::write(folder.join("greet.yml"), text).unwrap();
    home.commit();
    home.create("brew", "worker: hang", &["--no-spawn"]);
    assert_eq!(until_ended(&home, "greet")["steps"][0]["output"], "project");
    all_was_looked_at(&home);
    assert_eq!(count(&home, "greet"), 1);
}

#[test]
fn a_recipe_that_cannot_be_started_is_noted_and_holds_up_nobody() {
    let home = Home::new();
    let needs = "trigger: {event: task.created}\ninput: [{name: nobody_gives_this}]\n";
    recipe(&home, "needy", &format!("{needs}steps: [{{name: a, type: script, command: 'true'}}]\n"));
    home.create("brew", "worker: hang", &["--no-spawn"]);
    all_was_looked_at(&home);
    let log = std::fs::read_to_string(home.place().join("logs/engine.log")).unwrap();
    assert!(log.contains("`needy` was not started") && log.contains("nobody_gives_this"), "{log}");
}

#[test]
fn a_run_that_waits_for_a_person_starts_a_recipe() {
    let home = Home::empty();
    let gate = "steps: [{name: check, type: gate, command: 'false'}]\n";
    for (name, event) in [("of-run", "run.blocked"), ("of-workflow", "workflow.blocked")] {
        let steps = "input: [{name: reason}]\nsteps: [{name: tell, type: script, command: 'echo ${input.reason}'}]\n";
        recipe(&home, name, &format!("trigger: {{event: {event}}}\n{steps}"));
    }
    recipe(&home, "checks", gate);
    assert_eq!(home.sluice(&["start", "checks"]).code, 10);
    let run = until_ended(&home, "of-run");
    assert_eq!(run["steps"][0]["output"], "the check failed: exit code 1");
    super::recipes::grimoire(&home, "mine", gate);
    let id = super::recipes::begin(&home, &["mine"]);
    until_ended(&home, "of-workflow");
    assert_eq!(super::recipes::told(&home, &id, "workflow.blocked"), ["workflow.blocked check"], "once");
    assert_eq!((count(&home, "of-run"), count(&home, "of-workflow")), (1, 1));
}

#[test]
fn what_scripts_of_forgotten_runs_printed_is_removed() {
    let home = Home::empty();
    let folder = home.place().join("sessions/printed");
    std::fs::create_dir_all(&folder).unwrap();
    let left = folder.join("forgotten.0.1.whole.stdout");
    std::fs::write(&left, "a great deal\n").unwrap();
    // The engine tidies up before it looks at what happens.
    all_was_looked_at(&home);
    assert!(!left.exists());
}
