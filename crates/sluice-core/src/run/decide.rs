//! The decisions of a run: what an input leads to, and what can go on because of it.

use std::collections::BTreeSet;

use super::agents::may_say;
use super::effect::{AttemptPart, RunEffect, TimerKey};
use super::event::{QuestionKind, RunEvent, SkipReason, StepFailure, StepOutcome};
use super::input::{AttemptReport, RunInput, RunKind, RunMode, RunParameters};
use super::law::StepStatusKind;
use super::parts::{CONFLICT, TIMED_OUT};
use super::pending::RunPending;
use super::plan::{PlanLoop, RunPlan};
use super::record::{MOST_LOSSES, RunRecord, asks};
use super::state::{AttemptProgress, RunConclusion, RunState, StepStatus, attempt_of, parts, takes_place};
use super::values::Locals;
use super::waits::{again_after, pause_after};
use crate::machine::{ASKED, Decision, Moment, Refusal, RefusalCode};
use crate::recipe::{FailureKind, Join, OnExhausted, StepId, StepWork, StepWorkspace};

/// The exit code of a command that has none: nobody saw it end.
const NO_EXIT_CODE: i32 = -1;

type RunDecision = Result<Decision<RunEvent, RunEffect>, Refusal>;

/// The beginning of a run.
pub fn begin(plan: &RunPlan, given: RunParameters, now: Moment) -> Decision<RunEvent, RunEffect> {
    let state = RunState::new(plan, given.clone(), now);
    let mut sketch = RunPending::new(plan, &state, now);
    sketch.happens(RunEvent::Started { given: Box::new(given), at: now });
    if let Some(timeout) = plan.recipe.timeout {
        sketch.wants(RunEffect::SetTimer(TimerKey::Run, now.after(timeout)));
    }
    sketch.done()
}

/// What `input` leads to.
pub fn decide(plan: &RunPlan, state: &RunState, input: &RunInput, now: Moment) -> RunDecision {
    let mut sketch = RunPending::new(plan, state, now);
    match input {
        RunInput::By { asker, input } => {
            may_say(asker, input)?;
            return decide(plan, state, input, now);
        }
        RunInput::Ask { by, ask } => sketch.ask(by, ask)?,
        RunInput::Said { by, report } => sketch.said(by, report)?,
        RunInput::Ended { step, attempt, part, report } => sketch.ended(*step, *attempt, *part, report)?,
        RunInput::Lost { step, attempt, part } => {
            let error = "its worker went away".to_owned();
            let report = AttemptReport::Failed { kind: FailureKind::Lost, error, outcome: StepOutcome::default() };
            sketch.ended(*step, *attempt, *part, &report)?;
        }
        RunInput::Timer(key) => sketch.timer(*key),
        RunInput::Answer { question, option, message } => sketch.answer(*question, option, message.clone())?,
        RunInput::Retry { step, guidance } => sketch.retry(*step, guidance.clone())?,
        RunInput::Cancel { reason } => sketch.cancel(reason)?,
        RunInput::ByHand { step, what } => sketch.by_hand(*step, what)?,
        RunInput::Close { summary } => sketch.close(summary)?,
    }
    Ok(sketch.done())
}

pub(super) fn not_ready(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::NotReady, message)
}

