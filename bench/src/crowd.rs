//! Whether anything gets slower because much has ended: a store with 100,000 ended runs beside one with 100.

use std::time::Duration;

use sluice_core::run::{AttemptReport, RunKind, StepOutcome};
use sluice_engine::actor::{Actor, ActorChange, ActorInput, EffectOutcome};
use sluice_engine::host::EngineClock;
use sluice_engine::run_actor::RunActor;
use sluice_store::{Append, Digest, Query, Reader, Store, StreamId};

use crate::chain::one_run;
use crate::definitions::steps;
use crate::engine::{Engine, GROUP, Recipe, WallClock, given};
use crate::place::Place;
use crate::table::Table;
use crate::turns::{each, take_turns};

const FEW: usize = 100;
const MANY: usize = 100_000;
/// How many ended runs are stored in one commit while a store is filled.
const BATCH: usize = 1_000;
/// How often a question is asked in a round.
const ASKED: usize = 200;
/// How many entries a page has.
const PAGE: usize = 50;

/// A question that is asked of a store.
type Question<'a> = &'a dyn Fn(&mut dyn Reader, usize);

/// The same questions and the same steps on both stores.
pub fn measure(table: &Table, place: &Place) {
    for kind in place.kinds(table, |kind| format!("crowd: 100,000 ended runs, {}", kind.name())) {
        let what = |it: &str| format!("crowd: {it}, {}, 100,000 ended / 100 ended", kind.name());
        let (few, many) = (place.store(kind), place.store(kind));
        fill(&few, FEW);
        fill(&many, MANY);
        place.tidy(kind);
        let recipe = Recipe::new(steps(100));
        let (mut beside_few, mut beside_many) = (Engine::start(&few), Engine::start(&many));
        // Some runs that go on, for whoever asks for open ones.
        for engine in [&mut beside_few, &mut beside_many] {
            engine.run(&recipe, PAGE, PAGE);
            (0..20).for_each(|_| _ = one_run(engine, &recipe));
        }
        let turn = take_turns(9, &mut || one_run(&mut beside_few, &recipe), &mut || one_run(&mut beside_many, &recipe));
        table.turn(&what("a step"), turn, "1");
        let readers = (few.reader().unwrap(), many.reader().unwrap());
        questions(table, &what, readers);
        beside_few.stop();
        beside_many.stop();
    }
}

fn questions(table: &Table, what: &dyn Fn(&str) -> String, readers: (Box<dyn Reader>, Box<dyn Reader>)) {
    let (mut few, mut many) = readers;
    let query = |query: Query| {
        move |reader: &mut dyn Reader, _: usize| {
            assert_eq!(reader.list(&query).unwrap().items.len(), PAGE);
        }
    };
    let page = || Query { limit: PAGE, ..Query::default() };
    let kind = Some(RunActor::KIND.to_owned());
    let newest = query(page());
    let status = query(Query { kind: kind.clone(), status: Some("completed".into()), ..page() });
    let group = query(Query { group: Some(RunActor::belongs(GROUP, RunKind::Run)), ..page() });
    let open = query(Query { open: Some(true), ..page() });
    let load = |reader: &mut dyn Reader, at: usize| assert!(reader.load(&ended(at * 7 % FEW)).unwrap().is_some());
    let open_streams =
        |reader: &mut dyn Reader, _: usize| assert_eq!(reader.open_streams(None, PAGE).unwrap().len(), PAGE);
    let all: [(&str, Question<'_>); 6] = [
        ("load", &load),
        ("list the newest", &newest),
        ("list by status", &status),
        ("list by group", &group),
        ("list what is open", &open),
        ("open streams", &open_streams),
    ];
    for (name, question) in all {
        let ask =
            |reader: &mut dyn Reader| -> Duration { each(ASKED, || (0..ASKED).for_each(|at| question(reader, at))) };
        ask(&mut *few);
        ask(&mut *many);
        let turn = take_turns(9, &mut || ask(&mut *few), &mut || ask(&mut *many));
        table.turn(&what(name), turn, "1");
    }
}

fn ended(at: usize) -> StreamId {
    StreamId::new(format!("ended-{at:08}"))
}

/// Stores so many runs of one step that have ended, as an engine would have.
fn fill(store: &Store, count: usize) {
    let recipe = Recipe::new(steps(1));
    let mut writer = store.writer().unwrap();
    writer.own("bench", Duration::from_secs(600)).unwrap();
    let mut at = 0;
    while at < count {
        let until = (at + BATCH).min(count);
        let batch: Vec<Append> = (at..until).flat_map(|at| whole_life(&recipe, at)).collect();
        assert!(writer.append(&batch).unwrap().iter().all(Result::is_ok));
        at = until;
    }
    writer.release().unwrap();
}

/// A run from its beginning to its end: two appends.
fn whole_life(recipe: &Recipe, at: usize) -> [Append; 2] {
    let (stream, now) = (ended(at), WallClock.now());
    let (mut actor, begun) =
        RunActor::create(recipe.plan.clone(), recipe.digest.to_string(), GROUP.into(), given(stream.as_str()), now);
    let effect = begun.effects[0].id.clone();
    let outcome = EffectOutcome::Run(AttemptReport::Completed(StepOutcome::default()));
    let over = actor.take(ActorInput::Outcome { effect, outcome }, now).unwrap().unwrap();
    assert!(actor.is_over());
    let first = begun.events.len() as u64;
    let blobs: Vec<(Digest, Vec<u8>)> = vec![(recipe.digest, recipe.file.clone().into_bytes())];
    [append(&stream, 0, begun, blobs), append(&stream, first, over, Vec::new())]
}

fn append(stream: &StreamId, expected: u64, change: ActorChange, blobs: Vec<(Digest, Vec<u8>)>) -> Append {
    let mut append = Append::new(stream.clone(), expected, change.events, change.header);
    append.rows = change.rows;
    append.effects = change.effects;
    append.settled = change.settled;
    append.timers = change.timers;
    append.blobs = blobs;
    append
}
