//! Effects in order, streams that stop, and what is taken up: the reactor with an actor that does nothing but want things
//! done, and panics when it is told to.

use std::time::Duration;

use sluice_core::machine::Refusal;
use sluice_store::{Card, Event, Header, Lease};

use super::*;
use crate::actor::{EffectOutcome, WorkerRequirement};
use crate::workers::WorkerOffer;

const NOW: Moment = Moment(0);

/// Wants what it is told to want: `Said::Timer("a b")` asks for the effects `a` and `b` at once.
struct Wisher {
    open: Vec<String>,
    ordered: bool,
}

fn change(effects: &[String], settled: Vec<String>) -> ActorChange {
    let card = Card { kind: "wisher".into(), open: true, ..Card::default() };
    let event = Event { kind: "wished".into(), version: 1, ..Event::default() };
    let effects = effects.iter().map(|id| effect(id)).collect();
    ActorChange { effects, settled, ..ActorChange::new(vec![event], Header { card, data: Vec::new() }) }
}

fn effect(id: &str) -> Effect {
    Effect { id: id.to_owned(), kind: "wish".into(), data: Vec::new() }
}

impl Actor for Wisher {
    fn take(&mut self, said: ActorInput, _: Moment) -> Result<Option<ActorChange>, Refusal> {
        match said {
            ActorInput::Timer(ids) => {
                let ids: Vec<String> = ids.split(' ').map(str::to_owned).collect();
                self.open.extend(ids.iter().cloned());
                Ok(Some(change(&ids, Vec::new())))
            }
            ActorInput::Outcome { effect, .. } | ActorInput::Lost { effect } => {
                self.open.retain(|id| *id != effect);
                Ok(Some(change(&[], vec![effect])))
            }
            ActorInput::Run(_) => panic!("what a machine must not do"),
            ActorInput::Task(_) | ActorInput::Remark(_) | ActorInput::Fact(_) => Ok(None),
        }
    }

    fn header(&self, _: Moment) -> Header {
        change(&[], Vec::new()).header
    }

    fn is_over(&self) -> bool {
        false
    }

    fn is_open(&self, effect: &str) -> bool {
        self.open.iter().any(|id| id == effect)
    }

