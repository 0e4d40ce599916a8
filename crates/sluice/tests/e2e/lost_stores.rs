//! The file of a store is removed, moved or replaced under a living engine, or its log after a dead one: nothing is said to
//! be stored that is not, nothing that was is lost, and no command goes on as if nothing were missing.

use std::path::{Path, PathBuf};

use super::home::{Home, Ran, run as ran};
use super::process;

fn store(home: &Home) -> PathBuf {
    home.place().join("store.db")
}

fn log_of(store: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", store.display()))
}

/// It says no, with 6, and how to go on.
#[track_caller]
fn is_told(ran: &Ran, parts: &[&str]) {
    assert_eq!(ran.code, 6, "{ran:?}");
    let text = format!("{}{}", ran.stdout, ran.stderr);
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in {text:?}"));
}

/// The home of a living engine with a task, of whose store something becomes.
fn lose(becomes: impl FnOnce(&Path)) -> (Home, String, i32) {
    let home = Home::new();
    let kept = home.create("kept", "true", &["--no-spawn"]);
    let engine = home.engine_pid();
    becomes(&store(&home));
    (home, kept, engine)
}

/// The engine ends by itself, and what it saved holds everything.
fn is_saved(home: &Home, kept: &str, engine: i32) {
    process::until_gone(engine);
    let saved = home.place().join("store.db.saved-1");
    home.sluice(&["restore", saved.to_str().unwrap()]).done();
    assert!(home.json(&["task", "list"]).to_string().contains(kept));
    home.create("again", "true", &["--no-spawn"]);
}

#[test]
fn a_store_that_is_removed_under_its_engine_takes_nothing_more_and_is_saved() {
    let (home, kept, engine) = lose(|store| {
        std::fs::remove_file(store).unwrap();
        std::fs::remove_file(log_of(store)).unwrap();
    });
    let late = home.sluice(&["task", "create", "late", "Late", "--harness", "demo", "--no-spawn"]);
    is_told(&late, &["removed, moved or replaced", "store.db.saved-1", "sluice restore FILE"]);
    process::until_gone(engine);
    let missing = home.sluice(&["task", "list"]);
    is_told(&missing, &["not there any more", "store.db.saved-1 is what an engine saved of it at 20"]);
    is_saved(&home, &kept, engine);
}

#[test]
fn a_store_that_is_replaced_under_its_engine_is_not_read_either() {
    let (home, kept, engine) = lose(|store| {
        let other = store.with_extension("other");
        std::fs::write(&other, "another file").unwrap();
        std::fs::rename(&other, store).unwrap();
    });
    is_told(&home.sluice(&["task", "list"]), &["removed, moved or replaced", "store.db.saved-1"]);
    process::until_gone(engine);
    assert_eq!(std::fs::read_to_string(store(&home)).unwrap(), "another file");
    std::fs::remove_file(store(&home)).unwrap();
    is_saved(&home, &kept, engine);
}

#[test]
fn a_log_that_is_removed_under_its_engine_is_saved_with_its_store() {
    let (home, kept, engine) = lose(|store| std::fs::remove_file(log_of(store)).unwrap());
    let late = home.sluice(&["task", "create", "late", "Late", "--harness", "demo", "--no-spawn"]);
    is_told(&late, &["store.db.saved-1"]);
    process::until_gone(engine);
    is_told(&home.sluice(&["task", "list"]), &["store.db-wal is not there"]);
    is_saved(&home, &kept, engine);
}

/// A command that only looks notices it too.
#[test]
fn a_log_that_is_removed_under_its_engine_is_missed_by_a_command_that_only_looks() {
    let (home, kept, engine) = lose(|store| std::fs::remove_file(log_of(store)).unwrap());
    is_told(&home.sluice(&["task", "list"]), &["removed, moved or replaced", "store.db.saved-1"]);
    is_saved(&home, &kept, engine);
}

