//! What much work leaves behind in a served engine: its memory before, at the peak and when it has come to rest, and how
//! long lists take when thousands of runs have ended. It is a measurement, run by hand: `cargo xtask load`.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::home::{Home, LONG};
use super::recipes::text;
use super::served::{Answer, Served, token};

/// How many are asked for at once.
const AT_ONCE: usize = 8;
/// What the engine gets to come to rest.
const REST: Duration = Duration::from_secs(20);

/// A number of the kernel's about a process, in MiB.
fn memory(served: &Served, key: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim_matches(|it: char| !it.is_ascii_digit()).parse::<f64>().unwrap() / 1024.0
}

fn number(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().map_or(usual, |text| text.parse().unwrap())
}

/// Waits for nothing but the time.
fn rest(time: Duration) {
    let (_sender, receiver) = channel::<()>();
    let _ = receiver.recv_timeout(time);
}

/// Asks so many times, several at once.
fn crowd(count: usize, ask: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for first in 0..AT_ONCE {
            let ask = &ask;
            scope.spawn(move || (first..count).step_by(AT_ONCE).for_each(ask));
        }
    });
}

/// A mission of one step, whose crab says so many words about it.
fn progress(ask: &(impl Fn(&str, &str, &Value) -> Answer + Sync), lines: usize) {
    let colony = ask("POST", "/v1/colonies", &json!({ "name": "reef" })).json();
    let crab = json!({ "colony_id": colony["colony_id"], "name": "one", "role": "any" });
    let crab = ask("POST", "/v1/crabs/register", &crab).json();
    let mission = json!({ "colony_id": colony["colony_id"], "prompt": "Talk", "workflow": "talk" });
    let mission = text(&ask("POST", "/v1/missions", &mission).json()["mission_id"]).to_owned();
    ask("POST", "/v1/scheduler/tick", &json!({}));
    let begin = json!({ "mission_id": mission, "task_id": format!("{mission}.talk"), "crab_id": crab["crab_id"] });
    let run = ask("POST", "/v1/runs/start", &begin).json();
    crowd(lines, |number| {
        let message = format!("line {number}: {}", "word ".repeat(100));
        let said = ask("POST", "/v1/runs/update", &json!({ "run_id": run["run_id"], "progress_message": message }));
        assert_eq!(said.status, 200, "{said:?}");
    });
    ask("POST", "/v1/runs/complete", &json!({ "run_id": run["run_id"], "status": "completed", "summary": "said" }));
}

#[test]
#[ignore = "it is a measurement; `cargo xtask load` runs it"]
fn as_much_load_as_is_wanted() {
    let (runs, lines) = (number("LOAD_RUNS", 3_000), number("LOAD_LINES", 3_000));
    let home = Home::empty();
    std::fs::create_dir_all(home.place()).unwrap();
    let free = "[serve]\nrequests_per_second = 1000000\nburst = 1000000\n";
    std::fs::write(home.place().join("config.toml"), free).unwrap();
    // In a repository every run has a worktree, and git would be what is measured.
    let folder = home.path("plain");
    std::fs::create_dir_all(&folder).unwrap();
    let mine = "name: mine\nsteps:\n  - {name: one, type: script, command: 'echo fine'}\n";
    std::fs::write(folder.join("mine.yml"), mine).unwrap();
    std::fs::create_dir_all(home.path("prompts/workflows")).unwrap();
    let talk = "[workflow]\nname = \"talk\"\ndescription = \"A test\"\nversion = \"1.0.0\"\n\n[[steps]]\nid = \"talk\"\nrole = \"any\"\nprompt = \"Talk\"\n";
    std::fs::write(home.path("prompts/workflows/talk.toml"), talk).unwrap();
    let prompts = home.path("prompts").display().to_string();
    let served = Served::start(&home, &["--prompts", &prompts]);
    let (_, secret) = token(&home, &[]);
    let ask = |method: &str, path: &str, body: &Value| served.ask(method, path, Some(&secret), &body.to_string());
    let list = |name: &str| {
        for path in ["/v1/missions", "/workflows", "/v1/processes", "/v1/recipe/runs", "/v1/inbox"] {
            let began = Instant::now();
            let answer = served.ask("GET", path, Some(&secret), "");
            let took = began.elapsed().as_secs_f64() * 1000.0;
            println!("{name:>12}  {path:<18} {} {took:9.1} ms {:9} bytes", answer.status, answer.body.len());
        }
    };
    list("before");
    println!("before        {:6.1} MiB", memory(&served, "VmRSS:"));

    let began = Instant::now();
    let wanted = json!({ "recipe": "mine.yml", "cwd": folder });
    crowd(runs, |_| {
        let started = ask("POST", "/v1/recipe/runs", &wanted);
        assert_eq!(started.status, 200, "{started:?}");
    });
    let give_up = Instant::now() + LONG * 10;
    while !ask("GET", "/v1/recipe/runs", &json!({})).json()["runs"].as_array().unwrap().is_empty() {
        assert!(Instant::now() < give_up, "they do not end");
        rest(Duration::from_millis(200));
    }
    progress(&ask, lines);
    println!("{runs} runs and {lines} lines of progress in {:.1} s", began.elapsed().as_secs_f64());
    list("after");
    println!("after load    {:6.1} MiB", memory(&served, "VmRSS:"));
    rest(REST);
    println!("at rest       {:6.1} MiB", memory(&served, "VmRSS:"));
    println!("at the peak   {:6.1} MiB", memory(&served, "VmHWM:"));
    list("at rest");
}
