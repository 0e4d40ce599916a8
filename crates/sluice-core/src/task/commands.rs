//! What people ask for that is more than a move: begin, start again, change. A merge has a file of its own.

use super::TaskInputResult;
use super::event::TaskEvent;
use super::hooks::{self, starts_soon};
use super::input::{Evidence, TaskAsker, TaskUpdate, WorkspaceReservation};
use super::moves::{self, edges};
use super::pending::TaskPending;
use super::reconcile::CLARIFICATION;
use super::runs;
use super::session::TaskSessionPlace;
use super::spawn::SpawnManner;
use super::ways::{self, way_back};
use crate::lifecycle::{Lifecycle, LifecycleTransition, StateId, TransitionHook};
use crate::machine::{ASKED, Refusal, RefusalCode};

/// Begins: by a transition from the usual first state, or where the task was created.
pub(super) fn spawn(
    ledger: &mut TaskPending<'_>,
    by: TaskAsker,
    evidence: &Evidence,
    room: &WorkspaceReservation,
) -> TaskInputResult {
    let (lifecycle, status) = (ledger.lifecycle, ledger.state.status);
    let nothing = || {
        let message = format!("Nothing to spawn: no agent is started for a task in `{}`", lifecycle.state_name(status));
        Err(Refusal::new(RefusalCode::NoTransition, message))
    };
    if lifecycle.initial.first() == Some(&status) {
        let ways = || first_ways(lifecycle, status);
        let unclear = ledger.state.about.summary.trim().is_empty();
        let clarify = ways().find(|edge| unclear && lifecycle.state_name(edge.to) == CLARIFICATION);
        return match clarify.or_else(|| ways().next()) {
            Some(edge) => moves::go(ledger, by, lifecycle.state_name(edge.to), evidence, room),
            None => nothing(),
        };
    }
    if !begins(lifecycle, status) {
        return nothing();
    }
    let edge = edges(lifecycle).find(|(_, edge)| edge.to == status && edge.spawns()).map(|(id, _)| id);
    if ledger.state.lent.is_some() || moves::make_room(ledger, room) {
        ledger.clear_attention();
        let turn = ledger.next_turn();
        ledger.record(TaskEvent::Began { turn, edge });
        hooks::run(ledger);
    }
    Ok(())
}

/// The transitions by which a task begins that stands in the usual first state.
fn first_ways(lifecycle: &Lifecycle, status: StateId) -> impl Iterator<Item = &LifecycleTransition> {
    let starts =
        |edge: &LifecycleTransition| edge.hooks.iter().any(|hook| matches!(hook, TransitionHook::SpawnAgent(_)));
    lifecycle.transitions.iter().filter(move |edge| edge.from == status && starts(edge))
}

/// Whether a task can begin in this state: something starts an agent or a run there.
pub(super) fn begins(lifecycle: &Lifecycle, status: StateId) -> bool {
    if lifecycle.initial.first() == Some(&status) {
        return first_ways(lifecycle, status).next().is_some();
    }
    let state = lifecycle.state(status);
    lifecycle.transitions.iter().any(|edge| edge.to == status && edge.spawns())
        || state.enter_prompt.is_some()
        || state.respawn_prompt.is_some()
        || state.run.is_some()
}

/// Starts the agent of this state again, if it has a prompt, a workspace and no living session; where a state has only a
/// run, that.
pub(super) fn respawn(ledger: &mut TaskPending<'_>, by: TaskAsker) -> TaskInputResult {
    let status = ledger.state.status;
    let name = ledger.lifecycle.state_name(status);
    let refuse = |code, message: String| Err(Refusal::new(code, message));
    if runs::only(ledger.lifecycle, status) {
        return runs::again(ledger, by);
    }
    if ledger.lifecycle.state(status).respawn_prompt.is_none() {
        let message = format!("Respawn not allowed: state `{name}` has no `respawn_prompt`");
        return refuse(RefusalCode::NotRespawnable, message);
    }
    if ledger.state.workspace.bound().is_none() && ledger.state.lent.is_none() {
        return Err(Refusal::new(RefusalCode::NoWorkspace, "Respawn not allowed: the task has no workspace")
            .hint(format!("`sluice task spawn {ASKED}` gives it one")));
    }
    let place = match ledger.state.visit.watch {
        TaskSessionPlace::Beside => TaskSessionPlace::Beside,
        TaskSessionPlace::Main => SpawnManner::of(ledger.lifecycle, status).place,
    };
    let session = ledger.state.session(place);
    // One that waits for a person may be replaced by that person: it is ended before the next one starts.
    let is_replaced = by == TaskAsker::Person && ledger.state.waits_in(place);
    if (session.is_living() && !is_replaced) || starts_soon(ledger, place) {
        let id =
            session.agent().filter(|_| session.is_living()).map_or(String::new(), |agent| format!(" {}", agent.id));
        let message = format!("Respawn not allowed: the session{id} is alive or about to be");
        return refuse(RefusalCode::SessionAlive, message);
    }
    if by == TaskAsker::Person {
        ledger.clear_attention();
    }
    hooks::respawn(ledger, place, by);
    Ok(())
}

