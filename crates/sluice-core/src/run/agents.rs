//! What the agent of a step says itself: that it needs an answer, and how its work went.
//!
//! A question of an agent is held while its attempt goes on: nothing is taken from the agent, and its `timeout` waits
//! with it. The answer is kept with the step. Whoever asks the same again, because it did not hear or because its
//! attempt was made again, finds it there, and the next attempt is told of it in its prompt.
//!
//! What an agent says about its work counts more than how its process ends, but the step ends with the process: until
//! then it works in the workspace.

use super::decide::not_ready;
use super::effect::{AttemptPart, RunEffect, TimerKey};
use super::event::{QuestionKind, RunEvent, RunQuestion, StepOutcome};
use super::input::{AttemptReport, QuestionRequest, RunAsker, RunInput, RunMode, Speaker};
use super::pending::RunPending;
use super::record::RunRecord;
use super::state::{StepStatus, attempt_of, parts};
use crate::machine::{Refusal, RefusalCode};
use crate::recipe::{FailureKind, StepId};

/// The most questions that the agents of one step may ask in one round.
const MOST_QUESTIONS: u32 = 100;
/// The most options of a question.
const MOST_OPTIONS: usize = 20;
/// The longest question with its options, in bytes.
const LONGEST_QUESTION: usize = 16 * 1024;

/// Whether `by` may say this. An agent speaks about its own attempt, and about nothing else.
pub(super) fn may_say(by: &RunAsker, input: &RunInput) -> Result<(), Refusal> {
    let refuse = |message: &str| Err(Refusal::new(RefusalCode::NotYours, message));
    match (by, input) {
        (RunAsker::Person, _) => Ok(()),
        (RunAsker::Agent(speaker), RunInput::Ask { by, .. } | RunInput::Said { by, .. }) if by == speaker => Ok(()),
        (RunAsker::Agent(_), _) => refuse("Not allowed: an agent may speak about its own step only"),
        (RunAsker::Stranger, _) => refuse("Not allowed: a session may speak about its own task or step only"),
    }
}

