//! A decision in the making: the state as it would be, as far as it differs from the state as it is.
//!
//! Copying the state for each decision would make a step cost more the more steps a run has.

use std::collections::{BTreeMap, BTreeSet};

use super::effect::{RunEffect, TimerKey};
use super::event::RunEvent;
use super::law::StepStatusKind;
use super::plan::RunPlan;
use super::record::{self, RunRecord};
use super::state::{ItemState, RunConclusion, RunCounts, RunState, StepMark, StepState};
use crate::machine::Moment;
use crate::recipe::StepId;

pub(super) struct RunPending<'a> {
    pub(super) plan: &'a RunPlan,
    pub(super) base: &'a RunState,
    pub(super) now: Moment,
    pub(super) events: Vec<RunEvent>,
    pub(super) effects: Vec<RunEffect>,
    steps: BTreeMap<StepId, StepState>,
    items: BTreeMap<(StepId, u32), ItemState>,
    open_needs: BTreeMap<StepId, u32>,
    marks: BTreeMap<(StepMark, StepId), bool>,
    pub(super) counts: RunCounts,
    questions: u32,
    pub(super) end: Option<RunConclusion>,
    /// How the run will have ended, if it is being ended.
    pub(super) ending: Option<RunConclusion>,
}

impl<'a> RunPending<'a> {
    pub(super) fn new(plan: &'a RunPlan, base: &'a RunState, now: Moment) -> Self {
        RunPending {
            plan,
            base,
            now,
            events: Vec::new(),
            effects: Vec::new(),
            steps: BTreeMap::new(),
            items: BTreeMap::new(),
            open_needs: BTreeMap::new(),
            marks: BTreeMap::new(),
            counts: base.at_hand.counts,
            questions: base.questions,
            end: base.end.clone(),
            ending: base.ending.clone(),
        }
    }

    /// Notes that something happens. Whatever closes a question, its deadline need not be told any more.
    pub(super) fn happens(&mut self, event: RunEvent) {
        let plan = self.plan;
        let awaited = self.awaited(&event);
        record::record(self, plan, &event);
        for (step, question) in awaited {
            if self.step(step).questions().all(|open| open.id != question) {
                self.wants(RunEffect::ClearTimer(TimerKey::Question(question)));
            }
        }
        self.events.push(event);
    }

    /// The open questions with a deadline that an event may close.
    fn awaited(&self, event: &RunEvent) -> Vec<(StepId, u32)> {
        let of = |id: StepId| self.step(id).questions().filter(|it| it.deadline.is_some()).map(move |it| (id, it.id));
        match (event.step(), event) {
            (Some(step), _) => of(step).collect(),
            (None, RunEvent::Ending { .. } | RunEvent::Ended { .. }) => {
                self.asking().into_iter().flat_map(of).collect()
            }
            (None, _) => Vec::new(),
        }
    }

    pub(super) fn wants(&mut self, effect: RunEffect) {
        self.effects.push(effect);
    }

    pub(super) fn kind(&self, id: StepId) -> StepStatusKind {
        self.step(id).status.kind()
    }

    pub(super) fn next_question(&self) -> u32 {
        self.questions + 1
    }

    /// The first step, in the order of the file, that may begin.
    pub(super) fn first_ready(&self) -> Option<StepId> {
        let (mut kept, mut new) = self.marked(StepMark::Ready);
        kept.next().into_iter().chain(new.next()).min()
    }

    /// The waiting steps that need nothing more.
    pub(super) fn parked(&self) -> Vec<StepId> {
        self.all(StepMark::Parked)
    }

    /// The first step that the run waits for a person about, if nothing else goes on.
    pub(super) fn held_by(&self) -> Option<StepId> {
        if self.end.is_some() || self.counts.busy > 0 { None } else { self.asking().into_iter().next() }
    }

    pub(super) fn asking(&self) -> Vec<StepId> {
        self.all(StepMark::Asking)
    }

    fn all(&self, mark: StepMark) -> Vec<StepId> {
        let (kept, new) = self.marked(mark);
        kept.chain(new).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The steps that were marked and still are, and those that are marked in this decision.
    fn marked(&self, mark: StepMark) -> (impl Iterator<Item = StepId>, impl Iterator<Item = StepId>) {
        let kept = self.base.at_hand.marked(mark);
        let new = self.marks.range(mark.of_any_step()).filter(|(_, is)| **is).map(|((_, id), _)| *id);
        (kept.filter(move |id| self.marks.get(&(mark, *id)) != Some(&false)), new)
    }
}

impl RunRecord for RunPending<'_> {
    fn step(&self, id: StepId) -> &StepState {
        self.steps.get(&id).unwrap_or_else(|| &self.base.steps[id.0 as usize])
    }

    fn step_mut(&mut self, id: StepId) -> &mut StepState {
        self.steps.entry(id).or_insert_with(|| self.base.steps[id.0 as usize].clone())
    }

    fn item(&self, step: StepId, item: u32) -> Option<&ItemState> {
        self.items.get(&(step, item)).or_else(|| self.base.items.get(&(step, item)))
    }

    fn set_item(&mut self, step: StepId, item: u32, state: ItemState) {
        self.items.insert((step, item), state);
    }

    fn open_needs_mut(&mut self, id: StepId) -> &mut u32 {
        self.open_needs.entry(id).or_insert_with(|| self.base.at_hand.open_needs[id.0 as usize])
    }

    fn mark(&mut self, mark: StepMark, id: StepId, is: bool) {
        self.marks.insert((mark, id), is);
    }

    fn counts_mut(&mut self) -> &mut RunCounts {
        &mut self.counts
    }

    fn questions_mut(&mut self) -> &mut u32 {
        &mut self.questions
    }

    fn set_end(&mut self, end: Option<RunConclusion>, ending: Option<RunConclusion>) {
        (self.end, self.ending) = (end, ending);
    }
}

impl RunRecord for RunState {
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

    fn mark(&mut self, mark: StepMark, id: StepId, is: bool) {
        match is {
            true => self.at_hand.marks.insert((mark, id)),
            false => self.at_hand.marks.remove(&(mark, id)),
        };
    }

    fn counts_mut(&mut self) -> &mut RunCounts {
        &mut self.at_hand.counts
    }

    fn questions_mut(&mut self) -> &mut u32 {
        &mut self.questions
    }

    fn set_end(&mut self, end: Option<RunConclusion>, ending: Option<RunConclusion>) {
        (self.end, self.ending) = (end, ending);
    }
}
