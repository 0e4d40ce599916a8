//! Where a run is.
//!
//! What is stored is [`RunState::given`], the steps and the items; everything else is found again from them
//! ([`RunState::restore`]), and kept only so that the next decision need not look at every step.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::effect::{AttemptPart, TimerKey};
use super::event::{Answerer, RunEvent, RunQuestion, SkipReason, StepFailure, StepOutcome};
use super::input::{AttemptReport, QuestionRequest, RunParameters};
use super::law::StepStatusKind;
use super::plan::RunPlan;
use super::record::{self, RunRecord};
use crate::machine::Moment;
use crate::recipe::{Data, Step, StepId, StepWorkspace};

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunState {
    /// What it was given.
    pub given: RunParameters,
    /// The moment at which the run started.
    pub started: Moment,
    /// How it ended, once it has.
    pub end: Option<RunConclusion>,
    /// How it will have ended, once it is being ended.
    pub ending: Option<RunConclusion>,
    /// Its steps, as in the recipe.
    pub steps: Vec<StepState>,
    /// The items of its fan-outs, by step and place.
    pub items: BTreeMap<(StepId, u32), ItemState>,
    /// How many questions have been asked.
    pub questions: u32,
    /// The commit at which its work stands, as the report said that counted last and named one.
    pub work: Option<String>,
    pub(super) at_hand: RunIndex,
}

/// What can be found again from the steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RunIndex {
    /// For each step, how many of its needs have not ended.
    pub(super) open_needs: Vec<u32>,
    /// The steps that are something which the next decision looks for.
    pub(super) marks: BTreeSet<(StepMark, StepId)>,
    pub(super) counts: RunCounts,
}

impl RunIndex {
    /// The steps that are marked so, in the order of the file.
    pub(super) fn marked(&self, mark: StepMark) -> impl Iterator<Item = StepId> {
        self.marks.range(mark.of_any_step()).map(|(_, id)| *id)
    }
}

/// What a step is, as far as the next decision looks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StepMark {
    /// The step may begin, once there is room.
    Ready,
    /// It waits and needs nothing more; its condition reads what may still change.
    Parked,
    /// A question is open about it.
    Asking,
}

impl StepMark {
    pub(super) fn of_any_step(self) -> RangeInclusive<(StepMark, StepId)> {
        (self, StepId(0))..=(self, StepId(u32::MAX))
    }
}

/// How many steps there are of some kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunCounts {
    /// Attempts under way in the run's own workspace.
    pub(super) running: u32,
    /// Steps that have not ended.
    pub(super) open: u32,
    /// Attempts under way, wherever, that wait for nobody.
    pub(super) busy: u32,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunConclusion {
    /// Every step that was to be done has been.
    Completed {
        /// What came of it, where somebody said so.
        summary: String,
    },
    /// A step failed for good, or the run took too long.
    Failed {
        /// What failed and why, in words for people.
        error: String,
    },
    /// The run was cancelled before it had completed.
    Cancelled {
        /// Why it was cancelled, in words for people.
        reason: String,
    },
}

/// A step of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepState {
    /// How far the step has come, with the data of that status.
    pub status: StepStatus,
    /// Which turn of a loop it is in, from 0.
    pub round: u32,
    /// How many attempts there have been, in all rounds: the number of the newest.
    pub attempts: u32,
    /// The attempt that it last began with. An item that was lost is made again as an attempt of its own.
    pub since: u32,
    /// How many of them failed in this round by their own fault.
    pub failures: u32,
    /// How many were lost with their worker in this round; those of items are counted by item.
    pub losses: u32,
    /// How often the run went back from here.
    pub turns: u32,
    /// How many turns a person has granted beyond the bound.
    pub granted: u32,
    /// What it gave when it last completed, in this round or an earlier one.
    pub latest: Option<StepOutcome>,
    /// What the last attempt left behind that failed, if none has completed since.
    pub left: Option<StepOutcome>,
    /// What people told it besides.
    pub guidance: Vec<String>,
    /// How many questions its agents have asked in this round.
    pub asks: u32,
    /// The questions of its agents that are open or have been answered, in any round.
    pub asked: Vec<AgentQuestion>,
    /// What its agents said about the work that is under way.
    pub said: Vec<(AttemptPart, AttemptReport)>,
    /// When its last attempt began.
    pub began: Option<Moment>,
    /// When the step ended; `None` while it has not.
    pub ended: Option<Moment>,
}

