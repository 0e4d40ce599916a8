//! What workers are given and what they say about it: a step is assigned, begun, told about, and reported on.

use std::sync::Arc;

use sluice_api::control::{AttemptEnded, AttemptStarted, AttemptStatus, AttemptUpdated};
use sluice_api::event::{AttemptBegan, AttemptFinished, AttemptProgressed};
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::work::{
    HeartbeatAnswer, HeldSteps, LONGEST_PROGRESS, StepDispatch, StepProgress, StepReport, StepStart, ToWorker,
};
use sluice_core::event_name::EventName;
use sluice_core::id::{Dispatch, RunId, WorkerId};
use sluice_core::machine::RefusalCode;
use sluice_core::recipe::StepId;
use sluice_core::run::{AttemptReport, RunEffect, StepStatus};
use sluice_engine::actor::EffectOutcome;
use sluice_engine::codec::run_effect;
use sluice_engine::host::EngineClock;
use sluice_engine::reactor::{Assignment, ReactorMessage, too_late};
use sluice_os::session::SessionId;
use sluice_worker::report::read;

use super::merge_turn::overtaken;
use super::orders::{StepHandOut, order, tip};
use super::{task_id, usual_name};
use crate::home::Home;
use crate::home::engine::{asked, refused};
use crate::home::registry::{forget, note, replace, settle};
use crate::home::workers::{EndedAttempt, LeasedStep, Roster, RosterState};
use crate::perform::lists::listed;
use crate::perform::token;
use crate::read::runs::{self, RunSnapshot};
use crate::read::view::as_json;
use crate::roster::{groups, missions};
use crate::settings::bounds::cut;
use crate::undone::{PerformError, UnavailableReason, settled};

/// Attempts that are over and still known by their names, so that what a worker says twice is understood.
const MOST_OVER: usize = 10_000;

/// How often the progress of an attempt is written down, in milliseconds; what is said between is told by the next.
const PROGRESS_EVERY: i64 = 1000;

impl Roster {
    /// A step was handed to a worker, by this engine or by an earlier one. Called by the engine's loop: it only notes.
    pub(crate) fn assigned(&self, assignment: &Assignment, attempt: Option<String>) -> Option<Dispatch> {
        let Assignment { stream, effect, dispatch, worker, withdrawal: _ } = assignment;
        let (Some(mission), Some(worker)) = (runs::id_of(stream), worker) else { return None };
        let Ok(RunEffect::Perform(wanted)) = run_effect::read(&effect.data) else { return None };
        let mut inner = self.inner();
        inner.assigned += 1;
        let job = LeasedStep {
            worker: worker.clone(),
            mission: mission.to_owned(),
            stream: stream.clone(),
            effect: effect.id.clone(),
            wanted: *wanted,
            attempt,
            reports: None,
            progressed: None,
            has_turn: false,
            waits_for_turn: false,
            started_from: None,
        };
        inner.jobs.insert(*dispatch, job);
        Some(*dispatch)
    }

    /// A step is not a worker's any more. Called by the engine's loop. Whether the worker is lost with it.
    pub(crate) fn withdrawn(&self, home: &Home, dispatch: Dispatch, is_lost: bool) -> Option<WorkerId> {
        let mut inner = self.inner();
        let job = inner.jobs.remove(&dispatch)?;
        // One that lost its lease gets nothing until it comes again.
        if !is_lost {
            inner.offer_again(home, &job.worker);
        }
        if job.progressed.is_some() {
            forget(home, &progress_of(dispatch));
        }
        if let Some(name) = &job.attempt {
            let over = EndedAttempt { name: name.clone(), worker: job.worker.clone(), counted_as: job.reports };
            inner.over.push_back(over);
            let excess = inner.over.len().saturating_sub(MOST_OVER);
            inner.over.drain(..excess);
        }
        if let (None, Some(post)) = (job.reports, inner.listener(&job.worker)) {
            post(self.envelope(home, dispatch, &job, ToWorker::Revoked(StepDispatch { dispatch: dispatch.0 })));
        }
        Some(job.worker)
    }

