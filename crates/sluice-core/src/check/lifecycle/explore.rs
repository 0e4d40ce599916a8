//! Plays a lifecycle through: every situation that a task can get into, and every move between two of them.
//!
//! A situation is a state, the values of the counters that guards read, whether a workspace is bound, and which
//! sessions may be alive. Counters stop at the first value beyond every constant they are compared with or set to, so
//! there are finitely many situations and the picture is exact. Artifacts are free: any gate may be passed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::expr::{Comparison, Expr, ExprValue, Number};
use crate::lifecycle::{
    ExitReaction, FieldValue, Lifecycle, LifecycleTransition, STUCK, StateId, TransitionHook, TransitionTakers,
    WORKER_AGAIN,
};
use crate::name::FieldName;

const MOST_SITUATIONS: usize = 100_000;
const MOST_MOVES: usize = 1_000_000;
/// The state that a task is created in without an agent: a person reviews what is already there.
const WITHOUT_AGENT: &str = "reviewing";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Situation {
    pub(super) state: StateId,
    counters: Vec<i64>,
    pub(super) workspace: bool,
    pub(super) worker: bool,
    pub(super) reviewer: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SituationMove {
    pub(super) to: usize,
    /// The transition it takes; `None` is the engine's own escalation.
    pub(super) transition: Option<usize>,
    /// How many agents it starts, those that are started again after a crash included.
    pub(super) starts: u64,
    /// Whether only a person brings it about.
    pub(super) by_person: bool,
}

/// Every situation that a task of a lifecycle can come to, and the moves between them.
pub(super) struct SituationGraph {
    pub(super) situations: Vec<Situation>,
    pub(super) moves: Vec<Vec<SituationMove>>,
    /// The situation each was first reached from; `None` for a beginning.
    came_from: Vec<Option<usize>>,
    /// Agents that creating a task in a beginning starts.
    pub(super) beginnings: Vec<(usize, u64)>,
    /// For each transition and hook: whether it ever had something to do.
    pub(super) busy: Vec<Vec<bool>>,
    /// For each transition: whether it is ever taken.
    pub(super) taken: Vec<bool>,
    /// Whether counters were followed. If not, guards were taken to hold or not hold as they like.
    pub(super) exact: bool,
}

/// Looks at `lifecycle` with its counters, or without them if that is too much to look at.
/// `None`: even that is too much.
pub(super) fn explore(lifecycle: &Lifecycle) -> Option<SituationGraph> {
    let counters = Counters::of(lifecycle);
    Explorer::new(lifecycle, counters).run().or_else(|| Explorer::new(lifecycle, Counters::none()).run())
}

/// The counters that are followed, with the range in which their value matters.
struct Counters {
    fields: BTreeMap<String, (usize, i64, i64)>,
    exact: bool,
}

impl Counters {
    fn none() -> Self {
        Counters { fields: BTreeMap::new(), exact: false }
    }

    /// Every field that a guard reads, except `crash_count`, which moves by itself.
    fn of(lifecycle: &Lifecycle) -> Self {
        let guards = lifecycle.transitions.iter().filter_map(|transition| transition.guard.as_ref());
        let clauses = lifecycle.exits.rules.iter().flat_map(|rule| match &rule.reaction {
            ExitReaction::Choose(clauses) => clauses.iter().map(|(guard, _)| guard).collect(),
            ExitReaction::Advance(_) | ExitReaction::Crash { .. } | ExitReaction::MarkDead => Vec::new(),
        });
        let mut fields: BTreeMap<String, (usize, i64, i64)> = BTreeMap::new();
        for compare in guards.chain(clauses).flat_map(Expr::comparisons) {
            let ExprValue::Number(number) = compare.value else { continue };
            let (Some(constant), false) = (number.as_whole(), compare.path.head() == "crash_count") else { continue };
            let next = fields.len();
            let (_, low, high) = fields.entry(compare.path.head().to_owned()).or_insert((next, 0, 0));
            *low = (*low).min(constant.saturating_sub(1));
            *high = (*high).max(constant.saturating_add(1));
        }
        // A counter that is set far below its bound has a long way up again.
        for hook in lifecycle.transitions.iter().flat_map(|transition| &transition.hooks) {
            if let TransitionHook::SetField { field, value: FieldValue::Number(number) } = hook
                && let Some((_, low, high)) = fields.get_mut(field.as_str())
            {
                *low = (*low).min(*number);
                *high = (*high).max(*number);
            }
        }
        Counters { fields, exact: true }
    }

    fn set(&self, counters: &mut [i64], field: &str, change: impl FnOnce(i64) -> i64) {
        if let Some((index, low, high)) = self.fields.get(field) {
            counters[*index] = change(counters[*index]).clamp(*low, *high);
        }
    }

    /// Whether `guard` holds, as far as the followed counters tell.
    fn holds(&self, guard: &Expr, counters: &[i64]) -> Option<bool> {
        match guard {
            Expr::Compare(Comparison { path, .. }) => {
                let (index, _, _) = self.fields.get(path.head())?;
                Some(guard.holds(&|_| Some(ExprValue::Number(Number::whole(counters[*index])))))
            }
            Expr::Not(inner) => self.holds(inner, counters).map(|holds| !holds),
            Expr::All(parts) => self.combine(parts, counters, false),
            Expr::Any(parts) => self.combine(parts, counters, true),
        }
    }

    /// The answer is `decisive` if one part is, unknown if one part is unknown, and the opposite otherwise.
    fn combine(&self, parts: &[Expr], counters: &[i64], decisive: bool) -> Option<bool> {
        let answers: Vec<Option<bool>> = parts.iter().map(|part| self.holds(part, counters)).collect();
        if answers.contains(&Some(decisive)) {
            return Some(decisive);
        }
        answers.iter().all(Option::is_some).then_some(!decisive)
    }
}

struct Explorer<'a> {
    lifecycle: &'a Lifecycle,
    counters: Counters,
    outgoing: Vec<Vec<usize>>,
    /// The moves that the exit rules and the ends of runs make.
    monitored: BTreeSet<(StateId, StateId)>,
    stuck: Option<StateId>,
    crashes: Vec<Crashes>,
    /// Whether a worker that should be told something and is dead is started again.
    starts_workers_again: bool,
    moves: usize,
    known: BTreeMap<Situation, usize>,
    open: VecDeque<usize>,
    picture: SituationGraph,
}

