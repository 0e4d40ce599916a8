//! One run that goes wide: one step, a thousand that need it, and one that needs them all.

use crate::definitions::fan;
use crate::engine::{Engine, Recipe};
use crate::floor::ROUND;
use crate::place::{Kind, Place};
use crate::table::Table;
use crate::turns::{each, take_turns};

const WIDTH: usize = 1_000;

/// The whole run, beside a hundred bare commits.
pub fn measure(table: &Table, place: &Place) {
    if !place.wants(Kind::Sqlite) {
        return;
    }
    let recipe = Recipe::new(fan(WIDTH));
    let mut floor = place.floor(Kind::Sqlite);
    let mut engine = Engine::start(&place.store(Kind::Sqlite));
    engine.run(&recipe, 1, WIDTH + 2);
    let turn = take_turns(7, &mut || floor.round() * u32::try_from(ROUND).unwrap(), &mut || {
        each(1, || {
            engine.run(&recipe, 1, WIDTH + 2);
            engine.settle(&recipe);
        })
    });
    engine.stop();
    table.turn("fan-out: 1 to 1,000 and join, SQLite / 100 bare commits", turn, "under 100 ms");
}
