//! What the doors bear: patterns, floods, those who follow, those who say nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::home::Home;
use super::process;
use super::recipes::{all_gone, begin, fresh, grimoire};
use super::served::{Served, request, rest_of, token};

/// Somebody who follows a path, with what came so far up to a line that holds this.
fn follow(served: &Served, path: &str, secret: &str, until: &str) -> BufReader<TcpStream> {
    let mut stream = served.connect();
    let shown = format!("authorization: Bearer {secret}\r\n");
    stream.write_all(request("GET", path, &shown, 0).as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains(until) {
        line.clear();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "{path} ended before {until}");
    }
    reader
}

fn resident_kb(pid: i32, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap().to_owned();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn no_pattern_keeps_the_engine_busy() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let (_, secret) = token(&home, &["--scope", "read"]);
    assert_eq!(served.ask("GET", "/there-is-an-event-of-this", None, "").status, 401);
    for path in ["/v1/events", "/events", "/v1/ws/events"] {
        let stars = format!("{path}?type={}x", "*a".repeat(40));
        let mut stream = served.connect();
        let shown = format!("authorization: Bearer {secret}\r\n");
        stream.write_all(request("GET", &stars, &shown, 0).as_bytes()).unwrap();
        // Whatever becomes of that, others are answered.
        assert_eq!(served.ask("GET", "/v1/projects", Some(&secret), "").status, 200);
        let answer = served.ask("GET", &format!("{path}?type={}", "*".repeat(201)), Some(&secret), "");
        let is_refused = answer.status == 400 || path == "/v1/ws/events"; // that one wants to be a WebSocket first
        assert!(is_refused, "{path}: {answer:?}");
    }
    let stars = format!("{}x", "*".repeat(100));
    let none = home.sluice(&["events", "--type", &stars]).done();
    assert_eq!(none.stdout, "");
    let all = home.sluice(&["events", "--type", "*cc**denied", "--json"]).done();
    assert!(all.stdout.contains("access.denied"), "{all:?}");
    assert_eq!(home.refused(&["events", "--type", &"*".repeat(201)]), "2 bad_request");
}