#[derive(Clone, Copy, Debug, Default)]
struct Crashes {
    /// How often its agent is started again.
    respawns: u64,
    /// Whether they lead to `stuck` in the end.
    escalate: bool,
    /// The transition to `stuck` that is taken then, if there is one without a gate.
    transition: Option<usize>,
}

impl<'a> Explorer<'a> {
    fn new(lifecycle: &'a Lifecycle, counters: Counters) -> Self {
        let mut outgoing = vec![Vec::new(); lifecycle.states.len()];
        for (index, transition) in lifecycle.transitions.iter().enumerate() {
            outgoing[transition.from.0 as usize].push(index);
        }
        let stuck = lifecycle.find(STUCK);
        let mut crashes = vec![Crashes::default(); lifecycle.states.len()];
        let mut monitored = BTreeSet::new();
        for rule in &lifecycle.exits.rules {
            match &rule.reaction {
                ExitReaction::Crash { stuck_after, respawn } => {
                    let again = stuck_after.map_or(0, |limit| u64::from(limit.saturating_sub(1)));
                    let known = &mut crashes[rule.state.0 as usize];
                    // Several rules count the same crashes, so the most patient one decides.
                    known.respawns = known.respawns.max(if *respawn { again } else { 0 });
                    known.escalate |= stuck_after.is_some();
                }
                ExitReaction::Advance(to) => drop(monitored.insert((rule.state, *to))),
                ExitReaction::Choose(clauses) => monitored.extend(clauses.iter().map(|(_, to)| (rule.state, *to))),
                ExitReaction::MarkDead => {}
            }
        }
        for (id, state) in (0u32..).map(StateId).zip(&lifecycle.states) {
            let ends = state.run.iter().flat_map(|run| [run.completed, run.failed]).flatten();
            monitored.extend(ends.map(|to| (id, to)));
        }
        for (index, edge) in lifecycle.transitions.iter().enumerate().rev() {
            if Some(edge.to) == stuck && edge.gate.is_none() {
                crashes[edge.from.0 as usize].transition = Some(index);
            }
        }
        let picture = SituationGraph {
            situations: Vec::new(),
            moves: Vec::new(),
            came_from: Vec::new(),
            beginnings: Vec::new(),
            busy: lifecycle.transitions.iter().map(|transition| vec![false; transition.hooks.len()]).collect(),
            taken: vec![false; lifecycle.transitions.len()],
            exact: counters.exact,
        };
        Explorer {
            lifecycle,
            counters,
            outgoing,
            monitored,
            stuck,
            crashes,
            starts_workers_again: lifecycle.prompts.keys().any(|prompt| prompt.as_str() == WORKER_AGAIN),
            moves: 0,
            known: BTreeMap::new(),
            open: VecDeque::new(),
            picture,
        }
    }

