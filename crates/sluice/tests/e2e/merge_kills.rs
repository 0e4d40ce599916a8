//! A power cut inside `task merge`: the engine and every git are killed at moments that have a name, and at random ones,
//! while 4,000 files of the user's own checkout are rewritten. What comes next finishes it; nothing is left to be mended by
//! hand.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::at_once::Stopping;
use super::home::{Home, LONG, run};
use super::merges::sh;
use super::process;
use super::recipes::{grimoire, start, text, until_status};

const FILES: usize = 4000;
const KILLS: u64 = 16;
/// The moments at which a merge is half done for certain: before or after such a call of git.
const MOMENTS: [(&str, &str); 4] = [
    ("before", "*/coffee|*read-tree*-m*-u*"),
    ("after", "*/coffee|*read-tree*-m*-u*"),
    ("before", "*/coffee|*update-ref*refs/heads/main*"),
    ("after", "*/coffee|*update-ref*refs/heads/main*"),
];

/// A branch that changes every file, adds some and removes some, made without a checkout.
fn branch(home: &Home, name: &str, turn: u64) {
    let who = "A <a@example.invalid> 1700000000 +0000";
    let mut stream =
        format!("commit refs/heads/{name}\nauthor {who}\ncommitter {who}\ndata 4\nwork\nfrom refs/heads/main^0\n");
    for file in 0..FILES {
        let text = format!("{turn} {file}\n").repeat(20);
        write!(stream, "M 644 inline f/{}/{file}\ndata {}\n{text}\n", file % 40, text.len()).unwrap();
    }
    write!(stream, "M 644 inline new/{turn}\ndata 1\nx\n").unwrap();
    if turn > 1 {
        writeln!(stream, "D new/{}", turn - 1).unwrap();
    }
    std::fs::write(home.path("stream"), stream).unwrap();
    sh(home, &home.repository(), "git fast-import --quiet --force < ../stream");
}

/// Everything that works on this home at once, as when the power goes. Stopped first: none sees another die.
fn cut_the_power(home: &Home) {
    let is_at_work = |pid: &i32| {
        let words = process::words(*pid);
        words.contains("git") || words.contains("sluice")
    };
    let all: Vec<i32> = process::of(&home.path("")).into_iter().filter(is_at_work).collect();
    for pid in &all {
        let _ =
            rustix::process::kill_process(rustix::process::Pid::from_raw(*pid).unwrap(), rustix::process::Signal::STOP);
    }
    all.into_iter().for_each(process::kill);
    process::of(&home.path("")).into_iter().filter(is_at_work).for_each(process::kill);
}

