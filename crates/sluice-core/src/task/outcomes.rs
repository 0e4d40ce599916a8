//! What comes back from effects: the hook that waited is settled, and the next one begins.

use super::effect::{EffectKey, TaskAction};
use super::event::{Settlement, TaskEvent};
use super::hooks;
use super::input::{TaskEffectOutcome, TaskEffectProduct};
use super::pending::TaskPending;
use super::runs;
use super::session::{SessionChange, TaskSession, TaskSessionPlace};
use super::spawn::{self, SpawnPlan};
use super::state::{TaskAttention, TaskJob, TaskWorkspace};

/// An effect is done. An outcome that nobody waits for comes late or twice, and changes nothing.
pub(super) fn done(ledger: &mut TaskPending<'_>, key: EffectKey, outcome: &TaskEffectOutcome) {
    let (turn, step, action) = match key {
        EffectKey::Write { .. } => return written(ledger, outcome),
        EffectKey::Job { turn, step, action } => (turn, step, action),
    };
    let Some(front) = ledger.state.turns.front() else { return };
    if (front.number, front.step, front.waiting) != (turn, step, Some(action)) {
        return;
    }
    let Some(job) = front.jobs.front().copied() else { return };
    came_back(ledger, job, action, outcome);
    hooks::run(ledger);
}

fn written(ledger: &mut TaskPending<'_>, outcome: &TaskEffectOutcome) {
    match outcome {
        TaskEffectOutcome::Ok(_) | TaskEffectOutcome::Skipped(_) => {}
        TaskEffectOutcome::Failed(reason) => {
            ledger.record(TaskEvent::NotWritten(reason.clone()));
            ledger.mark(TaskAttention::HookFailed(TaskAction::WriteArtifact, reason.clone()));
        }
    }
}

fn came_back(ledger: &mut TaskPending<'_>, job: TaskJob, action: TaskAction, outcome: &TaskEffectOutcome) {
    match action {
        TaskAction::AcquireWorkspace => acquired(ledger, outcome),
        TaskAction::ReleaseWorkspace => {
            if matches!(outcome, TaskEffectOutcome::Ok(_)) {
                ledger.record(TaskEvent::WorkspaceReleased);
            }
            ledger.settle(settlement(outcome));
        }
        TaskAction::SpawnAgent => started(ledger, TaskSessionPlace::Main, outcome),
        TaskAction::SpawnReviewer => started(ledger, TaskSessionPlace::Beside, outcome),
        TaskAction::KillSession | TaskAction::KillReviewer => ended(ledger, job, action, outcome),
        TaskAction::Plain(_) => {
            if let TaskEffectOutcome::Ok(TaskEffectProduct::PullRequest(url)) = outcome {
                ledger.record(TaskEvent::PullRequestOpened(url.clone()));
            }
            ledger.settle(settlement(outcome));
        }
        TaskAction::StartRun => runs::started(ledger, outcome),
        TaskAction::CancelRun => runs::left(ledger, outcome),
        TaskAction::NotifyWorker
        | TaskAction::Increment
        | TaskAction::RunCommand
        | TaskAction::SetField
        | TaskAction::WriteArtifact => ledger.settle(settlement(outcome)),
    }
}

pub(super) fn settlement(outcome: &TaskEffectOutcome) -> Settlement {
    match outcome {
        TaskEffectOutcome::Ok(_) => Settlement::Done,
        TaskEffectOutcome::Failed(reason) => Settlement::Failed(reason.clone()),
        TaskEffectOutcome::Skipped(reason) => Settlement::Skipped(reason.clone()),
    }
}

fn acquired(ledger: &mut TaskPending<'_>, outcome: &TaskEffectOutcome) {
    let reserved = match &ledger.state.workspace {
        TaskWorkspace::Reserved(name) => Some(name.clone()),
        TaskWorkspace::Unbound | TaskWorkspace::Bound(_) => None,
    };
    let name = match outcome {
        TaskEffectOutcome::Ok(TaskEffectProduct::Workspace(name)) => Some(name.clone()),
        TaskEffectOutcome::Ok(
            TaskEffectProduct::Nothing | TaskEffectProduct::PullRequest(_) | TaskEffectProduct::Run { .. },
        ) => reserved,
        TaskEffectOutcome::Failed(_) | TaskEffectOutcome::Skipped(_) => {
            if reserved.is_some() {
                ledger.record(TaskEvent::WorkspaceReleased);
            }
            return ledger.settle(settlement(outcome));
        }
    };
    match name {
        Some(name) => {
            ledger.record(TaskEvent::WorkspaceBound(name));
            ledger.settle(Settlement::Done);
        }
        None => ledger.settle(Settlement::Failed("no workspace was named".into())),
    }
}

fn started(ledger: &mut TaskPending<'_>, place: TaskSessionPlace, outcome: &TaskEffectOutcome) {
    let again = hooks::starts_again(ledger);
    let change = match outcome {
        TaskEffectOutcome::Ok(_) => SessionChange::Started,
        TaskEffectOutcome::Failed(reason) | TaskEffectOutcome::Skipped(reason) => {
            SessionChange::NotStarted(reason.clone())
        }
    };
    ledger.heard(place, change, again);
    if place == TaskSessionPlace::Main && ledger.state.marked() == Some(&TaskAttention::WorkerGone) {
        ledger.clear_mark();
    }
    ledger.settle(settlement(outcome));
}

/// Sessions were ended, or could not be: for a hook that does just that, or to make room for the next one.
fn ended(ledger: &mut TaskPending<'_>, job: TaskJob, action: TaskAction, outcome: &TaskEffectOutcome) {
    let plan = SpawnPlan::of(ledger.lifecycle, job);
    let places: &[TaskSessionPlace] = match (&plan, action) {
        (Some(plan), _) => &[plan.place],
        (None, TaskAction::KillReviewer) => &[TaskSessionPlace::Beside],
        (None, _) => &TaskSessionPlace::ALL,
    };
    let change = match outcome {
        TaskEffectOutcome::Ok(_) | TaskEffectOutcome::Skipped(_) => SessionChange::Ended,
        TaskEffectOutcome::Failed(_) => SessionChange::NotEnded,
    };
    for place in places.iter().filter(|place| ledger.state.session(**place) != &TaskSession::Absent).collect::<Vec<_>>()
    {
        ledger.heard(*place, change.clone(), false);
    }
    match (plan, outcome) {
        (Some(plan), TaskEffectOutcome::Ok(_) | TaskEffectOutcome::Skipped(_)) => spawn::start(ledger, &plan),
        // A second agent beside one that could not be ended would be one too many.
        (Some(_), TaskEffectOutcome::Failed(_)) | (None, _) => ledger.settle(settlement(outcome)),
    }
}
