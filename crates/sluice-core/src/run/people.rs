//! What people say to a run: answers, another try, the end; and steps that they do themselves.

use super::decide::not_ready;
use super::effect::{Effect, TimerKey};
use super::event::{Answerer, Event, Failure, Outcome, Question, SkipReason};
use super::input::ByHand;
use super::law::Status;
use super::record::Book;
use super::sketch::Sketch;
use super::state::{End, Progress, StepStatus, takes_place};
use crate::machine::{Refusal, RefusalCode};
use crate::recipe::{FailureKind, StepId};

impl Sketch<'_> {
    pub(super) fn answer(&mut self, question: u32, option: &str, message: Option<String>) -> Result<(), Refusal> {
        self.still_going()?;
        let open = || not_ready(format!("question {question} is not open"));
        let (id, asked) = self.open_question(question).ok_or_else(open)?;
        if !asked.takes(option, message.as_ref()) {
            let options = asked.options();
            let hint = match options.is_empty() {
                true => "say something".to_owned(),
                false => format!("choose from {}", options.join(", ")),
            };
            return Err(not_ready(format!("`{option}` is not an answer to question {question}")).hint(hint));
        }
        self.answered(id, question, option, message, Answerer::Person);
        Ok(())
    }

    fn open_question(&self, id: u32) -> Option<(StepId, &Question)> {
        self.base.questions().find(|(_, question)| question.id == id)
    }

    /// Nobody has answered in time: the default is the answer. Without one an agent goes on without an answer, and for
    /// a step that is held a person is still waited for.
    pub(super) fn unanswered(&mut self, question: u32) {
        let Some((id, asked)) = self.open_question(question) else { return };
        match (asked.default.clone(), self.kind(id)) {
            (Some(default), _) => self.answered(id, question, &default, None, Answerer::Deadline),
            (None, Status::Held) => {}
            (None, _) => self.give_up(id, question),
        }
    }

    fn answered(&mut self, id: StepId, question: u32, option: &str, message: Option<String>, by: Answerer) {
        let StepStatus::Held { progress, .. } = self.step(id).status.clone() else {
            return self.tell(id, question, option, message, by);
        };
        self.happens(Event::Answered { step: id, question, option: option.to_owned(), message, by });
        match option {
            "retry" => self.start(id),
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

    pub(super) fn retry(&mut self, step: Option<StepId>, guidance: Option<String>) -> Result<(), Refusal> {
        if let Some(End::Completed { .. } | End::Cancelled { .. }) = self.end() {
            return Err(Refusal::new(RefusalCode::Finished, "the run has ended, and no step of it failed"));
        }
        if self.ending().is_some() {
            return Err(Refusal::new(RefusalCode::Finished, "the run is being ended").hint("start it again"));
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
        let had_ended = self.end().is_some();
        self.happens(Event::Reopened { step: id, guidance });
        if let Some(timeout) = self.plan.recipe.timeout.filter(|_| had_ended) {
            self.wants(Effect::SetTimer(TimerKey::Run, self.now.after(timeout)));
        }
        Ok(())
    }

    /// One that failed can still be given up: until then it is kept for whoever looks after it.
    pub(super) fn cancel(&mut self, reason: &str) -> Result<(), Refusal> {
        let end = End::Cancelled { reason: reason.to_owned() };
        match self.end() {
            Some(End::Failed { .. }) => self.ends_now(end),
            Some(End::Completed { .. } | End::Cancelled { .. }) | None => {
                self.still_going()?;
                self.end_as(end);
            }
        }
        Ok(())
    }

    pub(super) fn by_hand(&mut self, id: StepId, what: &ByHand) -> Result<(), Refusal> {
        self.still_going()?;
        let (kind, name, now) = (self.kind(id), self.name(id), self.now);
        let begin = |sketch: &mut Self| {
            if kind != Status::Ready {
                return Err(not_ready(format!("`{name}` is {}", kind.word())).hint(way_on(kind)));
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
                return Err(not_ready(format!("`{name}` is {}", kind.word())).hint(way_on(kind)));
            }
            ByHand::Complete(_) | ByHand::Fail(_) | ByHand::Skip => {}
        }
        match what {
            ByHand::Start => {}
            ByHand::Complete(outcome) => {
                let outcome = self.plan.heard(id, outcome);
                self.completes(id, outcome);
            }
            ByHand::Fail(error) => {
                self.fails(id, Failure::Attempt { kind: FailureKind::Failed, error: error.clone() });
            }
            ByHand::Skip => self.happens(Event::StepSkipped { step: id, reason: SkipReason::Person, at: now }),
        }
        Ok(())
    }

    pub(super) fn close(&mut self, summary: &str) -> Result<(), Refusal> {
        self.still_going()?;
        let open = (0u32..)
            .map(StepId)
            .take(self.plan.recipe.steps.len())
            .find(|id| !matches!(self.kind(*id), Status::Completed | Status::Skipped));
        if let Some(id) = open {
            let kind = self.kind(id);
            let message = format!("`{}` is {}", self.name(id), kind.word());
            let hint = if kind == Status::Failed { way_on(kind) } else { "complete or skip every step first" };
            return Err(Refusal::new(RefusalCode::StepOpen, message).hint(hint));
        }
        self.ends(End::Completed { summary: summary.to_owned() });
        Ok(())
    }
}

/// What whoever does the steps can do about one that cannot be begun or left out.
fn way_on(kind: Status) -> &'static str {
    match kind {
        Status::Waiting | Status::Ready | Status::Running | Status::Stopping | Status::Retrying | Status::Held => {
            "`process steps` says what it waits for"
        }
        Status::Failed => "`run retry` tries it again, `process cancel` discards the whole process",
        Status::Completed | Status::Skipped | Status::Cancelled => "what has been done or left out stays so",
    }
}
