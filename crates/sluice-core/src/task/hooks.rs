//! Doing what turns have to do: one job at a time, the next when the outcome of the one before has come back.

use super::apply::edge as edge_at;
use super::effect::{Instruction, Occasion, TaskAction};
use super::event::{Settlement, TaskEvent};
use super::input::TaskAsker;
use super::keys::TaskKey;
use super::lent;
use super::pending::TaskPending;
use super::runs;
use super::session::{SessionChange, TaskSession, TaskSessionPlace};
use super::spawn::{self, SpawnPlan};
use super::state::{EdgeId, TaskAttention, TaskJob, TaskWorkspace};
use crate::artifact::Verdict;
use crate::expr::ValuePath;
use crate::lifecycle::{FieldValue, PlainHook, TransitionHook};
use crate::machine::environment;
use crate::name::FieldName;
use crate::text::{ShellCommand, Template};

/// Does what can be done until an outcome has to be waited for.
pub(super) fn run(ledger: &mut TaskPending<'_>) {
    while let Some(turn) = ledger.state.turns.front() {
        let number = turn.number;
        match (turn.waiting, turn.jobs.front().copied()) {
            (Some(_), _) => return,
            (None, Some(_)) if ledger.state.waits_for_worktree() => {
                if !lent::has_room(ledger) {
                    return;
                }
            }
            (None, None) => ledger.record(TaskEvent::TurnSettled { turn: number }),
            (None, Some(job)) => perform(ledger, job),
        }
    }
}

/// Begins a turn that starts the agent in `place` again, or the run of a state that has only that.
pub(super) fn respawn(ledger: &mut TaskPending<'_>, place: TaskSessionPlace, by: TaskAsker) {
    let turn = ledger.next_turn();
    ledger.record(TaskEvent::Respawning { turn, place, by });
    run(ledger);
}

/// Does a job: either it is settled here, or an outcome is waited for.
fn perform(ledger: &mut TaskPending<'_>, job: TaskJob) {
    let lifecycle = ledger.lifecycle;
    let (edge, hook) = match job {
        TaskJob::Acquire => return acquire(ledger),
        TaskJob::Start(_) => return spawn_planned(ledger, job),
        TaskJob::StartRun(state) => return runs::start(ledger, state),
        TaskJob::CancelRun => return runs::cancel(ledger),
        TaskJob::Tell => return tell_answer(ledger),
        TaskJob::Hook { edge, hook } => (edge, edge_at(lifecycle, edge).and_then(|edge| edge.hooks.get(hook as usize))),
    };
    let Some(hook) = hook else { return ledger.settle(Settlement::Idle) };
    match hook {
        TransitionHook::AcquireWorkspace => acquire(ledger),
        TransitionHook::ReleaseWorkspace => release(ledger),
        TransitionHook::SpawnAgent(_) | TransitionHook::SpawnReviewer(_) => spawn_planned(ledger, job),
        TransitionHook::KillSession => end(ledger, &TaskSessionPlace::ALL, TaskAction::KillSession),
        TransitionHook::KillReviewer => end(ledger, &[TaskSessionPlace::Beside], TaskAction::KillReviewer),
        TransitionHook::NotifyWorker { message, start } => tell_worker(ledger, edge, message.as_ref(), *start),
        TransitionHook::Increment(field) => {
            increment(ledger, field);
            ledger.settle(Settlement::Done);
        }
        TransitionHook::SetField { field, value } => {
            ledger.record(TaskEvent::FieldSet { field: field.clone(), value: value.clone() });
            ledger.settle(Settlement::Done);
        }
        TransitionHook::RunCommand(command) => run_command(ledger, command),
        TransitionHook::Plain(PlainHook { action, texts }) => {
            let effect = action.effect(|key| texts.get(key).map(|text| fill(ledger, text)).unwrap_or_default());
            ledger.ask(TaskAction::Plain(*action), Instruction::Plain(effect));
        }
    }
}

