//! A store with flipped bits, a store that is gone, a store that is another: no answer that differs from the true one
//! comes with exit code 0, and no command makes an empty store in place of the one that a home had.

use std::path::PathBuf;

use sluice_store::testing::Cluster;

use super::home::{Home, Ran, run as ran};
use super::recipes::{grimoire, start, text, until};
use super::served::Served;

/// A home with a task and two runs, whose engine has ended, and the bytes of its store.
struct Kept {
    home: Home,
    task: String,
    run: String,
    whole: Vec<u8>,
}

impl Kept {
    fn new() -> Kept {
        let home = Home::new();
        let task = home.create("mild", "true", &["--no-spawn"]);
        grimoire(
            &home,
            "mine",
            "steps:\n  - {name: one, type: script, command: 'echo fine'}\n  - {name: two, type: script, command: 'echo done'}\n",
        );
        let runs = [(); 2].map(|()| text(&start(&home, &["mine"]).done().json()["run"]["id"]).to_owned());
        for run in &runs {
            // Its worktree is given back, and that is stored: nothing is left to be done.
            until(&home, run, |_| {
                let settled = ["events", "--correlation", run, "--type", "effect.settled", "--json"];
                !home.sluice(&settled).done().stdout.is_empty()
            });
        }
        let [run, _] = runs;
        home.sluice(&["stop"]).done();
        let whole = std::fs::read(home.place().join("store.db")).unwrap();
        Kept { home, task, run, whole }
    }

    fn store(&self) -> PathBuf {
        self.home.place().join("store.db")
    }

    /// Puts these bytes in the place of the store.
    fn put(&self, bytes: &[u8]) {
        let _ = self.home.sluice(&["stop"]);
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.store().display()));
        }
        std::fs::write(self.store(), bytes).unwrap();
    }

    /// What every command that reads says, in words that do not depend on when it is asked.
    fn answers(&self) -> Vec<(String, Ran)> {
        let copy = self.home.path("copy.db");
        let _ = std::fs::remove_file(&copy);
        let asked: [&[&str]; 8] = [
            &["task", "list", "--all", "--json"],
            &["task", "show", &self.task, "--json"],
            &["run", "list", "--all", "--json"],
            &["run", "show", &self.run, "--json"],
            &["events", "--json"],
            &["inbox", "--json"],
            &["backup", copy.to_str().unwrap(), "--json"],
            &["doctor", "--deep"],
        ];
        let mut answers: Vec<(String, Ran)> = asked.iter().map(|it| (it.join(" "), self.home.sluice(it))).collect();
        let doctor = answers.last_mut().unwrap();
        doctor.1.stdout = doctor.1.stdout.lines().filter(|line| line.contains("store")).collect();
        answers
    }
}

/// So many of the copies are noticed at least: much of a file is free, or is nothing that an answer needs.
const LEAST_NOTICED: usize = 8;

/// Flips a bit of each of 60 copies, in places that a seed gives, and compares: each answer is the true one, or comes with
/// exit code 6.
#[test]
fn every_answer_of_60_damaged_copies_is_true_or_comes_with_exit_code_6() {
    let kept = Kept::new();
    kept.put(&kept.whole);
    let truth = kept.answers();
    assert!(truth.iter().all(|(_, ran)| ran.code == 0), "{truth:#?}");
    let (mut seed, mut noticed) = (0x5eed_u64, 0);
    for copy in 0..60 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from((seed >> 16) % kept.whole.len() as u64).unwrap();
        let mut bytes = kept.whole.clone();
        bytes[at] ^= 1 << (seed >> 60 & 7);
        kept.put(&bytes);
        let found = kept.answers();
        for ((asked, ran), (_, true_one)) in found.iter().zip(&truth) {
            let is_true = ran.code == 0 && ran.stdout == true_one.stdout;
            // A backup that cannot be made whole is refused, with a code of its own.
            let is_told = ran.code == 6;
            assert!(is_true || is_told, "copy {copy}, byte {at}: {asked}: {ran:?}\nin truth: {true_one:?}");
        }
        noticed += usize::from(found.iter().any(|(_, ran)| ran.code == 6));
    }
    println!("{noticed} of 60 copies were noticed to be damaged; the others answered the truth");
    assert!(noticed >= LEAST_NOTICED, "only {noticed} of 60 copies were noticed to be damaged");
}

