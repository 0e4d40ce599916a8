//! Records events, on the state itself or on a [`super::sketch`] over it: one law for both.

use super::effect::AttemptPart;
use super::event::{QuestionKind, RunEvent, RunQuestion, StepFailure, StepOutcome};
use super::law::{self, StepHappening, StepStatusKind};
use super::plan::RunPlan;
use super::state::{
    AgentQuestion, AttemptProgress, ItemState, ItemStatus, QuestionAnswer, RunConclusion, RunCounts, RunTurn, StepMark,
    StepState, StepStatus, takes_place,
};
use crate::machine::Moment;
use crate::recipe::{FailureKind, OnLimit, StepId, StepWork};

/// How often a step whose worker went away is given to another, before that counts as a failure of its own.
pub(super) const MOST_LOSSES: u32 = 10;

pub(super) trait RunRecord {
    fn step(&self, id: StepId) -> &StepState;
    fn step_mut(&mut self, id: StepId) -> &mut StepState;
    fn item(&self, step: StepId, item: u32) -> Option<&ItemState>;
    fn set_item(&mut self, step: StepId, item: u32, state: ItemState);
    fn open_needs_mut(&mut self, id: StepId) -> &mut u32;
    fn mark(&mut self, mark: StepMark, id: StepId, is: bool);
    fn counts_mut(&mut self) -> &mut RunCounts;
    fn questions_mut(&mut self) -> &mut u32;
    /// How the run has ended, or how it is being ended.
    fn set_end(&mut self, end: Option<RunConclusion>, ending: Option<RunConclusion>);
}

/// Records `event` in `book`.
pub(super) fn record<B: RunRecord>(book: &mut B, plan: &RunPlan, event: &RunEvent) {
    match event {
        // What was given stands in the state from the beginning.
        RunEvent::Started { .. } => {}
        RunEvent::StepReady(step) => change(book, plan, *step, StepHappening::Ready, StepStatus::Ready),
        RunEvent::StepStarted { step, attempt, at, items } => {
            for (index, value) in (0u32..).zip(items.iter().flatten()) {
                book.set_item(*step, index, ItemState::new(value.clone()));
            }
            let progress = beginning(book, plan, *step, items.as_ref().map(Vec::len));
            started(book, plan, *step, *attempt, *at, progress);
        }
        RunEvent::PartStarted { step, part } => part_started(book, *step, *part),
        RunEvent::PartEnded { step, part, result } => part_ended(book, *step, *part, result),
        RunEvent::PartLost { step, part, until } => part_lost(book, *step, *part, *until),
        RunEvent::StepCompleted { step, outcome, at } => {
            change(book, plan, *step, StepHappening::Completed, StepStatus::Completed);
            let state = book.step_mut(*step);
            state.latest = Some(outcome.clone());
            state.left = None;
            state.ended = Some(*at);
        }
        RunEvent::AttemptFailed { step, outcome } => {
            note(book, *step, StepHappening::Part, |state| state.left = Some(outcome.clone()));
        }
        RunEvent::StepFailed { step, failure, at } => {
            change(book, plan, *step, StepHappening::Failed, StepStatus::Failed(failure.clone()));
            book.step_mut(*step).ended = Some(*at);
        }
        RunEvent::StepRetried { step, failure, until } => retried(book, plan, *step, failure, *until),
        RunEvent::StepSkipped { step, reason, at } => {
            change(book, plan, *step, StepHappening::Skipped, StepStatus::Skipped(*reason));
            book.step_mut(*step).ended = Some(*at);
        }
        RunEvent::StepHeld { step, question } => held(book, plan, *step, question),
        RunEvent::Answered { step, question, option, message, by } => {
            let answer = QuestionAnswer { option: option.clone(), message: message.clone(), by: *by };
            answered(book, *step, *question, answer);
        }
        RunEvent::Asked { step, part, question } => asked(book, *step, *part, question),
        RunEvent::Withdrawn { step, question } => {
            note(book, *step, StepHappening::Withdrawn, |state| state.asked.retain(|it| it.question.id != *question));
        }
        RunEvent::Said { step, part, report } => note(book, *step, StepHappening::Said, |state| {
            state.said.retain(|(of, _)| of != part);
            state.said.push((*part, report.clone()));
        }),
        RunEvent::StepStopping { step, failure } => {
            if let StepStatus::Running(mut progress) = book.step(*step).status.clone() {
                if let AttemptProgress::Items { total, running, .. } = &mut progress {
                    let kept = (0..*total).filter_map(|item| book.item(*step, item)).filter(|it| it.due.is_some());
                    *running = running.saturating_sub(u32::try_from(kept.count()).unwrap_or(u32::MAX));
                }
                let stopping = StepStatus::Stopping(progress, failure.clone());
                change(book, plan, *step, StepHappening::Stopping, stopping);
            }
        }
        RunEvent::LoopedBack { from, .. } => looped_back(book, plan, *from),
        RunEvent::Reopened { step, guidance } => reopened(book, plan, *step, guidance.clone()),
        // What it says follows from the steps.
        RunEvent::Blocked { .. } => {}
        RunEvent::Ending { end, at } => ending(book, plan, end, *at),
        RunEvent::StepCancelled { step, at } => cancelled(book, plan, *step, *at),
        RunEvent::Ended { end, at } => ended(book, plan, end, *at),
    }
}

