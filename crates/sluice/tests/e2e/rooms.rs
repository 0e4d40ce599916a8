//! Worktrees are few: whoever waits for one begins when there is one, whatever made it free, and nobody is lent one in which
//! somebody lives.

use serde_json::{Value, json};

use super::home::Home;

/// A home with one worktree that the first task has, and its id.
fn full() -> (Home, String) {
    let home = Home::new();
    home.json(&["project", "update", "coffee", "--pool-size", "1"]);
    let first = home.create("first", "worker: hang", &[]);
    (home, first)
}

/// Tasks that wait, one for each status in which they can be created with an agent.
fn waiting(home: &Home) -> Vec<(String, &'static str)> {
    let tasks = ["pending", "clarification", "agent-review"].map(|status| {
        let id = home.create(status, "worker: hang\nreviewer: hang", &["--status", status]);
        let task = home.task(&id);
        assert_eq!((&task["status"], &task["attention"]["text"]), (&status.into(), &"pool full".into()));
        (id, if status == "pending" { "working" } else { status })
    });
    tasks.into()
}

/// Waits until a task has begun. Its start has settled then, and what it needs a person for follows from where it stands.
#[track_caller]
fn begins(home: &Home, id: &str, status: &str) {
    home.until_event(id, "turn.settled", 1);
    let task = home.task(id);
    // The agent of a task that is to be clarified asks a person.
    let needed = if status == "clarification" { json!("clarification") } else { Value::Null };
    assert_eq!(
        (&task["session"], &task["status"], &task["attention"]["reason"]),
        (&"active".into(), &status.into(), &needed),
        "{task:#}"
    );
}

#[test]
fn a_worktree_that_a_cancelled_task_gives_back_goes_to_the_next_in_line() {
    let (home, mut last) = full();
    for (next, status) in waiting(&home) {
        home.json(&["task", "cancel", &last, "--yes"]);
        begins(&home, &next, status);
        last = next;
    }
}

#[test]
fn a_larger_pool_lets_all_begin_for_whom_there_is_room() {
    let (home, _) = full();
    let waiting = waiting(&home);
    home.json(&["project", "update", "coffee", "--pool-size", "3"]);
    for (next, status) in &waiting[..2] {
        begins(&home, next, status);
    }
    assert_eq!(home.task(&waiting[2].0)["attention"]["text"], "pool full");
    // Whoever comes later does not come first.
    let late = home.create("late", "hang", &[]);
    assert_eq!(home.task(&late)["attention"]["text"], "pool full");
    home.json(&["project", "update", "coffee", "--pool-size", "4"]);
    begins(&home, &waiting[2].0, waiting[2].1);
    assert_eq!(home.task(&late)["attention"]["text"], "pool full");
}

#[test]
fn an_engine_that_starts_lets_those_begin_for_whom_there_is_room() {
    let (home, _) = full();
    let waiting = waiting(&home);
    home.sluice(&["stop"]).done();
    // What happens while no engine runs is not told to any.
    let file = home.place().join("projects.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let larger = text.replace("\"pool_size\": 1", "\"pool_size\": 4").replace("\"pool_size\":1", "\"pool_size\":4");
    assert_ne!(text, larger);
    std::fs::write(&file, larger).unwrap();
    for (next, status) in &waiting {
        begins(&home, next, status);
    }
}

#[test]
fn an_engine_that_is_killed_while_the_next_begins_begins_no_other() {
    let home = Home::new();
    let first = home.create("first", "worker: work\nreviewer: review pass", &[]);
    let next = home.create("next", "worker: hang", &["--no-spawn"]);
    let other = home.create("other", "worker: hang", &["--no-spawn"]);
    home.until_status(&first, "reviewing");
    // Once the next has begun, the store takes nothing of the first any more, and so not that its hook is done.
    let store = home.store();
    let hold = format!(
        "CREATE TRIGGER held BEFORE INSERT ON log \
         WHEN NEW.stream = (SELECT number FROM stream WHERE id LIKE '%{first}') \
         AND (SELECT status FROM stream WHERE id LIKE '%{next}') <> 'pending' \
         BEGIN SELECT RAISE(ABORT, 'held'); END"
    );
    store.execute_batch(&hold).unwrap();
    let merging = home.command(&["task", "merge", &first]).stdout(std::process::Stdio::null()).spawn().unwrap();
    home.until_event(&next, "status.changed", 1);
    home.kill_engine();
    store.execute_batch("DROP TRIGGER held").unwrap();
    drop(merging.wait_with_output());
    home.until_status(&first, "done");
    begins(&home, &next, "working");
    assert_eq!(home.task(&other)["status"], "pending");
}

