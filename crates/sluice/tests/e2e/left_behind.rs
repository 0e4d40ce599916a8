//! What a person asks of things that tasks and runs have left: kept work of just the run that is meant, removals that are what
//! they say, and a reason for everything that stays.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::home::{Home, Ran, run};
use super::recipes::{begin, fresh, grimoire, start, text, until, until_status};

const HOUR: Duration = Duration::from_secs(3600);

/// A recipe with one script.
fn script(home: &Home, more: &str, command: &str) {
    let step = format!("steps:\n  - name: one\n    type: script\n    command: |\n      {command}\n");
    grimoire(home, "mine", &format!("{more}{step}"));
}

/// Runs a script to its end; the id of its run, and its folder.
fn scripted(home: &Home, more: &str, command: &str) -> (String, PathBuf) {
    script(home, more, command);
    let run = start(home, &["mine"]).json()["run"].take();
    (text(&run["id"]).to_owned(), PathBuf::from(text(&run["workspace"])))
}

/// Checkouts with work in them whose runs are not known.
fn orphans(home: &Home, names: &[&str]) {
    for name in names {
        let place = home.place().join("runs").join(name);
        home.git(&["worktree", "add", "--quiet", "-b", &format!("sluice/run-{name}"), place.to_str().unwrap()]);
        std::fs::write(place.join(format!("{name}.txt")), "work").unwrap();
        age(&place);
    }
}

fn age(place: &Path) {
    File::open(place).unwrap().set_modified(SystemTime::now() - HOUR).unwrap();
}

fn restore(home: &Home, id: &str, into: &str) -> Ran {
    home.sluice(&["workspace", "restore", id, "--into", home.path(into).to_str().unwrap()])
}

fn paths(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|it| text(&it["path"])).collect()
}

#[test]
fn work_is_restored_of_the_run_that_is_meant_and_of_no_other() {
    let home = fresh();
    let (id, folder) = scripted(&home, "", "true");
    until(&home, &id, |_| !folder.exists());
    orphans(&home, &["never1", "never2", "never2-r2"]);
    home.json(&["workspace", "gc"]);
    let several = restore(&home, "never", "any");
    assert_eq!(several.code, 2, "{several:?}");
    assert!(several.stderr.contains("could be any of: never1, never2, never2-r2"), "{several:?}");
    let none = restore(&home, "", "any");
    assert_eq!(none.code, 2, "{none:?}");
    assert!(!home.path("any").exists());
    restore(&home, "never2", "meant").done();
    assert!(home.path("meant/never2.txt").exists());
    restore(&home, "never1", "other").done();
    // A run that is known and of which nothing is kept does not get the work of one whose id begins with its own.
    orphans(&home, &[&format!("{id}-r2")]);
    home.json(&["workspace", "gc"]);
    assert_eq!(restore(&home, &id, "wrong").code, 3);

    // And no lock is left of a worktree that is gone.
    let list = home.json(&["workspace", "list"]);
    assert_eq!(list["leftovers"], serde_json::json!([]), "{list:#}");
}

#[test]
fn what_cannot_be_removed_is_said_to_stay() {
    let home = fresh();
    let (failed, folder) = scripted(&home, "", "echo half > half.txt; false");
    let runs = home.place().join("runs");
    let copy = runs.join("abcdefghij");
    assert!(home.program("cp").arg("-r").args([&folder, &copy]).status().unwrap().success());
    age(&copy);
    std::fs::create_dir(runs.join("hollow")).unwrap();
    let young = runs.join("young");
    home.git(&["worktree", "add", "--quiet", "--detach", young.to_str().unwrap()]);
    let listed = home.json(&["workspace", "list"]);
    let empty = listed["leftovers"].as_array().unwrap().iter().find(|it| it["kind"] == "empty");
    assert_eq!(empty.map(|it| text(&it["path"])), runs.join("hollow").to_str(), "{listed:#}");
    for arguments in [&["workspace", "gc", "--dry-run", "--json"][..], &["workspace", "gc", "--json"]] {
        let gc = home.sluice(arguments);
        let told = gc.json()["collected"].take();
        assert_eq!(gc.code, 1, "{told:#}");
        assert_eq!(paths(&told["failed"]), [copy.to_str().unwrap()], "{told:#}");
        assert!(text(&told["failed"][0]["why"]).starts_with("git does not know it"), "{told:#}");
        assert_eq!(paths(&told["removed"]), [runs.join("hollow").to_str().unwrap()], "{told:#}");
        assert_eq!(paths(&told["later"]), [young.to_str().unwrap()], "{told:#}");
    }
    assert!(copy.join("half.txt").exists() && folder.exists() && young.exists() && !runs.join("hollow").exists());
    let gc = home.sluice(&["workspace", "gc"]);
    assert!(gc.code == 1 && gc.stderr.contains("abcdefghij stays: git does not know it"), "{gc:?}");
    std::fs::remove_dir_all(&copy).unwrap();
    home.sluice(&["workspace", "gc"]).done();
    until_status(&home, &failed, "failed");
}

