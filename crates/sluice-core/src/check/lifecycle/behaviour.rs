//! What can happen to a task: workspaces and sessions left behind, loops without an end, hooks without an effect,
//! and how many agents it can start at most.

use std::collections::BTreeSet;

use super::super::graph::{self, Edges};
use super::super::{arrows, count};
use super::exits;
use super::explore::{SituationGraph, SituationMove, explore};
use crate::findings::CheckFindings;
use crate::lifecycle::draft::LifecycleDraft;
use crate::lifecycle::{ExitReaction, Lifecycle, StateId, TransitionHook};
use crate::problem::{Code, Diagnosis};
use crate::span::Span;

/// `reached` says of each state whether transitions lead to it; the others have been reported.
pub(super) fn check(draft: &LifecycleDraft, lifecycle: &Lifecycle, reached: &[bool], findings: &mut CheckFindings) {
    exits::check(draft, lifecycle, findings);
    let endless = respawns_for_ever(draft, lifecycle, findings);
    let Some(picture) = explore(lifecycle) else {
        findings.add(Diagnosis::new(Code::AgentStarts, name_span(draft), "too many situations to count agent starts"));
        return;
    };
    behind_guards(draft, lifecycle, &picture, reached, findings);
    left_behind(draft, lifecycle, &picture, findings);
    idle_hooks(draft, lifecycle, &picture, findings);
    if let Some(state) = endless {
        let why = format!("because of the crash rule for `{}`", lifecycle.state_name(state));
        findings.add(without_bound(draft).note(why));
    } else if picture.exact {
        agent_starts(draft, lifecycle, &picture, findings);
    } else {
        uncounted(draft, lifecycle, &picture, findings);
    }
}

/// The counters go too far to be followed. A loop without any guard needs no counting: it has no end.
fn uncounted(draft: &LifecycleDraft, lifecycle: &Lifecycle, picture: &SituationGraph, findings: &mut CheckFindings) {
    let unguarded =
        |step: &SituationMove| step.transition.is_some_and(|index| lifecycle.transitions[index].guard.is_none());
    match costly_cycle(picture, |step| !step.by_person && unguarded(step)) {
        Some(round) => endless(draft, lifecycle, picture, &round, findings),
        None => findings.add(
            Diagnosis::new(Code::AgentStarts, name_span(draft), "the agents that a task can start are not counted")
                .note("the guards compare with numbers that are too large to be played through"),
        ),
    }
}

fn name_span(draft: &LifecycleDraft) -> Span {
    draft.name.as_ref().map_or(draft.span, |name| name.span)
}

fn without_bound(draft: &LifecycleDraft) -> Diagnosis {
    Diagnosis::new(Code::AgentStarts, name_span(draft), "a task can start agents without bound")
}

fn way(lifecycle: &Lifecycle, states: &[StateId]) -> String {
    let names: Vec<&str> = states.iter().map(|id| lifecycle.state_name(*id)).collect();
    arrows(&names)
}

/// States that transitions lead to, but only through guards that do not hold by the time a task is there.
fn behind_guards(
    draft: &LifecycleDraft,
    lifecycle: &Lifecycle,
    picture: &SituationGraph,
    reached: &[bool],
    findings: &mut CheckFindings,
) {
    let entered: BTreeSet<StateId> = picture.situations.iter().map(|situation| situation.state).collect();
    for ((id, state), reached) in (0u32..).map(StateId).zip(&draft.states).zip(reached) {
        if *reached && !entered.contains(&id) {
            let message = format!("no task can reach the state `{}`", lifecycle.state_name(id));
            findings.add(
                Diagnosis::new(Code::UnreachableState, state.name.span, message)
                    .note("transitions lead to it, but their guards never hold when a task is there")
                    .help("change the guards, or the hooks that set the fields they read"),
            );
        }
    }
}

