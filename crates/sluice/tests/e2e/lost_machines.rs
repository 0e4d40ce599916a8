//! A machine that is lost, or started again: that is no crash of the agents that were at work there. They are started
//! again, and what runs had done is where it was.

use std::path::PathBuf;

use serde_json::Value;
use sluice_store::testing::Cluster;

use super::home::Home;
use super::process;
use super::recipes::{begin, grimoire, settled, step, text, with_shell};
use super::served::Served;

/// What the shim of a session wrote.
fn record(home: &Home, session: &str, name: &str) -> (PathBuf, Value) {
    let path = home.place().join("sessions/live").join(session).join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    (path, serde_json::from_str(&text).unwrap())
}

fn pid(value: &Value) -> i32 {
    i32::try_from(value["pid"].as_i64().unwrap()).unwrap()
}

/// Makes the home what it is after the machine was started again: everything is gone at once, and what was written down
/// about it is of a start that is over. The number of the kernel's start cannot be changed, so that of the records is.
fn reboot(home: &Home, session: &str) {
    let (started_path, mut started) = record(home, session, "started.json");
    let (claim_path, mut claim) = record(home, session, "claim.json");
    home.kill_engine();
    for gone in [&started["pane"]["server"], &started["shim"], &started["agent"]] {
        process::kill(pid(gone));
    }
    let boot = "a-start-that-is-over";
    claim["shim"]["boot"] = boot.into();
    for place in ["shim", "agent"] {
        started[place]["boot"] = boot.into();
    }
    started["pane"]["server"]["boot"] = boot.into();
    std::fs::write(claim_path, claim.to_string()).unwrap();
    std::fs::write(started_path, started.to_string()).unwrap();
}

#[test]
fn a_machine_that_is_started_again_is_nobodys_crash_and_its_agents_come_back() {
    let home = Home::new();
    let here = home.pipe("here");
    let script = format!("worker: tell {}; hang", here.path());
    let id = home.create("brew", &script, &[]);
    here.hear();
    // More often than crashes lead to `stuck`.
    for session in 1..=3 {
        home.until(&id, "at work", |task| task["session"] == "active");
        reboot(&home, &format!("{id}.{session}"));
        home.sluice(&["task", "list"]).done(); // the first command starts an engine
        here.hear();
        let task = home.until(&id, "at work again", |task| task["session"] == "active");
        assert_eq!((&task["status"], &task["crash_count"]), (&"working".into(), &0.into()), "{task:#}");
    }
    let crashes = home.history(&id).into_iter().filter(|event| event["type"] == "agent.crashed").count();
    assert_eq!(crashes, 0);
}

/// Another home on the same machine, for the same repository and the same store.
fn beside(home: &Home) -> Home {
    let other = Home::empty();
    with_shell(&other);
    let (theirs, own) = (home.repository(), other.repository());
    std::fs::remove_dir_all(&own).unwrap();
    std::os::unix::fs::symlink(theirs, own).unwrap();
    other
}

#[test]
fn what_an_engine_that_is_lost_had_begun_is_taken_over_with_its_worktree() {
    let cluster = Cluster::start();
    let address = cluster.database();
    let first = Home::empty();
    with_shell(&first);
    let config = first.place().join("config.toml");
    let settings = format!("[engine]\nowner_seconds = 3\n\n{}", std::fs::read_to_string(&config).unwrap());
    std::fs::write(&config, &settings).unwrap();
    let second = beside(&first);
    std::fs::write(second.place().join("config.toml"), &settings).unwrap();
    let (here, begun, on) = (first.pipe("here"), first.pipe("begun"), first.pipe("on"));
    let served = Served::start(&first, &["--store", &address]);
    first.sluice(&["project", "add"]).done();
    let steps = format!(
        "steps:\n  - {{name: make, type: agent, harness: shell, prompt: 'echo made > made.txt'}}\n  - {{name: wait, type: agent, harness: shell, prompt: 'echo x > {}; cat {}'}}\n  - {{name: each, type: parallel-agents, harness: shell, for_each: [a, b], prompt: 'cat made.txt; echo ${{item}} > ${{item}}.txt'}}\n  - {{name: last, type: script, command: 'cat made.txt a.txt b.txt'}}\n",
        begun.path(),
        on.path(),
    );
    grimoire(&first, "mine", &steps);
    let task = first.create("brew", &format!("worker: tell {}; hang", here.path()), &[]);
    here.hear();
    let run = begin(&first, &["mine"]);
    begun.hear();
    // The whole machine goes: the engine, and everything that it has started.
    process::kill(served.pid());
    process::kill_all_of(&first.place());
    drop(served);
    let _served = Served::takes_over(&second, &["--store", &address]);
    second.sluice(&["project", "add"]).done();
    begun.hear();
    on.let_go();
    here.hear();
    let ended = settled(&second, &run);
    assert_eq!(text(&ended["status"]), "completed", "{ended:#}");
    assert_eq!(text(&step(&ended, "last")["output"]), "made\na\nb", "{ended:#}");
    let task = second.until(&task, "at work again", |task| task["session"] == "active");
    assert_eq!((&task["status"], &task["crash_count"]), (&"working".into(), &0.into()), "{task:#}");
}
