//! A store that is away, full or not writable: a pause or a clear end, and nothing that was answered is lost.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use sluice_engine::host::{Host, PendingAnswer};
use sluice_store::testing::Cluster;
use sluice_store::{Store, StoreError, StreamId};

use super::fixture::{create_run, is_done, start};

fn status(store: &Store, run: &str) -> String {
    store.reader().unwrap().load(&StreamId::new(run)).unwrap().map_or("none".into(), |it| it.header.card.status)
}

/// Asks for runs until one waits for an answer; gives the number of those that were answered.
fn create_until_silent(host: &Host) -> (usize, PendingAnswer) {
    for number in 1..10_000 {
        let answer = create_run(host, &format!("run-{number}"));
        match answer.recv_timeout(Duration::from_secs(3)) {
            Ok(answer) => assert!(is_done(&answer), "{answer:?}"),
            Err(RecvTimeoutError::Timeout) => return (number, answer),
            Err(RecvTimeoutError::Disconnected) => panic!("the host has ended"),
        }
    }
    panic!("the store took everything");
}

#[test]
fn postgres_gone_for_ten_seconds_and_back() {
    let cluster = Cluster::start();
    let store = Store::open(&cluster.database()).unwrap();
    let (host, _handed) = start(&store, true).unwrap();
    assert!(is_done(&create_run(&host, "run-1").recv().unwrap()));
    cluster.halt();
    let answer = create_run(&host, "run-2");
    assert_eq!(answer.recv_timeout(Duration::from_secs(10)), Err(RecvTimeoutError::Timeout));
    assert!(!host.has_ended());
    cluster.resume();
    assert!(is_done(&answer.recv_timeout(Duration::from_secs(60)).unwrap()));
    assert!(is_done(&create_run(&host, "run-3").recv().unwrap()));
    host.stop().unwrap();
    let (host, _handed) = start(&store, true).unwrap();
    host.stop().unwrap();
    for run in ["run-1", "run-2", "run-3"] {
        assert!(["completed", "running"].contains(&status(&store, run).as_str()), "{run}: {}", status(&store, run));
    }
}

/// What somebody gives up while the store is away is not done later, unless it is on its way there: then they are told.
#[test]
fn what_is_given_up_while_the_store_is_away_is_not_done_later() {
    let cluster = Cluster::start();
    let store = Store::open(&cluster.database()).unwrap();
    let (host, _handed) = start(&store, true).unwrap();
    assert!(is_done(&create_run(&host, "run-0").recv().unwrap()));
    cluster.halt();
    let asked: Vec<(String, PendingAnswer)> =
        (1..20).map(|number| format!("run-{number}")).map(|id| (id.clone(), create_run(&host, &id))).collect();
    assert_eq!(asked[0].1.recv_timeout(Duration::from_secs(1)), Err(RecvTimeoutError::Timeout));
    let withdrawn: Vec<bool> = asked.iter().map(|(_, asked)| host.handle().withdraw(asked)).collect();
    assert!(withdrawn.iter().any(|withdrawn| *withdrawn), "{withdrawn:?}");
    cluster.resume();
    for ((id, asked), withdrawn) in asked.iter().zip(&withdrawn) {
        match withdrawn {
            true => assert!(asked.recv().is_err(), "{id} is answered"),
            false => assert!(is_done(&asked.recv_timeout(Duration::from_secs(60)).unwrap()), "{id}"),
        }
    }
    host.stop().unwrap();
    for ((id, _), withdrawn) in asked.iter().zip(withdrawn) {
        assert_eq!(status(&store, id) == "none", withdrawn, "{id}: {}", status(&store, id));
    }
}

#[test]
fn a_stop_does_not_wait_for_a_store_that_is_away() {
    let cluster = Cluster::start();
    let store = Store::open(&cluster.database()).unwrap();
    let (host, _handed) = start(&store, true).unwrap();
    cluster.halt();
    let answer = create_run(&host, "run-1");
    let ended = host.stop();
    assert!(matches!(ended, Err(StoreError::Unavailable { .. })), "{ended:?}");
    assert!(answer.recv().is_err(), "nobody was told that it was stored");
}

#[test]
fn a_full_disk_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"]).arg(folder.path());
    if !mount.status().is_ok_and(|it| it.success()) {
        eprintln!("not done: this user cannot mount a small disk");
        return;
    }
    fill_and_free(folder.path());
    assert!(Command::new("umount").arg(folder.path()).status().unwrap().success());
}

fn fill_and_free(folder: &Path) {
    let store = Store::open(&format!("sqlite:{}", folder.join("store.db").display())).unwrap();
    let (host, _handed) = start(&store, true).unwrap();
    assert!(is_done(&create_run(&host, "first").recv().unwrap()));
    let filler = folder.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    // As long as it takes: the last write is the one that does not fit.
    while std::io::Write::write(&mut file, &[0; 4096]).is_ok_and(|written| written > 0) {}
    let (number, answer) = create_until_silent(&host);
    assert!(!host.has_ended());
    std::fs::remove_file(&filler).unwrap();
    drop(file);
    assert!(is_done(&answer.recv_timeout(Duration::from_secs(60)).unwrap()));
    host.stop().unwrap();
    for run in 1..=number {
        assert_ne!(status(&store, &format!("run-{run}")), "none");
    }
}

/// Another engine has taken the store over: this one ends, and says so.
#[test]
fn a_store_that_was_taken_over_ends_the_host() {
    let store = Store::open("memory:").unwrap();
    let (host, _handed) = start(&store, true).unwrap();
    assert!(is_done(&create_run(&host, "run-1").recv().unwrap()));
    store.writer().unwrap().own("test", Duration::from_secs(30)).unwrap();
    assert!(create_run(&host, "run-2").recv().is_err());
    let ended = host.stop();
    assert!(matches!(ended, Err(StoreError::LostOwnership)), "{ended:?}");
    assert_eq!(status(&store, "run-2"), "none");
}
