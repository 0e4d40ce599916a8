//! A lifecycle as a graph: a box for each state, an arrow for each transition.
//!
//! Exit rules become notes and never arrows: each goes along a transition that is drawn already.

use sluice_core::lifecycle::{
    AgentSpawn, ArtifactTest, ExitReaction, ExitRule, FieldValue, Lifecycle, LifecycleState, StateId, StateRun,
    TransitionHook,
};

use super::{Graph, GraphEdge, GraphKind, NodeBox, label, note, words};

impl Graph {
    pub fn of_lifecycle(lifecycle: &Lifecycle) -> Graph {
        let states = (0u32..).map(StateId).zip(&lifecycle.states).zip(rules_of_states(lifecycle));
        let nodes = states
            .map(|((id, state), rules)| NodeBox {
                name: words(state.name.as_str()),
                details: starts(lifecycle, state),
                notes: exit_note(lifecycle, &rules).into_iter().collect(),
                initial: lifecycle.initial.contains(&id),
                terminal: state.terminal,
            })
            .collect();
        let edges = lifecycle
            .transitions
            .iter()
            .map(|transition| GraphEdge {
                from: place(transition.from),
                to: place(transition.to),
                gate: transition.gate.as_ref().map(|gate| label(gate.describe())),
                guard: transition.guard.as_ref().map(|guard| label(format!("[{guard}]"))),
                hooks: transition.hooks.iter().map(|hook| words(hook_words(hook))).collect(),
                back: false,
            })
            .collect();
        let mut graph = Graph {
            title: words(lifecycle.name.as_str()),
            subtitle: vec![format!("version {}", lifecycle.version)],
            kind: GraphKind::Lifecycle,
            nodes,
            edges,
        };
        graph.mark_back_edges();
        graph
    }
}

/// The agents and the run that a state starts by itself.
fn starts(lifecycle: &Lifecycle, state: &LifecycleState) -> Vec<String> {
    let entered = state.enter_prompt.iter().map(|prompt| words(format!("on entry: {prompt}")));
    let again = state.respawn_prompt.iter().map(|prompt| words(format!("respawn: {prompt}")));
    let run = state.run.iter().map(|run| words(run_words(lifecycle, run)));
    entered.chain(again).chain(run).collect()
}

/// `run: verify → reviewing, failed → working`
fn run_words(lifecycle: &Lifecycle, run: &StateRun) -> String {
    let completed = run.completed.map(|to| format!(" → {}", lifecycle.state_name(to))).unwrap_or_default();
    let failed = run.failed.map(|to| format!(", failed → {}", lifecycle.state_name(to))).unwrap_or_default();
    format!("run: {}{completed}{failed}", run.recipe)
}

fn place(id: StateId) -> usize {
    id.0 as usize
}

fn rules_of_states(lifecycle: &Lifecycle) -> Vec<Vec<&ExitRule>> {
    let mut rules = vec![Vec::new(); lifecycle.states.len()];
    for rule in &lifecycle.exits.rules {
        rules[place(rule.state)].push(rule);
    }
    rules
}

/// `on exit: ## Handoff → agent-review; else crash, stuck after 2`, where there are rules.
fn exit_note(lifecycle: &Lifecycle, rules: &[&ExitRule]) -> Option<String> {
    let name = |id: StateId| lifecycle.state_name(id);
    let parts = rules.iter().map(|rule| {
        let reaction = match &rule.reaction {
            ExitReaction::Advance(to) => format!("→ {}", name(*to)),
            ExitReaction::Choose(clauses) => {
                let clauses = clauses.iter().map(|(when, to)| format!("→ {} [{when}]", name(*to)));
                clauses.collect::<Vec<_>>().join(", ")
            }
            ExitReaction::Crash { stuck_after, respawn } => {
                let again = if *respawn { ", respawn" } else { "" };
                let stuck = stuck_after.map(|count| format!(", stuck after {count}")).unwrap_or_default();
                format!("crash{again}{stuck}")
            }
            ExitReaction::MarkDead => "mark dead".to_owned(),
        };
        match &rule.artifact {
            ArtifactTest::Any => reaction,
            ArtifactTest::Present(gate) => format!("{} {reaction}", gate.describe()),
            ArtifactTest::Missing => format!("else {reaction}"),
        }
    });
    (!rules.is_empty()).then(|| note(format!("on exit: {}", parts.collect::<Vec<_>>().join("; "))))
}

fn hook_words(hook: &TransitionHook) -> String {
    let action = hook.action().word();
    match hook {
        TransitionHook::SpawnAgent(spawn) | TransitionHook::SpawnReviewer(spawn) => spawn_words(action, spawn),
        TransitionHook::Increment(field) => format!("{field} + 1"),
        TransitionHook::SetField { field, value: FieldValue::Number(value) } => format!("{field} = {value}"),
        TransitionHook::SetField { field, value: FieldValue::Text(_) } => format!("{action} {field}"),
        TransitionHook::AcquireWorkspace
        | TransitionHook::ReleaseWorkspace
        | TransitionHook::KillSession
        | TransitionHook::KillReviewer
        | TransitionHook::NotifyWorker { .. }
        | TransitionHook::RunCommand(_)
        | TransitionHook::Plain(_) => action.to_owned(),
    }
}

fn spawn_words(action: &str, spawn: &AgentSpawn) -> String {
    let count = spawn.increment.as_ref().map(|field| format!("{field} + 1, ")).unwrap_or_default();
    format!("{count}{action} {}", spawn.prompt)
}
