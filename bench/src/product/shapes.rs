//! What one step costs in a chain and in a fan, by HTTP, beside a bare start, `make`, `ninja` and the durable peers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::langgraph::Deed;
use super::repository::write_recipes;
use super::restate::Restate;
use super::served::{ServedHome, Wished};
use super::{PATIENCE, Stage, median};
use crate::floor::{BareSqlite, Floor};
use crate::machine::run;
use crate::steps::{Shape, StepRunner, bare, bare_beside_each_other, command, written};

/// Goes through so many steps, and says how long that took.
type Steps<'a> = Box<dyn Fn(usize) -> Duration + 'a>;

/// A chain and a fan. All take turns.
pub fn measure(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let restate = stage.peers.restate.as_ref().map(|program| Restate::start(program, stage.disk()));
    let place = ShapePlace::new(stage, folder.path(), restate);
    let (chain, fan) = stage.scale.steps;
    place.compare(Shape::Chain, chain);
    place.compare(Shape::Fan, fan);
}

/// Where the steps are gone through: a served home that is started in a folder outside of git, with the recipes in it.
struct ShapePlace<'a> {
    stage: &'a Stage,
    folder: &'a Path,
    served: ServedHome,
    restate: Option<Restate>,
}

impl<'a> ShapePlace<'a> {
    fn new(stage: &'a Stage, folder: &'a Path, restate: Option<Restate>) -> ShapePlace<'a> {
        let wished = Wished { start_in: Some(folder), ..Wished::default() };
        ShapePlace { stage, folder, served: ServedHome::start(&stage.program, stage.disk(), &wished), restate }
    }

    /// The rows of a shape. What a step costs is what all of them take more than one does: a start is not part of it.
    fn compare(&self, shape: Shape, count: usize) {
        let word = if shape == Shape::Chain { "chain" } else { "fan" };
        let all = self.contenders(shape, word);
        let mut floor = BareSqlite::new(tempfile::tempdir_in(self.stage.disk()).unwrap().path()).settled();
        let mut took: Vec<Vec<Duration>> = vec![Vec::new(); all.len()];
        let mut commits = Vec::new();
        for _ in 0..self.stage.scale.rounds {
            commits.push(floor.round());
            for ((_, steps), took) in all.iter().zip(&mut took) {
                let (one, many) = (steps(1), steps(count));
                took.push(many.saturating_sub(one) / u32::try_from(count - 1).unwrap());
            }
        }
        let table = &self.stage.table;
        let (ours, bare, commit) = (median(&took[0]), median(&took[1]), median(&commits));
        for ((name, _), took) in all.iter().zip(&took).skip(1) {
            table.times(&format!("a step of a {word} of {count} / {name}"), ours, median(took), "");
        }
        // Steps of a fan share commits, so that none can be taken off there.
        if shape == Shape::Chain {
            let over = ours.saturating_sub(bare).saturating_sub(commit);
            table.times("  less a bare start and a commit / a commit", over, commit, "at most 0.5 ms");
        }
    }

    /// Ours first, then the bare start, then those that are there.
    fn contenders(&'a self, shape: Shape, word: &'static str) -> Vec<(&'static str, Steps<'a>)> {
        let at_once = if shape == Shape::Chain { 1 } else { self.stage.at_once() };
        let mut all: Vec<(&'static str, Steps<'_>)> = vec![
            ("sluice", Box::new(move |count| self.sluice(shape, count))),
            (
                "a bare start",
                Box::new(move |count| {
                    let began = Instant::now();
                    match shape {
                        Shape::Chain => (0..count).try_for_each(|_| bare(self.folder)).unwrap(),
                        Shape::Fan => bare_beside_each_other(self.folder, count, at_once).unwrap(),
                    }
                    began.elapsed()
                }),
            ),
        ];
        for builder in &self.stage.peers.builders {
            let runner = if *builder == "make" { StepRunner::Make } else { StepRunner::Ninja };
            all.push((
                builder,
                Box::new(move |count| {
                    let file = self.file(runner, shape, count);
                    let began = Instant::now();
                    run(command(builder, &file, at_once).current_dir(self.folder)).unwrap();
                    began.elapsed()
                }),
            ));
        }
        if let Some(langgraph) = &self.stage.peers.langgraph {
            let measured = move |count| langgraph.measure(self.stage.disk(), word, Deed::Spawn, count, at_once).took;
            all.push(("LangGraph", Box::new(measured)));
        }
        if let Some(restate) = &self.restate {
            all.push(("Restate", Box::new(move |count| restate.steps(word, count, at_once))));
        }
        all
    }

    /// From the post to the event that says that the run has completed.
    fn sluice(&self, shape: Shape, count: usize) -> Duration {
        let name = format!("{shape:?}-{count}").to_lowercase();
        let text = written(StepRunner::Sluice, shape, count, self.stage.at_once())
            .replace("name: bench", &format!("name: {name}"));
        write_recipes(self.folder, &[(&name, text)]);
        let (completed, mut line) = (self.served.completed(), self.served.line());
        let began = Instant::now();
        line.ask("POST", "/workflows", &format!("{{\"grimoire\": \"{name}\"}}")).unwrap();
        completed.wait(1, PATIENCE);
        began.elapsed()
    }

    fn file(&self, runner: StepRunner, shape: Shape, count: usize) -> PathBuf {
        let file = self.folder.join(format!("{runner:?}-{shape:?}-{count}"));
        std::fs::write(&file, written(runner, shape, count, self.stage.at_once())).unwrap();
        file
    }
}