fn started<B: RunRecord>(
    book: &mut B,
    plan: &RunPlan,
    step: StepId,
    attempt: u32,
    at: Moment,
    progress: AttemptProgress,
) {
    change(book, plan, step, StepHappening::Started, StepStatus::Running(progress));
    let state = book.step_mut(step);
    state.said.clear();
    state.attempts = attempt;
    state.since = attempt;
    state.began = Some(at);
}

/// Another attempt will be made. One whose worker went away goes on with the turns it had.
fn retried<B: RunRecord>(book: &mut B, plan: &RunPlan, step: StepId, failure: &StepFailure, until: Moment) {
    let progress = match &book.step(step).status {
        StepStatus::Running(progress @ AttemptProgress::Turns { .. }) if is_loss(failure) => Some(progress.clone()),
        _ => None,
    };
    let status = StepStatus::Retrying { failure: failure.clone(), until, progress };
    change(book, plan, step, StepHappening::Retried, status);
    count_failure(book.step_mut(step), failure);
}

fn asked<B: RunRecord>(book: &mut B, step: StepId, part: AttemptPart, question: &RunQuestion) {
    note(book, step, StepHappening::Asked, |state| {
        state.asks += 1;
        state.asked.push(AgentQuestion { part, question: question.clone(), answer: None });
    });
    *book.questions_mut() = question.id;
}

/// An agent's question has its answer, which is kept; or the question that a step is held for has.
fn answered<B: RunRecord>(book: &mut B, step: StepId, question: u32, answer: QuestionAnswer) {
    let held_for = match &book.step(step).status {
        StepStatus::Held { question, .. } => Some(question.kind),
        _ => None,
    };
    note(book, step, StepHappening::Answered, |state| match held_for {
        Some(kind) => {
            let again = answer.option == "retry";
            state.granted += u32::from(again && kind == QuestionKind::LoopExhausted);
            state.guidance.extend(answer.message.filter(|_| again));
        }
        None => {
            let asked = state.asked.iter_mut().find(|it| it.question.id == question);
            asked.into_iter().for_each(|it| it.answer = Some(answer.clone()));
        }
    });
}

/// Records what leaves a step in its status, if the law allows it.
///
/// What the law forbids is a fault of ours, and a panic: whoever drives the machine stops this run alone, and nothing of
/// the decision is stored. To leave the step as it is was rejected: the log would say what the state does not.
fn note<B: RunRecord>(book: &mut B, id: StepId, happening: StepHappening, change: impl FnOnce(&mut StepState)) {
    let status = book.step(id).status.kind();
    let allowed = law::next(status, happening) == Some(status);
    assert!(allowed, "step {} was {status:?} when {happening:?}", id.0);
    keep(book, id, change);
}