#[test]
fn a_worktree_in_which_an_agent_lives_is_lent_to_nobody_whatever_the_store_says() {
    let (home, _) = full();
    home.json(&["project", "update", "coffee", "--pool-size", "2"]);
    let backup = home.path("backup");
    home.json(&["backup", backup.to_str().unwrap()]);
    let here = home.pipe("here");
    let unknown = home.create("unknown", &format!("worker: tell {}; hang", here.path()), &[]);
    here.hear();
    let workspace = home.task(&unknown)["workspace"].as_str().unwrap().to_owned();
    home.sluice(&["stop"]).done();
    home.sluice(&["restore", backup.to_str().unwrap()]).done();
    // The store knows nothing of the agent, and would have room.
    let next = home.create("next", "worker: hang", &[]);
    assert_eq!(home.task(&next)["attention"]["text"], "pool full");
    let session = format!("{unknown}.1");
    let list = home.json(&["workspace", "list"]);
    assert_eq!(list["strays"], serde_json::json!([{ "session": session, "path": workspace }]), "{list:#}");
    home.json(&["workspace", "gc"]);
    assert!(std::path::Path::new(&workspace).exists(), "gc leaves it alone");
    let checks = home.sluice(&["doctor", "--json"]).json()["checks"].to_string();
    assert!(checks.contains(&format!("workspace end {session}")), "{checks}");
    let own = home.json(&["task", "list"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(home.refused(&["workspace", "end", &format!("{own}.1")]), "1 session_alive");
    assert_eq!(home.refused(&["workspace", "end", "nobody.1"]), "3 not_found");
    // Ended, it makes room, and what it did is kept.
    std::fs::write(std::path::Path::new(&workspace).join("made"), "by somebody whom nobody knows\n").unwrap();
    home.json(&["workspace", "end", &session]);
    begins(&home, &next, "working");
    let into = home.path("rescued");
    home.json(&["workspace", "restore", &unknown, "--into", into.to_str().unwrap()]);
    assert!(into.join("made").exists());
}

#[test]
fn an_agent_that_no_task_knows_gets_its_task_back_and_goes_on() {
    let home = Home::new();
    let backup = home.path("backup");
    home.json(&["backup", backup.to_str().unwrap()]);
    let (here, on) = (home.pipe("here"), home.pipe("on"));
    let script =
        format!("worker 1: crash\nworker 2: tell {}; wait for {}; work\nreviewer: review pass", here.path(), on.path());
    let id = home.create("unknown", &script, &[]);
    home.until(&id, "crashed", |task| task["session"] == "crashed");
    home.json(&["task", "respawn", &id]);
    here.hear();
    let before = home.task(&id);
    home.sluice(&["stop"]).done();
    home.sluice(&["restore", backup.to_str().unwrap()]).done();
    assert_eq!(home.refused(&["task", "show", &id]), "3 not_found");
    let strays = home.json(&["workspace", "list"])["strays"].clone();
    let session = strays[0]["session"].as_str().unwrap().to_owned();
    assert_eq!(home.refused(&["workspace", "adopt", "nobody.1"]), "3 not_found");
    // What the agent writes into its file does not choose what judges it.
    let file = std::path::Path::new(before["workspace"].as_str().unwrap()).join("TASK.md");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\nworkflow: default\n"), "{text}");
    std::fs::write(&file, text.replace("\nworkflow: default\n", "\nworkflow: minimal\n")).unwrap();
    assert_eq!(home.refused(&["workspace", "adopt", &session, "--workflow", "none"]), "3 not_found");
    let adopted = home.json(&["workspace", "adopt", &session, "--review-harness", "demo"])["task"].clone();
    for key in ["id", "branch", "summary", "workspace", "status", "harness", "review_harness", "workflow", "session"] {
        assert_eq!(adopted[key], before[key], "{key}: {adopted:#}");
    }
    assert!(home.json(&["workspace", "list"])["strays"].is_null());
    assert_eq!(home.refused(&["workspace", "adopt", &session]), "1 session_alive");
    // It is the task's own: it moves it, and its end is noticed.
    on.let_go();
    home.until_status(&id, "reviewing");
    assert_eq!(home.json(&["task", "merge", &id])["task"]["status"], "done");
}

#[test]
fn a_worktree_whose_task_cannot_be_read_is_lent_to_nobody_and_not_cleared() {
    let home = Home::new();
    home.json(&["project", "update", "coffee", "--pool-size", "1"]);
    let id = home.create("unreadable", "worker: work\nreviewer: review pass", &[]);
    let workspace = home.until_status(&id, "reviewing")["workspace"].as_str().unwrap().to_owned();
    let forgotten = std::path::Path::new(&workspace).join("forgotten");
    std::fs::write(&forgotten, "work\n").unwrap();
    home.sluice(&["stop"]).done();
    // A bit of every row that names its branch.
    let store = home.place().join("store.db");
    let mut bytes = std::fs::read(&store).unwrap();
    let rows: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"Do unreadable")).collect();
    assert!(!rows.is_empty());
    rows.into_iter().for_each(|at| bytes[at] ^= 1);
    std::fs::write(&store, bytes).unwrap();
    assert_eq!(home.sluice(&["task", "list"]).code, 6, "it is damaged");
    let next = home.sluice(&["task", "create", "next", "Next", "--harness", "demo", "--json"]);
    assert!(next.stdout.contains("pool full"), "{next:?}");
    let listed = home.sluice(&["workspace", "list"]);
    assert!(listed.stderr.contains("cannot be read"), "{listed:?}");
    let _ = home.sluice(&["workspace", "gc"]);
    assert!(forgotten.exists());
}
