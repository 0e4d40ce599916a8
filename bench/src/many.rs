//! Many runs at once: what they decide is gathered, so a commit holds many steps.

use crate::definitions::steps;
use crate::engine::{Engine, Recipe};
use crate::place::{Kind, Place};
use crate::table::Table;
use crate::turns::{each, take_turns};

const RUNS: usize = 1_000;
const STEPS: usize = 5;

/// Durable steps in a second, beside bare commits in a second.
pub fn measure(table: &Table, place: &Place) {
    let recipe = Recipe::new(steps(STEPS));
    let what = |kind: Kind| format!("many: steps of 1,000 runs of 5, {} / bare commits", kind.name());
    for kind in place.kinds(table, what) {
        let mut floor = place.floor(kind);
        let mut engine = Engine::start(&place.store(kind));
        engine.run(&recipe, RUNS, RUNS * STEPS);
        let turn = take_turns(7, &mut || floor.round(), &mut || {
            each(RUNS * STEPS, || {
                engine.run(&recipe, RUNS, RUNS * STEPS);
                engine.settle(&recipe);
            })
        });
        engine.stop();
        table.rate(&what(kind), turn, if kind == Kind::Sqlite { "25,000/s" } else { "" });
    }
}