fn spawn_planned(ledger: &mut TaskPending<'_>, job: TaskJob) {
    match SpawnPlan::of(ledger.lifecycle, job) {
        Some(plan) => spawn::prepare(ledger, &plan),
        None => ledger.settle(Settlement::Idle),
    }
}

fn acquire(ledger: &mut TaskPending<'_>) {
    let reserved = match &ledger.state.workspace {
        TaskWorkspace::Bound(_) => return ledger.settle(Settlement::Idle),
        TaskWorkspace::Reserved(name) => Some(name.clone()),
        TaskWorkspace::Unbound if ledger.state.lent.is_some() => {
            return ledger.settle(Settlement::Skipped("the task has moved on".into()));
        }
        TaskWorkspace::Unbound => None,
    };
    ledger.ask(TaskAction::AcquireWorkspace, Instruction::AcquireWorkspace { reserved });
}

fn release(ledger: &mut TaskPending<'_>) {
    // The next task would share the worktree with an agent or a run that nobody could end.
    let haunted = TaskSessionPlace::ALL.map(|place| matches!(ledger.state.session(place), TaskSession::Ending(_)));
    match ledger.state.workspace.clone() {
        TaskWorkspace::Unbound => ledger.settle(Settlement::Idle),
        TaskWorkspace::Bound(_) if haunted.contains(&true) => {
            ledger.settle(Settlement::Skipped("a session in it could not be ended".into()));
        }
        TaskWorkspace::Bound(_) if ledger.state.has_open_run() => {
            ledger.settle(Settlement::Skipped("a run in it could not be cancelled".into()));
        }
        TaskWorkspace::Reserved(workspace) | TaskWorkspace::Bound(workspace) => {
            ledger.ask(TaskAction::ReleaseWorkspace, Instruction::ReleaseWorkspace { workspace });
        }
    }
}

/// Ends what is in `places`. A dead session is cleared away too: its window may still be there.
fn end(ledger: &mut TaskPending<'_>, places: &[TaskSessionPlace], action: TaskAction) {
    let sessions: Vec<_> =
        places.iter().filter_map(|place| ledger.state.session(*place).agent()).map(|agent| agent.id).collect();
    if sessions.is_empty() {
        return ledger.settle(Settlement::Idle);
    }
    for place in places {
        if ledger.state.session(*place) != &TaskSession::Absent {
            ledger.heard(*place, SessionChange::EndAsked, false);
        }
    }
    ledger.ask(action, Instruction::EndSession { sessions, whole: action == TaskAction::KillSession });
}

/// Types to the worker; where none is alive, one is started that reads for itself what happened, if the hook wants that.
fn tell_worker(ledger: &mut TaskPending<'_>, edge: EdgeId, message: Option<&Template>, start: bool) {
    let gate = edge_at(ledger.lifecycle, edge).and_then(|edge| edge.gate.as_ref());
    let occasion = match gate.and_then(|gate| gate.verdict).map(|test| test.wanted) {
        Some(Verdict::Fail) => Occasion::ReviewFailed,
        Some(Verdict::Pass) => Occasion::ReviewPassed,
        None => Occasion::ChangesRequested,
    };
    if let Some(agent) = ledger.state.main.agent().copied().filter(|_| ledger.state.main.is_living()) {
        let text = message.map_or_else(|| occasion.words().to_owned(), |message| fill(ledger, message));
        return ledger.ask(TaskAction::NotifyWorker, Instruction::TypeToWorker { session: agent.id, occasion, text });
    }
    if !start {
        return ledger.settle(Settlement::Idle);
    }
    match spawn::worker_again(ledger.lifecycle) {
        Some(plan) => spawn::prepare(ledger, &plan),
        None => {
            ledger.settle(Settlement::Skipped("no worker is alive".into()));
            ledger.mark(TaskAttention::NoWorker);
        }
    }
}

