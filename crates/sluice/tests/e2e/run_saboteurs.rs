//! Agents and scripts that turn the worktree of their run into something else, or stay in it: what the engine commits comes to
//! the branch of the run and to no other, and the next run meets none of them.

use std::path::Path;

use super::home::Home;
use super::recipes::{begin, fresh, grimoire, start, text, until, until_status, write};

/// A person on `feature` with a file that is not committed, and a repository of theirs elsewhere.
fn person(home: &Home) -> String {
    home.git(&["switch", "--quiet", "--create", "feature"]);
    write(home, "private.txt", "private");
    let other = home.path("other");
    std::fs::create_dir_all(&other).unwrap();
    let made = "git init -qb main . && git -c user.name=T -c user.email=t@localhost commit -q --allow-empty -m x \
                && echo private > private.txt";
    assert!(std::process::Command::new("sh").args(["-c", made]).current_dir(&other).status().unwrap().success());
    other.display().to_string()
}

/// One step of an agent that does this and then writes `work.txt`; a step after it.
fn sabotage(home: &Home, script: &str) -> String {
    grimoire(
        home,
        "x",
        &format!(
            "steps:\n  - name: a\n    type: agent\n    harness: shell\n    prompt: |\n      {script}\n      echo done\n  - {{name: after, type: script, command: 'cat work.txt; git symbolic-ref HEAD'}}\n"
        ),
    );
    text(&start(home, &["x"]).json()["run"]["id"]).to_owned()
}

fn seen(home: &Home, folder: &str) -> String {
    let of = |folder: &str| {
        let look = "git for-each-ref --format='%(refname) %(objectname)' refs/heads/main refs/heads/feature; git status --porcelain; git log --format=%s -1";
        let output = std::process::Command::new("sh").args(["-c", look]).current_dir(folder).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    format!("{}{}", of(folder), of(home.repository().to_str().unwrap()))
}

#[test]
fn what_an_agent_did_is_committed_on_the_branch_of_its_run_wherever_the_agent_went() {
    let home = fresh();
    let other = person(&home);
    for script in [
        "echo work > work.txt; git checkout -q main".to_owned(),
        "git symbolic-ref HEAD refs/heads/main; echo work > work.txt".to_owned(),
        format!("echo work > work.txt; echo 'gitdir: {other}/.git' > .git"),
        format!("echo work > work.txt; echo {other}/.git > $(git rev-parse --git-dir)/commondir"),
        format!(
            "echo work > work.txt; git config extensions.worktreeConfig true; git config --worktree core.worktree {other}"
        ),
    ] {
        grimoire(&home, "x", "steps: []\n");
        let before = seen(&home, &other);
        let id = sabotage(&home, &script);
        let run = until_status(&home, &id, "completed");
        assert_eq!(text(&run["steps"][1]["output"]).trim(), format!("work\nrefs/heads/sluice/run-{id}"), "{script}");
        assert_eq!(home.git(&["show", &format!("sluice/run-{id}:work.txt")]), "work", "{script}");
        assert_eq!(home.git(&["log", "--format=%s", &format!("main..sluice/run-{id}")]), "x: a", "{script}");
        assert_eq!(seen(&home, &other), before, "{script}");
    }
}

#[test]
fn in_a_repository_that_an_agent_put_in_the_place_of_its_worktree_nothing_is_committed() {
    let home = fresh();
    let other = person(&home);
    grimoire(&home, "x", "steps: []\n");
    let before = seen(&home, &other);
    let id = sabotage(&home, &format!("w=$(pwd); mv \"$w\" {}; ln -s {other} \"$w\"", home.path("moved").display()));
    let run = until_status(&home, &id, "failed");
    let told = run.to_string();
    assert!(told.contains("a link stands in its place"), "{told}");
    assert_eq!(seen(&home, &other), before);
}

/// What is left behind by a script lives while its run does, and no longer: the next run has its worktree.
#[test]
fn what_a_script_left_behind_ends_with_its_run_before_the_next_has_its_worktree() {
    for leave in ["setsid sh -c", "setsid env -i PATH=\"$PATH\" sh -c"] {
        let home = fresh();
        let (alive, wait) = (home.path("alive"), home.pipe("wait"));
        // Runs that follow each other are lent the same worktree.
        grimoire(&home, "plain", "steps:\n  - {name: one, type: script, command: 'true'}\n");
        for _ in 0..2 {
            start(&home, &["plain"]);
        }
        let script = format!(
            "echo $$ > {alive}.part; mv {alive}.part {alive}; cat {wait} > /dev/null; touch left-behind",
            alive = alive.display(),
            wait = wait.path()
        );
        grimoire(
            &home,
            "leaves",
            &format!(
                "steps:\n  - name: one\n    type: script\n    command: |\n      {leave} '{script}' >/dev/null 2>&1 </dev/null &\n      while ! test -e {alive}; do :; done\n  - name: two\n    type: script\n    command: |\n      kill -0 $(cat {alive}) && readlink /proc/$(cat {alive})/cwd\n",
                alive = alive.display()
            ),
        );
        let run = start(&home, &["leaves"]).json()["run"].take();
        let id = text(&run["id"]).to_owned();
        let folder = text(&run["workspace"]).to_owned();
        let run = until_status(&home, &id, "completed");
        assert_eq!(text(&run["steps"][1]["output"]).trim(), folder, "it may live while its run does");
        until(&home, &id, |_| !Path::new(&folder).exists());
        let pid = std::fs::read_to_string(&alive).unwrap();
        let cwd = std::fs::read_link(format!("/proc/{}/cwd", pid.trim()));
        let next = begin(&home, &["plain"]);
        until_status(&home, &next, "completed");
        // One that hides from its run has at least lost the folder: no other run is lent it.
        let is_lost = |it: &Path| {
            let name = it.to_string_lossy();
            name.ends_with("(deleted)") || name.contains("/.removed-")
        };
        assert!(cwd.as_deref().map_or(true, is_lost), "{cwd:?}");
        drop(std::process::Command::new("kill").args(["-9", pid.trim()]).output());
    }
}

/// The engine that ran the script is gone when the run ends: the next one finds what was left all the same.
#[test]
fn what_a_script_left_behind_ends_with_its_run_after_a_kill_of_the_engine() {
    let home = fresh();
    let (alive, begun, wait) = (home.path("alive"), home.pipe("begun"), home.pipe("wait"));
    let left = format!("echo $$ > {0}.part; mv {0}.part {0}; sleep 1000", alive.display());
    grimoire(
        &home,
        "leaves",
        &format!(
            "steps:\n  - name: one\n    type: script\n    command: |\n      setsid sh -c '{left}' >/dev/null 2>&1 </dev/null &\n      while ! test -e {alive}; do :; done\n  - name: two\n    type: script\n    command: |\n      echo > {begun}; cat {wait}\n",
            alive = alive.display(),
            begun = begun.path(),
            wait = wait.path()
        ),
    );
    let id = begin(&home, &["leaves"]);
    begun.hear();
    home.kill_engine();
    let pid = std::fs::read_to_string(&alive).unwrap();
    let place = format!("/proc/{}/cwd", pid.trim());
    let folder = std::fs::read_link(&place).expect("it lives while its run does");
    home.json(&["run", "list"]);
    begun.hear();
    wait.let_go();
    until_status(&home, &id, "completed");
    until(&home, &id, |_| !folder.exists());
    assert!(std::fs::read_link(&place).is_err(), "{place}");
}