impl RunPending<'_> {
    pub(super) fn name(&self, id: StepId) -> String {
        self.plan.recipe.step(id).name.to_string()
    }

    /// The decision, once everything has gone on that can.
    fn done(mut self) -> Decision<RunEvent, RunEffect> {
        self.forward();
        self.blocks();
        Decision { events: self.events, effects: self.effects }
    }

    pub(super) fn still_going(&self) -> Result<(), Refusal> {
        self.must_be_open("")
    }

    /// The run has not ended; `so` says what follows for what was asked.
    pub(super) fn must_be_open(&self, so: &str) -> Result<(), Refusal> {
        let ended = match &self.end {
            None => return Ok(()),
            Some(RunConclusion::Completed { .. }) => "completed",
            Some(RunConclusion::Failed { .. }) => "failed",
            Some(RunConclusion::Cancelled { .. }) => "cancelled",
        };
        let what = if self.base.given.origin.kind == RunKind::Process { "process" } else { "run" };
        Err(Refusal::new(RefusalCode::Finished, format!("{what} {ASKED} has ended ({ended}){so}")))
    }

    /// Goes on as far as it can: looks at what waits for nothing more, begins what is ready, and ends the run.
    fn forward(&mut self) {
        while self.end.is_none() {
            let mut moved = false;
            for id in self.parked() {
                moved |= self.kind(id) == StepStatusKind::Waiting && self.consider(id);
            }
            while let Some(id) = self.next_to_start() {
                self.start(id);
                moved = true;
            }
            if !moved {
                break;
            }
        }
        if self.end.is_none() && self.counts.open == 0 && self.base.given.mode == RunMode::Engine {
            self.finish();
        }
    }

    /// Notes that the run has come to wait for a person. What has happened meanwhile begins another wait.
    fn blocks(&mut self) {
        let was_held = self.base.status() == "held";
        let Some(step) = self.held_by().filter(|_| !was_held) else { return };
        let reason = self.step(step).questions().next().map(|question| question.reason.clone()).unwrap_or_default();
        self.happens(RunEvent::Blocked { step, reason });
    }

    fn next_to_start(&self) -> Option<StepId> {
        self.first_ready().filter(|first| self.has_room(*first))
    }

    /// Decides about a step all of whose needs have ended; true if something came of it.
    fn consider(&mut self, id: StepId) -> bool {
        let (step, now) = (self.plan.recipe.step(id), self.now);
        let of = |status: StepStatusKind| step.needs.iter().copied().find(|need| self.kind(*need) == status);
        let failed = of(StepStatusKind::Failed).or_else(|| of(StepStatusKind::Cancelled));
        let blocked = match step.join {
            Join::NoneFailed | Join::AllCompleted => failed,
            Join::AnyCompleted => failed.filter(|_| of(StepStatusKind::Completed).is_none()),
        };
        let left_out = match step.join {
            Join::NoneFailed => false,
            Join::AllCompleted => of(StepStatusKind::Skipped).is_some(),
            Join::AnyCompleted => !step.needs.is_empty() && of(StepStatusKind::Completed).is_none(),
        };
        if let Some(need) = blocked.filter(|_| !step.always) {
            self.happens(RunEvent::StepFailed { step: id, failure: StepFailure::Upstream(need), at: now });
        } else if left_out && !step.always {
            self.happens(RunEvent::StepSkipped { step: id, reason: SkipReason::Join, at: now });
        } else if step.condition.as_ref().is_some_and(|condition| !self.holds(condition, id)) {
            if self.may_change(id) {
                return false;
            }
            self.happens(RunEvent::StepSkipped { step: id, reason: SkipReason::Condition, at: now });
        } else if self.is_exhausted(id) {
            match step.loop_back.as_ref().map(|back| back.on_exhausted) {
                Some(OnExhausted::Hold) => {
                    let reason = format!("the loop back from `{}` has used up its turns", step.name);
                    self.holds_up(id, QuestionKind::LoopExhausted, reason);
                }
                Some(OnExhausted::Fail) | None => {
                    self.happens(RunEvent::StepFailed { step: id, failure: StepFailure::LoopExhausted, at: now });
                }
            }
        } else if self.first_ready().is_none() && self.has_room(id) {
            self.start(id);
        } else {
            self.happens(RunEvent::StepReady(id));
        }
        true
    }

    /// Whether a step could begin at once.
    fn has_room(&self, id: StepId) -> bool {
        let free = self.counts.running < self.plan.recipe.max_parallel || !takes_place(self.plan.recipe.step(id));
        free && self.base.given.mode == RunMode::Engine && self.end.is_none() && !self.is_stopping()
    }

    /// Whether the run is being ended, and what is not to go on has not ended yet: it may still work where others tidy up.
    fn is_stopping(&self) -> bool {
        let recipe = &self.plan.recipe;
        self.ending.is_some() && recipe.ids().any(|id| !recipe.step(id).always && self.kind(id).is_under_way())
    }

    /// Whether what the condition of `reader` reads can still become something else: a loop may run it again. Steps that
    /// wait for nothing but each other change nothing any more.
    fn may_change(&self, reader: StepId) -> bool {
        let mut seen = BTreeSet::from([reader]);
        let mut open = vec![reader];
        while let Some(id) = open.pop() {
            let needs: Vec<StepId> = self.open_needs(id).collect();
            let awaited = if needs.is_empty() { self.loops_that_change(id) } else { needs };
            for step in awaited {
                if self.goes_on(step) {
                    return true;
                }
                if seen.insert(step) {
                    open.push(step);
                }
            }
        }
        false
    }

    fn open_needs(&self, id: StepId) -> impl Iterator<Item = StepId> {
        self.plan.recipe.step(id).needs.iter().copied().filter(|need| !self.kind(*need).has_ended())
    }

    /// The steps whose loops would run again what the condition of `reader` reads.
    fn loops_that_change(&self, reader: StepId) -> Vec<StepId> {
        let reads = &self.plan.reads[reader.0 as usize];
        let changes = |way: &&PlanLoop| {
            let alive = !self.kind(way.from).has_ended() && !self.is_exhausted(way.from);
            // What lies in the loop is decided anew in each round, and must be decided for the loop to go round.
            alive && !way.body.contains(&reader) && way.body.iter().any(|step| reads.contains(step))
        };
        self.plan.loops.iter().filter(changes).map(|way| way.from).collect()
    }

    /// Whether a step will come to its end by itself, or by what a person says.
    fn goes_on(&self, id: StepId) -> bool {
        match self.kind(id) {
            StepStatusKind::Waiting => {
                let condition = self.plan.recipe.step(id).condition.as_ref();
                self.open_needs(id).next().is_none() && condition.is_none_or(|condition| self.holds(condition, id))
            }
            kind => !kind.has_ended(),
        }
    }

    fn is_exhausted(&self, id: StepId) -> bool {
        let Some(way) = self.plan.loop_from(id) else { return false };
        let state = self.step(id);
        state.turns >= way.max.saturating_add(state.granted)
    }

    fn ended(&mut self, id: StepId, attempt: u32, part: AttemptPart, report: &AttemptReport) -> Result<(), Refusal> {
        self.still_going()?;
        let state = self.step(id);
        let over = || not_ready(format!("attempt {attempt} of `{}` is over", self.name(id)));
        let progress = state.status.progress().ok_or_else(over)?;
        if attempt_of(self, id, part) != attempt || !parts(self, id, progress).contains(&part) {
            return Err(over());
        }
        let stopping = match &state.status {
            StepStatus::Stopping(_, failure) => Some(failure.clone()),
            _ => None,
        };
        let since = state.since;
        let report = &self.settled(id, part, report);
        let withdrawn = self.withdraw(id, Some(part));
        self.part_over(id, part, report, stopping);
        if withdrawn && self.step(id).since == since {
            self.time_goes_on(id);
        }
        Ok(())
    }

    fn part_over(&mut self, id: StepId, part: AttemptPart, report: &AttemptReport, stopping: Option<StepFailure>) {
        match (report, part) {
            (AttemptReport::Completed(outcome), AttemptPart::Whole) => {
                let outcome = self.plan.heard(id, outcome);
                match self.plan.missing_from(id, &outcome) {
                    None => self.completes(id, outcome),
                    Some(error) => {
                        let failure = stopping.unwrap_or(StepFailure::Attempt { kind: FailureKind::Failed, error });
                        self.attempt_failed(id, failure, outcome);
                    }
                }
            }
            (AttemptReport::Completed(outcome), AttemptPart::Turn(_) | AttemptPart::Item(_)) => {
                self.happens(RunEvent::PartEnded { step: id, part, result: Ok(outcome.clone()) });
                self.unless_stopping(id, stopping);
            }
            (AttemptReport::Completed(verdict), AttemptPart::Arbiter(turn)) => self.judged(id, turn, verdict, stopping),
            (AttemptReport::Failed { kind, error, .. }, AttemptPart::Item(item)) => {
                let losses = self.item(id, item).map_or(0, |it| it.losses);
                match *kind == FailureKind::Lost && losses < MOST_LOSSES {
                    true => self.item_lost(id, part, losses),
                    false => self.happens(RunEvent::PartEnded { step: id, part, result: Err(error.clone()) }),
                }
                self.unless_stopping(id, stopping);
            }
            (
                AttemptReport::Failed { kind, error, outcome },
                AttemptPart::Whole | AttemptPart::Turn(_) | AttemptPart::Arbiter(_),
            ) => {
                let failure = stopping.unwrap_or(StepFailure::Attempt { kind: *kind, error: error.clone() });
                self.attempt_failed(id, failure, outcome.clone());
            }
        }
    }

    /// An item went away with its worker: it is made again, as an attempt of its own.
    fn item_lost(&mut self, id: StepId, part: AttemptPart, losses: u32) {
        let pause = pause_after(losses);
        let until = Some(self.now.after(pause)).filter(|_| !pause.is_zero());
        self.happens(RunEvent::PartLost { step: id, part, until });
        let is_running = self.kind(id) == StepStatusKind::Running;
        if let Some(until) = until.filter(|_| is_running) {
            let attempt = self.step(id).attempts;
            self.wants(RunEffect::SetTimer(TimerKey::Backoff(id, attempt), until));
        }
    }

    /// Goes on with an attempt of several parts, unless it is being ended and this was the last of them.
    fn unless_stopping(&mut self, id: StepId, stopping: Option<StepFailure>) {
        let Some(failure) = stopping else { return self.go_on(id) };
        let StepStatus::Stopping(progress, _) = &self.step(id).status else { return };
        if !matches!(progress, AttemptProgress::Items { running: 1.., .. }) {
            self.attempt_failed(id, failure, StepOutcome::default());
        }
    }

    fn judged(&mut self, id: StepId, turn: u32, verdict: &StepOutcome, stopping: Option<StepFailure>) {
        let Some(AttemptProgress::Turns { limit, said, .. }) = self.step(id).status.progress() else { return };
        let (limit, work) = (*limit, said.last().map(|turn| turn.work.clone()).unwrap_or_default());
        let result = verdict.result.as_ref().map(|word| word.trim().to_lowercase());
        let verdict = StepOutcome { result, ..verdict.clone() };
        self.happens(RunEvent::PartEnded { step: id, part: AttemptPart::Arbiter(turn), result: Ok(verdict.clone()) });
        let StepWork::AgentLoop { on_max, .. } = self.plan.recipe.step(id).work else { return };
        match verdict.result.as_deref() {
            Some("done") => self.completes(id, StepOutcome { result: Some("done".into()), ..work }),
            Some("actionable") if turn < limit => self.unless_stopping(id, stopping),
            Some("actionable") if asks(on_max) => {
                let reason = format!("the arbiter still finds something to do after {turn} turns");
                self.holds_up(id, QuestionKind::MaxIterations, reason);
            }
            Some("actionable") => self.completes(id, StepOutcome { result: Some("actionable".into()), ..work }),
            other => {
                let said = other.map(|word| format!("`{word}`, which is ")).unwrap_or_default();
                let reason = format!("the arbiter said {said}neither `done` nor `actionable`");
                self.holds_up(id, QuestionKind::Undecided, reason);
            }
        }
    }

    pub(super) fn completes(&mut self, id: StepId, mut outcome: StepOutcome) {
        if matches!(self.plan.recipe.step(id).work, StepWork::Gate { .. }) {
            outcome.result = Some("PASS".into());
        }
        let now = self.now;
        self.clear_timers(id);
        self.happens(RunEvent::StepCompleted { step: id, outcome, at: now });
        if let Some(way) = self.plan.loop_from(id).filter(|_| self.ending.is_none() && !self.is_exhausted(id)) {
            self.happens(RunEvent::LoopedBack { from: id, to: way.to });
        }
    }

    pub(super) fn fails(&mut self, id: StepId, failure: StepFailure) {
        let now = self.now;
        self.clear_timers(id);
        self.happens(RunEvent::StepFailed { step: id, failure, at: now });
    }

    /// An attempt has failed: it is made again, or a person is asked, or the step has failed.
    fn attempt_failed(&mut self, id: StepId, failure: StepFailure, outcome: StepOutcome) {
        let step = self.plan.recipe.step(id);
        let code = outcome.exit_code;
        self.leaves(id, &failure, outcome);
        if self.ending.is_some() && !step.always {
            let at = self.now;
            self.clear_timers(id);
            return self.happens(RunEvent::StepCancelled { step: id, at });
        }
        // Made again it would only be in conflict again, unless a person has looked at both.
        if let StepFailure::Attempt { error, .. } = &failure
            && step.workspace == StepWorkspace::Own
            && error.starts_with(CONFLICT)
        {
            return self.holds_up(id, QuestionKind::PartialFailure, error.clone());
        }
        let state = self.step(id);
        if let Some(wait) = again_after(step, state, &failure) {
            let (until, attempt) = (self.now.after(wait), state.attempts);
            self.clear_timers(id);
            self.happens(RunEvent::StepRetried { step: id, failure, until });
            match wait.is_zero() {
                true => self.start(id),
                false => self.wants(RunEffect::SetTimer(TimerKey::Backoff(id, attempt), until)),
            }
        } else if let StepWork::Gate { message, .. } = &step.work {
            // The signal that ended it says less than why it was sent.
            let timed_out = matches!(failure, StepFailure::Attempt { kind: FailureKind::Timeout, .. });
            let code = code.filter(|_| !timed_out).map(|code| format!("exit code {code}"));
            let reason = format!("the check failed: {}", code.unwrap_or_else(|| failure.words(self.plan)));
            // What its author says about it comes first; words that cannot be filled are no reason to say nothing.
            let words = message.as_ref().and_then(|text| self.fill(text, id, &Locals::default()).ok());
            let reason = words.map_or(reason.clone(), |words| format!("{} ({reason})", words.trim()));
            self.holds_up(id, QuestionKind::Gate, reason);
        } else {
            self.fails(id, failure);
        }
    }

    /// Keeps what a failed attempt left behind. After any end of a command its exit code and what it printed are there.
    fn leaves(&mut self, id: StepId, failure: &StepFailure, mut outcome: StepOutcome) {
        if self.plan.recipe.step(id).work.is_command() {
            outcome.exit_code.get_or_insert(NO_EXIT_CODE);
            outcome.stderr.get_or_insert_with(|| failure.words(self.plan));
        }
        if outcome != StepOutcome::default() {
            self.happens(RunEvent::AttemptFailed { step: id, outcome });
        }
    }

    fn timer(&mut self, key: TimerKey) {
        if self.end.is_some() {
            return;
        }
        match key {
            TimerKey::Timeout(id, attempt) => {
                let state = self.step(id);
                // While a person is asked the time of the step stands still.
                if state.since == attempt && state.is_busy() {
                    let error = TIMED_OUT.to_owned();
                    self.stops(id, StepFailure::Attempt { kind: FailureKind::Timeout, error });
                }
            }
            TimerKey::Backoff(id, attempt) => {
                if self.kind(id) == StepStatusKind::Retrying && self.step(id).attempts == attempt {
                    self.start(id);
                } else {
                    self.item_due(id, attempt);
                }
            }
            TimerKey::Question(question) => self.unanswered(question),
            TimerKey::Run => match self.ending.clone() {
                Some(end) => self.ends_now(end),
                None => {
                    self.end_as(RunConclusion::Failed { error: "the run took longer than its `timeout`".to_owned() })
                }
            },
        }
    }

    fn item_due(&mut self, id: StepId, attempt: u32) {
        let StepStatus::Running(AttemptProgress::Items { total, .. }) = self.step(id).status else { return };
        let is_due = |item: &u32| self.item(id, *item).is_some_and(|it| it.due.is_some() && it.attempt == attempt);
        if let Some(item) = (0..total).find(is_due) {
            self.begin_item(id, item);
        }
    }

    /// Ends an attempt with all of its parts, and waits until they have ended.
    pub(super) fn stops(&mut self, id: StepId, failure: StepFailure) {
        let state = self.step(id);
        let StepStatus::Running(progress) = &state.status else { return };
        let stops: Vec<(u32, AttemptPart)> =
            parts(self, id, progress).into_iter().map(|part| (attempt_of(self, id, part), part)).collect();
        self.clear_timers(id);
        self.happens(RunEvent::StepStopping { step: id, failure: failure.clone() });
        if stops.is_empty() {
            return self.attempt_failed(id, failure, StepOutcome::default());
        }
        stops.into_iter().for_each(|(attempt, part)| self.wants(RunEffect::Stop { step: id, attempt, part }));
    }
}