#[test]
fn whoever_follows_a_run_has_a_place_and_no_thread_and_goes_with_the_token() {
    let home = fresh();
    let served = Served::start(&home, &[]);
    let (told, go) = (home.pipe("told"), home.pipe("go"));
    let command = format!("echo > {}; cat {}", told.path(), go.path());
    grimoire(&home, "mine", &format!("steps:\n  - {{name: wait, type: script, command: '{command}'}}\n"));
    let id = begin(&home, &["mine"]);
    told.hear();
    let (reader, secret) = token(&home, &["--scope", "read"]);
    let (_, other) = token(&home, &["--scope", "read"]);
    let path = format!("/v1/recipe/runs/{id}/events?follow=true");
    let threads = || resident_kb(served.pid(), "Threads:");
    let before = threads();
    let followers: Vec<_> = (0..40).map(|_| follow(&served, &path, &secret, "step.started")).collect();
    let metrics = served.ask("GET", "/metrics", Some(&other), "").body;
    assert!(metrics.contains(r#"sluice_followers{door="network"} 40"#), "{metrics}");
    // Threads that read for them stay for a while; there are never more than read at once.
    assert!(threads() < before + 30, "{before} before, {} with 40 followers", threads());
    let mut stays = follow(&served, &path, &other, "step.started");
    home.sluice(&["token", "revoke", &reader]).done();
    for mut follower in followers {
        let mut rest = String::new();
        follower.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("completed"), "{rest}");
    }
    go.let_go();
    let mut line = String::new();
    while !line.contains("workflow.completed") {
        line.clear();
        assert_ne!(stays.read_line(&mut line).unwrap(), 0, "the other one is cut off");
    }
}

#[test]
fn one_token_does_not_take_the_places_of_all() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let (_, greedy) = token(&home, &["--scope", "read"]);
    let (_, other) = token(&home, &["--scope", "read"]);
    assert_eq!(served.ask("GET", "/an-event", None, "").status, 401);
    let mut all = Vec::new();
    let refused = loop {
        let mut stream = served.connect();
        let shown = format!("authorization: Bearer {greedy}\r\n");
        stream.write_all(request("GET", "/v1/events?follow=true", &shown, 0).as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        if status.ends_with(b"503") {
            break rest_of(&mut stream);
        }
        all.push(stream);
    };
    assert_eq!(all.len(), 250);
    assert!(refused.contains("too many follow the log already"), "{refused}");
    follow(&served, "/v1/events?follow=true", &other, "access.denied");
    // Who goes makes room.
    drop(all.pop());
    loop {
        let answer = served.ask("GET", "/metrics", Some(&other), "").body;
        if answer.contains(r#"sluice_followers{door="network"} 249"#) {
            break;
        }
    }
    follow(&served, "/v1/events?follow=true", &greedy, "access.denied");
}

#[test]
fn those_who_say_nothing_do_not_keep_others_out() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let (_, secret) = token(&home, &[]);
    let mut inside = served.connect();
    let kept = format!("GET /v1/faults HTTP/1.1\r\nhost: sluice\r\nauthorization: Bearer {secret}\r\n\r\n");
    inside.write_all(kept.as_bytes()).unwrap();
    inside.read_exact(&mut [0; 15]).unwrap();
    // Connections that never say who they are: half a head, or nothing.
    let half: Vec<TcpStream> = (0..900)
        .map(|number| {
            let mut stream = served.connect();
            if number % 2 == 0 {
                stream.write_all(b"GET /v1/projects HT").unwrap();
            }
            stream
        })
        .collect();
    // Whoever shows a token is answered, before any of those has run out of time and while they are there.
    assert_eq!(served.ask("GET", "/v1/projects", Some(&secret), "").status, 200);
    let metrics = served.ask("GET", "/metrics", Some(&secret), "").body;
    let there = metrics.lines().find_map(|line| line.strip_prefix(r#"sluice_connections{door="network"} "#)).unwrap();
    assert!(there.parse::<usize>().unwrap() <= 256 + 3, "{there}");
    // And who has shown one before is not pushed out.
    inside.write_all(kept.as_bytes()).unwrap();
    drop(half);
}

#[test]
fn a_flood_of_progress_neither_fills_the_engine_nor_the_log() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let (_, secret) = token(&home, &[]);
    let post = |path: &str, body: &serde_json::Value| {
        let answer = served.ask("POST", path, Some(&secret), &body.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let text = |value: &serde_json::Value, key: &str| value[key].as_str().unwrap().to_owned();
    std::fs::create_dir_all(home.place().join("workflows")).unwrap();
    let manifest = "[workflow]\nname = \"one\"\nversion = \"1.0\"\n\n[[steps]]\nid = \"plan\"\nrole = \"planner\"\nprompt = \"Plan it.\"\n";
    std::fs::write(home.place().join("workflows/one.toml"), manifest).unwrap();
    let colony = text(&post("/v1/colonies", &json!({ "name": "reef" })), "colony_id");
    let crab = post("/v1/crabs/register", &json!({ "colony_id": colony, "name": "piper", "role": "planner" }));
    let wanted = json!({ "colony_id": colony, "prompt": "Fix it", "workflow": "one" });
    let mission = text(&post("/v1/missions", &wanted), "mission_id");
    post("/v1/scheduler/tick", &json!({}));
    let begun = json!({ "mission_id": mission, "task_id": format!("{mission}.plan"), "crab_id": crab["crab_id"] });
    let run = text(&post("/v1/runs/start", &begun), "run_id");
    let before = resident_kb(served.pid(), "VmHWM:");
    let long = "x".repeat(3 << 20);
    for number in 0..40 {
        let said = format!("{number} of 40 {long} the end");
        post("/v1/runs/update", &json!({ "run_id": run, "progress_message": said }));
    }
    let progress = || home.sluice(&["events", "--type", "attempt.progress", "--json"]).done().stdout;
    let told = progress();
    assert_eq!(told.lines().count(), 1, "the latest stands in place of those before");
    assert!(told.len() < 8 << 10 && told.contains("bytes left out") && told.contains("the end"), "{}", told.len());
    let after = resident_kb(served.pid(), "VmHWM:");
    assert!(after < before + 100_000, "{before} kB before, {after} kB after 120 MB of progress");
    // What it says at the end is bounded as well, and what is too long for a machine fails the step instead of being cut.
    let summary = format!("begin {} end", "y".repeat(3 << 20));
    post("/v1/runs/complete", &json!({ "run_id": run, "status": "completed", "summary": summary }));
    post("/v1/scheduler/tick", &json!({}));
    assert!(progress().is_empty(), "it is over");
    let shown = served.ask("GET", &format!("/v1/recipe/runs/{mission}"), Some(&secret), "").json();
    let kept = shown["run"]["steps"][0]["summary"].as_str().unwrap();
    assert!(kept.len() < 300 << 10 && kept.starts_with("begin ") && kept.ends_with(" end"), "{}", kept.len());
    let answer = served.ask("POST", "/v1/colonies", Some(&secret), &json!({ "name": "z".repeat(5 << 20) }).to_string());
    assert_eq!(answer.short(), "413 too_large");
    assert!(!process::carrying(&format!("SLUICE_HOME={}", home.place().display())).is_empty());
}

#[test]
fn a_socket_that_is_removed_under_its_engine_is_made_again() {
    let home = Home::new();
    let engine = home.engine_pid();
    let socket = home.place().join("engine.sock");
    std::fs::remove_file(&socket).unwrap();
    home.sluice(&["task", "list"]).done();
    assert_eq!(home.engine_pid(), engine, "another engine was started");
    std::fs::remove_file(&socket).unwrap();
    assert_eq!(home.json(&["stop"])["stopped"], true);
    all_gone(&[engine]);
}
