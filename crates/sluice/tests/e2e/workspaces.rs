//! What tasks and runs leave on disk: listed with its size, removed when a person asks, gone by itself when it is old; and a disk
//! that is low is said to be so before it is full.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use super::clocks::variables;
use super::home::{Home, LONG};
use super::recipes::{begin, fresh, grimoire, settled, show, start, text, until, until_status};
use super::served::{Served, token};

const DAY: Duration = Duration::from_secs(86_400);

/// Runs a recipe with one script to its end; its id and its checkout.
fn scripted(home: &Home, command: &str) -> (String, PathBuf) {
    grimoire(home, "mine", &format!("steps:\n  - name: one\n    type: script\n    command: |\n      {command}\n"));
    let run = start(home, &["mine"]).json()["run"].take();
    (text(&run["id"]).to_owned(), PathBuf::from(text(&run["workspace"])))
}

fn keeps(home: &Home) -> String {
    home.git(&["for-each-ref", "--format=%(refname)", "refs/sluice/keep"])
}

fn branches(home: &Home) -> String {
    home.git(&["branch", "--format=%(refname:short)", "--list", "sluice/*"])
}

/// Adds a part to the settings of the home.
fn set(home: &Home, settings: &str) {
    let file = home.place().join("config.toml");
    let before = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::write(&file, format!("{before}\n{settings}")).unwrap();
}

/// Every file and folder below these with its bytes, git's own among them, but for the note that goes when the disk has a worktree.
fn everything(folders: &[PathBuf]) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut left) = (BTreeMap::new(), folders.to_vec());
    while let Some(path) = left.pop() {
        let Ok(about) = path.symlink_metadata() else { continue };
        if about.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        if path.ends_with("sluice-unsynced") {
            continue;
        }
        let bytes = if about.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        found.insert(path, bytes);
    }
    found
}

/// Makes files and folders as old as nobody wants them any more.
fn age(folders: &[PathBuf]) {
    let long_ago = SystemTime::now() - 100 * DAY;
    for path in everything(folders).keys().filter(|path| !path.is_symlink()) {
        if let Ok(file) = File::open(path) {
            file.set_modified(long_ago).unwrap();
        }
    }
}

fn kinds(list: &Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(|it| text(&it["kind"]).to_owned()).collect()
}

/// What crashes leave: a checkout whose run never began, with work in it; a half-removed one; a lock; a folder set aside.
fn leave(home: &Home) -> PathBuf {
    let runs = home.place().join("runs");
    let orphan = runs.join("neverbegan");
    home.git(&["worktree", "add", "--quiet", "-b", "sluice/run-neverbegan", orphan.to_str().unwrap()]);
    std::fs::write(orphan.join("lost.txt"), "work").unwrap();
    File::open(&orphan).unwrap().set_modified(SystemTime::now() - DAY).unwrap();
    std::fs::create_dir_all(runs.join(".removed-old/deep")).unwrap();
    std::fs::write(runs.join("gone.lock"), "").unwrap();
    std::fs::create_dir_all(runs.join("aside/lost-x")).unwrap();
    std::fs::write(runs.join("aside/lost-x/mine"), "a person's").unwrap();
    orphan
}

#[test]
fn everything_on_disk_is_listed_with_its_size() {
    let home = fresh();
    let (done, _) = scripted(&home, "echo new > made.txt");
    until(&home, &done, |_| !keeps(&home).is_empty());
    let (failed, _) = scripted(&home, "false");
    let (begun, end) = (home.pipe("begun"), home.pipe("end"));
    let prompt = format!("echo > {}; cat {}", begun.path(), end.path());
    grimoire(
        &home,
        "each",
        &format!(
            "steps:\n  - {{name: each, type: parallel-agents, harness: shell, for_each: [a], prompt: '{prompt}'}}\n"
        ),
    );
    let open = begin(&home, &["each"]);
    begun.hear();
    leave(&home);
    let list = home.json(&["workspace", "list"]);
    let of = |id: &str, is_part: bool| {
        let all = list["runs"].as_array().unwrap().iter();
        let mut found = all.filter(|it| it["run"] == id && it["part"].is_null() != is_part);
        found.next().unwrap_or_else(|| panic!("{id}: {list:#}")).clone()
    };
    let (ended, held) = (of(&done, false), of(&open, true));
    assert_eq!((text(&ended["status"]), ended["dirty"].as_bool()), ("completed", Some(true)), "{list:#}");
    assert!(ended["size_bytes"].as_u64().unwrap() > 0 && !ended["goes_at"].is_null(), "{list:#}");
    assert_eq!(ended["repository"], home.repository().to_str().unwrap());
    assert_eq!(text(&of(&failed, false)["status"]), "failed");
    assert!(text(&held["branch"]).starts_with("sluice/part-") && held["goes_at"].is_null(), "{list:#}");
    assert_eq!(kinds(&list["leftovers"]), ["aside", "checkout", "lock", "removed"].map(str::to_owned).into());
    let kept = &list["kept"][0];
    assert_eq!((text(&kept["task"]), text(&kept["project"])), (done.as_str(), ""), "{list:#}");
    assert_eq!(kept["repository"], home.repository().to_str().unwrap());
    assert!(list["kept_bytes"].as_u64().unwrap() > 0 && list["disk"][0]["free_bytes"].as_u64().unwrap() > 0);
    let shown = home.sluice(&["workspace", "list"]).done();
    for word in ["WORKTREE OF RUN", "LEFT OVER", "KEPT OF", "KiB"] {
        assert!(shown.stdout.contains(word), "{shown:?}");
    }
    assert!(!shown.stderr.contains("low disk"), "{shown:?}");
    end.let_go();
    settled(&home, &open);
}

