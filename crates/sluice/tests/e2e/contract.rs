//! What scripts may rely on: keys, codes, exit codes, and the commands around tasks.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::home::{Home, run};

const KEYS: [&str; 18] = [
    "id",
    "project",
    "branch",
    "workflow",
    "harness",
    "review_harness",
    "status",
    "review_round",
    "crash_count",
    "summary",
    "workspace",
    "tmux_session",
    "session",
    "idle_seconds",
    "attention",
    "pr_url",
    "created_at",
    "updated_at",
];

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn a_task_has_these_keys_wherever_it_is_shown() {
    let home = Home::new();
    let created =
        home.json(&["task", "create", "brew", "Brew it", "--harness", "demo", "--no-spawn", "--context", "demo: hang"]);
    let id = created["task"]["id"].as_str().unwrap();
    let spawned = home.json(&["task", "spawn", id]);
    let updated = home.json(&["task", "update", id, "--status", "stuck"]);
    let listed = home.json(&["task", "list"]);
    let shown = home.json(&["task", "show", id]);
    assert_eq!(keys(&shown), ["task"]);
    for task in [&created["task"], &spawned["task"], &updated["task"], &listed["tasks"][0], &shown["task"]] {
        // Others may be added; none of these goes away.
        let missing: Vec<&str> = KEYS.into_iter().filter(|key| task.get(key).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?} in {task:#}");
    }
    let transition = &updated["transition"];
    assert_eq!(keys(transition), ["effects", "from", "to"]);
    assert_eq!(keys(&spawned["transition"]["effects"][0]), ["action", "error", "id", "status"]);
    assert_eq!((&transition["from"], &transition["to"]), (&"working".into(), &"stuck".into()));
    let task = &shown["task"];
    assert_eq!(
        (&task["harness"], &task["review_harness"], &task["workflow"]),
        (&"demo".into(), &"demo".into(), &"default".into())
    );
}

#[test]
fn a_full_pool_leaves_a_task_pending_and_next_in_line() {
    let home = Home::new();
    home.json(&["project", "update", "coffee", "--pool-size", "1"]);
    // Its worker lives until the merge, so that its worktree is not lent on.
    let first = home.create("first", "worker: work\nreviewer: review pass", &["--workflow", "persistent"]);
    let second = home.create("second", "worker: hang", &[]);
    let third = home.create("third", "worker: hang", &[]);
    for id in [&second, &third] {
        let task = home.task(id);
        assert_eq!((&task["status"], &task["attention"]["text"]), (&"pending".into(), &"pool full".into()));
    }
    home.until_status(&first, "reviewing");
    assert_eq!(home.task(&second)["status"], "pending");
    home.json(&["task", "merge", &first]);
    let task = home.until_status(&second, "working");
    assert_eq!((&task["attention"], &task["session"]), (&Value::Null, &"active".into()));
    assert_eq!(home.task(&third)["status"], "pending");
    // Giving up a task makes room too.
    home.json(&["task", "cancel", &second, "--yes"]);
    let task = home.until_status(&third, "working");
    assert_eq!((&task["attention"], &task["session"]), (&Value::Null, &"active".into()));
    // Asked for when there is no room, it is no error either.
    let fourth = home.create("fourth", "worker: hang", &["--no-spawn"]);
    let answer = home.json(&["task", "spawn", &fourth]);
    assert_eq!(
        (&answer["task"]["status"], &answer["task"]["attention"]["text"]),
        (&"pending".into(), &"pool full".into())
    );
}

#[test]
fn ids_are_taken_by_their_shortest_unique_beginning() {
    let home = Home::new();
    let mut ids: Vec<String> = Vec::new();
    // Of more ids than letters, two begin alike.
    let (one, other) = loop {
        let id = home.create(&format!("b{}", ids.len()), "worker: hang", &["--no-spawn"]);
        match ids.iter().find(|other| other[..1] == id[..1]) {
            Some(other) => break (id.clone(), other.clone()),
            None => ids.push(id),
        }
    };
    let ambiguous = home.sluice(&["task", "show", &one[..1], "--json"]);
    assert_eq!(ambiguous.code, 2, "{ambiguous:?}");
    let message = ambiguous.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&one) && message.contains(&other), "{message}");
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    assert_eq!(home.task(&one[..=same])["id"], one.as_str());
    assert_eq!(home.task(&other)["id"], other.as_str());
}

