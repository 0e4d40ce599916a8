//! The runs that states start: where their ends lead, and runs that are never started.

use std::collections::BTreeSet;

use super::super::texts;
use super::LifecycleNames;
use crate::findings::CheckFindings;
use crate::lifecycle::draft::{self, LifecycleDraft};
use crate::lifecycle::{Lifecycle, StateId, StateRun};
use crate::problem::{Code, Diagnosis};
use crate::span::SpannedValue;

pub(super) fn resolve(
    state: &draft::StateDraft,
    run: &draft::StateRunDraft,
    names: &LifecycleNames<'_>,
    findings: &mut CheckFindings,
) -> StateRun {
    let name = &state.name.value;
    let mut target = |target: &Option<SpannedValue<String>>, how: &str| {
        let what = format!("a run of state `{name}` that has {how} leads to");
        target.as_ref().and_then(|target| names.state(target, Code::UnknownRunTarget, &what, findings))
    };
    let (completed, failed) = (target(&run.completed, "completed"), target(&run.failed, "failed"));
    for (input, _) in &run.inputs {
        findings.identifier(input, "an input");
    }
    let inputs = run.inputs.iter().map(|(name, text)| (name.value.clone(), texts::prompt(text, findings))).collect();
    StateRun { recipe: run.recipe.value.clone(), inputs, completed, failed }
}

/// Ends that no transition takes up, and states that are never entered with a run to start.
pub(super) fn check(draft: &LifecycleDraft, lifecycle: &Lifecycle, findings: &mut CheckFindings) {
    let moves: BTreeSet<(StateId, StateId)> = lifecycle.transitions.iter().map(|edge| (edge.from, edge.to)).collect();
    let entered: BTreeSet<StateId> = lifecycle.transitions.iter().map(|edge| edge.to).collect();
    for ((id, state), written) in (0u32..).map(StateId).zip(&lifecycle.states).zip(&draft.states) {
        let (Some(run), Some(written)) = (&state.run, &written.run) else { continue };
        let name = state.name.as_str();
        if state.terminal {
            findings.add(
                Diagnosis::new(Code::RunNeverStarts, written.span, format!("`{name}` is terminal, and starts a run"))
                    .note("a task ends there, and nothing would hear of the end of its run")
                    .help(format!("remove `run`, or start it in a state before `{name}`")),
            );
            continue;
        }
        if lifecycle.initial.first() == Some(&id) && !entered.contains(&id) {
            findings.add(
                Diagnosis::new(Code::RunNeverStarts, written.span, format!("the run of `{name}` is never started"))
                    .note("a task is created and waits there; a run is started when a task enters its state")
                    .help(format!("start it in the state that follows `{name}`")),
            );
        }
        for (to, written) in [(run.completed, &written.completed), (run.failed, &written.failed)] {
            let (Some(to), Some(written)) = (to, written) else { continue };
            if moves.contains(&(id, to)) {
                continue;
            }
            let to = lifecycle.state_name(to);
            findings.add(
                Diagnosis::new(Code::NoRunMove, written.span, format!("no transition leads from `{name}` to `{to}`"))
                    .note("the end of a run moves the task along a transition, with its guard, gate and hooks")
                    .help(format!("add a transition from `{name}` to `{to}`, or name another state")),
            );
        }
    }
}
