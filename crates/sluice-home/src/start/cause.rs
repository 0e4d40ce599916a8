//! What led to a task or a run: the recipes before it, so that none starts itself without end.

use sluice_api::problem::Problem;

use sluice_core::id::TaskId;

use crate::home::Home;
use crate::read::runs::{RunSnapshot, maker};

pub(crate) fn chain(seen: &RunSnapshot) -> Vec<String> {
    let mut chain = seen.state.given.origin.cause.clone();
    chain.push(seen.plan.recipe.name.to_string());
    chain
}

/// The recipes that led to a task.
pub(crate) fn chain_to(home: &Home, task: &TaskId) -> Result<Vec<String>, Problem> {
    let maker = maker(task).map(|run| home.tasks.load_run(&run)).transpose()?.flatten();
    Ok(maker.map(|run| chain(&run)).unwrap_or_default())
}
