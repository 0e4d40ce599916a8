//! Walks at random through random small lifecycles, with the plain meaning of every hook and unbounded counters, and
//! holds the checker to what it said: never more agents than its note, nothing left behind that it did not warn of.
//!
//! The seed is fixed, so that a failure comes again.

use std::fmt::Write;

use sluice_core::expr::{ExprValue, Number};
use sluice_core::lifecycle::{AssignedTaker, ExitReaction, FieldValue, Lifecycle, STUCK, StateId, TransitionHook};
use sluice_core::problem::Code;
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, DefinitionFile, LoadedDefinition, Sources, load};

const LIFECYCLES: usize = 400;
const WALKS: usize = 40;
const MOVES: usize = 60;

/// Xorshift: the test needs no good randomness, only the same one each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const STATES: [&str; 6] = ["pending", "agent-review", "reviewing", "working", "stuck", "done"];
const HOOKS: [&str; 12] = [
    "{action: acquire_workspace}",
    "{action: release_workspace}",
    "{action: spawn_agent, prompt: w}",
    "{action: spawn_agent, prompt: w, increment: review_round}",
    "{action: spawn_reviewer, prompt: w, increment: turns}",
    "{action: kill_session}",
    "{action: kill_reviewer}",
    "{action: increment_review_round}",
    "{action: set_field, field: review_round, value: -3}",
    "{action: set_field, field: turns, value: 4}",
    "{action: notify_worker}",
    "{action: notify_worker, start: false}",
];
const GUARDS: [&str; 6] = [
    "review_round < 2",
    "review_round >= 2",
    "turns < 3 && review_round != 1",
    "turns > 5 || review_round == 0",
    "crash_count < 1",
    "!(review_round > 1)",
];

fn lifecycle(random: &mut Random) -> String {
    let mut text = String::from("name: random\nstates:\n");
    for state in STATES {
        let enter = if state != "done" && random.below(8) == 0 { ", enter_prompt: w" } else { "" };
        let _ = writeln!(text, "  {state}: {{terminal: {}, respawn_prompt: w{enter}}}", state == "done");
    }
    text.push_str("transitions:\n");
    for _ in 0..4 + random.below(8) {
        let (from, to) = (random.one(&STATES[..5]), random.one(&STATES));
        let _ = write!(text, "  - {{from: {from}, to: {to}");
        if random.below(2) == 0 {
            let _ = write!(text, ", when: \"{}\"", random.one(&GUARDS));
        }
        if random.below(2) == 0 {
            text.push_str(", gate: {section: \"## x\"}");
        }
        text.push_str(["", "", "", "", ", by: agent", ", by: person"][random.below(6)]);
        let hooks: Vec<&str> = (0..random.below(4)).map(|_| random.one(&HOOKS)).collect();
        let _ = writeln!(text, ", hooks: [{}]}}", hooks.join(", "));
    }
    // Every state can end, cleanly or not; `turns` is a counter in every file.
    for state in &STATES[..5] {
        let hooks = if random.below(3) == 0 { "" } else { "{action: kill_session}, {action: release_workspace}, " };
        let _ = writeln!(
            text,
            "  - {{from: {state}, to: done, when: \"turns > -100\", gate: {{section: \"## End\"}}, \
             hooks: [{hooks}{{action: set_field, field: turns, value: 0}}]}}"
        );
    }
    text.push_str("exit_monitoring:\n  rules:\n    - {status: done, action: mark_dead}\n");
    for _ in 0..random.below(4) {
        let status = random.one(&STATES[..5]);
        let _ = match random.below(3) {
            0 => writeln!(text, "    - {{status: {status}, then: {}}}", random.one(&STATES)),
            _ => writeln!(
                text,
                "    - {{status: {status}, action: crash, stuck_after: {}, respawn: {}}}",
                1 + random.below(3),
                random.below(2) == 0
            ),
        };
    }
    text.push_str("prompts: {w: go, reviewer: look, worker_respawn: go on}\n");
    text
}

/// A task on its way.
struct Walk<'a> {
    lifecycle: &'a Lifecycle,
    state: StateId,
    round: i64,
    turns: i64,
    workspace: bool,
    worker: bool,
    reviewer: bool,
    starts: u64,
    /// Since a person decided last.
    since: u64,
}

