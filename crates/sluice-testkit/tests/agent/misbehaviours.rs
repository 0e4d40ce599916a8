//! What it does wrong on demand, it really does.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::stage::Stage;

/// A process that is not ours to wait for, and gone when the test is over.
struct Stray(Pid);

impl Drop for Stray {
    fn drop(&mut self) {
        // It may be gone already.
        kill_process(self.0, Signal::KILL).ok();
    }
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}

#[test]
fn it_crashes_by_a_signal() {
    let stage = Stage::new();
    for (script, signal) in [("crash", 9), ("crash TERM", 15), ("crash SIGSEGV", 11)] {
        let ended = stage.agent("worker", &["p"]).env("SLUICE_DEMO", script).output().unwrap();
        assert_eq!(ended.status.signal(), Some(signal), "{script}");
    }
}

#[test]
fn it_hangs_until_it_is_ended() {
    let stage = Stage::new();
    let here = stage.fifo("here");
    let mut agent = stage.start(&format!("tell {}; hang", here.display()));
    std::fs::read(&here).unwrap();
    assert!(agent.0.try_wait().unwrap().is_none());
    kill_process(pid(agent.0.id()), Signal::TERM).unwrap();
    assert_eq!(agent.0.wait().unwrap().signal(), Some(15));
}

#[test]
fn it_ignores_term_and_goes_on() {
    let stage = Stage::new();
    let (here, go) = (stage.fifo("here"), stage.fifo("go"));
    let script = format!("say first; ignore TERM; tell {}; wait for {}; say still here", here.display(), go.display());
    let mut agent = stage.start(&script);
    assert_eq!(std::fs::read_to_string(&here).unwrap(), "worker 1\n", "the same attempt, not the next");
    kill_process(pid(agent.0.id()), Signal::TERM).unwrap();
    drop(std::fs::OpenOptions::new().write(true).open(&go).unwrap());
    let mut text = String::new();
    agent.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(agent.0.wait().unwrap().code(), Some(0));
    assert!(text.ends_with("still here\n") && text.matches("first").count() == 1, "{text}");
}

#[test]
fn it_leaves_a_daemon_behind() {
    let stage = Stage::new();
    let ended = stage.agent("worker", &["p"]).env("SLUICE_DEMO", "leave daemon ../pid; say bye").output().unwrap();
    let number: u32 = std::fs::read_to_string(stage.path("pid")).unwrap().trim().parse().unwrap();
    let stray = Stray(pid(number));
    assert_eq!(ended.status.code(), Some(0), "the daemon holds none of its pipes");
    test_kill_process(stray.0).unwrap();
    assert_eq!(rustix::process::getpgid(Some(stray.0)).unwrap(), stray.0, "in a group of its own");
}

#[test]
fn it_says_too_much() {
    let stage = Stage::new();
    let ended = stage.agent("worker", &["p"]).env("SLUICE_DEMO", "print 100 MB; say end").output().unwrap();
    assert!(ended.stdout.len() >= 100 << 20 && ended.stdout.ends_with(b"\nend\n"));

    let mut agent = stage.start("talk forever");
    let mut lines = BufReader::new(agent.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.nth(1000).unwrap().unwrap(), "and another thing");
    assert!(agent.0.try_wait().unwrap().is_none());
    drop(lines);
    assert!(!agent.0.wait().unwrap().success(), "when nobody listens it ends");
}

#[test]
fn it_forges_the_frontmatter() {
    let stage = Stage::new();
    stage.task("working", "body\n");
    stage.agent("worker", &["p"]).env("SLUICE_DEMO", "forge status done").output().unwrap();
    assert!(
        stage.task_text().contains("\nstatus: done\nreview_round: 0\n") && stage.task_text().ends_with("---\nbody\n")
    );
}

#[test]
fn it_overwrites_what_came_after_its_first_look() {
    let stage = Stage::new();
    stage.task("working", "\n## Review\nnew\n");
    let (here, go) = (stage.fifo("here"), stage.fifo("go"));
    for (script, survives) in [("write Notes x", true), ("write stale Notes x", false)] {
        stage.task("working", "");
        let mut agent = stage.start(&format!("tell {}; wait for {}; {script}", here.display(), go.display()));
        std::fs::read(&here).unwrap();
        stage.task("agent-review", "\n## Review\nlater\n");
        drop(std::fs::OpenOptions::new().write(true).open(&go).unwrap());
        assert_eq!(agent.0.wait().unwrap().code(), Some(0));
        assert_eq!(stage.task_text().contains("later"), survives);
        assert!(stage.task_text().contains("status: working"), "the frontmatter is always the one it once read");
    }
}

#[test]
fn it_meddles_with_the_main_checkout() {
    for (what, expected) in
        [("file", "?? touched-by-demo.md"), ("index", "A  touched-by-demo.md"), ("head", ""), ("stash", "")]
    {
        let stage = Stage::new();
        let ended = stage.agent("worker", &["p"]).env("SLUICE_DEMO", format!("touch main {what}")).output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{what}: {ended:?}");
        assert_eq!(stage.git(&stage.path("main"), &["status", "--porcelain"]), expected);
        assert_eq!(stage.commits("main"), if what == "head" { 2 } else { 1 });
        assert_eq!(stage.git(&stage.path("main"), &["stash", "list"]).is_empty(), what != "stash");
    }
}
