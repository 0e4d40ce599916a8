//! What follows when an agent's process ends by itself: the exit rules, crashes, and escalation to `stuck`.

use super::apply::edge as edge_at;
use super::event::TaskEvent;
use super::hooks::{self, ends_soon};
use super::input::{Evidence, TaskAsker};
use super::moves::{self, edges, holds};
use super::pending::TaskPending;
use super::session::{SessionChange, SessionExit, SessionNumber, TaskSessionPlace};
use super::state::{RefusedVerdict, TaskAttention};
use crate::lifecycle::{ArtifactTest, ExitReaction, ExitRule, LifecycleTransition, STUCK, StateId};

/// How often an agent is started again in one stay because what was around it went away.
const MOST_UPROOTED: u32 = 3;

struct TaskSessionEnd {
    place: TaskSessionPlace,
    session: SessionNumber,
    exit: SessionExit,
}

impl TaskSessionEnd {
    /// Whether it came to its own end. What stands in the file of one that was killed may be anybody's.
    fn is_its_own(&self) -> bool {
        match self.exit {
            SessionExit::Code(_) => true,
            SessionExit::Signal(_) | SessionExit::Lost | SessionExit::Uprooted => false,
        }
    }
}

/// A session exited. With `watching`, the exit rules are asked, if it is the one the status watches.
pub(super) fn exited(
    ledger: &mut TaskPending<'_>,
    session: SessionNumber,
    exit: SessionExit,
    evidence: &Evidence,
    watching: bool,
) {
    let Some(place) = ledger.place_of(session) else { return };
    // A hook that was going to end it is on its way: whoever moved the task came first.
    let was_ending = ends_soon(ledger, place, false);
    let died = ledger.heard(place, SessionChange::Exited(exit), false);
    if !died || !watching || was_ending {
        return;
    }
    if ledger.state.visit.watch == place {
        react(ledger, &TaskSessionEnd { place, session, exit }, evidence);
    } else if place == TaskSessionPlace::Main && ledger.state.marked().is_none() {
        ledger.mark(TaskAttention::WorkerGone);
    }
}

fn react(ledger: &mut TaskPending<'_>, ended: &TaskSessionEnd, evidence: &Evidence) {
    let Some(rule) = matching(ledger, evidence) else { return };
    let verdict = match &rule.artifact {
        ArtifactTest::Present(gate) => gate.verdict.map(|test| test.wanted),
        ArtifactTest::Any | ArtifactTest::Missing => None,
    };
    if verdict.is_some() && !ended.is_its_own() {
        return failed_to_advance(ledger, ended, evidence);
    }
    if let (Some(found), Some(RefusedVerdict { verdict: asked, .. })) = (verdict, ledger.state.visit.asked)
        && !ledger.state.visit.takes(found)
    {
        ledger.mark(TaskAttention::Disputed { found, asked });
        return failed_to_advance(ledger, ended, evidence);
    }
    match &rule.reaction {
        ExitReaction::Advance(to) => advance(ledger, *to, ended, evidence),
        ExitReaction::Choose(clauses) => match clauses.iter().find(|(guard, _)| holds(ledger, guard)) {
            Some((_, to)) => advance(ledger, *to, ended, evidence),
            None => failed_to_advance(ledger, ended, evidence),
        },
        ExitReaction::Crash { stuck_after, respawn } => crash(ledger, *stuck_after, *respawn, ended, evidence),
        ExitReaction::MarkDead => {}
    }
}

/// The first rule of this status that matches.
fn matching<'a>(ledger: &TaskPending<'a>, evidence: &Evidence) -> Option<&'a ExitRule> {
    let rules = || ledger.lifecycle.exits.rules.iter().filter(|rule| rule.state == ledger.state.status);
    let present = |rule: &ExitRule| match &rule.artifact {
        ArtifactTest::Present(gate) => {
            let visit = &ledger.state.visit;
            visit.test(gate, &evidence.body, TaskAsker::Engine).is_ok() && visit.is_new(gate, &evidence.body)
        }
        ArtifactTest::Any | ArtifactTest::Missing => false,
    };
    rules().find(|rule| match &rule.artifact {
        ArtifactTest::Any => true,
        ArtifactTest::Present(_) => present(rule),
        ArtifactTest::Missing => !rules().any(present),
    })
}