/// A number for each turn that looks like chance and is the same every time.
fn chance(turn: u64) -> u64 {
    let mut x = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A task with such a branch that can be merged.
fn task(home: &Home, turn: u64) -> (String, String) {
    let name = format!("task-{turn}");
    branch(home, &name, turn);
    let answer = home.json(&["task", "create", &name, &name, "--status", "reviewing", "--harness", "demo"]);
    (name, answer["task"]["id"].as_str().unwrap().to_owned())
}

/// What comes next finishes the merge.
#[track_caller]
fn is_made_good(home: &Home, name: &str, id: &str) {
    let again = home.sluice(&["task", "merge", id, "--json"]);
    assert!(again.code == 0 || again.refusal() == "1 finished", "{name}: {again:?}");
    home.until_status(id, "done");
    assert_eq!(home.git(&["status", "--porcelain"]), "?? mine", "{name}");
    assert_eq!(home.git(&["rev-parse", "main"]), home.git(&["rev-parse", name]), "{name}");
    assert!(!is_half_done(&home.repository()), "{name}");
    assert_eq!(std::fs::read_to_string(home.repository().join("mine")).unwrap(), "the user's own\n");
    run(home.program("git").args(["fsck", "--connectivity-only"])).done();
}

#[test]
fn a_power_cut_at_every_moment_of_a_merge_that_has_a_name_is_made_good() {
    let stopping = Stopping::new();
    let home = &stopping.home;
    std::fs::write(home.repository().join("mine"), "the user's own\n").unwrap();
    for (turn, (moment, pattern)) in (1..).zip(MOMENTS) {
        // The engine before this one was killed.
        stopping.begin(&["project", "list"]);
        let (name, id) = task(home, turn);
        stopping.stop(moment, pattern);
        let mut merging = stopping.until_stopped(&["task", "merge", &id]);
        cut_the_power(home);
        let _ = merging.wait();
        assert!(is_half_done(&home.repository()), "{moment} {pattern}");
        is_made_good(home, &name, &id);
        home.sluice(&["stop"]).done();
    }
}

#[test]
fn a_power_cut_inside_a_merge_is_made_good() {
    let home = Home::new();
    std::fs::write(home.repository().join("mine"), "the user's own\n").unwrap();
    let mut whole = Duration::ZERO;
    for turn in 0..=KILLS {
        let (name, id) = task(&home, turn);
        let mut merging = home.command(&["task", "merge", &id]);
        let began = Instant::now();
        let mut merging = merging.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if turn == 0 {
            // How long it takes undisturbed: the moments are within that.
            assert!(merging.wait().unwrap().success());
            whole = began.elapsed();
        } else {
            let moment = whole.mul_f64((chance(turn) % 1000) as f64 / 1000.0);
            while began.elapsed() < moment {
                std::thread::park_timeout(moment.saturating_sub(began.elapsed()));
            }
            cut_the_power(&home);
            let _ = merging.wait();
        }
        is_made_good(&home, &name, &id);
    }
}

/// A run that has committed something on its branch.
fn run_with_work(home: &Home, name: &str) -> String {
    let command = format!("echo {name} > {name}; git add {name}; git commit -qm {name}");
    grimoire(home, name, &format!("steps:\n  - {{name: one, type: script, command: '{command}'}}\n"));
    let id = text(&start(home, &[name]).json()["run"]["id"]).to_owned();
    until_status(home, &id, "completed");
    id
}

/// The next engine finishes it by itself. A squash has no commit of the branch: only the note tells that it is merged.
#[test]
fn a_power_cut_inside_the_merge_of_a_run_is_made_good_at_the_next_start() {
    let stopping = Stopping::new();
    let home = &stopping.home;
    for (turn, (moment, pattern)) in (1u32..).zip(MOMENTS) {
        stopping.begin(&["project", "list"]);
        let name = format!("work-{turn}");
        let id = run_with_work(home, &name);
        stopping.stop(moment, pattern);
        let mut merging = stopping.until_stopped(&["run", "merge", &id, "--strategy", "squash"]);
        cut_the_power(home);
        let _ = merging.wait();
        let note = home.place().join(format!("merging/runs/{id}.json"));
        assert!(note.exists(), "{moment} {pattern}");
        home.sluice(&["project", "list"]).done();
        let give_up = Instant::now() + LONG;
        while note.exists() {
            assert!(Instant::now() < give_up, "{moment} {pattern}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
        assert!(home.repository().join(&name).exists() && !is_half_done(&home.repository()), "{moment} {pattern}");
        home.sluice(&["stop"]).done();
    }
}

/// What its remote did not take is pushed when it is asked for again.
#[test]
fn a_merge_of_a_run_that_was_not_pushed_is_pushed_when_it_is_asked_for_again() {
    let home = Home::new();
    let make = "git clone -q --bare . ../remote.git; git remote add origin \"$(cd ../remote.git; pwd)\"; git fetch -q";
    sh(&home, &home.repository(), make);
    let hook = home.path("remote.git/hooks/pre-receive");
    sh(
        &home,
        &home.path(""),
        "printf '#!/bin/sh\\nexit 1\\n' > remote.git/hooks/pre-receive; chmod 755 remote.git/hooks/*",
    );
    let id = run_with_work(&home, "work");
    let merge = ["run", "merge", &id, "--strategy", "squash"];
    let merged = home.json(&merge);
    let there = || sh_says(&home, "git -C ../remote.git rev-parse main");
    assert!(merged["notes"].to_string().contains("not pushed") && there() != text(&merged["commit"]), "{merged:#}");
    std::fs::remove_file(hook).unwrap();
    let again = home.json(&merge);
    assert_eq!((there().as_str(), &again["commit"]), (text(&merged["commit"]), &merged["commit"]), "{again:#}");
}

fn sh_says(home: &Home, command: &str) -> String {
    run(home.program("sh").args(["-c", command])).done().stdout.trim().to_owned()
}

fn is_half_done(repository: &Path) -> bool {
    let left = [
        "index.lock",
        "sluice-mark",
        "sluice-index",
        "sluice-index.lock",
        "HEAD.lock",
        "refs/heads/main.lock",
        "sluice/merge.json",
    ];
    left.iter().any(|name| repository.join(".git").join(name).exists())
}
