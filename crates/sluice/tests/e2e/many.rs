//! Many at once: tasks on a small pool, commands on one task, clients on a fresh home, engines on one home.

use std::collections::BTreeMap;
use std::process::Stdio;

use super::home::{Home, LONG, Ran, run};
use super::process;
use super::recipes::{begin, grimoire, show, start, until, with_shell};

#[test]
fn twenty_tasks_on_a_pool_of_four_start_in_order_and_all_finish() {
    let home = Home::empty();
    home.sluice(&["project", "add", "--pool-size", "4"]).done();
    let ids: Vec<String> =
        (0..20).map(|number| home.create(&format!("task-{number}"), "reviewer: review pass", &[])).collect();
    for id in &ids {
        home.until_status(id, "reviewing");
        assert_eq!(home.json(&["task", "merge", id])["task"]["status"], "done");
    }
    let events = home.sluice(&["events", "--json", "--type", "status.changed"]).done().stdout;
    let events: Vec<serde_json::Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let begun: Vec<&str> = events
        .iter()
        .filter(|event| event["data"]["from"] == "pending")
        .map(|event| event["correlation_id"].as_str().unwrap())
        .collect();
    assert_eq!(begun, ids);
    // One that waits for the merge leaves its worktree to the next.
    let (mut at_work, mut most) = (0, 0);
    for event in &events {
        at_work += i32::from(event["data"]["from"] == "pending");
        at_work -= i32::from(event["data"]["to"] == "reviewing");
        most = most.max(at_work);
    }
    assert!(at_work == 0 && (2..=4).contains(&most), "{at_work} and {most}");
    let files = std::fs::read_dir(home.repository().join("demo")).unwrap().count();
    assert_eq!(files, 20);
}

#[test]
fn a_hundred_updates_at_once_have_one_winner() {
    let home = Home::new();
    let id = home.create("brew", "wait for notification", &[]);
    let started: Vec<_> = (0..100)
        .map(|number| {
            let words = match number % 2 {
                0 => vec!["task", "update", &id, "--status", "stuck", "--json"],
                _ => vec!["task", "cancel", &id, "--yes", "--json"],
            };
            home.command(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let mut answers = BTreeMap::<String, usize>::new();
    let mut moves = Vec::new();
    for child in started {
        let output = child.wait_with_output().unwrap();
        let ran = Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::new(),
        };
        match ran.code {
            0 => moves.push(ran.json()["transition"]["to"].as_str().unwrap().to_owned()),
            _ => *answers.entry(ran.refusal()).or_default() += 1,
        }
    }
    // Whoever wins `stuck` leaves a task that can still be cancelled, once.
    let recorded: Vec<String> = home
        .history(&id)
        .iter()
        .filter(|event| event["type"] == "status.changed" && event["data"]["from"] != "pending")
        .map(|event| event["data"]["to"].as_str().unwrap().to_owned())
        .collect();
    moves.sort_by_key(|to| to == "cancelled");
    assert_eq!(moves, recorded, "{answers:?}");
    assert_eq!(recorded.iter().filter(|to| *to == "cancelled").count(), 1);
    assert!(
        answers.keys().all(|answer| ["1 finished", "1 no_transition", "5 conflict"].contains(&answer.as_str())),
        "{answers:?}"
    );
    assert_eq!(answers.values().sum::<usize>() + moves.len(), 100);
}

#[test]
fn thirty_clients_on_a_fresh_home_bring_up_one_engine() {
    let home = Home::empty();
    let clients: Vec<_> =
        (0..30).map(|_| home.command(&["task", "list", "--json"]).stdout(Stdio::piped()).spawn().unwrap()).collect();
    for client in clients {
        let output = client.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let engines: Vec<i32> = process::of(&home.place())
        .into_iter()
        .filter(|pid| process::words(*pid).trim_end().ends_with(" engine"))
        .collect();
    assert_eq!(engines, [home.engine_pid()]);
    let log = std::fs::read_to_string(home.place().join("logs/engine.log")).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
}

#[test]
fn a_second_engine_is_refused() {
    let home = Home::new();
    let pid = home.engine_pid();
    let ran = run(&mut home.command(&["engine", "--json"]));
    assert_eq!(ran.code, 6, "{ran:?}");
    assert!(ran.stdout.contains(&format!("another engine (process {pid}) uses this home")), "{ran:?}");
    assert!(ran.stdout.contains("`sluice stop` ends it"), "{ran:?}");
    assert_eq!(home.engine_pid(), pid);
    home.sluice(&["task", "list"]).done();
}

/// More tasks than the engine has threads for: a step that waits for its task takes none of them.
#[test]
fn many_open_task_steps_keep_nobody_from_working() {
    const MANY: usize = 300;
    let home = Home::empty();
    with_shell(&home);
    home.sluice(&["project", "add", "--pool-size", "1"]).done();
    let step = |number: usize| {
        format!("  - {{name: t{number}, type: task, needs: [], branch: b{number}, summary: wait for notification}}\n")
    };
    let steps: String = (0..MANY).map(step).collect();
    grimoire(&home, "tasks", &format!("max_parallel: {MANY}\nsteps:\n{steps}"));
    grimoire(&home, "quick", "steps:\n  - {name: say, type: script, command: echo through}\n");
    let id = begin(&home, &["tasks"]);
    let mut happening = home.follow(&["--type", "task.created"]);
    let open = || home.json(&["task", "list"])["tasks"].as_array().unwrap().len();
    // While they are opened, few at a time, another run needs a worktree, and gets the next.
    let beside = start(&home, &["quick"]).done().json()["run"].take();
    assert_eq!(beside["status"], "completed");
    assert!(open() < MANY, "all of them came first");
    while open() < MANY {
        assert!(happening.next(std::time::Instant::now() + LONG).is_some(), "{} tasks", open());
    }
    let quick = || start(&home, &["quick"]).done().json()["run"]["status"].take();
    assert_eq!(quick(), "completed");
    // An engine that comes back asks for all of them again.
    home.kill_engine();
    assert_eq!(quick(), "completed");
    // And the end of a task is the end of its step, whoever waited for it when it began.
    let task = format!("{id}-{}-1-whole", MANY - 1);
    home.sluice(&["task", "cancel", &task, "--yes"]).done();
    let run = until(&home, &id, |run| run["steps"][MANY - 1]["status"] == "failed");
    assert_eq!(run["steps"][MANY - 1]["error"], "its task was cancelled");
    assert_eq!(run["steps"][0]["status"], "running");
    // A run that is cancelled leaves the tasks to whoever looks after them.
    home.sluice(&["run", "cancel", &id]).done();
    assert_eq!(show(&home, &id)["status"], "cancelled");
    assert_eq!(open(), MANY - 1);
}
