//! What an agent must give because the recipe goes on by it: the values that conditions and fan-outs read.
//!
//! An agent that ends well and leaves them out has not done its step: without them a condition would be false for want
//! of a value, and what should have followed would be left out without a word. A value that only a text shows is not
//! asked for here; the step that shows it fails with its name.

use std::collections::{BTreeMap, BTreeSet};

use super::event::StepOutcome;
use super::plan::RunPlan;
use crate::expr::{ExprValue, ValuePath};
use crate::recipe::{Data, FanOutItems, Recipe, StepId, StepWork};

/// The fields of a step that are there whatever it says, or only when a command gave them.
const ALWAYS_GIVEN: [&str; 4] = ["status", "summary", "exit_code", "stderr"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwedValue {
    what: OwedValueKind,
    /// As the recipe writes it.
    path: ValuePath,
    /// The step whose condition or `for_each` reads the value.
    reader: StepId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OwedValueKind {
    /// The step's `result`, which conditions compare with words.
    Result,
    /// A value inside its output.
    Inside(Vec<String>),
    /// A list inside its output.
    List(Vec<String>),
}

/// For each step, what it owes.
pub(super) fn owed(
    recipe: &Recipe,
    by_name: &BTreeMap<String, StepId>,
    stores: &BTreeMap<String, Vec<StepId>>,
) -> Vec<Vec<OwedValue>> {
    let mut found: Vec<Vec<OwedValue>> = vec![Vec::new(); recipe.steps.len()];
    let mut known: BTreeSet<(StepId, ValuePath)> = BTreeSet::new();
    let mut ask = |path: &ValuePath, reader: StepId, list: bool| {
        let inside = |rest: &[String]| {
            if list { OwedValueKind::List(rest.to_vec()) } else { OwedValueKind::Inside(rest.to_vec()) }
        };
        // A step's own fields are read before a variable of the same name.
        let givers: Vec<(StepId, OwedValueKind)> = match (by_name.get(path.head()), path.tail()) {
            (Some(id), [field]) if field == "result" => vec![(*id, OwedValueKind::Result)],
            (Some(id), [field, rest @ ..]) if field == "output" => vec![(*id, inside(rest))],
            (Some(_), [field, ..]) if ALWAYS_GIVEN.contains(&field.as_str()) => Vec::new(),
            (_, rest) => stores.get(path.head()).into_iter().flatten().map(|id| (*id, inside(rest))).collect(),
        };
        for (id, what) in givers {
            let is_agent = matches!(recipe.step(id).work, StepWork::Agent { .. });
            if is_agent && id != reader && known.insert((id, path.clone())) {
                found[id.0 as usize].push(OwedValue { what, path: path.clone(), reader });
            }
        }
    };
    for (reader, step) in (0u32..).map(StepId).zip(&recipe.steps) {
        for compare in step.condition.iter().flat_map(|condition| condition.comparisons()) {
            // A truth value that is not there is false: `!plan.output.risky` needs no word about risks.
            if !matches!(compare.value, ExprValue::Bool(_)) {
                ask(&compare.path, reader, false);
            }
        }
        if let StepWork::ParallelAgents { items: FanOutItems::Variable(template), .. } = &step.work {
            template.as_variable().into_iter().for_each(|path| ask(path, reader, true));
        }
    }
    found
}

impl RunPlan {
    pub(super) fn missing_from(&self, id: StepId, outcome: &StepOutcome) -> Option<String> {
        let given = |owed: &&OwedValue| match &owed.what {
            OwedValueKind::Result => {
                outcome.result.as_ref().is_some_and(|word| self.results[id.0 as usize].takes(word))
            }
            OwedValueKind::Inside(path) => outcome.output.at(path).is_some(),
            OwedValueKind::List(path) => matches!(outcome.output.at(path), Some(Data::List(_))),
        };
        let owed = self.owed[id.0 as usize].iter().find(|owed| !given(owed))?;
        let reader = &self.recipe.step(owed.reader).name;
        Some(match (&owed.what, &outcome.result) {
            (OwedValueKind::Result, Some(word)) => format!(
                "its result `{}` is none of those that `{reader}` and others wait for: {}",
                clip(word),
                self.results[id.0 as usize].known()
            ),
            (OwedValueKind::Result | OwedValueKind::Inside(_), _) => {
                format!("it did not give `{}`, which `{reader}` depends on", owed.path)
            }
            (OwedValueKind::List(_), _) => {
                format!("it did not give a list as `{}`, which `{reader}` goes over", owed.path)
            }
        })
    }
}

/// The beginning of a word that an agent made up.
fn clip(word: &str) -> String {
    word.chars().take(80).collect()
}
