//! Seeing and doing: the moves that are open and why the others are not, a person's yes and no, what a task or run has changed,
//! what an agent printed, and tasks named by their branch.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::home::Home;
use super::merges::sh;
use super::recipes::{first, fresh, grimoire, start, text, until_status};

const PASSES: &str = "worker: work\nreviewer: review pass";

fn move_to(task: &Value, to: &str) -> Value {
    let moves = task["moves"].as_array().unwrap_or_else(|| panic!("{task:#}"));
    moves.iter().find(|it| it["to"] == to).unwrap_or_else(|| panic!("no move to {to}: {task:#}")).clone()
}

fn workspace(task: &Value) -> PathBuf {
    PathBuf::from(text(&task["workspace"]))
}

#[test]
fn a_task_tells_which_moves_are_open_and_why_the_others_are_not() {
    let home = Home::new();
    let id = home.create("moves", "worker: hang", &[]);
    let task = home.until(&id, "at work", |task| task["session"] == "active");
    let to: Vec<&str> = task["moves"].as_array().unwrap().iter().map(|it| text(&it["to"])).collect();
    assert_eq!(
        to,
        ["agent-review", "clarification", "stuck", "cancelled"],
        "every transition, in the order of the file"
    );

    let gated = move_to(&task, "agent-review");
    assert_eq!((&gated["open"], &gated["code"], &gated["by"]), (&false.into(), &"gate_failed".into(), &"agent".into()));
    // What is told is what a move says.
    let refused = home.sluice(&["task", "update", &id, "--status", "agent-review", "--json"]).json();
    assert_eq!(gated["why"], refused["error"]["message"], "{refused:#}");
    let ended = move_to(&task, "cancelled");
    assert_eq!((&ended["open"], &ended["why"], &ended["by"]), (&true.into(), &Value::Null, &"person".into()));
    let shown = home.sluice(&["task", "show", &id]).done().stdout;
    assert!(shown.contains("you can:") && shown.contains(&format!("sluice task cancel {id}")), "{shown}");
    assert!(shown.contains("not open:") && shown.contains("because working → agent-review needs"), "{shown}");
    let listed = home.json(&["task", "list"]);
    assert_eq!(listed["tasks"][0]["moves"], Value::Null, "a list does without");
    home.json(&["task", "cancel", &id, "--yes"]);
    assert_eq!(home.task(&id)["moves"], serde_json::json!([]));
}

#[test]
fn an_agent_is_told_what_is_not_its_own() {
    let home = Home::new();
    let has_looked = home.pipe("looked");
    let id = home.create(
        "own",
        &format!("worker: sluice task show $SLUICE_TASK --json; tell {}; hang", has_looked.path()),
        &[],
    );
    has_looked.hear();
    let log = home.json(&["task", "log", &id, "--lines", "1000"])["log"].clone();
    let document = text(&log).split_once("{\n").and_then(|(_, rest)| rest.split_once("\n}\n"));
    let document = document.unwrap_or_else(|| panic!("{log}")).0;
    let told: Value = serde_json::from_str(&format!("{{{document}}}")).unwrap();
    let ends = move_to(&told["task"], "cancelled");
    assert_eq!((&ends["open"], &ends["code"]), (&false.into(), &"not_yours".into()), "{ends:#}");
    assert_eq!(move_to(&home.task(&id), "cancelled")["open"], true, "and a person may");
}

#[test]
fn a_merge_that_is_not_open_says_why_beside_the_move() {
    let home = Home::new();
    let id = home.create("later", PASSES, &[]);
    let task = home.until_status(&id, "reviewing");
    let done = move_to(&task, "done");
    assert_eq!((&done["open"], &done["merge"]["open"], &done["by"]), (&true.into(), &true.into(), &"person".into()));
    sh(&home, &workspace(&task), "echo x > more; git add -A; git commit -qm later");
    let merge = move_to(&home.task(&id), "done")["merge"].clone();
    assert_eq!((&merge["open"], &merge["code"]), (&false.into(), &"stale_verdict".into()), "{merge:#}");
    let refused = home.sluice(&["task", "merge", &id, "--json"]).json();
    assert_eq!(merge["why"], refused["error"]["message"]);
    let shown = home.sluice(&["task", "show", &id]).done().stdout;
    assert!(shown.contains("no merge because the verdict PASS was given for"), "{shown}");
}

