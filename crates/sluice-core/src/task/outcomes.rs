//! What comes back from effects: the hook that waited is settled, and the next one begins.

use super::effect::{Action, EffectKey};
use super::event::{Event, Settlement};
use super::hooks;
use super::input::{Found, Outcome};
use super::ledger::Ledger;
use super::runs;
use super::session::{Change, Place, Session};
use super::spawn::{self, Plan};
use super::state::{Attention, Job, Workspace};

/// An effect is done. An outcome that nobody waits for comes late or twice, and changes nothing.
pub(super) fn done(ledger: &mut Ledger<'_>, key: EffectKey, outcome: &Outcome) {
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

fn written(ledger: &mut Ledger<'_>, outcome: &Outcome) {
    match outcome {
        Outcome::Ok(_) | Outcome::Skipped(_) => {}
        Outcome::Failed(reason) => {
            ledger.record(Event::NotWritten(reason.clone()));
            ledger.mark(Attention::HookFailed(Action::WriteArtifact, reason.clone()));
        }
    }
}

fn came_back(ledger: &mut Ledger<'_>, job: Job, action: Action, outcome: &Outcome) {
    match action {
        Action::AcquireWorkspace => acquired(ledger, outcome),
        Action::ReleaseWorkspace => {
            if matches!(outcome, Outcome::Ok(_)) {
                ledger.record(Event::WorkspaceReleased);
            }
            ledger.settle(settlement(outcome));
        }
        Action::SpawnAgent => started(ledger, Place::Main, outcome),
        Action::SpawnReviewer => started(ledger, Place::Beside, outcome),
        Action::KillSession | Action::KillReviewer => ended(ledger, job, action, outcome),
        Action::CreatePr => {
            if let Outcome::Ok(Found::PullRequest(url)) = outcome {
                ledger.record(Event::PullRequestOpened(url.clone()));
            }
            ledger.settle(settlement(outcome));
        }
        Action::StartRun => runs::started(ledger, outcome),
        Action::CancelRun => runs::left(ledger, outcome),
        Action::NotifyWorker
        | Action::Increment
        | Action::SpawnNext
        | Action::PushBranch
        | Action::DeleteRemoteBranch
        | Action::Notify
        | Action::RunCommand
        | Action::SetField
        | Action::WriteArtifact => ledger.settle(settlement(outcome)),
    }
}

pub(super) fn settlement(outcome: &Outcome) -> Settlement {
    match outcome {
        Outcome::Ok(_) => Settlement::Done,
        Outcome::Failed(reason) => Settlement::Failed(reason.clone()),
        Outcome::Skipped(reason) => Settlement::Skipped(reason.clone()),
    }
}

fn acquired(ledger: &mut Ledger<'_>, outcome: &Outcome) {
    let reserved = match &ledger.state.workspace {
        Workspace::Reserved(name) => Some(name.clone()),
        Workspace::Unbound | Workspace::Bound(_) => None,
    };
    let name = match outcome {
        Outcome::Ok(Found::Workspace(name)) => Some(name.clone()),
        Outcome::Ok(Found::Nothing | Found::PullRequest(_) | Found::Run { .. }) => reserved,
        Outcome::Failed(_) | Outcome::Skipped(_) => {
            if reserved.is_some() {
                ledger.record(Event::WorkspaceReleased);
            }
            return ledger.settle(settlement(outcome));
        }
    };
    match name {
        Some(name) => {
            ledger.record(Event::WorkspaceBound(name));
            ledger.settle(Settlement::Done);
        }
        None => ledger.settle(Settlement::Failed("no workspace was named".into())),
    }
}

fn started(ledger: &mut Ledger<'_>, place: Place, outcome: &Outcome) {
    let again = hooks::starts_again(ledger);
    let change = match outcome {
        Outcome::Ok(_) => Change::Started,
        Outcome::Failed(reason) | Outcome::Skipped(reason) => Change::NotStarted(reason.clone()),
    };
    ledger.heard(place, change, again);
    if place == Place::Main && ledger.state.attention == Some(Attention::WorkerGone) {
        ledger.clear_attention();
    }
    ledger.settle(settlement(outcome));
}

/// Sessions were ended, or could not be: for a hook that does just that, or to make room for the next one.
fn ended(ledger: &mut Ledger<'_>, job: Job, action: Action, outcome: &Outcome) {
    let plan = Plan::of(ledger.lifecycle, job);
    let places: &[Place] = match (&plan, action) {
        (Some(plan), _) => &[plan.place],
        (None, Action::KillReviewer) => &[Place::Beside],
        (None, _) => &[Place::Main, Place::Beside],
    };
    let change = match outcome {
        Outcome::Ok(_) | Outcome::Skipped(_) => Change::Ended,
        Outcome::Failed(_) => Change::NotEnded,
    };
    for place in places.iter().filter(|place| ledger.state.session(**place) != &Session::Absent).collect::<Vec<_>>() {
        ledger.heard(*place, change.clone(), false);
    }
    match (plan, outcome) {
        (Some(plan), Outcome::Ok(_) | Outcome::Skipped(_)) => spawn::start(ledger, &plan),
        // A second agent beside one that could not be ended would be one too many.
        (Some(_), Outcome::Failed(_)) | (None, _) => ledger.settle(settlement(outcome)),
    }
}
