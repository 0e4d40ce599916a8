//! A store that does not answer, or answers with an error: nothing is concluded from it, and what was accepted is done.

use std::time::Instant;

use sluice_store::testing::Cluster;

use super::home::{Home, LONG};
use super::recipes::{grimoire, settled, text, with_shell};
use super::served::Served;

/// Ends every connection of the engine to its database.
fn break_connections(cluster: &Cluster, address: &str) {
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE application_name = 'sluice' AND datname = current_database()";
    cluster.execute(address, sql);
}

/// What a command does that is asked again for as long as the engine says that it cannot now.
fn patiently(home: &Home, arguments: &[&str]) -> serde_json::Value {
    let give_up = Instant::now() + LONG;
    loop {
        let ran = home.sluice(&[arguments, &["--json"]].concat());
        if ran.code != 6 {
            return ran.done().json();
        }
        assert!(Instant::now() < give_up, "{ran:?}");
    }
}

/// A read that fails is no outcome of an effect: every run that was accepted completes, and no task hears of the store.
#[test]
fn a_postgresql_that_breaks_off_ends_no_run_and_fails_no_effect() {
    let cluster = Cluster::start();
    let address = cluster.database();
    let home = Home::empty();
    with_shell(&home);
    let _served = Served::start(&home, &["--store", &address]);
    home.sluice(&["project", "add"]).done();
    grimoire(
        &home,
        "mine",
        "max_parallel: 4\nsteps:\n  - {name: one, type: script, command: 'true'}\n  - {name: two, type: agent, harness: shell, prompt: 'echo fine'}\n  - {name: three, type: script, command: 'true'}\non_complete:\n  - {action: run_command, command: 'true'}\n",
    );
    let context = "```demo\nsluice task update --status agent-review\n```\n";
    let task = ["task", "create", "mild", "Do it", "--harness", "demo", "--context", context];
    break_connections(&cluster, &address);
    let task = text(&patiently(&home, &task)["task"]["id"]).to_owned();
    let mut runs = Vec::new();
    for _ in 0..12 {
        runs.push(text(&patiently(&home, &["start", "mine", "--detach"])["run"]["id"]).to_owned());
        (0..3).for_each(|_| break_connections(&cluster, &address));
    }
    for run in &runs {
        let ended = settled(&home, run);
        assert_eq!(text(&ended["status"]), "completed", "{ended:#}");
    }
    // Started by somebody who was told "not now" and asked again, or not.
    let all = home.json(&["run", "list", "--all"])["runs"].take();
    for run in all.as_array().unwrap() {
        let ended = settled(&home, text(&run["id"]));
        assert_eq!(text(&ended["status"]), "completed", "{ended:#}");
    }
    home.until(&task, "moved", |task| task["status"] != "pending");
    let failed: Vec<_> = home.history(&task).into_iter().filter(|event| event["type"] == "hook.failed").collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// What a list shows is what is stored, also after the store could not be read when something had happened.
#[test]
fn what_a_list_shows_is_true_again_after_the_store_broke_off() {
    let cluster = Cluster::start();
    let address = cluster.database();
    let home = Home::empty();
    with_shell(&home);
    let _served = Served::start(&home, &["--store", &address]);
    home.sluice(&["project", "add", "--pool-size", "1"]).done();
    let mut tasks = Vec::new();
    for number in 0..6 {
        let branch = format!("mild-{number}");
        let create = ["task", "create", &branch, "Do it", "--harness", "demo", "--context", "```demo\nhang\n```\n"];
        break_connections(&cluster, &address);
        tasks.push(text(&patiently(&home, &create)["task"]["id"]).to_owned());
    }
    for id in &tasks {
        let give_up = Instant::now() + LONG;
        // It may be done although the answer was that it cannot be done now.
        while text(&patiently(&home, &["task", "show", id])["task"]["status"]) != "cancelled" {
            break_connections(&cluster, &address);
            home.sluice(&["task", "cancel", id, "--yes"]);
            break_connections(&cluster, &address);
            assert!(Instant::now() < give_up, "{id} is not cancelled");
        }
    }
    let give_up = Instant::now() + LONG;
    let listed = || patiently(&home, &["task", "list"])["tasks"].as_array().unwrap().len();
    while listed() > 0 {
        assert!(Instant::now() < give_up, "{} tasks are listed that have ended", listed());
    }
}

/// A server that hangs: whoever asks hears within a bounded time that it is the store which does not answer.
#[test]
fn a_postgresql_that_hangs_is_named_to_whoever_asks() {
    let cluster = Cluster::start();
    let relay = super::relay::Relay::to(&cluster.database());
    let home = Home::empty();
    with_shell(&home);
    std::fs::write(home.place().join("config.toml"), "[engine]\nowner_seconds = 60\n").unwrap();
    let _served = Served::start(&home, &["--store", &relay.store()]);
    home.sluice(&["project", "add"]).done();
    let id = home.create("mild", "hang", &[]);
    relay.is_half_open();
    let create = ["task", "create", "hot", "Do it", "--harness", "demo"];
    let asked: [&[&str]; 3] = [&["task", "show", &id], &["run", "list", "--all"], &create];
    let answers: Vec<_> = std::thread::scope(|scope| {
        let home = &home;
        let asking = asked.map(|words| scope.spawn(move || home.sluice(&[words, &["--json"]].concat())));
        asking.into_iter().map(|it| it.join().unwrap()).collect()
    });
    for (words, ran) in asked.iter().zip(&answers) {
        assert_eq!(ran.code, 6, "{words:?}: {ran:?}");
        assert!(ran.stdout.contains("store"), "{words:?}: {ran:?}");
    }
    relay.is_mended();
    let shown = patiently(&home, &["task", "show", &id]);
    assert_eq!(text(&shown["task"]["id"]), id);
}

/// While its server is away an engine pauses its agents, and says so: in its log, beside every answer, and to the doctor.
#[test]
fn whoever_asks_hears_that_agents_are_paused_while_postgresql_is_away() {
    let cluster = Cluster::start();
    let address = cluster.database();
    let home = Home::empty();
    with_shell(&home);
    std::fs::write(home.place().join("config.toml"), "[engine]\nowner_seconds = 6\n").unwrap();
    let _served = Served::start(&home, &["--store", &address]);
    home.sluice(&["project", "add"]).done();
    home.create("mild", "hang", &[]);
    let doctor = home.sluice(&["doctor"]);
    assert!(!doctor.stdout.contains("paused"), "{doctor:?}");
    cluster.halt();
    let log = || std::fs::read_to_string(home.place().join("logs/engine.log")).unwrap();
    let until_listed = |is_paused: bool| {
        let give_up = Instant::now() + LONG;
        loop {
            let listed = home.sluice(&["task", "list"]);
            if listed.stderr.contains("warning: agents and scripts are paused since ") == is_paused {
                return;
            }
            assert!(Instant::now() < give_up, "{listed:?}");
        }
    };
    until_listed(true);
    // The log says why, once the server has been given up.
    let give_up = Instant::now() + LONG;
    while !log().contains("agents and scripts are paused since ") {
        assert!(Instant::now() < give_up, "{}", log());
        home.sluice(&["task", "list"]);
    }
    let doctor = home.sluice(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    for (finding, words) in [("store", "cannot be reached"), ("agents", "are paused since ")] {
        let is = |line: &str| line.starts_with("broken") && line.contains(finding) && line.contains(words);
        assert!(doctor.stdout.lines().any(is), "{finding}: {doctor:?}");
    }
    cluster.resume();
    until_listed(false);
    assert!(log().contains("the store answers again"), "{}", log());
}
