//! Workers that outlive the engine: what they hold is theirs over a restart, and an answer that comes too late is refused.

use std::sync::mpsc::Receiver;

use sluice_core::machine::RefusalCode;
use sluice_core::run::{AttemptReport, StepOutcome};
use sluice_engine::actor::EffectOutcome;
use sluice_engine::host::Host;
use sluice_engine::reactor::{ReactorAnswer, ReactorMessage};
use sluice_engine::workers::{Dispatch, WorkerId, WorkerOffer};
use sluice_store::{Store, StreamId};

use crate::fixture::{create_run, is_done, say, start};

fn crab() -> WorkerId {
    WorkerId("crab".into())
}

fn join(host: &Host) {
    let offer = WorkerOffer {
        id: crab(),
        role: "any".into(),
        group: "coffee".into(),
        knows_scratch: true,
        capacity: 1,
        lease: Some(60_000),
    };
    host.handle().send(ReactorMessage::Joined(offer));
}

fn begin(host: &Host, dispatch: u64) -> ReactorAnswer {
    let (stream, effect, name) = (StreamId::new("run-1"), "0.1.whole".to_owned(), "mine".to_owned());
    host.ask(|token| ReactorMessage::Begun { token: Some(token), stream, effect, dispatch: Dispatch(dispatch), name })
        .recv()
        .unwrap()
}

fn report(host: &Host, dispatch: u64) -> ReactorAnswer {
    let outcome = EffectOutcome::Run(AttemptReport::Completed(StepOutcome::default()));
    let (stream, effect) = (StreamId::new("run-1"), "0.1.whole".to_owned());
    host.ask(|token| ReactorMessage::Ended {
        token: Some(token),
        stream,
        effect,
        dispatch: Dispatch(dispatch),
        outcome,
    })
    .recv()
    .unwrap()
}

/// The number behind the last word of what was told, which begins like this.
fn told(handed: &Receiver<String>, begins: &str) -> u64 {
    let text = handed.recv().unwrap();
    text.strip_prefix(begins).unwrap_or_else(|| panic!("{text}, and not {begins}…")).parse().unwrap()
}

#[test]
fn what_a_worker_holds_is_its_own_over_a_restart_and_counts_once() {
    let store = Store::open("memory:").unwrap();
    let (host, handed) = start(&store, false).unwrap();
    join(&host);
    assert!(is_done(&create_run(&host, "run-1").recv().unwrap()));
    let dispatch = told(&handed, "run-1 0.1.whole to crab as ");
    host.stop().unwrap();

    let (host, handed) = start(&store, false).unwrap();
    assert_eq!(told(&handed, "run-1 0.1.whole, nothing, held as "), dispatch);
    assert!(matches!(begin(&host, dispatch + 1), ReactorAnswer::Refused(_)));
    assert!(is_done(&begin(&host, dispatch)));
    host.stop().unwrap();

    let (host, handed) = start(&store, false).unwrap();
    assert_eq!(told(&handed, "run-1 0.1.whole, mine, held as "), dispatch);
    join(&host);
    // It has its hands full: another run goes to the engine's own worker.
    assert!(is_done(&create_run(&host, "run-2").recv().unwrap()));
    assert_eq!(handed.recv().unwrap(), "run-2 0.1.whole");
    assert!(matches!(report(&host, dispatch + 1), ReactorAnswer::Refused(_)));
    assert!(is_done(&report(&host, dispatch)));
    assert_eq!(told(&handed, "withdrawn from crab: "), dispatch);
    match report(&host, dispatch) {
        ReactorAnswer::Refused(refusal) => {
            assert_eq!(refusal.code, RefusalCode::LeaseLost);
            let page = include_str!("../../../../docs/refusals/lease_lost.md");
            assert!(page.contains(&refusal.message) && page.contains(&refusal.hint.unwrap()));
        }
        other => panic!("{other:?}"),
    }
    host.stop().unwrap();
}

#[test]
fn a_worker_is_told_when_its_work_is_not_wanted_any_more() {
    let store = Store::open("memory:").unwrap();
    let (host, handed) = start(&store, false).unwrap();
    join(&host);
    assert!(is_done(&create_run(&host, "run-1").recv().unwrap()));
    let dispatch = told(&handed, "run-1 0.1.whole to crab as ");
    assert!(is_done(&say(&host, "run-1", crate::cancel_run())));
    let mut both = [handed.recv().unwrap(), handed.recv().unwrap()];
    both.sort();
    assert_eq!(both, ["run-1 stop.0.1.whole".to_owned(), format!("withdrawn from crab: {dispatch}")]);
    host.stop().unwrap();
}

#[test]
fn what_a_worker_leaves_is_given_to_another() {
    let store = Store::open("memory:").unwrap();
    let (host, handed) = start(&store, false).unwrap();
    join(&host);
    assert!(is_done(&create_run(&host, "run-1").recv().unwrap()));
    let dispatch = told(&handed, "run-1 0.1.whole to crab as ");
    host.handle().send(ReactorMessage::Left(crab()));
    let mut both = [handed.recv().unwrap(), handed.recv().unwrap()];
    both.sort();
    assert_eq!(both, [format!("lost by crab: {dispatch}"), "run-1 0.2.whole".to_owned()]);
    host.stop().unwrap();
}
