//! Records events, on the state itself or on a [`super::sketch`] over it: one law for both.

use super::effect::Part;
use super::event::{Event, Failure, Outcome, Question, QuestionKind};
use super::law::{self, Happening, Status};
use super::plan::Plan;
use super::state::{
    Answer, Asked, End, ItemState, ItemStatus, Progress, RunState, StepState, StepStatus, Turn, takes_place,
};
use crate::machine::Moment;
use crate::recipe::{FailureKind, OnLimit, StepId, Work};

/// How often a step whose worker went away is given to another, before that counts as a failure of its own.
pub(super) const MOST_LOSSES: u32 = 10;

/// What events are recorded in.
pub(super) trait Book {
    fn step(&self, id: StepId) -> &StepState;
    fn step_mut(&mut self, id: StepId) -> &mut StepState;
    fn item(&self, step: StepId, item: u32) -> Option<&ItemState>;
    fn set_item(&mut self, step: StepId, item: u32, state: ItemState);
    fn open_needs_mut(&mut self, id: StepId) -> &mut u32;
    fn set_ready(&mut self, id: StepId, ready: bool);
    fn set_parked(&mut self, id: StepId, parked: bool);
    fn running_mut(&mut self) -> &mut u32;
    fn open_mut(&mut self) -> &mut u32;
    fn busy_mut(&mut self) -> &mut u32;
    fn set_asking(&mut self, id: StepId, asking: bool);
    fn questions_mut(&mut self) -> &mut u32;
    fn set_end(&mut self, end: Option<End>);
    fn set_ending(&mut self, ending: Option<End>);
}

/// Records `event` in `book`.
pub(super) fn record<B: Book>(book: &mut B, plan: &Plan, event: &Event) {
    match event {
        // What was given stands in the state from the beginning.
        Event::Started { .. } => {}
        Event::StepReady(step) => change(book, plan, *step, Happening::Ready, StepStatus::Ready),
        Event::StepStarted { step, attempt, at, items } => {
            for (index, value) in (0u32..).zip(items.iter().flatten()) {
                book.set_item(*step, index, ItemState::new(value.clone()));
            }
            let progress = beginning(book, plan, *step, items.as_ref().map(Vec::len));
            started(book, plan, *step, *attempt, *at, progress);
        }
        Event::PartStarted { step, part } => part_started(book, *step, *part),
        Event::PartEnded { step, part, result } => part_ended(book, *step, *part, result),
        Event::PartLost { step, part, until } => part_lost(book, *step, *part, *until),
        Event::StepCompleted { step, outcome, at } => {
            change(book, plan, *step, Happening::Completed, StepStatus::Completed);
            let state = book.step_mut(*step);
            state.latest = Some(outcome.clone());
            state.left = None;
            state.ended = Some(*at);
        }
        Event::AttemptFailed { step, outcome } => {
            note(book, *step, Happening::Part, |state| state.left = Some(outcome.clone()));
        }
        Event::StepFailed { step, failure, at } => {
            change(book, plan, *step, Happening::Failed, StepStatus::Failed(failure.clone()));
            book.step_mut(*step).ended = Some(*at);
        }
        Event::StepRetried { step, failure, until } => retried(book, plan, *step, failure, *until),
        Event::StepSkipped { step, reason, at } => {
            change(book, plan, *step, Happening::Skipped, StepStatus::Skipped(*reason));
            book.step_mut(*step).ended = Some(*at);
        }
        Event::StepHeld { step, question } => held(book, plan, *step, question),
        Event::Answered { step, question, option, message, by } => {
            let answer = Answer { option: option.clone(), message: message.clone(), by: *by };
            answered(book, *step, *question, answer);
        }
        Event::Asked { step, part, question } => asked(book, *step, *part, question),
        Event::Withdrawn { step, question } => {
            note(book, *step, Happening::Withdrawn, |state| state.asked.retain(|it| it.question.id != *question));
        }
        Event::Said { step, part, report } => note(book, *step, Happening::Said, |state| {
            state.said.retain(|(of, _)| of != part);
            state.said.push((*part, report.clone()));
        }),
        Event::StepStopping { step, failure } => {
            if let StepStatus::Running(mut progress) = book.step(*step).status.clone() {
                if let Progress::Items { total, running, .. } = &mut progress {
                    let kept = (0..*total).filter_map(|item| book.item(*step, item)).filter(|it| it.due.is_some());
                    *running = running.saturating_sub(u32::try_from(kept.count()).unwrap_or(u32::MAX));
                }
                let stopping = StepStatus::Stopping(progress, failure.clone());
                change(book, plan, *step, Happening::Stopping, stopping);
            }
        }
        Event::LoopedBack { from, .. } => looped_back(book, plan, *from),
        Event::Reopened { step, guidance } => reopened(book, plan, *step, guidance.clone()),
        // What it says follows from the steps.
        Event::Blocked { .. } => {}
        Event::Ending { end, at } => ending(book, plan, end, *at),
        Event::StepCancelled { step, at } => {
            change(book, plan, *step, Happening::RunEnded, StepStatus::Cancelled);
            book.step_mut(*step).ended = Some(*at);
        }
        Event::Ended { end, at } => ended(book, plan, end, *at),
    }
}

