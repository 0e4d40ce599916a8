//! What led to a task or a run: the recipes before it, so that none starts itself without end.

use sluice_api::problem::Problem;

use crate::home::Home;
use crate::read::runs::RunSnapshot;

/// The recipes that led to what a run does.
pub(crate) fn chain(seen: &RunSnapshot) -> Vec<String> {
    let mut chain = seen.state.given.origin.cause.clone();
    chain.push(seen.plan.recipe.name.to_string());
    chain
}

/// The recipes that led to a task.
pub(crate) fn chain_to(home: &Home, task: &str) -> Result<Vec<String>, Problem> {
    let maker = maker(task).map(|run| home.tasks.load_run(run)).transpose()?.flatten();
    Ok(maker.map(|run| chain(&run)).unwrap_or_default())
}

/// The run whose step a task is: its id says so.
pub(crate) fn maker(task: &str) -> Option<&str> {
    let mut parts = task.rsplitn(4, '-');
    let (part, attempt, step) = (parts.next()?, parts.next()?, parts.next()?);
    let numbers = [attempt, step].iter().all(|text| text.parse::<u32>().is_ok());
    parts.next().filter(|_| part == "whole" && numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_a_step_says_whose_it_is() {
        assert_eq!(maker("k3f9abcdef-2-1-whole"), Some("k3f9abcdef"));
        assert_eq!(maker("k3f9abcdef-r7-2-1-whole"), Some("k3f9abcdef-r7"));
        assert_eq!(maker("k3f9abcdef"), None);
    }
}
