//! Workers on other machines, by their groups: who is there, what each of them holds, and the
//! messages for those that listen.
//!
//! The engine decides who gets what ([`sluice_engine::scheduler`]) and when it is lost; this remembers what it said.

pub mod groups;
mod merge_turn;
pub mod missions;
pub(crate) mod orders;
pub(crate) mod presence;
mod speech;
mod work;

pub use presence::WorkerConnection;
pub use speech::MessageSubject;

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use serde_json::Value;
use sluice_api::Problem;
use sluice_api::control::{Crab, CrabState};
use sluice_api::work::{Envelope, PROTOCOL, ToWorker};
use sluice_core::id::{Dispatch, RunId, WorkerId};
use sluice_core::recipe::StepId;
use sluice_core::run::AttemptPart;
use sluice_engine::host::EngineClock;

use crate::background::locked;
use crate::home::Home;
use crate::home::workers::{LeasedStep, RemoteWorker, RosterState};
pub use crate::home::workers::{Roster, WorkerSink};
use crate::read::view::as_json;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepHolder {
    pub worker: WorkerId,
    pub has_begun: bool,
}

impl Roster {
    fn inner(&self) -> MutexGuard<'_, RosterState> {
        locked(&self.inner)
    }

    pub fn holder(&self, mission: &RunId, step: StepId) -> Option<StepHolder> {
        let inner = self.inner();
        let job = inner.jobs.values().find(|job| job.mission == *mission && job.wanted.step == step)?;
        Some(StepHolder { worker: job.worker.clone(), has_begun: job.attempt.is_some() })
    }

    /// The worker that did a step last, as long as that is remembered.
    pub fn did(&self, mission: &RunId, step: StepId) -> Option<WorkerId> {
        self.inner().did.get(&(mission.to_owned(), step)).cloned()
    }

    /// The name of the worker that has a step, or did it last; its id, if it is not known any more.
    pub(crate) fn worker_of(&self, run: &RunId, step: StepId) -> Option<String> {
        let id = self.holder(run, step).map(|holder| holder.worker).or_else(|| self.did(run, step))?;
        let name = self.inner().workers.get(&id).map(|worker| worker.name.clone());
        Some(name.unwrap_or(id.0))
    }

    /// Whether a worker is at this: a part of an attempt, by its name.
    pub fn is_at(&self, performance: &str) -> bool {
        self.inner().jobs.values().any(|job| job.performance() == performance)
    }

    pub fn list(&self) -> Vec<Crab> {
        let inner = self.inner();
        inner.workers.iter().map(|(id, worker)| inner.shown(id, worker)).collect()
    }

    /// The holder of this token is told of no worker of another group.
    fn must_see(&self, keeper: Option<&str>, id: &str) -> Result<(), Problem> {
        if self.inner().sees(keeper, id) { Ok(()) } else { Err(presence::unknown(id)) }
    }

    /// How many steps have been handed out since this was last asked.
    pub fn take_assigned(&self) -> usize {
        std::mem::take(&mut self.inner().assigned)
    }

    /// A message about what is handed out, in the envelope that workers know.
    fn envelope(&self, home: &Home, dispatch: Dispatch, about: &LeasedStep, kind: ToWorker) -> Value {
        let run = about.attempt.clone().unwrap_or_else(|| usual_name(&about.mission, dispatch));
        let task = match &kind {
            ToWorker::Assigned(order) => Some(order.task_id.clone()),
            ToWorker::Stop(_) | ToWorker::Revoked(_) | ToWorker::Held(_) => None,
        };
        as_json(&self.enveloped(home, [Some(about.mission.to_string()), task, Some(run)], kind))
    }

    /// The same for a message about this mission, task and run, or about none.
    fn enveloped<K>(&self, home: &Home, about: [Option<String>; 3], kind: K) -> Envelope<K> {
        let number = self.messages.fetch_add(1, Ordering::Relaxed);
        let sent_at_ms = home.clock.now().0;
        let [mission_id, task_id, run_id] = about;
        let message_id = Some(format!("m{sent_at_ms}-{number}"));
        Envelope { message_id, mission_id, task_id, run_id, kind, sent_at_ms: Some(sent_at_ms) }
    }
}

impl RosterState {
    /// Forgets those of these workers that have been gone for longest, so many at most. Which.
    fn forget_gone(&mut self, most: usize, of: impl Fn((&WorkerId, &RemoteWorker)) -> bool) -> Vec<WorkerId> {
        let gone = self.workers.iter().filter(|(id, worker)| !worker.is_present && of((id, worker)));
        let mut gone: Vec<(i64, WorkerId)> = gone.map(|(id, worker)| (worker.registered_at_ms, id.clone())).collect();
        gone.sort();
        gone.truncate(most);
        gone.iter().for_each(|(_, id)| drop(self.workers.remove(id)));
        gone.into_iter().map(|(_, id)| id).collect()
    }

    /// Whether the holder of this token sees a worker: one of the group of their own workers. A person sees all.
    pub(crate) fn sees(&self, keeper: Option<&str>, worker: &str) -> bool {
        let Some(keeper) = keeper else { return true };
        let mut own = self.workers.iter().filter(|(_, worker)| worker.keeper.as_deref() == Some(keeper));
        own.any(|(own, _)| self.are_of_one_group(own.as_str(), worker))
    }

    /// Whether both are there and of one group.
    fn are_of_one_group(&self, one: &str, other: &str) -> bool {
        let group = |id: &str| self.workers.get(id).map(|worker| &worker.group);
        group(one).is_some_and(|one| Some(one) == group(other))
    }

    fn shown(&self, id: &WorkerId, worker: &RemoteWorker) -> Crab {
        let mut held = self.jobs.values().filter(|job| job.worker == *id);
        let holds = held.next();
        let state = match (worker.is_present, holds) {
            (false, _) => CrabState::Offline,
            (true, Some(_)) => CrabState::Busy,
            (true, None) => CrabState::Idle,
        };
        Crab {
            crab_id: id.to_string(),
            colony_id: worker.group.clone(),
            name: worker.name.clone(),
            role: worker.role.clone(),
            state,
            current_run_id: holds.and_then(|job| job.attempt.clone()),
            registered_at_ms: worker.registered_at_ms,
            protocol: Some(PROTOCOL),
        }
    }

    fn listener(&self, worker: &WorkerId) -> Option<&WorkerSink> {
        self.workers.get(worker)?.listens.as_ref().map(|(_, post)| post)
    }

    fn held_by(&self, worker: &WorkerId) -> Vec<Dispatch> {
        self.jobs.iter().filter(|(_, job)| job.worker == *worker).map(|(dispatch, _)| *dispatch).collect()
    }
}

/// What an attempt is called unless its worker calls it something else.
fn usual_name(mission: &RunId, dispatch: Dispatch) -> String {
    format!("{mission}-{dispatch}")
}

/// The name of a step's task; of a part of one, with that part.
pub(crate) fn task_id(mission: &RunId, step: &str, part: AttemptPart) -> String {
    match part {
        AttemptPart::Whole => format!("{mission}.{step}"),
        AttemptPart::Item(_) | AttemptPart::Turn(_) | AttemptPart::Arbiter(_) => format!("{mission}.{step}.{part}"),
    }
}