/// What is damaged is named, and the rest goes on.
#[test]
fn what_is_damaged_is_named_and_the_rest_goes_on() {
    let kept = Kept::new();
    // The text of the first run's output stands in a row of its own.
    let at = kept.whole.windows(4).rposition(|it| it == b"fine").unwrap();
    let mut bytes = kept.whole.clone();
    bytes[at] ^= 1;
    kept.put(&bytes);
    let listed = kept.home.sluice(&["task", "list", "--json"]);
    assert_eq!(listed.code, 6, "{listed:?}");
    assert!(listed.stdout.contains(&kept.task) && listed.stderr.contains("damaged"), "{listed:?}");
    let events = kept.home.sluice(&["events", "--json"]);
    assert!(events.code == 6 && events.stdout.contains("task.created"), "{events:?}");
    let doctor = kept.home.sluice(&["doctor", "--deep"]);
    assert!(doctor.code == 6 && doctor.stdout.contains("run/"), "{doctor:?}");
    let copy = kept.home.path("copy.db");
    assert_eq!(kept.home.refused(&["backup", copy.to_str().unwrap()]), "6 damaged");
    assert!(!copy.exists());
}

/// A home that had a store and has none is not given an empty one; a backup brings it back.
#[test]
fn a_store_that_is_gone_is_not_made_anew() {
    let kept = Kept::new();
    let copy = kept.home.path("copy.db");
    kept.home.json(&["backup", copy.to_str().unwrap()]);
    kept.home.sluice(&["stop"]).done();
    std::fs::remove_file(kept.store()).unwrap();
    let listed = kept.home.sluice(&["task", "list"]);
    assert!(listed.code == 6 && listed.stderr.contains("not there any more"), "{listed:?}");
    assert!(listed.stderr.contains("sluice restore FILE"), "{listed:?}");
    assert!(!kept.store().exists());
    kept.home.sluice(&["restore", copy.to_str().unwrap()]).done();
    assert_eq!(text(&kept.home.task(&kept.task)["status"]), "pending");
}

/// The log of the old store never stands beside the new one, and what was in it is kept with the old one.
#[test]
fn a_restore_leaves_no_log_of_the_store_before_it() {
    let kept = Kept::new();
    let copy = kept.home.path("copy.db");
    kept.home.json(&["backup", copy.to_str().unwrap()]);
    let late = kept.home.create("late", "true", &["--no-spawn"]);
    kept.home.kill_engine();
    let aside = kept.home.json(&["restore", copy.to_str().unwrap()])["aside"].as_str().unwrap().to_owned();
    let tasks = kept.home.json(&["task", "list"]).to_string();
    assert!(tasks.contains(&kept.task) && !tasks.contains(&late), "{tasks}");
    kept.home.sluice(&["restore", &aside]).done();
    let tasks = kept.home.json(&["task", "list"]).to_string();
    assert!(tasks.contains(&late), "{tasks}");
    // What follows from events goes on from where the store is, not from where another one was.
    let trigger = "name: heard\ndescription: A test\ntrigger: {event: task.created}\nsteps:\n  - {name: one, type: script, command: 'true'}\n";
    super::recipes::write(&kept.home, ".coven/grimoires/heard.yml", trigger);
    kept.home.commit();
    kept.home.sluice(&["restore", copy.to_str().unwrap()]).done();
    let mut happening = kept.home.follow(&["--type", "workflow.completed"]);
    kept.home.create("again", "true", &["--no-spawn"]);
    let heard = std::iter::from_fn(|| happening.next(std::time::Instant::now() + super::home::LONG));
    assert!(heard.into_iter().any(|event| event.to_string().contains("heard")));
}

