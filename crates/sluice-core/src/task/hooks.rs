//! Doing what turns have to do: one job at a time, the next when the outcome of the one before has come back.

use super::apply::edge as edge_at;
use super::effect::{Action, Instruction, Occasion};
use super::event::{Event, Settlement};
use super::ledger::Ledger;
use super::runs;
use super::session::{Change, Place, Session};
use super::spawn::{self, Plan};
use super::state::{Attention, EdgeId, Job, Workspace};
use crate::artifact::Verdict;
use crate::expr::Path;
use crate::lifecycle::{FieldValue, Hook};
use crate::machine::environment;
use crate::name::FieldName;
use crate::text::{Command, Template};

/// Does what can be done until an outcome has to be waited for.
pub(super) fn run(ledger: &mut Ledger<'_>) {
    while let Some(turn) = ledger.state.turns.front() {
        let number = turn.number;
        match (turn.waiting, turn.jobs.front().copied()) {
            (Some(_), _) => return,
            (None, None) => ledger.record(Event::TurnSettled { turn: number }),
            (None, Some(job)) => perform(ledger, job),
        }
    }
}

/// Does a job: either it is settled here, or an outcome is waited for.
fn perform(ledger: &mut Ledger<'_>, job: Job) {
    let lifecycle = ledger.lifecycle;
    let (edge, hook) = match job {
        Job::Acquire => return acquire(ledger),
        Job::Start(_) => return spawn_planned(ledger, job),
        Job::StartRun(state) => return runs::start(ledger, state),
        Job::CancelRun => return runs::cancel(ledger),
        Job::Hook { edge, hook } => (edge, edge_at(lifecycle, edge).and_then(|edge| edge.hooks.get(hook as usize))),
    };
    let Some(hook) = hook else { return ledger.settle(Settlement::Idle) };
    match hook {
        Hook::AcquireWorkspace => acquire(ledger),
        Hook::ReleaseWorkspace => release(ledger),
        Hook::SpawnAgent(_) | Hook::SpawnReviewer(_) => spawn_planned(ledger, job),
        Hook::KillSession => end(ledger, &[Place::Main, Place::Beside], Action::KillSession),
        Hook::KillReviewer => end(ledger, &[Place::Beside], Action::KillReviewer),
        Hook::NotifyWorker { message, start } => tell_worker(ledger, edge, message.as_ref(), *start),
        Hook::Increment(field) => {
            increment(ledger, field);
            ledger.settle(Settlement::Done);
        }
        Hook::SetField { field, value } => {
            ledger.record(Event::FieldSet { field: field.clone(), value: value.clone() });
            ledger.settle(Settlement::Done);
        }
        Hook::SpawnNext => ledger.ask(Action::SpawnNext, Instruction::SpawnNext),
        Hook::PushBranch => ledger.ask(Action::PushBranch, Instruction::PushBranch),
        Hook::CreatePr => ledger.ask(Action::CreatePr, Instruction::CreatePr),
        Hook::DeleteRemoteBranch => ledger.ask(Action::DeleteRemoteBranch, Instruction::DeleteRemoteBranch),
        Hook::Notify { message } => {
            let message = fill(ledger, message);
            ledger.ask(Action::Notify, Instruction::Notify { message });
        }
        Hook::RunCommand(command) => run_command(ledger, command),
    }
}

fn spawn_planned(ledger: &mut Ledger<'_>, job: Job) {
    match Plan::of(ledger.lifecycle, job) {
        Some(plan) => spawn::prepare(ledger, &plan),
        None => ledger.settle(Settlement::Idle),
    }
}

fn acquire(ledger: &mut Ledger<'_>) {
    let reserved = match &ledger.state.workspace {
        Workspace::Bound(_) => return ledger.settle(Settlement::Idle),
        Workspace::Reserved(name) => Some(name.clone()),
        Workspace::Unbound => None,
    };
    ledger.ask(Action::AcquireWorkspace, Instruction::AcquireWorkspace { reserved });
}

fn release(ledger: &mut Ledger<'_>) {
    // The next task would share the worktree with an agent or a run that nobody could end.
    let haunted = [Place::Main, Place::Beside].map(|place| matches!(ledger.state.session(place), Session::Ending(_)));
    match ledger.state.workspace.clone() {
        Workspace::Unbound => ledger.settle(Settlement::Idle),
        Workspace::Bound(_) if haunted.contains(&true) => {
            ledger.settle(Settlement::Skipped("a session in it could not be ended".into()));
        }
        Workspace::Bound(_) if ledger.state.has_open_run() => {
            ledger.settle(Settlement::Skipped("a run in it could not be cancelled".into()));
        }
        Workspace::Reserved(workspace) | Workspace::Bound(workspace) => {
            ledger.ask(Action::ReleaseWorkspace, Instruction::ReleaseWorkspace { workspace });
        }
    }
}

