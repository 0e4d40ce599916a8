//! What breaks outside the store: each has its own error, and nothing is lost, doubled or made up.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sluice_store::testing::Cluster;
use sluice_store::{Append, Card, Cursor, Event, Header, Meaning, Query, RowKey, Store, StoreError, StreamId, Writer};

const LONG: Duration = Duration::from_secs(3600);

fn append(stream: &str, expected: u64, size: usize) -> Append {
    let event = Event {
        kind: "happened".to_owned(),
        version: 1,
        time: 0,
        actor: "tester".to_owned(),
        correlation: String::new(),
        caused_by: None,
        data: vec![b'e'; size],
    };
    let card = Card {
        kind: "run".to_owned(),
        status: "running".to_owned(),
        group: "home".to_owned(),
        title: "a title".to_owned(),
        open: true,
        created: 0,
        updated: 0,
    };
    let mut append = Append::new(StreamId::new(stream), expected, vec![event], Header { card, data: vec![b'h'; size] });
    append.rows = vec![(RowKey(0, 0), Some(vec![b'r'; size]))];
    append
}

fn owner(store: &Store) -> Box<dyn Writer> {
    let mut writer = store.writer().unwrap();
    writer.own("owner", LONG).unwrap();
    writer
}

fn open(path: &Path) -> Result<Store, StoreError> {
    Store::open(&format!("sqlite:{}", path.display()))
}

fn version(store: &Store, stream: &str) -> u64 {
    store.reader().unwrap().load(&StreamId::new(stream)).unwrap().map_or(0, |it| it.version)
}

/// A store with a few hundred streams, closed.
fn filled(folder: &Path) -> PathBuf {
    let path = folder.join("store.db");
    let store = open(&path).unwrap();
    let mut writer = owner(&store);
    for at in 0..300 {
        writer.append(&[append(&format!("s{at:03}"), 0, 700)]).unwrap();
    }
    writer.release().unwrap();
    path
}

#[test]
fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 7).unwrap();
    let error = open(&path).err().unwrap();
    assert!(matches!(error, StoreError::TooNew { found: 7, known: 3, .. }), "{error:?}");
    assert!(error.to_string().contains("store.db"), "{error}");

    let cluster = Cluster::shared();
    let address = cluster.database();
    drop(Store::open(&address).unwrap());
    cluster.execute(&address, "UPDATE sluice.schema_version SET version = 9");
    let error = Store::open(&address).err().unwrap();
    assert!(matches!(error, StoreError::TooNew { found: 9, known: 2, .. }), "{error:?}");
}

#[test]
fn what_is_not_a_store_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "nothing but text, and more of it than a header has: ".repeat(99)).unwrap();
    let before = fs::read(&text).unwrap();
    assert!(matches!(open(&text), Err(StoreError::NotAStore { .. })));
    assert_eq!(fs::read(&text).unwrap(), before);
    let other = folder.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    assert!(matches!(open(&other), Err(StoreError::NotAStore { .. })));
    assert!(matches!(open(&folder.path().join("no/such/folder.db")), Err(StoreError::CannotOpen { .. })));
    assert!(matches!(Store::open("mysql://x"), Err(StoreError::Address(_))));
    let error = Store::open("postgres://me:secret@host:port/x").err().unwrap();
    assert!(!error.to_string().contains("secret"), "{error}");
}

/// Garbage anywhere in the file: a clear error or the truth. Where a key is hit and something seems not to be there, the
/// check of the whole file says so.
#[test]
fn damage_is_noticed_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path());
    let whole = fs::read(&path).unwrap();
    let truth = contents(&open(&path).unwrap()).unwrap();
    let (mut noticed, mut missing) = (0, 0);
    for at in (100..whole.len()).step_by(whole.len() / 97) {
        fs::write(&path, &whole).unwrap();
        for beside in ["-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{beside}", path.display()));
        }
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(&[0xA5; 64]).unwrap();
        drop(file);
        match open(&path).and_then(|store| contents(&store)) {
            Ok(found) if found == truth => {}
            Ok(_) => {
                let checked = open(&path).unwrap().check();
                assert!(matches!(checked, Err(StoreError::Corrupt { .. })), "damage at {at}: {checked:?}");
                missing += 1;
            }
            Err(StoreError::Corrupt { place, .. } | StoreError::NotAStore { place, .. }) => {
                assert!(place.ends_with("store.db"));
                noticed += 1;
            }
            Err(other) => panic!("damage at {at}: {other:?}"),
        }
    }
    assert!(missing < 10, "{missing} of 97 were noticed only by the check of the whole file");
    assert!(noticed > 30, "only {noticed} of 97 were noticed");
}

