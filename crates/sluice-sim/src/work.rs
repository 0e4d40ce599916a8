//! Those who perform the steps of runs in a simulated life: the engine's own hands, and a lasting worker that is slow,
//! fails, dies, is cut off, and answers twice or late.

use sluice_core::recipe::{Data, FailureKind};
use sluice_core::run::{AttemptReport, StepOutcome};
use sluice_engine::actor::EffectOutcome;
use sluice_engine::reactor::{Assignment, ReactorMessage, ReactorToken};
use sluice_engine::workers::{Dispatch, WorkerId, WorkerOffer};

use crate::bug::SimBug;
use crate::world::{CALM, SimEvent, SimLife, SimRequest, SimWorkerReport};

/// How long a lasting worker may be silent, in milliseconds.
pub(crate) const LEASE: i64 = 5_000;
/// Whose steps the engine's own hands do.
pub(crate) const OWN: &str = "own";
/// Whose steps the lasting worker does.
pub(crate) const ELSEWHERE: &str = "elsewhere";

impl SimLife {
    pub(crate) fn join_workers(&mut self) {
        let own = WorkerOffer {
            id: WorkerId(OWN.into()),
            role: "any".into(),
            group: OWN.into(),
            knows_scratch: true,
            capacity: 2,
            lease: None,
        };
        self.hear(ReactorMessage::Joined(own));
        self.join_lasting();
    }

    pub(crate) fn lasting_name(&self) -> WorkerId {
        WorkerId(format!("lasting-{}", self.lasting))
    }

    pub(crate) fn join_lasting(&mut self) {
        let (id, lease) = (self.lasting_name(), Some(LEASE));
        let offer = WorkerOffer {
            id: id.clone(),
            role: "any".into(),
            group: ELSEWHERE.into(),
            knows_scratch: true,
            capacity: 3,
            lease,
        };
        self.hear(ReactorMessage::Joined(offer));
        let is_beating = |due: &SimEvent| matches!(due, SimEvent::Heartbeat(worker) if *worker == id);
        if !self.due.values().any(|(_, due)| is_beating(due)) {
            self.at(0, SimEvent::Heartbeat(id));
        }
    }

    /// The lasting worker is gone. If it is only cut off, it goes on until its lease is over, and its answers arrive
    /// when nobody wants them any more.
    pub(crate) fn worker_lost(&mut self, dies: bool) {
        self.note(if dies { "the lasting worker dies" } else { "the lasting worker is cut off" });
        let name = self.lasting_name();
        let lost = |due: &SimEvent| match due {
            SimEvent::Heartbeat(worker) => *worker == name,
            SimEvent::Performed { assignment, .. } => assignment.worker.as_ref() == Some(&name),
            _ => false,
        };
        let keys: Vec<(i64, u64)> = self.due.iter().filter(|(_, (_, due))| lost(due)).map(|(key, _)| *key).collect();
        for key in keys {
            let Some((_, SimEvent::Performed { assignment, who, .. })) = self.due.remove(&key) else { continue };
            match dies {
                true => self.watch.ends(&assignment.stream, &assignment.effect.id, who),
                false => {
                    // It stops when it has finished, or when its lease is over, whichever is first.
                    let stops = (key.0 - self.now).clamp(0, LEASE * 2 / 3);
                    let (stream, effect) = (assignment.stream.clone(), assignment.effect.id.clone());
                    self.at(stops, SimEvent::Abandons { stream, effect, who });
                    let late = LEASE + self.soon(3_000);
                    self.at(late, SimEvent::Late { assignment, outcome: None });
                }
            }
        }
        self.lasting += 1;
        let wait = self.soon(10_000);
        self.at(wait, SimEvent::WorkerJoins);
    }

    /// The work of a worker is given to another. One that is there must not lose it.
    pub(crate) fn is_given_up(&mut self, worker: &WorkerId, dispatch: Dispatch) -> Result<(), String> {
        self.note(&format!("{dispatch} of {} is given up", worker.0));
        let is_at_it = *worker == self.lasting_name() && self.at_hand(worker).contains(&dispatch);
        match is_at_it && self.is_owner(self.here) {
            true => Err(format!("{dispatch} of {} is thrown away, and it is at it", worker.0)),
            false => Ok(()),
        }
    }

    pub(crate) fn perform(&mut self, assignment: Assignment) -> Result<(), String> {
        if self.has(SimBug::ForgetsEffects) && self.chance.percent(5) {
            return Ok(());
        }
        let gone = |worker: &WorkerId| worker.0.starts_with("lasting") && *worker != self.lasting_name();
        if assignment.worker.as_ref().is_some_and(gone) {
            return Ok(()); // nobody is there to hear it
        }
        let times = if self.has(SimBug::HandsOutTwice) && self.chance.percent(5) { 2 } else { 1 };
        for _ in 0..times {
            let is_own = assignment.worker.as_ref().is_none_or(|worker| worker.0 == OWN);
            if is_own {
                self.begins(assignment.clone())?;
                continue;
            }
            self.performances += 1;
            let who = self.performances;
            self.note(&format!("{}: {} begins elsewhere ({who})", assignment.stream, assignment.effect.id));
            self.watch.begins(&assignment.stream, &assignment.effect.id, who)?;
            let wait = if self.chance.percent(5) { self.soon(40_000) } else { self.soon(2_000) };
            self.at(wait, SimEvent::Performed { assignment: assignment.clone(), who, outcome: None });
        }
        Ok(())
    }