    fn wants(&self, effect: &Effect) -> Option<WorkerRequirement> {
        effect.id.starts_with("far").then(|| WorkerRequirement {
            role: "any".into(),
            group: "g".into(),
            since: 0,
            in_scratch: false,
        })
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
    let found = LoadedStream { actor: Box::new(actor), version: 1, effects, timers: Vec::new() };
    let mut reactor = Reactor::new(1);
    reactor.receive(ReactorMessage::Loaded { stream: stream(), found: Some(found) }, NOW);
    reactor
}

/// What is handed out now, and whether something is to be stored.
fn act(reactor: &mut Reactor) -> (Vec<(String, Dispatch)>, usize) {
    let (mut handed, mut stored) = (Vec::new(), 0);
    for action in reactor.act(NOW) {
        match action {
            ReactorAction::Perform(it) => handed.push((it.effect.id, it.dispatch)),
            ReactorAction::Commit(batch) => stored += batch.len(),
            ReactorAction::Load(_)
            | ReactorAction::Reply(..)
            | ReactorAction::Held(..)
            | ReactorAction::Withdrawn { .. } => {
                panic!("nobody asked")
            }
        }
    }
    (handed, stored)
}

fn wish(reactor: &mut Reactor, ids: &str) {
    reactor.receive(ReactorMessage::Say { token: None, stream: stream(), said: ActorInput::Timer(ids.into()) }, NOW);
}

fn end(reactor: &mut Reactor, (effect, dispatch): &(String, Dispatch)) {
    let (effect, dispatch) = (effect.clone(), *dispatch);
    reactor.receive(
        ReactorMessage::Ended { token: None, stream: stream(), effect, dispatch, outcome: EffectOutcome::Done },
        NOW,
    );
}

fn commit(reactor: &mut Reactor, count: usize) {
    reactor.receive(ReactorMessage::Committed((0..count).map(|_| Ok(0)).collect()), NOW);
}

fn ids(handed: &[(String, Dispatch)]) -> Vec<&str> {
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

/// What the reactor says to those who asked, and what it wants to load.
fn answers(reactor: &mut Reactor) -> Vec<String> {
    let words = |action: ReactorAction| match action {
        ReactorAction::Reply(token, ReactorAnswer::Done(it)) => {
            Some(format!("{} done {}..{}", token.0, it.after, it.last))
        }
        ReactorAction::Reply(token, answer) => Some(format!("{} {answer:?}", token.0)),
        ReactorAction::Load(stream) => Some(format!("load {stream}")),
        ReactorAction::Commit(batch) => Some(format!("commit {}", batch.len())),
        ReactorAction::Perform(_) | ReactorAction::Held(..) | ReactorAction::Withdrawn { .. } => None,
    };
    reactor.act(NOW).into_iter().filter_map(words).collect()
}

fn ask(reactor: &mut Reactor, token: u64, said: ActorInput) {
    reactor.receive(ReactorMessage::Say { token: Some(ReactorToken(token)), stream: stream(), said }, NOW);
}

fn panics() -> ActorInput {
    ActorInput::Run(sluice_core::run::RunInput::Cancel { reason: String::new() })
}

#[test]
fn a_machine_that_panics_stops_its_stream_alone() {
    let mut reactor = reactor(false, &[]);
    ask(&mut reactor, 1, panics());
    assert_eq!(answers(&mut reactor), [r#"1 Fault("a fault of Sluice's own: what a machine must not do")"#]);
    assert_eq!(reactor.faults().len(), 1);
    reactor.receive(ReactorMessage::Open(vec![stream(), StreamId::new("other")]), NOW);
    assert_eq!(answers(&mut reactor), ["load other"], "it is left alone until somebody asks");
    ask(&mut reactor, 2, ActorInput::Timer("a".into()));
    assert_eq!(answers(&mut reactor), ["load wisher"]);
    reactor.receive(ReactorMessage::Unreadable { stream: stream(), why: "no sense".into() }, NOW);
    assert_eq!(answers(&mut reactor), [r#"2 Fault("no sense")"#]);
}

#[test]
fn what_is_open_is_loaded_once() {
    let mut reactor = reactor(false, &[]);
    let other = StreamId::new("other");
    reactor.receive(ReactorMessage::Open(vec![stream(), other.clone()]), NOW);
    reactor.receive(ReactorMessage::Open(vec![stream(), other]), NOW);
    assert_eq!(answers(&mut reactor), ["load other"]);
}

#[test]
fn everybody_who_built_on_a_conflict_is_told() {
    let mut reactor = reactor(false, &[]);
    ask(&mut reactor, 1, ActorInput::Timer("a".into()));
    assert_eq!(answers(&mut reactor), ["commit 1"]);
    ask(&mut reactor, 2, ActorInput::Timer("b".into()));
    let conflict = sluice_store::Conflict { stream: stream(), expected: 1, found: 5 };
    reactor.receive(ReactorMessage::Committed(vec![Err(conflict)]), NOW);
    assert_eq!(answers(&mut reactor), ["1 Conflict", "2 Conflict", "load wisher"]);
}

fn nothing() -> ActorInput {
    ActorInput::Remark(crate::actor::Remark::Deleted)
}

#[test]
fn an_answer_that_changes_nothing_waits_for_what_it_is_based_on() {
    let mut reactor = reactor(false, &[]);
    ask(&mut reactor, 1, nothing());
    assert_eq!(answers(&mut reactor), ["1 done 1..1"], "everything is stored");
    ask(&mut reactor, 2, ActorInput::Timer("a".into()));
    ask(&mut reactor, 3, nothing());
    assert_eq!(answers(&mut reactor), ["commit 1"]);
    ask(&mut reactor, 4, nothing());
    assert_eq!(answers(&mut reactor), Vec::<String>::new());
    ask(&mut reactor, 5, ActorInput::Timer("b".into()));
    ask(&mut reactor, 6, nothing());
    reactor.receive(ReactorMessage::Committed(vec![Ok(2)]), NOW);
    assert_eq!(answers(&mut reactor), ["2 done 1..2", "3 done 2..2", "4 done 2..2", "commit 1"]);
    reactor.receive(ReactorMessage::Committed(vec![Ok(3)]), NOW);
    assert_eq!(answers(&mut reactor), ["5 done 2..3", "6 done 3..3"]);
}

#[test]
fn an_answer_that_changes_nothing_can_be_taken_back_and_what_it_is_based_on_cannot() {
    let mut reactor = reactor(false, &[]);
    ask(&mut reactor, 1, ActorInput::Timer("a".into()));
    ask(&mut reactor, 2, nothing());
    assert_eq!(answers(&mut reactor), ["commit 1"]);
    ask(&mut reactor, 3, nothing());
    assert_eq!([1, 2, 3, 4].map(|token| reactor.can_withdraw(ReactorToken(token))), [false, true, true, false]);
    reactor.withdraw(ReactorToken(2));
    reactor.receive(ReactorMessage::Committed(vec![Ok(2)]), NOW);
    assert_eq!(answers(&mut reactor), ["1 done 1..2", "3 done 2..2"]);
}

#[test]
fn what_was_read_too_early_is_read_again() {
    let mut reactor = reactor(false, &[]);
    ask(&mut reactor, 1, ActorInput::Timer("a".into()));
    assert_eq!(answers(&mut reactor), ["commit 1"]);
    ask(&mut reactor, 2, panics());
    ask(&mut reactor, 3, ActorInput::Timer("b".into()));
    reactor.receive(ReactorMessage::Loaded { stream: stream(), found: None }, NOW);
    let told = answers(&mut reactor);
    assert_eq!(told[1..], ["load wisher"], "{told:?}");
    commit(&mut reactor, 1);
    assert_eq!(answers(&mut reactor), ["1 done 1..2", "load wisher"]);
}

/// Who held something before the reactor began, until when it is its own.
fn held(lease: Lease) -> Reactor {
    let actor = Wisher { open: vec!["far".into()], ordered: false };
    let effects = vec![OpenEffect { effect: effect("far"), lease: Some(lease) }];
    let found = LoadedStream { actor: Box::new(actor), version: 1, effects, timers: Vec::new() };
    let mut reactor = Reactor::new(1);
    let offer = WorkerOffer {
        id: WorkerId("w".into()),
        role: "any".into(),
        group: "g".into(),
        knows_scratch: true,
        capacity: 1,
        lease: Some(9_000),
    };
    reactor.receive(ReactorMessage::Joined(offer), NOW);
    reactor.receive(ReactorMessage::Loaded { stream: stream(), found: Some(found) }, NOW);
    reactor
}

#[test]
fn who_slept_gives_every_lease_a_whole_term() {
    let lease = || Lease { holder: "7#9000#w".into(), until: 9_000 };
    let is_lost = |reactor: &mut Reactor, now: i64| {
        reactor.wake(Moment(now));
        let lost = |action: &ReactorAction| matches!(action, ReactorAction::Withdrawn { is_lost: true, .. });
        reactor.act(Moment(now)).iter().any(lost)
    };
    let mut reactor = held(lease());
    reactor.slept(60_000, Moment(60_000));
    assert!(!is_lost(&mut reactor, 60_000) && !is_lost(&mut reactor, 68_999));
    assert!(is_lost(&mut reactor, 69_000), "and no more than that");
    // A moment is not worth a term.
    let mut reactor = held(lease());
    reactor.slept(2_000, Moment(8_000));
    assert!(is_lost(&mut reactor, 9_000));
}

/// Stopped for longer than a lease at any moment of it, an engine that turns when it has planned to knows that it was.
#[test]
fn a_stop_of_a_lease_is_not_taken_for_a_wait() {
    for stopped_at in [0, 1, 2_999, 3_000, 5_000] {
        let mut reactor = held(Lease { holder: "7#9000#w".into(), until: 9_000 });
        let longest = Duration::from_secs(10);
        // It turns as planned until it is stopped.
        let (mut turned, mut planned) = (0, reactor.next_look(NOW, longest).unwrap().0);
        while planned <= stopped_at {
            turned = planned;
            planned = reactor.next_look(Moment(turned), longest).unwrap().0;
        }
        let now = stopped_at + 9_500;
        reactor.slept(now - planned.max(turned), Moment(now));
        reactor.wake(Moment(now));
        let lost = |action: &ReactorAction| matches!(action, ReactorAction::Withdrawn { .. });
        assert!(!reactor.act(Moment(now)).iter().any(lost), "stopped at {stopped_at}");
    }
}

#[test]
fn a_lease_that_another_clock_wrote_lasts_no_longer_than_a_lease() {
    const DAY: i64 = 86_400_000;
    for until in [DAY, -DAY] {
        let reactor = held(Lease { holder: "7#9000#w".into(), until });
        assert_eq!(reactor.next_alarm(), Some(Moment(9_000)));
    }
}