/// Every stream and every event, as text.
fn contents(store: &Store) -> Result<Vec<String>, StoreError> {
    let mut reader = store.reader()?;
    let mut found = Vec::new();
    for at in 0..300 {
        let stream = StreamId::new(format!("s{at:03}"));
        found.push(format!("{:?}", reader.load(&stream)?));
        found.push(format!("{:?}", reader.history(&stream, 0, 10)?));
    }
    found.extend(reader.log(Cursor(0), 1000)?.iter().map(|it| format!("{it:?}")));
    Ok(found)
}

/// A disk with little room: the batch that does not fit is refused whole, and once there is room it goes in.
#[test]
fn a_full_disk_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    if !mount_small(folder.path()) {
        eprintln!("not done: this user cannot mount a small disk");
        return;
    }
    let filler = folder.path().join("filler");
    fs::write(&filler, vec![0; 1 << 20]).unwrap();
    let store = open(&folder.path().join("store.db")).unwrap();
    let mut writer = owner(&store);
    let mut stored = 0;
    let error = loop {
        match writer.append(&[append("s", stored, 100_000), append(&format!("t{stored}"), 0, 10)]) {
            Ok(answers) => {
                assert_eq!(answers, [Ok(stored + 1), Ok(1)]);
                stored += 1;
            }
            Err(error) => break error,
        }
        assert!(stored < 1000, "the disk is never full");
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert!(error.to_string().contains("store.db") && matches!(error.meaning(), Meaning::Unavailable(_)), "{error}");
    assert_eq!((version(&store, "s"), version(&store, &format!("t{stored}"))), (stored, 0));
    fs::remove_file(&filler).unwrap();
    let again = writer.append(&[append("s", stored, 1000), append("u", 0, 10)]).unwrap();
    assert_eq!(again, [Ok(stored + 1), Ok(1)]);
    let events = store.reader().unwrap().history(&StreamId::new("s"), 0, 10_000).unwrap();
    assert_eq!(events.len() as u64, stored + 1);
    drop((writer, store));
    assert!(Command::new("umount").arg(folder.path()).status().unwrap().success());
}

fn mount_small(folder: &Path) -> bool {
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"]).arg(folder);
    is_root() && mount.status().is_ok_and(|it| it.success())
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}

/// Root may write everything, so as root the test runs itself again as nobody.
#[test]
fn a_read_only_file_is_named() {
    if is_root() {
        let home = tempfile::tempdir_in("/tmp").unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
        // The test program itself may stand where nobody may not go.
        let program = home.path().join("again");
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut again = Command::new(program);
        again.args(["--exact", "a_read_only_file_is_named", "--nocapture"]).env("TMPDIR", home.path());
        let output = again.uid(65_534).gid(65_534).current_dir("/").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let error = open(&path).err().unwrap();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    assert!(error.to_string().contains("store.db"), "{error}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let error = open(&path).and_then(|store| store.writer()?.own("a", LONG)).err();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let error = error.unwrap();
    assert!(matches!(error, StoreError::ReadOnly { .. } | StoreError::CannotOpen { .. }), "{error:?}");
    assert_eq!(version(&open(&path).unwrap(), "s000"), 1);
}

/// A process that keeps the file locked: the writer says so after its patience, and goes on afterwards.
#[test]
fn a_locked_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).unwrap();
    let mut writer = owner(&store);
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = writer.append(&[append("s", 0, 1)]).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    assert_eq!(version(&store, "s"), 0);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(writer.append(&[append("s", 0, 1)]).unwrap(), [Ok(1)]);
}

