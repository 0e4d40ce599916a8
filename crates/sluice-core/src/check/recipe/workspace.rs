//! Where the steps of a recipe work. What works in the checkout of a person is told, and an agent that may do everything
//! works there only if the file says both aloud.

use super::draft::{RecipeDraft, StepDraft, StepWorkDraft};
use crate::findings::CheckFindings;
use crate::problem::{Code, Diagnosis, clip};
use crate::recipe::{Step, StepWorkspace};
use crate::span::Span;

/// Where a step works: as it says, else as the recipe says.
pub(super) fn of_step(draft: &RecipeDraft, step: &StepDraft, findings: &mut CheckFindings) -> StepWorkspace {
    let Some(written) = step.workspace.as_ref().or(draft.workspace.as_ref()) else { return StepWorkspace::default() };
    if written.value == StepWorkspace::Here {
        let name = clip(&step.name.value);
        if step.workspace.is_some() {
            in_checkout(&format!("the step `{name}` works"), written.span, findings);
        }
        if is_agent(step) && step.permissions.is_none() {
            let message = format!("the agent of `{name}` works in the checkout itself, and may do everything there");
            let help = "add `permissions: full` to the step to say so aloud, or `permissions: reduced`";
            findings.add(Diagnosis::new(Code::UnsaidPermissions, step.name.span, message).help(help));
        }
    }
    written.value
}

/// Where the recipe says that its steps work.
pub(super) fn of_recipe(draft: &RecipeDraft, findings: &mut CheckFindings) -> StepWorkspace {
    let Some(written) = &draft.workspace else { return StepWorkspace::default() };
    if written.value == StepWorkspace::Here {
        in_checkout("the steps of this recipe work", written.span, findings);
    }
    written.value
}

/// Where what is no step of a run is done: as the recipe says, but no worktree is made for that alone.
pub(super) fn of_run(said: StepWorkspace, steps: &[Step]) -> StepWorkspace {
    let is_anywhere = |is_there: fn(StepWorkspace) -> bool| steps.iter().any(|step| is_there(step.workspace));
    match said {
        StepWorkspace::Scratch | StepWorkspace::Here => said,
        StepWorkspace::Run | StepWorkspace::Own if is_anywhere(StepWorkspace::is_worktree) => StepWorkspace::Run,
        StepWorkspace::Run | StepWorkspace::Own if is_anywhere(|it| it == StepWorkspace::Scratch) => {
            StepWorkspace::Scratch
        }
        StepWorkspace::Run | StepWorkspace::Own => StepWorkspace::Here,
    }
}

fn in_checkout(who: &str, span: Span, findings: &mut CheckFindings) {
    let message = format!("{who} in the checkout itself");
    let help = "what they change is changed there at once, and Sluice keeps no copy of it";
    findings.add(Diagnosis::new(Code::InCheckout, span, message).help(help));
}

fn is_agent(step: &StepDraft) -> bool {
    match &step.work {
        Some(StepWorkDraft::Agent { .. } | StepWorkDraft::AgentLoop { .. } | StepWorkDraft::ParallelAgents { .. }) => {
            true
        }
        Some(StepWorkDraft::Script { .. } | StepWorkDraft::Gate { .. } | StepWorkDraft::Task { .. }) | None => false,
    }
}
