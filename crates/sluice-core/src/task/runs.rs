//! The run that a state starts: asked for when the state is entered, cancelled when it is left, and its end moves the
//! task on.

use super::TaskInputResult;
use super::effect::{Instruction, TaskAction};
use super::event::{Settlement, TaskEvent};
use super::hooks::{self, fill};
use super::input::{Evidence, RunEnd, TaskAsker, TaskEffectOutcome, TaskEffectProduct};
use super::moves;
use super::outcomes::settlement;
use super::pending::TaskPending;
use super::session::TaskSessionPlace;
use super::state::{RunJudgement, TaskAttention, TaskJob, TaskRun, WorkSnapshot};
use crate::id::RunId;
use crate::lifecycle::{Lifecycle, StateId};
use crate::machine::{Refusal, RefusalCode};

/// Whether the run of a state is all that can be started there again.
pub(super) fn only(lifecycle: &Lifecycle, state: StateId) -> bool {
    let state = lifecycle.state(state);
    state.run.is_some() && state.respawn_prompt.is_none()
}

/// Asks for the run of `state`, unless the task has moved on.
pub(super) fn start(ledger: &mut TaskPending<'_>, state: StateId) {
    let visit = ledger.state.visit.turn;
    let is_here = ledger.state.turns.front().is_some_and(|turn| turn.number >= visit);
    let Some(wanted) = ledger.lifecycle.state(state).run.as_ref().filter(|_| is_here) else {
        return ledger.settle(Settlement::Idle);
    };
    // Two runs would work in one worktree.
    if let Some(other) = ledger.state.run.as_ref().filter(|run| run.end.is_none()) {
        let why = format!("run {} could not be cancelled", other.id);
        return ledger.settle(Settlement::Skipped(why));
    }
    // It would judge or change the work elsewhere than where the task goes on with it.
    if ledger.state.lent.is_some() {
        ledger.settle(Settlement::Skipped("there is no workspace".into()));
        if ledger.state.marked().is_none() {
            ledger.mark(TaskAttention::NoWorkspace);
        }
        return;
    }
    let inputs = wanted.inputs.iter().map(|(name, text)| (name.clone(), fill(ledger, text))).collect();
    let workspace = ledger.state.workspace.bound().cloned();
    ledger.ask(TaskAction::StartRun, Instruction::StartRun { recipe: wanted.recipe.clone(), inputs, workspace });
}

/// The run was started, or could not be.
pub(super) fn started(ledger: &mut TaskPending<'_>, outcome: &TaskEffectOutcome) {
    let Some(turn) = ledger.state.turns.front().map(|turn| turn.number) else { return };
    match outcome {
        TaskEffectOutcome::Ok(TaskEffectProduct::Run { id, began }) => {
            let job = ledger.state.turns.front().and_then(|turn| turn.jobs.front());
            let judges = matches!(job, Some(TaskJob::StartRun(state)) if ledger.lifecycle.judges(*state));
            let began = judges.then(|| began.clone().unwrap_or_default());
            ledger.record(TaskEvent::RunStarted { turn, run: id.clone(), began });
            ledger.settle(Settlement::Done);
        }
        TaskEffectOutcome::Ok(
            TaskEffectProduct::Nothing | TaskEffectProduct::Workspace(_) | TaskEffectProduct::PullRequest(_),
        ) => {
            ledger.settle(Settlement::Failed("no run was named".into()));
        }
        TaskEffectOutcome::Failed(_) | TaskEffectOutcome::Skipped(_) => ledger.settle(settlement(outcome)),
    }
}

pub(super) fn cancel(ledger: &mut TaskPending<'_>) {
    match ledger.state.run.as_ref().map(|run| run.id.clone()) {
        Some(run) => ledger.ask(TaskAction::CancelRun, Instruction::CancelRun { run }),
        None => ledger.settle(Settlement::Idle),
    }
}

/// The run of the state that was left is over, or could not be cancelled.
pub(super) fn left(ledger: &mut TaskPending<'_>, outcome: &TaskEffectOutcome) {
    let is_over = match outcome {
        TaskEffectOutcome::Ok(_) | TaskEffectOutcome::Skipped(_) => true,
        TaskEffectOutcome::Failed(_) => false,
    };
    if let Some(run) = ledger.state.run.as_ref().filter(|_| is_over).map(|run| run.id.clone()) {
        ledger.record(TaskEvent::RunLeft { run });
    }
    ledger.settle(settlement(outcome));
}