#[test]
fn mistakes_have_a_code_an_exit_code_and_a_way_out() {
    let home = Home::new();
    let elsewhere = |arguments: &[&str]| run(home.command(arguments).current_dir(home.path("user")));
    let taken = home.create("taken", "worker: hang", &["--no-spawn"]);
    let said = [
        ("unknown id", home.sluice(&["task", "show", "zzz", "--json"])),
        ("unknown project", home.sluice(&["task", "create", "x", "y", "--project", "tea", "--json"])),
        ("no project here", elsewhere(&["task", "create", "x", "y", "--harness", "demo", "--json"])),
        ("no task here", elsewhere(&["task", "update", "--status", "working", "--json"])),
        ("no repository", elsewhere(&["project", "add", "--json"])),
        ("unknown workflow", home.sluice(&["task", "create", "x", "y", "--workflow", "none", "--json"])),
        ("unknown harness", home.sluice(&["task", "create", "x", "y", "--harness", "none", "--json"])),
        ("a branch that git refuses", home.sluice(&["task", "create", "a..b", "y", "--harness", "demo", "--json"])),
        ("a branch that is taken", home.sluice(&["task", "create", "taken", "y", "--harness", "demo", "--json"])),
        ("a project twice", home.sluice(&["project", "add", "--json"])),
        ("nothing to change", home.sluice(&["task", "update", &taken, "--json"])),
        ("an unknown word", home.sluice(&["task", "frobnicate", "--json"])),
        ("no time", home.sluice(&["events", "--since", "yesterday", "--json"])),
        ("nobody to nudge", home.sluice(&["task", "nudge", &taken, "hello", "--json"])),
        ("nothing to attach to", home.sluice(&["task", "attach", &taken, "--json"])),
        ("an unknown harness to teach", home.sluice(&["skill", "install", "--harness", "none", "--json"])),
        ("a restore from nothing", home.sluice(&["restore", "none.db", "--json"])),
    ];
    let lines: Vec<String> = said
        .iter()
        .map(|(what, ran)| {
            let error = &ran.json()["error"];
            assert_eq!(keys(error), ["code", "hint", "message"], "{what}");
            format!("{what}: {}", ran.refusal())
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    unknown id: 3 not_found
    unknown project: 3 not_found
    no project here: 3 not_found
    no task here: 3 not_found
    no repository: 1 git
    unknown workflow: 3 not_found
    unknown harness: 2 bad_request
    a branch that git refuses: 1 git
    a branch that is taken: 1 branch_taken
    a project twice: 1 exists
    nothing to change: 2 usage
    an unknown word: 2 usage
    no time: 2 bad_request
    nobody to nudge: 1 not_ready
    nothing to attach to: 1 not_ready
    an unknown harness to teach: 3 not_found
    a restore from nothing: 3 not_found
    ");

    // For people the same is on stderr, in words.
    let ran = home.sluice(&["task", "show", "zzz"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    assert_eq!(ran.stderr, "error: there is no task `zzz`\nhint: `sluice task list --all` shows all of them\n");
    let ran = run(home.command(&["task", "list", "--json"]).env("SLUICE_HOME", home.repository().join("README.md")));
    assert_eq!(ran.refusal(), "6 no_home");
}

#[test]
fn a_project_without_its_workflow_says_so_when_a_task_is_created() {
    let home = Home::new();
    let file = home.place().join("workflows/gone.yml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(
        &file,
        "name: gone\nversion: 1\nstates: {a: {}, b: {terminal: true}}\ntransitions: [{from: a, to: b}]\n",
    )
    .unwrap();
    home.json(&["project", "update", "coffee", "--workflow", "gone"]);
    std::fs::remove_file(&file).unwrap();
    let ran = home.sluice(&["task", "create", "x", "y", "--harness", "demo", "--json"]);
    assert_eq!(ran.refusal(), "3 not_found");
    assert!(ran.json()["error"]["message"].as_str().unwrap().contains("`gone`"), "{ran:?}");
}

#[test]
fn history_and_events_tell_the_same_story() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &[]);
    let other = home.create("tea", "worker: hang", &["--no-spawn"]);
    home.json(&["task", "cancel", &id, "--yes"]);
    let events = |filters: &[&str]| -> Vec<Value> {
        let ran = home.sluice(&[&["events", "--json"], filters].concat()).done();
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let of_task = events(&["--correlation", &id]);
    let history = home.history(&id);
    let types = |events: &[Value]| -> Vec<String> {
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(types(&of_task), types(&history));
    for event in &of_task {
        assert_eq!(
            keys(event),
            ["actor", "caused_by", "correlation_id", "data", "id", "seq", "subject", "time", "type"]
        );
        assert_eq!(event["correlation_id"], id.as_str());
    }
    let created = events(&["--type", "task.*", "--since", "1h"]);
    assert_eq!(types(&created), ["task.created", "task.created", "task.cancelled"]);
    assert_eq!(types(&events(&["--type", "task.*", "--since", "1h", "--correlation", &other])), ["task.created"]);
    assert_eq!(events(&["--since", "2999-01-01T00:00:00Z"]), Vec::<Value>::new());
    for wanted in ["task.created", "status.changed", "agent.spawned", "task.cancelled"] {
        assert!(types(&history).iter().any(|kind| kind == wanted), "{wanted} in {:?}", types(&history));
    }
    // People are told the story, programs everything.
    let text = home.sluice(&["task", "history", &id]).done().stdout;
    assert!(text.lines().count() <= history.len() && text.contains("cancelled"), "{text}");
}

#[test]
fn a_backup_is_the_same_board() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &[]);
    home.create("tea", "worker: hang", &["--no-spawn"]);
    let board = || -> Vec<String> {
        let tasks = home.json(&["task", "list", "--all"])["tasks"].as_array().unwrap().clone();
        let shown = |task: &Value| format!("{} {} {} {}", task["id"], task["status"], task["session"], task["summary"]);
        tasks.iter().map(shown).collect()
    };
    let before = board();
    let file = home.path("copy.db").display().to_string();
    // What a killed engine has left of a copy stands under another name, and is replaced.
    let draft = format!("{file}.sluice-part");
    std::fs::write(&draft, "a part of a copy").unwrap();
    home.json(&["backup", &file]);
    assert!(!std::path::Path::new(&draft).exists());
    assert_eq!(home.refused(&["backup", &file]), "1 exists");
    let empty = home.path("empty.db").display().to_string();
    std::fs::write(&empty, "").unwrap();
    assert_eq!(home.refused(&["restore", &empty]), "6 unusable_copy");
    home.json(&["task", "update", &id, "--summary", "Changed since"]);
    assert_ne!(board(), before);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it holds what the home keeps from others");
    // What is no copy ends nobody.
    let (junk, engine) = (home.path("README.md").display().to_string(), home.engine_pid());
    std::fs::write(&junk, "# Coffee\n").unwrap();
    assert_eq!(home.refused(&["restore", &junk]), "6 unusable_copy");
    let (cut, whole) = (home.path("cut.db").display().to_string(), std::fs::read(&file).unwrap());
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let refused = home.sluice(&["restore", &cut]);
    assert_eq!(refused.code, 6, "{refused:?}");
    assert!(refused.stderr.contains(&format!("{cut} is damaged")), "{refused:?}");
    assert!(!refused.stderr.contains("stop the engine") && refused.stderr.contains("sluice backup"), "{refused:?}");
    assert_eq!(home.refused(&["backup", "/nowhere/copy.db"]), "1 cannot_write");
    assert_eq!(home.refused(&["restore", "nowhere"]), "3 not_found");
    home.json(&["task", "list"]);
    assert_eq!(home.engine_pid(), engine);
    // The engine in the background makes way by itself.
    let restored = home.json(&["restore", &file]);
    assert_eq!(home.json(&["stop"]), json!({ "stopped": false }));
    assert!(std::path::Path::new(restored["aside"].as_str().unwrap()).is_file(), "{restored}");
    // The session went on meanwhile, and is taken up again.
    assert_eq!(board(), before);
    home.json(&["task", "cancel", &id, "--yes"]);
    assert_eq!(home.windows(), Vec::<String>::new());
}

#[test]
fn one_engine_serves_all_commands_and_the_next_replaces_one_that_was_killed() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &[]);
    let engine = home.engine_pid();
    home.json(&["task", "list"]);
    assert_eq!(home.engine_pid(), engine);
    home.kill_engine();
    assert_eq!(home.task(&id)["session"], "active");
    assert_ne!(home.engine_pid(), engine);
}

