//! The decisions of a run: what an input leads to, and what can go on because of it.

use super::agents::may_say;
use super::effect::{Effect, Part, TimerKey};
use super::event::{Event, Failure, Outcome, QuestionKind, SkipReason};
use super::input::{Given, Input, Mode, Report};
use super::law::Status;
use super::parts::CONFLICT;
use super::plan::Plan;
use super::record::{Book, MOST_LOSSES, asks};
use super::sketch::Sketch;
use super::state::{End, Progress, RunState, StepStatus, parts, takes_place};
use super::values::Locals;
use crate::machine::{Decision, Moment, Refusal, RefusalCode};
use crate::recipe::{FailureKind, Join, OnExhausted, StepId, Work};

type Decided = Result<Decision<Event, Effect>, Refusal>;

/// The beginning of a run.
pub fn begin(plan: &Plan, given: Given, now: Moment) -> Decision<Event, Effect> {
    let state = RunState::new(plan, given.clone(), now);
    let mut sketch = Sketch::new(plan, &state, now);
    sketch.happens(Event::Started { given: Box::new(given), at: now });
    if let Some(timeout) = plan.recipe.timeout {
        sketch.wants(Effect::SetTimer(TimerKey::Run, now.after(timeout)));
    }
    sketch.forward();
    sketch.blocks();
    Decision { events: sketch.events, effects: sketch.effects }
}

/// What `input` leads to.
pub fn decide(plan: &Plan, state: &RunState, input: &Input, now: Moment) -> Decided {
    let mut sketch = Sketch::new(plan, state, now);
    match input {
        Input::By { asker, input } => {
            may_say(asker, input)?;
            return decide(plan, state, input, now);
        }
        Input::Ask { by, ask } => sketch.ask(by, ask)?,
        Input::Said { by, report } => sketch.said(by, report)?,
        Input::Ended { step, attempt, part, report } => sketch.ended(*step, *attempt, *part, report)?,
        Input::Lost { step, attempt, part } => {
            let error = "its worker went away".to_owned();
            let report = Report::Failed { kind: FailureKind::Crashed, error, outcome: Outcome::default() };
            sketch.ended(*step, *attempt, *part, &report)?;
        }
        Input::Timer(key) => sketch.timer(*key),
        Input::Answer { question, option, message } => sketch.answer(*question, option, message.clone())?,
        Input::Retry { step, guidance } => sketch.retry(*step, guidance.clone())?,
        Input::Cancel { reason } => sketch.cancel(reason)?,
        Input::ByHand { step, what } => sketch.by_hand(*step, what)?,
        Input::Close { summary } => sketch.close(summary)?,
    }
    sketch.forward();
    sketch.blocks();
    Ok(Decision { events: sketch.events, effects: sketch.effects })
}

pub(super) fn not_ready(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::NotReady, message)
}

