//! Lists that come as texts: what a fan-out goes over may have been typed on a command line or printed by a script, as
//! JSON. Only such a text is read, and one that is no list stays what it is.

use serde_json::Value;
use sluice_core::recipe::{Data, FanOutItems, Recipe, Step, StepWork};
use sluice_core::run::{Perform, RunJob, StepOutcome};

use crate::value::data;

/// The value of an input: a list, if a fan-out goes over it and it can be read as one.
pub fn input(recipe: &Recipe, name: &str, value: Data) -> Data {
    read(value, || is_gone_over(recipe, |head, tail| head == "input" && tail == [name]))
}

/// What a script gave: a list, if a fan-out goes over it and it can be read as one.
pub fn output(recipe: &Recipe, step: &Step, value: Data) -> Data {
    let stored = step.output.as_ref().map(ToString::to_string);
    read(value, || {
        is_gone_over(recipe, |head, tail| match tail {
            [] => stored.as_deref() == Some(head),
            [field] => field == "output" && head == step.name.as_str(),
            _ => false,
        })
    })
}

/// A list in place of its text. Whether it is wanted is asked last: most texts begin like none.
fn read(value: Data, is_wanted: impl FnOnce() -> bool) -> Data {
    let Data::Text(text) = &value else { return value };
    if !text.trim_start().starts_with('[') || !is_wanted() {
        return value;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(list @ Value::Array(_)) => data(&list),
        Ok(_) | Err(_) => value,
    }
}

fn is_gone_over(recipe: &Recipe, is_it: impl Fn(&str, &[String]) -> bool) -> bool {
    recipe.steps.iter().any(|step| {
        let StepWork::ParallelAgents { items: FanOutItems::Variable(template), .. } = &step.work else { return false };
        template.as_variable().is_some_and(|path| is_it(path.head(), path.tail()))
    })
}

/// What a script gave, with the list in the place of its text that a fan-out goes over.
pub fn listed(recipe: &Recipe, wanted: &Perform, outcome: StepOutcome) -> StepOutcome {
    match wanted.job {
        RunJob::Script(_) | RunJob::Gate(_) => {
            StepOutcome { output: output(recipe, recipe.step(wanted.step), outcome.output), ..outcome }
        }
        RunJob::Agent { .. } | RunJob::Arbiter { .. } | RunJob::Task { .. } => outcome,
    }
}