    pub(crate) fn tell(&self, home: &Home, dispatch: Dispatch) -> Result<(), UnavailableReason> {
        let about = self.inner().jobs.get(&dispatch).map(|job| (job.mission.clone(), job.wanted.workspace));
        let Some((mission, workspace)) = about else { return Ok(()) };
        let Ok(Some(seen)) = settled(home.tasks.load_run(&mission).map_err(PerformError::from))? else {
            return Ok(());
        };
        let repository = if workspace.is_worktree() { groups::repository(home, seen.group()) } else { None };
        let mut inner = self.inner();
        let RosterState { workers, jobs, .. } = &mut *inner;
        let Some(job) = jobs.get_mut(&dispatch) else { return Ok(()) };
        let Some((_, post)) = workers.get(&job.worker).and_then(|worker| worker.listens.as_ref()) else {
            return Ok(());
        };
        let performance = SessionId::new(job.performance()).map_err(PerformError::from);
        let secret = performance.and_then(|id| token(&id, &home.context.places.attempt(id.as_str())));
        let agent_token = settled(secret)?.ok();
        let workers = home.context.config().workers.clone();
        let (lease_ms, away_ms) = (workers.lease().unsigned_abs(), workers.reconnect().unsigned_abs());
        job.started_from.get_or_insert_with(|| tip(&seen).map(str::to_owned));
        let order = order(&seen, &job.wanted, StepHandOut { dispatch, repository, lease_ms, away_ms, agent_token });
        post(self.envelope(home, dispatch, job, ToWorker::Assigned(Box::new(order))));
        // It may have been away when that was decided.
        if let StepStatus::Stopping(..) = seen.state.step(job.wanted.step).status {
            post(self.envelope(home, dispatch, job, ToWorker::Stop(StepDispatch { dispatch: dispatch.0 })));
        }
        Ok(())
    }

    /// Tells a worker what it holds, and so what it does not, in answer to a sign that says what it is at. Told under the lock:
    /// whatever it was told before is part of it.
    pub(super) fn tell_what_is_held(&self, home: &Home, worker: &WorkerId, at: &[Dispatch], sent_ms: Option<u64>) {
        let inner = self.inner();
        let Some(post) = inner.listener(worker) else { return };
        let held = || inner.jobs.iter().filter(|(_, job)| job.worker == *worker);
        let held = HeldSteps {
            dispatches: held().map(|(dispatch, _)| dispatch.0).collect(),
            performances: held().map(|(_, job)| job.performance()).collect(),
            answers: Some(HeartbeatAnswer { dispatches: at.iter().map(|dispatch| dispatch.0).collect(), sent_ms }),
        };
        post(as_json(&self.enveloped(home, [None, None, None], ToWorker::Held(held))));
    }

    /// The run wants a part of a step ended; its worker ends it and reports. Whether a worker holds it.
    pub(crate) fn stop(&self, home: &Home, wanted: &str) -> bool {
        let inner = self.inner();
        let mut is_held = false;
        for (dispatch, job) in inner.jobs.iter().filter(|(_, job)| job.performance() == wanted) {
            is_held = true;
            if let Some(post) = inner.listener(&job.worker) {
                post(self.envelope(home, *dispatch, job, ToWorker::Stop(StepDispatch { dispatch: dispatch.0 })));
            }
        }
        is_held
    }

    /// Tells a worker again everything that it holds. What cannot be read now it is told when it has given its next sign
    /// without naming it.
    pub(super) fn tell_again(&self, home: &Home, worker: &WorkerId) {
        let held = self.inner().held_by(worker);
        held.into_iter().for_each(|dispatch| drop(self.tell(home, dispatch)));
    }

