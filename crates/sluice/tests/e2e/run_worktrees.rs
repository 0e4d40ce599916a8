//! The worktree of a run: made when the first step needs it, given back when the run has ended, and nothing is lost with it.

use std::path::PathBuf;
use std::time::Instant;

use super::home::{Home, LONG};
use super::recipes::{begin, fresh, grimoire, start, text, until, until_status};

/// What is left of runs: checkouts and their locks, and branches. The pool has a lock of its own.
fn left(home: &Home) -> (Vec<String>, String) {
    let folders = std::fs::read_dir(home.place().join("runs")).into_iter().flatten();
    let mut folders: Vec<String> = folders.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    folders.retain(|name| name != ".lock");
    folders.sort();
    (folders, home.git(&["branch", "--format=%(refname:short)", "--list", "sluice/*"]))
}

/// Starts a recipe with one script, and gives its run and its checkout when the script has ended.
fn scripted(home: &Home, command: &str) -> (String, PathBuf) {
    grimoire(home, "mine", &format!("steps:\n  - name: one\n    type: script\n    command: |\n      {command}\n"));
    let run = start(home, &["mine"]).json()["run"].take();
    (text(&run["id"]).to_owned(), PathBuf::from(text(&run["workspace"])))
}

#[test]
fn a_run_that_leaves_nothing_new_leaves_nothing() {
    let home = fresh();
    for command in ["true", "pwd; git status"] {
        let (id, folder) = scripted(&home, command);
        until(&home, &id, |_| !folder.exists() && left(&home).1.is_empty());
    }
    assert_eq!(left(&home), (Vec::new(), String::new()));
    assert_eq!(home.git(&["for-each-ref", "refs/sluice"]), "");
}

#[test]
fn what_a_run_made_stays_on_its_branch_or_is_kept() {
    let home = fresh();
    let (id, folder) = scripted(&home, "echo new > made.txt");
    let kept = |home: &Home| home.git(&["for-each-ref", "--format=%(refname)", "refs/sluice/keep"]);
    until(&home, &id, |_| !kept(&home).is_empty());
    assert!(folder.join("made.txt").exists(), "the checkout stays for a while");
    assert_eq!(left(&home), (vec![id.clone(), format!("{id}.lock")], format!("sluice/run-{id}")));
    assert!(home.git(&["ls-tree", "-r", "--name-only", &kept(&home)]).contains("made.txt"));

    let (id, folder) = scripted(&home, "echo new > made.txt; git add made.txt; git commit -qm made");
    until_status(&home, &id, "completed");
    assert!(folder.join("made.txt").exists());
    assert_eq!(home.git(&["show", &format!("sluice/run-{id}:made.txt")]), "new");
}

#[test]
fn what_failed_keeps_its_worktree_until_it_is_tried_again() {
    let home = fresh();
    let mended = home.path("mended");
    let (id, folder) = scripted(&home, &format!("test -e {}", mended.display()));
    until_status(&home, &id, "failed");
    assert!(folder.exists());
    // One that vanished is made again; and it goes when the run has ended well.
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&mended, "").unwrap();
    home.json(&["run", "retry", &id]);
    until_status(&home, &id, "completed");
    until(&home, &id, |_| !folder.exists() && left(&home).1.is_empty());
}

#[test]
fn an_engine_that_is_killed_gives_the_worktree_back_later() {
    let home = fresh();
    let (begun, end) = (home.pipe("begun"), home.pipe("end"));
    let command = format!("echo > {}; cat {}", begun.path(), end.path());
    grimoire(&home, "mine", &format!("steps:\n  - {{name: one, type: script, command: '{command}'}}\n"));
    let id = begin(&home, &["mine"]);
    begun.hear();
    home.kill_engine();
    // The script runs again under the next engine.
    let folder = PathBuf::from(text(&home.json(&["run", "show", &id])["run"]["workspace"]));
    begun.hear();
    end.let_go();
    until_status(&home, &id, "completed");
    until(&home, &id, |_| !folder.exists() && left(&home).1.is_empty());
}

#[test]
fn a_checkout_goes_when_its_time_is_over_and_so_does_one_whose_run_never_began() {
    let home = fresh();
    let config = home.place().join("config.toml");
    let settings = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{settings}\n[workspaces]\nkeep = \"0s\"\n")).unwrap();
    let (id, folder) = scripted(&home, "echo new > made.txt");
    let kept = || home.git(&["for-each-ref", "--format=%(refname)", "refs/sluice/keep"]);
    until(&home, &id, |_| !kept().is_empty());
    let (failed, of_failed) = scripted(&home, "false");
    until_status(&home, &failed, "failed");
    let orphan = home.place().join("runs/neverbegan");
    home.git(&["worktree", "add", "--quiet", "-b", "sluice/run-neverbegan", orphan.to_str().unwrap()]);
    std::fs::write(orphan.join("lost.txt"), "work").unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    std::fs::File::open(&orphan).unwrap().set_modified(long_ago).unwrap();
    // An engine looks when it starts, and every hour.
    home.sluice(&["stop"]).done();
    let give_up = Instant::now() + LONG;
    while folder.exists() || orphan.exists() {
        assert!(Instant::now() < give_up, "{:?}", left(&home));
        home.json(&["run", "list"]);
    }
    assert!(of_failed.exists(), "it may be tried again");
    let kept = home.git(&["for-each-ref", "--format=%(refname)", "refs/sluice/keep"]);
    let trees: Vec<String> = kept.lines().map(|name| home.git(&["ls-tree", "-r", "--name-only", name])).collect();
    assert!(["made.txt", "lost.txt"].iter().all(|name| trees.iter().any(|tree| tree.contains(name))), "{trees:?}");
}

/// A store that was restored from an older backup does not know the run, and its agent is at work all the same.
#[test]
fn a_checkout_of_an_unknown_run_stays_while_an_agent_lives_there() {
    let home = fresh();
    let config = home.place().join("config.toml");
    let settings = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{settings}\n[workspaces]\nkeep = \"0s\"\n")).unwrap();
    let (begun, end, copy) = (home.pipe("begun"), home.pipe("end"), home.path("copy.db"));
    home.sluice(&["backup", copy.to_str().unwrap()]).done();
    let prompt = format!("echo > {}; cat {}", begun.path(), end.path());
    grimoire(&home, "mine", &format!("steps:\n  - {{name: one, type: agent, harness: shell, prompt: '{prompt}'}}\n"));
    let id = begin(&home, &["mine"]);
    begun.hear();
    let folder = home.place().join("runs").join(&id);
    home.sluice(&["stop"]).done();
    home.sluice(&["restore", copy.to_str().unwrap()]).done();
    let last = home.place().join("runs/zzz");
    home.git(&["worktree", "add", "--quiet", "--detach", last.to_str().unwrap()]);
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    [&folder, &last].iter().for_each(|it| std::fs::File::open(it).unwrap().set_modified(long_ago).unwrap());
    let give_up = Instant::now() + LONG;
    while last.exists() {
        assert!(Instant::now() < give_up, "{:?}", left(&home));
        home.json(&["run", "list"]);
    }
    assert!(folder.exists(), "its agent is at work there");
    end.let_go();
}