/// The step waits for a person, and so does the attempt that the question is about.
fn held<B: RunRecord>(book: &mut B, plan: &RunPlan, step: StepId, question: &RunQuestion) {
    let progress = book.step(step).status.progress().cloned();
    change(book, plan, step, StepHappening::Held, StepStatus::Held { question: question.clone(), progress });
    *book.questions_mut() = question.id;
}

/// Gives a step another status, if the law allows it (see [`note`]), and keeps what is at hand in step with it.
fn change<B: RunRecord>(book: &mut B, plan: &RunPlan, id: StepId, happening: StepHappening, status: StepStatus) {
    let before = book.step(id).status.kind();
    let allowed = law::next(before, happening);
    assert_eq!(allowed, Some(status.kind()), "step {} was {before:?} when {happening:?}", id.0);
    let after = status.kind();
    keep(book, id, |state| {
        state.status = status;
        if !after.is_under_way() {
            state.said.clear();
        }
    });
    let place = takes_place(plan.recipe.step(id));
    recount(&mut book.counts_mut().running, place && before.is_under_way(), place && after.is_under_way());
    book.mark(StepMark::Ready, id, after == StepStatusKind::Ready);
    park(book, id);
    let (was_open, is_open) = (!before.has_ended(), !after.has_ended());
    if was_open != is_open {
        recount(&mut book.counts_mut().open, was_open, is_open);
        for next in &plan.followers[id.0 as usize] {
            recount(book.open_needs_mut(*next), was_open, is_open);
            park(book, *next);
        }
    }
}

/// Marks a step that waits and needs nothing more, or takes the mark away.
fn park<B: RunRecord>(book: &mut B, id: StepId) {
    let parked = book.step(id).status.kind() == StepStatusKind::Waiting && *book.open_needs_mut(id) == 0;
    book.mark(StepMark::Parked, id, parked);
}

/// Counts one more or one less of something, if it was not so and is now, or the other way round.
fn recount(count: &mut u32, was: bool, is: bool) {
    *count = *count + u32::from(is) - u32::from(was);
}

/// Changes a step and keeps what is at hand about questions in step with it.
fn keep<B: RunRecord>(book: &mut B, id: StepId, change: impl FnOnce(&mut StepState)) {
    let was_busy = book.step(id).is_busy();
    let was_asking = book.step(id).is_asking();
    change(book.step_mut(id));
    let (busy, asking) = (book.step(id).is_busy(), book.step(id).is_asking());
    recount(&mut book.counts_mut().busy, was_busy, busy);
    if was_asking != asking {
        book.mark(StepMark::Asking, id, asking);
    }
}

/// Whether an attempt went away with its worker, which is not its own fault.
pub(super) fn is_loss(failure: &StepFailure) -> bool {
    matches!(failure, StepFailure::Attempt { kind: FailureKind::Lost, .. })
}

fn count_failure(state: &mut StepState, failure: &StepFailure) {
    match is_loss(failure) && state.losses < MOST_LOSSES {
        true => state.losses += 1,
        false => state.failures += 1,
    }
}

