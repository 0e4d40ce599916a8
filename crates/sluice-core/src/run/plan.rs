//! A recipe made ready to be run: who follows whom, what lies in a loop, what a condition reads.
//!
//! Made once per recipe and shared by all its runs.

use std::collections::BTreeMap;

use super::owed::{self, OwedValue};
use super::results::{self, ResultWords};
use crate::recipe::{Recipe, StepId};

/// A recipe with everything at hand that a decision needs.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The checked recipe that the plan was made from.
    pub recipe: Recipe,
    /// For each step, those that need it.
    pub(super) followers: Vec<Vec<StepId>>,
    /// Every `loop` of the recipe, in the order of the steps.
    pub(super) loops: Vec<PlanLoop>,
    /// For each step, the steps whose results its condition reads.
    pub(super) reads: Vec<Vec<StepId>>,
    pub(super) by_name: BTreeMap<String, StepId>,
    /// The steps that store their output under a name.
    pub(super) stores: BTreeMap<String, Vec<StepId>>,
    /// For each step, what its agent must give.
    pub(super) owed: Vec<Vec<OwedValue>>,
    /// For each step, the words that conditions compare its result with.
    pub(super) results: Vec<ResultWords>,
}

/// A loop of the recipe, from the step that goes back to the one that runs again.
#[derive(Clone, Debug)]
pub(super) struct PlanLoop {
    pub(super) from: StepId,
    pub(super) to: StepId,
    pub(super) max: u32,
    /// What runs again: both ends, and all that lies between.
    pub(super) body: Vec<StepId>,
}

impl RunPlan {
    /// The plan of `recipe`: its followers, loops and readers are looked up once.
    pub fn new(recipe: Recipe) -> Self {
        let ids = || recipe.ids();
        let mut followers = vec![Vec::new(); recipe.steps.len()];
        for id in ids() {
            for need in &recipe.step(id).needs {
                followers[need.0 as usize].push(id);
            }
        }
        let loops = ids()
            .filter_map(|from| {
                let back = recipe.step(from).loop_back.as_ref()?;
                let body = body(&recipe, &followers, back.to, from);
                Some(PlanLoop { from, to: back.to, max: back.max, body })
            })
            .collect();
        let by_name = ids().map(|id| (recipe.step(id).name.to_string(), id)).collect();
        let mut stores: BTreeMap<String, Vec<StepId>> = BTreeMap::new();
        for id in ids() {
            if let Some(output) = &recipe.step(id).output {
                stores.entry(output.to_string()).or_default().push(id);
            }
        }
        let reads = ids().map(|id| reads(&recipe, id, &by_name, &stores)).collect();
        let owed = owed::owed(&recipe, &by_name, &stores);
        let results = results::results(&recipe, &by_name);
        RunPlan { followers, loops, reads, by_name, stores, owed, results, recipe }
    }

    /// The loop that leads back from `step`.
    pub(super) fn loop_from(&self, step: StepId) -> Option<&PlanLoop> {
        self.loops.iter().find(|found| found.from == step)
    }
}

/// What lies on a way from `to` down to `from`, both included, in the order of the file.
fn body(recipe: &Recipe, followers: &[Vec<StepId>], to: StepId, from: StepId) -> Vec<StepId> {
    let reach = |start: StepId, next: &dyn Fn(StepId) -> Vec<StepId>| {
        let mut seen = vec![false; recipe.steps.len()];
        let mut open = vec![start];
        while let Some(step) = open.pop() {
            if !std::mem::replace(&mut seen[step.0 as usize], true) {
                open.extend(next(step));
            }
        }
        seen
    };
    let after = reach(to, &|step| followers[step.0 as usize].clone());
    let before = reach(from, &|step| recipe.step(step).needs.clone());
    let both = (0u32..).zip(after.iter().zip(&before)).filter(|(_, (after, before))| **after && **before);
    both.map(|(id, _)| StepId(id)).collect()
}

/// The steps whose results the condition of `step` reads.
fn reads(
    recipe: &Recipe,
    step: StepId,
    by_name: &BTreeMap<String, StepId>,
    stores: &BTreeMap<String, Vec<StepId>>,
) -> Vec<StepId> {
    let Some(condition) = &recipe.step(step).condition else { return Vec::new() };
    let mut found = Vec::new();
    for compare in condition.comparisons() {
        let head = compare.path.head();
        found.extend(by_name.get(head).filter(|_| !compare.path.tail().is_empty()));
        found.extend(stores.get(head).into_iter().flatten());
    }
    found.sort_unstable();
    found.dedup();
    found
}