#[test]
fn a_backup_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = filled(folder.path());
    let store = sluice_store::sqlite::Sqlite::open(&path).unwrap();
    let mut writer = owner(&Store::from(store.clone()));
    let copy = folder.path().join("copy.db");
    store.backup(&copy).unwrap();
    writer.append(&[append("later", 0, 1)]).unwrap();
    let (copy, store) = (open(&copy).unwrap(), Store::from(store));
    assert!(contents(&copy).unwrap() == contents(&store).unwrap()[..contents(&copy).unwrap().len()]);
    assert_eq!((version(&copy, "later"), version(&store, "later")), (0, 1));
    assert_eq!(owner(&copy).append(&[append("s000", 1, 1)]).unwrap(), [Ok(2)]);
}

/// The server goes and comes back: the same writer and reader go on.
#[test]
fn postgres_gone_and_back_loses_nothing() {
    let cluster = Cluster::start();
    let store = Store::open(&cluster.database()).unwrap();
    let (mut writer, mut reader) = (owner(&store), store.reader().unwrap());
    for round in 0..3 {
        assert_eq!(writer.append(&[append("s", round * 2, 10)]).unwrap(), [Ok(round * 2 + 1)]);
        cluster.halt();
        let mut waits = Vec::new();
        for _ in 0..3 {
            let error = writer.append(&[append("s", round * 2 + 1, 10)]).unwrap_err();
            assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
            if let Meaning::Unavailable(wait) = error.meaning() {
                waits.push(wait);
            }
        }
        assert!(waits.is_sorted_by(|a, b| a < b), "{waits:?}");
        assert!(matches!(reader.list(&Query::default()), Err(StoreError::Unavailable { .. })));
        assert!(matches!(writer.own("owner", LONG), Err(StoreError::Unavailable { .. })));
        cluster.resume();
        assert_eq!(writer.append(&[append("s", round * 2 + 1, 10)]).unwrap(), [Ok(round * 2 + 2)]);
        assert_eq!(reader.load(&StreamId::new("s")).unwrap().unwrap().version, round * 2 + 2);
    }
    assert_eq!(writer.own("owner", LONG).unwrap().epoch, 1);
    let numbers: Vec<u64> = reader.log(Cursor(0), 100).unwrap().iter().map(|it| it.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
}

/// The server is killed while batches are on their way. Handing them in again until they are answered stores each
/// exactly once, whether its commit was cut off before or after it was durable.
#[test]
fn cut_off_commits_are_found_out() {
    let cluster = Cluster::start();
    let store = Store::open(&cluster.database()).unwrap();
    let mut writer = owner(&store);
    let (send, stored) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let cluster = &cluster;
        scope.spawn(move || {
            // Each crash waits for some batches to be stored: at whatever point the next one is then, it is cut off.
            for crash in 0..6 {
                for _ in 0..20 + crash * 7 {
                    stored.recv().unwrap();
                }
                cluster.halt();
                cluster.resume();
            }
            for _ in stored {}
        });
        for round in 0..400 {
            let batch = vec![append("a", round, 10), append(&format!("b{round}"), 0, 10)];
            let answers = loop {
                match writer.append(&batch) {
                    Ok(answers) => break answers,
                    Err(StoreError::Unavailable { .. }) => std::thread::yield_now(),
                    Err(other) => panic!("{other:?}"),
                }
            };
            assert_eq!(answers, [Ok(round + 1), Ok(1)], "round {round}");
            send.send(()).unwrap();
        }
        drop(send);
    });
    let mut reader = store.reader().unwrap();
    let history = reader.history(&StreamId::new("a"), 0, 10_000).unwrap();
    assert_eq!(history.len(), 400);
    assert_eq!(reader.log(Cursor(0), 10_000).unwrap().len(), 800);
}
