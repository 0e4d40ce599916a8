//! Workers and pools for people: what each worker does, who waits for which, and what work was kept.

use std::collections::BTreeMap;

use sluice_api::problem::Problem;
use sluice_api::workers::{
    KEPT_SHOWN, WAITING_STEPS, WaitingStep, WorkHere, WorkerLease, WorkerShown, WorkerState, Workers,
};
use sluice_core::id::RunId;
use sluice_core::recipe::{StepId, StepWork};
use sluice_core::run::StepStatusKind;
use sluice_engine::host::EngineClock;

use super::page::PageQuery;
use super::{Requester, Service, checkouts};
use crate::background::locked;
use crate::home::session_of;
use crate::home::workers::{LeasedStep, RemoteWorker, RosterState};
use crate::read::runs::RunSnapshot;
use crate::settings::clock::written;
use crate::settings::ids::LOCAL;

impl Service {
    /// What each worker does, who waits for what, and what work was kept. The token of a worker is told of its own groups.
    pub fn workforce(&self, who: &Requester) -> Result<Workers, Problem> {
        let keeper = if let Requester::Worker { token } = who { Some(token.as_str()) } else { None };
        let runs = self.list_runs(None, false, &PageQuery::default())?.items;
        let by_id: BTreeMap<&RunId, &RunSnapshot> = runs.iter().map(|seen| (&seen.id, seen)).collect();
        let roster = locked(&self.home.roster.inner);
        let all = roster.workers.iter().filter(|(id, _)| roster.sees(keeper, id.as_str()));
        let mut workers: Vec<WorkerShown> =
            all.map(|(id, worker)| self.worker(&roster, id.as_str(), worker, &by_id)).collect();
        workers.sort_by(|one, other| (&one.group, &one.name, &one.id).cmp(&(&other.group, &other.name, &other.id)));
        let mut waiting: Vec<WaitingStep> = runs.iter().flat_map(|seen| waiting_steps(&roster, seen)).collect();
        drop(roster);
        waiting.retain(|step| keeper.is_none() || workers.iter().any(|worker| worker.group == step.group));
        waiting.sort_by(|one, other| one.since.cmp(&other.since));
        let waiting_count = waiting.len();
        waiting.truncate(WAITING_STEPS);
        let mut kept = checkouts::all_kept(&self.home);
        let kept_count = kept.len();
        kept.truncate(KEPT_SHOWN);
        Ok(Workers {
            here: self.work_here(&runs),
            workers,
            waiting,
            waiting_count,
            pools: self.board_projects(None, &self.home.tasks.open()),
            kept,
            kept_count,
        })
    }

    fn worker(
        &self,
        roster: &RosterState,
        id: &str,
        worker: &RemoteWorker,
        runs: &BTreeMap<&RunId, &RunSnapshot>,
    ) -> WorkerShown {
        let silent = worker.heard.map(|heard| self.home.clock.now().0.saturating_sub(heard).max(0));
        let lease = roster.jobs.values().find(|job| job.worker.as_str() == id);
        WorkerShown {
            id: id.to_owned(),
            name: worker.name.clone(),
            role: worker.role.clone(),
            group: worker.group.clone(),
            state: match (worker.is_present, &lease) {
                (false, _) => WorkerState::Away,
                (true, Some(_)) => WorkerState::Busy,
                (true, None) => WorkerState::Idle,
            },
            silent_seconds: silent.map(seconds),
            lease: lease.map(|job| self.lease(job, silent, runs.get(&job.mission).copied())),
            registered_at: written(worker.registered_at_ms),
        }
    }

    fn lease(&self, job: &LeasedStep, silent: Option<i64>, run: Option<&RunSnapshot>) -> WorkerLease {
        let step = job.wanted.step;
        let left = silent.map(|silent| self.home.context.config().workers.lease().saturating_sub(silent).max(0));
        WorkerLease {
            run: job.mission.to_string(),
            step: run.map_or_else(|| step.0.to_string(), |seen| seen.plan.recipe.step(step).name.to_string()),
            since: run.and_then(|seen| seen.state.step(step).began).map(|at| written(at.0)),
            ends_in_seconds: left.map(seconds),
        }
    }

    fn work_here(&self, runs: &[RunSnapshot]) -> WorkHere {
        let sessions = self.home.context.sessions.living();
        let is_busy = |kind: StepStatusKind| matches!(kind, StepStatusKind::Running | StepStatusKind::Stopping);
        let here = runs.iter().filter(|seen| is_local(seen));
        WorkHere {
            sessions: sessions.iter().filter(|id| session_of(id).is_some()).count(),
            steps: here.flat_map(|seen| &seen.state.steps).filter(|step| is_busy(step.kind())).count(),
        }
    }
}

fn seconds(millis: i64) -> u64 {
    u64::try_from(millis / 1000).unwrap_or(0)
}

/// Whether the engine's machine does the steps of a run.
fn is_local(seen: &RunSnapshot) -> bool {
    matches!(seen.group(), "" | LOCAL)
}

/// The steps of a run that could be done, and that no worker has.
fn waiting_steps(roster: &RosterState, seen: &RunSnapshot) -> Vec<WaitingStep> {
    if is_local(seen) {
        return Vec::new();
    }
    let is_held = |step| roster.jobs.values().any(|job| job.mission == seen.id && job.wanted.step == step);
    let steps = (0u32..).map(StepId).zip(seen.plan.recipe.steps.iter().zip(&seen.state.steps));
    let waits = steps.filter(|(id, (step, state))| {
        let is_open = matches!(state.kind(), StepStatusKind::Ready | StepStatusKind::Running);
        is_open && !matches!(step.work, StepWork::Task(_)) && !is_held(*id)
    });
    let shown = waits.map(|(_, (step, state))| WaitingStep {
        run: seen.id.to_string(),
        step: step.name.to_string(),
        role: step.role.to_string(),
        group: seen.group().to_owned(),
        since: Some(written(state.began.map_or(seen.card.updated, |at| at.0))),
    });
    shown.collect()
}
