//! Those who perform the steps of runs in a simulated life: the engine's own hands, and a lasting worker that is slow,
//! fails, dies, is cut off, and answers twice or late.

use sluice_core::machine::Moment;
use sluice_core::recipe::{Data, FailureKind};
use sluice_core::run::{Outcome, Report};
use sluice_engine::actor::Outcome as Done;
use sluice_engine::reactor::{Assignment, Message};
use sluice_engine::workers::{Offer, WorkerId};

use crate::bug::Bug;
use crate::hands::is_task;
use crate::world::{CALM, Due, Life};

/// How long a lasting worker may be silent, in milliseconds.
pub(crate) const LEASE: i64 = 5_000;

impl Life {
    pub(crate) fn join_workers(&mut self) {
        let own =
            Offer { id: WorkerId("own".into()), role: "any".into(), group: "sim".into(), capacity: 2, lease: None };
        self.reactor.receive(Message::Joined(own), Moment(self.now));
        self.join_lasting();
    }

    pub(crate) fn lasting_name(&self) -> WorkerId {
        WorkerId(format!("lasting-{}", self.lasting))
    }

    pub(crate) fn join_lasting(&mut self) {
        let id = self.lasting_name();
        let offer = Offer { id: id.clone(), role: "any".into(), group: "sim".into(), capacity: 3, lease: Some(LEASE) };
        self.reactor.receive(Message::Joined(offer), Moment(self.now));
        self.at(0, Due::Heartbeat(id));
    }

    /// The lasting worker is gone. If it is only cut off, it goes on until its lease is over, and its answers arrive
    /// when nobody wants them any more.
    pub(crate) fn worker_lost(&mut self, dies: bool) {
        self.note(if dies { "the lasting worker dies" } else { "the lasting worker is cut off" });
        let name = self.lasting_name();
        let lost = |due: &Due| match due {
            Due::Heartbeat(worker) => *worker == name,
            Due::Performed { assignment, .. } => assignment.worker.as_ref() == Some(&name),
            _ => false,
        };
        let keys: Vec<(i64, u64)> = self.due.iter().filter(|(_, due)| lost(due)).map(|(key, _)| *key).collect();
        for key in keys {
            let Some(Due::Performed { assignment, who, .. }) = self.due.remove(&key) else { continue };
            match dies {
                true => self.watch.ends(&assignment.stream, &assignment.effect.id, who),
                false => {
                    // It stops when it has finished, or when its lease is over, whichever is first.
                    let stops = (key.0 - self.now).clamp(0, LEASE * 2 / 3);
                    let (stream, effect) = (assignment.stream.clone(), assignment.effect.id.clone());
                    self.at(stops, Due::Abandons { stream, effect, who });
                    let late = LEASE + self.soon(3_000);
                    self.at(late, Due::Late { assignment, outcome: None });
                }
            }
        }
        self.lasting += 1;
        let wait = self.soon(10_000);
        self.at(wait, Due::WorkerJoins);
    }

    pub(crate) fn perform(&mut self, assignment: Assignment) -> Result<(), String> {
        if self.bug == Some(Bug::ForgetsEffects) && self.chance.percent(5) {
            return Ok(());
        }
        let gone = |worker: &WorkerId| worker.0.starts_with("lasting") && *worker != self.lasting_name();
        if assignment.worker.as_ref().is_some_and(gone) {
            return Ok(()); // nobody is there to hear it
        }
        let times = if self.bug == Some(Bug::HandsOutTwice) && self.chance.percent(5) { 2 } else { 1 };
        for _ in 0..times {
            if is_task(&assignment.stream) {
                self.hand_to_task(assignment.clone())?;
                continue;
            }
            self.performances += 1;
            let who = self.performances;
            if assignment.effect.kind == "perform" {
                self.note(&format!("{}: {} begins ({who})", assignment.stream, assignment.effect.id));
                self.watch.begins(&assignment.stream, &assignment.effect.id, who)?;
            }
            let wait = if self.chance.percent(5) { self.soon(40_000) } else { self.soon(2_000) };
            let due = Due::Performed { assignment: assignment.clone(), who, epoch: self.epoch };
            self.at(wait, due);
        }
        Ok(())
    }

    /// What a worker is at.
    pub(crate) fn at_hand(&self, worker: &WorkerId) -> Vec<u64> {
        let held = |due: &Due| match due {
            Due::Performed { assignment, .. } if assignment.worker.as_ref() == Some(worker) => {
                Some(assignment.dispatch)
            }
            _ => None,
        };
        self.due.values().filter_map(held).collect()
    }

    /// An answer that nobody waits for any more.
    pub(crate) fn late(&mut self, it: Assignment, outcome: Option<Done>) {
        self.note(&format!("{}: a late answer to {}", it.stream, it.effect.id));
        let outcome = outcome.unwrap_or_else(|| Done::Run(self.report()));
        let dispatch = match self.bug {
            Some(Bug::TakesLateAnswers) => self.newest(&it).unwrap_or(it.dispatch),
            _ => it.dispatch,
        };
        let message = Message::Ended { token: None, stream: it.stream, effect: it.effect.id, dispatch, outcome };
        self.reactor.receive(message, Moment(self.now));
    }

    /// The newest handing-out of the same effect, for an engine that cannot tell them apart.
    fn newest(&self, it: &Assignment) -> Option<u64> {
        self.due.values().rev().find_map(|due| match due {
            Due::Performed { assignment, .. } | Due::Acts { assignment } | Due::Answers { assignment, .. }
                if assignment.stream == it.stream && assignment.effect.id == it.effect.id =>
            {
                Some(assignment.dispatch)
            }
            _ => None,
        })
    }

    pub(crate) fn performed(&mut self, it: Assignment, who: u64, epoch: u64) {
        let own = it.worker.as_ref().is_none_or(|worker| worker.0 == "own");
        if own && epoch != self.epoch {
            return; // it went with the process that did it
        }
        self.watch.ends(&it.stream, &it.effect.id, who);
        let outcome = if it.effect.kind == "perform" { Done::Run(self.report()) } else { Done::Done };
        self.note(&format!("{}: {} ends ({who})", it.stream, it.effect.id));
        let dispatch = it.dispatch;
        let twice = self.chance.percent(5);
        for _ in 0..=usize::from(twice) {
            let message = Message::Ended {
                token: None,
                stream: it.stream.clone(),
                effect: it.effect.id.clone(),
                dispatch,
                outcome: outcome.clone(),
            };
            self.reactor.receive(message, Moment(self.now));
        }
    }

    fn report(&mut self) -> Report {
        let words = ["PASS", "FAIL", "done", "actionable", "PASS", "done"];
        let outcome = Outcome {
            summary: "so".into(),
            result: Some((*self.chance.pick(&words)).into()),
            output: Data::Text("out".into()),
            ..Outcome::default()
        };
        match self.chance.percent(if self.now < CALM { 15 } else { 3 }) {
            true => {
                let kind = *self.chance.pick(&FailureKind::ALL);
                Report::Failed { kind, error: "no luck".into(), outcome }
            }
            false => Report::Completed(outcome),
        }
    }
}
