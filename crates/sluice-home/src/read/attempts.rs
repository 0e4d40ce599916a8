//! The attempts of a run, as its log tells of them: when each began and ended, and what its agent used up. It keeps the newest
//! ones; how many older ones it has dropped is counted.

use std::collections::{BTreeMap, VecDeque};

use sluice_api::problem::Problem;
use sluice_api::timeline::{BarEnd, TIME_BARS, TimeBar, Timeline};
use sluice_core::recipe::{StepId, StepWork};
use sluice_core::run::{AgentUsage, AttemptPart, RunEvent, RunPlan};
use sluice_engine::codec::run_event;

use crate::read::runs::{RunSnapshot, stream};
use crate::read::tasks::ReadModel;
use crate::settings::clock::written;

/// The newest events of a run that are looked at; older attempts are not told of.
const MOST_EVENTS: u64 = 50_000;
/// So many are read together: each may be large.
const PAGE: usize = 200;

/// An attempt of a step, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttemptSeen {
    pub(crate) step: StepId,
    pub(crate) part: AttemptPart,
    pub(crate) attempt: u32,
    pub(crate) began: i64,
    pub(crate) ended: Option<i64>,
    pub(crate) end: BarEnd,
    pub(crate) usage: Option<AgentUsage>,
}

/// The attempts of a run, in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct AttemptLog {
    all: VecDeque<AttemptSeen>,
    /// How many older ones were dropped.
    pub(crate) dropped: usize,
    /// Those that are under way, by their place among all there ever were.
    open: BTreeMap<(StepId, AttemptPart), usize>,
    numbers: BTreeMap<StepId, u32>,
}

