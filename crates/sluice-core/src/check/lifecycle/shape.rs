//! The shape of the state machine alone: can every state be reached, and can an end be reached from it?
//!
//! A transition with an unknown end counts as leading anywhere (or coming from anywhere), so that one misspelt
//! name is one finding and not three.

use std::collections::VecDeque;

use super::super::arrows;
use super::super::graph::{self, Edges};
use super::{LifecycleNames, ResolvedLifecycle, initial_states};
use crate::findings::CheckFindings;
use crate::lifecycle::draft::{self, LifecycleDraft};
use crate::lifecycle::{STUCK, StateId};
use crate::problem::{Code, Diagnosis, few, list};

/// The moves between states, and the shortest way to each from where tasks begin.
pub(super) struct StatePaths<'a> {
    draft: &'a LifecycleDraft,
    edges: Edges,
    /// The state before each on its way; a beginning stands for itself.
    before: Vec<Option<usize>>,
}

impl<'a> StatePaths<'a> {
    pub(super) fn of(draft: &'a LifecycleDraft, resolved: &ResolvedLifecycle, names: &LifecycleNames<'_>) -> Self {
        let edges = edges(draft, resolved, names);
        let mut before = vec![None; edges.len()];
        let mut open: VecDeque<usize> = initial_states(&resolved.states).iter().map(|id| id.0 as usize).collect();
        open.iter().for_each(|start| before[*start] = Some(*start));
        while let Some(state) = open.pop_front() {
            for next in edges[state].iter().copied() {
                if before[next].is_none() {
                    before[next] = Some(state);
                    open.push_back(next);
                }
            }
        }
        StatePaths { draft, edges, before }
    }

    /// `a task gets there by pending → working`, unless it begins there or never gets there.
    pub(super) fn to(&self, state: usize) -> Option<String> {
        let mut way = vec![state];
        while let Some(before) = self.before[way[way.len() - 1]].filter(|before| *before != way[way.len() - 1]) {
            way.push(before);
        }
        let names: Vec<&str> = way.iter().rev().map(|index| self.draft.states[*index].name.value.as_str()).collect();
        (names.len() > 1).then(|| format!("a task gets there by {}", arrows(&names)))
    }
}

/// Gives for each state whether a task can reach it, as far as the transitions alone tell.
pub(super) fn check(
    draft: &LifecycleDraft,
    resolved: &ResolvedLifecycle,
    ways: &StatePaths<'_>,
    findings: &mut CheckFindings,
) -> Vec<bool> {
    let all = || vec![true; draft.states.len()];
    if draft.states.is_empty() {
        return all();
    }
    if !draft.states.iter().any(|state| state.terminal) {
        findings.add(
            Diagnosis::new(Code::NoWayOut, draft.states[0].name.span, "no state is terminal, so no task can ever end")
                .help("mark the last state with `terminal: true`"),
        );
        return all();
    }
    let back = graph::reversed(&ways.edges);
    no_way_out(draft, resolved, ways, &back, findings);
    if resolved.transitions.iter().any(|transition| transition.to.is_none()) {
        return all();
    }
    unreachable(draft, resolved, &ways.edges, &back, findings)
}

/// Transitions whose ends are known, and the engine's own moves to `stuck`.
fn edges(draft: &LifecycleDraft, resolved: &ResolvedLifecycle, names: &LifecycleNames<'_>) -> Edges {
    let mut edges: Edges = vec![Vec::new(); draft.states.len()];
    let index = |id: StateId| id.0 as usize;
    for transition in &resolved.transitions {
        if let (Some(from), Some(to)) = (transition.from, transition.to) {
            edges[index(from)].push(index(to));
        }
    }
    // States whose agents are taken care of: by an earlier rule that always matches, or because nothing runs there.
    let mut closed: Vec<bool> = draft.states.iter().map(|state| state.terminal).collect();
    for rule in &draft.rules {
        let Some(from) = names.states.get(rule.status.value.as_str()).map(|from| index(*from)) else { continue };
        let escalates = matches!(rule.reaction, draft::ReactionDraft::Crash { stuck_after: Some(_), .. });
        if let (true, false, Some(stuck)) = (escalates, closed[from], names.states.get(STUCK)) {
            edges[from].push(index(*stuck));
        }
        closed[from] |= rule.has_artifact.is_none() && rule.no_artifact.is_none();
    }
    edges
}

fn no_way_out(
    draft: &LifecycleDraft,
    resolved: &ResolvedLifecycle,
    ways: &StatePaths<'_>,
    back: &Edges,
    findings: &mut CheckFindings,
) {
    let terminal = draft.states.iter().enumerate().filter(|(_, state)| state.terminal).map(|(index, _)| index);
    if resolved.transitions.iter().any(|transition| transition.from.is_none()) {
        return;
    }
    let unsure = resolved.transitions.iter().filter(|transition| transition.to.is_none()).filter_map(|it| it.from);
    let ends: Vec<usize> = terminal.chain(unsure.map(|id| id.0 as usize)).collect();
    let leads_out = graph::reachable(back, ends);
    for (index, state) in draft.states.iter().enumerate().filter(|(index, _)| !leads_out[*index]) {
        let name = &state.name.value;
        let message = format!("no terminal state can be reached from `{name}`");
        let help = match ways.edges[index].is_empty() {
            true => format!("add a transition from `{name}`, or make it terminal"),
            false => format!("add a transition from `{name}` that leads towards a terminal state"),
        };
        findings.add(Diagnosis::new(Code::NoWayOut, state.name.span, message).maybe_note(ways.to(index)).help(help));
    }
}

fn unreachable(
    draft: &LifecycleDraft,
    resolved: &ResolvedLifecycle,
    edges: &Edges,
    back: &Edges,
    findings: &mut CheckFindings,
) -> Vec<bool> {
    let initial = initial_states(&resolved.states);
    let unsure = resolved.transitions.iter().filter(|transition| transition.from.is_none()).filter_map(|it| it.to);
    let reached = graph::reachable(edges, initial.iter().copied().chain(unsure).map(|id| id.0 as usize));
    let starts: Vec<&str> = initial.iter().map(|id| draft.states[id.0 as usize].name.value.as_str()).collect();
    for (index, state) in draft.states.iter().enumerate().filter(|(index, _)| !reached[*index]) {
        let name = &state.name.value;
        let mut from: Vec<usize> = back[index].iter().copied().filter(|other| *other != index).collect();
        from.dedup();
        let from: Vec<&str> = from.iter().map(|other| draft.states[*other].name.value.as_str()).collect();
        let note = match from.is_empty() {
            true => "no transition leads to it".to_owned(),
            false => format!("transitions lead to it only from {}, which cannot be reached either", few(&from)),
        };
        findings.add(
            Diagnosis::new(Code::UnreachableState, state.name.span, format!("no task can reach the state `{name}`"))
                .note(note)
                .note(format!("a task is created in {}", list(&starts, "or")))
                .help("add a transition to it, or remove it"),
        );
    }
    reached
}
