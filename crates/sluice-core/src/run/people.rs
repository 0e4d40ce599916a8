//! What people say to a run: answers, another try, the end; and steps that they do themselves.

use super::decide::not_ready;
use super::effect::{RunEffect, TimerKey};
use super::event::{Answerer, RunEvent, RunQuestion, SkipReason, StepFailure, StepOutcome};
use super::input::ManualStepInput;
use super::law::StepStatusKind;
use super::pending::RunPending;
use super::record::RunRecord;
use super::state::{AttemptProgress, RunConclusion, StepStatus, takes_place};
use crate::machine::{Refusal, RefusalCode};
use crate::recipe::{FailureKind, StepId};

impl RunPending<'_> {
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

    fn open_question(&self, id: u32) -> Option<(StepId, &RunQuestion)> {
        self.base.questions().find(|(_, question)| question.id == id)
    }

    /// Nobody has answered in time: the default is the answer. Without one an agent goes on without an answer, and for
    /// a step that is held a person is still waited for.
    pub(super) fn unanswered(&mut self, question: u32) {
        let Some((id, asked)) = self.open_question(question) else { return };
        match (asked.default.clone(), self.kind(id)) {
            (Some(default), _) => self.answered(id, question, &default, None, Answerer::Deadline),
            (None, StepStatusKind::Held) => {}
            (None, _) => {
                self.happens(RunEvent::Withdrawn { step: id, question });
                self.time_goes_on(id);
            }
        }
    }

    fn answered(&mut self, id: StepId, question: u32, option: &str, message: Option<String>, by: Answerer) {
        let status = self.step(id).status.clone();
        self.happens(RunEvent::Answered { step: id, question, option: option.to_owned(), message, by });
        let StepStatus::Held { progress, .. } = status else { return self.time_goes_on(id) };
        match option {
            "retry" => self.start(id),
            "skip" => {
                let at = self.now;
                self.happens(RunEvent::StepSkipped { step: id, reason: SkipReason::Person, at });
            }
            "continue" => {
                let outcome = self.so_far(id, progress);
                self.completes(id, outcome);
            }
            _ => self.fails(id, StepFailure::Aborted),
        }
    }

    fn so_far(&self, id: StepId, progress: Option<AttemptProgress>) -> StepOutcome {
        match progress {
            Some(AttemptProgress::Items { total, failed, .. }) => self.gathered(id, total, failed),
            Some(AttemptProgress::Turns { said, .. }) => {
                let work = said.last().map(|turn| turn.work.clone()).unwrap_or_default();
                StepOutcome { result: Some("actionable".into()), ..work }
            }
            Some(AttemptProgress::Single) | None => StepOutcome::default(),
        }
    }

    pub(super) fn retry(&mut self, step: Option<StepId>, guidance: Option<String>) -> Result<(), Refusal> {
        if let Some(RunConclusion::Completed { .. } | RunConclusion::Cancelled { .. }) = self.end {
            return self.must_be_open("; no step failed, so there is nothing to retry");
        }
        if self.ending.is_some() {
            return Err(Refusal::new(RefusalCode::Finished, "the run is being ended").hint("start it again"));
        }
        let own_fault = |id: &StepId| self.step(*id).status.own_failure().is_some();
        let id =
            step.or_else(|| self.plan.recipe.ids().find(own_fault)).ok_or_else(|| not_ready("no step has failed"))?;
        if !own_fault(&id) {
            return Err(not_ready(format!("`{}` has not failed by itself", self.name(id))));
        }
        if self.plan.recipe.ids().any(|id| self.kind(id) == StepStatusKind::Cancelled) {
            return Err(Refusal::new(RefusalCode::Finished, "the run was ended as a whole").hint("start it again"));
        }
        let had_ended = self.end.is_some();
        self.happens(RunEvent::Reopened { step: id, guidance });
        if let Some(timeout) = self.plan.recipe.timeout.filter(|_| had_ended) {
            self.wants(RunEffect::SetTimer(TimerKey::Run, self.now.after(timeout)));
        }
        Ok(())
    }

    /// One that failed can still be given up: until then it is kept for whoever looks after it.
    pub(super) fn cancel(&mut self, reason: &str) -> Result<(), Refusal> {
        let end = RunConclusion::Cancelled { reason: reason.to_owned() };
        match self.end {
            Some(RunConclusion::Failed { .. }) => self.ends_now(end),
            Some(RunConclusion::Completed { .. } | RunConclusion::Cancelled { .. }) | None => {
                self.must_be_open("; there is nothing to cancel")?;
                self.end_as(end);
            }
        }
        Ok(())
    }

    pub(super) fn by_hand(&mut self, id: StepId, what: &ManualStepInput) -> Result<(), Refusal> {
        self.still_going()?;
        let (kind, name, now) = (self.kind(id), self.name(id), self.now);
        let begin = |sketch: &mut Self| {
            if kind != StepStatusKind::Ready {
                return Err(not_ready(format!("`{name}` is {}", kind.word())).hint(way_on(kind)));
            }
            if sketch.counts.running >= sketch.plan.recipe.max_parallel && takes_place(sketch.plan.recipe.step(id)) {
                return Err(not_ready(format!("`{name}` must wait: another step is in progress")));
            }
            let attempt = sketch.step(id).attempts + 1;
            sketch.happens(RunEvent::StepStarted { step: id, attempt, at: now, items: None });
            Ok(())
        };
        match what {
            ManualStepInput::Start => begin(self)?,
            ManualStepInput::Complete(_) | ManualStepInput::Fail(_) if kind != StepStatusKind::Running => begin(self)?,
            ManualStepInput::Skip
                if !matches!(kind, StepStatusKind::Waiting | StepStatusKind::Ready | StepStatusKind::Held) =>
            {
                return Err(not_ready(format!("`{name}` is {}", kind.word())).hint(way_on(kind)));
            }
            ManualStepInput::Complete(_) | ManualStepInput::Fail(_) | ManualStepInput::Skip => {}
        }
        match what {
            ManualStepInput::Start => {}
            ManualStepInput::Complete(outcome) => {
                let outcome = self.plan.heard(id, outcome);
                self.completes(id, outcome);
            }
            ManualStepInput::Fail(error) => {
                self.fails(id, StepFailure::Attempt { kind: FailureKind::Failed, error: error.clone() });
            }
            ManualStepInput::Skip => {
                self.happens(RunEvent::StepSkipped { step: id, reason: SkipReason::Person, at: now })
            }
        }
        Ok(())
    }

    pub(super) fn close(&mut self, summary: &str) -> Result<(), Refusal> {
        self.still_going()?;
        let is_open = |id: &StepId| !matches!(self.kind(*id), StepStatusKind::Completed | StepStatusKind::Skipped);
        if let Some(id) = self.plan.recipe.ids().find(is_open) {
            let kind = self.kind(id);
            let message = format!("`{}` is {}", self.name(id), kind.word());
            let hint = if kind == StepStatusKind::Failed { way_on(kind) } else { "complete or skip every step first" };
            return Err(Refusal::new(RefusalCode::StepOpen, message).hint(hint));
        }
        self.ends(RunConclusion::Completed { summary: summary.to_owned() });
        Ok(())
    }
}

/// What whoever does the steps can do about one that cannot be begun or left out.
fn way_on(kind: StepStatusKind) -> &'static str {
    match kind {
        StepStatusKind::Failed => "`run retry` tries it again, `process cancel` discards the whole process",
        kind if kind.has_ended() => "what has been done or left out stays so",
        _ => "`process steps` says what it waits for",
    }
}