impl Sketch<'_> {
    pub(super) fn name(&self, id: StepId) -> String {
        self.plan.recipe.step(id).name.to_string()
    }

    pub(super) fn still_going(&self) -> Result<(), Refusal> {
        match self.end() {
            None => Ok(()),
            Some(_) => Err(Refusal::new(RefusalCode::Finished, "the run has ended")),
        }
    }

    /// Goes on as far as it can: looks at what waits for nothing more, begins what is ready, and ends the run.
    fn forward(&mut self) {
        while self.end().is_none() {
            let mut moved = false;
            for id in self.parked() {
                moved |= self.kind(id) == Status::Waiting && self.consider(id);
            }
            while let Some(id) = self.next_to_start() {
                self.start(id);
                moved = true;
            }
            if !moved {
                break;
            }
        }
        if self.end().is_none() && self.open() == 0 && self.base.given.mode == Mode::Engine {
            self.finish();
        }
    }

    /// Notes that the run has come to wait for a person. What has happened meanwhile begins another wait.
    fn blocks(&mut self) {
        let was_held = self.base.status() == "held";
        let Some(step) = self.held_by().filter(|_| !was_held) else { return };
        let reason = self.step(step).questions().next().map(|question| question.reason.clone()).unwrap_or_default();
        self.happens(Event::Blocked { step, reason });
    }

    fn next_to_start(&self) -> Option<StepId> {
        self.first_ready().filter(|first| self.has_room(*first))
    }

    /// Decides about a step all of whose needs have ended; true if something came of it.
    fn consider(&mut self, id: StepId) -> bool {
        let (step, now) = (self.plan.recipe.step(id), self.now);
        let of = |status: Status| step.needs.iter().copied().find(|need| self.kind(*need) == status);
        let failed = of(Status::Failed).or_else(|| of(Status::Cancelled));
        let blocked = match step.join {
            Join::NoneFailed | Join::AllCompleted => failed,
            Join::AnyCompleted => failed.filter(|_| of(Status::Completed).is_none()),
        };
        let left_out = match step.join {
            Join::NoneFailed => false,
            Join::AllCompleted => of(Status::Skipped).is_some(),
            Join::AnyCompleted => !step.needs.is_empty() && of(Status::Completed).is_none(),
        };
        if let Some(need) = blocked.filter(|_| !step.always) {
            self.happens(Event::StepFailed { step: id, failure: Failure::Upstream(need), at: now });
        } else if left_out && !step.always {
            self.happens(Event::StepSkipped { step: id, reason: SkipReason::Join, at: now });
        } else if step.condition.as_ref().is_some_and(|condition| !self.holds(condition, id)) {
            if self.may_change(id) {
                return false;
            }
            self.happens(Event::StepSkipped { step: id, reason: SkipReason::Condition, at: now });
        } else if self.is_exhausted(id) {
            match step.loop_back.as_ref().map(|back| back.on_exhausted) {
                Some(OnExhausted::Hold) => {
                    let reason = format!("the loop back from `{}` has used up its turns", step.name);
                    self.holds_up(id, QuestionKind::LoopExhausted, reason);
                }
                Some(OnExhausted::Fail) | None => {
                    self.happens(Event::StepFailed { step: id, failure: Failure::LoopExhausted, at: now });
                }
            }
        } else if self.first_ready().is_none() && self.has_room(id) {
            self.start(id);
        } else {
            self.happens(Event::StepReady(id));
        }
        true
    }

    /// Whether a step could begin at once.
    fn has_room(&self, id: StepId) -> bool {
        let free = self.running() < self.plan.recipe.max_parallel || !takes_place(self.plan.recipe.step(id));
        free && self.base.given.mode == Mode::Engine && self.end().is_none()
    }

    /// Whether what the condition of `reader` reads can still become something else: a loop may run it again.
    fn may_change(&self, reader: StepId) -> bool {
        let reads = &self.plan.reads[reader.0 as usize];
        self.plan.loops.iter().any(|way| {
            let alive = !self.kind(way.from).has_ended() && !self.is_exhausted(way.from);
            // What lies in the loop is decided anew in each round, and must be decided for the loop to go round.
            alive && !way.body.contains(&reader) && way.body.iter().any(|step| reads.contains(step))
        })
    }

    fn is_exhausted(&self, id: StepId) -> bool {
        let Some(way) = self.plan.loop_from(id) else { return false };
        let state = self.step(id);
        state.turns >= way.max.saturating_add(state.granted)
    }

    fn ended(&mut self, id: StepId, attempt: u32, part: Part, report: &Report) -> Result<(), Refusal> {
        self.still_going()?;
        let state = self.step(id);
        let over = || not_ready(format!("attempt {attempt} of `{}` is over", self.name(id)));
        let (progress, stopping) = match &state.status {
            StepStatus::Running(progress) => (progress.clone(), None),
            StepStatus::Stopping(progress, failure) => (progress.clone(), Some(failure.clone())),
            _ => return Err(over()),
        };
        if state.attempts != attempt || !parts(self, id, &progress).contains(&part) {
            return Err(over());
        }
        let report = &self.settled(id, part, report);
        let withdrawn = self.withdraw(id, Some(part));
        self.part_over(id, part, report, stopping);
        if withdrawn && self.step(id).attempts == attempt {
            self.time_goes_on(id);
        }
        Ok(())
    }

    fn part_over(&mut self, id: StepId, part: Part, report: &Report, stopping: Option<Failure>) {
        let losses = self.step(id).losses;
        match (report, part) {
            (Report::Completed(outcome), Part::Whole) => match self.plan.missing_from(id, outcome) {
                None => self.completes(id, outcome.clone()),
                Some(error) => {
                    let failure = stopping.unwrap_or(Failure::Attempt { kind: FailureKind::Failed, error });
                    self.attempt_failed(id, failure, outcome.clone());
                }
            },
            (Report::Completed(outcome), Part::Turn(_)) => {
                self.happens(Event::PartEnded { step: id, part, result: Ok(outcome.clone()) });
                self.unless_stopping(id, stopping);
            }
            (Report::Completed(verdict), Part::Arbiter(turn)) => self.judged(id, turn, verdict, stopping),
            (Report::Completed(outcome), Part::Item(_)) => {
                self.happens(Event::PartEnded { step: id, part, result: Ok(outcome.clone()) });
                self.unless_stopping(id, stopping);
            }
            (Report::Failed { kind: FailureKind::Crashed, .. }, Part::Item(_)) if losses < MOST_LOSSES => {
                self.happens(Event::PartLost { step: id, part });
                self.unless_stopping(id, stopping);
            }
            (Report::Failed { error, .. }, Part::Item(_)) => {
                self.happens(Event::PartEnded { step: id, part, result: Err(error.clone()) });
                self.unless_stopping(id, stopping);
            }
            (Report::Failed { kind, error, outcome }, Part::Whole | Part::Turn(_) | Part::Arbiter(_)) => {
                let failure = stopping.unwrap_or(Failure::Attempt { kind: *kind, error: error.clone() });
                self.attempt_failed(id, failure, outcome.clone());
            }
        }
    }

    /// Goes on with an attempt of several parts, unless it is being ended and this was the last of them.
    fn unless_stopping(&mut self, id: StepId, stopping: Option<Failure>) {
        let Some(failure) = stopping else { return self.go_on(id) };
        let StepStatus::Stopping(progress, _) = &self.step(id).status else { return };
        let rest = match progress {
            Progress::Items { running, .. } => *running,
            Progress::Single | Progress::Turns { .. } => 0,
        };
        if rest == 0 {
            self.attempt_failed(id, failure, Outcome::default());
        }
    }

    /// The arbiter has spoken.
    fn judged(&mut self, id: StepId, turn: u32, verdict: &Outcome, stopping: Option<Failure>) {
        let (limit, work) = match &self.step(id).status {
            StepStatus::Running(Progress::Turns { limit, said, .. })
            | StepStatus::Stopping(Progress::Turns { limit, said, .. }, _) => {
                (*limit, said.last().map(|turn| turn.work.clone()).unwrap_or_default())
            }
            _ => return,
        };
        self.happens(Event::PartEnded { step: id, part: Part::Arbiter(turn), result: Ok(verdict.clone()) });
        let on_max = match &self.plan.recipe.step(id).work {
            Work::AgentLoop { on_max, .. } => *on_max,
            _ => return,
        };
        match verdict.result.as_deref() {
            Some("done") => self.completes(id, Outcome { result: Some("done".into()), ..work }),
            Some("actionable") if turn < limit => self.unless_stopping(id, stopping),
            Some("actionable") if asks(on_max) => {
                let reason = format!("the arbiter still finds something to do after {turn} turns");
                self.holds_up(id, QuestionKind::MaxIterations, reason);
            }
            Some("actionable") => self.completes(id, Outcome { result: Some("actionable".into()), ..work }),
            _ => {
                let error = "the arbiter said neither `done` nor `actionable`".to_owned();
                let failure = Failure::Attempt { kind: FailureKind::Failed, error };
                self.attempt_failed(id, failure, Outcome::default());
            }
        }
    }

    pub(super) fn completes(&mut self, id: StepId, mut outcome: Outcome) {
        if matches!(self.plan.recipe.step(id).work, Work::Gate { .. }) {
            outcome.result = Some("PASS".into());
        }
        let now = self.now;
        self.clear_timeout(id);
        self.happens(Event::StepCompleted { step: id, outcome, at: now });
        if let Some(way) = self.plan.loop_from(id).filter(|_| !self.is_exhausted(id)) {
            self.happens(Event::LoopedBack { from: id, to: way.to });
        }
    }

    pub(super) fn fails(&mut self, id: StepId, failure: Failure) {
        let now = self.now;
        self.clear_timeout(id);
        self.happens(Event::StepFailed { step: id, failure, at: now });
    }

    /// An attempt has failed: it is made again, or a person is asked, or the step has failed.
    fn attempt_failed(&mut self, id: StepId, failure: Failure, outcome: Outcome) {
        let step = self.plan.recipe.step(id);
        // Made again it would only be in conflict again, unless a person has looked at both.
        if let Failure::Attempt { error, .. } = &failure
            && step.own_workspace
            && error.starts_with(CONFLICT)
        {
            return self.holds_up(id, QuestionKind::PartialFailure, error.clone());
        }
        let state = self.step(id);
        let kind = match &failure {
            Failure::Attempt { kind, .. } => *kind,
            Failure::Upstream(_) | Failure::Undefined(_) | Failure::LoopExhausted | Failure::Aborted => {
                FailureKind::Failed
            }
        };
        let allowed = step.retry.on.is_empty() || step.retry.on.contains(&kind);
        let (again, wait) = match kind {
            FailureKind::Crashed if state.losses < MOST_LOSSES => (true, std::time::Duration::ZERO),
            _ => {
                let doubled = step.retry.backoff.saturating_mul(1u32.checked_shl(state.failures).unwrap_or(u32::MAX));
                (allowed && state.failures < step.retry.max, doubled)
            }
        };
        let (until, attempt) = (self.now.after(wait), state.attempts);
        if again {
            self.clear_timeout(id);
            self.happens(Event::StepRetried { step: id, failure, until });
            match wait.is_zero() {
                true => self.start(id),
                false => self.wants(Effect::SetTimer(TimerKey::Backoff(id, attempt), until)),
            }
        } else if let Work::Gate { message, .. } = &step.work {
            let code = outcome.exit_code.map(|code| format!("exit code {code}"));
            let reason = format!("the check failed: {}", code.unwrap_or_else(|| failure.describe(self)));
            // What its author says about it comes first; words that cannot be filled are no reason to say nothing.
            let words = message.as_ref().and_then(|text| self.fill(text, id, &Locals::default()).ok());
            let reason = words.map_or(reason.clone(), |words| format!("{} ({reason})", words.trim()));
            self.holds_up(id, QuestionKind::Gate, reason);
        } else {
            self.fails(id, failure);
        }
    }

    fn timer(&mut self, key: TimerKey) {
        if self.end().is_some() {
            return;
        }
        match key {
            TimerKey::Timeout(id, attempt) => {
                let state = self.step(id);
                // While a person is asked the time of the step stands still.
                if state.attempts == attempt && state.is_busy() {
                    let error = "it took longer than its `timeout`".to_owned();
                    self.stops(id, Failure::Attempt { kind: FailureKind::Timeout, error });
                }
            }
            TimerKey::Backoff(id, attempt) => {
                if self.kind(id) == Status::Retrying && self.step(id).attempts == attempt {
                    self.start(id);
                }
            }
            TimerKey::Question(question) => self.unanswered(question),
            TimerKey::Run => {
                self.stop_everything();
                let error = "the run took longer than its `timeout`".to_owned();
                self.ends(End::Failed { error });
            }
        }
    }

    /// Ends an attempt with all of its parts, and waits until they have ended.
    pub(super) fn stops(&mut self, id: StepId, failure: Failure) {
        let state = self.step(id);
        let StepStatus::Running(progress) = &state.status else { return };
        let (attempt, stops) = (state.attempts, parts(self, id, progress));
        self.happens(Event::StepStopping { step: id, failure });
        stops.into_iter().for_each(|part| self.wants(Effect::Stop { step: id, attempt, part }));
    }

    /// The run ends: nobody waits for what is under way, nor for what it has asked.
    pub(super) fn stop_everything(&mut self) {
        for step in self.asking() {
            self.withdraw(step, None);
        }
        for (step, attempt, part) in self.base.under_way() {
            self.wants(Effect::Stop { step, attempt, part });
        }
    }
}
