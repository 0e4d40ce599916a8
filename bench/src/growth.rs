//! Whether a step costs more the longer its run has been going on.

use crate::definitions::steps;
use crate::engine::{Engine, Recipe};
use crate::place::{Kind, Place};
use crate::table::Table;
use crate::turns::{each, take_turns};

/// Where the old run stands when it is measured first.
const OLD: usize = 9_760;
/// Where each young run stands when it is measured.
const YOUNG: usize = 10;
/// How many steps are measured in a round.
const STEPS: usize = 20;
const ROUNDS: usize = 11;

/// Steps of a run that has ten thousand behind it, beside steps of runs that have ten. Both have the same definition.
pub fn measure(table: &Table, place: &Place) {
    if !place.wants(Kind::Sqlite) {
        return;
    }
    let recipe = Recipe::new(steps(OLD + (ROUNDS + 1) * STEPS));
    let mut engine = Engine::start(&place.store(Kind::Sqlite));
    let old = engine.run(&recipe, 1, OLD);
    let engine = std::cell::RefCell::new(engine);
    let turn = take_turns(
        ROUNDS,
        &mut || {
            let mut engine = engine.borrow_mut();
            let young = engine.run(&recipe, 1, YOUNG);
            each(STEPS, || engine.go_on(&young, STEPS))
        },
        &mut || each(STEPS, || engine.borrow_mut().go_on(&old, STEPS)),
    );
    engine.into_inner().stop();
    table.turn("history: the 10,000th step of a run / its 10th, SQLite", turn, "1");
}
