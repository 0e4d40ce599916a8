//! A decision in the making: the state as it would be, as far as it differs from the state as it is.
//!
//! Copying the state for each decision would make a step cost more the more steps a run has.

use std::collections::{BTreeMap, BTreeSet};

use super::effect::{RunEffect, TimerKey};
use super::event::RunEvent;
use super::law::StepStatusKind;
use super::plan::RunPlan;
use super::record::{self, RunRecord};
use super::state::{ItemState, RunConclusion, RunState, StepState};
use crate::machine::Moment;
use crate::recipe::StepId;

/// A decision in the making.
pub(super) struct RunPending<'a> {
    pub(super) plan: &'a RunPlan,
    pub(super) base: &'a RunState,
    pub(super) now: Moment,
    pub(super) events: Vec<RunEvent>,
    pub(super) effects: Vec<RunEffect>,
    steps: BTreeMap<StepId, StepState>,
    items: BTreeMap<(StepId, u32), ItemState>,
    open_needs: BTreeMap<StepId, u32>,
    ready: BTreeMap<StepId, bool>,
    parked: BTreeMap<StepId, bool>,
    asking: BTreeMap<StepId, bool>,
    running: u32,
    busy: u32,
    open: u32,
    questions: u32,
    end: Option<RunConclusion>,
    ending: Option<RunConclusion>,
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
            ready: BTreeMap::new(),
            parked: BTreeMap::new(),
            asking: BTreeMap::new(),
            running: base.at_hand.running,
            busy: base.at_hand.busy,
            open: base.at_hand.open,
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

    /// Notes that something is to be done.
    pub(super) fn wants(&mut self, effect: RunEffect) {
        self.effects.push(effect);
    }

    pub(super) fn kind(&self, id: StepId) -> StepStatusKind {
        self.step(id).status.kind()
    }

    pub(super) fn running(&self) -> u32 {
        self.running
    }

    pub(super) fn open(&self) -> u32 {
        self.open
    }

    pub(super) fn next_question(&self) -> u32 {
        self.questions + 1
    }

    pub(super) fn end(&self) -> Option<&RunConclusion> {
        self.end.as_ref()
    }

    /// How the run will have ended, if it is being ended.
    pub(super) fn ending(&self) -> Option<&RunConclusion> {
        self.ending.as_ref()
    }

    /// The first step, in the order of the file, that may begin.
    pub(super) fn first_ready(&self) -> Option<StepId> {
        first(&self.base.at_hand.ready, &self.ready)
    }

    /// The waiting steps that need nothing more.
    pub(super) fn parked(&self) -> Vec<StepId> {
        all(&self.base.at_hand.parked, &self.parked)
    }

    /// The first step that the run waits for a person about, if nothing else goes on.
    pub(super) fn held_by(&self) -> Option<StepId> {
        if self.end.is_some() || self.busy > 0 { None } else { self.asking().into_iter().next() }
    }

    /// The steps that a question is open about.
    pub(super) fn asking(&self) -> Vec<StepId> {
        all(&self.base.at_hand.asking, &self.asking)
    }
}

fn all(base: &BTreeSet<StepId>, changed: &BTreeMap<StepId, bool>) -> Vec<StepId> {
    let kept = base.iter().filter(|id| changed.get(id) != Some(&false)).copied();
    let new = changed.iter().filter(|(_, is)| **is).map(|(id, _)| *id);
    let mut all: Vec<StepId> = kept.chain(new).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn first(base: &BTreeSet<StepId>, changed: &BTreeMap<StepId, bool>) -> Option<StepId> {
    let kept = base.iter().find(|id| changed.get(id) != Some(&false)).copied();
    let new = changed.iter().find(|(_, is)| **is).map(|(id, _)| *id);
    kept.into_iter().chain(new).min()
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

    fn set_ready(&mut self, id: StepId, ready: bool) {
        self.ready.insert(id, ready);
    }

    fn set_parked(&mut self, id: StepId, parked: bool) {
        self.parked.insert(id, parked);
    }

    fn running_mut(&mut self) -> &mut u32 {
        &mut self.running
    }

    fn open_mut(&mut self) -> &mut u32 {
        &mut self.open
    }

    fn busy_mut(&mut self) -> &mut u32 {
        &mut self.busy
    }

    fn set_asking(&mut self, id: StepId, asking: bool) {
        self.asking.insert(id, asking);
    }

    fn questions_mut(&mut self) -> &mut u32 {
        &mut self.questions
    }

    fn set_end(&mut self, end: Option<RunConclusion>) {
        self.end = end;
    }

    fn set_ending(&mut self, ending: Option<RunConclusion>) {
        self.ending = ending;
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

    fn set_end(&mut self, end: Option<RunConclusion>) {
        self.end = end;
    }

    fn set_ending(&mut self, ending: Option<RunConclusion>) {
        self.ending = ending;
    }
}