#[test]
fn approve_merges_where_a_merge_leads_to_the_end_and_reject_sends_back() {
    let home = Home::new();
    let id = home.create("sent", PASSES, &["--workflow", "reviewed"]);
    home.until_status(&id, "reviewing");
    let back = home.json(&["task", "reject", &id, "--message", "Keep the flag"]);
    assert_eq!(back["transition"]["to"], "working", "{back:#}");
    let body = home.json(&["task", "file", &id])["file"]["text"].clone();
    assert!(text(&body).contains("## Feedback") && text(&body).contains("Keep the flag"), "{body}");
    home.until_status(&id, "reviewing");
    let done = home.json(&["task", "approve", &id, "--message", "Well done"]);
    assert_eq!(done["task"]["status"], "done", "{done:#}");
    assert!(home.history(&id).iter().any(|event| event["type"] == "task.merged"));
    let body = std::fs::read_to_string(home.home_file(&id)).unwrap();
    assert!(body.contains("Well done"), "{body}");
    assert_eq!(home.refused(&["task", "approve", &id]), "1 finished");
    assert_eq!(home.refused(&["task", "reject", &id]), "1 finished");
}

#[test]
fn where_a_lifecycle_has_no_way_back_the_transition_to_add_is_named_and_works() {
    let home = Home::new();
    let id = home.create("stays", PASSES, &[]);
    home.until_status(&id, "reviewing");
    for words in [&["reject", &id, "--message", "no"][..], &["request-changes", &id, "--message", "no"]] {
        let said = home.sluice(&[&["task"], words, &["--json"]].concat());
        assert_eq!(said.refusal(), "1 no_transition");
        let hint = said.json()["error"]["hint"].clone();
        assert!(
            text(&hint).contains("- { from: reviewing, to: working, by: person, hooks: [{ action: notify_worker }] }"),
            "{hint}"
        );
        assert!(text(&hint).contains("`transitions` of `default`"), "{hint}");
    }
    assert_eq!(home.task(&id)["status"], "reviewing");

    // The line is pasted, and a task of that lifecycle goes back.
    let line = "  - { from: reviewing, to: working, by: person, hooks: [{ action: notify_worker }] }\n";
    let shown = home.sluice(&["workflow", "show", "default"]).done().stdout;
    let mine =
        shown.replace("name: default", "name: mine").replacen("transitions:\n", &format!("transitions:\n{line}"), 1);
    std::fs::create_dir_all(home.place().join("workflows")).unwrap();
    std::fs::write(home.place().join("workflows/mine.yml"), mine).unwrap();
    let id = home.create("goes", PASSES, &["--workflow", "mine"]);
    home.until_status(&id, "reviewing");
    let back = home.json(&["task", "reject", &id]);
    assert_eq!(back["transition"]["to"], "working", "{back:#}");
}

#[test]
fn approve_takes_the_only_way_on_and_says_what_that_lacks() {
    let home = Home::new();
    let id = home.create("early", "worker: hang", &[]);
    home.until(&id, "at work", |task| task["session"] == "active");
    // The way on from `working` is its handoff, and a person needs it too.
    assert_eq!(home.refused(&["task", "approve", &id]), "1 gate_failed");
    // A crash leads to no approval: `stuck` is not nearer to the end.
    let crashed = home.create("crashed", "worker: crash", &[]);
    home.until_event(&crashed, "agent.crashed", 1);
    assert_eq!(home.refused(&["task", "approve", &crashed]), "1 gate_failed");
    let waits = home.create("waits", "worker: hang", &["--no-spawn"]);
    let begun = home.json(&["task", "approve", &waits, "--message", "Go on"]);
    assert_eq!(begun["transition"]["to"], "working", "{begun:#}");
    let body = home.json(&["task", "file", &waits])["file"]["text"].clone();
    assert!(text(&body).contains("Go on"), "{body}");
}

