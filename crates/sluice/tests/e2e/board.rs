//! What screens are made of: the board and its rows, terminals, changes with comments, usage and costs, time bars, workers, and
//! saved views. Every answer is held against the document.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::crab_protocol::listen;
use super::described::{Described, furnished};
use super::home::Home;
use super::merges::sh;
use super::recipes::{grimoire, settled, text};
use super::served::{Answer, token};

const PASSES: &str = "worker: work\nreviewer: review pass";

#[track_caller]
fn row(board: &Value, id: &str) -> Value {
    let rows = board["rows"].as_array().unwrap();
    rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("no row {id}: {board:#}")).clone()
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(text).collect()
}

fn run(api: &mut Described, home: &Home, recipe: &str) -> String {
    let wanted = json!({ "recipe": recipe, "cwd": home.repository() });
    let id = text(&api.does("POST", "/v1/recipe/runs", &wanted.to_string())["run"]["id"]).to_owned();
    settled(home, &id);
    id
}

/// The events after a place in the log.
fn after(api: &mut Described, cursor: &Value) -> Vec<Value> {
    let lines = api.does("GET", &format!("/v1/events?after={cursor}"), "");
    // The answer comes in chunks, whose lengths stand between the lines.
    let events = text(&lines).lines().filter(|line| line.starts_with('{'));
    events.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_board_tells_whose_turn_it_is_and_what_can_be_done() {
    let home = furnished();
    home.json(&["project", "update", "coffee", "--pool-size", "3"]);
    let mut api = Described::serve(&home);
    let ready = home.create("ready", PASSES, &[]);
    home.until_status(&ready, "reviewing");
    let here = home.pipe("here");
    let works = home.create("works", &format!("worker: say \"busy \u{1b}[31mred\"; tell {}; hang", here.path()), &[]);
    here.hear();
    let rests = home.create("rests", "worker: hang", &["--no-spawn"]);
    let gone = home.create("gone", "worker: hang", &["--no-spawn"]);
    home.json(&["task", "cancel", &gone, "--yes"]);
    let held = run(&mut api, &home, "gated");
    let made = run(&mut api, &home, "makes");

    let board = api.does("GET", "/v1/board", "");
    let group = |id: &str| text(&row(&board, id)["group"]).to_owned();
    let groups = [&ready, &works, &rests, &gone, &held, &made].map(|id| group(id));
    assert_eq!(groups, ["ready_to_merge", "working", "queued", "done", "needs_you", "done"], "{board:#}");
    let counts = json!({ "needs_you": 1, "working": 1, "queued": 1, "in_review": 0, "ready_to_merge": 1,
        "done_today": 2, "merged_today": 1, "cancelled_today": 1, "inbox": 2 });
    assert_eq!(board["counts"], counts);
    let order: Vec<&str> = board["rows"].as_array().unwrap().iter().map(|row| text(&row["id"])).collect();
    assert_eq!(order[..4], [&held, &ready, &works, &rests].map(String::as_str), "by whose turn it is");
    let pool = &board["projects"][0];
    assert_eq!((&pool["name"], &pool["pool_size"], &pool["used"]), (&"coffee".into(), &3.into(), &2.into()), "{pool}");
    assert_eq!((&board["left_out"], &board["cut"]), (&0.into(), &Value::Null));

    let work = row(&board, &works);
    assert_eq!((&work["alive"], &work["harness"], &work["name"]), (&true.into(), &"demo".into(), &"works".into()));
    assert!(text(&work["text"]).contains("red") && !text(&work["text"]).contains('\u{1b}'), "{work:#}");
    assert_eq!(work["activity"].as_array().unwrap().len(), 8);
    assert_eq!(words(&work["actions"]), ["cancel", "create_pr", "attach", "nudge", "delete"]);
    assert_eq!(words(&row(&board, &rests)["actions"]), ["cancel", "spawn", "delete"]);
    let merge = row(&board, &ready);
    assert_eq!(words(&merge["actions"]), ["merge", "cancel", "create_pr", "approve", "answer", "delete"]);
    assert_eq!((&merge["round"]["round"], &merge["attention"]["reason"]), (&1.into(), &"review".into()), "{merge:#}");
    let asks = row(&board, &held);
    assert_eq!(words(&asks["attention"]["choices"]), ["retry", "skip", "abort"], "{asks:#}");
    assert_eq!((&asks["kind"], &asks["step"], &asks["project"]), (&"run".into(), &"tests".into(), &"coffee".into()));
    assert_eq!(words(&asks["actions"]), ["cancel", "delete", "answer"]);
    assert_eq!(words(&row(&board, &made)["actions"]), ["merge", "delete"]);

    // What is done by a key of the footer is done, and the row tells of it.
    let cursor = board["cursor"].clone();
    // The end of a run is told before its worktree has been given back.
    let is_seen = |event: &Value| !text(&event["type"]).starts_with("effect.");
    assert_eq!(after(&mut api, &cursor).into_iter().filter(is_seen).count(), 0, "nothing has happened since");
    api.does("POST", &format!("/v1/lifecycle/tasks/{ready}/merge"), "{}");
    let news = after(&mut api, &cursor);
    assert!(news.iter().any(|event| event["type"] == "task.merged" && event["correlation_id"] == *ready), "{news:#?}");
    let rows = api.does("GET", &format!("/v1/board/rows?id={ready},{works},unknown"), "");
    assert_eq!((&row(&rows, &ready)["group"], &row(&rows, &ready)["status"]), (&"done".into(), &"done".into()));
    assert_eq!((words(&rows["gone"]), rows["rows"].as_array().unwrap().len()), (vec!["unknown"], 2));
    assert!(rows["cursor"].as_u64() > cursor.as_u64());
    home.json(&["task", "delete", &gone, "--yes"]);
    let now = api.does("GET", "/v1/board?project=coffee", "");
    assert_eq!((&now["counts"]["done_today"], &now["counts"]["merged_today"]), (&2.into(), &2.into()), "{now:#}");
    let refused = |path: &str| api.served.ask("GET", path, Some(&api.secret), "").short();
    assert_eq!(refused("/v1/board?project=tea"), "404 not_found");
    assert_eq!(refused("/v1/board/rows"), "400 bad_request");
    assert_eq!(refused(&format!("/v1/board/rows?id={}", vec!["x"; 101].join(","))), "400 bad_request");
}

#[test]
fn a_board_shows_how_large_a_change_is_that_waits_for_a_person() {
    let home = furnished();
    let mut api = Described::serve(&home);
    let id = home.create("sized", PASSES, &[]);
    home.until_status(&id, "reviewing");
    let found = api.does("GET", &format!("/v1/board/rows?id={id}"), "");
    let size = row(&found, &id)["diff"].clone();
    assert_eq!(size["files"], 1, "{found:#}");
    assert!(size["added"].as_u64() > Some(0), "{size}");
    assert_eq!(row(&api.does("GET", "/v1/board", ""), &id)["diff"], size, "and it is known from then on");
}

/// A lifecycle in which nothing is merged, nothing can be given up, and the names of all states are its own.
const OWN: &str = r#"name: own
version: 1
states:
  idea: {}
  draft: {}
  shelf: { terminal: true }
transitions:
  - { from: idea, to: draft, hooks: [{ action: acquire_workspace }, { action: spawn_agent, prompt: write, harness: task, permissions: full }] }
  - { from: draft, to: shelf, by: person, hooks: [{ action: kill_session }, { action: release_workspace }] }
prompts:
  write: "Write."
"#;

#[test]
fn what_can_be_done_is_told_by_the_lifecycle_and_not_by_the_names_of_states() {
    let home = furnished();
    std::fs::create_dir_all(home.place().join("workflows")).unwrap();
    std::fs::write(home.place().join("workflows/own.yml"), OWN).unwrap();
    let mut api = Described::serve(&home);
    let id = home.create("shelved", "worker: hang", &["--workflow", "own", "--no-spawn"]);
    let actions = |api: &mut Described| {
        let found = api.does("GET", "/v1/board", "");
        words(&row(&found, &id)["actions"]).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(actions(&mut api), ["spawn", "delete"]);
    api.does("POST", &format!("/v1/lifecycle/tasks/{id}/spawn"), "");
    home.until(&id, "at work", |task| task["session"] == "active");
    let now = actions(&mut api);
    assert!(!now.iter().any(|it| ["merge", "cancel", "request_changes", "respawn"].contains(&it.as_str())), "{now:?}");
    assert!(["approve", "attach", "create_pr"].iter().all(|it| now.contains(&(*it).to_owned())), "{now:?}");
    api.does("POST", &format!("/v1/lifecycle/tasks/{id}/approve"), "{}");
    home.until(&id, "ended", |task| task["ended"] == true);
    let found = api.does("GET", "/v1/board", "");
    assert_eq!((&row(&found, &id)["group"], &row(&found, &id)["status"]), (&"done".into(), &"shelf".into()));
    assert_eq!((&found["counts"]["done_today"], &found["counts"]["merged_today"]), (&1.into(), &0.into()));
}

#[test]
fn a_client_that_follows_from_a_boards_cursor_misses_nothing() {
    let home = furnished();
    let mut api = Described::serve(&home);
    let url = api.served.url.clone();
    std::thread::scope(|scope| {
        let creating = scope.spawn(|| {
            for number in 0..12 {
                let mut command = home.command(&["task", "create", &format!("b{number}"), "Do it", "--no-spawn"]);
                super::home::run(command.args(["--harness", "demo"])).done();
            }
        });
        let mut looks = 0;
        loop {
            let is_over = creating.is_finished();
            let board = api.does("GET", "/v1/board", "");
            let cursor = board["cursor"].as_u64().unwrap();
            let shown: BTreeSet<&str> = board["rows"].as_array().unwrap().iter().map(|row| text(&row["id"])).collect();
            let events = after(&mut api, &json!(0));
            let created = events.iter().filter(|event| event["type"] == "task.created");
            for event in created.filter(|event| event["seq"].as_u64().unwrap() <= cursor) {
                let id = text(&event["correlation_id"]);
                assert!(shown.contains(id), "{id} was created before {cursor}, and is not on the board of {url}");
            }
            looks += 1;
            if is_over {
                assert_eq!(shown.len(), 12, "after {looks} looks");
                break;
            }
        }
    });
    // A new engine reads the day again.
    home.sluice(&["stop"]).done();
    let mut api = Described::serve(&home);
    assert_eq!(api.does("GET", "/v1/board", "")["counts"]["queued"], 12);
}

#[test]
fn a_screen_is_what_stands_on_the_terminal_and_nothing_that_a_terminal_obeys() {
    let home = furnished();
    let mut api = Described::serve(&home);
    let waits = home.create("silent", "worker: hang", &["--no-spawn"]);
    let none = api.does("GET", &format!("/v1/lifecycle/tasks/{waits}/screen"), "");
    assert_eq!((&none["session"], &none["lines"]), (&Value::Null, &json!([])));
    let here = home.pipe("here");
    let script =
        format!("worker: say \"\u{1b}[31mred\u{1b}[0m plain \u{1b}]52;c;Zm9v\u{7}!\"; tell {}; hang", here.path());
    let id = home.create("loud", &script, &[]);
    here.hear();
    let at = format!("/v1/lifecycle/tasks/{id}/screen");
    let lines = |screen: &Value| words(&screen["lines"]).join("\n");
    let mut screen = api.does("GET", &at, "");
    home.until(&id, "seen", |_| {
        screen = api.does("GET", &at, "");
        lines(&screen).contains("red plain")
    });
    assert_eq!((&screen["alive"], screen["cursor"].is_object()), (&true.into(), true), "{screen:#}");
    assert!(screen["rows"].as_u64() > Some(5) && screen["columns"].as_u64() > Some(20), "{screen:#}");
    home.json(&["task", "cancel", &id, "--yes"]);
    let after = api.does("GET", &at, "");
    assert_eq!((&after["alive"], &after["cursor"]), (&false.into(), &Value::Null));
    for shown in [&screen, &after] {
        assert!(lines(shown).contains("red plain"), "{shown:#}");
        assert!(!lines(shown).chars().any(|it| it.is_control() && it != '\n'), "{shown:#}");
    }
}

#[test]
fn changes_are_told_by_lines_and_comments_at_them_reach_the_worker() {
    let home = furnished();
    let mut api = Described::serve(&home);
    let id = home.create("lines", PASSES, &["--workflow", "reviewed"]);
    let task = home.until_status(&id, "reviewing");
    let folder = PathBuf::from(text(&task["workspace"]));
    let at = format!("/v1/lifecycle/tasks/{id}");
    let found = api.does("GET", &format!("{at}/changes"), "");
    assert_eq!((&found["branch"], &found["committed"]["count"]), (&"lines".into(), &1.into()), "{found:#}");
    let since = &found["since_verdict"];
    assert_eq!((&since["verdict"], &since["commits"]), (&"PASS".into(), &json!([])), "{since:#}");
    sh(
        &home,
        &folder,
        "printf 'one\\ntwo\\n' > more; git add -A; git commit -qm 'two lines'; printf 'one\\n2\\n' > more",
    );
    let found = api.does("GET", &format!("{at}/changes"), "");
    let since = &found["since_verdict"];
    assert_eq!(since["commits"][0]["subject"], "two lines", "{since:#}");
    assert_eq!((&since["committed"]["count"], &found["committed"]["count"]), (&1.into(), &2.into()));
    let file = &since["committed"]["files"][0];
    assert_eq!((&file["path"], &file["change"], &file["added"]), (&"more".into(), &"added".into(), &2.into()));
    let line = json!({ "change": "added", "old": null, "new": 2, "text": "two" });
    assert_eq!(file["hunks"][0]["lines"][1], line, "{file:#}");
    let lines = &found["uncommitted"]["files"][0]["hunks"][0]["lines"];
    let removed = json!({ "change": "removed", "old": 2, "new": null, "text": "two" });
    assert_eq!(lines[1], removed, "{found:#}");

    sh(&home, &folder, "git checkout -q more");
    let nothing = api.served.ask("POST", &format!("{at}/request-changes"), Some(&api.secret), "{}");
    assert_eq!(nothing.short(), "400 bad_request");
    let comments =
        json!([{ "file": "more", "line": 2, "text": "Write 2" }, { "file": "more", "text": "A better name" }]);
    let wanted = json!({ "message": "Almost.", "comments": comments }).to_string();
    let sent = api.does("POST", &format!("{at}/request-changes"), &wanted);
    assert_eq!(sent["transition"]["to"], "working", "{sent:#}");
    let body = api.does("GET", &format!("{at}/file"), "")["text"].clone();
    let feedback = "## Feedback\n\nAlmost.\n\n- `more` line 2: Write 2\n- `more`: A better name";
    assert!(text(&body).contains(feedback), "{body}");
    let made = run(&mut api, &home, "makes");
    let found = api.does("GET", &format!("/v1/recipe/runs/{made}/changes"), "");
    assert_eq!(found["committed"]["files"][0]["hunks"][0]["lines"][0]["text"], "new", "{found:#}");
}

#[test]
fn usage_costs_and_time_bars_tell_of_every_attempt() {
    let home = furnished();
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":4}}"#;
    let said = home.path("said.jsonl");
    std::fs::write(&said, format!("{result}\n")).unwrap();
    let config = format!("\n[harnesses.told]\nheadless = [\"cat\", \"{}\"]\noutput = \"claude\"\n", said.display());
    let file = home.place().join("config.toml");
    let mut whole = std::fs::read_to_string(&file).unwrap();
    whole.push_str(&config);
    std::fs::write(&file, whole).unwrap();
    grimoire(
        &home,
        "spends",
        "steps:\n  - {name: talk, type: agent, harness: told, prompt: 'Talk.'}\n  - {name: quiet, type: agent, harness: shell, prompt: 'true'}\n  - {name: check, type: script, command: 'true'}\n",
    );
    home.commit();
    let mut api = Described::serve(&home);
    let id = run(&mut api, &home, "spends");
    let at = format!("/v1/recipe/runs/{id}");
    let usage = api.does("GET", &format!("{at}/usage"), "");
    let total = &usage["total"];
    assert_eq!(
        (&total["attempts"], &total["cost_usd"], &total["without_cost"]),
        (&2.into(), &0.25.into(), &1.into()),
        "{usage:#}"
    );
    assert_eq!((&total["output_tokens"], &total["total_tokens"]), (&4.into(), &14.into()));
    let attempts: Vec<String> = usage["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {} {}", text(&it["step"]), text(&it["harness"]), it["usage"]["cost_usd"]))
        .collect();
    assert_eq!(attempts, ["talk told 0.25", "quiet shell null"]);

    let bars = api.does("GET", &format!("{at}/timeline"), "");
    let told: Vec<String> = bars["bars"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bar| format!("{} {} {}", text(&bar["step"]), bar["attempt"], text(&bar["end"])))
        .collect();
    assert_eq!(told, ["talk 1 completed", "quiet 1 completed", "check 1 completed"], "{bars:#}");
    let moments: Vec<&str> = bars["bars"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|bar| [text(&bar["started_at"]), text(&bar["finished_at"])])
        .collect();
    assert!(moments.is_sorted() && bars["finished_at"].is_string(), "{bars:#}");

    let keys = |costs: &Value| {
        costs["rows"].as_array().unwrap().iter().map(|row| text(&row["key"]).to_owned()).collect::<Vec<_>>()
    };
    let by_run = api.does("GET", "/v1/costs?by=run", "");
    assert_eq!((keys(&by_run), &by_run["total"]["cost_usd"]), (vec![id.clone()], &0.25.into()), "{by_run:#}");
    assert_eq!(by_run["rows"][0]["name"], "spends");
    let by_harness = api.does("GET", "/v1/costs?by=harness&days=7", "");
    assert_eq!(keys(&by_harness), ["told", "shell"], "the dearest first");
    assert_eq!(by_harness["rows"][1]["cost_usd"], Value::Null, "what is not told is not zero");
    let by_project = api.does("GET", "/v1/costs?by=project&project=coffee", "");
    assert_eq!(keys(&by_project), ["coffee"]);
    for by in ["task", "day", "model"] {
        assert_eq!(api.does("GET", &format!("/v1/costs?by={by}"), "")["rows"].as_array().unwrap().len(), 1, "{by}");
    }
    assert_eq!(api.served.ask("GET", "/v1/costs?days=1000", Some(&api.secret), "").short(), "400 bad_request");
    let board = api.does("GET", "/v1/board", "");
    assert_eq!((&board["today"]["cost_usd"], &row(&board, &id)["usage"]["cost_usd"]), (&0.25.into(), &0.25.into()));
    let screen = api.does("GET", &format!("{at}/screen?step=talk"), "");
    assert!(words(&screen["lines"]).iter().any(|line| line.contains("total_cost_usd")), "{screen:#}");

    let task = home.create("asks", PASSES, &[]);
    home.until_status(&task, "reviewing");
    let usage = api.does("GET", &format!("/v1/lifecycle/tasks/{task}/usage"), "");
    let total = &usage["total"];
    assert_eq!(
        (&total["attempts"], &total["cost_usd"], &total["without_cost"]),
        (&2.into(), &Value::Null, &2.into()),
        "{usage:#}"
    );
}

#[test]
fn workers_and_what_waits_for_them_are_told_in_plain_words() {
    let home = furnished();
    let config = home.place().join("config.toml");
    let at_once = "\n[attention]\nworker_after = \"0s\"\n";
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap() + at_once).unwrap();
    let mut api = Described::serve(&home);
    let colony = text(&api.does("POST", "/v1/colonies", r#"{"name":"bay"}"#)["colony_id"]).to_owned();
    let crab = json!({ "crab_id": "piper", "colony_id": colony, "name": "Piper", "role": "tester" });
    api.does("POST", "/v1/crabs/register", &crab.to_string());
    let mission = json!({ "colony_id": colony, "prompt": "Fix it", "workflow": "dev-task" });
    let mission = text(&api.does("POST", "/v1/missions", &mission.to_string())["mission_id"]).to_owned();
    api.does("POST", "/v1/scheduler/tick", "");
    let found = api.does("GET", "/v1/workers", "");
    let piper = &found["workers"][0];
    assert_eq!(
        (&piper["state"], &piper["lease"], &piper["group"]),
        (&"idle".into(), &Value::Null, &colony.as_str().into())
    );
    let waits = &found["waiting"][0];
    assert_eq!((&waits["run"], &waits["role"]), (&mission.as_str().into(), &"planner".into()), "{found:#}");
    assert_eq!((&found["waiting_count"], &found["pools"][0]["name"]), (&1.into(), &"coffee".into()));
    let board = api.does("GET", "/v1/board", "");
    assert_eq!(
        (&row(&board, &mission)["group"], &row(&board, &mission)["attention"]["reason"]),
        (&"needs_you".into(), &"worker".into())
    );

    let crab = json!({ "crab_id": "clawde", "colony_id": colony, "name": "Clawde", "role": "planner" });
    api.does("POST", "/v1/crabs/register", &crab.to_string());
    let mut ear = listen(&api.served, "clawde", &api.secret);
    ear.hear();
    let found = api.does("GET", "/v1/workers", "");
    let clawde = &found["workers"][0];
    assert_eq!((&clawde["state"], &clawde["lease"]["run"]), (&"busy".into(), &mission.as_str().into()), "{found:#}");
    assert!(clawde["silent_seconds"].is_u64() && clawde["lease"]["ends_in_seconds"].is_u64(), "{clawde:#}");
    assert_eq!(found["waiting"], json!([]));
}

#[test]
fn views_are_saved_by_persons_within_bounds_and_outlive_the_engine() {
    let home = furnished();
    let mut api = Described::serve(&home);
    assert_eq!(api.does("GET", "/v1/views", ""), json!({ "views": [] }));
    let mine = json!({ "views": [{ "name": "mine", "groups": ["needs_you"], "filter": "login" },
        { "name": "coffee", "project": "coffee" }] });
    assert_eq!(api.does("PUT", "/v1/views", &mine.to_string()), mine);
    let (_, reader) = token(&home, &["--scope", "read"]);
    let put = |views: Value, secret: &str| -> Answer {
        api.served.ask("PUT", "/v1/views", Some(secret), &json!({ "views": views }).to_string())
    };
    assert_eq!(put(json!([]), &reader).status, 403);
    for wrong in [
        json!([{ "name": "" }]),
        json!([{ "name": "x".repeat(61) }]),
        json!([{ "name": "x", "filter": "y".repeat(401) }]),
        json!(vec![json!({ "name": "x" }); 10]),
        json!([{ "name": "x", "groups": ["unknown"] }]),
    ] {
        assert_eq!(put(wrong.clone(), &api.secret).status, 400, "{wrong}");
    }
    for path in ["/v1/board", "/v1/workers", "/v1/costs", "/v1/views"] {
        assert_eq!(api.served.ask("GET", path, Some(&reader), "").status, 200, "a reader reads {path}");
    }
    home.sluice(&["stop"]).done();
    let mut api = Described::serve(&home);
    assert_eq!(api.does("GET", "/v1/views", ""), mine);
}

#[test]
fn a_task_tells_what_was_kept_of_it_and_it_is_restored_without_naming_a_folder() {
    let home = furnished();
    let mut api = Described::serve(&home);
    let here = home.pipe("here");
    let id = home.create("undone", &format!("worker: edit notes.md \"hot\"; tell {}; hang", here.path()), &[]);
    here.hear();
    let at = format!("/v1/lifecycle/tasks/{id}");
    assert_eq!(api.does("GET", &at, "")["task"].get("kept"), None);
    api.does("POST", &format!("{at}/cancel"), "");
    let kept = api.does("GET", &at, "")["task"]["kept"].clone();
    assert_eq!((&kept[0]["task"], &kept[0]["number"]), (&id.as_str().into(), &1.into()), "{kept:#}");
    assert_eq!(api.does("GET", "/v1/workers", "")["kept"], kept);
    let restored = api.does("POST", "/v1/workspaces/restore", &json!({ "task": id }).to_string());
    let folder = PathBuf::from(restored.as_object().unwrap().values().next().and_then(Value::as_str).unwrap());
    assert!(folder.join("notes.md").exists(), "{restored:#}");
}

#[test]
fn every_face_counts_the_same_that_needs_a_person() {
    let home = Home::new();
    home.sluice(&["project", "update", "coffee", "--pool-size", "3"]).done();
    let review = home.create("review", "worker: work\nreviewer: review pass", &[]);
    let asks = home.create("asks", "worker: update clarification; wait for notification", &[]);
    let dies = home.create("dies", "worker: exit 3", &[]);
    home.until_status(&review, "reviewing");
    home.until(&asks, "clarification", |task| task["attention"]["reason"] == "clarification");
    home.until(&dies, "crashed", |task| task["attention"]["reason"] == "crashed");
    let inbox = home.json(&["inbox"])["questions"].as_array().unwrap().len();
    assert_eq!(inbox, 3);
    assert_eq!(home.json(&["status"])["counts"]["inbox"], inbox);
    let told = |words: &[&str]| home.sluice(words).done().stdout;
    assert!(told(&["status"]).contains("3 wait for you"), "{}", told(&["status"]));
    assert!(told(&["status", "--short", "--ascii"]).starts_with("!3 "), "{}", told(&["status", "--short", "--ascii"]));
    let board = told(&["dashboard", "--once", "--ascii"]);
    assert!(board.contains("3 need you"), "{board}");
}
