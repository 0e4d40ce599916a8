//! Carrying out a step: what is begun, and what follows when a part of it has ended.

use super::effect::{AttemptPart, Perform, RunEffect, RunJob, TimerKey};
use super::event::{QuestionKind, RunEvent, RunQuestion, StepFailure, StepOutcome};
use super::pending::RunPending;
use super::record::{RunRecord, asks};
use super::state::{AttemptProgress, ItemState, ItemStatus, StepStatus, attempt_of, parts, timers};
use super::values::{Locals, history};
use crate::recipe::{Data, FailureKind, FanOutItems, StepId, StepWork};

/// The most items of one fan-out.
const MOST_ITEMS: usize = 10_000;

/// What the error of an item begins with whose work cannot be brought together with that of the others. A person is asked
/// about it whatever `on_failure` says: that is about items that failed, and this one did its work.
pub const CONFLICT: &str = "conflict: ";

/// What is said about a step that was ended by its `timeout`.
pub(super) const TIMED_OUT: &str = "it took longer than its `timeout`";

impl RunPending<'_> {
    /// Begins an attempt at a step that is ready, or lets it fail if a value is not there.
    pub(super) fn start(&mut self, id: StepId) {
        let attempt = self.step(id).attempts + 1;
        let (items, failure) = match self.items_of(id) {
            Ok(items) => (items, None),
            Err(failure) => (Some(Vec::new()), Some(failure)),
        };
        let now = self.now;
        self.happens(RunEvent::StepStarted { step: id, attempt, at: now, items });
        if let Some(failure) = failure {
            return self.fails(id, failure);
        }
        if let Some(timeout) = self.plan.recipe.step(id).timeout {
            self.wants(RunEffect::SetTimer(TimerKey::Timeout(id, attempt), now.after(timeout)));
        }
        self.go_on(id);
    }

    /// The list that a fan-out goes over; `None` when it is no fan-out, or goes on with the items it had.
    fn items_of(&self, id: StepId) -> Result<Option<Vec<Data>>, StepFailure> {
        let unfit = |error: String| StepFailure::Attempt { kind: FailureKind::Failed, error };
        let StepWork::ParallelAgents { items, .. } = &self.plan.recipe.step(id).work else { return Ok(None) };
        if matches!(self.step(id).status.kept(), Some(AttemptProgress::Items { .. })) {
            return Ok(None);
        }
        let list = match items {
            FanOutItems::Listed(items) => items.clone(),
            FanOutItems::Variable(template) => {
                let path = template.as_variable().ok_or_else(|| StepFailure::Undefined("for_each".to_owned()))?;
                match self.value(path, id, &Locals::default()) {
                    Some(Data::List(items)) => items,
                    Some(_) => return Err(unfit(format!("`{path}` is not a list, and `for_each` goes over one"))),
                    None => return Err(StepFailure::Undefined(path.to_string())),
                }
            }
        };
        match list.len() > MOST_ITEMS {
            true => {
                Err(unfit(format!("`for_each` goes over at most {MOST_ITEMS} items, and these are {}", list.len())))
            }
            false => Ok(Some(list)),
        }
    }

    /// Asks for what is to be done next of an attempt that is under way, and ends it when that is nothing.
    pub(super) fn go_on(&mut self, id: StepId) {
        let StepStatus::Running(progress) = self.step(id).status.clone() else { return };
        let asked = match progress {
            AttemptProgress::Single => self.whole(id),
            AttemptProgress::Turns { turn, said, .. } => {
                let judged = said.len() >= turn as usize;
                self.turn(id, turn, judged, &said)
            }
            AttemptProgress::Items { total, next, running, failed } => {
                return self.more_items(id, total, next, running, failed);
            }
        };
        match asked {
            Ok((part, job)) => self.perform(id, part, job),
            Err(failure) => self.fails(id, failure),
        }
    }

    fn perform(&mut self, id: StepId, part: AttemptPart, job: RunJob) {
        let step = self.plan.recipe.step(id);
        let attempt = attempt_of(self, id, part);
        self.wants(RunEffect::Perform(Box::new(Perform {
            step: id,
            attempt,
            part,
            role: step.role.clone(),
            job,
            workspace: step.workspace,
            harness: step.harness.clone(),
            permissions: step.permissions,
        })));
    }

    fn whole(&self, id: StepId) -> Result<(AttemptPart, RunJob), StepFailure> {
        let none = Locals::default();
        let fill = |text| self.fill(text, id, &none);
        let job = match &self.plan.recipe.step(id).work {
            StepWork::Script { command } => RunJob::Script(self.script(command, id, &none)?),
            StepWork::Gate { command, .. } => RunJob::Gate(self.script(command, id, &none)?),
            StepWork::Task(task) => RunJob::Task {
                summary: fill(&task.summary)?,
                branch: task.branch.as_ref().map(fill).transpose()?,
                workflow: task.workflow.clone(),
                project: task.project.clone(),
                context: task.context.as_ref().map(fill).transpose()?,
            },
            StepWork::Agent { prompt }
            | StepWork::AgentLoop { prompt, .. }
            | StepWork::ParallelAgents { prompt, .. } => {
                let (prompt, folder_at) = self.prompt(prompt, id, &none)?;
                RunJob::Agent { prompt, folder_at }
            }
        };
        Ok((AttemptPart::Whole, job))
    }

    fn turn(
        &self,
        id: StepId,
        turn: u32,
        judged: bool,
        said: &[super::state::RunTurn],
    ) -> Result<(AttemptPart, RunJob), StepFailure> {
        let StepWork::AgentLoop { prompt, arbiter, .. } = &self.plan.recipe.step(id).work else {
            return self.whole(id);
        };
        let mut locals = Locals { turn: Some((turn, history(said))), ..Locals::default() };
        if !judged {
            let (prompt, folder_at) = self.prompt(prompt, id, &locals)?;
            return Ok((AttemptPart::Turn(turn), RunJob::Agent { prompt, folder_at }));
        }
        let work = said.last().map(|turn| turn.work.clone()).unwrap_or_default();
        locals.output = Some(work.output.clone());
        locals.turn = Some((turn, history(&said[..said.len().saturating_sub(1)])));
        let (asked, folder_at) = self.prompt(arbiter, id, &locals)?;
        // The arbiter always sees the work and what was said before, whether its prompt asks for it or not.
        let (before, output) = (history(&said[..said.len().saturating_sub(1)]), work.output.to_text());
        let prompt = format!("{asked}\n\n## What you judge\n\n{output}\n\n## Earlier turns\n\n{before}");
        Ok((AttemptPart::Arbiter(turn), RunJob::Arbiter { prompt, folder_at }))
    }

    /// Begins as many items as there is room for; ends the step when all have ended.
    fn more_items(&mut self, id: StepId, total: u32, next: u32, mut running: u32, failed: u32) {
        let StepWork::ParallelAgents { max_concurrent, on_failure, .. } = &self.plan.recipe.step(id).work else {
            return;
        };
        let mut item = next;
        while running < *max_concurrent && item < total {
            let begins = |it: &ItemState| it.status == ItemStatus::Waiting && it.due.is_none();
            if self.item(id, item).is_some_and(begins) {
                if !self.begin_item(id, item) {
                    return;
                }
                running += 1;
            }
            item += 1;
        }
        if running > 0 {
            return;
        }
        let conflict =
            if failed > 0 { self.first_failure(id, total, |error| error.starts_with(CONFLICT)) } else { None };
        match conflict.is_some() || (failed > 0 && asks(*on_failure)) {
            true => {
                let why = conflict.or_else(|| self.first_failure(id, total, |_| true));
                let why = why.map(|error| format!("; {error}")).unwrap_or_default();
                let reason = format!("{failed} of {total} items failed{why}");
                self.holds_up(id, QuestionKind::PartialFailure, reason);
            }
            false => {
                let outcome = self.gathered(id, total, failed);
                self.completes(id, outcome);
            }
        }
    }

    /// Begins an item; false if it cannot begin, and with it the attempt has failed.
    pub(super) fn begin_item(&mut self, id: StepId, item: u32) -> bool {
        let StepWork::ParallelAgents { prompt, .. } = &self.plan.recipe.step(id).work else { return false };
        let Some(value) = self.item(id, item).map(|it| it.value.clone()) else { return false };
        let locals = Locals { item: Some((value, item)), ..Locals::default() };
        match self.prompt(prompt, id, &locals) {
            Ok((prompt, folder_at)) => {
                self.happens(RunEvent::PartStarted { step: id, part: AttemptPart::Item(item) });
                self.perform(id, AttemptPart::Item(item), RunJob::Agent { prompt, folder_at });
                true
            }
            // The items that are under way end first: a step that has ended has nothing at work any more.
            Err(failure) => {
                self.cannot_go_on(id, failure);
                false
            }
        }
    }

    fn cannot_go_on(&mut self, id: StepId, failure: StepFailure) {
        match &self.step(id).status {
            StepStatus::Running(progress) if !parts(self, id, progress).is_empty() => self.stops(id, failure),
            _ => self.fails(id, failure),
        }
    }

    /// The first item that failed with such an error, in words.
    fn first_failure(&self, id: StepId, total: u32, is_such: impl Fn(&str) -> bool) -> Option<String> {
        (0..total).find_map(|item| match self.item(id, item).map(|it| &it.status) {
            Some(ItemStatus::Failed(error)) if is_such(error) => {
                Some(format!("item {item}: {}", error.lines().next().unwrap_or_default()))
            }
            Some(_) | None => None,
        })
    }

    /// The outputs of all items, in their order; what failed says why.
    pub(super) fn gathered(&self, id: StepId, total: u32, failed: u32) -> StepOutcome {
        let output = (0..total).map(|item| match self.item(id, item).map(|it| &it.status) {
            Some(ItemStatus::Completed(outcome)) => outcome.output.clone(),
            Some(ItemStatus::Failed(error)) => Data::Table(vec![("error".into(), Data::Text(error.clone()))]),
            Some(ItemStatus::Waiting | ItemStatus::Running) | None => Data::Null,
        });
        // Their work is brought together in their order: where the last of it stands, all of it does.
        let merged = (0..total).rev().find_map(|item| match self.item(id, item).map(|it| &it.status) {
            Some(ItemStatus::Completed(outcome)) => outcome.commit.clone(),
            Some(ItemStatus::Failed(_) | ItemStatus::Waiting | ItemStatus::Running) | None => None,
        });
        StepOutcome {
            summary: match failed {
                0 => format!("{total} items completed"),
                _ => format!("{} of {total} items completed, {failed} failed", total - failed),
            },
            output: Data::List(output.collect()),
            commit: merged,
            ..StepOutcome::default()
        }
    }

    pub(super) fn holds_up(&mut self, id: StepId, kind: QuestionKind, reason: String) {
        let unanswered = match &self.plan.recipe.step(id).work {
            StepWork::Gate { unanswered, .. } => *unanswered,
            StepWork::Agent { .. }
            | StepWork::AgentLoop { .. }
            | StepWork::ParallelAgents { .. }
            | StepWork::Script { .. }
            | StepWork::Task(_) => None,
        };
        let unanswered = unanswered.filter(|_| kind == QuestionKind::Gate);
        let question = RunQuestion {
            since: self.now,
            default: unanswered.map(|it| it.answer.word().to_owned()),
            deadline: unanswered.map(|it| self.now.after(it.after)),
            ..RunQuestion::new(self.next_question(), kind, reason)
        };
        let name = self.plan.recipe.step(id).name.clone();
        self.clear_timers(id);
        self.wants(RunEffect::Notify(question.told(name.as_str())));
        if let Some(at) = question.deadline {
            self.wants(RunEffect::SetTimer(TimerKey::Question(question.id), at));
        }
        self.happens(RunEvent::StepHeld { step: id, question });
    }

    /// The time of a step stands still.
    pub(super) fn clear_timeout(&mut self, id: StepId) {
        let set = timers(self, self.plan, id).into_iter().filter(|key| matches!(key, TimerKey::Timeout(..)));
        set.for_each(|key| self.wants(RunEffect::ClearTimer(key)));
    }

    /// An attempt is over: nobody needs to be told of its times any more. Deadlines go with their questions.
    pub(super) fn clear_timers(&mut self, id: StepId) {
        let set = timers(self, self.plan, id).into_iter().filter(|key| !matches!(key, TimerKey::Question(_)));
        set.for_each(|key| self.wants(RunEffect::ClearTimer(key)));
    }
}