#[test]
fn a_diff_shows_commits_and_uncommitted_changes_apart() {
    let home = Home::new();
    home.json(&["project", "update", "coffee", "--pool-size", "1"]);
    let id = home.create("changed", PASSES, &[]);
    let task = home.until_status(&id, "reviewing");
    let folder = workspace(&task);
    sh(&home, &folder, "git mv $(git ls-files demo) 'moved file'; git commit -qm moved; echo draft > 'new file'");
    let found = home.json(&["task", "diff", &id])["diff"].take();
    assert_eq!((&found["branch"], &found["default_branch"]), (&"changed".into(), &"main".into()), "{found:#}");
    assert_eq!(found["commit"], home.git(&["rev-parse", "changed"]).as_str());
    assert_eq!(found["base"], home.git(&["rev-parse", "main"]).as_str());
    assert!(text(&found["committed"]["patch"]).contains("+++ b/moved file"), "{found:#}");
    assert!(!text(&found["committed"]["patch"]).contains("draft"), "{found:#}");
    assert_eq!(found["uncommitted"]["files"][0]["path"], "new file", "{found:#}");
    assert!(text(&found["uncommitted"]["patch"]).contains("+draft"), "{found:#}");
    let before = sh(&home, &folder, "git status --porcelain");
    assert_eq!(before, "?? \"new file\"", "it only looked");

    let shown = home.sluice(&["task", "diff", "changed", "--stat"]).done().stdout;
    assert!(
        shown.contains("committed on changed, over main: ") && shown.contains("uncommitted in its worktree: 1 file"),
        "{shown}"
    );
    assert!(!shown.contains("+draft") && !shown.contains('\u{1b}'), "{shown}");

    // Lent on, and merged.
    sh(&home, &folder, "rm 'new file'");
    let other = home.create("other", "worker: hang", &[]);
    home.until(&other, "begun", |task| task["session"] == "active");
    let lent = home.json(&["task", "diff", &id, "--stat"])["diff"].take();
    assert_eq!((&lent["uncommitted"], &lent["committed"]["count"]), (&Value::Null, &1.into()), "{lent:#}");
    assert!(text(&lent["notes"][0]).contains("lent on"), "{lent:#}");
    home.json(&["task", "merge", &id, "--force"]);
    let merged = home.json(&["task", "diff", &id])["diff"].take();
    assert!(text(&merged["notes"][0]).contains("the task was merged"), "{merged:#}");
}

#[test]
fn a_long_diff_is_cut_and_says_so() {
    let home = Home::new();
    let id = home.create("long", PASSES, &[]);
    let task = home.until_status(&id, "reviewing");
    sh(&home, &workspace(&task), "seq 1 400000 > numbers; git add -A; git commit -qm numbers");
    let found = home.json(&["task", "diff", &id])["diff"].take();
    let part = &found["committed"];
    assert_eq!(part["cut"], true);
    let patch = text(&part["patch"]);
    assert!(patch.len() <= 1 << 20 && patch.len() > 1_000_000 && patch.ends_with('\n'), "{}", patch.len());
    assert!(text(&found["notes"][0]).contains("longer than 1048576 bytes, and is cut"), "{}", found["notes"]);
}

#[test]
fn the_log_of_a_task_is_what_its_agent_printed_without_escapes() {
    let home = Home::new();
    let waits = home.create("silent", "worker: hang", &["--no-spawn"]);
    assert_eq!(home.json(&["task", "log", &waits])["session"], Value::Null);
    let id = home.create("loud", "worker: say \"\u{1b}[31mred\u{1b}[0m plain\"; hang", &[]);
    let log = || home.json(&["task", "log", &id]);
    home.until(&id, "printed", |task| task["session"] == "active" && text(&log()["log"]).contains("plain"));
    let found = log();
    assert_eq!(found["alive"], true);
    assert!(text(&found["log"]).contains("red plain") && !text(&found["log"]).contains('\u{1b}'), "{found:#}");
    assert_eq!(text(&home.json(&["task", "log", &id, "--lines", "1"])["log"]).lines().count(), 1);
    home.json(&["task", "cancel", &id, "--yes"]);
    let after = log();
    assert_eq!(after["alive"], false, "{after:#}");
    assert!(text(&after["log"]).contains("red plain"), "{after:#}");
}