#[test]
fn a_checkout_whose_repository_is_gone_stays_and_promises_nothing() {
    let home = fresh();
    let (id, folder) = scripted(&home, "", "echo new > made.txt");
    until(&home, &id, |_| !home.git(&["for-each-ref", "refs/sluice/keep"]).is_empty());
    std::fs::rename(home.repository(), home.path("moved")).unwrap();
    let ask = |arguments: &[&str]| run(home.command(arguments).current_dir(home.path("")));
    let list = ask(&["workspace", "list", "--json"]).done().json();
    let shown = &list["runs"][0];
    assert_eq!((text(&shown["path"]), &shown["goes_at"]), (folder.to_str().unwrap(), &Value::Null), "{list:#}");
    let why = format!("its repository is not at {} any more", home.repository().display());
    assert!(text(&shown["doubt"]).starts_with(&why), "{list:#}");
    let gc = ask(&["workspace", "gc"]);
    assert!(gc.code == 1 && gc.stderr.contains(&format!("{} stays: {why}", folder.display())), "{gc:?}");
    assert!(folder.join("made.txt").exists());
    std::fs::rename(home.path("moved"), home.repository()).unwrap();
    home.sluice(&["workspace", "gc"]).done();
    assert!(!folder.exists());
}

#[test]
fn folders_of_a_project_that_git_does_not_know_are_told() {
    let home = Home::new();
    let pool = home.place().join("workspaces/coffee");
    std::fs::create_dir_all(pool.join("3")).unwrap();
    std::fs::create_dir_all(pool.join("4")).unwrap();
    std::fs::write(pool.join("4/mine"), "a person's").unwrap();
    let gc = home.sluice(&["workspace", "gc", "--json"]);
    let told = gc.json()["collected"].take();
    assert_eq!((gc.code, paths(&told["failed"])), (1, vec![pool.join("4").to_str().unwrap()]), "{told:#}");
    assert!(!pool.join("3").exists() && pool.join("4/mine").exists());
    std::fs::remove_dir_all(pool.join("4")).unwrap();
    // Those of a project that was just removed go later, and gc says so.
    home.json(&["workspace", "init"]);
    home.json(&["project", "remove", "coffee"]);
    let told = home.json(&["workspace", "gc"])["collected"].take();
    assert_eq!(paths(&told["later"]).first(), pool.join("1").to_str().as_ref(), "{told:#}");
    assert!(text(&told["later"][0]["why"]).contains("10 minutes"), "{told:#}");
}

#[test]
fn a_run_that_is_retried_meanwhile_keeps_its_checkout() {
    let home = Home::new();
    grimoire(&home, "none", "steps: [{name: a, type: script, command: 'true'}]\n");
    let (torn, go_on) = (home.pipe("torn"), home.pipe("go-on"));
    let teardown = format!("echo > {}; cat {}", torn.path(), go_on.path());
    home.json(&["project", "update", "coffee", "--setup", "true", "--teardown", &teardown]);
    let (begun, end) = (home.pipe("begun"), home.pipe("end"));
    let again = format!(
        "test -e half.txt || {{ echo half > half.txt; exit 1; }}; echo > {}; cat {}; cat half.txt",
        begun.path(),
        end.path()
    );
    let (id, folder) = scripted(&home, "", &again);
    until_status(&home, &id, "failed");
    // It is decided that the checkout goes, and then its run is retried.
    let gc = home.command(&["workspace", "gc", "--failed", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    torn.hear();
    home.json(&["run", "retry", &id]);
    go_on.let_go();
    let output = gc.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["collected"]["removed"], serde_json::json!([]), "{told:#}");
    begun.hear();
    // Its script runs.
    home.json(&["workspace", "gc", "--failed"]);
    assert!(folder.join("half.txt").exists());
    end.let_go();
    let run = until_status(&home, &id, "completed");
    assert_eq!(run["steps"][0]["output"], "half", "{run:#}");
}

#[test]
fn scratch_folders_are_listed_and_go() {
    let home = fresh();
    let scratch = |id: &str| home.place().join("scratch").join(id);
    let (done, _) = scripted(&home, "workspace: none\n", "echo 1 > one.txt");
    let (failed, _) = scripted(&home, "workspace: none\n", "echo 2 > two.txt; false");
    let (begun, end) = (home.pipe("begun"), home.pipe("end"));
    script(&home, "workspace: none\n", &format!("echo > {}; cat {}", begun.path(), end.path()));
    let open = begin(&home, &["mine"]);
    begun.hear();
    let list = home.json(&["workspace", "list"]);
    let of = |id: &str| list["scratch"].as_array().unwrap().iter().find(|it| it["run"] == id).unwrap().clone();
    assert_eq!((text(&of(&done)["status"]), text(&of(&failed)["status"])), ("completed", "failed"), "{list:#}");
    assert!(of(&done)["size_bytes"].as_u64().unwrap() > 0 && !of(&done)["goes_at"].is_null(), "{list:#}");
    assert!(of(&open)["goes_at"].is_null() && text(&of(&open)["path"]) == scratch(&open).to_str().unwrap(), "{list:#}");
    let shown = home.sluice(&["workspace", "list"]).done();
    assert!(shown.stdout.contains("SCRATCH FOLDER OF RUN") && shown.stdout.contains(&done), "{shown:?}");
    let dry = home.json(&["workspace", "gc", "--dry-run"])["collected"].take();
    let gone = home.json(&["workspace", "gc"])["collected"].take();
    assert_eq!(paths(&gone["removed"]), [scratch(&done).to_str().unwrap()], "{gone:#}");
    assert_eq!((&dry["removed"], text(&gone["removed"][0]["kind"])), (&gone["removed"], "scratch"), "{dry:#}");
    assert!(!scratch(&done).exists() && scratch(&failed).exists());
    home.json(&["workspace", "gc", "--failed"]);
    assert!(!scratch(&failed).exists() && scratch(&open).exists());
    end.let_go();
    until_status(&home, &open, "completed");
}