impl<'a> Walk<'a> {
    /// A task that was just created: in another state than the usual one with that state's agent, but in `reviewing`.
    fn begin(lifecycle: &'a Lifecycle, random: &mut Random) -> Self {
        let index = random.below(lifecycle.initial.len());
        let state = lifecycle.initial[index];
        let mut walk = Walk {
            lifecycle,
            state,
            round: 0,
            turns: 0,
            workspace: false,
            worker: false,
            reviewer: false,
            starts: 0,
            since: 0,
        };
        let spawns =
            |hook: &&TransitionHook| matches!(hook, TransitionHook::SpawnAgent(_) | TransitionHook::SpawnReviewer(_));
        let entry =
            lifecycle.transitions.iter().find(|edge| edge.to == state && edge.hooks.iter().any(|it| spawns(&it)));
        if let (1.., Some(entry)) = (index, entry)
            && lifecycle.state_name(state) != "reviewing"
        {
            walk.workspace = true;
            entry.hooks.iter().filter(spawns).for_each(|hook| walk.perform(hook));
        }
        walk.crash(random);
        walk
    }

    fn start(&mut self) {
        self.starts += 1;
        self.since += 1;
    }

    fn count(&mut self, field: &str, change: impl FnOnce(i64) -> i64) {
        match field {
            "review_round" => self.round = change(self.round),
            "turns" => self.turns = change(self.turns),
            _ => {}
        }
    }

    fn perform(&mut self, hook: &TransitionHook) {
        match hook {
            TransitionHook::AcquireWorkspace => self.workspace = true,
            TransitionHook::ReleaseWorkspace => self.workspace = false,
            TransitionHook::SpawnAgent(spawn) | TransitionHook::SpawnReviewer(spawn) => {
                if let Some(field) = &spawn.increment {
                    self.count(field.as_str(), |value| value + 1);
                }
                match hook {
                    TransitionHook::SpawnReviewer(_) => self.reviewer = true,
                    _ => self.worker = true,
                }
                self.start();
            }
            // The worker died a moment ago, so another one is started.
            TransitionHook::NotifyWorker { start: true, .. } if self.workspace => {
                self.worker = true;
                self.start();
            }
            TransitionHook::KillSession => (self.worker, self.reviewer) = (false, false),
            TransitionHook::KillReviewer => self.reviewer = false,
            TransitionHook::Increment(field) => self.count(field.as_str(), |value| value + 1),
            TransitionHook::SetField { field, value: FieldValue::Number(number) } => {
                self.count(field.as_str(), |_| *number)
            }
            _ => {}
        }
    }

    /// Crashes here, as often as the agent is started again, or less.
    fn crash(&mut self, random: &mut Random) {
        let again = |reaction: &ExitReaction| match reaction {
            ExitReaction::Crash { stuck_after: Some(limit), respawn: true } => limit - 1,
            _ => 0,
        };
        let rules = self.lifecycle.exits.rules.iter().filter(|rule| rule.state == self.state);
        let most = rules.map(|rule| again(&rule.reaction)).max().unwrap_or(0);
        for _ in 0..random.below(most as usize + 2).min(most as usize) {
            self.start();
        }
    }

    fn is_open(&self, index: usize, random: &mut Random) -> bool {
        let crashes = random.below(3) as i64;
        let value = |head: &str| match head {
            "review_round" => self.round,
            "turns" => self.turns,
            _ => crashes,
        };
        let guard = self.lifecycle.transitions[index].guard.as_ref();
        guard.is_none_or(|guard| guard.holds(&|path| Some(ExprValue::Number(Number::whole(value(path.head()))))))
    }

    fn enter(&mut self, to: StateId, transition: Option<usize>, random: &mut Random) {
        let lifecycle = self.lifecycle;
        transition
            .into_iter()
            .flat_map(|index| &lifecycle.transitions[index].hooks)
            .for_each(|hook| self.perform(hook));
        self.state = to;
        if lifecycle.state(to).enter_prompt.is_some() {
            self.worker = true;
            self.start();
        }
        self.crash(random);
    }

