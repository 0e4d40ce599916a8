//! The engine is killed without warning after each of its commits in turn. Whatever was going on, the next command
//! starts another engine, and the task comes to the same end: no session twice, no work lost, no effect forgotten.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::Value;

use super::home::{Home, LONG, Ran};
use super::process;
use super::state_runs::{CHECKED, checked};

/// A worker, a failed review, a fix, a passed review.
const SCRIPT: &str = "reviewer: review fail once, then pass";

/// How many lives go on at the same time.
const AT_ONCE: usize = 4;

#[test]
fn default_comes_to_the_same_end_wherever_the_engine_is_killed() {
    kill_everywhere("default");
}

#[test]
fn persistent_comes_to_the_same_end_wherever_the_engine_is_killed() {
    kill_everywhere("persistent");
}

#[test]
fn a_state_that_starts_a_run_comes_to_the_same_end_wherever_the_engine_is_killed() {
    kill_everywhere(CHECKED);
}

/// Lives through a lifecycle once undisturbed, and once for each commit that it made, with a kill after that.
fn kill_everywhere(workflow: &str) {
    let (undisturbed, commits) = live(workflow, None);
    let next = AtomicUsize::new(1);
    let different = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at > commits {
                        return;
                    }
                    let (end, _) = live(workflow, Some(at));
                    if end != undisturbed {
                        different.lock().unwrap().push(format!("killed after commit {at} of {commits}:\n{end}"));
                    }
                }
            });
        }
    });
    let different = different.into_inner().unwrap();
    assert!(different.is_empty(), "{workflow} undisturbed:\n{undisturbed}\n\n{}", different.join("\n\n"));
}

/// One task from its creation to its merge. How it ended, and how many commits that took.
fn live(workflow: &str, kill_after: Option<usize>) -> (String, usize) {
    let home = Home::new();
    if workflow == CHECKED {
        // It passes the second time.
        checked(&home, "test \"$(grep -c Line demo/*.md)\" -ge 2");
    }
    std::thread::scope(|scope| {
        let mut happening = home.follow(&[]);
        let home = &home;
        let killer = scope.spawn(move || {
            let Some(after) = kill_after else { return };
            let give_up = Instant::now() + LONG;
            let (mut commits, mut last, mut begun, mut done) = (0, Value::Null, false, false);
            while let Some(event) = happening.next(give_up) {
                // The project was added before: of the task nothing has been promised yet.
                begun |= event["type"] == "task.created";
                if !begun {
                    continue;
                }
                commits += usize::from(event["time"] != last);
                last = event["time"].clone();
                done |= event["data"]["to"] == "done";
                if commits == after {
                    return home.kill_engine();
                }
                // Two commits may have come in the same millisecond, and then there is one less to wait for.
                if done && event["type"] == "turn.settled" {
                    return;
                }
            }
        });
        let context = format!("## Context\n\n```demo\n{SCRIPT}\n```\n");
        let create = ["task", "create", "brew", "Brew", "--harness", "demo", "--workflow", workflow];
        let created = home.sluice(&[&create[..], &["--context", &context, "--json"]].concat());
        let id = match created.code {
            0 => created.json()["task"]["id"].as_str().unwrap().to_owned(),
            6 => persist(home, &["task", "list", "--all"]).json()["tasks"][0]["id"].as_str().unwrap().to_owned(),
            _ => panic!("{created:?}"),
        };
        home.until_status(&id, "reviewing");
        let merged = home.sluice(&["task", "merge", &id, "--json"]);
        if merged.code == 6 {
            let again = persist(home, &["task", "merge", &id]);
            assert!(again.code == 0 || again.refusal() == "1 finished", "{again:?}");
        }
        home.until_status(&id, "done");
        killer.join().unwrap();
        end(home, &id)
    })
}

/// Runs a command until an engine answers it.
fn persist(home: &Home, arguments: &[&str]) -> Ran {
    for _ in 0..10 {
        let ran = home.sluice(&[arguments, &["--json"]].concat());
        if ran.code != 6 {
            return ran;
        }
    }
    panic!("no engine answers {arguments:?}: {:?}", home.sluice(arguments));
}

/// What there is to see when everything is over.
fn end(home: &Home, id: &str) -> (String, usize) {
    let events = home.history(id);
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    let word_of = |value: &Value, key: &str| value[key].as_str().unwrap_or("?").to_owned();
    let word = |event: &Value, key: &str| word_of(&event["data"], key);
    let moves: Vec<String> =
        of("status.changed").iter().map(|event| format!("{} → {}", word(event, "from"), word(event, "to"))).collect();
    let mut hooks = BTreeMap::<String, usize>::new();
    for event in of("hook.done") {
        *hooks.entry(word(event, "hook")).or_default() += 1;
    }
    // One that ended before it was known to have begun is only known by its end.
    let named = events.iter().filter_map(|event| event["data"]["session"].as_str());
    let mut sessions: Vec<&str> = named.filter(|name| !name.contains('.')).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let task = home.task(id);
    let work = std::fs::read_to_string(home.repository().join(format!("demo/{id}.md"))).unwrap_or_default();
    let log = home.git(&["log", "--format=%s", "--name-status", "main"]);
    let left: Vec<String> = process::of(&home.path("home"))
        .into_iter()
        .filter(|pid| *pid != home.engine_pid())
        .map(process::words)
        .collect();
    let runs = home.json(&["run", "list", "--all"])["runs"].take();
    let runs = runs.as_array().unwrap().iter().map(|run| word_of(run, "status")).collect::<Vec<_>>();
    let all = home.sluice(&["events", "--json"]).done().stdout;
    let all: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_task = all.iter().skip_while(|event| event["type"] != "task.created");
    let mut times: Vec<&Value> = of_task.map(|event| &event["time"]).collect();
    times.dedup();
    let end = format!(
        "{moves:?}\n{hooks:?}\n{sessions:?}\n{runs:?}\n{work}\n{log}\nleft: {:?}\nwindows: {:?}\n{} crashes, {}\n{}",
        left,
        home.windows(),
        task["crash_count"],
        task["session"],
        home.git(&["status", "--porcelain"]),
    );
    (end.replace(id, "ID"), times.len())
}
