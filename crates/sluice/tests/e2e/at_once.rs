//! Two that want the same at the same time. A `git` that stops at a named call makes the moment.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::home::{Home, Pipe, run};
use super::merges::sh;

/// Stops once where a pattern in `before` or `after` says, before or after it does what it is asked: tells `here`, and
/// waits at `on`. Where a pattern in `failing` says, it fails, and does nothing.
const GIT: &str = r#"#!/bin/sh
here=$(dirname "$0")
meets() {
    [ -e "$here/$2" ] || return 1
    while read -r pattern; do case "$PWD|$1" in $pattern) return 0 ;; esac; done < "$here/$2"
    return 1
}
stop() { if mv "$here/$1" "$here/stopped" 2>/dev/null; then : > "$here/here"; : < "$here/on"; fi; }
if meets "$*" failing; then echo 'fatal: mmap failed: Cannot allocate memory' >&2; exit 128; fi
if meets "$*" before; then stop before; fi
if meets "$*" after; then
    "$here/real" "$@"; code=$?
    stop after
    exit $code
fi
exec "$here/real" "$@"
"#;

/// A home with the project `coffee` whose engine has such a `git`.
pub(crate) struct Stopping {
    pub(crate) home: Home,
    bin: PathBuf,
    here: Pipe,
    on: Pipe,
}

impl Stopping {
    pub(crate) fn new() -> Stopping {
        let home = Home::empty();
        let bin = home.path("bin");
        std::fs::create_dir(&bin).unwrap();
        std::fs::write(home.path("git.text"), GIT).unwrap();
        // Another process writes it: one that is forked here meanwhile would keep it from being run.
        sh(&home, &bin, "cp ../git.text git; chmod 755 git; ln -s \"$(command -v git)\" real");
        let (here, on) = (home.pipe("bin/here"), home.pipe("bin/on"));
        let stopping = Stopping { home, bin, here, on };
        stopping.begin(&["project", "add"]);
        stopping
    }

    /// Runs `sluice`; an engine that it starts has that `git`.
    #[track_caller]
    pub(crate) fn begin(&self, arguments: &[&str]) {
        let path = format!("{}:{}", self.bin.display(), std::env::var("PATH").unwrap());
        run(self.home.command(arguments).env("PATH", path)).done();
    }

    /// What comes next stops `before` or `after` a call that looks like this: its folder, `|`, and its arguments.
    pub(crate) fn stop(&self, moment: &str, pattern: &str) {
        std::fs::write(self.bin.join(moment), format!("{pattern}\n")).unwrap();
    }

    /// Begins a command that stops, and waits until it does.
    #[track_caller]
    pub(crate) fn until_stopped(&self, arguments: &[&str]) -> std::process::Child {
        let child = self.home.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.here.hear();
        child
    }