/// How an attempt begins. One that goes on after a question or a loss keeps what was done.
fn beginning<B: RunRecord>(book: &mut B, plan: &RunPlan, step: StepId, items: Option<usize>) -> AttemptProgress {
    let asked = matches!(book.step(step).status, StepStatus::Held { .. });
    match (&plan.recipe.step(step).work, book.step(step).status.kept().cloned()) {
        (StepWork::AgentLoop { max_iterations, .. }, Some(AttemptProgress::Turns { turn, said, .. })) if asked => {
            AttemptProgress::Turns { turn: turn + 1, limit: turn + max_iterations, said }
        }
        (StepWork::AgentLoop { .. }, Some(kept @ AttemptProgress::Turns { .. })) => kept,
        (StepWork::AgentLoop { max_iterations, .. }, _) => {
            AttemptProgress::Turns { turn: 1, limit: *max_iterations, said: Vec::new() }
        }
        (StepWork::ParallelAgents { .. }, Some(AttemptProgress::Items { total, .. })) if items.is_none() => {
            again(book, step, total);
            AttemptProgress::Items { total, next: 0, running: 0, failed: 0 }
        }
        (StepWork::ParallelAgents { .. }, _) => {
            let total = items.and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
            AttemptProgress::Items { total, next: 0, running: 0, failed: 0 }
        }
        (StepWork::Agent { .. } | StepWork::Script { .. } | StepWork::Gate { .. } | StepWork::Task(_), _) => {
            AttemptProgress::Single
        }
    }
}

/// The items that failed wait again.
fn again<B: RunRecord>(book: &mut B, step: StepId, total: u32) {
    for item in 0..total {
        if let Some(state) = book.item(step, item).filter(|it| matches!(it.status, ItemStatus::Failed(_))).cloned() {
            book.set_item(step, item, ItemState::new(state.value));
        }
    }
}

fn progress_mut(state: &mut StepState) -> Option<&mut AttemptProgress> {
    match &mut state.status {
        StepStatus::Running(progress) | StepStatus::Stopping(progress, _) => Some(progress),
        _ => None,
    }
}

fn part_started<B: RunRecord>(book: &mut B, step: StepId, part: AttemptPart) {
    if let AttemptPart::Item(item) = part
        && let Some(state) = book.item(step, item).cloned()
    {
        // One that was lost has kept its place.
        let places = u32::from(state.due.is_none());
        book.set_item(step, item, ItemState { status: ItemStatus::Running, due: None, ..state });
        let waits = |book: &B, item: u32| book.item(step, item).is_some_and(|it| it.status == ItemStatus::Waiting);
        let from = match &book.step(step).status {
            StepStatus::Running(AttemptProgress::Items { next, .. }) => *next,
            _ => item,
        };
        // One that was lost and is not due yet is passed over, and must be found again.
        let first = (from..=item).find(|before| waits(book, *before)).unwrap_or_else(|| from.max(item + 1));
        if let Some(AttemptProgress::Items { next, running, .. }) = progress_mut(book.step_mut(step)) {
            *next = first;
            *running += places;
        }
    }
}

/// The item waits again, for an attempt of its own: the one that was lost may still be somewhere. Until then it keeps
/// its place.
fn part_lost<B: RunRecord>(book: &mut B, step: StepId, part: AttemptPart, until: Option<Moment>) {
    if let AttemptPart::Item(item) = part
        && let Some(state) = book.item(step, item).cloned()
    {
        let of_step = book.step_mut(step);
        of_step.said.retain(|(of, _)| *of != part);
        of_step.attempts += 1;
        let (attempt, losses) = (of_step.attempts, state.losses + 1);
        let is_over = matches!(of_step.status, StepStatus::Stopping(..));
        if let Some(AttemptProgress::Items { next, running, .. }) = progress_mut(of_step) {
            *next = (*next).min(item);
            *running = running.saturating_sub(u32::from(is_over || until.is_none()));
        }
        let due = until.filter(|_| !is_over);
        book.set_item(step, item, ItemState { status: ItemStatus::Waiting, attempt, losses, due, ..state });
    }
}