/// Terminal states that a task can reach with something still its own.
fn left_behind(draft: &LifecycleDraft, lifecycle: &Lifecycle, picture: &SituationGraph, findings: &mut CheckFindings) {
    let mut seen = BTreeSet::new();
    for (from, moves) in picture.moves.iter().enumerate() {
        for step in moves {
            let after = &picture.situations[step.to];
            let Some(index) = step.transition.filter(|_| lifecycle.state(after.state).terminal) else { continue };
            let kept = [
                (after.workspace, Code::WorkspaceKept, "its workspace still bound", "release_workspace"),
                (after.worker || after.reviewer, Code::SessionKept, "its session still alive", "kill_session"),
            ];
            for (is_kept, code, what, hook) in kept {
                if is_kept && seen.insert((index, code)) {
                    let message = format!("a task can reach `{}` with {what}", lifecycle.state_name(after.state));
                    let mut states = picture.way_to(from);
                    states.push(after.state);
                    findings.add(
                        Diagnosis::new(code, draft.transitions[index].to_span(), message)
                            .note(format!("for example by {}", way(lifecycle, &states)))
                            .help(format!("add the hook `{hook}` to this transition")),
                    );
                }
            }
        }
    }
}

/// Hooks that declare something that is always so already.
fn idle_hooks(draft: &LifecycleDraft, lifecycle: &Lifecycle, picture: &SituationGraph, findings: &mut CheckFindings) {
    for (index, transition) in lifecycle.transitions.iter().enumerate().filter(|(index, _)| picture.taken[*index]) {
        for (hook, (busy, written)) in
            transition.hooks.iter().zip(picture.busy[index].iter().zip(&draft.transitions[index].hooks))
        {
            let reason = match hook {
                TransitionHook::AcquireWorkspace => "a workspace is always bound by then",
                TransitionHook::ReleaseWorkspace => "no workspace is ever bound by then",
                TransitionHook::KillSession => "no session is ever alive by then",
                TransitionHook::KillReviewer => "no reviewer is ever alive by then",
                _ => continue,
            };
            if !busy {
                let message = format!("`{}` never has an effect here: {reason}", hook.action());
                findings.add(Diagnosis::new(Code::IdleHook, written.span, message));
            }
        }
    }
}

/// A crash rule that starts the agent again, however often it crashes. Gives the state of the first one.
fn respawns_for_ever(draft: &LifecycleDraft, lifecycle: &Lifecycle, findings: &mut CheckFindings) -> Option<StateId> {
    let mut first = None;
    for (rule, written) in lifecycle.exits.rules.iter().zip(&draft.rules) {
        let ExitReaction::Crash { stuck_after: None, respawn: true } = rule.reaction else { continue };
        let message = format!("a crashing agent is started in `{}` for ever", lifecycle.state_name(rule.state));
        findings.add(
            Diagnosis::new(Code::EndlessLoop, written.status.span, message)
                .help("add `stuck_after`, so that crashes have a bound"),
        );
        first = first.or(Some(rule.state));
    }
    first
}

/// Agents can go round `round` for ever.
fn endless(
    draft: &LifecycleDraft,
    lifecycle: &Lifecycle,
    picture: &SituationGraph,
    round: &[(usize, SituationMove)],
    findings: &mut CheckFindings,
) {
    let way = cycle_names(lifecycle, picture, round);
    let at = round
        .iter()
        .find_map(|(_, step)| step.transition.filter(|_| step.starts > 0))
        .map_or(name_span(draft), |index| draft.transitions[index].to_span());
    findings.add(
        Diagnosis::new(Code::EndlessLoop, at, "agents can go round this loop for ever")
            .note(format!("{way}, with {} each time round", count(starts(round), "agent start")))
            .help("bound it with a guard on a counter: `when: \"review_round < 2\"`, and a way on for the rest"),
    );
    findings.add(without_bound(draft).note(format!("because of {way}")));
}