/// The work that the run of this state has judged. What stood there when it was started, unless its own agents have made the
/// commits that came since: then what it leaves. Where another agent of the task has lived beside it, git does not say whose
/// they are, and what anybody else has committed is not judged. Nothing is, if the work was elsewhere in between.
fn judged(ledger: &TaskPending<'_>, evidence: &Evidence, own: bool) -> WorkSnapshot {
    let state = &ledger.state;
    let began = state.run.as_ref().and_then(|run| run.began.clone()).unwrap_or_default();
    let now = WorkSnapshot::of(&evidence.work);
    let is_alone = state.run.as_ref().is_some_and(|run| !run.accompanied) && !state.has_living_agent();
    match (now.commit == began.commit, own) {
        (true, true) => WorkSnapshot { dirty: began.dirty || now.dirty, ..began },
        // It stands there again, and some step has seen something else.
        (true, false) => WorkSnapshot::default(),
        (false, true) if began.commit.is_some() && is_alone => now,
        (false, _) => began,
    }
}

/// The run of this state, if it judges the work and has not ended: whoever goes on now goes on without its verdict.
pub(super) fn unchecked(ledger: &TaskPending<'_>) -> Option<RunJudgement> {
    let run = ledger.state.run_here();
    if !ledger.lifecycle.judges(ledger.state.status) || run.is_some_and(|run| run.end.is_some()) {
        return None;
    }
    let work = run.and_then(|run| run.began.clone()).unwrap_or_default();
    Some(RunJudgement { run: run.map(|run| run.id.clone()), end: None, work })
}

/// A run has ended. One that is not the present state's, and an end that was heard before, change nothing.
pub(super) fn ended(ledger: &mut TaskPending<'_>, run: &RunId, end: RunEnd, why: &str, own: bool, evidence: &Evidence) {
    let is_mine = ledger.state.run_here().is_some_and(|mine| mine.id == *run && mine.end != Some(end));
    let Some(wanted) = ledger.lifecycle.state(ledger.state.status).run.as_ref().filter(|_| is_mine) else { return };
    let judged = ledger.lifecycle.judges(ledger.state.status).then(|| judged(ledger, evidence, own));
    ledger.record(TaskEvent::RunEnded { run: run.clone(), end, why: why.to_owned(), judged });
    // What a person was told about an earlier end of this run, which was opened again, is no longer so.
    if matches!(ledger.state.marked(), Some(TaskAttention::RunEnded { .. })) {
        ledger.clear_mark();
    }
    let target = match end {
        RunEnd::Completed => wanted.completed,
        RunEnd::Failed => wanted.failed,
        RunEnd::Cancelled => None,
    };
    let stays = |why: &str| TaskAttention::RunEnded { run: run.clone(), end, why: why.to_owned() };
    match target.map(|to| (to, moves::select(ledger, TaskAsker::Engine, to, evidence))) {
        Some((to, Ok(edge))) => moves::take(ledger, Some(edge), to, TaskAsker::Engine, evidence),
        Some((_, Err(refusal))) => ledger.mark(stays(&refusal.message)),
        None => ledger.mark(stays(why)),
    }
}

/// The run of this state had failed and goes on: it is as if it had just been started, and its end will be heard.
pub(super) fn reopened(ledger: &mut TaskPending<'_>, run: &RunId) {
    let failed = |mine: &&TaskRun| mine.id == *run && mine.end.is_some();
    let Some(TaskRun { id: run, turn, began, .. }) = ledger.state.run_here().filter(failed).cloned() else { return };
    ledger.record(TaskEvent::RunStarted { turn, run, began });
    if matches!(ledger.state.marked(), Some(TaskAttention::RunEnded { .. })) {
        ledger.clear_mark();
    }
}

/// Starts the run of this state again, unless it goes on.
pub(super) fn again(ledger: &mut TaskPending<'_>, by: TaskAsker) -> TaskInputResult {
    if ledger.state.has_open_run() || ledger.state.starts_run() {
        let id = ledger.state.run.as_ref().map_or(String::new(), |run| format!(" {}", run.id));
        let message = format!("Respawn not allowed: the run{id} of this state has not ended");
        return Err(Refusal::new(RefusalCode::NotReady, message).hint("wait for its end, or cancel it"));
    }
    if by == TaskAsker::Person {
        ledger.clear_attention();
    }
    hooks::respawn(ledger, TaskSessionPlace::Main, by);
    Ok(())
}
