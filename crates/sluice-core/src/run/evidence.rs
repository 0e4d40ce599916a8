//! What an agent must give because the recipe goes on by it: the values that conditions and fan-outs read.
//!
//! An agent that ends well and leaves them out has not done its step: without them a condition would be false for want
//! of a value, and what should have followed would be left out without a word. A value that only a text shows is not
//! asked for here; the step that shows it fails with its name.

use std::collections::BTreeMap;

use super::event::Outcome;
use super::plan::Plan;
use crate::expr::{Path, Value};
use crate::recipe::{Data, Items, Recipe, StepId, Work};

/// A value that something after an agent's step reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    what: What,
    /// As the recipe writes it.
    path: Path,
    /// Who reads it.
    reader: StepId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    /// The step's `result`.
    Result,
    /// A value inside its output.
    Inside(Vec<String>),
    /// A list inside its output.
    List(Vec<String>),
}

/// For each step, what is asked of it.
pub(super) fn asked(
    recipe: &Recipe,
    by_name: &BTreeMap<String, StepId>,
    stores: &BTreeMap<String, Vec<StepId>>,
) -> Vec<Vec<Asked>> {
    let mut found: Vec<Vec<Asked>> = vec![Vec::new(); recipe.steps.len()];
    let mut ask = |path: &Path, reader: StepId, list: bool| {
        let inside = |rest: &[String]| if list { What::List(rest.to_vec()) } else { What::Inside(rest.to_vec()) };
        let of_step = by_name.get(path.head()).and_then(|id| match path.tail() {
            [field] if field == "result" => Some((*id, What::Result)),
            [field, rest @ ..] if field == "output" => Some((*id, inside(rest))),
            _ => None,
        });
        let stored = stores.get(path.head()).into_iter().flatten().map(|id| (*id, inside(path.tail())));
        for (id, what) in of_step.into_iter().chain(stored) {
            let asked = Asked { what, path: path.clone(), reader };
            let of = &mut found[id.0 as usize];
            if matches!(recipe.step(id).work, Work::Agent { .. }) && id != reader && !of.contains(&asked) {
                of.push(asked);
            }
        }
    };
    for (reader, step) in (0u32..).map(StepId).zip(&recipe.steps) {
        for compare in step.condition.iter().flat_map(|condition| condition.comparisons()) {
            // A truth value that is not there is false: `!plan.output.risky` needs no word about risks.
            if !matches!(compare.value, Value::Bool(_)) {
                ask(&compare.path, reader, false);
            }
        }
        if let Work::ParallelAgents { items: Items::Variable(template), .. } = &step.work {
            template.as_variable().into_iter().for_each(|path| ask(path, reader, true));
        }
    }
    found
}

impl Plan {
    /// What is missing from what an agent gave, in words.
    pub(super) fn missing_from(&self, id: StepId, outcome: &Outcome) -> Option<String> {
        let given = |asked: &&Asked| match &asked.what {
            What::Result => outcome.result.is_some(),
            What::Inside(path) => outcome.output.at(path).is_some(),
            What::List(path) => matches!(outcome.output.at(path), Some(Data::List(_))),
        };
        let asked = self.asked[id.0 as usize].iter().find(|asked| !given(asked))?;
        let reader = &self.recipe.step(asked.reader).name;
        Some(match asked.what {
            What::Result | What::Inside(_) => format!("it did not give `{}`, which `{reader}` depends on", asked.path),
            What::List(_) => format!("it did not give a list as `{}`, which `{reader}` goes over", asked.path),
        })
    }
}