fn part_ended<B: RunRecord>(book: &mut B, step: StepId, part: AttemptPart, result: &Result<StepOutcome, String>) {
    if let AttemptPart::Item(item) = part
        && let Some(state) = book.item(step, item).cloned()
    {
        let status = match result {
            Ok(outcome) => ItemStatus::Completed(outcome.clone()),
            Err(error) => ItemStatus::Failed(error.clone()),
        };
        book.set_item(step, item, ItemState { status, ..state });
    }
    let state = book.step_mut(step);
    state.said.retain(|(of, _)| *of != part);
    let Some(progress) = progress_mut(state) else { return };
    match (progress, part, result) {
        (AttemptProgress::Items { running, failed, .. }, AttemptPart::Item(_), result) => {
            *running = running.saturating_sub(1);
            *failed += u32::from(result.is_err());
        }
        (AttemptProgress::Turns { said, .. }, AttemptPart::Turn(_), Ok(work)) => {
            said.push(RunTurn { work: work.clone(), verdict: None });
        }
        (AttemptProgress::Turns { said, turn, limit }, AttemptPart::Arbiter(_), Ok(verdict)) => {
            if let Some(last) = said.last_mut() {
                last.verdict = Some(verdict.clone());
            }
            let goes_on = verdict.result.as_deref() == Some("actionable") && *turn < *limit;
            *turn += u32::from(goes_on);
        }
        _ => {}
    }
}

fn looped_back<B: RunRecord>(book: &mut B, plan: &RunPlan, from: StepId) {
    let Some(way) = plan.loop_from(from) else { return };
    book.step_mut(from).turns += 1;
    for step in &way.body {
        if book.step(*step).status.kind().has_ended() {
            change(book, plan, *step, StepHappening::Looped, StepStatus::Waiting);
        }
        let state = book.step_mut(*step);
        state.round += 1;
        state.asks = 0;
        state.failures = 0;
        state.losses = 0;
    }
}

/// Nothing more begins but the steps that always run; what is under way is waited for.
fn ending<B: RunRecord>(book: &mut B, plan: &RunPlan, end: &RunConclusion, at: Moment) {
    for id in plan.recipe.ids() {
        let kind = book.step(id).status.kind();
        let waits = !kind.has_ended() && !kind.is_under_way();
        if waits && (kind == StepStatusKind::Held || !plan.recipe.step(id).always) {
            cancelled(book, plan, id, at);
        }
    }
    book.set_end(None, Some(end.clone()));
}

/// The step waits again, and so does what failed only because of it.
fn reopened<B: RunRecord>(book: &mut B, plan: &RunPlan, step: StepId, guidance: Option<String>) {
    book.set_end(None, None);
    if matches!(book.step(step).status, StepStatus::Failed(StepFailure::LoopExhausted)) {
        book.step_mut(step).granted += 1;
    }
    let mut open = vec![step];
    while let Some(id) = open.pop() {
        let failed = matches!(book.step(id).status, StepStatus::Failed(_));
        let because = matches!(book.step(id).status, StepStatus::Failed(StepFailure::Upstream(_)));
        if failed && (id == step || because) {
            change(book, plan, id, StepHappening::Reopened, StepStatus::Waiting);
            let state = book.step_mut(id);
            state.failures = 0;
            state.losses = 0;
            state.ended = None;
            open.extend(plan.followers[id.0 as usize].iter().copied());
        }
    }
    book.step_mut(step).guidance.extend(guidance);
}

fn ended<B: RunRecord>(book: &mut B, plan: &RunPlan, end: &RunConclusion, at: Moment) {
    if book.counts_mut().open > 0 {
        for id in plan.recipe.ids() {
            if !book.step(id).status.kind().has_ended() {
                cancelled(book, plan, id, at);
            }
        }
    }
    book.set_end(Some(end.clone()), None);
}

fn cancelled<B: RunRecord>(book: &mut B, plan: &RunPlan, step: StepId, at: Moment) {
    change(book, plan, step, StepHappening::RunEnded, StepStatus::Cancelled);
    book.step_mut(step).ended = Some(at);
}

pub(super) fn asks(limit: OnLimit) -> bool {
    match limit {
        OnLimit::Block => true,
        OnLimit::Continue => false,
    }
}
