//! The decisions of a run: what an input leads to, and what can go on because of it.

use super::effect::{Effect, Part, Script, TimerKey};
use super::event::{Event, Failure, Outcome, QuestionKind, SkipReason};
use super::input::{ByHand, Given, Input, Mode, Report};
use super::law::Status;
use super::plan::Plan;
use super::record::{Book, asks};
use super::sketch::Sketch;
use super::state::{End, Progress, RunState, StepStatus, parts, takes_place};
use crate::machine::{Decision, Moment, Refusal, RefusalCode};
use crate::recipe::{FailureKind, Join, OnExhausted, RunHook, StepId, Work};

/// How often a step whose worker went away is given to another, before it counts as failed.
const MOST_LOSSES: u32 = 10;

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
    Decision { events: sketch.events, effects: sketch.effects }
}

/// What `input` leads to.
pub fn decide(plan: &Plan, state: &RunState, input: &Input, now: Moment) -> Decided {
    let mut sketch = Sketch::new(plan, state, now);
    match input {
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
    Ok(Decision { events: sketch.events, effects: sketch.effects })
}

fn not_ready(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::NotReady, message)
}

impl Sketch<'_> {
    fn name(&self, id: StepId) -> String {
        self.plan.recipe.step(id).name.to_string()
    }

    fn still_going(&self) -> Result<(), Refusal> {
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

    fn next_to_start(&self) -> Option<StepId> {
        if self.base.given.mode == Mode::ByHand || self.end().is_some() {
            return None;
        }
        let first = self.first_ready()?;
        let free = self.running() < self.plan.recipe.max_parallel || !takes_place(self.plan.recipe.step(first));
        free.then_some(first)
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
        } else {
            self.happens(Event::StepReady(id));
        }
        true
    }

    /// Whether what the condition of `reader` reads can still become something else: a loop may run it again.
    fn may_change(&self, reader: StepId) -> bool {
        let reads = &self.plan.reads[reader.0 as usize];
        self.plan.loops.iter().any(|way| {
            let alive = !self.kind(way.from).has_ended() && !self.is_exhausted(way.from);
            way.from != reader && alive && way.body.iter().any(|step| reads.contains(step))
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
        match (report, part) {
            (Report::Completed(outcome), Part::Whole) => self.completes(id, outcome.clone()),
            (Report::Completed(outcome), Part::Turn(_)) => {
                self.happens(Event::PartEnded { step: id, part, result: Ok(outcome.clone()) });
                self.unless_stopping(id, stopping);
            }
            (Report::Completed(verdict), Part::Arbiter(turn)) => self.judged(id, turn, verdict, stopping),
            (Report::Completed(outcome), Part::Item(_)) => {
                self.happens(Event::PartEnded { step: id, part, result: Ok(outcome.clone()) });
                self.unless_stopping(id, stopping);
            }
            (Report::Failed { error, kind, .. }, Part::Item(_)) if *kind != FailureKind::Crashed => {
                self.happens(Event::PartEnded { step: id, part, result: Err(error.clone()) });
                self.unless_stopping(id, stopping);
            }
            (Report::Failed { error, .. }, Part::Item(_)) => {
                // A lost item is begun again by itself: the others must not suffer for it.
                self.happens(Event::PartEnded { step: id, part, result: Err(error.clone()) });
                self.unless_stopping(id, stopping);
            }
            (Report::Failed { kind, error, outcome }, Part::Whole | Part::Turn(_) | Part::Arbiter(_)) => {
                let failure = stopping.unwrap_or(Failure::Attempt { kind: *kind, error: error.clone() });
                self.attempt_failed(id, failure, outcome.clone());
            }
        }
        Ok(())
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
        self.clear_timeout(id);
        let (until, attempt) = (self.now.after(wait), self.step(id).attempts);
        if again {
            self.happens(Event::StepRetried { step: id, failure, until });
            match wait.is_zero() {
                true => self.start(id),
                false => self.wants(Effect::SetTimer(TimerKey::Backoff(id, attempt), until)),
            }
        } else if matches!(step.work, Work::Gate { .. }) {
            let code = outcome.exit_code.map(|code| format!("exit code {code}"));
            let reason = format!("the check failed: {}", code.unwrap_or_else(|| failure.describe(self)));
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
                let StepStatus::Running(progress) = &state.status else { return };
                if state.attempts != attempt {
                    return;
                }
                let stops = parts(self, id, progress);
                let error = "it took longer than its `timeout`".to_owned();
                self.happens(Event::StepStopping {
                    step: id,
                    failure: Failure::Attempt { kind: FailureKind::Timeout, error },
                });
                stops.into_iter().for_each(|part| self.wants(Effect::Stop { step: id, attempt, part }));
            }
            TimerKey::Backoff(id, attempt) => {
                if self.kind(id) == Status::Retrying && self.step(id).attempts == attempt {
                    self.start(id);
                }
            }
            TimerKey::Run => {
                self.stop_everything();
                let error = "the run took longer than its `timeout`".to_owned();
                self.ends(End::Failed { error });
            }
        }
    }

    fn stop_everything(&mut self) {
        for (step, attempt, part) in self.base.under_way() {
            self.wants(Effect::Stop { step, attempt, part });
        }
    }

    fn answer(&mut self, question: u32, option: &str, message: Option<String>) -> Result<(), Refusal> {
        self.still_going()?;
        let held = (0u32..).map(StepId).zip(&self.base.steps).find_map(|(id, step)| match &step.status {
            StepStatus::Held { question: asked, progress } if asked.id == question => {
                Some((id, asked.kind, progress.clone()))
            }
            _ => None,
        });
        let (id, kind, progress) = held.ok_or_else(|| not_ready(format!("question {question} is not open")))?;
        let options = kind.options();
        if !options.contains(&option) {
            let message = format!("`{option}` is not an answer to question {question}");
            return Err(not_ready(message).hint(format!("choose from {}", options.join(", "))));
        }
        self.happens(Event::Answered { step: id, option: option.to_owned(), message });
        match option {
            "retry" => {
                if kind == QuestionKind::LoopExhausted {
                    self.step_mut(id).granted += 1;
                }
                self.start(id);
            }
            "skip" => {
                let at = self.now;
                self.happens(Event::StepSkipped { step: id, reason: SkipReason::Person, at });
            }
            "continue" => {
                let outcome = self.so_far(id, progress);
                self.completes(id, outcome);
            }
            _ => self.fails(id, Failure::Aborted),
        }
        Ok(())
    }

    /// What a step that goes on as it is has given.
    fn so_far(&self, id: StepId, progress: Option<Progress>) -> Outcome {
        match progress {
            Some(Progress::Items { total, failed, .. }) => self.gathered(id, total, failed),
            Some(Progress::Turns { said, .. }) => {
                let work = said.last().map(|turn| turn.work.clone()).unwrap_or_default();
                Outcome { result: Some("actionable".into()), ..work }
            }
            Some(Progress::Single) | None => Outcome::default(),
        }
    }

    fn retry(&mut self, step: Option<StepId>, guidance: Option<String>) -> Result<(), Refusal> {
        if let Some(End::Completed { .. } | End::Cancelled { .. }) = self.end() {
            return Err(Refusal::new(RefusalCode::Finished, "the run has ended, and no step of it failed"));
        }
        let own_fault = |id: &StepId| matches!(&self.step(*id).status, StepStatus::Failed(failure) if !matches!(failure, Failure::Upstream(_)));
        let all = || (0u32..).map(StepId).take(self.plan.recipe.steps.len());
        let id = step.or_else(|| all().find(own_fault)).ok_or_else(|| not_ready("no step has failed"))?;
        if !own_fault(&id) {
            return Err(not_ready(format!("`{}` has not failed by itself", self.name(id))));
        }
        if all().any(|id| self.kind(id) == Status::Cancelled) {
            return Err(Refusal::new(RefusalCode::Finished, "the run was ended as a whole").hint("start it again"));
        }
        if matches!(self.step(id).status, StepStatus::Failed(Failure::LoopExhausted)) {
            self.step_mut(id).granted += 1;
        }
        self.happens(Event::Reopened { step: id, guidance });
        Ok(())
    }

    fn cancel(&mut self, reason: &str) -> Result<(), Refusal> {
        self.still_going()?;
        self.stop_everything();
        self.ends(End::Cancelled { reason: reason.to_owned() });
        Ok(())
    }

    fn by_hand(&mut self, id: StepId, what: &ByHand) -> Result<(), Refusal> {
        self.still_going()?;
        let (kind, name, now) = (self.kind(id), self.name(id), self.now);
        let begin = |sketch: &mut Self| {
            if kind != Status::Ready {
                return Err(
                    not_ready(format!("`{name}` is {}", kind.word())).hint("`process steps` says what it waits for")
                );
            }
            if sketch.running() >= sketch.plan.recipe.max_parallel && takes_place(sketch.plan.recipe.step(id)) {
                return Err(not_ready(format!("`{name}` must wait: another step is in progress")));
            }
            let attempt = sketch.step(id).attempts + 1;
            sketch.happens(Event::StepStarted { step: id, attempt, at: now, items: None });
            Ok(())
        };
        match what {
            ByHand::Start => begin(self)?,
            ByHand::Complete(_) | ByHand::Fail(_) if kind != Status::Running => begin(self)?,
            ByHand::Skip if !matches!(kind, Status::Waiting | Status::Ready | Status::Held) => {
                return Err(not_ready(format!("`{name}` is {}", kind.word())));
            }
            ByHand::Complete(_) | ByHand::Fail(_) | ByHand::Skip => {}
        }
        match what {
            ByHand::Start => {}
            ByHand::Complete(outcome) => self.completes(id, outcome.clone()),
            ByHand::Fail(error) => {
                self.fails(id, Failure::Attempt { kind: FailureKind::Failed, error: error.clone() });
            }
            ByHand::Skip => self.happens(Event::StepSkipped { step: id, reason: SkipReason::Person, at: now }),
        }
        Ok(())
    }

    fn close(&mut self, summary: &str) -> Result<(), Refusal> {
        self.still_going()?;
        let open = (0u32..)
            .map(StepId)
            .take(self.plan.recipe.steps.len())
            .find(|id| !matches!(self.kind(*id), Status::Completed | Status::Skipped));
        if let Some(id) = open {
            let message = format!("`{}` is {}", self.name(id), self.kind(id).word());
            return Err(Refusal::new(RefusalCode::StepOpen, message).hint("complete or skip every step first"));
        }
        self.ends(End::Completed { summary: summary.to_owned() });
        Ok(())
    }

    /// Every step has ended, and so has the run.
    fn finish(&mut self) {
        let failed =
            (0u32..).map(StepId).take(self.plan.recipe.steps.len()).find_map(|id| match &self.step(id).status {
                StepStatus::Failed(failure) if !matches!(failure, Failure::Upstream(_)) => {
                    Some(format!("`{}` failed: {}", self.name(id), failure.describe(self)))
                }
                _ => None,
            });
        self.ends(match failed {
            Some(error) => End::Failed { error },
            None => End::Completed { summary: String::new() },
        });
    }

    fn ends(&mut self, end: End) {
        let recipe = &self.plan.recipe;
        let hooks = match &end {
            End::Completed { .. } => recipe.on_complete.as_slice(),
            End::Failed { .. } => recipe.on_fail.as_slice(),
            End::Cancelled { .. } => &[],
        };
        let repeats = !matches!(end, End::Cancelled { .. });
        let at = self.now;
        if recipe.timeout.is_some() {
            self.wants(Effect::ClearTimer(TimerKey::Run));
        }
        self.happens(Event::Ended { end, at });
        for hook in hooks {
            let effect = self.run_hook(hook);
            self.wants(effect);
        }
        if let Some(repeat) = recipe.repeat.as_ref().filter(|_| repeats) {
            self.wants(Effect::Repeat { at: at.after(repeat.every) });
        }
    }

    fn run_hook(&self, hook: &RunHook) -> Effect {
        // Hooks read values as the last step would.
        let reader = StepId(u32::try_from(self.plan.recipe.steps.len().saturating_sub(1)).unwrap_or(0));
        let missing = |name: String| Effect::Notify(format!("a hook of the run needs `{name}`, which nothing gave"));
        match hook {
            RunHook::Notify(text) => {
                self.fill(text, reader, &super::values::Locals::default()).map_or_else(missing, Effect::Notify)
            }
            RunHook::RunCommand(command) => match self.environment(command, reader) {
                Ok(environment) => Effect::RunCommand(Script { script: command.script.clone(), environment }),
                Err(name) => missing(name),
            },
            RunHook::Start(recipe) => Effect::Start { recipe: recipe.clone() },
        }
    }
}

impl Failure {
    /// In words.
    fn describe(&self, sketch: &Sketch<'_>) -> String {
        match self {
            Failure::Attempt { error, .. } => error.clone(),
            Failure::Upstream(need) => format!("`{}` failed", sketch.name(*need)),
            Failure::Undefined(name) => format!("`{name}` is not defined"),
            Failure::LoopExhausted => "loop_exhausted: its loop has used up its turns".into(),
            Failure::Aborted => "a person gave it up".into(),
        }
    }
}