    fn run(mut self) -> Option<SituationGraph> {
        for (index, state) in self.lifecycle.initial.iter().enumerate() {
            let (situation, starts) = self.beginning(*state, index == 0);
            let id = self.visit(situation, None);
            self.picture.beginnings.push((id, starts));
        }
        while let Some(from) = self.open.pop_front() {
            if self.picture.situations.len() > MOST_SITUATIONS || self.moves > MOST_MOVES {
                return None;
            }
            self.leave(from);
        }
        Some(self.picture)
    }

    fn empty(&self, state: StateId) -> Situation {
        let counters = self.counters.fields.values().map(|_| 0).collect();
        Situation { state, counters, workspace: false, worker: false, reviewer: false }
    }

    /// A task created in a state other than the usual one gets what the first spawning transition into it gives; in
    /// `reviewing` it gets nothing.
    fn beginning(&mut self, state: StateId, usual: bool) -> (Situation, u64) {
        let mut situation = self.empty(state);
        let entry = self.lifecycle.transitions.iter().find(|edge| edge.to == state && edge.spawns());
        let mut starts = self.crashes[state.0 as usize].respawns;
        // A run works where the task does.
        situation.workspace = !usual && self.lifecycle.state(state).run.is_some();
        let without = usual || self.lifecycle.state_name(state) == WITHOUT_AGENT;
        if let (false, Some(entry)) = (without, entry) {
            situation.workspace = true;
            for hook in entry.hooks.iter().filter(|hook| hook.spawn().is_some()) {
                starts += self.perform(hook, &mut situation).0;
            }
        }
        (situation, starts)
    }

    fn visit(&mut self, situation: Situation, came_from: Option<usize>) -> usize {
        if let Some(id) = self.known.get(&situation) {
            return *id;
        }
        let id = self.picture.situations.len();
        self.known.insert(situation.clone(), id);
        self.picture.situations.push(situation);
        self.picture.moves.push(Vec::new());
        self.picture.came_from.push(came_from);
        self.open.push_back(id);
        id
    }

    fn leave(&mut self, from: usize) {
        let state = self.picture.situations[from].state;
        for index in self.outgoing[state.0 as usize].clone() {
            let transition = &self.lifecycle.transitions[index];
            let counters = &self.picture.situations[from].counters;
            if transition.guard.as_ref().is_some_and(|guard| self.counters.holds(guard, counters) == Some(false)) {
                continue;
            }
            self.picture.taken[index] = true;
            let by_person = self.needs_person(transition, &self.picture.situations[from]);
            self.take(from, transition.to, Some(index), by_person);
        }
        let crashes = self.crashes[state.0 as usize];
        if let (true, Some(stuck)) = (crashes.escalate, self.stuck.filter(|stuck| *stuck != state)) {
            self.take(from, stuck, crashes.transition, false);
        }
    }