/// The greatest number of agent starts, and the loops that make it unbounded.
fn agent_starts(draft: &LifecycleDraft, lifecycle: &Lifecycle, picture: &SituationGraph, findings: &mut CheckFindings) {
    let span = name_span(draft);
    if let Some(round) = costly_cycle(picture, |step| !step.by_person) {
        return endless(draft, lifecycle, picture, &round, findings);
    }
    let alone = longest(picture, |step| !step.by_person);
    let between = picture.beginnings.iter().map(|(id, first)| first + alone[*id]);
    let after_person =
        picture.moves.iter().flatten().filter(|step| step.by_person).map(|step| step.starts + alone[step.to]);
    let most = between.chain(after_person).max().unwrap_or(0);
    match costly_cycle(picture, |_| true) {
        None => {
            let all = longest(picture, |_| true);
            let total = picture.beginnings.iter().map(|(id, first)| first + all[*id]).max().unwrap_or(0);
            if total > 0 {
                let message = format!("a task starts at most {}", count(total, "agent"));
                findings.add(Diagnosis::new(Code::AgentStarts, span, message).note("not counting respawns by hand"));
            }
        }
        Some(round) => {
            let way = cycle_names(lifecycle, picture, &round);
            findings.add(
                Diagnosis::new(Code::PeopleLoop, span, format!("people can send a task round and round: {way}"))
                    .note("each time round needs a person, so it ends when they want it to"),
            );
            let message = format!("a task starts at most {} between two decisions of a person", count(most, "agent"));
            findings.add(
                Diagnosis::new(Code::AgentStarts, span, message).note(format!("unbounded in all, because of {way}")),
            );
        }
    }
}

fn starts(round: &[(usize, SituationMove)]) -> u64 {
    round.iter().map(|(_, step)| step.starts).sum()
}

fn cycle_names(lifecycle: &Lifecycle, picture: &SituationGraph, round: &[(usize, SituationMove)]) -> String {
    let mut states: Vec<StateId> = round.iter().map(|(from, _)| picture.situations[*from].state).collect();
    states.extend(round.last().map(|(_, step)| picture.situations[step.to].state));
    way(lifecycle, &states)
}

fn edges(picture: &SituationGraph, allowed: impl Fn(&SituationMove) -> bool) -> Edges {
    picture.moves.iter().map(|moves| moves.iter().filter(|step| allowed(step)).map(|step| step.to).collect()).collect()
}

/// A shortest cycle of allowed moves on which an agent is started, beginning with that start.
fn costly_cycle(
    picture: &SituationGraph,
    allowed: impl Fn(&SituationMove) -> bool,
) -> Option<Vec<(usize, SituationMove)>> {
    /// Each candidate costs a search; the shortest of the first few is short enough to be understood.
    const CANDIDATES: usize = 50;
    let edges = edges(picture, &allowed);
    let component = graph::components(&edges);
    let costly = picture.moves.iter().enumerate().flat_map(|(from, moves)| moves.iter().map(move |step| (from, step)));
    let candidates =
        costly.filter(|(from, step)| step.starts > 0 && allowed(step) && component[*from] == component[step.to]);
    let back = |(from, step): (usize, &SituationMove)| {
        let inside = component[from];
        graph::shortest(&edges, step.to, from, |node| component[node] == inside).map(|way| (from, *step, way))
    };
    let (from, first, way) = candidates.take(CANDIDATES).filter_map(back).min_by_key(|(_, _, way)| way.len())?;
    let mut round = vec![(from, first)];
    for pair in way.windows(2) {
        let step = picture.moves[pair[0]]
            .iter()
            .filter(|step| step.to == pair[1] && allowed(step))
            .max_by_key(|step| step.starts)?;
        round.push((pair[0], *step));
    }
    Some(round)
}

/// For each situation the most agents that allowed moves from it on can start. No cycle of such moves starts any.
fn longest(picture: &SituationGraph, allowed: impl Fn(&SituationMove) -> bool) -> Vec<u64> {
    let component = graph::components(&edges(picture, &allowed));
    let mut order: Vec<usize> = (0..component.len()).collect();
    order.sort_by_key(|situation| component[*situation]);
    let mut best = vec![0u64; component.iter().max().map_or(0, |last| last + 1)];
    for situation in order {
        for step in picture.moves[situation].iter().filter(|step| allowed(step)) {
            let through = step.starts.saturating_add(best[component[step.to]]);
            best[component[situation]] = best[component[situation]].max(through);
        }
    }
    component.into_iter().map(|component| best[component]).collect()
}