#[test]
fn a_person_drops_kept_work_for_good() {
    let home = fresh();
    let (id, _) = scripted(&home, "echo new > made.txt");
    let reference = format!("refs/sluice/keep/{id}/1");
    until(&home, &id, |_| keeps(&home).contains(&reference));
    let commit = home.git(&["rev-parse", &reference]);
    assert_eq!(home.refused(&["workspace", "drop", &id]), "2 not_confirmed");
    assert_eq!(home.refused(&["workspace", "drop", &id, "--number", "7", "--yes"]), "3 not_found");
    let dropped = home.json(&["workspace", "drop", &id, "--yes"]);
    assert_eq!((&dropped["dropped"]["reference"], &dropped["commit"]), (&reference.into(), &commit.as_str().into()));
    assert_eq!(keeps(&home), "");
    assert_eq!(home.refused(&["workspace", "drop", &id, "--yes"]), "3 not_found");
    // It is written down, with what brings it back for a while.
    let events = home.sluice(&["events", "--type", "workspace.dropped", "--json"]).done().stdout;
    let event: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert_eq!(event["data"]["commit"], commit.as_str(), "{event:#}");
    assert!(event["actor"].as_str().unwrap().starts_with("person"), "{event:#}");
}

#[test]
fn a_dry_run_changes_nothing_and_says_what_goes() {
    let home = fresh();
    let (done, of_done) = scripted(&home, "echo new > made.txt");
    until(&home, &done, |_| !keeps(&home).is_empty());
    let (failed, of_failed) = scripted(&home, "echo half > half.txt; false");
    let orphan = leave(&home);
    let young = home.place().join("runs/young");
    home.git(&["worktree", "add", "--quiet", "--detach", young.to_str().unwrap()]);
    home.json(&["workspace", "list"]);
    let folders = ["runs", "workspaces", "tasks", "evidence", "sessions"].map(|name| home.place().join(name));
    let folders: Vec<PathBuf> = folders.into_iter().chain([home.repository()]).collect();
    let before = everything(&folders);
    let dry = home.json(&["workspace", "gc", "--dry-run"])["collected"].take();
    let after = everything(&folders);
    let differs = before.iter().chain(&after).filter(|(path, _)| before.get(*path) != after.get(*path));
    assert_eq!(differs.map(|(path, _)| path).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
    assert_eq!(dry["dry_run"], true);
    assert_eq!(kinds(&dry["removed"]), ["checkout", "lock", "removed", "run"].map(str::to_owned).into(), "{dry:#}");
    assert!(dry["freed_bytes"].as_u64().unwrap() > 0, "{dry:#}");

    let gone = home.json(&["workspace", "gc"])["collected"].take();
    let paths = |it: &Value| it["removed"].as_array().unwrap().iter().map(|it| it["path"].clone()).collect::<Vec<_>>();
    assert_eq!(paths(&gone), paths(&dry));
    let kept = |it: &Value| it["removed"].as_array().unwrap().iter().map(|it| it["kept"].clone()).collect::<Vec<_>>();
    assert_eq!(kept(&gone), kept(&dry));
    assert_eq!(gone["freed_bytes"], dry["freed_bytes"]);
    assert!(!of_done.exists() && !orphan.exists() && of_failed.exists() && young.exists());
    assert!(home.place().join("runs/aside/lost-x/mine").exists(), "its content cannot be kept");
    assert!(!home.place().join("runs/.removed-old").exists() && !home.place().join("runs/gone.lock").exists());
    let again = home.sluice(&["workspace", "gc"]).done();
    assert!(again.stderr.contains("nothing to remove"), "{again:?}");

    // The beginning of a run's id is enough, in a repository that is no project.
    for (run, file) in [(&done[..6], "made.txt"), ("never", "lost.txt")] {
        let into = home.path(run);
        home.sluice(&["workspace", "restore", run, "--into", into.to_str().unwrap()]).done();
        assert!(into.join(file).exists(), "{run}");
    }
    let with_failed = home.sluice(&["workspace", "gc", "--failed"]).done();
    let way = format!("`sluice workspace restore {failed} --number 1 --into FOLDER`");
    assert!(with_failed.stderr.contains(&way) && !of_failed.exists(), "{with_failed:?}");
    home.json(&["run", "retry", &failed]);
    until_status(&home, &failed, "failed");
    assert!(of_failed.exists(), "a retry makes it again");
}

/// The moments in the log of a branch: git writes them by its own clock.
fn age_branches(home: &Home) {
    let logs = home.repository().join(".git/logs/refs/heads/sluice");
    let long_ago = (SystemTime::now() - 100 * DAY).duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    for entry in std::fs::read_dir(logs).unwrap() {
        let path = entry.unwrap().path();
        let log = std::fs::read_to_string(&path).unwrap();
        let aged = log.lines().map(|line| {
            let (who, rest) = line.split_once("> ").unwrap();
            let (_, rest) = rest.split_once(' ').unwrap();
            format!("{who}> {long_ago} {rest}\n")
        });
        std::fs::write(&path, aged.collect::<String>()).unwrap();
    }
}

/// What is found below a folder of the home that names one of these.
fn named(home: &Home, folder: &str, ids: &[String]) -> Vec<PathBuf> {
    let all = everything(&[home.place().join(folder)]);
    let is_of = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        ids.iter().any(|id| name.contains(id.as_str()))
    };
    all.into_keys().filter(|path| is_of(path)).collect()
}

