//! What people ask for that is more than a move: begin, start again, change. A merge has a file of its own.

use super::TaskInputResult;
use super::attention::CLARIFICATION;
use super::choices;
use super::event::TaskEvent;
use super::hooks::{self, starts_soon};
use super::input::{Evidence, TaskAsker, TaskUpdate, WorkspaceReservation};
use super::moves::{self, edges};
use super::pending::TaskPending;
use super::runs;
use super::session::TaskSessionPlace;
use super::spawn::SpawnManner;
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
        let starts =
            |edge: &LifecycleTransition| edge.hooks.iter().any(|hook| matches!(hook, TransitionHook::SpawnAgent(_)));
        let ways = || edges(lifecycle).map(|(_, edge)| edge).filter(|edge| edge.from == status && starts(edge));
        let unclear = ledger.state.about.summary.trim().is_empty();
        let clarify = ways().find(|edge| unclear && lifecycle.state_name(edge.to) == CLARIFICATION);
        return match clarify.or_else(|| ways().next()) {
            Some(edge) => moves::go(ledger, by, lifecycle.state_name(edge.to), evidence, room),
            None => nothing(),
        };
    }
    let edge = edges(lifecycle).find(|(_, edge)| edge.to == status && edge.spawns()).map(|(id, _)| id);
    let state = lifecycle.state(status);
    if edge.is_none() && state.enter_prompt.is_none() && state.respawn_prompt.is_none() && state.run.is_none() {
        return nothing();
    }
    if ledger.state.lent.is_some() || moves::make_room(ledger, room) {
        ledger.clear_attention();
        let turn = ledger.next_turn();
        ledger.record(TaskEvent::Began { turn, edge });
        hooks::run(ledger);
    }
    Ok(())
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
    if session.is_living() || starts_soon(ledger, place) {
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
        let hints = [Some(instead(ledger)), choices::way_back(ledger.lifecycle, status)];
        let hint = hints.into_iter().flatten().collect::<Vec<_>>().join("; ");
        return Err(Refusal::new(RefusalCode::NoTransition, message).hint(hint));
    };
    moves::go(ledger, by, to, evidence, &WorkspaceReservation::Unasked)?;
    ledger.feedback = Some(message.to_owned()).filter(|message| !message.trim().is_empty());
    Ok(())
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