/// Types to the living agent that a person has answered, the worker first. The next agent reads that for itself.
fn tell_answer(ledger: &mut TaskPending<'_>) {
    let living = |place: &TaskSessionPlace| ledger.state.session(*place).is_living();
    let place = TaskSessionPlace::ALL.into_iter().find(living);
    let agent = place.and_then(|place| ledger.state.session(place).agent());
    let Some(session) = agent.map(|agent| agent.id) else { return ledger.settle(Settlement::Idle) };
    let (occasion, text) = (Occasion::Answered, Occasion::Answered.words().to_owned());
    ledger.ask(TaskAction::NotifyWorker, Instruction::TypeToWorker { session, occasion, text });
}

fn run_command(ledger: &mut TaskPending<'_>, command: &ShellCommand) {
    let Some(workspace) = ledger.state.workspace.bound().cloned() else {
        return ledger.settle(Settlement::Skipped("there is no workspace".into()));
    };
    let values = command.environment.iter().map(|(_, path)| variable(ledger, path)).collect();
    let script = command.script.clone();
    match environment::carried(command, values) {
        Ok(environment) => {
            ledger.ask(TaskAction::RunCommand, Instruction::RunCommand { workspace, script, environment })
        }
        Err(problem) => ledger.settle(Settlement::Failed(problem)),
    }
}

pub(super) fn increment(ledger: &mut TaskPending<'_>, field: &FieldName) {
    let value = ledger.state.number(field.as_str()).saturating_add(1);
    ledger.record(TaskEvent::FieldSet { field: field.clone(), value: FieldValue::Number(value) });
}

/// A text with the task's values. The checker let no other variable pass.
pub(super) fn fill(ledger: &TaskPending<'_>, text: &Template) -> String {
    text.fill(&|path| Some(variable(ledger, path))).unwrap_or_default()
}

fn variable(ledger: &TaskPending<'_>, path: &ValuePath) -> String {
    match TaskKey::variable(path.head()).and_then(|key| key.value(ledger.lifecycle, &ledger.state)) {
        Some(FieldValue::Number(number)) => number.to_string(),
        Some(FieldValue::Text(text)) => text,
        None => String::new(),
    }
}

/// Whether the job under way starts an agent again. What tells the worker has no plan of its own: it starts one only in
/// place of telling.
pub(super) fn starts_again(ledger: &TaskPending<'_>) -> bool {
    let job = ledger.state.turns.front().and_then(|turn| turn.jobs.front());
    job.is_some_and(|job| SpawnPlan::of(ledger.lifecycle, *job).is_none_or(|plan| plan.again))
}

/// Whether a queued job that has not begun will end what is in `place`; with `later`, one of a later turn.
pub(super) fn ends_soon(ledger: &TaskPending<'_>, place: TaskSessionPlace, later: bool) -> bool {
    let turns = ledger.state.turns.iter().enumerate();
    turns.filter(|(index, _)| !later || *index > 0).any(|(index, turn)| {
        // The first job of the first turn is under way: what it does shows in the session itself.
        turn.jobs.iter().skip(usize::from(index == 0)).any(|job| match ledger.action(*job) {
            TaskAction::KillSession => true,
            TaskAction::KillReviewer | TaskAction::SpawnReviewer => place == TaskSessionPlace::Beside,
            TaskAction::SpawnAgent => place == TaskSessionPlace::Main,
            TaskAction::AcquireWorkspace
            | TaskAction::ReleaseWorkspace
            | TaskAction::NotifyWorker
            | TaskAction::Increment
            | TaskAction::RunCommand
            | TaskAction::SetField
            | TaskAction::StartRun
            | TaskAction::CancelRun
            | TaskAction::WriteArtifact
            | TaskAction::Plain(_) => false,
        })
    })
}

/// Whether a queued job, or the one under way, starts an agent in `place`.
pub(super) fn starts_soon(ledger: &TaskPending<'_>, place: TaskSessionPlace) -> bool {
    let wanted = TaskAction::starting(place);
    ledger.state.turns.iter().flat_map(|turn| &turn.jobs).any(|job| ledger.action(*job) == wanted)
}