/// Each row of the table in `docs/workspaces.md` that goes on this machine.
#[test]
fn retention_takes_everything_that_is_old_but_work() {
    let home = fresh();
    let clock = home.path("clock");
    std::fs::write(&clock, "-100d\n").unwrap();
    let variables = variables(&clock);
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let served = Served::with(&home, &[], &variables);
    home.sluice(&["project", "add"]).done();
    let task = home.create("brew", "hang", &[]);
    let workspace = PathBuf::from(text(&home.task(&task)["workspace"]));
    std::fs::write(workspace.join("half"), "done").unwrap();
    home.sluice(&["task", "cancel", &task, "--yes"]).done();
    let (merged, _) = scripted(&home, "seq 300000; echo new > made; git add made; git commit -qm made");
    home.git(&["merge", "--quiet", "--no-edit", &format!("sluice/run-{merged}")]);
    let (unmerged, _) = scripted(&home, "echo other > other; git add other; git commit -qm other");
    let (failed, _) = scripted(&home, "false");
    let (dirty, _) = scripted(&home, "echo new > uncommitted");
    until(&home, &dirty, |_| keeps(&home).contains(&dirty));
    let ids = [task.clone(), merged.clone(), unmerged.clone(), failed, dirty.clone()];
    for folder in ["evidence", "sessions/printed", "sessions/live", "sessions/attempts", "tasks", "runs"] {
        assert!(!named(&home, folder, &ids).is_empty(), "nothing to forget in {folder}");
    }
    home.sluice(&["project", "remove", "coffee"]).done();
    drop(served);
    leave(&home);
    age(&["evidence", "sessions", "tasks", "runs", "workspaces"].map(|name| home.place().join(name)));
    age_branches(&home);
    // Something young, so that the clock is believed.
    let (young, _) = scripted(&home, "true");
    until(&home, &young, |_| !branches(&home).contains(&young));
    home.sluice(&["stop"]).done();
    // An engine looks at its store when nothing was stored for ten seconds.
    let give_up = Instant::now() + LONG;
    while ids[1..].iter().any(|run| home.sluice(&["run", "show", run]).code == 0) {
        assert!(Instant::now() < give_up, "the store forgets nothing");
    }
    let until_gone = |is_gone: &dyn Fn() -> bool| {
        let give_up = Instant::now() + LONG;
        while !is_gone() {
            let left = named(&home, "", &ids);
            assert!(Instant::now() < give_up, "{left:#?} {} {}", branches(&home), keeps(&home));
            // An engine looks at files when it starts, and every hour: each gets the time of some commands for it.
            home.sluice(&["stop"]).done();
            (0..200).take_while(|_| !is_gone()).for_each(|_| drop(home.json(&["run", "list"])));
        }
    };
    let folders = ["evidence", "sessions", "tasks", "runs"];
    until_gone(&|| {
        let is_left = folders.iter().any(|folder| !named(&home, folder, &ids).is_empty());
        !is_left && !workspace.exists() && branches(&home) == format!("sluice/run-{unmerged}")
    });
    assert_eq!(home.refused(&["task", "show", &task]), "3 not_found");
    for run in &ids[1..] {
        assert_eq!(home.refused(&["run", "show", run]), "3 not_found");
    }
    assert_eq!(text(&show(&home, &young)["status"]), "completed");
    let left = |name: &str| home.place().join("runs").join(name).exists();
    assert!(!left("neverbegan") && !left(".removed-old") && !left("gone.lock") && left("aside/lost-x/mine"));
    // Kept work stays until a person says for how long. It is found although the store knows nothing of the run any more.
    assert!(keeps(&home).contains(&dirty) && keeps(&home).contains(&task));
    let into = home.path("rescued");
    home.sluice(&["workspace", "restore", &dirty, "--into", into.to_str().unwrap()]).done();
    assert!(into.join("uncommitted").exists());
    set(&home, "[retention]\nkeeps = \"90d\"\n");
    until_gone(&|| !keeps(&home).contains(&dirty) && !keeps(&home).contains(&task));
}