fn advance(ledger: &mut TaskPending<'_>, to: StateId, ended: &TaskSessionEnd, evidence: &Evidence) {
    let gives_verdict = |edge| edge_at(ledger.lifecycle, edge).is_some_and(LifecycleTransition::gives_verdict);
    match moves::select(ledger, TaskAsker::Engine, to, evidence) {
        Ok(edge) if ended.is_its_own() || !gives_verdict(edge) => {
            ledger.record(TaskEvent::Advanced { session: ended.session, to });
            moves::take(ledger, Some(edge), to, TaskAsker::Engine, evidence);
        }
        Ok(_) | Err(_) => failed_to_advance(ledger, ended, evidence),
    }
}

/// An artifact that does not get the task on is no artifact: it counts as the crash that this status knows. So does the
/// verdict of a reviewer that was killed: such a reviewer has not judged, whichever agent wrote the verdict. So does a
/// verdict other than the one that the reviewer asked for.
fn failed_to_advance(ledger: &mut TaskPending<'_>, ended: &TaskSessionEnd, evidence: &Evidence) {
    let rules = ledger.lifecycle.exits.rules.iter().filter(|rule| rule.state == ledger.state.status);
    let crashes = |rule: &ExitRule| match rule.reaction {
        ExitReaction::Crash { stuck_after, respawn } => Some((stuck_after, respawn)),
        ExitReaction::Advance(_) | ExitReaction::Choose(_) | ExitReaction::MarkDead => None,
    };
    let (stuck_after, respawn) = rules.into_iter().find_map(crashes).unwrap_or((None, false));
    crash(ledger, stuck_after, respawn, ended, evidence);
}

/// What was around the agent went away. That is nobody's crash: it is started again, and not without end.
fn uprooted(ledger: &mut TaskPending<'_>, ended: &TaskSessionEnd) {
    let has_prompt = ledger.lifecycle.state(ledger.state.status).respawn_prompt.is_some();
    if !has_prompt || ledger.state.visit.uprooted > MOST_UPROOTED {
        return ledger.mark(TaskAttention::Uprooted);
    }
    hooks::respawn(ledger, ended.place, TaskAsker::Engine);
}

fn crash(
    ledger: &mut TaskPending<'_>,
    stuck_after: Option<u32>,
    respawn: bool,
    ended: &TaskSessionEnd,
    evidence: &Evidence,
) {
    if ended.exit == SessionExit::Uprooted {
        return uprooted(ledger, ended);
    }
    let count = ledger.state.crash_count.saturating_add(1);
    ledger.record(TaskEvent::Crashed { session: ended.session, exit: ended.exit, count });
    // Crashes that an unsettled move will take away belong to the state before.
    let here = ledger.state.crashes_here();
    if stuck_after.is_some_and(|limit| here >= limit) {
        return escalate(ledger, here, evidence);
    }
    if !respawn {
        return;
    }
    match ledger.lifecycle.state(ledger.state.status).respawn_prompt {
        Some(_) => hooks::respawn(ledger, ended.place, TaskAsker::Engine),
        None => ledger.mark(TaskAttention::NoPrompt),
    }
}

/// The engine's own move to `stuck`: no guard, no gate; the hooks of an ungated transition, if there is one.
fn escalate(ledger: &mut TaskPending<'_>, crashes: u32, evidence: &Evidence) {
    let from = ledger.state.status;
    match ledger.lifecycle.find(STUCK).filter(|stuck| *stuck != from) {
        Some(stuck) => {
            let ungated = edges(ledger.lifecycle)
                .find(|(_, edge)| edge.from == from && edge.to == stuck && edge.gate.is_none())
                .map(|(id, _)| id);
            moves::take(ledger, ungated, stuck, TaskAsker::Engine, evidence);
        }
        None => ledger.mark(TaskAttention::Crashed(crashes)),
    }
}