#[test]
fn a_worktree_is_opened_in_the_editor_of_the_person() {
    let home = Home::new();
    let id = home.create("edited", "worker: hang", &[]);
    let task = home.until(&id, "at work", |task| task["session"] == "active");
    let folder = text(&task["workspace"]);
    assert_eq!(home.sluice(&["task", "open", "edited", "--print"]).done().stdout.trim(), folder);
    let opened = home.path("opened");
    let editor = format!("sh -c 'echo \"$1 in $(pwd)\" > {}' editor", opened.display());
    let ran = super::home::run(home.command(&["task", "open", &id]).env("EDITOR", &editor).env_remove("VISUAL"));
    ran.done();
    assert_eq!(std::fs::read_to_string(&opened).unwrap().trim(), format!("{folder} in {folder}"));
    let none =
        super::home::run(home.command(&["task", "open", &id, "--json"]).env_remove("EDITOR").env_remove("VISUAL"));
    assert_eq!(none.done().json()["workspace"], folder);
    let waits = home.create("later", "worker: hang", &["--no-spawn"]);
    assert_eq!(home.refused(&["task", "open", &waits]), "1 no_workspace");
}

#[test]
fn a_task_is_named_by_its_branch_where_that_is_unique() {
    let home = Home::new();
    let id = home.create("feature/login", "worker: hang", &["--no-spawn"]);
    assert_eq!(home.task("feature/login")["id"], id.as_str());
    assert_eq!(home.task(&id[..4])["id"], id.as_str());
    let other = home.path("other");
    sh(&home, Path::new("/"), &format!("git clone -q {} {}", home.repository().display(), other.display()));
    home.json(&["project", "add", other.to_str().unwrap(), "--name", "other"]);
    let twin = home.create("feature/login", "worker: hang", &["--no-spawn", "--project", "other"]);
    let said = home.sluice(&["task", "show", "feature/login", "--json"]);
    assert_eq!(said.code, 2, "{said:?}");
    let message = said.json()["error"]["message"].clone();
    assert!(text(&message).contains(&id) && text(&message).contains(&twin), "{message}");
    home.json(&["task", "cancel", &twin, "--yes"]);
    assert_eq!(home.json(&["task", "cancel", "feature/login", "--yes"])["task"]["id"], id.as_str());
    assert_eq!(home.sluice(&["task", "show", "feature/login", "--json"]).code, 3, "it has ended");
}

#[test]
fn the_branch_of_a_run_is_looked_at_and_merged() {
    let home = fresh();
    let scripted = |name: &str, command: &str| {
        grimoire(&home, name, &format!("steps:\n  - name: one\n    type: script\n    command: |\n      {command}\n"));
        let run = start(&home, &[name]).json()["run"].take();
        (text(&run["id"]).to_owned(), PathBuf::from(text(&run["workspace"])))
    };
    let (id, folder) = scripted("makes", "echo new > made.txt; git add made.txt; git commit -qm made");
    until_status(&home, &id, "completed");
    let found = home.json(&["run", "diff", &id])["diff"].take();
    assert_eq!(
        (&found["committed"]["files"][0]["path"], &found["uncommitted"]["count"]),
        (&"made.txt".into(), &0.into())
    );
    std::fs::write(folder.join("draft.txt"), "draft").unwrap();
    assert_eq!(home.refused(&["run", "merge", &id]), "1 uncommitted");
    std::fs::remove_file(folder.join("draft.txt")).unwrap();
    let merged = home.json(&["run", "merge", &id, "--strategy", "merge"]);
    assert_eq!(merged["commit"], home.git(&["rev-parse", "main"]).as_str(), "{merged:#}");
    assert!(home.repository().join("made.txt").exists(), "the checkout goes along");
    let told = first(&home, &id, "run.merged");
    assert_eq!((&told["data"]["commit"], &told["actor"]), (&merged["commit"], &"engine".into()), "{told:#}");
    assert!(home.git(&["log", "-1", "--format=%B"]).contains(&format!("Run {id} of makes")));

    let (none, _) = scripted("nothing", "true");
    until_status(&home, &none, "completed");
    assert_eq!(home.refused(&["run", "merge", &none]), "1 nothing_to_merge");
    let (failed, _) = scripted("fails", "echo x > part.txt; git add part.txt; git commit -qm part; false");
    until_status(&home, &failed, "failed");
    assert_eq!(home.refused(&["run", "merge", &failed]), "1 not_ready");
    home.json(&["run", "merge", &failed, "--force"]);
    assert!(home.repository().join("part.txt").exists());
}

