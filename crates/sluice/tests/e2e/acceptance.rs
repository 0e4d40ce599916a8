//! What a person must be able to do with what they see, each as one story that prints how long it took: `cargo test -p sluice --test
//! e2e -- acceptance --nocapture`. No story asserts a time: each waits for what it expects and fails only if that never comes (a minute
//! is never), for a machine under load is slow. Whether the first is within 10 s is read from what it prints. The dashboard is the real binary in a terminal of tmux. What the page at 390 pixels looks like is
//! seen in Chromium, by `cargo xtask page-test`.

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use super::described::repository;
use super::home::{Home, run};
use super::page::Browser;
use super::recipes::grimoire;
use super::seen::{DISPLAY, Seen};

/// A `claude` that asks whether the folder is trusted, as the real one does, and goes on after Enter.
const UNTRUSTED: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "2.1.326 (Claude Code)"; exit 0; }
while [ "$1" != --settings ]; do shift; done
line=$(sed -n 's/.*"UserPromptSubmit":\[{"hooks":\[{"command":"\([^"]*\)".*/\1/p' "$2")
cat OUT/trust
read key
printf '\033[2J\033[Hthe folder is trusted\n'
printf '{"hook_event_name":"UserPromptSubmit"}' | sh -c "$line"
exec cat
"#;

/// What claude 2.1.326 shows in a folder that it does not trust.
const TRUST: &str = include_str!("../../../sluice-os/tests/harness/screens/claude-2.1.326-trust.txt");

fn executable(home: &Home, name: &str, script: &str) {
    let program = home.path("programs").join(name);
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
}

/// The first: an untrusted claude is seen on the board, on the page and on the desktop, and `a` leads to what solves it.
#[test]
fn an_untrusted_agent_is_seen_everywhere_and_solved_with_one_key() {
    let home = Home::new();
    std::fs::write(home.place().join("config.toml"), "[harnesses.claude]\npreflight = false\n").unwrap();
    std::fs::write(home.path("trust"), TRUST).unwrap();
    executable(&home, "claude", &UNTRUSTED.replace("OUT", home.path("").to_str().unwrap()));
    let desktop = home.pipe("desktop");
    executable(&home, "notify-send", &format!("#!/bin/sh\nprintf '%s\\n' \"$DISPLAY\" \"$@\" > {}\n", desktop.path()));
    let mut browser = Browser::logged_in(&home, &[]);
    let seen = Seen::start(&home, (200, 50), "");
    seen.shows("There is no task and no run.");

    let began = Instant::now();
    let create = ["task", "create", "brew", "Brew it", "--harness", "claude", "--json"];
    let made = run(home.command(&create).env("DISPLAY", DISPLAY)).done().json();
    let id = made["task"]["id"].as_str().unwrap().to_owned();
    let board = seen.until("the dialog", |screen| screen.contains("NEEDS YOU (1)") && screen.contains("(trust)"));
    let on_board = began.elapsed();
    assert!(board.contains("[a]ttach"), "{board}");
    let page = browser.get("/").body;
    let on_page = began.elapsed();
    assert!(page.contains("brew") && page.contains("(trust)"), "{page}");
    let told = desktop.heard();
    let on_desktop = began.elapsed();
    assert!(told.starts_with(DISPLAY) && told.contains("brew") && told.contains("(trust)"), "{told}");

    // The one key; what follows is said to the program itself, and to tmux.
    seen.types("a");
    seen.until("the session", |screen| screen.contains("Quick safety check") && !screen.contains("[?]"));
    seen.presses("Enter");
    seen.shows("the folder is trusted");
    seen.presses("C-b");
    seen.types("d");
    seen.shows("WORKING (1)");
    let solved = began.elapsed();
    assert!(home.task(&id)["attention"].is_null());
    println!("acceptance 1: board {on_board:?}, page {on_page:?}, desktop {on_desktop:?}, solved {solved:?}");
}