    pub fn start(&self, home: &Arc<Home>, keeper: Option<&str>, wanted: &StepStart) -> Result<AttemptStarted, Problem> {
        self.must_see(keeper, &wanted.crab_id)?;
        self.must_keep(keeper, &wanted.crab_id)?;
        self.heard(home, &WorkerId::from(wanted.crab_id.as_str()));
        let group = self.inner().workers.get(wanted.crab_id.as_str()).map(|worker| worker.group.clone());
        let seen = match group.filter(|_| keeper.is_some()) {
            Some(group) => missions::of_group(home, &wanted.mission_id, &group)?,
            None => missions::leased(home, &wanted.mission_id)?,
        };
        let mut found = self.given(&seen, wanted);
        if found.is_none() {
            missions::task_exists(&seen, &wanted.task_id)?;
            must_have_taken_up(home)?;
            // It may have become ready a moment ago, and its worker asks before the scheduler has gone round.
            if seen.state.end.is_none() {
                settle(home)?;
                found = self.given(&seen, wanted);
            }
        }
        let Some((dispatch, effect, begun)) = found else {
            let message = format!("task {} is not assigned to crab {}", wanted.task_id, wanted.crab_id);
            return Err(Problem::new(ProblemStatus::Conflict, RefusalCode::NotReady.as_str(), message)
                .hint("a crab begins with what it was assigned; GET /v1/tasks says what that is"));
        };
        let run_id = match (begun.clone(), &wanted.run_id) {
            (Some(begun), None) => begun,
            (Some(begun), Some(wanted)) if begun == *wanted => begun,
            (Some(begun), Some(_)) => {
                let message = format!("task {} has begun as run {begun}", wanted.task_id);
                return Err(Problem::new(ProblemStatus::Conflict, "conflict", message).hint("use that run_id"));
            }
            (None, Some(wanted)) => wanted.clone(),
            (None, None) => usual_name(&seen.id, dispatch),
        };
        if begun.as_ref() != Some(&run_id) {
            self.begin(home, wanted, &seen.id, &run_id, dispatch, effect)?;
        }
        Ok(AttemptStarted {
            run_id,
            task_id: wanted.task_id.clone(),
            mission_id: String::from(seen.id),
            crab_id: wanted.crab_id.clone(),
            status: AttemptStatus::Running,
        })
    }

    /// The handing-out of a task to a worker, its effect, and the name of the attempt if it has begun.
    fn given(&self, seen: &RunSnapshot, wanted: &StepStart) -> Option<(Dispatch, String, Option<String>)> {
        let inner = self.inner();
        let mut held =
            inner.jobs.iter().filter(|(_, job)| job.worker.as_str() == wanted.crab_id && job.mission == seen.id);
        let is_it = |job: &LeasedStep| {
            let step = seen.plan.recipe.step(job.wanted.step).name.as_str();
            task_id(&job.mission, step, job.wanted.part) == wanted.task_id
        };
        held.find(|(_, job)| is_it(job)).map(|(dispatch, job)| (*dispatch, job.effect.clone(), job.attempt.clone()))
    }

    fn begin(
        &self,
        home: &Home,
        wanted: &StepStart,
        mission: &RunId,
        run_id: &str,
        dispatch: Dispatch,
        effect: String,
    ) -> Result<(), Problem> {
        groups::must_be_an_id("run_id", run_id)?;
        let is_taken = {
            let inner = self.inner();
            let held = inner.jobs.values().filter(|job| job.attempt.as_deref() == Some(run_id)).map(|job| &job.worker);
            let over = inner.over.iter().filter(|over| over.name == run_id).map(|over| &over.worker);
            // What other groups call theirs is not for this worker's ears, and they are not asked about this one.
            held.chain(over).any(|other| inner.are_of_one_group(&wanted.crab_id, other.as_str()))
        };
        if is_taken {
            let message = format!("run_id {run_id} is taken by another attempt");
            let problem = Problem::new(ProblemStatus::Conflict, "conflict", message);
            return Err(problem.hint("leave it out, or choose another"));
        }
        let (stream, name) = (runs::stream(mission), run_id.to_owned());
        let begun = |token| ReactorMessage::Begun { token: Some(token), stream, effect, dispatch, name };
        asked(home, &wanted.task_id, begun)?;
        if let Some(job) = self.inner().jobs.get_mut(&dispatch) {
            job.attempt = Some(run_id.to_owned());
        }
        let began = AttemptBegan {
            run_id: run_id.to_owned(),
            crab_id: wanted.crab_id.clone(),
            mission_id: wanted.mission_id.clone(),
            task_id: wanted.task_id.clone(),
            burrow_path: wanted.burrow_path.clone(),
        };
        note(home, EventName::AttemptStarted, &wanted.crab_id, &wanted.mission_id, &began);
        Ok(())
    }