/// What stood in the log alone is lost with it. The file is as it was, and nothing of the emptied log is brought into it.
#[test]
fn a_log_that_is_emptied_under_its_engine_does_not_ruin_the_store() {
    for asks in [&["task", "list"][..], &["stop"]] {
        emptied(asks);
    }
}

/// An engine whose log is emptied is asked this.
fn emptied(asks: &[&str]) {
    let home = Home::new();
    home.create("kept", "true", &["--no-spawn"]);
    let engine = home.engine_pid();
    let before = std::fs::read(store(&home)).unwrap();
    std::fs::write(log_of(&store(&home)), "").unwrap();
    let asked = home.sluice(asks);
    if asks[0] == "task" {
        is_told(&asked, &["removed, moved or replaced"]);
        let late = home.sluice(&["task", "create", "late", "Late", "--harness", "demo", "--no-spawn"]);
        assert_eq!(late.code, 6, "{late:?}");
    }
    process::until_gone(engine);
    assert_eq!(std::fs::read(store(&home)).unwrap(), before, "it was written into after {asks:?}");
}

/// Another program may bring the log into the file and empty it: nothing is missing then.
#[test]
fn a_log_that_was_brought_into_the_file_is_not_missed() {
    let home = Home::new();
    let kept = home.create("kept", "true", &["--no-spawn"]);
    let engine = home.engine_pid();
    let other = home.store();
    // A reader of the engine may be in the way for a moment.
    other.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
    let (busy, ..): (i64, i64, i64) = other
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap();
    assert_eq!((busy, log_of(&store(&home)).metadata().unwrap().len()), (0, 0));
    assert!(home.json(&["task", "list"]).to_string().contains(&kept));
    home.create("later", "true", &["--no-spawn"]);
    assert_eq!(home.engine_pid(), engine);
}

/// The home is moved away. Its engine ends without touching what is made in its place, and everything is where the home is.
#[test]
fn a_home_that_is_moved_under_its_engine_is_whole_where_it_is() {
    let home = Home::new();
    let kept = home.create("kept", "true", &["--no-spawn"]);
    let (engine, moved) = (home.engine_pid(), home.path("moved"));
    std::fs::rename(home.place(), &moved).unwrap();
    let there = |arguments: &[&str]| ran(home.command(arguments).env("SLUICE_HOME", &moved));
    is_told(
        &there(&["task", "create", "late", "Late", "--project", "coffee", "--harness", "demo", "--no-spawn"]),
        &["removed, moved or replaced"],
    );
    process::until_gone(engine);
    assert!(!store(&home).exists(), "the engine of a home that was moved made a store in its old place");
    let listed = there(&["task", "list", "--json"]).done().stdout;
    assert!(listed.contains(&kept), "{listed}");
    there(&["stop"]).done();
}

/// After a kill what was stored last stands in the log: without it the store is not opened as if that were all.
#[test]
fn a_store_without_the_log_of_a_killed_engine_is_refused() {
    let home = Home::new();
    let kept = home.create("kept", "true", &["--no-spawn"]);
    home.kill_engine();
    let (log, aside) = (log_of(&store(&home)), home.path("log"));
    // Whoever only looks takes nothing away.
    home.sluice(&["doctor"]).done();
    std::fs::rename(&log, &aside).unwrap();
    let way_out = format!("sluice restore --without-log {}", store(&home).display());
    is_told(&home.sluice(&["task", "list"]), &["store.db-wal is not there", "put that file back", &way_out]);
    let doctor = home.sluice(&["doctor"]);
    is_told(&doctor, &["store.db-wal is not there"]);
    std::fs::rename(&aside, &log).unwrap();
    assert!(home.json(&["task", "list"]).to_string().contains(&kept));
    // An owner who lost it says so, and so does one who knows that another program took it into the file.
    home.kill_engine();
    drop(rusqlite::Connection::open(store(&home)).unwrap().execute_batch("SELECT * FROM owner"));
    assert!(!log.exists(), "SQLite takes the log into the file");
    is_told(&home.sluice(&["task", "list"]), &["another program such as sqlite3", "nothing is missing"]);
    let file = store(&home).display().to_string();
    assert_eq!(home.refused(&["restore", &file]), "1 unusable_copy");
    home.sluice(&["restore", "--without-log", &file]).done();
    assert!(home.json(&["task", "list"]).to_string().contains(&kept));
    // One that was given up needs no log.
    home.sluice(&["stop"]).done();
    let _ = std::fs::remove_file(&log);
    home.json(&["task", "list"]);
}