/// The second: of 15 tasks in three projects the six that are finished are found, read and merged, and no id is typed.
#[test]
fn six_finished_tasks_of_fifteen_are_found_reviewed_and_merged() {
    let home = Home::new();
    home.sluice(&["project", "update", "coffee", "--pool-size", "5"]).done();
    for project in ["tea", "cocoa"] {
        let folder = repository(&home, project);
        home.sluice(&["project", "add", &folder, "--pool-size", "5"]).done();
    }
    let mut finished = Vec::new();
    for project in ["coffee", "tea", "cocoa"] {
        for number in 0..5 {
            let branch = format!("{project}-{number}");
            let script = match number {
                1 | 3 => format!("worker: edit {branch}.txt \"{branch} is poured\"; work\nreviewer: review pass"),
                _ => "worker: hang".to_owned(),
            };
            let id = home.create(&branch, &script, &["--project", project]);
            if matches!(number, 1 | 3) {
                finished.push((branch, id));
            }
        }
    }
    for (_, id) in &finished {
        home.until_status(id, "reviewing");
    }
    let seen = Seen::start(&home, (120, 40), "");
    seen.shows("READY TO MERGE (6)");

    let began = Instant::now();
    let mut keys = 0;
    for merged in 1..=finished.len() {
        let mut types = |key: &str| {
            keys += 1;
            seen.types(key);
        };
        types("n");
        types("d");
        let line = |branch: &str| format!("+{branch} is poured");
        let diff = seen.until("a diff", |screen| finished.iter().any(|(branch, _)| screen.contains(&line(branch))));
        let (branch, id) = finished.iter().find(|(branch, _)| diff.contains(&line(branch))).unwrap();
        types("v");
        seen.shows("1 viewed");
        types("m");
        seen.shows(&format!("merge {branch}?"));
        types("y");
        seen.shows(&format!("merge {branch}: done"));
        types("q");
        seen.shows(&format!("DONE TODAY ({merged})"));
        assert_eq!(home.task(id)["status"], "done");
    }
    let took = began.elapsed();
    assert!(!seen.screen().contains("READY TO MERGE"), "{}", seen.screen());
    println!("acceptance 2: six of fifteen tasks merged with {keys} keys in {took:?}");
}

/// The third: at 80 columns and 24 lines every screen stands within its lines, whatever agents write.
#[test]
fn no_line_is_broken_at_eighty_columns() {
    let home = Home::new();
    let long = "日本語と long words ".repeat(20);
    let script = format!("worker: say \"{long}\"; edit cup.txt \"{long}\"; work\nreviewer: review pass");
    let id = home.create("a-branch-with-a-name-that-is-longer-than-its-column", &script, &[]);
    home.until_status(&id, "reviewing");
    grimoire(&home, "gated", "steps:\n  - {name: check, type: gate, command: 'false', message: May it pass?}\n");
    super::recipes::begin(&home, &["gated"]);
    let seen = Seen::start(&home, (80, 24), "");
    seen.until("both rows", |screen| screen.contains("READY TO MERGE (1)") && screen.contains("NEEDS YOU (1)"));
    let began = Instant::now();
    // From the board to a screen, and what is seen there; `q` leads back.
    let commands =
        ["inbox", "workers", "workspaces", "costs", "schedules", "events"].map(|name| (name, name.to_uppercase()));
    let keys = [
        ("G ", "longer-than-its-column"),
        ("Gi", "[terminal]"),
        ("Gd", "cup.txt"),
        ("Gt", "[TASK.md]"),
        ("Gh", "[history]"),
    ];
    let more = [("Gv", "[graph]"), ("Gl", "[log]"), ("gi", "gated"), ("g ", "May it pass?"), ("?", "Board keys")];
    let ways = keys.into_iter().chain(more);
    let mut ways: Vec<(String, String)> = ways.map(|(keys, shown)| (keys.to_owned(), shown.to_owned())).collect();
    ways.extend(commands.into_iter().map(|(name, shown)| (format!(":{name}\n"), shown)));
    for (keys, shown) in &ways {
        match keys.strip_suffix('\n') {
            Some(command) => {
                seen.types(command);
                seen.presses("Enter");
            }
            None => seen.types(keys),
        }
        seen.fills((80, 24), shown, |screen| screen.contains(shown) && !screen.contains("asking the engine"));
        seen.types("q");
        seen.until("the board", |screen| screen.contains("READY TO MERGE (1)") && !screen.contains(" keys "));
    }
    println!("acceptance 3: {} screens at 80 by 24 in {:?}", ways.len() + 1, began.elapsed());
}

/// The fourth: the engine is killed under an open dashboard. What is pressed meanwhile is kept, and no row is old afterwards.
#[test]
fn an_engine_that_is_killed_loses_no_key_and_leaves_no_stale_row() {
    let home = Home::new();
    let first = home.create("latte", "worker: work\nreviewer: review pass", &[]);
    home.until_status(&first, "reviewing");
    let seen = Seen::start(&home, (120, 40), "");
    seen.shows("[m]erge");
    let began = Instant::now();
    home.kill_engine();
    seen.shows("engine away, trying again");
    let noticed = began.elapsed();
    seen.types("A");
    seen.shows("1 asked for and kept until it is back");
    seen.resizes((80, 24));
    seen.fills((80, 24), "the smaller screen", |screen| screen.contains("engine away"));
    // Any command starts the engine again; this one makes a task that the dashboard has not heard of.
    let again = Instant::now();
    let second = home.create("mocha", "worker: hang", &[]);
    seen.shows("mocha");
    seen.until("no stale row", |screen| screen.contains("DONE TODAY (1)") && !screen.contains("engine away"));
    let caught_up = again.elapsed();
    home.until_status(&first, "done");
    home.json(&["task", "cancel", &second, "--yes"]);
    seen.shows("DONE TODAY (2)");
    seen.resizes((200, 60));
    seen.fills((200, 60), "the larger screen", |screen| screen.contains("DONE TODAY (2)"));
    println!("acceptance 4: away after {noticed:?}, no stale row {caught_up:?} after the start of the next engine");
}
