//! Which way leads a task on, which leads it back to its worker, and which transition a lifecycle lacks for that.
//!
//! Nothing is recorded here.

use super::choices::asking;
use super::input::{Evidence, TaskAsker};
use super::moves::{self, edges};
use super::{TaskState, decide};
use crate::lifecycle::{DONE, Lifecycle, LifecycleTransition, STUCK, StateId, TransitionHook, WORKER_AGAIN};
use crate::machine::{ASKED, Moment, Refusal, RefusalCode};

/// What a person's approval does to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Its branch is merged, and the task ends.
    Merge,
    /// It moves to this state.
    Move(StateId),
}

/// What a person's approval does here: the merge where one leads to the end, else the only transition that brings the
/// task nearer to it. The refusal says why there is not exactly one.
pub fn approval(
    lifecycle: &Lifecycle,
    state: &TaskState,
    evidence: &Evidence,
    now: Moment,
) -> Result<Approval, Refusal> {
    let (from, by) = (state.status, TaskAsker::Person);
    if lifecycle.state(from).terminal {
        decide(lifecycle, state, &asking(lifecycle, by, from, evidence), now)?;
    }
    let ways = || edges(lifecycle).map(|(_, edge)| edge).filter(|edge| edge.from == from);
    if let Some(done) = lifecycle.find(DONE)
        && ways().any(|edge| edge.to == done)
    {
        return Ok(Approval::Merge);
    }
    let mut nearer: Vec<StateId> = ways().map(|edge| edge.to).filter(|to| leads_nearer(lifecycle, from, *to)).collect();
    nearer.dedup();
    let is_open = |to: &StateId| decide(lifecycle, state, &asking(lifecycle, by, *to, evidence), now).is_ok();
    let open: Vec<StateId> = nearer.iter().copied().filter(is_open).collect();
    match (nearer.as_slice(), open.as_slice()) {
        ([only], _) | (_, [only]) => Ok(Approval::Move(*only)),
        ([], _) => Err(no_way_on(lifecycle, from)),
        (several, _) => {
            let name = |to: &StateId| format!("`sluice task update {ASKED} --status {}`", lifecycle.state_name(*to));
            let commands: Vec<String> = several.iter().map(name).collect();
            let message = format!(
                "Approve not allowed: {} transitions lead on from `{}`, and none of them is the only open one",
                several.len(),
                lifecycle.state_name(from)
            );
            Err(Refusal::new(RefusalCode::NoTransition, message).hint(format!("choose: {}", commands.join(", "))))
        }
    }
}

/// Whether the end of the work is fewer moves away from one state than from another. A task that is stuck is not nearer to it,
/// wherever a person can lead it from there.
pub(super) fn leads_nearer(lifecycle: &Lifecycle, from: StateId, to: StateId) -> bool {
    if lifecycle.find(STUCK) == Some(to) {
        return false;
    }
    let distances = distances(lifecycle);
    let distance = |state: StateId| distances.get(state.0 as usize).copied().flatten();
    match (distance(to), distance(from)) {
        (Some(there), Some(here)) => there < here,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// The transition by which a person sends a task back: the first that tells its worker, else the first that starts one, which
/// reads what stands in TASK.md.
pub(super) fn way_back(lifecycle: &Lifecycle, status: StateId) -> Option<&LifecycleTransition> {
    let tells = |edge: &LifecycleTransition| {
        let hooks = &edge.hooks;
        hooks.iter().any(|hook| matches!(hook, TransitionHook::NotifyWorker { .. })) && !edge.gives_verdict()
    };
    let has_begun = lifecycle.initial.first() != Some(&status);
    let starts = |edge: &LifecycleTransition| {
        let is_open = edge.gate.is_none() && !lifecycle.state(edge.to).terminal;
        has_begun && is_open && lifecycle.starts_worker(edge)
    };
    let ways = || lifecycle.transitions.iter().filter(|edge| edge.from == status);
    ways().find(|edge| tells(edge)).or_else(|| ways().find(|edge| starts(edge)))
}

/// For each state the fewest moves to the end of the work: `done`, or where a lifecycle has none every end but `cancelled`.
fn distances(lifecycle: &Lifecycle) -> Vec<Option<u32>> {
    let is_end = |name: &str, terminal: bool| match lifecycle.find(DONE) {
        Some(_) => name == DONE,
        None => terminal && name != moves::CANCELLED,
    };
    let states = &lifecycle.states;
    let mut found: Vec<Option<u32>> =
        states.iter().map(|state| is_end(state.name.as_str(), state.terminal).then_some(0)).collect();
    let mut ring: Vec<StateId> =
        (0u32..).map(StateId).zip(&found).filter(|(_, at)| at.is_some()).map(|(id, _)| id).collect();
    let mut next = 0;
    while let Some(at) = ring.get(next).copied() {
        let beyond = found[at.0 as usize].map(|steps| steps + 1);
        for edge in lifecycle.transitions.iter().filter(|edge| edge.to == at) {
            let place = &mut found[edge.from.0 as usize];
            if place.is_none() {
                *place = beyond;
                ring.push(edge.from);
            }
        }
        next += 1;
    }
    found
}

fn no_way_on(lifecycle: &Lifecycle, from: StateId) -> Refusal {
    let name = lifecycle.state_name(from);
    let message = format!("Approve not allowed: no transition leads from `{name}` nearer to the end");
    let end = lifecycle.states.iter().find(|state| state.terminal && state.name.as_str() != moves::CANCELLED);
    let end = lifecycle.find(DONE).map(|done| lifecycle.state(done)).or(end);
    let refusal = Refusal::new(RefusalCode::NoTransition, message);
    match end {
        Some(end) => {
            let line = line(name, end.name.as_str(), "{ action: release_workspace }");
            refusal.hint(lacking(lifecycle, &line))
        }
        None => refusal.hint(format!("`sluice task cancel {ASKED}` is the only way to its end")),
    }
}

/// The transition by which a person could send a task back to its worker, ready to be pasted; `None` where a task has not
/// begun, or where no state has a worker.
pub(super) fn lacking_way_back(lifecycle: &Lifecycle, from: StateId) -> Option<String> {
    if lifecycle.initial.first() == Some(&from) {
        return None;
    }
    let works = |edge: &&LifecycleTransition| edge.to != from && lifecycle.starts_worker(edge);
    let started = lifecycle.transitions.iter().find(works)?;
    let tells_again = lifecycle.prompts.keys().any(|name| name.as_str() == WORKER_AGAIN);
    let prompt = started.hooks.iter().find_map(TransitionHook::spawn).map(|spawn| spawn.prompt.as_str());
    let hook = match prompt.filter(|_| !tells_again) {
        Some(prompt) => format!("{{ action: spawn_agent, prompt: {prompt}, harness: task, permissions: full }}"),
        None => "{ action: notify_worker }".to_owned(),
    };
    let line = line(lifecycle.state_name(from), lifecycle.state_name(started.to), &hook);
    Some(lacking(lifecycle, &line))
}

fn line(from: &str, to: &str, hook: &str) -> String {
    format!("- {{ from: {from}, to: {to}, by: person, hooks: [{hook}] }}")
}

/// A task keeps the lifecycle that it was created with.
fn lacking(lifecycle: &Lifecycle, line: &str) -> String {
    format!("for later tasks, add this line to `transitions` of `{}`: {line}", lifecycle.name)
}