#[test]
fn a_run_that_is_deleted_is_in_no_list_and_its_work_stays() {
    let home = fresh();
    let command = "echo new > made.txt; git add made.txt; git commit -qm made";
    grimoire(&home, "makes", &format!("steps:\n  - name: one\n    type: script\n    command: |\n      {command}\n"));
    grimoire(&home, "waits", "steps:\n  - name: one\n    type: gate\n    command: \"false\"\n");
    let id = text(&start(&home, &["makes"]).json()["run"]["id"]).to_owned();
    until_status(&home, &id, "completed");
    let held = start(&home, &["waits"]);
    assert_eq!(held.code, 10, "{held:?}");
    let open = text(&held.json()["run"]["id"]).to_owned();

    assert_eq!(home.refused(&["run", "delete", &id]), "2 not_confirmed");
    let deleted = home.json(&["run", "delete", &id, "--yes"]);
    assert!(text(&deleted["notes"][0]).contains("1 commit on"), "{deleted:#}");
    home.json(&["run", "delete", &open, "--yes"]);
    let listed = |home: &Home| home.json(&["run", "list", "--all"])["runs"].as_array().unwrap().len();
    assert_eq!(listed(&home), 0);
    assert_eq!(home.sluice(&["run", "show", &id, "--json"]).code, 3);
    assert_eq!(home.json(&["inbox"])["questions"], serde_json::json!([]), "its question is gone with it");
    assert_eq!(home.git(&["show", &format!("sluice/run-{id}:made.txt")]), "new");
    home.json(&["run", "delete", &id, "--yes"]);
    home.kill_engine();
    assert_eq!(listed(&home), 0, "another engine knows it too");
    let story = home.sluice(&["events", "--correlation", &id]).done().stdout;
    assert_eq!(story.matches("run.deleted").count(), 1, "{story}");
    let story = home.sluice(&["events", "--correlation", &id, "--type", "run.deleted", "--json"]).done();
    assert!(text(&story.json()["actor"]).starts_with("person"), "{story:?}");
}

#[test]
fn what_a_deleted_run_leaves_goes_at_once_and_its_work_is_kept() {
    let home = fresh();
    grimoire(&home, "fails", "steps:\n  - {name: one, type: script, command: 'echo half > half.txt; false'}\n");
    grimoire(&home, "clean", "steps:\n  - {name: one, type: script, command: 'false'}\n");
    let begun = |recipe: &str| {
        let id = text(&start(&home, &[recipe]).json()["run"]["id"]).to_owned();
        until_status(&home, &id, "failed");
        assert!(home.place().join("runs").join(&id).is_dir(), "what failed may be tried again there");
        id
    };
    for (recipe, is_kept) in [("clean", false), ("fails", true)] {
        let id = begun(recipe);
        let deleted = home.json(&["run", "delete", &id, "--yes"]);
        assert!(deleted["notes"].is_null(), "{deleted:#}");
        assert!(!home.place().join("runs").join(&id).exists(), "{recipe}");
        assert_eq!(home.git(&["branch", "--list", &format!("*{id}*")]), "", "{recipe}");
        let refs = home.git(&["for-each-ref", "--format=%(refname)", "refs/sluice"]);
        assert_eq!(refs.contains(&id), is_kept, "{recipe}: {refs}");
    }
}

