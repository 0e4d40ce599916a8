//! Effects in order: the reactor with an actor that does nothing but want things done.

use sluice_core::machine::Refusal;
use sluice_store::{Card, Header};

use super::*;
use crate::actor::Wanted;

const NOW: Moment = Moment(0);

/// Wants what it is told to want: `Said::Timer("a b")` asks for the effects `a` and `b` at once.
struct Wisher {
    open: Vec<String>,
    ordered: bool,
}

fn change(effects: &[String], settled: Vec<String>) -> Change {
    let card = Card {
        kind: "wisher".into(),
        status: String::new(),
        group: String::new(),
        title: String::new(),
        open: true,
        created: 0,
        updated: 0,
    };
    let event = Event {
        kind: "wished".into(),
        version: 1,
        time: 0,
        actor: String::new(),
        correlation: String::new(),
        caused_by: None,
        data: Vec::new(),
    };
    Change {
        events: vec![event],
        header: Header { card, data: Vec::new() },
        rows: Vec::new(),
        effects: effects.iter().map(|id| effect(id)).collect(),
        settled,
        timers: Vec::new(),
    }
}

fn effect(id: &str) -> Effect {
    Effect { id: id.to_owned(), kind: "wish".into(), data: Vec::new() }
}

impl Actor for Wisher {
    fn take(&mut self, said: Said, _: Moment) -> Result<Option<Change>, Refusal> {
        match said {
            Said::Timer(ids) => {
                let ids: Vec<String> = ids.split(' ').map(str::to_owned).collect();
                self.open.extend(ids.iter().cloned());
                Ok(Some(change(&ids, Vec::new())))
            }
            Said::Outcome { effect, .. } | Said::Lost { effect } => {
                self.open.retain(|id| *id != effect);
                Ok(Some(change(&[], vec![effect])))
            }
            Said::Run(_) | Said::Task(_) => Ok(None),
        }
    }

    fn header(&self, _: Moment) -> Header {
        change(&[], Vec::new()).header
    }

    fn noted(&mut self, _: u64) {}

    fn is_over(&self) -> bool {
        false
    }

    fn is_open(&self, effect: &str) -> bool {
        self.open.iter().any(|id| id == effect)
    }

    fn wants(&self, _: &Effect) -> Option<Wanted> {
        None
    }

    fn in_order(&self) -> Option<&[String]> {
        self.ordered.then_some(&self.open)
    }
}

fn stream() -> StreamId {
    StreamId::new("wisher")
}

/// A reactor with a wisher whose open effects the store gives in the order of their ids.
fn reactor(ordered: bool, open: &[&str]) -> Reactor {
    let mut by_id = open.to_vec();
    by_id.sort_unstable();
    let effects = by_id.iter().map(|id| OpenEffect { effect: effect(id), lease: None }).collect();
    let actor = Wisher { open: open.iter().map(|id| (*id).to_owned()).collect(), ordered };
    let found = Found { actor: Box::new(actor), version: 1, effects, timers: Vec::new() };
    let mut reactor = Reactor::new(1);
    reactor.receive(Message::Loaded { stream: stream(), found: Some(found) }, NOW);
    reactor
}

/// What is handed out now, and whether something is to be stored.
fn act(reactor: &mut Reactor) -> (Vec<(String, u64)>, usize) {
    let (mut handed, mut stored) = (Vec::new(), 0);
    for action in reactor.act(NOW) {
        match action {
            Action::Perform(it) => handed.push((it.effect.id, it.dispatch)),
            Action::Commit(batch) => stored += batch.len(),
            Action::Load(_) | Action::Reply(..) => panic!("nobody asked"),
        }
    }
    (handed, stored)
}

fn wish(reactor: &mut Reactor, ids: &str) {
    reactor.receive(Message::Say { token: None, stream: stream(), said: Said::Timer(ids.into()) }, NOW);
}

fn end(reactor: &mut Reactor, (effect, dispatch): &(String, u64)) {
    let (effect, dispatch) = (effect.clone(), *dispatch);
    reactor.receive(Message::Ended { stream: stream(), effect, dispatch, outcome: Outcome::Done }, NOW);
}

fn commit(reactor: &mut Reactor, count: usize) {
    reactor.receive(Message::Committed((0..count).map(|_| Ok(0)).collect()), NOW);
}

fn ids(handed: &[(String, u64)]) -> Vec<&str> {
    handed.iter().map(|(id, _)| id.as_str()).collect()
}

#[test]
fn without_an_order_everything_is_handed_out_at_once() {
    let mut reactor = reactor(false, &["z", "a"]);
    assert_eq!(ids(&act(&mut reactor).0), ["a", "z"]);
    wish(&mut reactor, "y b");
    assert_eq!(act(&mut reactor), (Vec::new(), 1));
    commit(&mut reactor, 1);
    assert_eq!(ids(&act(&mut reactor).0), ["y", "b"]);
}

#[test]
fn in_order_the_next_is_handed_out_when_the_one_before_is_settled_and_stored() {
    let mut reactor = reactor(true, &[]);
    wish(&mut reactor, "z a");
    assert_eq!(act(&mut reactor), (Vec::new(), 1));
    commit(&mut reactor, 1);
    let (handed, _) = act(&mut reactor);
    assert_eq!(ids(&handed), ["z"]);

    wish(&mut reactor, "m");
    assert_eq!(act(&mut reactor), (Vec::new(), 1));
    commit(&mut reactor, 1);
    assert_eq!(act(&mut reactor), (Vec::new(), 0), "the first is still under way");

    end(&mut reactor, &handed[0]);
    assert_eq!(act(&mut reactor), (Vec::new(), 1), "its settlement is not stored yet");
    end(&mut reactor, &handed[0]);
    assert_eq!(act(&mut reactor), (Vec::new(), 0), "and it cannot end twice");
    commit(&mut reactor, 1);
    let (handed, _) = act(&mut reactor);
    assert_eq!(ids(&handed), ["a"]);

    end(&mut reactor, &handed[0]);
    act(&mut reactor);
    commit(&mut reactor, 1);
    assert_eq!(ids(&act(&mut reactor).0), ["m"]);
}

#[test]
fn what_was_asked_for_together_with_a_settlement_comes_after_what_waits() {
    let mut reactor = reactor(true, &["z", "a"]);
    let (handed, _) = act(&mut reactor);
    end(&mut reactor, &handed[0]);
    wish(&mut reactor, "b");
    assert_eq!(act(&mut reactor).1, 2);
    commit(&mut reactor, 2);
    assert_eq!(ids(&act(&mut reactor).0), ["a"]);
}

#[test]
fn after_a_restart_the_order_is_the_actors_and_not_the_outboxs() {
    let mut reactor = reactor(true, &["write-9", "write-14", "turn-2/1"]);
    let mut order = Vec::new();
    loop {
        let (handed, _) = act(&mut reactor);
        let [only] = handed.as_slice() else { break };
        order.push(only.0.clone());
        end(&mut reactor, only);
        assert_eq!(act(&mut reactor), (Vec::new(), 1));
        commit(&mut reactor, 1);
    }
    assert_eq!(order, ["write-9", "write-14", "turn-2/1"]);
}
