//! Whether a step costs more because steps of another group wait for workers that are not there.

use sluice_store::Store;

use crate::chain::one_run;
use crate::definitions::steps;
use crate::engine::{Engine, Recipe};
use crate::place::{Kind, Place};
use crate::table::Table;
use crate::turns::take_turns;

const WAITING: usize = 15_000;
const LENGTH: usize = 100;

/// Steps of a chain on an engine in which nothing else waits, and on one in which 15,000 steps wait: in memory, where
/// nothing hides what the engine does, and on a disk.
pub fn measure(table: &Table, place: &Place) {
    if !place.wants(Kind::Sqlite) {
        return;
    }
    let what = |store: &str| format!("stranded: a step beside 15,000 of another group, {store} / alone");
    let memory = || Store::open("memory:").unwrap();
    beside(table, &what("memory"), [memory(), memory()], "1");
    beside(table, &what("SQLite"), [place.store(Kind::Sqlite), place.store(Kind::Sqlite)], "at most 1.2");
}

fn beside(table: &Table, what: &str, [alone, crowded]: [Store; 2], aim: &str) {
    let (long, short) = (Recipe::new(steps(LENGTH)), Recipe::new(steps(1)));
    let (mut alone, mut crowded) = (Engine::start(&alone), Engine::start(&crowded));
    crowded.strand(&short, WAITING);
    for engine in [&mut alone, &mut crowded] {
        (0..20).for_each(|_| _ = one_run(engine, &long));
    }
    let turn = take_turns(25, &mut || one_run(&mut alone, &long), &mut || one_run(&mut crowded, &long));
    alone.stop();
    crowded.stop();
    table.turn(what, turn, aim);
}
