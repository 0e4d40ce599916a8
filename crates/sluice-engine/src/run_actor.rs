//! A run as an actor: decides, applies, and says what is to be stored.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sluice_core::event_name::EventName;
use sluice_core::machine::{Decision, Moment, Refusal, RefusalCode};
use sluice_core::recipe::{FailureKind, StepId, StepWork, StepWorkspace};
use sluice_core::run::{
    AttemptPart, AttemptReport, RunAsker, RunEffect, RunEvent, RunInput, RunKind, RunMode, RunParameters, RunPlan,
    RunState, Speaker, StepOutcome, TimerKey, begin, decide, effect,
};
use sluice_store::{Card, Effect, Event, Header, RowKey, StoredStream};

use crate::actor::{Actor, ActorChange, ActorInput, EffectOutcome, Remark, TimeLimit, WorkerRequirement, misdirected};
use crate::codec::outbox::{self, OutboxNote};
use crate::codec::{UnreadableData, remark, run_effect, run_event, run_state};

/// The kind of the effect that carries a part of a step out.
pub const PERFORM: &str = "perform";
/// The kind of effect that starts a run again.
pub const REPEAT: &str = "repeat";
/// The kind of the effect that gives back what an ended run has worked in.
const RELEASE: &str = "release";
/// What is said of a performance that says nothing.
const NO_REPORT: &str = "it ended without a report";
const ENGINE: &str = "engine";
const PERSON: &str = "person";

pub struct RunActor {
    plan: Arc<RunPlan>,
    /// The digest of the definition.
    definition: String,
    group: String,
    state: RunState,
    version: u64,
    created: i64,
    /// Effects that are not settled.
    open: BTreeSet<String>,
    /// Of a patrol that rests: the effect that starts the next turn, and when that is.
    next_turn: Option<(String, Moment)>,
    /// Whether a person has removed it from every list. Its card says so, and nothing else.
    deleted: bool,
}

impl RunActor {
    pub const KIND: &str = "run";
    /// The status, on its card, of a run that a person has removed from every list.
    pub const DELETED: &str = "deleted";

    /// What the card of a run names as its group: the workers that it is for, and what it is called. There is an index of
    /// it in every store, so a list of one kind does not go over all others.
    pub fn belongs(group: &str, kind: RunKind) -> String {
        format!("{group}/{}", kind.word())
    }

    pub fn group_of(card: &Card) -> &str {
        card.group.split_once('/').map_or(&card.group, |(group, _)| group)
    }