/// A question that an agent has asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentQuestion {
    /// The agent of this part of its step.
    pub part: AttemptPart,
    /// The question as it was asked, with its options and deadline.
    pub question: RunQuestion,
    /// The answer; none: it is open.
    pub answer: Option<QuestionAnswer>,
}

/// What an agent's question was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionAnswer {
    /// The option, or the words where there are none to choose from.
    pub option: String,
    /// What the answerer said besides the option; `None` if nothing.
    pub message: Option<String>,
    /// Whose answer it is.
    pub by: Answerer,
}

impl StepState {
    /// Where it is, for people: a step that waits for one is held, even while its agent lives.
    pub fn kind(&self) -> StepStatusKind {
        if self.is_asking() { StepStatusKind::Held } else { self.status.kind() }
    }

    /// The word for that.
    pub fn word(&self) -> &'static str {
        self.kind().word()
    }

    /// The question that an agent has asked in these words before, with its answer if there is one.
    pub fn asked(&self, part: AttemptPart, ask: &QuestionRequest) -> Option<&AgentQuestion> {
        let same = |it: &&AgentQuestion| it.question.reason == ask.text && it.question.choices == ask.options;
        self.asked.iter().filter(|it| it.part == part).find(same)
    }

    pub(super) fn report(&self, part: AttemptPart) -> Option<&AttemptReport> {
        self.said.iter().find(|(of, _)| *of == part).map(|(_, report)| report)
    }

    /// The questions about it that are open.
    pub fn questions(&self) -> impl Iterator<Item = &RunQuestion> {
        let held = if let StepStatus::Held { question, .. } = &self.status { Some(question) } else { None };
        let asked = self.asked.iter().filter(|it| it.answer.is_none()).map(|it| &it.question);
        held.into_iter().chain(asked)
    }

    pub(super) fn is_asking(&self) -> bool {
        self.questions().next().is_some()
    }

    /// Whether an attempt is under way that waits for nobody.
    pub(super) fn is_busy(&self) -> bool {
        self.status.progress().is_some() && !self.is_asking()
    }
}

/// Where a step is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StepStatus {
    /// Something it needs has not ended, or what its condition reads may still change.
    #[default]
    Waiting,
    /// The step may begin, and waits for room.
    Ready,
    /// An attempt is under way.
    Running(AttemptProgress),
    /// It took too long, and its end is waited for.
    Stopping(AttemptProgress, StepFailure),
    /// The next attempt is not due yet.
    Retrying {
        /// Why the last one failed.
        failure: StepFailure,
        /// When it is due.
        until: Moment,
        /// How far the last one had come, if the next goes on from there.
        progress: Option<AttemptProgress>,
    },
    /// A person is asked.
    Held {
        /// The question that must be answered before the step goes on.
        question: RunQuestion,
        /// Where the attempt stands that the question is about.
        progress: Option<AttemptProgress>,
    },
    /// The step has ended well.
    Completed,
    /// The step has failed for good, for this reason.
    Failed(StepFailure),
    /// It was left out.
    Skipped(SkipReason),
    /// The run ended first.
    Cancelled,
}

impl StepStatus {
    /// How far an attempt had come that the next one goes on from.
    pub(super) fn kept(&self) -> Option<&AttemptProgress> {
        let (Self::Held { progress, .. } | Self::Retrying { progress, .. }) = self else { return None };
        progress.as_ref()
    }

    /// How far the attempt has come that is under way.
    pub(super) fn progress(&self) -> Option<&AttemptProgress> {
        if let Self::Running(progress) | Self::Stopping(progress, _) = self { Some(progress) } else { None }
    }

    /// Why the step has failed, if not because of one that it needs.
    pub(super) fn own_failure(&self) -> Option<&StepFailure> {
        let Self::Failed(failure) = self else { return None };
        (!matches!(failure, StepFailure::Upstream(_))).then_some(failure)
    }