/// What an engine has saved is newer than what lies in the store's place: nothing is made there until a person has said
/// which of the two it is to be.
#[test]
fn a_store_that_is_older_than_what_was_saved_of_it_is_not_gone_on_with() {
    let home = Home::new();
    home.create("first", "true", &["--no-spawn"]);
    let log = log_of(&store(&home));
    let old = home.path("old-wal");
    std::fs::copy(&log, &old).unwrap();
    let kept = home.create("kept", "true", &["--no-spawn"]);
    let engine = home.engine_pid();
    let shorter = std::fs::read(&old).unwrap();
    assert!(shorter.len() < usize::try_from(log.metadata().unwrap().len()).unwrap());
    std::fs::write(&log, shorter).unwrap();
    is_told(&home.sluice(&["task", "list"]), &["store.db.saved-1"]);
    process::until_gone(engine);
    let saved = home.place().join("store.db.saved-1");
    let before = (std::fs::read(&saved).unwrap(), saved.metadata().unwrap().modified().unwrap());
    for _ in 0..2 {
        is_told(&home.sluice(&["task", "list"]), &["is older than", "store.db.saved-1", "sluice restore"]);
    }
    let told = home.sluice(&["doctor"]);
    assert!(told.code != 0 && told.stdout.contains("is older than"), "{told:?}");
    // Looking has changed nothing of it.
    let after = (std::fs::read(&saved).unwrap(), saved.metadata().unwrap().modified().unwrap());
    assert!(after == before, "what was saved was written to");
    is_saved(&home, &kept, engine);
}

/// A person who puts an older backup back says by that which store it is to be.
#[test]
fn a_backup_that_is_older_than_what_was_saved_is_restored_all_the_same() {
    let home = Home::new();
    home.create("first", "true", &["--no-spawn"]);
    let backup = home.path("backup.db");
    home.sluice(&["backup", backup.to_str().unwrap()]).done();
    let later = home.create("later", "true", &["--no-spawn"]);
    let engine = home.engine_pid();
    let store = store(&home);
    std::fs::rename(&store, store.with_extension("elsewhere")).unwrap();
    is_told(&home.sluice(&["task", "list"]), &["store.db.saved-1"]);
    process::until_gone(engine);
    let restored = home.json(&["restore", backup.to_str().unwrap()]);
    assert!(restored["passed_over"].to_string().contains("store.db.saved-1.passed-over-1"), "{restored:#}");
    let tasks = home.json(&["task", "list"]).to_string();
    assert!(tasks.contains("first") && !tasks.contains(&later), "{tasks}");
    // What was passed over can be restored as well.
    let saved = home.place().join("store.db.saved-1.passed-over-1");
    home.sluice(&["restore", saved.to_str().unwrap()]).done();
    assert!(home.json(&["task", "list"]).to_string().contains(&later));
}

/// The message names the command; who follows it at once is not told the same again.
#[test]
fn what_was_saved_is_restored_at_once() {
    let (home, kept, _) = lose(|store| std::fs::rename(store, store.with_extension("elsewhere")).unwrap());
    is_told(&home.sluice(&["task", "list"]), &["store.db.saved-1"]);
    let saved = home.place().join("store.db.saved-1");
    home.sluice(&["restore", saved.to_str().unwrap()]).done();
    assert!(home.json(&["task", "list"]).to_string().contains(&kept));
}