#[test]
fn a_low_disk_is_said_everywhere_once() {
    let home = fresh();
    set(&home, "[workspaces]\nlow_disk = \"999 TiB\"\n");
    let served = Served::start(&home, &[]);
    let listed = home.sluice(&["workspace", "list"]).done();
    assert!(listed.stderr.contains("low disk: "), "{listed:?}");
    assert_eq!(home.json(&["workspace", "list"])["disk"][0]["is_low"], true);
    let checks = home.sluice(&["doctor", "--json"]).json()["checks"].take();
    let disk = checks.as_array().unwrap().iter().find(|it| it["name"] == "disk").unwrap();
    assert_eq!(disk["status"], "warning", "{disk:#}");
    assert!(text(&disk["remedy"]).contains("workspace gc"), "{disk:#}");
    let (_, secret) = token(&home, &["--scope", "read"]);
    let metrics = served.ask("GET", "/metrics", Some(&secret), "").body;
    assert!(metrics.contains(r#"sluice_disk_free_bytes{folder="home"}"#), "{metrics}");
    scripted(&home, "true"); // nothing waits for it
    let log = home.place().join("logs/engine.log");
    let told = || std::fs::read_to_string(&log).unwrap().matches("less than `low_disk`").count();
    let give_up = Instant::now() + LONG;
    while told() == 0 {
        assert!(Instant::now() < give_up);
        home.json(&["run", "list"]);
    }
    assert_eq!(told(), 1);
}

#[test]
fn without_room_for_a_worktree_tasks_and_runs_wait_and_go_on() {
    let home = fresh();
    home.sluice(&["project", "add"]).done();
    let before = std::fs::read_to_string(home.place().join("config.toml")).unwrap();
    set(&home, "[workspaces]\nleast_free = \"999 TiB\"\n");
    let task = home.create("brew", "work", &[]);
    grimoire(&home, "mine", "steps:\n  - {name: one, type: script, command: 'pwd'}\n");
    let run = begin(&home, &["mine"]);
    let waits = |it: &Value| {
        let said = it["attention"].as_str().or(it["attention"]["text"].as_str()).unwrap_or_default();
        said.contains("low disk") && said.contains("least_free")
    };
    let give_up = Instant::now() + LONG;
    while !waits(&show(&home, &run)) || !waits(&home.task(&task)) {
        assert!(Instant::now() < give_up, "{:#} {:#}", show(&home, &run), home.task(&task));
    }
    assert!(!home.place().join("runs").join(&run).exists() && !home.place().join("workspaces/coffee/1").exists());
    let listed = home.sluice(&["workspace", "list"]).done();
    assert!(listed.stderr.contains("no new worktree is made"), "{listed:?}");
    std::fs::write(home.place().join("config.toml"), before).unwrap();
    let ended = until_status(&home, &run, "completed");
    assert_eq!((ended["attention"].as_str(), &ended["steps"][0]["attempt"]), (None, &Value::from(1)), "{ended:#}");
    home.until_status(&task, "reviewing");
}
