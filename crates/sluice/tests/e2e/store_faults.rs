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
