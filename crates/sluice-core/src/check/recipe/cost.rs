//! The greatest number of agents that a run can start.

use super::super::count;
use super::order::RecipeOrder;
use crate::findings::CheckFindings;
use crate::problem::{Code, Diagnosis};
use crate::recipe::draft::RecipeDraft;
use crate::recipe::{FanOutItems, Recipe, StepWork};

/// So many steps whose number of agents is not known are named; the rest is counted.
const MOST_LISTED: usize = 8;

pub(super) fn check(draft: &RecipeDraft, recipe: &Recipe, order: &RecipeOrder, findings: &mut CheckFindings) {
    let rounds = rounds(recipe, order);
    let mut total: u64 = 0;
    let mut open = Vec::new();
    for (step, rounds) in recipe.steps.iter().zip(rounds) {
        let attempts = rounds.saturating_mul(1 + u64::from(step.retry.max));
        let each = match &step.work {
            StepWork::Agent { .. } => 1,
            StepWork::AgentLoop { max_iterations, .. } => 2 * u64::from(*max_iterations),
            StepWork::ParallelAgents { items: FanOutItems::Listed(items), .. } => items.len() as u64,
            StepWork::ParallelAgents { items: FanOutItems::Variable(_), .. } => {
                open.push(format!("{} for each item of `{}`", count(attempts, "agent"), step.name));
                0
            }
            StepWork::Task(_) => {
                open.push(format!("those of the task that `{}` creates", step.name));
                0
            }
            StepWork::Script { .. } | StepWork::Gate { .. } => 0,
        };
        total = total.saturating_add(attempts.saturating_mul(each));
    }
    if total == 0 && open.is_empty() {
        return;
    }
    let more = open.len().saturating_sub(MOST_LISTED);
    open.truncate(MOST_LISTED);
    if more > 0 {
        open.push(format!("those of {}", count(more as u64, "more step")));
    }
    let span = draft.name.as_ref().map_or(draft.span, |name| name.span);
    let message = match open.is_empty() {
        true => format!("a run starts at most {}", count(total, "agent")),
        false => format!("a run starts at most {}, and {}", count(total, "agent"), open.join(", and ")),
    };
    let mut problem = Diagnosis::new(Code::AgentStarts, span, message).note("not counting retries by hand");
    if recipe.repeat.is_some() {
        problem = problem.note("unbounded in all, because it repeats until it is cancelled");
    }
    findings.add(problem);
}

/// How often each step can be reached: once, and once more for every turn of a loop it lies in.
fn rounds(recipe: &Recipe, order: &RecipeOrder) -> Vec<u64> {
    let mut rounds = vec![1u64; recipe.steps.len()];
    for (from, step) in recipe.steps.iter().enumerate() {
        let Some(back) = &step.loop_back else { continue };
        let turns = u64::from(back.max);
        for (index, id) in recipe.ids().enumerate() {
            let after_target = id == back.to || order.is_upstream(back.to, index);
            if index == from {
                // The step that loops runs once a turn; what it loops over also runs before the first.
                rounds[index] = rounds[index].saturating_mul(turns.max(1));
            } else if after_target && order.is_upstream(id, from) {
                rounds[index] = rounds[index].saturating_mul(turns.saturating_add(1));
            }
        }
    }
    rounds
}
