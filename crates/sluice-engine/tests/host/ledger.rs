//! A ledger keeps every fact in order, and what stands in force.

use sluice_core::machine::Moment;
use sluice_engine::actor::ActorInput;
use sluice_engine::host::Host;
use sluice_engine::ledger::{Fact, KeyedFacts};
use sluice_engine::reactor::{ReactorAnswer, ReactorMessage};
use sluice_store::{Store, StreamId};

use crate::fixture::{is_done, say, start};

fn fact(kind: &str, entries: &[(&str, Option<&str>)]) -> Fact {
    let entry = |(key, value): &(&str, Option<&str>)| ((*key).to_owned(), value.map(|it| it.as_bytes().to_vec()));
    Fact {
        kind: kind.into(),
        actor: "person".into(),
        data: b"{}".to_vec(),
        entries: entries.iter().map(entry).collect(),
    }
}

fn create(host: &Host, fact: Fact) -> ReactorAnswer {
    let (actor, change) = KeyedFacts::create("house", fact, Moment(0));
    let (actor, stream) = (Box::new(actor), StreamId::new("house"));
    host.ask(|token| ReactorMessage::Create { token: Some(token), stream, actor, change, blobs: Vec::new() })
        .recv()
        .unwrap()
}

fn in_force(store: &Store) -> Vec<(String, String)> {
    let stored = store.reader().unwrap().load(&StreamId::new("house")).unwrap().unwrap();
    let ledger = KeyedFacts::restore(&stored).unwrap();
    ledger.entries().map(|(key, value)| (key.to_owned(), String::from_utf8(value.to_vec()).unwrap())).collect()
}

#[test]
fn what_stands_in_force_outlives_the_engine_and_places_are_used_again() {
    let store = Store::open("memory:").unwrap();
    let (host, _handed) = start(&store, false).unwrap();
    assert!(is_done(&create(&host, fact("one", &[("a", Some("1")), ("b", Some("2")), ("c", Some("3"))]))));
    assert!(is_done(&say(&host, "house", ActorInput::Fact(fact("two", &[("b", None), ("never", None)])))));
    host.stop().unwrap();

    let (host, _handed) = start(&store, false).unwrap();
    assert!(is_done(&say(&host, "house", ActorInput::Fact(fact("three", &[("d", Some("4")), ("a", Some("5"))])))));
    assert!(matches!(say(&host, "house", crate::cancel_run()), ReactorAnswer::Refused(_)));
    host.stop().unwrap();
    let expected = [("a", "5"), ("c", "3"), ("d", "4")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(in_force(&store), expected);
    let stored = store.reader().unwrap().load(&StreamId::new("house")).unwrap().unwrap();
    let places: Vec<u32> = stored.rows.iter().map(|(key, _)| key.0).collect();
    assert_eq!(places, [0, 1, 2], "what was removed left room");
    let events = store.reader().unwrap().history(&StreamId::new("house"), 0, 9).unwrap();
    assert_eq!(events.iter().map(|(_, event)| event.kind.as_str()).collect::<Vec<_>>(), ["one", "two", "three"]);
}