    /// The attempt of this name, and what is known of its end.
    pub(super) fn attempt(&self, home: &Home, keeper: Option<&str>, run_id: &str) -> Result<RemoteAttempt, Problem> {
        let found = {
            let inner = self.inner();
            let is_it = |name: Option<&str>, worker: &str| name == Some(run_id) && inner.sees(keeper, worker);
            let held = inner.jobs.iter().find(|(_, job)| is_it(job.attempt.as_deref(), job.worker.as_str()));
            let held = held.map(|(dispatch, job)| (&job.worker, Some(*dispatch), None));
            let over = || inner.over.iter().rev().find(|it| is_it(Some(&it.name), it.worker.as_str()));
            let found = held.or_else(|| over().map(|it| (&it.worker, None, it.counted_as)));
            found.map(|(worker, held, counted_as)| RemoteAttempt { worker: worker.clone(), held, counted_as })
        };
        if found.is_none() {
            must_have_taken_up(home)?;
        }
        let none = || {
            Problem::not_found(format!("there is no run `{run_id}` of a crab, or it is long over"))
                .hint("POST /v1/runs/start begins one")
        };
        let attempt = found.ok_or_else(none)?;
        self.must_keep(keeper, attempt.worker.as_str())?;
        if !home.context.may_act() {
            let message = "the engine does not reach its store, and does not know whether this is still yours";
            return Err(Problem::unavailable(message).hint("ask again in a moment"));
        }
        self.heard(home, &attempt.worker);
        Ok(attempt)
    }

    pub fn update(
        &self,
        home: &Arc<Home>,
        keeper: Option<&str>,
        wanted: &StepProgress,
    ) -> Result<AttemptUpdated, Problem> {
        let attempt = self.attempt(home, keeper, &wanted.run_id)?;
        let dispatch = attempt.held.ok_or_else(late)?;
        let (mission, task) = self.about(home, dispatch)?;
        if wanted.progress_message.is_some() || wanted.token_usage.is_some() {
            let message =
                wanted.progress_message.as_deref().map(|text| cut(&home.context.clean().text(text), LONGEST_PROGRESS));
            let progressed = AttemptProgressed {
                run_id: wanted.run_id.clone(),
                mission_id: mission.to_string(),
                task_id: task.clone(),
                progress_message: message,
                token_usage: wanted.token_usage,
            };
            if self.progresses(home, dispatch) {
                let id = progress_of(dispatch);
                replace(home, &id, EventName::AttemptProgress, attempt.worker.as_str(), mission.as_str(), &progressed);
            }
        }
        Ok(AttemptUpdated { run_id: wanted.run_id.clone(), task_id: task, status: AttemptStatus::Running })
    }

    /// Whether the progress of an attempt is written down now, or too little time has passed since it was.
    fn progresses(&self, home: &Home, dispatch: Dispatch) -> bool {
        let now = home.clock.now().0;
        let mut inner = self.inner();
        let Some(job) = inner.jobs.get_mut(&dispatch) else { return false };
        let is_due = job.progressed.is_none_or(|before| now - before >= PROGRESS_EVERY || now < before);
        if is_due {
            job.progressed = Some(now);
        }
        is_due
    }

    fn remember_who_did(&self, mission: &RunId, step: StepId, worker: &WorkerId) {
        let mut inner = self.inner();
        inner.did.insert((mission.to_owned(), step), worker.clone());
        while inner.did.len() > MOST_OVER {
            inner.did.pop_first();
        }
    }

    pub(super) fn is_over(&self, run_id: &str) -> bool {
        self.inner().over.iter().any(|over| over.name == run_id)
    }

    pub(super) fn about(&self, home: &Home, dispatch: Dispatch) -> Result<(RunId, String), Problem> {
        let found = self.inner().jobs.get(&dispatch).map(|job| (job.mission.clone(), job.wanted.clone()));
        let (mission, wanted) = found.ok_or_else(late)?;
        let seen = missions::leased(home, mission.as_str())?;
        let task = task_id(&mission, seen.plan.recipe.step(wanted.step).name.as_str(), wanted.part);
        Ok((mission, task))
    }