    /// The status without its data, as [`super::law`] knows it.
    pub fn kind(&self) -> StepStatusKind {
        match self {
            StepStatus::Waiting => StepStatusKind::Waiting,
            StepStatus::Ready => StepStatusKind::Ready,
            StepStatus::Running(_) => StepStatusKind::Running,
            StepStatus::Stopping(..) => StepStatusKind::Stopping,
            StepStatus::Retrying { .. } => StepStatusKind::Retrying,
            StepStatus::Held { .. } => StepStatusKind::Held,
            StepStatus::Completed => StepStatusKind::Completed,
            StepStatus::Failed(_) => StepStatusKind::Failed,
            StepStatus::Skipped(_) => StepStatusKind::Skipped,
            StepStatus::Cancelled => StepStatusKind::Cancelled,
        }
    }
}

/// How far an attempt has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptProgress {
    /// It is one piece.
    Single,
    /// It goes in turns of agent and arbiter.
    Turns {
        /// The turn, from 1.
        turn: u32,
        /// The last turn before a person is asked.
        limit: u32,
        /// What was said so far.
        said: Vec<RunTurn>,
    },
    /// It goes over items.
    Items {
        /// How many there are.
        total: u32,
        /// The next that has not begun.
        next: u32,
        /// How many are under way.
        running: u32,
        /// How many have failed.
        failed: u32,
    },
}

/// One turn of a loop of agent and arbiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTurn {
    /// What the agent gave.
    pub work: StepOutcome,
    /// What the arbiter said about it.
    pub verdict: Option<StepOutcome>,
}

/// An item of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemState {
    /// The item's value, one entry of the list that the fan-out goes over.
    pub value: Data,
    /// How far the item has come.
    pub status: ItemStatus,
    /// The attempt that it is made as since it was lost; 0: as the step's.
    pub attempt: u32,
    /// How often it was lost with its worker.
    pub losses: u32,
    /// When it may begin again, if that is later than it was lost.
    pub due: Option<Moment>,
}

impl ItemState {
    /// An item that has not begun.
    pub fn new(value: Data) -> Self {
        ItemState { value, status: ItemStatus::Waiting, attempt: 0, losses: 0, due: None }
    }
}

/// Where an item is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemStatus {
    /// It has not begun.
    Waiting,
    /// It is under way.
    Running,
    /// The item has ended well, and gave this outcome.
    Completed(StepOutcome),
    /// The item has failed, with this error.
    Failed(String),
}

impl RunState {
    /// A run that has not started: no step has begun.
    pub fn new(plan: &RunPlan, given: RunParameters, started: Moment) -> Self {
        let steps = vec![StepState::default(); plan.recipe.steps.len()];
        Self::restore(plan, given, started, None, steps, BTreeMap::new(), 0)
    }

    /// A run from what was stored of it.
    pub fn restore(
        plan: &RunPlan,
        given: RunParameters,
        started: Moment,
        end: Option<RunConclusion>,
        steps: Vec<StepState>,
        items: BTreeMap<(StepId, u32), ItemState>,
        questions: u32,
    ) -> Self {
        let at_hand = RunIndex::of(plan, &steps);
        RunState { given, started, end, ending: None, steps, items, questions, work: None, at_hand }
    }

    /// Changes the state as an event says, and remembers the commit that the event names.
    pub fn apply(&mut self, plan: &RunPlan, event: &RunEvent) {
        record::record(self, plan, event);
        if let Some(commit) = event.brought_to(plan) {
            self.work = Some(commit.clone());
        }
    }

    /// The state of step `id`; panics when the recipe has no such step.
    pub fn step(&self, id: StepId) -> &StepState {
        &self.steps[id.0 as usize]
    }

    /// Whether an item of a fan-out that stands before this one has not ended. One that waits begins only while its step goes
    /// on.
    pub fn has_open_before(&self, step: StepId, item: u32) -> bool {
        let begins = matches!(self.step(step).status, StepStatus::Running(_));
        let mut before = self.items.range((step, 0)..(step, item));
        before.any(|(_, it)| match it.status {
            ItemStatus::Running => true,
            ItemStatus::Waiting => begins,
            ItemStatus::Completed(_) | ItemStatus::Failed(_) => false,
        })
    }

    /// The first open question.
    pub fn question(&self) -> Option<(StepId, &RunQuestion)> {
        self.questions().next()
    }

    /// The open questions, in the order of the steps.
    pub fn questions(&self) -> impl Iterator<Item = (StepId, &RunQuestion)> {
        let steps = self.at_hand.marked(StepMark::Asking);
        steps.flat_map(|id| self.step(id).questions().map(move |question| (id, question)))
    }