#[test]
fn projects_are_imported_listed_and_removed() {
    let home = Home::empty();
    let path = home.repository().display().to_string();
    let document =
        json!([{ "name": "brew", "path": path, "default_branch": "main", "pool_size": 3, "workflow": "persistent" }]);
    std::fs::write(home.path("projects.json"), document.to_string()).unwrap();
    let file = home.path("projects.json").display().to_string();
    let imported = home.json(&["project", "import", &file])["projects"].clone();
    assert_eq!(imported, document);
    assert_eq!(home.json(&["project", "list"])["projects"], document);
    // Those that are here stay as they are.
    assert_eq!(home.json(&["project", "import", &file])["projects"], json!([]));
    assert_eq!(home.json(&["project", "remove", "brew"])["project"], document[0]);
    assert_eq!(home.refused(&["project", "remove", "brew"]), "3 not_found");
    std::fs::write(home.path("projects.json"), "[{}]").unwrap();
    assert_eq!(home.refused(&["project", "import", &file]), "2 bad_request");
}

#[test]
fn completions_skills_and_a_doctor() {
    let home = Home::empty();
    for shell in ["bash", "zsh", "fish"] {
        let ran = home.sluice(&["completions", shell]).done();
        assert!(ran.stdout.contains("request-changes") && ran.stderr.is_empty(), "{shell}");
    }
    let installed = home.json(&["skill", "install", "--harness", "claude"])["installed"].as_array().unwrap().clone();
    assert!(!installed.is_empty());
    for file in &installed {
        let text = std::fs::read_to_string(file.as_str().unwrap()).unwrap();
        assert!(file.as_str().unwrap().starts_with(home.path("user").to_str().unwrap()) && text.contains("sluice"));
    }
    home.sluice(&["project", "add"]).done();
    let well = home.json(&["doctor"]);
    assert_eq!(well["ok"], true, "{well:#}");
    let bare = home.path("bin");
    std::fs::create_dir(&bare).unwrap();
    let sick = run(home.command(&["doctor"]).env("PATH", &bare));
    assert_eq!(sick.code, 1);
    assert!(sick.stdout.contains("broken   git") && sick.stdout.contains("→ install git"), "{}", sick.stdout);
    assert!(sick.stdout.contains("warning  tmux") && sick.stdout.contains("→ install tmux"), "{}", sick.stdout);
}