    /// What a run is called, as its card says. One that was last stored by an earlier Sluice does not say.
    pub fn kind_of(card: &Card) -> Option<RunKind> {
        let (_, word) = card.group.split_once('/')?;
        RunKind::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// A run that starts now, and what is to be stored of it.
    pub fn create(
        plan: Arc<RunPlan>,
        definition: String,
        group: String,
        given: RunParameters,
        now: Moment,
    ) -> (Self, ActorChange) {
        let decision = begin(&plan, given.clone(), now);
        let state = RunState::new(&plan, given, now);
        let mut actor = RunActor {
            plan,
            definition,
            group,
            state,
            version: 0,
            created: now.0,
            open: BTreeSet::new(),
            next_turn: None,
            deleted: false,
        };
        let mut change = actor.record(decision, Vec::new(), ENGINE, now);
        change.rows.insert(0, (run_state::GIVEN, Some(run_state::write_given(&actor.state.given))));
        (actor, change)
    }

    pub fn restore(plan: Arc<RunPlan>, stored: &StoredStream) -> Result<Self, UnreadableData> {
        let state = run_state::read(&plan, &stored.header.data, &stored.rows)?;
        Ok(RunActor {
            definition: run_state::definition_of(&stored.header.data)?,
            group: Self::group_of(&stored.header.card).to_owned(),
            version: stored.version,
            created: stored.header.card.created,
            open: stored.effects.iter().map(|open| open.effect.id.clone()).collect(),
            next_turn: stored.effects.iter().find_map(|open| next_turn(&open.effect)),
            deleted: stored.header.card.status == Self::DELETED,
            plan,
            state,
        })
    }

    pub fn plan(&self) -> &Arc<RunPlan> {
        &self.plan
    }

    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// Where it is, and nothing else of it.
    pub fn into_state(self) -> RunState {
        self.state
    }

    /// When the next turn of a patrol begins, if it rests until then.
    pub fn next_turn(&self) -> Option<Moment> {
        self.next_turn.as_ref().map(|(_, at)| *at)
    }

    /// The bytes of its header and rows, as they would be stored now: what a fold of its log must add up to.
    pub fn image(&self) -> (Vec<u8>, Vec<(RowKey, Vec<u8>)>) {
        let mut rows = vec![(run_state::GIVEN, run_state::write_given(&self.state.given))];
        for (id, step) in (0u32..).map(StepId).zip(&self.state.steps) {
            rows.push((run_state::step_key(id), run_state::write_step(step)));
        }
        for ((step, item), state) in &self.state.items {
            rows.push((run_state::item_key(*step, *item), run_state::write_item(state)));
        }
        (run_state::write_header(&self.state, &self.definition), rows)
    }

    fn event(&self, kind: &str, data: Vec<u8>, by: &str, now: Moment) -> Event {
        Event {
            kind: kind.into(),
            version: run_event::VERSION,
            time: now.0,
            actor: by.into(),
            correlation: self.state.given.id.to_string(),
            caused_by: None,
            data,
        }
    }

    /// Who says this, for the log.
    fn speaker(&self, input: &RunInput) -> String {
        let agent = |by: &Speaker| format!("step {}", self.plan.recipe.step(by.step).name);
        match input {
            RunInput::By { asker: RunAsker::Agent(by), .. } | RunInput::Ask { by, .. } | RunInput::Said { by, .. } => {
                agent(by)
            }
            RunInput::By { asker: RunAsker::Person, .. }
            | RunInput::Answer { .. }
            | RunInput::Retry { .. }
            | RunInput::Cancel { .. }
            | RunInput::ByHand { .. }
            | RunInput::Close { .. } => PERSON.into(),
            RunInput::By { asker: RunAsker::Stranger, .. } => "stranger".into(),
            RunInput::Ended { .. } | RunInput::Lost { .. } | RunInput::Timer(_) => ENGINE.into(),
        }
    }

    fn describe(&self, now: Moment) -> Header {
        let card = Card {
            kind: Self::KIND.into(),
            status: if self.deleted { Self::DELETED.into() } else { self.state.status().into() },
            group: Self::belongs(&self.group, self.state.given.origin.kind),
            title: self.plan.recipe.name.to_string(),
            open: self.state.end.is_none() || self.next_turn.is_some(),
            created: self.created,
            updated: now.0,
        };
        Header { card, data: run_state::write_header(&self.state, &self.definition) }
    }

    fn record(
        &mut self,
        decision: Decision<RunEvent, RunEffect>,
        mut settled: Vec<String>,
        by: &str,
        now: Moment,
    ) -> ActorChange {
        // One that goes on is in the lists again.
        self.deleted &= decision.events.is_empty();
        let mut touched = BTreeSet::new();
        let mut events = Vec::with_capacity(decision.events.len());
        for event in &decision.events {
            self.apply(event, &mut touched);
            events.push(self.event(event.name().word(), run_event::write(event), by, now));
        }
        if self.state.end.is_some() {
            // Whatever was under way is not waited for any more; to end it is an effect of its own.
            settled.extend(self.open.iter().filter(|id| performed(id).is_some()).cloned());
        }
        settled.sort_unstable();
        settled.dedup();
        for id in &settled {
            self.open.remove(id);
        }
        let rows = touched.iter().map(|key| (*key, Some(self.row(*key)))).collect();
        let mut change = ActorChange { rows, settled, ..ActorChange::new(events, Header::default()) };
        for (index, effect) in decision.effects.iter().enumerate() {
            self.store_effect(effect, index, &mut change);
        }
        // Not before: an effect may be what it waits for.
        change.header = self.describe(now);
        self.version += change.events.len() as u64;
        change
    }

    fn apply(&mut self, event: &RunEvent, touched: &mut BTreeSet<RowKey>) {
        if matches!(
            event,
            RunEvent::LoopedBack { .. } | RunEvent::Reopened { .. } | RunEvent::Ending { .. } | RunEvent::Ended { .. }
        ) {
            // These reach many steps; comparing them all costs less than knowing the machine's rules a second time.
            let before = self.state.steps.clone();
            self.state.apply(&self.plan, event);
            let pairs = (0u32..).map(StepId).zip(self.state.steps.iter().zip(&before));
            touched.extend(pairs.filter(|(_, (now, before))| now != before).map(|(id, _)| run_state::step_key(id)));
            return;
        }
        self.state.apply(&self.plan, event);
        touched.extend(event.step().map(run_state::step_key));
        match event {
            RunEvent::PartStarted { step, part: AttemptPart::Item(item) }
            | RunEvent::PartEnded { step, part: AttemptPart::Item(item), .. }
            | RunEvent::PartLost { step, part: AttemptPart::Item(item), .. } => {
                touched.extend([run_state::item_key(*step, *item)])
            }
            RunEvent::StepStarted { step, .. } => {
                let of_step = self.state.items.range((*step, 0)..(StepId(step.0 + 1), 0));
                touched.extend(of_step.map(|((step, item), _)| run_state::item_key(*step, *item)));
            }
            _ => {}
        }
    }

    fn row(&self, key: RowKey) -> Vec<u8> {
        let RowKey(major, minor) = key;
        let step = StepId(major.saturating_sub(1));
        match minor.checked_sub(1) {
            None => run_state::write_step(self.state.step(step)),
            Some(item) => self.state.items.get(&(step, item)).map(run_state::write_item).unwrap_or_default(),
        }
    }

    fn store_effect(&mut self, effect: &RunEffect, index: usize, change: &mut ActorChange) {
        let numbered = format!("v{}.{index}", self.version);
        let (id, kind) = match effect {
            RunEffect::SetTimer(key, at) => return change.timers.push((key.to_string(), Some(at.0))),
            RunEffect::ClearTimer(key) => return change.timers.push((key.to_string(), None)),
            RunEffect::Perform(it) => (effect::key(it.step, it.attempt, it.part), PERFORM),
            RunEffect::Stop { step, attempt, part } => {
                (format!("stop.{}", effect::key(*step, *attempt, *part)), "stop")
            }
            RunEffect::Notify(_) => (numbered, "notify"),
            RunEffect::RunCommand(_) => (numbered, "run_command"),
            RunEffect::Start { .. } => (numbered, "start"),
            RunEffect::Release => (numbered, RELEASE),
            RunEffect::Repeat { .. } => (numbered, REPEAT),
        };
        if let RunEffect::Repeat { at } = effect {
            self.next_turn = Some((id.clone(), *at));
        }
        self.open.insert(id.clone());
        change.effects.push(Effect { id, kind: kind.into(), data: run_effect::write(effect).unwrap_or_default() });
    }

    /// An effect is settled, and nothing else follows from it.
    fn settle(&mut self, effect: &str, error: Option<&str>, now: Moment) -> Option<ActorChange> {
        if !self.open.remove(effect) {
            return None;
        }
        self.next_turn = self.next_turn.take().filter(|(id, _)| id != effect);
        let note = OutboxNote::Settled { effect: effect.to_owned(), error: error.map(str::to_owned) };
        self.version += 1;
        let event = self.event(note.kind(), outbox::write(&note), ENGINE, now);
        Some(ActorChange { settled: vec![effect.to_owned()], ..ActorChange::new(vec![event], self.describe(now)) })
    }

    fn outcome(&mut self, effect: &str, outcome: EffectOutcome, now: Moment) -> Option<ActorChange> {
        let Some((step, attempt, part)) = performed(effect) else {
            return match &outcome {
                EffectOutcome::Failed(error) => self.settle(effect, Some(error), now),
                EffectOutcome::Task(_) => self.settle(effect, Some("the outcome of a task's effect"), now),
                EffectOutcome::Done | EffectOutcome::Run(_) => self.settle(effect, None, now),
            };
        };
        let report = match outcome {
            EffectOutcome::Run(report) => report,
            EffectOutcome::Failed(error) => failed(&error),
            EffectOutcome::Done | EffectOutcome::Task(_) => failed(NO_REPORT),
        };
        self.ended(effect, &RunInput::Ended { step, attempt, part, report }, now)
    }

    /// Removes it from every list, once; its history stays.
    fn delete(&mut self, now: Moment) -> Result<Option<ActorChange>, Refusal> {
        if self.state.end.is_none() || self.next_turn.is_some() {
            let message = "Not deleted: the run has not ended";
            return Err(Refusal::new(RefusalCode::StepOpen, message).hint("cancel it first"));
        }
        if std::mem::replace(&mut self.deleted, true) {
            return Ok(None);
        }
        let event = self.event(EventName::RunDeleted.word(), b"{}".to_vec(), PERSON, now);
        let change = ActorChange::new(vec![event], self.describe(now));
        self.version += 1;
        Ok(Some(change))
    }

    /// Writes down that its branch was merged. Nothing follows from it.
    fn merged(&mut self, remark: &Remark, now: Moment) -> ActorChange {
        let data = remark::write(remark, "");
        let event = self.event(EventName::RunMerged.word(), data, ENGINE, now);
        let change = ActorChange::new(vec![event], self.describe(now));
        self.version += 1;
        change
    }

    /// A performance has ended, in time or too late; either way it is settled.
    fn ended(&mut self, effect: &str, input: &RunInput, now: Moment) -> Option<ActorChange> {
        match decide(&self.plan, &self.state, input, now) {
            Ok(decision) if !decision.events.is_empty() => {
                Some(self.record(decision, vec![effect.to_owned()], ENGINE, now))
            }
            Ok(_) | Err(_) => self.settle(effect, None, now),
        }
    }
}

/// A performance that ends without a report has failed: a run must not wait for what no worker is at.
fn failed(error: &str) -> AttemptReport {
    AttemptReport::Failed { kind: FailureKind::Failed, error: error.to_owned(), outcome: StepOutcome::default() }
}

/// The effect that starts the next turn of a patrol, and when that is.
fn next_turn(stored: &Effect) -> Option<(String, Moment)> {
    match run_effect::read(&stored.data) {
        Ok(RunEffect::Repeat { at }) if stored.kind == REPEAT => Some((stored.id.clone(), at)),
        Ok(_) | Err(_) => None,
    }
}

pub fn performed(effect: &str) -> Option<(StepId, u32, AttemptPart)> {
    let mut parts = effect.splitn(3, '.');
    let (step, attempt) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((StepId(step), attempt, AttemptPart::parse(parts.next()?)?))
}

impl Actor for RunActor {
    fn take(&mut self, said: ActorInput, now: Moment) -> Result<Option<ActorChange>, Refusal> {
        let input = match said {
            ActorInput::Run(input) => input,
            ActorInput::Remark(Remark::Deleted) => return self.delete(now),
            ActorInput::Remark(remark @ Remark::Merged { .. }) => return Ok(Some(self.merged(&remark, now))),
            ActorInput::Task(_)
            | ActorInput::Remark(Remark::Read { .. } | Remark::Forged { .. } | Remark::Leak { .. }) => {
                return Err(misdirected("run", "task"));
            }
            ActorInput::Fact(_) => return Err(misdirected("run", "ledger")),
            ActorInput::Outcome { effect, outcome } => return Ok(self.outcome(&effect, outcome, now)),
            ActorInput::Lost { effect } => {
                let Some((step, attempt, part)) = performed(&effect) else { return Ok(None) };
                return Ok(self.ended(&effect, &RunInput::Lost { step, attempt, part }, now));
            }
            ActorInput::Timer(key) => match TimerKey::parse(&key) {
                Some(key) => RunInput::Timer(key),
                None => return Ok(None),
            },
        };
        let due = if let RunInput::Timer(key) = &input { Some(key.to_string()) } else { None };
        let decision = decide(&self.plan, &self.state, &input, now)?;
        if decision.events.is_empty() {
            return Ok(None);
        }
        let mut change = self.record(decision, Vec::new(), &self.speaker(&input), now);
        if let Some(key) = due.filter(|key| !change.timers.iter().any(|(other, _)| other == key)) {
            change.timers.push((key, None));
        }
        Ok(Some(change))
    }