    /// The timers that are set.
    pub fn timers(&self, plan: &RunPlan) -> BTreeSet<TimerKey> {
        let limited = self.end.is_none() && (plan.recipe.timeout.is_some() || self.ending.is_some());
        let of_steps = plan.recipe.ids().flat_map(|id| timers(self, plan, id));
        limited.then_some(TimerKey::Run).into_iter().chain(of_steps).collect()
    }

    /// What is under way: each attempt, or each part of it that is carried out by itself.
    pub fn under_way(&self) -> Vec<(StepId, u32, AttemptPart)> {
        let mut found = Vec::new();
        for (id, step) in (0u32..).map(StepId).zip(&self.steps) {
            if let Some(progress) = step.status.progress() {
                found.extend(parts(self, id, progress).into_iter().map(|part| (id, attempt_of(self, id, part), part)));
            }
        }
        found
    }
}

/// The number of the attempt that a part is made as.
pub(super) fn attempt_of(book: &impl RunRecord, step: StepId, part: AttemptPart) -> u32 {
    let since = book.step(step).since;
    match part {
        AttemptPart::Item(item) => book.item(step, item).map(|it| it.attempt).filter(|own| *own > 0).unwrap_or(since),
        AttemptPart::Whole | AttemptPart::Turn(_) | AttemptPart::Arbiter(_) => since,
    }
}

/// The timers that are set for a step. None outlives what it is for.
pub(super) fn timers(book: &impl RunRecord, plan: &RunPlan, id: StepId) -> Vec<TimerKey> {
    let state = book.step(id);
    let mut found = Vec::new();
    if let StepStatus::Running(progress) = &state.status {
        let limited = plan.recipe.step(id).timeout.is_some() && !state.is_asking();
        found.extend(limited.then_some(TimerKey::Timeout(id, state.since)));
        let total = if let AttemptProgress::Items { total, .. } = progress { *total } else { 0 };
        let due = (0..total).filter_map(|item| book.item(id, item)).filter(|it| it.due.is_some());
        found.extend(due.map(|it| TimerKey::Backoff(id, it.attempt)));
    } else if matches!(state.status, StepStatus::Retrying { .. }) {
        found.push(TimerKey::Backoff(id, state.attempts));
    }
    found.extend(state.questions().filter(|it| it.deadline.is_some()).map(|it| TimerKey::Question(it.id)));
    found
}

pub(super) fn parts(book: &impl RunRecord, step: StepId, progress: &AttemptProgress) -> Vec<AttemptPart> {
    match progress {
        AttemptProgress::Single => vec![AttemptPart::Whole],
        AttemptProgress::Turns { turn, said, .. } => vec![match said.len() < *turn as usize {
            true => AttemptPart::Turn(*turn),
            false => AttemptPart::Arbiter(*turn),
        }],
        AttemptProgress::Items { total, .. } => (0..*total)
            .filter(|item| book.item(step, *item).is_some_and(|item| item.status == ItemStatus::Running))
            .map(AttemptPart::Item)
            .collect(),
    }
}

/// Whether an attempt of this step takes one of the places that the run's own workspace has.
pub(super) fn takes_place(step: &Step) -> bool {
    step.workspace != StepWorkspace::Own
}

impl RunIndex {
    fn of(plan: &RunPlan, steps: &[StepState]) -> Self {
        let mut found = RunIndex::default();
        for (id, (step, defined)) in (0u32..).map(StepId).zip(steps.iter().zip(&plan.recipe.steps)) {
            let is_open = |need: &&StepId| !steps[need.0 as usize].status.kind().has_ended();
            let open_needs = u32::try_from(defined.needs.iter().filter(is_open).count()).unwrap_or(u32::MAX);
            let kind = step.status.kind();
            let marks = [
                (StepMark::Ready, kind == StepStatusKind::Ready),
                (StepMark::Parked, kind == StepStatusKind::Waiting && open_needs == 0),
                (StepMark::Asking, step.is_asking()),
            ];
            found.marks.extend(marks.into_iter().filter(|(_, is)| *is).map(|(mark, _)| (mark, id)));
            found.counts.running += u32::from(kind.is_under_way() && takes_place(defined));
            found.counts.open += u32::from(!kind.has_ended());
            found.counts.busy += u32::from(step.is_busy());
            found.open_needs.push(open_needs);
        }
        found
    }
}