fn started<B: Book>(book: &mut B, plan: &Plan, step: StepId, attempt: u32, at: Moment, progress: Progress) {
    change(book, plan, step, Happening::Started, StepStatus::Running(progress));
    let state = book.step_mut(step);
    state.said.clear();
    state.attempts = attempt;
    state.since = attempt;
    state.began = Some(at);
}

/// Another attempt will be made. One whose worker went away goes on with the turns it had.
fn retried<B: Book>(book: &mut B, plan: &Plan, step: StepId, failure: &Failure, until: Moment) {
    let progress = match &book.step(step).status {
        StepStatus::Running(progress @ Progress::Turns { .. }) if is_loss(failure) => Some(progress.clone()),
        _ => None,
    };
    let status = StepStatus::Retrying { failure: failure.clone(), until, progress };
    change(book, plan, step, Happening::Retried, status);
    count_failure(book.step_mut(step), failure);
}

fn asked<B: Book>(book: &mut B, step: StepId, part: Part, question: &Question) {
    note(book, step, Happening::Asked, |state| {
        state.asks += 1;
        state.asked.push(Asked { part, question: question.clone(), answer: None });
    });
    *book.questions_mut() = question.id;
}

/// An agent's question has its answer, which is kept; or the question that a step is held for has.
fn answered<B: Book>(book: &mut B, step: StepId, question: u32, answer: Answer) {
    let held_for = match &book.step(step).status {
        StepStatus::Held { question, .. } => Some(question.kind),
        _ => None,
    };
    note(book, step, Happening::Answered, |state| match held_for {
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
fn note<B: Book>(book: &mut B, id: StepId, happening: Happening, change: impl FnOnce(&mut StepState)) {
    let status = book.step(id).status.kind();
    let allowed = law::next(status, happening) == Some(status);
    assert!(allowed, "step {} was {status:?} when {happening:?}", id.0);
    keep(book, id, change);
}

/// The step waits for a person, and so does the attempt that the question is about.
fn held<B: Book>(book: &mut B, plan: &Plan, step: StepId, question: &Question) {
    let progress = match &book.step(step).status {
        StepStatus::Running(progress) | StepStatus::Stopping(progress, _) => Some(progress.clone()),
        _ => None,
    };
    change(book, plan, step, Happening::Held, StepStatus::Held { question: question.clone(), progress });
    *book.questions_mut() = question.id;
}

/// Gives a step another status, if the law allows it (see [`note`]), and keeps what is at hand in step with it.
fn change<B: Book>(book: &mut B, plan: &Plan, id: StepId, happening: Happening, status: StepStatus) {
    let before = book.step(id).status.kind();
    let allowed = law::next(before, happening);
    assert_eq!(allowed, Some(status.kind()), "step {} was {before:?} when {happening:?}", id.0);
    let after = status.kind();
    keep(book, id, |state| {
        state.status = status;
        if !matches!(after, Status::Running | Status::Stopping) {
            state.said.clear();
        }
    });
    let place = takes_place(plan.recipe.step(id));
    let runs = |kind: Status| place && matches!(kind, Status::Running | Status::Stopping);
    match (runs(before), runs(after)) {
        (false, true) => *book.running_mut() += 1,
        (true, false) => *book.running_mut() -= 1,
        (true, true) | (false, false) => {}
    }
    book.set_ready(id, after == Status::Ready);
    match (before.has_ended(), after.has_ended()) {
        (false, true) => {
            *book.open_mut() -= 1;
            plan.followers[id.0 as usize].iter().for_each(|next| *book.open_needs_mut(*next) -= 1);
        }
        (true, false) => {
            *book.open_mut() += 1;
            plan.followers[id.0 as usize].iter().for_each(|next| *book.open_needs_mut(*next) += 1);
        }
        (true, true) | (false, false) => {}
    }
    let parked = after == Status::Waiting && *book.open_needs_mut(id) == 0;
    book.set_parked(id, parked);
    let follows = (before.has_ended() != after.has_ended()).then_some(&plan.followers[id.0 as usize]);
    for next in follows.into_iter().flatten() {
        let parked = book.step(*next).status.kind() == Status::Waiting && *book.open_needs_mut(*next) == 0;
        book.set_parked(*next, parked);
    }
}

/// Changes a step and keeps what is at hand about questions in step with it.
fn keep<B: Book>(book: &mut B, id: StepId, change: impl FnOnce(&mut StepState)) {
    let was_busy = book.step(id).is_busy();
    let was_asking = book.step(id).is_asking();
    change(book.step_mut(id));
    let (busy, asking) = (book.step(id).is_busy(), book.step(id).is_asking());
    match (was_busy, busy) {
        (false, true) => *book.busy_mut() += 1,
        (true, false) => *book.busy_mut() -= 1,
        (true, true) | (false, false) => {}
    }
    if was_asking != asking {
        book.set_asking(id, asking);
    }
}

/// Whether an attempt went away with its worker, which is not its own fault.
pub(super) fn is_loss(failure: &Failure) -> bool {
    matches!(failure, Failure::Attempt { kind: FailureKind::Lost, .. })
}

fn count_failure(state: &mut StepState, failure: &Failure) {
    match is_loss(failure) && state.losses < MOST_LOSSES {
        true => state.losses += 1,
        false => state.failures += 1,
    }
}

/// How an attempt begins. One that goes on after a question or a loss keeps what was done.
fn beginning<B: Book>(book: &mut B, plan: &Plan, step: StepId, items: Option<usize>) -> Progress {
    let asked = matches!(book.step(step).status, StepStatus::Held { .. });
    match (&plan.recipe.step(step).work, book.step(step).status.kept().cloned()) {
        (Work::AgentLoop { max_iterations, .. }, Some(Progress::Turns { turn, said, .. })) if asked => {
            Progress::Turns { turn: turn + 1, limit: turn + max_iterations, said }
        }
        (Work::AgentLoop { .. }, Some(kept @ Progress::Turns { .. })) => kept,
        (Work::AgentLoop { max_iterations, .. }, _) => {
            Progress::Turns { turn: 1, limit: *max_iterations, said: Vec::new() }
        }
        (Work::ParallelAgents { .. }, Some(Progress::Items { total, .. })) if items.is_none() => {
            again(book, step, total);
            Progress::Items { total, next: 0, running: 0, failed: 0 }
        }
        (Work::ParallelAgents { .. }, _) => {
            let total = items.and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
            Progress::Items { total, next: 0, running: 0, failed: 0 }
        }
        (Work::Agent { .. } | Work::Script { .. } | Work::Gate { .. } | Work::Task(_), _) => Progress::Single,
    }
}

/// The items that failed wait again.
fn again<B: Book>(book: &mut B, step: StepId, total: u32) {
    for item in 0..total {
        if let Some(state) = book.item(step, item).filter(|it| matches!(it.status, ItemStatus::Failed(_))).cloned() {
            book.set_item(step, item, ItemState::new(state.value));
        }
    }
}

fn progress_mut(state: &mut StepState) -> Option<&mut Progress> {
    match &mut state.status {
        StepStatus::Running(progress) | StepStatus::Stopping(progress, _) => Some(progress),
        _ => None,
    }
}

fn part_started<B: Book>(book: &mut B, step: StepId, part: Part) {
    if let Part::Item(item) = part
        && let Some(state) = book.item(step, item).cloned()
    {
        // One that was lost has kept its place.
        let places = u32::from(state.due.is_none());
        book.set_item(step, item, ItemState { status: ItemStatus::Running, due: None, ..state });
        let waits = |book: &B, item: u32| book.item(step, item).is_some_and(|it| it.status == ItemStatus::Waiting);
        let from = match &book.step(step).status {
            StepStatus::Running(Progress::Items { next, .. }) => *next,
            _ => item,
        };
        // One that was lost and is not due yet is passed over, and must be found again.
        let first = (from..=item).find(|before| waits(book, *before)).unwrap_or_else(|| from.max(item + 1));
        if let Some(Progress::Items { next, running, .. }) = progress_mut(book.step_mut(step)) {
            *next = first;
            *running += places;
        }
    }
}

/// The item waits again, for an attempt of its own: the one that was lost may still be somewhere. Until then it keeps
/// its place.
fn part_lost<B: Book>(book: &mut B, step: StepId, part: Part, until: Option<Moment>) {
    if let Part::Item(item) = part
        && let Some(state) = book.item(step, item).cloned()
    {
        let of_step = book.step_mut(step);
        of_step.said.retain(|(of, _)| *of != part);
        of_step.attempts += 1;
        let (attempt, losses) = (of_step.attempts, state.losses + 1);
        let is_over = matches!(of_step.status, StepStatus::Stopping(..));
        if let Some(Progress::Items { next, running, .. }) = progress_mut(of_step) {
            *next = (*next).min(item);
            *running = running.saturating_sub(u32::from(is_over || until.is_none()));
        }
        let due = until.filter(|_| !is_over);
        book.set_item(step, item, ItemState { status: ItemStatus::Waiting, attempt, losses, due, ..state });
    }
}

fn part_ended<B: Book>(book: &mut B, step: StepId, part: Part, result: &Result<Outcome, String>) {
    if let Part::Item(item) = part
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
        (Progress::Items { running, failed, .. }, Part::Item(_), result) => {
            *running = running.saturating_sub(1);
            *failed += u32::from(result.is_err());
        }
        (Progress::Turns { said, .. }, Part::Turn(_), Ok(work)) => {
            said.push(Turn { work: work.clone(), verdict: None });
        }
        (Progress::Turns { said, turn, limit }, Part::Arbiter(_), Ok(verdict)) => {
            if let Some(last) = said.last_mut() {
                last.verdict = Some(verdict.clone());
            }
            let goes_on = verdict.result.as_deref() == Some("actionable") && *turn < *limit;
            *turn += u32::from(goes_on);
        }
        _ => {}
    }
}

fn looped_back<B: Book>(book: &mut B, plan: &Plan, from: StepId) {
    let Some(way) = plan.loop_from(from) else { return };
    book.step_mut(from).turns += 1;
    for step in &way.body {
        if book.step(*step).status.kind().has_ended() {
            change(book, plan, *step, Happening::Looped, StepStatus::Waiting);
        }
        let state = book.step_mut(*step);
        state.round += 1;
        state.asks = 0;
        state.failures = 0;
        state.losses = 0;
    }
}

/// Nothing more begins but the steps that always run; what is under way is waited for.
fn ending<B: Book>(book: &mut B, plan: &Plan, end: &End, at: Moment) {
    for id in (0u32..).map(StepId).take(plan.recipe.steps.len()) {
        let waits = match book.step(id).status.kind() {
            Status::Waiting | Status::Ready | Status::Retrying => !plan.recipe.step(id).always,
            Status::Held => true,
            Status::Running
            | Status::Stopping
            | Status::Completed
            | Status::Failed
            | Status::Skipped
            | Status::Cancelled => false,
        };
        if waits {
            change(book, plan, id, Happening::RunEnded, StepStatus::Cancelled);
            book.step_mut(id).ended = Some(at);
        }
    }
    book.set_ending(Some(end.clone()));
}

/// The step waits again, and so does what failed only because of it.
fn reopened<B: Book>(book: &mut B, plan: &Plan, step: StepId, guidance: Option<String>) {
    book.set_end(None);
    if matches!(book.step(step).status, StepStatus::Failed(Failure::LoopExhausted)) {
        book.step_mut(step).granted += 1;
    }
    let mut open = vec![step];
    while let Some(id) = open.pop() {
        let failed = matches!(book.step(id).status, StepStatus::Failed(_));
        let because = matches!(book.step(id).status, StepStatus::Failed(Failure::Upstream(_)));
        if failed && (id == step || because) {
            change(book, plan, id, Happening::Reopened, StepStatus::Waiting);
            let state = book.step_mut(id);
            state.failures = 0;
            state.losses = 0;
            state.ended = None;
            open.extend(plan.followers[id.0 as usize].iter().copied());
        }
    }
    book.step_mut(step).guidance.extend(guidance);
}

fn ended<B: Book>(book: &mut B, plan: &Plan, end: &End, at: Moment) {
    if *book.open_mut() > 0 {
        for id in (0u32..).map(StepId).take(plan.recipe.steps.len()) {
            if !book.step(id).status.kind().has_ended() {
                change(book, plan, id, Happening::RunEnded, StepStatus::Cancelled);
                book.step_mut(id).ended = Some(at);
            }
        }
    }
    book.set_ending(None);
    book.set_end(Some(end.clone()));
}

/// Whether a limit asks a person.
pub(super) fn asks(limit: OnLimit) -> bool {
    match limit {
        OnLimit::Block => true,
        OnLimit::Continue => false,
    }
}

impl Book for RunState {
    fn step(&self, id: StepId) -> &StepState {
        &self.steps[id.0 as usize]
    }

    fn step_mut(&mut self, id: StepId) -> &mut StepState {
        &mut self.steps[id.0 as usize]
    }

    fn item(&self, step: StepId, item: u32) -> Option<&ItemState> {
        self.items.get(&(step, item))
    }

    fn set_item(&mut self, step: StepId, item: u32, state: ItemState) {
        self.items.insert((step, item), state);
    }

    fn open_needs_mut(&mut self, id: StepId) -> &mut u32 {
        &mut self.at_hand.open_needs[id.0 as usize]
    }

    fn set_ready(&mut self, id: StepId, ready: bool) {
        match ready {
            true => drop(self.at_hand.ready.insert(id)),
            false => drop(self.at_hand.ready.remove(&id)),
        }
    }

    fn set_parked(&mut self, id: StepId, parked: bool) {
        match parked {
            true => drop(self.at_hand.parked.insert(id)),
            false => drop(self.at_hand.parked.remove(&id)),
        }
    }

    fn running_mut(&mut self) -> &mut u32 {
        &mut self.at_hand.running
    }

    fn open_mut(&mut self) -> &mut u32 {
        &mut self.at_hand.open
    }

    fn busy_mut(&mut self) -> &mut u32 {
        &mut self.at_hand.busy
    }

    fn set_asking(&mut self, id: StepId, asking: bool) {
        match asking {
            true => drop(self.at_hand.asking.insert(id)),
            false => drop(self.at_hand.asking.remove(&id)),
        }
    }

    fn questions_mut(&mut self) -> &mut u32 {
        &mut self.questions
    }

    fn set_end(&mut self, end: Option<End>) {
        self.end = end;
    }

    fn set_ending(&mut self, ending: Option<End>) {
        self.ending = ending;
    }
}