    fn header(&self, now: Moment) -> Header {
        self.describe(now)
    }

    fn noted(&mut self, events: u64) {
        self.version += events;
    }

    fn is_over(&self) -> bool {
        self.state.end.is_some() && self.open.is_empty()
    }

    fn is_open(&self, effect: &str) -> bool {
        self.open.contains(effect)
    }

    fn wants(&self, effect: &Effect) -> Option<WorkerRequirement> {
        let (step, _, _) = performed(&effect.id)?;
        let step = self.plan.recipe.step(step);
        if let StepWork::Task(_) = step.work {
            return None; // a task belongs to the engine's own home
        }
        let role = step.role.to_string();
        let in_scratch = step.workspace == StepWorkspace::Scratch;
        Some(WorkerRequirement { role, group: self.group.clone(), since: self.state.started.0, in_scratch })
    }

    /// What is under way without an effect that is open: an engine before this one settled that without a report, and the
    /// run would wait for ever. What is done by hand has none.
    fn stranded(&self) -> Vec<ActorInput> {
        if self.state.given.mode == RunMode::ByHand || self.state.end.is_some() {
            return Vec::new();
        }
        let under_way = self.state.under_way().into_iter();
        let nobody_is_at =
            under_way.filter(|(step, attempt, part)| !self.open.contains(&effect::key(*step, *attempt, *part)));
        let told =
            |(step, attempt, part)| ActorInput::Run(RunInput::Ended { step, attempt, part, report: failed(NO_REPORT) });
        nobody_is_at.map(told).collect()
    }

    fn limit(&self, effect: &str) -> Option<TimeLimit> {
        let (step, _, _) = performed(effect)?;
        let timeout = self.plan.recipe.step(step).timeout?;
        let state = self.state.step(step);
        let began = state.began?;
        let timer = TimerKey::Timeout(step, state.since).to_string();
        let first_due = began.after(timeout).0;
        Some(TimeLimit { timer, first_due, lasts: first_due.saturating_sub(began.0) })
    }

    fn longest(&self, timer: &str) -> Option<Duration> {
        self.state.longest(&self.plan, TimerKey::parse(timer)?)
    }
}
