//! The host: it takes up what it finds in the store, waits for a store that is away, and stops only what it must.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "host/fixture.rs"]
mod fixture;
#[path = "host/ledger.rs"]
mod ledger;
#[path = "host/storage.rs"]
mod storage;
#[path = "host/workers.rs"]
mod workers;

use fixture::{RECIPE, create_run, create_task, default_lifecycle, is_done, pinned, say, start};
use sluice_core::run;
use sluice_core::task::{Evidence, TaskAsker, TaskInput};
use sluice_engine::actor::{ActorInput, Remark};
use sluice_engine::loader::pin;
use sluice_engine::reactor::ReactorAnswer;
use sluice_store::{Store, StreamId};

fn cancel_run() -> ActorInput {
    ActorInput::Run(run::RunInput::Cancel { reason: String::new() })
}

#[test]
fn tasks_and_runs_are_taken_up_again() {
    let store = Store::open("memory:").unwrap();
    let (host, handed) = start(&store, false).unwrap();
    assert!(is_done(&create_task(&host, pinned(default_lifecycle())).recv().unwrap()));
    assert_eq!(handed.recv().unwrap(), "task-1 write-4");
    assert!(is_done(&create_run(&host, "run-1").recv().unwrap()));
    assert_eq!(handed.recv().unwrap(), "run-1 0.1.whole");
    host.stop().unwrap();

    let (host, handed) = start(&store, false).unwrap();
    let mut again = [handed.recv().unwrap(), handed.recv().unwrap()];
    again.sort();
    assert_eq!(again, ["run-1 0.1.whole", "task-1 write-4"]);
    let cancel = TaskInput::Cancel { by: TaskAsker::Person, evidence: Evidence::default() };
    assert!(is_done(&say(&host, "task-1", ActorInput::Task(cancel.clone()))));
    assert!(matches!(say(&host, "run-1", ActorInput::Task(cancel)), ReactorAnswer::Refused(_)));
    assert!(is_done(&say(&host, "run-1", cancel_run())));
    host.stop().unwrap();
}

/// One stream that cannot be understood stops alone, and says why to whoever asks.
#[test]
fn a_task_whose_definition_is_none_stops_alone() {
    let store = Store::open("memory:").unwrap();
    let (host, _handed) = start(&store, false).unwrap();
    assert!(is_done(&create_task(&host, pinned(RECIPE)).recv().unwrap()));
    assert!(is_done(&create_run(&host, "run-1").recv().unwrap()));
    host.stop().unwrap();

    let (host, handed) = start(&store, false).unwrap();
    assert_eq!(handed.recv().unwrap(), "run-1 0.1.whole");
    let why = "a recipe, and not a lifecycle";
    let cancel = TaskInput::Cancel { by: TaskAsker::Person, evidence: Evidence::default() };
    assert_eq!(say(&host, "task-1", ActorInput::Task(cancel)), ReactorAnswer::Fault(why.into()));
    let faults: Vec<(String, String)> = host.faults().into_iter().map(|(id, why)| (id.to_string(), why)).collect();
    assert_eq!(faults, [("task-1".to_owned(), why.to_owned())]);
    assert!(is_done(&say(&host, "run-1", cancel_run())));
    host.stop().unwrap();
}

/// What was pinned is recognised by its content, not by its place.
#[test]
fn an_altered_definition_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = Store::open(&format!("sqlite:{}", path.display())).unwrap();
    let (host, _handed) = start(&store, false).unwrap();
    assert!(is_done(&create_run(&host, "run-1").recv().unwrap()));
    host.stop().unwrap();
    drop(store);
    let database = rusqlite::Connection::open(&path).unwrap();
    let harmless = pinned(b"name: one\nsteps:\n  - {name: a, type: script, command: 'rm'}\n");
    let changed = database.execute("UPDATE blob SET body = ?1", [&harmless[..]]).unwrap();
    assert_eq!(changed, 1);
    drop(database);

    let store = Store::open(&format!("sqlite:{}", path.display())).unwrap();
    let (host, _handed) = start(&store, false).unwrap();
    match say(&host, "run-1", cancel_run()) {
        ReactorAnswer::Fault(why) => assert!(why.contains("definition") || why.contains("damaged"), "{why}"),
        other => panic!("{other:?}"),
    }
    host.stop().unwrap();
}

#[test]
fn what_is_there_is_not_created_twice() {
    let store = Store::open("memory:").unwrap();
    let (host, _handed) = start(&store, true).unwrap();
    assert!(is_done(&create_run(&host, "run-1").recv().unwrap()));
    assert_eq!(create_run(&host, "run-1").recv().unwrap(), ReactorAnswer::Conflict);
    host.stop().unwrap();
}

/// What is written down about a task's files: a body once and whole, a forgery once, and nothing moves.
#[test]
fn remarks_are_written_down_and_move_nothing() {
    let store = Store::open("memory:").unwrap();
    let (host, _handed) = start(&store, false).unwrap();
    assert!(is_done(&create_task(&host, pinned(default_lifecycle())).recv().unwrap()));
    let read = |body: &str| ActorInput::Remark(Remark::Read { body: body.into() });
    let forged =
        || ActorInput::Remark(Remark::Forged { key: "status".into(), found: "done".into(), truth: "working".into() });
    for said in [read("one"), read("one"), read("two"), forged(), forged()] {
        assert!(is_done(&say(&host, "task-1", said)));
    }
    assert!(
        matches!(say(&host, "task-1", ActorInput::Remark(Remark::Deleted)), ReactorAnswer::Refused(_)),
        "it is open"
    );
    host.stop().unwrap();

    let mut reader = store.reader().unwrap();
    let events = reader.history(&StreamId::new("task-1"), 0, 100).unwrap();
    let kinds: Vec<&str> = events.iter().map(|(_, event)| event.kind.as_str()).collect();
    assert_eq!(kinds[kinds.len() - 3..], ["artifact.read", "artifact.read", "artifact.forged"]);
    for body in ["one", "two"] {
        assert_eq!(reader.blob(&pin(body.as_bytes())).unwrap().as_deref(), Some(body.as_bytes()));
    }
    let (host, _handed) = start(&store, false).unwrap();
    let before = reader.load(&StreamId::new("task-1")).unwrap().unwrap();
    assert!(is_done(&say(&host, "task-1", read("two"))), "after a restart it is known all the same");
    host.stop().unwrap();
    assert_eq!(reader.load(&StreamId::new("task-1")).unwrap().unwrap(), before);
    assert_eq!(before.header.card.status, "working");
}