    /// Whether no rule and no living agent takes this transition by itself.
    fn needs_person(&self, transition: &LifecycleTransition, situation: &Situation) -> bool {
        if self.monitored.contains(&(transition.from, transition.to)) {
            return false;
        }
        match self.lifecycle.takers(transition) {
            TransitionTakers::Agents | TransitionTakers::Reviewer => !(situation.worker || situation.reviewer),
            TransitionTakers::Persons(_) => true,
        }
    }

    fn take(&mut self, from: usize, to: StateId, transition: Option<usize>, by_person: bool) {
        let mut after = self.picture.situations[from].clone();
        let mut starts = 0;
        let lifecycle = self.lifecycle;
        let is_respawnable = after.workspace && lifecycle.state(after.state).respawn_prompt.is_some();
        for (index, hook) in transition.map_or(&[][..], |index| &lifecycle.transitions[index].hooks).iter().enumerate()
        {
            let (started, did_something) = self.perform(hook, &mut after);
            starts += started;
            // A person may have started an agent again, which this picture does not follow.
            let did_something = did_something || (ends_session(hook) && is_respawnable);
            if let (true, Some(transition)) = (did_something, transition) {
                self.picture.busy[transition][index] = true;
            }
        }
        if lifecycle.state(to).enter_prompt.is_some() {
            after.worker = true;
            starts += 1;
        }
        starts += self.crashes[to.0 as usize].respawns;
        after.state = to;
        self.moves += 1;
        let to = self.visit(after, Some(from));
        self.picture.moves[from].push(SituationMove { to, transition, starts, by_person });
    }

    /// What a hook does to a situation: how many agents it starts, and whether it had something to do.
    fn perform(&self, hook: &TransitionHook, on: &mut Situation) -> (u64, bool) {
        match hook {
            TransitionHook::AcquireWorkspace => (0, !std::mem::replace(&mut on.workspace, true)),
            TransitionHook::ReleaseWorkspace => (0, std::mem::replace(&mut on.workspace, false)),
            TransitionHook::SpawnAgent(spawn) | TransitionHook::SpawnReviewer(spawn) => {
                spawn.increment.iter().for_each(|field| self.count_up(field, on));
                let is_reviewer = matches!(hook, TransitionHook::SpawnReviewer(_));
                *(if is_reviewer { &mut on.reviewer } else { &mut on.worker }) = true;
                (1, true)
            }
            // The worker may have died unseen, also where one seems to be alive.
            TransitionHook::NotifyWorker { start: true, .. } if self.starts_workers_again && on.workspace => {
                on.worker = true;
                (1, true)
            }
            TransitionHook::KillSession => {
                let alive = on.worker || on.reviewer;
                (on.worker, on.reviewer) = (false, false);
                (0, alive)
            }
            TransitionHook::KillReviewer => (0, std::mem::replace(&mut on.reviewer, false)),
            TransitionHook::Increment(field) => {
                self.count_up(field, on);
                (0, true)
            }
            TransitionHook::SetField { field, value: FieldValue::Number(number) } => {
                self.counters.set(&mut on.counters, field.as_str(), |_| *number);
                (0, true)
            }
            TransitionHook::SetField { value: FieldValue::Text(_), .. }
            | TransitionHook::NotifyWorker { .. }
            | TransitionHook::RunCommand(_)
            | TransitionHook::Plain(_) => (0, true),
        }
    }

    fn count_up(&self, field: &FieldName, on: &mut Situation) {
        self.counters.set(&mut on.counters, field.as_str(), |value| value.saturating_add(1));
    }
}

fn ends_session(hook: &TransitionHook) -> bool {
    matches!(hook, TransitionHook::KillSession | TransitionHook::KillReviewer)
}

impl SituationGraph {
    /// The shortest way to a situation, as the states on it.
    pub(super) fn way_to(&self, situation: usize) -> Vec<StateId> {
        let mut way = vec![self.situations[situation].state];
        let mut at = situation;
        while let Some(from) = self.came_from[at] {
            way.push(self.situations[from].state);
            at = from;
        }
        way.reverse();
        way
    }
}