    pub(crate) fn at_hand(&self, worker: &WorkerId) -> Vec<Dispatch> {
        let is_its = |it: &Assignment| it.worker.as_ref() == Some(worker);
        let held = self.due.values().filter_map(|(_, due)| match due {
            SimEvent::Performed { assignment, .. } => Some(assignment),
            _ => None,
        });
        let told = self.engines.iter().flat_map(|engine| engine.asked.values()).filter_map(|asked| match asked {
            SimRequest::Counts(told) => Some(&told.assignment),
            SimRequest::Begins(..)
            | SimRequest::Goes(_)
            | SimRequest::Lends
            | SimRequest::Hears(_)
            | SimRequest::MayMerge(..)
            | SimRequest::Moves { .. } => None,
        });
        held.chain(told).filter(|it| is_its(it)).map(|it| it.dispatch).collect()
    }

    pub(crate) fn late(&mut self, it: Assignment, outcome: Option<EffectOutcome>) {
        self.note(&format!("{}: a late answer to {}", it.stream, it.effect.id));
        let outcome = outcome.unwrap_or_else(|| EffectOutcome::Run(self.report()));
        let dispatch = match self.bug {
            Some(SimBug::TakesLateAnswers) => self.newest(&it).unwrap_or(it.dispatch),
            _ => it.dispatch,
        };
        self.hear(ReactorMessage::Ended { token: None, stream: it.stream, effect: it.effect.id, dispatch, outcome });
    }

    /// The newest handing-out of the same effect, for an engine that cannot tell them apart.
    fn newest(&self, it: &Assignment) -> Option<Dispatch> {
        self.due.values().rev().find_map(|(_, due)| match due {
            SimEvent::Performed { assignment, .. }
            | SimEvent::Acts { assignment }
            | SimEvent::Answers { assignment, .. }
                if assignment.stream == it.stream && assignment.effect.id == it.effect.id =>
            {
                Some(assignment.dispatch)
            }
            _ => None,
        })
    }

    pub(crate) fn performed(&mut self, it: Assignment, who: u64, outcome: Option<EffectOutcome>) {
        self.watch.ends(&it.stream, &it.effect.id, who);
        self.note(&format!("{}: {} ends elsewhere ({who})", it.stream, it.effect.id));
        let outcome = outcome.unwrap_or_else(|| EffectOutcome::Run(self.report()));
        for _ in 0..=usize::from(self.chance.percent(5)) {
            self.number += 1;
            let token = ReactorToken(self.number);
            let told = SimWorkerReport { assignment: it.clone(), who, outcome: outcome.clone() };
            self.engine().asked.insert(token, SimRequest::Counts(Box::new(told)));
            let (stream, effect, outcome) = (it.stream.clone(), it.effect.id.clone(), outcome.clone());
            self.hear(ReactorMessage::Ended { token: Some(token), stream, effect, dispatch: it.dispatch, outcome });
        }
    }

    /// The engine that somebody has asked something is gone, and has not answered: a worker tells it again, an agent goes on.
    pub(crate) fn unanswered(&mut self, asked: SimRequest) {
        match asked {
            SimRequest::Counts(told) if told.assignment.worker.as_ref() == Some(&self.lasting_name()) => {
                let SimWorkerReport { assignment, who, outcome } = *told;
                self.at(500, SimEvent::Performed { assignment, who, outcome: Some(outcome) });
            }
            SimRequest::Moves { stream, session, stir, .. } => {
                if let Some(process) = self.ground.processes.get_mut(&(stream.clone(), session)) {
                    process.is_asking = false;
                }
                let wait = 300 + self.soon(6_000);
                self.at(wait, SimEvent::Agent { stream, session, stir });
            }
            SimRequest::Counts(_)
            | SimRequest::Begins(..)
            | SimRequest::Goes(_)
            | SimRequest::Lends
            | SimRequest::Hears(_)
            | SimRequest::MayMerge(..) => {}
        }
    }

    pub(crate) fn report(&mut self) -> AttemptReport {
        let words = ["PASS", "FAIL", "done", "actionable", "PASS", "done"];
        let outcome = StepOutcome {
            summary: "so".into(),
            result: Some((*self.chance.pick(&words)).into()),
            output: Data::Text("out".into()),
            ..StepOutcome::default()
        };
        match self.chance.percent(if self.now < CALM { 15 } else { 3 }) {
            true => {
                let kind = *self.chance.pick(&FailureKind::ALL);
                AttemptReport::Failed { kind, error: "no luck".into(), outcome }
            }
            false => AttemptReport::Completed(outcome),
        }
    }
}
