//! Steps one after the other: each waits for the one before to be durable, so nothing can be gathered.

use std::time::Duration;

use crate::definitions::steps;
use crate::engine::{Engine, Recipe};
use crate::floor::{BareSqlite, Floor, PlainFile};
use crate::place::{Kind, Place};
use crate::table::Table;
use crate::turns::{each, take_turns};

/// How many steps a run has.
const LENGTH: usize = 100;
/// So many runs write more than the write-ahead log holds, so that it is written over from then on.
const UNTIL_SETTLED: usize = 80;

/// The floors themselves: a commit beside a synced write.
pub fn floors(table: &Table, place: &Place) {
    let mut file = PlainFile::new(&place.folder());
    let what = |kind: Kind| format!("floor: a bare {} commit / fdatasync of an append", kind.name());
    for kind in place.kinds(table, what) {
        let mut bare = place.floor(kind);
        table.turn(&what(kind), take_turns(9, &mut || file.round(), &mut || bare.round()), "");
    }
}

/// A step, beside a commit.
pub fn measure(table: &Table, place: &Place) {
    let recipe = Recipe::new(steps(LENGTH));
    let what = |kind: Kind| format!("chain: a step of {LENGTH}, {} / a bare commit", kind.name());
    for kind in place.kinds(table, what) {
        let mut floor = place.floor(kind);
        let mut engine = Engine::start(&place.store(kind));
        (0..UNTIL_SETTLED).for_each(|_| drop(engine.run(&recipe, 1, LENGTH)));
        let turn = take_turns(15, &mut || floor.round(), &mut || one_run(&mut engine, &recipe));
        engine.stop();
        table.turn(&what(kind), turn, "at most 1.5");
    }
    if place.wants(Kind::Sqlite) {
        new_file(table, place, &recipe);
    }
}

/// The first run on a new file: its write-ahead log grows, which costs more than writing over it.
fn new_file(table: &Table, place: &Place, recipe: &Recipe) {
    let turn = take_turns(9, &mut || BareSqlite::new(&place.folder()).round(), &mut || {
        let mut engine = Engine::start(&place.store(Kind::Sqlite));
        let took = one_run(&mut engine, recipe);
        engine.stop();
        took
    });
    let what = "chain: the first 100 steps of a new file, SQLite / the first commits";
    table.turn(what, turn, "at most 1.5");
}

/// How long a step of one run takes.
pub fn one_run(engine: &mut Engine, recipe: &Recipe) -> Duration {
    each(LENGTH, || drop(engine.run(recipe, 1, LENGTH)))
}