#[test]
fn events_say_whose_they_are_and_a_follower_begins_now() {
    let home = Home::new();
    let first = home.create("first", "worker: hang", &["--no-spawn"]);
    let told = home.sluice(&["events", "--type", "task.created"]).done().stdout;
    assert!(told.contains(&format!("coffee/first {first}")), "{told}");
    let shown = home.sluice(&["events", "--type", "task.created", "--json"]).done().stdout;
    let event: Value = serde_json::from_str(shown.trim()).unwrap();
    assert_eq!(event["subject"], "coffee/first");

    let mut command = home.command(&["events", "--follow", "--json", "--type", "task.created"]);
    let mut follower = super::home::Happening::of(&mut command);
    // Whether it follows yet is seen by what comes: tasks are created until one does, and it is none from before.
    let give_up = std::time::Instant::now() + super::home::LONG;
    let mut later = Vec::new();
    let heard = loop {
        later.push(home.create(&format!("later-{}", later.len()), "worker: hang", &["--no-spawn"]));
        let soon = std::time::Instant::now() + std::time::Duration::from_millis(500);
        match follower.next(soon.min(give_up)) {
            Some(event) => break event,
            None => assert!(std::time::Instant::now() < give_up, "nothing was heard"),
        }
    };
    assert!(later.iter().any(|id| heard["data"]["task_id"] == id.as_str()), "{heard:#}");
    let mut all = home.follow(&["--type", "task.created"]);
    assert_eq!(all.next(give_up).unwrap()["data"]["task_id"], first.as_str(), "--all begins at the first");
}

#[test]
fn a_list_that_is_watched_is_shown_again_when_something_happens() {
    use std::io::{BufRead, BufReader};
    let home = Home::new();
    home.create("first", "worker: hang", &["--no-spawn"]);
    for (list, makes_news) in [("task", true), ("run", false)] {
        let mut command = home.command(&[list, "list", "--all", "--watch", "--json"]);
        let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut document = || {
            let mut text = String::new();
            while !text.ends_with("\n}\n") {
                let line = lines.next().unwrap().unwrap();
                text.push_str(&format!("{line}\n"));
            }
            serde_json::from_str::<Value>(&text).unwrap()
        };
        let shown = document();
        if makes_news {
            assert_eq!(shown["tasks"].as_array().unwrap().len(), 1, "{shown:#}");
            let id = home.create("second", "worker: hang", &["--no-spawn"]);
            while document()["tasks"][1]["id"] != id.as_str() {}
        } else {
            assert_eq!(shown["runs"], serde_json::json!([]));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// A person who has stopped the engine wants none, and a list that is watched only waits for the next.
#[test]
fn a_list_that_is_watched_starts_no_engine_again() {
    use std::io::{BufRead, BufReader};
    let home = Home::new();
    let mut command = home.command(&["task", "list", "--all", "--watch", "--json"]);
    let (output, errors) = (std::process::Stdio::piped(), std::process::Stdio::piped());
    let mut child = command.stdout(output).stderr(errors).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |wanted: &str| while !lines.next().unwrap().unwrap().contains(wanted) {};
    until("\"tasks\": []");
    let before = home.engine_pid();
    home.sluice(&["stop"]).done();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    while !said.next().unwrap().unwrap().contains("the engine is away") {}
    // It asks again each second; whether it starts one is seen by who has the home.
    let enough = std::time::Instant::now() + std::time::Duration::from_secs(3);
    while std::time::Instant::now() < enough {
        assert_eq!(home.engine_pid(), before, "an engine was started");
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    }
    let id = home.create("later", "worker: hang", &["--no-spawn"]);
    until(&id);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_table_fits_the_terminal_and_has_ages() {
    let home = Home::new();
    let id = home.create("narrow", "worker: hang", &["--no-spawn"]);
    let long = "A summary that is far too long for a terminal of eighty columns, and goes on";
    home.json(&["task", "update", &id, "--summary", long]);
    let mut command = home.command(&["task", "list"]);
    let ran = super::home::run(command.env("COLUMNS", "80")).done();
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 80) && ran.stdout.contains('…'), "{}", ran.stdout);
    assert_eq!(ran.stdout.lines().count(), 2, "{}", ran.stdout);
    assert!(ran.stdout.contains("CHANGED") && !ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
    let coloured = super::home::run(home.command(&["task", "list", "--all"]).env("CLICOLOR_FORCE", "1")).done().stdout;
    assert!(coloured.contains("\u{1b}["), "{coloured:?}");
    let shown = home.sluice(&["task", "show", &id]).done().stdout;
    assert!(shown.contains("s ago)"), "{shown}");
}