/// A home keeps to its store: whoever forgets to name it gets that one, and whoever names another is refused.
#[test]
fn a_home_keeps_to_its_store() {
    let cluster = Cluster::shared();
    let address = cluster.database();
    let home = Home::empty();
    let served = Served::start(&home, &["--store", &address]);
    home.sluice(&["project", "add"]).done();
    let task = home.create("mild", "true", &["--no-spawn"]);
    drop(served);
    assert_eq!(text(&home.task(&task)["status"]), "pending");
    assert!(!home.place().join("store.db").exists());
    home.sluice(&["stop"]).done();
    let other = format!("sqlite:{}", home.path("other.db").display());
    let refused = ran(home.command(&["task", "list"]).env("SLUICE_STORE", &other));
    assert!(refused.code == 6 && refused.stderr.contains(&other), "{refused:?}");
    assert!(refused.stderr.contains("the store of this home is postgres://"), "{refused:?}");
    // The doctor looks at that store too, and at how its server is set.
    let setting = |doctor: Ran| -> Vec<String> {
        assert!(doctor.stdout.contains("postgres://"), "{doctor:?}");
        doctor.stdout.lines().filter(|line| line.contains("replication")).map(str::to_owned).collect()
    };
    let well = setting(home.sluice(&["doctor"]));
    assert!(well.len() == 1 && well[0].starts_with("ok"), "{well:?}");
    let name = address.split(['/', '?']).find(|part| part.starts_with("test_")).unwrap();
    cluster.execute(&address, &format!("ALTER DATABASE {name} SET synchronous_commit = off"));
    let ill = setting(home.sluice(&["doctor"]));
    assert!(ill.len() == 1 && ill[0].starts_with("warning") && ill[0].contains("synchronous_commit = off"), "{ill:?}");
}

/// A home that a newer Sluice has written is left alone.
#[test]
fn a_home_of_a_newer_version_is_refused_with_both_versions() {
    let kept = Kept::new();
    let file = kept.home.place().join("store.json");
    let written = std::fs::read_to_string(&file).unwrap();
    let mut newer: serde_json::Value = serde_json::from_str(&written).unwrap();
    newer["format"] = 99.into();
    newer["sluice"] = "99.1.0".into();
    std::fs::write(&file, newer.to_string()).unwrap();
    let refused = kept.home.sluice(&["task", "list"]);
    assert!(refused.code == 6 && refused.stderr.contains("99.1.0"), "{refused:?}");
    assert!(refused.stderr.contains(env!("CARGO_PKG_VERSION")), "{refused:?}");
    assert_eq!(std::fs::read(kept.store()).unwrap(), kept.whole);
}

/// A home that was restored to another disk has its store with it, and a copy does not work on the store of the first.
#[test]
fn a_home_that_is_copied_or_moved_has_its_own_store() {
    let kept = Kept::new();
    let home = &kept.home;
    let at = |place: &PathBuf, arguments: &[&str]| ran(home.command(arguments).env("SLUICE_HOME", place)).done().stdout;
    let (copy, moved, again) = (home.path("copy"), home.path("moved"), home.path("again"));
    let copied = std::process::Command::new("cp").arg("-a").args([&home.place(), &copy]).status().unwrap();
    assert!(copied.success());
    let late = home.create("late", "true", &["--no-spawn"]);
    home.sluice(&["stop"]).done();
    // While the first is there a copy would be at its agents and worktrees.
    let refused = ran(home.command(&["task", "list"]).env("SLUICE_HOME", &copy));
    assert!(refused.code == 6 && refused.stderr.contains("is a copy of the home"), "{refused:?}");
    std::fs::rename(home.place(), &moved).unwrap();
    let tasks = at(&copy, &["task", "list"]);
    assert!(tasks.contains(&kept.task) && !tasks.contains(&late), "{tasks}");
    at(&copy, &["stop"]);
    let tasks = at(&moved, &["task", "list"]);
    assert!(tasks.contains(&kept.task) && tasks.contains(&late), "{tasks}");
    at(&moved, &["stop"]);
    // As versions before this one wrote it down.
    let text = std::fs::read_to_string(moved.join("store.json")).unwrap();
    let mut form: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(form.as_object_mut().unwrap().remove("own"), Some(true.into()));
    std::fs::write(moved.join("store.json"), form.to_string()).unwrap();
    std::fs::rename(&moved, &again).unwrap();
    assert!(at(&again, &["task", "list"]).contains(&late));
    at(&again, &["stop"]);
}