/// A hint that leads to the next refusal is none.
#[test]
fn hints_name_what_works_in_this_state() {
    let home = Home::new();
    let hint = |arguments: &[&str]| {
        let said = home.sluice(&[arguments, &["--json"]].concat());
        assert_eq!(said.code, 1, "{said:?}");
        said.json()["error"]["hint"].as_str().unwrap_or_default().to_owned()
    };
    let waits = home.create("waits", "worker: work", &["--no-spawn"]);
    let passed = home.create("passed", "worker: work\nreviewer: review pass", &[]);
    home.until_status(&passed, "reviewing");
    let died = home.create("died", "worker: crash", &[]);
    home.until_event(&died, "agent.crashed", 1);
    for words in [&["task", "attach"][..], &["task", "nudge"]] {
        let of = |id: &str| {
            let text = (words[1] == "nudge").then_some("go on");
            hint(&[words, &[id], &text.into_iter().collect::<Vec<_>>()].concat())
        };
        assert_eq!(of(&waits), format!("`sluice task spawn {waits}` starts one"));
        assert_eq!(of(&died), format!("`sluice task respawn {died}` starts one"));
        assert!(of(&passed).starts_with(&format!("`sluice task show {passed}`")), "{}", of(&passed));
    }
    let changes = hint(&["task", "request-changes", &passed, "--message", "more"]);
    assert!(changes.contains("change it yourself in the workspace"), "{changes}");
    home.json(&["task", "spawn", &waits]);
}

#[test]
fn a_task_in_a_repository_without_a_commit_says_how_it_goes_on() {
    let home = Home::new();
    let empty = home.path("empty");
    std::fs::create_dir(&empty).unwrap();
    super::merges::sh(&home, &empty, "git init -q -b main");
    let added = home.sluice(&["project", "add", empty.to_str().unwrap(), "--pool-size", "1"]);
    assert!(added.stderr.ends_with("1 worktree\n"), "{added:?}");
    let id = home.create("brew", "worker: work", &["--project", "empty"]);
    let task = home.until(&id, "marked", |task| !task["attention"].is_null());
    let attention = task["attention"]["text"].as_str().unwrap();
    assert!(attention.contains("make a first commit"), "{attention}");
    assert!(attention.ends_with(&format!("then `sluice task spawn {id}` begins it")), "{attention}");
    super::merges::sh(&home, &empty, "git commit -q --allow-empty -m first");
    home.json(&["task", "spawn", &id]);
    home.until_event(&id, "agent.spawned", 1);
}
