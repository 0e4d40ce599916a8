//! Whose turn it is to bring work into the branch of a run.
//!
//! Workers on several machines do steps of one run at the same time, and what they made has to come together: the one that
//! has the turn merges with where the work stands, and keeps the turn until its report is stored. Items of a fan-out have
//! it in their order, so that what comes of a fan-out does not depend on who is faster. Nothing of this is stored: after a
//! restart of the engine a report counts if its work was merged with where the run's work stands.

use std::sync::Arc;

use sluice_api::control::AttemptStatus;
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::work::{AskMergeTurn, MERGES, MergeTurn, NO_MERGE_TURN, StepReport};
use sluice_core::id::{Dispatch, RunId};
use sluice_core::recipe::FailureKind;
use sluice_core::run::{AttemptPart, AttemptReport, StepOutcome};

use super::missions;
use super::orders::tip;
use super::work::late;
use crate::home::Home;
use crate::home::workers::{Roster, RosterState};
use crate::read::runs::RunSnapshot;

impl Roster {
    pub fn turn(&self, home: &Arc<Home>, keeper: Option<&str>, wanted: &AskMergeTurn) -> Result<MergeTurn, Problem> {
        let attempt = self.attempt(home, keeper, &wanted.run_id)?;
        let dispatch = attempt.held.ok_or_else(late)?;
        let not_yet = MergeTurn { run_id: wanted.run_id.clone(), ready: false, commit: None };
        let (mission, step, part) = {
            let inner = self.inner();
            let job = inner.jobs.get(&dispatch).ok_or_else(late)?;
            (job.mission.clone(), job.wanted.step, job.wanted.part)
        };
        let waits = match part {
            AttemptPart::Item(item) => missions::leased(home, mission.as_str())?.state.has_open_before(step, item),
            AttemptPart::Whole | AttemptPart::Turn(_) | AttemptPart::Arbiter(_) => false,
        };
        let is_taken = {
            let mut inner = self.inner();
            let is_taken = waits || inner.has_turn(&mission).is_some_and(|other| other != dispatch);
            let Some(job) = inner.jobs.get_mut(&dispatch) else { return Err(late()) };
            (job.has_turn, job.waits_for_turn) = (!is_taken, waits);
            is_taken
        };
        // While it waits for those before it, one of them may be without a worker: it can take that on.
        self.inner().offer_again(home, &attempt.worker);
        if is_taken {
            return Ok(not_yet);
        }
        // Read when the turn is taken: what was reported before is stored.
        let seen = missions::leased(home, mission.as_str())?;
        Ok(MergeTurn { ready: true, commit: tip(&seen).map(str::to_owned), ..not_yet })
    }

    /// A report that says where the work of the run stands counts only if that was merged with where it stands now, and only
    /// one at a time: who reports has the turn, or takes it. A worker that speaks an older version knows of no turns.
    pub(super) fn must_have_turn(
        &self,
        home: &Arc<Home>,
        dispatch: Dispatch,
        report: &StepReport,
    ) -> Result<(), Problem> {
        let moves = report.commit.is_some() && report.status == AttemptStatus::Completed.word();
        if !(moves && self.keeps_turns(dispatch, report)) {
            return Ok(());
        }
        let (mission, step, part) = {
            let inner = self.inner();
            let job = inner.jobs.get(&dispatch).ok_or_else(late)?;
            (job.mission.clone(), job.wanted.step, job.wanted.part)
        };
        let seen = missions::leased(home, mission.as_str())?;
        let waits = matches!(part, AttemptPart::Item(item) if seen.state.has_open_before(step, item));
        let is_taken = {
            let mut inner = self.inner();
            let is_taken = waits || inner.has_turn(&mission).is_some_and(|other| other != dispatch);
            inner.jobs.get_mut(&dispatch).into_iter().for_each(|job| job.has_turn = !is_taken);
            is_taken
        };
        // Read when the turn is taken: what was reported before is stored.
        if !is_taken && tip(&missions::leased(home, mission.as_str())?) == report.onto.as_deref() {
            return Ok(());
        }
        let message = "the work of the run has moved on since this was merged with it";
        Err(Problem::new(ProblemStatus::Conflict, NO_MERGE_TURN, message)
            .hint("POST /v1/runs/merge-turn asks for the turn; merge again"))
    }

    /// Whether a worker has to wait for its turn: it said when it registered that it knows of turns, or says so now. What a report
    /// leaves out frees no worker from that.
    fn keeps_turns(&self, dispatch: Dispatch, report: &StepReport) -> bool {
        let inner = self.inner();
        let worker = inner.jobs.get(&dispatch).and_then(|job| inner.workers.get(&job.worker));
        let registered = worker.and_then(|worker| worker.protocol);
        [registered, report.protocol].into_iter().flatten().any(|version| version >= MERGES)
    }

    /// Whether the work of a run has moved on since a worker of an older version began, which knows of no turns: what it has
    /// pushed does not hold that.
    pub(super) fn is_overtaken(&self, dispatch: Dispatch, report: &StepReport, seen: &RunSnapshot) -> bool {
        let from = self.inner().jobs.get(&dispatch).and_then(|job| job.started_from.clone());
        !self.keeps_turns(dispatch, report)
            && report.commit.is_some()
            && from.is_some_and(|from| from.as_deref() != tip(seen))
    }
}

/// What becomes of such a step: it is made again, from where the work stands.
pub(super) fn overtaken() -> AttemptReport {
    let error = "the work of the run has moved on meanwhile, and the worker is of a version that cannot merge with it";
    AttemptReport::Failed { kind: FailureKind::Lost, error: error.to_owned(), outcome: StepOutcome::default() }
}

impl RosterState {
    /// The handing-out that has the turn of a mission.
    fn has_turn(&self, mission: &RunId) -> Option<Dispatch> {
        let mut held = self.jobs.iter().filter(|(_, job)| job.mission == *mission);
        held.find(|(_, job)| job.has_turn).map(|(dispatch, _)| *dispatch)
    }
}