/// Does again what failed since the task came to its state, and writes TASK.md again if that is what failed.
pub(super) fn retry(ledger: &mut TaskPending<'_>, by: TaskAsker) -> TaskInputResult {
    let is_unwritten = ledger.state.is_unwritten();
    if !is_unwritten && ledger.state.redoable(ledger.lifecycle).next().is_none() {
        let refusal = match ledger.state.undone.is_empty() {
            true => {
                Refusal::new(RefusalCode::NotReady, "Retry not allowed: no hook has failed since the task came here")
            }
            false => Refusal::new(
                RefusalCode::NoWorkspace,
                "Retry not allowed: what failed needs a worktree, and the task has none",
            )
            .hint(format!("`sluice answer {ASKED} skip` leaves it undone")),
        };
        return Err(refusal);
    }
    let turn = ledger.next_turn();
    ledger.record(TaskEvent::Retrying { turn, by });
    ledger.clear_mark();
    if is_unwritten {
        ledger.write_again();
    }
    hooks::run(ledger);
    Ok(())
}

/// A person wants changes: along the first transition that tells the worker and gives no verdict, else the first without a
/// gate that starts one.
pub(super) fn request_changes(
    ledger: &mut TaskPending<'_>,
    by: TaskAsker,
    message: &str,
    evidence: &Evidence,
) -> TaskInputResult {
    let status = ledger.state.status;
    let Some(to) = way_back(ledger.lifecycle, status).map(|edge| ledger.lifecycle.state_name(edge.to)) else {
        let name = ledger.lifecycle.state_name(status);
        let message = format!("Changes cannot be requested: no transition from `{name}` notifies or starts the worker");
        let hints = [Some(instead(ledger)), ways::lacking_way_back(ledger.lifecycle, status)];
        let hint = hints.into_iter().flatten().collect::<Vec<_>>().join("; ");
        return Err(Refusal::new(RefusalCode::NoTransition, message).hint(hint));
    };
    ledger.feedback = Some(message.to_owned()).filter(|message| !message.trim().is_empty());
    moves::go(ledger, by, to, evidence, &WorkspaceReservation::Unasked)
}

/// How a person has something changed where no transition tells the worker.
fn instead(ledger: &TaskPending<'_>) -> String {
    let (lifecycle, status) = (ledger.lifecycle, ledger.state.status);
    if ledger.state.has_living_agent() {
        return format!("`sluice task nudge {ASKED} TEXT` tells its agent");
    }
    let leads_on =
        |edge: &LifecycleTransition| edge.from == status && edge.gate.is_none() && !lifecycle.state(edge.to).terminal;
    match edges(lifecycle).find(|(_, edge)| leads_on(edge)) {
        Some((_, edge)) => {
            let to = lifecycle.state_name(edge.to);
            format!("write it into TASK.md, then `sluice task update {ASKED} --status {to}`")
        }
        None => "change it yourself in the workspace: no transition leads from here back to an agent".to_owned(),
    }
}

pub(super) fn update(ledger: &mut TaskPending<'_>, update: &TaskUpdate) {
    let (same, event) = match update {
        TaskUpdate::Summary(text) => (ledger.state.about.summary == *text, TaskEvent::Updated(update.clone())),
        TaskUpdate::Branch(name) => (ledger.state.about.branch == *name, TaskEvent::Updated(update.clone())),
        TaskUpdate::PullRequest(url) => {
            (ledger.state.pull_request.as_ref() == Some(url), TaskEvent::PullRequestOpened(url.clone()))
        }
    };
    if !same {
        ledger.record(event);
    }
}