/// Ends what is in `places`. A dead session is cleared away too: its window may still be there.
fn end(ledger: &mut Ledger<'_>, places: &[Place], action: Action) {
    let sessions: Vec<_> =
        places.iter().filter_map(|place| ledger.state.session(*place).agent()).map(|agent| agent.id).collect();
    if sessions.is_empty() {
        return ledger.settle(Settlement::Idle);
    }
    for place in places {
        if ledger.state.session(*place) != &Session::Absent {
            ledger.heard(*place, Change::EndAsked, false);
        }
    }
    ledger.ask(action, Instruction::EndSession { sessions, whole: action == Action::KillSession });
}

/// Types to the worker; where none is alive, one is started that reads for itself what happened, if the hook wants that.
fn tell_worker(ledger: &mut Ledger<'_>, edge: EdgeId, message: Option<&Template>, start: bool) {
    let gate = edge_at(ledger.lifecycle, edge).and_then(|edge| edge.gate.as_ref());
    let occasion = match gate.and_then(|gate| gate.verdict).map(|test| test.wanted) {
        Some(Verdict::Fail) => Occasion::ReviewFailed,
        Some(Verdict::Pass) => Occasion::ReviewPassed,
        None => Occasion::ChangesRequested,
    };
    if let Some(agent) = ledger.state.main.agent().copied().filter(|_| ledger.state.main.is_living()) {
        let text = message.map_or_else(|| occasion.words().to_owned(), |message| fill(ledger, message));
        return ledger.ask(Action::NotifyWorker, Instruction::TypeToWorker { session: agent.id, occasion, text });
    }
    if !start {
        return ledger.settle(Settlement::Idle);
    }
    match spawn::worker_again(ledger.lifecycle) {
        Some(plan) => spawn::prepare(ledger, &plan),
        None => {
            ledger.settle(Settlement::Skipped("no worker is alive".into()));
            ledger.mark(Attention::NoWorker);
        }
    }
}

fn run_command(ledger: &mut Ledger<'_>, command: &Command) {
    let Some(workspace) = ledger.state.workspace.bound().cloned() else {
        return ledger.settle(Settlement::Skipped("there is no workspace".into()));
    };
    let values = command.environment.iter().map(|(_, path)| variable(ledger, path)).collect();
    let script = command.script.clone();
    match environment::carried(command, values) {
        Ok(environment) => ledger.ask(Action::RunCommand, Instruction::RunCommand { workspace, script, environment }),
        Err(problem) => ledger.settle(Settlement::Failed(problem)),
    }
}

pub(super) fn increment(ledger: &mut Ledger<'_>, field: &FieldName) {
    let value = ledger.state.number(field.as_str()).saturating_add(1);
    ledger.record(Event::FieldSet { field: field.clone(), value: FieldValue::Number(value) });
}

/// A text with the task's values. The checker let no other variable pass.
pub(super) fn fill(ledger: &Ledger<'_>, text: &Template) -> String {
    text.fill(&|path| Some(variable(ledger, path))).unwrap_or_default()
}

fn variable(ledger: &Ledger<'_>, path: &Path) -> String {
    let state = &ledger.state;
    match path.head() {
        "summary" => state.about.summary.clone(),
        "project" => state.about.project.clone(),
        "branch" => state.about.branch.clone(),
        "review_round" => state.review_round.to_string(),
        "status" => ledger.lifecycle.state_name(state.status).to_owned(),
        _ => String::new(),
    }
}

/// Whether the job under way starts an agent again. What tells the worker has no plan of its own: it starts one only in
/// place of telling.
pub(super) fn starts_again(ledger: &Ledger<'_>) -> bool {
    let job = ledger.state.turns.front().and_then(|turn| turn.jobs.front());
    job.is_some_and(|job| Plan::of(ledger.lifecycle, *job).is_none_or(|plan| plan.again))
}

/// Whether a queued job that has not begun will end what is in `place`; with `later`, one of a later turn.
pub(super) fn ends_soon(ledger: &Ledger<'_>, place: Place, later: bool) -> bool {
    let turns = ledger.state.turns.iter().enumerate();
    turns.filter(|(index, _)| !later || *index > 0).any(|(index, turn)| {
        // The first job of the first turn is under way: what it does shows in the session itself.
        turn.jobs.iter().skip(usize::from(index == 0)).any(|job| match ledger.action(*job) {
            Action::KillSession => true,
            Action::KillReviewer | Action::SpawnReviewer => place == Place::Beside,
            Action::SpawnAgent => place == Place::Main,
            Action::AcquireWorkspace
            | Action::ReleaseWorkspace
            | Action::NotifyWorker
            | Action::Increment
            | Action::SpawnNext
            | Action::PushBranch
            | Action::CreatePr
            | Action::DeleteRemoteBranch
            | Action::Notify
            | Action::RunCommand
            | Action::SetField
            | Action::StartRun
            | Action::CancelRun
            | Action::WriteArtifact => false,
        })
    })
}

/// Whether a queued job, or the one under way, starts an agent in `place`.
pub(super) fn starts_soon(ledger: &Ledger<'_>, place: Place) -> bool {
    let wanted = Action::starting(place);
    ledger.state.turns.iter().flat_map(|turn| &turn.jobs).any(|job| ledger.action(*job) == wanted)
}