    /// One move; false when there is none.
    fn step(&mut self, random: &mut Random) -> bool {
        let lifecycle = self.lifecycle;
        let escalates = |rule: &sluice_core::lifecycle::ExitRule| {
            rule.state == self.state && matches!(rule.reaction, ExitReaction::Crash { stuck_after: Some(_), .. })
        };
        let stuck = lifecycle.find(STUCK).filter(|stuck| *stuck != self.state);
        if let (true, Some(stuck), 0) = (lifecycle.exits.rules.iter().any(escalates), stuck, random.below(4)) {
            let is_way = |edge: &&sluice_core::lifecycle::LifecycleTransition| {
                edge.from == self.state && edge.to == stuck && edge.gate.is_none()
            };
            let way = lifecycle.transitions.iter().position(|edge| is_way(&edge));
            self.enter(stuck, way, random);
            return true;
        }
        let open: Vec<usize> = (0..lifecycle.transitions.len())
            .filter(|index| lifecycle.transitions[*index].from == self.state && self.is_open(*index, random))
            .collect();
        // Ends are taken last, so that walks are long.
        let on: Vec<usize> =
            open.iter().copied().filter(|index| !lifecycle.state(lifecycle.transitions[*index].to).terminal).collect();
        let choice = if on.is_empty() || random.below(6) == 0 { &open } else { &on };
        let Some(index) = choice.get(random.below(choice.len())).copied() else { return false };
        let edge = &lifecycle.transitions[index];
        let monitored = lifecycle.exits.rules.iter().any(|rule| {
            rule.state == edge.from && matches!(&rule.reaction, ExitReaction::Advance(to) if *to == edge.to)
        });
        let starts = edge.hooks.iter().any(|hook| {
            matches!(
                hook,
                TransitionHook::SpawnAgent(_)
                    | TransitionHook::SpawnReviewer(_)
                    | TransitionHook::NotifyWorker { start: true, .. }
            )
        });
        let is_closed = match edge.by {
            Some(AssignedTaker::Person) => true,
            Some(AssignedTaker::Agent) => false,
            None => edge.gate.is_none() && (starts || lifecycle.state(edge.to).terminal),
        };
        if !monitored && (is_closed || !(self.worker || self.reviewer)) {
            self.since = 0;
        }
        self.enter(edge.to, Some(index), random);
        true
    }
}

/// What the checker promised.
#[derive(Debug, Default)]
struct Promise {
    total: Option<u64>,
    between: Option<u64>,
    workspace_freed: bool,
    session_ended: bool,
}

impl Promise {
    fn of(loaded: &LoadedDefinition) -> Self {
        let has = |code: Code| loaded.problems.iter().any(|it| it.code == code);
        let mut promise = Promise {
            workspace_freed: !has(Code::WorkspaceKept),
            session_ended: !has(Code::SessionKept),
            ..Promise::default()
        };
        let notes: Vec<&str> =
            loaded.problems.iter().filter(|it| it.code == Code::AgentStarts).map(|it| it.message.as_str()).collect();
        match notes.first() {
            None => promise.total = Some(0),
            Some(note) => {
                let number = note.split(' ').find_map(|word| word.parse().ok());
                match note.contains("between two decisions") {
                    true => promise.between = number,
                    false => promise.total = number,
                }
            }
        }
        promise
    }
}

#[test]
fn the_checker_keeps_its_word() {
    let mut random = Random(0x5106_ce00_0000_0006);
    let (mut tried, mut bounded, mut between) = (0, 0, 0);
    while tried < LIFECYCLES {
        let text = lifecycle(&mut random);
        let loaded =
            load(&DefinitionFile { path: "r.yml", bytes: text.as_bytes() }, &mut NoPrompts, &mut Sources::new());
        let promise = Promise::of(&loaded);
        let Some(Definition::Lifecycle(lifecycle)) = loaded.definition.as_ref().filter(|_| loaded.is_usable()) else {
            continue;
        };
        tried += 1;
        bounded += usize::from(promise.total.is_some_and(|total| total > 0));
        between += usize::from(promise.between.is_some());
        for _ in 0..WALKS {
            let mut walk = Walk::begin(lifecycle, &mut random);
            for _ in 0..MOVES {
                assert!(
                    promise.total.is_none_or(|most| walk.starts <= most),
                    "{} starts: {promise:?}\n{text}",
                    walk.starts
                );
                assert!(
                    promise.between.is_none_or(|most| walk.since <= most),
                    "{} starts: {promise:?}\n{text}",
                    walk.since
                );
                if lifecycle.state(walk.state).terminal {
                    assert!(!promise.workspace_freed || !walk.workspace, "a workspace is left:\n{text}");
                    assert!(!promise.session_ended || !(walk.worker || walk.reviewer), "a session is left:\n{text}");
                    break;
                }
                if !walk.step(&mut random) {
                    break;
                }
            }
        }
    }
    assert!(bounded > 20 && between > 20, "too few promises to hold it to: {bounded} and {between}");
}