impl RunPending<'_> {
    /// The agent that speaks is at work: its attempt is under way.
    fn at_work(&self, by: &Speaker) -> Result<(), Refusal> {
        self.still_going()?;
        if by.step.0 as usize >= self.plan.recipe.steps.len() {
            return Err(not_ready("the run has no such step"));
        }
        let name = self.name(by.step);
        let state = self.step(by.step);
        // The exit code of a command says how it went; no agent's word counts.
        let is_agent = self.plan.recipe.step(by.step).work.prompt().is_some();
        if !is_agent || self.base.given.mode == RunMode::ByHand {
            let message = format!("`{name}` has no agent that could speak for it");
            return Err(not_ready(message).hint("a script or gate speaks by its exit code and by what it prints"));
        }
        let under_way = state.status.progress().is_some_and(|progress| {
            attempt_of(self, by.step, by.part) == by.attempt && parts(self, by.step, progress).contains(&by.part)
        });
        match under_way {
            true => Ok(()),
            false => Err(not_ready(format!("attempt {} of `{name}` is not under way", by.attempt))),
        }
    }

    /// An agent asks a person. What it has asked before is not asked again: the question or its answer is there.
    pub(super) fn ask(&mut self, by: &Speaker, ask: &QuestionRequest) -> Result<(), Refusal> {
        self.at_work(by)?;
        let (name, state) = (self.name(by.step), self.step(by.step));
        if state.asked(by.part, ask).is_some() {
            return Ok(());
        }
        if matches!(state.status, StepStatus::Stopping(..)) {
            return Err(not_ready(format!("`{name}` is being ended, and could not hear an answer")));
        }
        if state.asks >= MOST_QUESTIONS {
            let message = format!("`{name}` has asked {MOST_QUESTIONS} questions, and no step may ask more");
            return Err(not_ready(message).hint("decide, and say in the summary what you have decided"));
        }
        sound(ask)?;
        let deadline = ask.wait.map(|wait| self.now.after(wait));
        let question = RunQuestion {
            choices: ask.options.clone(),
            default: ask.default.clone(),
            deadline,
            since: self.now,
            ..RunQuestion::new(self.next_question(), QuestionKind::Clarification, ask.text.clone())
        };
        self.clear_timeout(by.step);
        if let Some(at) = deadline {
            self.wants(RunEffect::SetTimer(TimerKey::Question(question.id), at));
        }
        self.wants(RunEffect::Notify(question.told(name.as_str())));
        self.happens(RunEvent::Asked { step: by.step, part: by.part, question });
        Ok(())
    }

    /// The question is withdrawn: the agent goes on, and its time with it.
    pub(super) fn time_goes_on(&mut self, id: StepId) {
        let state = self.step(id);
        let Some(timeout) = self.plan.recipe.step(id).timeout.filter(|_| state.is_busy()) else { return };
        let key = TimerKey::Timeout(id, state.since);
        let at = self.now.after(timeout);
        self.wants(RunEffect::SetTimer(key, at));
    }

    /// Nobody waits any more for what the agents of a step have asked, or that of one part of it; true if there was
    /// something.
    pub(super) fn withdraw(&mut self, id: StepId, part: Option<AttemptPart>) -> bool {
        let asked = self.step(id).asked.iter().filter(|it| it.answer.is_none());
        let open: Vec<u32> =
            asked.filter(|it| part.is_none_or(|part| it.part == part)).map(|it| it.question.id).collect();
        for question in &open {
            self.happens(RunEvent::Withdrawn { step: id, question: *question });
        }
        !open.is_empty()
    }

    pub(super) fn said(&mut self, by: &Speaker, report: &AttemptReport) -> Result<(), Refusal> {
        self.at_work(by)?;
        if self.step(by.step).report(by.part) != Some(report) {
            self.happens(RunEvent::Said { step: by.step, part: by.part, report: report.clone() });
        }
        Ok(())
    }

    /// How a part has ended: as its agent said, if it said anything; what it left out is taken from the end.
    pub(super) fn settled(&self, id: StepId, part: AttemptPart, end: &AttemptReport) -> AttemptReport {
        let (AttemptReport::Completed(left) | AttemptReport::Failed { outcome: left, .. }) = end;
        match self.step(id).report(part) {
            Some(AttemptReport::Completed(said)) => AttemptReport::Completed(filled(said, left)),
            Some(AttemptReport::Failed { error, outcome, .. }) => AttemptReport::Failed {
                kind: FailureKind::Failed,
                error: error.clone(),
                outcome: filled(outcome, left),
            },
            None => end.clone(),
        }
    }
}

/// A question that a person can answer.
fn sound(ask: &QuestionRequest) -> Result<(), Refusal> {
    let refuse = |message: &str, hint: &str| Err(not_ready(message).hint(hint));
    let size = ask.text.len() + ask.options.iter().map(String::len).sum::<usize>();
    if ask.text.trim().is_empty() {
        return refuse("a question must say something", "say what you want to know");
    }
    if ask.options.len() > MOST_OPTIONS || size > LONGEST_QUESTION {
        let message = format!("a question has at most {MOST_OPTIONS} options and {LONGEST_QUESTION} bytes");
        return refuse(&message, "write what is long into a file, and name it in the question");
    }
    if ask.options.iter().any(|option| option.trim().is_empty()) {
        return refuse("an option must say something", "leave the empty option out");
    }
    match &ask.default {
        Some(default) if !ask.options.is_empty() && !ask.options.contains(default) => {
            refuse(&format!("the default `{default}` is none of the options"), "make it one of them")
        }
        Some(_) | None => Ok(()),
    }
}

fn filled(said: &StepOutcome, left: &StepOutcome) -> StepOutcome {
    StepOutcome {
        summary: if said.summary.is_empty() { left.summary.clone() } else { said.summary.clone() },
        result: said.result.clone().or_else(|| left.result.clone()),
        output: if said.output == crate::recipe::Data::Null { left.output.clone() } else { said.output.clone() },
        exit_code: said.exit_code.or(left.exit_code),
        stderr: said.stderr.clone().or_else(|| left.stderr.clone()),
        commit: said.commit.clone().or_else(|| left.commit.clone()),
        usage: said.usage.clone().or_else(|| left.usage.clone()),
    }
}