impl AttemptLog {
    /// The attempts of a run, from the newest of its events.
    pub(crate) fn of(tasks: &ReadModel, seen: &RunSnapshot) -> Result<AttemptLog, Problem> {
        let mut log = AttemptLog::default();
        let mut after = seen.version.saturating_sub(MOST_EVENTS);
        loop {
            let page = tasks.history(&stream(&seen.id), after, PAGE)?;
            for (number, event) in &page {
                after = *number;
                // What this build cannot read tells of no attempt.
                if let Ok(read) = run_event::read(event.version, &event.data) {
                    log.read(&read, event.time, &seen.plan);
                }
            }
            if page.len() < PAGE {
                return Ok(log);
            }
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &AttemptSeen> {
        self.all.iter()
    }

    fn read(&mut self, event: &RunEvent, time: i64, plan: &RunPlan) {
        match event {
            RunEvent::StepStarted { step, attempt, at, .. } => {
                self.numbers.insert(*step, *attempt);
                self.begin(*step, AttemptPart::Whole, at.0);
            }
            RunEvent::PartStarted { step, part } => self.begin(*step, *part, time),
            RunEvent::PartEnded { step, part, result } => {
                if let Ok(outcome) = result {
                    self.uses(*step, *part, outcome.usage.as_deref());
                }
                let end = if result.is_ok() { BarEnd::Completed } else { BarEnd::Failed };
                self.end(*step, *part, end, time);
            }
            RunEvent::PartLost { step, part, .. } => self.end(*step, *part, BarEnd::Ended, time),
            RunEvent::AttemptFailed { step, outcome } => {
                if is_one_agent(plan, *step) {
                    self.uses(*step, AttemptPart::Whole, outcome.usage.as_deref());
                }
            }
            RunEvent::StepCompleted { step, outcome, at } => {
                if is_one_agent(plan, *step) {
                    self.uses(*step, AttemptPart::Whole, outcome.usage.as_deref());
                }
                self.end_step(*step, BarEnd::Completed, at.0);
            }
            RunEvent::StepFailed { step, at, .. } => self.end_step(*step, BarEnd::Failed, at.0),
            RunEvent::StepRetried { step, .. } | RunEvent::StepHeld { step, .. } => {
                self.end_step(*step, BarEnd::Failed, time);
            }
            RunEvent::StepSkipped { step, at, .. } | RunEvent::StepCancelled { step, at } => {
                self.end_step(*step, BarEnd::Ended, at.0);
            }
            RunEvent::Ended { at, .. } => {
                let open: Vec<(StepId, AttemptPart)> = self.open.keys().copied().collect();
                open.into_iter().for_each(|(step, part)| self.end(step, part, BarEnd::Ended, at.0));
            }
            RunEvent::Started { .. }
            | RunEvent::StepReady(_)
            | RunEvent::Answered { .. }
            | RunEvent::Asked { .. }
            | RunEvent::Withdrawn { .. }
            | RunEvent::Said { .. }
            | RunEvent::StepStopping { .. }
            | RunEvent::LoopedBack { .. }
            | RunEvent::Reopened { .. }
            | RunEvent::Blocked { .. }
            | RunEvent::Ending { .. } => {}
        }
    }

    fn begin(&mut self, step: StepId, part: AttemptPart, at: i64) {
        self.end(step, part, BarEnd::Ended, at);
        if self.all.len() >= TIME_BARS {
            self.all.pop_front();
            self.dropped += 1;
        }
        let attempt = self.numbers.get(&step).copied().unwrap_or(1);
        self.open.insert((step, part), self.dropped + self.all.len());
        self.all.push_back(AttemptSeen {
            step,
            part,
            attempt,
            began: at,
            ended: None,
            end: BarEnd::Running,
            usage: None,
        });
    }

    fn uses(&mut self, step: StepId, part: AttemptPart, usage: Option<&AgentUsage>) {
        let place = self.open.get(&(step, part)).and_then(|place| place.checked_sub(self.dropped));
        if let (Some(seen), Some(usage)) = (place.and_then(|place| self.all.get_mut(place)), usage) {
            seen.usage = Some(*usage);
        }
    }

    fn end(&mut self, step: StepId, part: AttemptPart, end: BarEnd, at: i64) {
        let place = self.open.remove(&(step, part)).and_then(|place| place.checked_sub(self.dropped));
        if let Some(seen) = place.and_then(|place| self.all.get_mut(place)) {
            (seen.end, seen.ended) = (end, Some(at));
        }
    }

    /// The attempt of a step has ended, and with it every part that is still under way.
    fn end_step(&mut self, step: StepId, end: BarEnd, at: i64) {
        self.end(step, AttemptPart::Whole, end, at);
        let parts: Vec<AttemptPart> = self.open.keys().filter(|(of, _)| *of == step).map(|(_, part)| *part).collect();
        parts.into_iter().for_each(|part| self.end(step, part, BarEnd::Ended, at));
    }

    /// The time bars of a run.
    pub(crate) fn timeline(&self, seen: &RunSnapshot, now: i64) -> Timeline {
        let bar = |it: &AttemptSeen| TimeBar {
            step: seen.plan.recipe.step(it.step).name.to_string(),
            item: item(it.part),
            turn: turn(it.part),
            arbiter: matches!(it.part, AttemptPart::Arbiter(_)),
            attempt: it.attempt,
            end: it.end,
            started_at: written(it.began),
            finished_at: it.ended.map(written),
        };
        Timeline {
            run: seen.id.to_string(),
            now: written(now),
            started_at: written(seen.state.started.0),
            finished_at: seen.state.end.as_ref().map(|_| written(seen.card.updated)),
            bars: self.all.iter().map(bar).collect(),
            left_out: self.dropped,
        }
    }
}

pub(crate) fn item(part: AttemptPart) -> Option<u32> {
    if let AttemptPart::Item(index) = part { Some(index) } else { None }
}

pub(crate) fn turn(part: AttemptPart) -> Option<u32> {
    if let AttemptPart::Turn(turn) | AttemptPart::Arbiter(turn) = part { Some(turn) } else { None }
}

/// Whether one agent does the step. The end of a loop and of a fan-out says again what its parts have said.
fn is_one_agent(plan: &RunPlan, step: StepId) -> bool {
    matches!(plan.recipe.step(step).work, StepWork::Agent { .. })
}

/// Whether an agent makes this attempt, and no command, no task and no fan-out as a whole.
pub(crate) fn is_of_agent(plan: &RunPlan, step: StepId, part: AttemptPart) -> bool {
    match (&plan.recipe.step(step).work, part) {
        (StepWork::Agent { .. }, _) => true,
        (StepWork::AgentLoop { .. } | StepWork::ParallelAgents { .. }, AttemptPart::Whole) => false,
        (StepWork::AgentLoop { .. } | StepWork::ParallelAgents { .. }, _) => true,
        (StepWork::Script { .. } | StepWork::Gate { .. } | StepWork::Task(_), _) => false,
    }
}

/// An event of a run, as far as it tells that an agent began, or what one has used up.
pub(crate) enum UsageNews {
    Began(StepId),
    Used(StepId, AgentUsage),
}

impl UsageNews {
    pub(crate) fn of(event: &RunEvent, plan: &RunPlan) -> Option<UsageNews> {
        let began = |step: StepId, part| is_of_agent(plan, step, part).then_some(UsageNews::Began(step));
        let used =
            |step: StepId, usage: &Option<Box<AgentUsage>>| usage.as_deref().map(|usage| UsageNews::Used(step, *usage));
        if let RunEvent::StepStarted { step, .. } = event {
            return began(*step, AttemptPart::Whole);
        }
        if let RunEvent::PartStarted { step, part } = event {
            return began(*step, *part);
        }
        if let RunEvent::PartEnded { step, result: Ok(outcome), .. } = event {
            return used(*step, &outcome.usage);
        }
        if let RunEvent::AttemptFailed { step, outcome } | RunEvent::StepCompleted { step, outcome, .. } = event {
            return used(*step, &outcome.usage).filter(|_| is_one_agent(plan, *step));
        }
        None
    }
}
