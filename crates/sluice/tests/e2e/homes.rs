//! Homes in every condition: left by a killed engine, in the way, too deep, read-only, broken, too new, full. What can
//! be mended is; everything else is told with the file it is about and the way out.

use std::collections::BTreeSet;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::home::{Happening, Home, LONG, Ran, run};
use super::process;

/// Asks for the tasks, which needs an engine.
fn ask(home: &Home) -> Ran {
    home.sluice(&["task", "list", "--json"])
}

/// It says no, with 6, and names all of this.
#[track_caller]
fn is_told(ran: &Ran, parts: &[&str]) {
    assert_eq!(ran.code, 6, "{ran:?}");
    let error = &ran.json()["error"];
    let text = format!("{} {}", error["message"].as_str().unwrap(), error["hint"].as_str().unwrap_or("(no hint)"));
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn what_a_killed_engine_left_is_no_hindrance() {
    let home = Home::new();
    let first = home.engine_pid();
    home.kill_engine();
    assert!(home.place().join("engine.lock").exists() && home.place().join("engine.sock").exists());
    ask(&home).done();
    assert_ne!(home.engine_pid(), first);
    // A number in the lock that is another process's by now.
    home.kill_engine();
    std::fs::write(home.place().join("engine.lock"), "1 0\n").unwrap();
    ask(&home).done();
    assert!(process::lives(home.engine_pid()));
}

#[test]
fn something_in_the_place_of_the_socket_is_dealt_with() {
    let home = Home::new();
    let socket = home.place().join("engine.sock");
    home.sluice(&["stop"]).done();
    std::fs::write(&socket, "a file").unwrap();
    ask(&home).done();
    home.sluice(&["stop"]).done();
    // Somebody listens there who is no engine.
    let _ = std::fs::remove_file(&socket);
    drop(UnixListener::bind(&socket).unwrap());
    ask(&home).done();
    home.sluice(&["stop"]).done();
    let _ = std::fs::remove_file(&socket);
    std::fs::create_dir_all(socket.join("full")).unwrap();
    is_told(&ask(&home), &[socket.to_str().unwrap(), "move it away"]);
}

#[test]
fn a_deep_home_works_and_is_found_from_every_environment() {
    let home = Home::empty();
    let deep: PathBuf = home.path("home").join("d".repeat(100)).join("e".repeat(100)).join("home");
    let run_there = |words: &[&str], more: &[(&str, &Path)]| {
        let mut command = home.command(words);
        command.env("SLUICE_HOME", &deep).envs(more.iter().copied());
        run(&mut command)
    };
    let runtime = home.path("r");
    std::fs::create_dir(&runtime).unwrap();
    run_there(&["project", "add"], &[("XDG_RUNTIME_DIR", &runtime)]).done();
    let created = run_there(&["task", "create", "brew", "Brew", "--harness", "demo", "--json"], &[]).done().json();
    let id = created["task"]["id"].as_str().unwrap();
    let lock = std::fs::read_to_string(deep.join("engine.lock")).unwrap();
    // Another shell, with another idea of where such things belong.
    let elsewhere = home.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for name in ["XDG_RUNTIME_DIR", "TMPDIR"] {
        run_there(&["task", "list"], &[(name, elsewhere.as_path())]).done();
    }
    let mut events = home.command(&["events", "--follow", "--all", "--json", "--type", "turn.settled"]);
    let mut happening = Happening::of(events.env("SLUICE_HOME", &deep));
    let give_up = Instant::now() + LONG;
    let mut turns = 0;
    while turns < 3 && happening.next(give_up).is_some() {
        turns += 1;
    }
    assert_eq!(std::fs::read_to_string(deep.join("engine.lock")).unwrap(), lock, "one engine all the time");
    run_there(&["task", "merge", id], &[]).done();
}

#[test]
fn a_broken_store_is_named_and_left_as_it_is() {
    let home = Home::new();
    home.sluice(&["stop"]).done();
    let store = home.place().join("store.db");
    let good = std::fs::read(&store).unwrap();

    let noise: Vec<u8> = (0..8192_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(&store, &noise).unwrap();
    is_told(&ask(&home), &[store.to_str().unwrap(), "is not a store of Sluice", "move that file away"]);
    assert!(std::fs::read(&store).unwrap() == noise, "it was written to");

    let mut torn = good.clone();
    torn[4096..].iter_mut().zip(noise.iter().cycle()).for_each(|(byte, noise)| *byte = *noise);
    std::fs::write(&store, &torn).unwrap();
    is_told(&ask(&home), &[store.to_str().unwrap(), "damaged", "restore"]);

    // A later Sluice has been here: its number stands at byte 60.
    let mut newer = good.clone();
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&store, &newer).unwrap();
    is_told(&ask(&home), &[store.to_str().unwrap(), "schema 99", "newer Sluice"]);
    assert!(std::fs::read(&store).unwrap() == newer, "it was written to");

    std::fs::write(&store, &good).unwrap();
    ask(&home).done();
}

#[test]
fn broken_settings_are_named() {
    let home = Home::new();
    home.sluice(&["stop"]).done();
    let (projects, config) = (home.place().join("projects.json"), home.place().join("config.toml"));
    let good = std::fs::read(&projects).unwrap();
    std::fs::write(&projects, "{").unwrap();
    is_told(&ask(&home), &[projects.to_str().unwrap(), "fix the file"]);
    std::fs::write(&projects, good).unwrap();
    std::fs::write(&config, "[[").unwrap();
    is_told(&ask(&home), &[config.to_str().unwrap(), "fix the file"]);
    std::fs::remove_file(&config).unwrap();
    ask(&home).done();
}

#[test]
fn a_home_that_cannot_be_one_is_named() {
    let home = Home::empty();
    std::fs::write(home.place(), "a file").unwrap();
    is_told(&ask(&home), &[home.place().to_str().unwrap(), "SLUICE_HOME"]);
}

/// A file system of its own, which only root can make; it is gone at the end.
struct Mounted(PathBuf);

impl Mounted {
    fn new(place: &Path, options: &str) -> Option<Mounted> {
        std::fs::create_dir_all(place).unwrap();
        let mut mount = Command::new("mount");
        let made = mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(place).output();
        made.is_ok_and(|output| output.status.success()).then(|| Mounted(place.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        process::kill_all_of(&self.0);
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_read_only_home_is_named() {
    let home = Home::empty();
    let Some(_mounted) = Mounted::new(&home.place(), "size=1m,ro") else {
        return println!("not run: only root can mount");
    };
    is_told(&ask(&home), &[home.place().to_str().unwrap(), "make it writable", "SLUICE_HOME"]);
    // Its folder can be read by all, which is less.
    let doctor = home.sluice(&["doctor"]);
    let told = format!("broken   home           {} cannot be written", home.place().display());
    assert!(doctor.code == 1 && doctor.stdout.contains(&told), "{doctor:?}");
    let deeper = home.place().join("deeper");
    let doctor = run(home.command(&["doctor"]).env("SLUICE_HOME", &deeper));
    let told = format!("broken   home           {} is not there, and cannot be made", deeper.display());
    assert!(doctor.code == 1 && doctor.stdout.contains(&told), "{doctor:?}");
}

/// The store of a home, or a folder in it, that another has put there.
#[test]
fn a_part_of_a_home_that_is_read_only_is_named() {
    let home = Home::empty();
    let Some(_mounted) = Mounted::new(&home.place().join("logs"), "size=1m,ro") else {
        return println!("not run: only root can mount");
    };
    std::fs::set_permissions(home.place(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let doctor = home.sluice(&["doctor"]);
    let told = format!("broken   home           {}/logs cannot be written", home.place().display());
    assert!(doctor.code == 1 && doctor.stdout.contains(&told), "{doctor:?}");
}

/// Somebody else takes the rest of a disk.
fn fill(folder: &Path) -> PathBuf {
    let hog = folder.join("hog");
    let mut block = vec![0_u8; 1 << 16];
    let mut file = std::fs::File::create(&hog).unwrap();
    while std::io::Write::write_all(&mut file, &block).is_ok() {}
    block.truncate(1);
    while std::io::Write::write_all(&mut file, &block).is_ok() {}
    hog
}

/// A copy for which there is no room is none, and a restore for which there is none changes nothing.
#[test]
fn on_a_full_disk_a_backup_and_a_restore_leave_nothing_behind() {
    let home = Home::empty();
    let (Some(mounted), Some(small)) =
        (Mounted::new(&home.place(), "size=6m"), Mounted::new(&home.path("small"), "size=64k"))
    else {
        return println!("not run: only root can mount");
    };
    home.sluice(&["project", "add"]).done();
    let task = home.create("kept", "true", &["--no-spawn"]);
    let copy = small.0.join("copy.db").display().to_string();
    is_told(&home.sluice(&["backup", &copy, "--json"]), &[&copy, "room", "free some space"]);
    let left: Vec<_> = std::fs::read_dir(&small.0).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let copy = home.path("copy.db").display().to_string();
    home.json(&["backup", &copy]);
    let names = || -> BTreeSet<_> {
        let names = std::fs::read_dir(home.place()).unwrap().map(|it| it.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().contains("restor")).collect()
    };
    home.sluice(&["stop"]).done();
    let hog = fill(&home.place());
    is_told(&home.sluice(&["restore", &copy, "--json"]), &["room", "free some space"]);
    assert_eq!(names(), BTreeSet::new());
    std::fs::remove_file(hog).unwrap();
    assert!(home.json(&["task", "list"]).to_string().contains(&task));
    home.sluice(&["stop"]).done();
    drop((mounted, small));
}

#[test]
fn a_full_disk_loses_nothing_that_was_answered() {
    let home = Home::empty();
    let Some(mounted) = Mounted::new(&home.place(), "size=6m") else {
        return println!("not run: only root can mount");
    };
    home.sluice(&["project", "add"]).done();
    let create = |number: usize| {
        let branch = format!("task-{number}");
        home.sluice(&["task", "create", &branch, "Fill", "--no-spawn", "--harness", "demo", "--json"])
    };
    let kept = create(0).done().json()["task"]["id"].as_str().unwrap().to_owned();
    let hog = fill(&home.place());
    let refused = (1..40).map(create).find(|ran| ran.code != 0).expect("the disk is full");
    println!("on a full disk: {refused:?}");
    assert_eq!(refused.code, 6, "{refused:?}");
    let text = refused.stdout.to_lowercase();
    assert!(text.contains("no room") || text.contains("no space"), "{refused:?}");
    std::fs::remove_file(&hog).unwrap();
    let tasks = ask(&home).done().json();
    assert!(tasks["tasks"].as_array().unwrap().iter().any(|task| task["id"] == kept.as_str()), "{tasks}");
    create(100).done();
    home.sluice(&["stop"]).done();
    drop(mounted);
}

#[test]
fn without_tmux_the_lifecycle_is_the_same() {
    let home = Home::empty();
    // A PATH with everything but tmux.
    let programs = home.path("programs");
    std::fs::create_dir(&programs).unwrap();
    for folder in std::env::split_paths(&std::env::var_os("PATH").unwrap()) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name() != "tmux" {
                let _ = std::os::unix::fs::symlink(entry.path(), programs.join(entry.file_name()));
            }
        }
    }
    let ask = |words: &[&str]| run(home.command(words).env("PATH", &programs));
    ask(&["project", "add"]).done();
    let context = "```demo\nworker 1: crash\nreviewer: review fail once, then pass\n```\n";
    let words = ["task", "create", "brew", "Brew", "--harness", "demo", "--context", context, "--json"];
    let created = ask(&words).done().json();
    let id = created["task"]["id"].as_str().unwrap();
    home.until_event(id, "agent.crashed", 1);
    ask(&["task", "respawn", id]).done();
    let task = home.until_status(id, "reviewing");
    assert_eq!((&task["review_round"], &task["tmux_session"]), (&2.into(), &().into()));
    assert!(!home.place().join("tmux.sock").exists());
    ask(&["task", "merge", id]).done();
    assert_eq!(home.task(id)["status"], "done");

    let long =
        ask(&["task", "create", "tea", "Tea", "--harness", "demo", "--workflow", "persistent", "--json"]).done().json();
    let id = long["task"]["id"].as_str().unwrap();
    home.until_status(id, "reviewing");
    ask(&["task", "merge", id]).done();
    let left: Vec<String> =
        process::of(&home.place()).into_iter().filter(|pid| *pid != home.engine_pid()).map(process::words).collect();
    assert!(left.is_empty(), "{left:?}");
}
