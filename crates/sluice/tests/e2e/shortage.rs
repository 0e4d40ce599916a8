//! A machine that is short of something: the engine has no file descriptor left for a while. That is no outcome of
//! anything: what could not be begun or looked at waits, somebody is told, and all of it is done when there is enough.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use super::home::{Home, LONG, run};
use super::recipes::{begin, grimoire, settled, text, with_shell};

/// As many open files as a process may have at most, now.
fn limit(pid: i32) -> String {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().to_owned()
}

/// Sets how many open files a process may have. What it has open stays open.
fn set_limit(home: &Home, pid: i32, files: &str) {
    let (pid, files) = (format!("--pid={pid}"), format!("--nofile={files}:"));
    run(home.program("prlimit").args([pid, files])).done();
}

/// Leaves a process not one descriptor: the lowest number that is free is the first that it may not have.
fn starve(home: &Home, pid: i32) {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let open: BTreeSet<u32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let free = (0..).find(|number| !open.contains(number)).unwrap();
    set_limit(home, pid, &free.to_string());
}

/// Waits until a log says something of each of these.
fn until_logged(log: PathBuf, of: &[&str]) {
    let give_up = Instant::now() + LONG;
    let is_told = |text: &str, it: &&str| {
        text.lines().any(|line| line.contains(it) && line.contains("Too many open files") && line.contains(" waits"))
    };
    loop {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        if of.iter().all(|it| is_told(&text, it)) {
            return;
        }
        assert!(Instant::now() < give_up, "{of:?}: {text}");
        std::thread::yield_now();
    }
}

#[test]
fn an_engine_without_descriptors_fails_nothing_and_goes_on_when_it_has_some() {
    let home = Home::empty();
    with_shell(&home);
    home.sluice(&["project", "add"]).done();
    let (here, go, begun, on) = (home.pipe("here"), home.pipe("go"), home.pipe("begun"), home.pipe("on"));
    let steps = format!(
        "max_parallel: 4\nsteps:\n  - {{name: wait, type: script, needs: [], command: 'echo x > {}; cat {}'}}\n  - {{name: build, type: script, needs: [wait], command: 'echo built'}}\n  - {{name: think, type: agent, harness: shell, needs: [wait], prompt: 'echo thought'}}\n  - {{name: each, type: parallel-agents, harness: shell, needs: [think], for_each: [a, b], prompt: 'echo ${{item}} > ${{item}}.txt'}}\non_complete:\n  - {{action: run_command, command: 'echo end > {}'}}\n",
        begun.path(),
        on.path(),
        home.path("ended").display(),
    );
    grimoire(&home, "mine", &steps);
    let script = format!(
        "worker: commit; write Handoff \"DONE: all\"; tell {}; wait for {}\nreviewer: review pass",
        here.path(),
        go.path()
    );
    let task = home.create("brew", &script, &[]);
    here.hear();
    let id = begin(&home, &["mine"]);
    begun.hear();
    let engine = home.engine_pid();
    let before = limit(engine);
    starve(&home, engine);
    // A step has ended, and so has an agent; what follows from it cannot be begun, or looked at. Whether the agent is heard
    // before that depends on what the engine held open for a moment.
    on.let_go();
    go.let_go();
    until_logged(home.place().join("logs/engine.log"), &[&id]);
    set_limit(&home, engine, &before);
    let ended = settled(&home, &id);
    assert_eq!(text(&ended["status"]), "completed", "{ended:#}");
    assert!(ended["steps"].as_array().unwrap().iter().all(|step| step["attempt"] == 1), "{ended:#}");
    let task = home.until_status(&task, "reviewing");
    assert_eq!(task["crash_count"], 0, "{task:#}");
    let failed: Vec<_> =
        home.history(text(&task["id"])).into_iter().filter(|event| event["type"] == "hook.failed").collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(home.engine_pid(), engine, "the same engine goes on");
}