    /// A worker says how it ended. Said twice it is counted once.
    pub fn complete(
        &self,
        home: &Arc<Home>,
        keeper: Option<&str>,
        wanted: &StepReport,
    ) -> Result<AttemptEnded, Problem> {
        let report = read(&home.context.clean(), wanted)?;
        let status = match report {
            AttemptReport::Completed(_) => AttemptStatus::Completed,
            AttemptReport::Failed { .. } => AttemptStatus::Failed,
        };
        let attempt = self.attempt(home, keeper, &wanted.run_id)?;
        let Some(dispatch) = attempt.held else {
            return match attempt.counted_as {
                Some(counted) if counted == status => {
                    Ok(AttemptEnded { run_id: wanted.run_id.clone(), task_id: None, status, ok: true })
                }
                Some(counted) => {
                    let message = format!("run {} has ended as {counted}, and cannot end as {status}", wanted.run_id);
                    Err(Problem::new(ProblemStatus::Conflict, RefusalCode::Finished.as_str(), message))
                }
                None => Err(late()),
            };
        };
        self.must_have_turn(home, dispatch, wanted)?;
        let (mission, task) = self.about(home, dispatch)?;
        let held = self.inner().jobs.get_mut(&dispatch).map(|job| {
            job.reports = Some(status);
            (job.stream.clone(), job.effect.clone(), job.wanted.clone())
        });
        let (stream, effect, performed) = held.ok_or_else(late)?;
        let mut report = report;
        if let Ok(Some(seen)) = home.tasks.load_run(&mission) {
            let setting = seen.setting();
            report = match report {
                AttemptReport::Completed(_) if self.is_overtaken(dispatch, wanted, &seen) => overtaken(),
                AttemptReport::Completed(outcome) => {
                    AttemptReport::Completed(listed(&setting.plan.recipe, &performed, outcome))
                }
                failed @ AttemptReport::Failed { .. } => failed,
            };
            crate::evidence::begin(home, &setting, &performed).end(home, &setting, &performed, &report);
        }
        let outcome = EffectOutcome::Run(report);
        let ended = |token| ReactorMessage::Ended { token: Some(token), stream, effect, dispatch, outcome };
        if let Err(problem) = asked(home, &task, ended) {
            let mut inner = self.inner();
            inner.jobs.get_mut(&dispatch).into_iter().for_each(|job| job.reports = None);
            // It may have been withdrawn meanwhile, and looked as if this was why.
            let own = inner.over.iter_mut().filter(|over| over.name == wanted.run_id);
            own.for_each(|over| over.counted_as = None);
            return Err(problem);
        }
        self.remember_who_did(&mission, performed.step, &attempt.worker);
        let finished = AttemptFinished {
            run_id: wanted.run_id.clone(),
            mission_id: mission.to_string(),
            task_id: task.clone(),
            status,
            token_usage: wanted.token_usage,
            commit: wanted.commit.clone(),
        };
        note(home, EventName::AttemptEnded, attempt.worker.as_str(), mission.as_str(), &finished);
        Ok(AttemptEnded { run_id: wanted.run_id.clone(), task_id: Some(task), status, ok: true })
    }
}

/// Where the progress of what is handed out is kept: only the latest, and only while it is under way.
fn progress_of(dispatch: Dispatch) -> String {
    format!("progress-{dispatch}")
}

/// What is not known may only not be known yet.
fn must_have_taken_up(home: &Home) -> Result<(), Problem> {
    let starting = || Problem::unavailable("the engine is starting").hint("ask again in a moment");
    if home.engine.has_taken_up() { Ok(()) } else { Err(starting()) }
}

pub(super) struct RemoteAttempt {
    pub(super) worker: WorkerId,
    /// Its handing-out, while it is under way.
    pub(super) held: Option<Dispatch>,
    /// It is over, and its report was taken, which said this.
    counted_as: Option<AttemptStatus>,
}

pub(super) fn late() -> Problem {
    refused(&too_late())
}