    #[track_caller]
    fn go_on(&self, mut child: std::process::Child) {
        self.on.let_go();
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn a_worktree_in_which_an_agent_begins_is_not_removed() {
    let stopping = Stopping::new();
    let home = &stopping.home;
    home.json(&["project", "update", "coffee", "--pool-size", "2"]);
    home.json(&["workspace", "init"]);
    // It removes the first, and comes to the second when that is somebody's.
    stopping.stop("before", "*/workspaces/coffee/1|*status*");
    let collecting = stopping.until_stopped(&["workspace", "gc"]);
    let tasks = ["first", "second"].map(|branch| home.create(branch, "hang", &[]));
    let place = |id: &String| home.task(id)["workspace"].as_str().unwrap_or_default().to_owned();
    let begun = tasks.iter().find(|id| place(id).ends_with("/2")).expect("one has the second");
    home.until(begun, "begun", |task| task["session"] == "active");
    let made = Path::new(&place(begun)).join("made");
    std::fs::write(&made, "by its agent\n").unwrap();
    stopping.go_on(collecting);
    assert!(made.exists());
    for id in &tasks {
        home.until(id, "begun", |task| task["session"] == "active");
    }
    assert!(made.exists() && home.sluice(&["doctor"]).code == 0);
}

#[test]
fn a_worktree_that_is_given_back_slowly_is_no_matter_of_another_project() {
    let stopping = Stopping::new();
    let home = &stopping.home;
    sh(home, &home.repository(), "git clone -q . ../tea; git -C ../tea remote remove origin");
    home.json(&["project", "add", home.path("tea").to_str().unwrap(), "--name", "tea"]);
    home.json(&["project", "update", "coffee", "--pool-size", "1"]);
    home.json(&["workspace", "init", "--project", "coffee"]);
    // A task that is gone has it still.
    let worktree = home.place().join("workspaces/coffee/1");
    let lent = r#"echo '{"task":"gone","branch":"gone"}' > "$(git rev-parse --absolute-git-dir)/sluice-binding""#;
    sh(home, &worktree, lent);
    stopping.stop("before", "*/workspaces/coffee/1|*status*");
    let creating = stopping.until_stopped(&["task", "create", "brew", "Brew", "--harness", "demo"]);
    let there = home.pipe("there");
    let context = format!("## Context\n\n```demo\ntell {}; hang\n```\n", there.path());
    let tea = ["task", "create", "steep", "Steep", "--harness", "demo", "--project", "tea", "--context", &context];
    let mut other = home.command(&tea).stdout(Stdio::null()).spawn().unwrap();
    there.hear();
    assert!(other.wait().unwrap().success());
    stopping.go_on(creating);
}

#[test]
fn a_branch_that_a_task_is_being_given_is_given_to_no_other() {
    let stopping = Stopping::new();
    let home = &stopping.home;
    let [one, two] = ["one", "two"].map(|branch| {
        home.git(&["branch", branch]);
        home.create(branch, "hang", &["--no-spawn"])
    });
    stopping.stop("after", "*branch*-m*one*same*");
    let updating = stopping.until_stopped(&["task", "update", &one, "--branch", "same"]);
    let said = home.sluice(&["task", "update", &two, "--branch", "same", "--json"]);
    assert!(said.refusal().ends_with(" not_yours") && said.stdout.contains(&one), "{said:?}");
    let create = ["task", "create", "same", "Same", "--harness", "demo", "--no-spawn"];
    assert_eq!(home.refused(&create), "1 branch_taken");
    stopping.go_on(updating);
    assert_eq!((&home.task(&one)["branch"], &home.task(&two)["branch"]), (&"same".into(), &"two".into()));
    // What it had is anybody's, and what it has is its own still.
    home.json(&["task", "update", &one, "--branch", "same"]);
    home.json(&["task", "update", &two, "--branch", "one"]);
    assert_eq!(home.refused(&create), "1 branch_taken");
}

#[test]
fn a_merge_that_could_not_be_made_is_not_made_after_the_task_was_taken_back() {
    let stopping = Stopping::new();
    let home = &stopping.home;
    let script = "worker 1: work\nworker 2: hang\nreviewer: review pass";
    let id = home.create("brew", script, &["--workflow", "reviewed"]);
    home.until_status(&id, "reviewing");
    let before = home.git(&["rev-parse", "main"]);
    // The branch cannot be moved, and what was begun cannot be put back either.
    stopping.stop("failing", "*/coffee|*update-ref*refs/heads/main*\n*/coffee|*ls-files*");
    let said = home.sluice(&["task", "merge", &id, "--json"]);
    assert!(said.code != 0 && said.stdout.contains("finished by itself"), "{said:?}");
    home.json(&["task", "request-changes", &id, "--message", "Hotter."]);
    home.until_status(&id, "working");
    std::fs::remove_file(stopping.bin.join("failing")).unwrap();
    assert_eq!(home.refused(&["task", "merge", &id]), "1 no_transition");
    assert_eq!((home.git(&["rev-parse", "main"]), home.git(&["status", "--porcelain"])), (before, String::new()));
    assert_eq!(std::fs::read_dir(home.place().join("merging")).unwrap().count(), 0);
}
