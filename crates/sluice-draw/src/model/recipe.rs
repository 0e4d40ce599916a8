//! A recipe as a graph: a box for each step, an arrow for each need and each way back.
//!
//! A condition stands where it decides: on the one arrow that it can be about, else in the box. It is never
//! shortened to its verdict, because arrows may share a line.

use std::collections::BTreeMap;
use std::time::Duration;

use sluice_core::recipe::{FanOutItems, Join, OnExhausted, Recipe, Step, StepId, StepWork, Trigger};

use super::{Graph, GraphEdge, GraphKind, NodeBox, label, words};

impl Graph {
    pub fn of_recipe(recipe: &Recipe) -> Graph {
        let places: BTreeMap<&str, usize> =
            recipe.steps.iter().enumerate().map(|(place, step)| (step.name.as_str(), place)).collect();
        let mut nodes = Vec::with_capacity(recipe.steps.len());
        let mut edges = Vec::new();
        for (place, step) in recipe.steps.iter().enumerate() {
            let needs: Vec<usize> = step.needs.iter().map(|id| index(*id)).collect();
            let decider = decider(step, &needs, &places);
            let condition = step.condition.as_ref().map(|condition| label(condition.to_string()));
            let on_node = if decider.is_none() { condition.as_ref() } else { None };
            nodes.push(node(step, on_node, needs.is_empty()));
            edges.extend(needs.iter().map(|need| GraphEdge {
                from: *need,
                to: place,
                gate: None,
                guard: if decider == Some(*need) { condition.clone() } else { None },
                hooks: Vec::new(),
                back: false,
            }));
            edges.extend(way_back(step, place));
        }
        let mut graph = Graph {
            title: words(recipe.name.as_str()),
            subtitle: subtitle(recipe),
            kind: GraphKind::Recipe,
            nodes,
            edges,
        };
        graph.mark_back_edges();
        graph
    }
}

fn index(id: StepId) -> usize {
    id.0 as usize
}

/// The need on whose arrow the condition stands: the only one, or the only one that it reads.
fn decider(step: &Step, needs: &[usize], places: &BTreeMap<&str, usize>) -> Option<usize> {
    let condition = step.condition.as_ref()?;
    if let [only] = needs {
        return Some(*only);
    }
    let mut read: Vec<usize> =
        condition.comparisons().iter().filter_map(|compare| places.get(compare.path.head()).copied()).collect();
    read.sort_unstable();
    read.dedup();
    match read.as_slice() {
        [only] if needs.contains(only) => Some(*only),
        _ => None,
    }
}

fn node(step: &Step, condition: Option<&String>, initial: bool) -> NodeBox {
    let mut details: Vec<String> = step.title.iter().map(words).filter(|title| !title.is_empty()).collect();
    let role = step.role.as_str();
    let shown_role = if matches!(role, "" | "any") { String::new() } else { format!(" · {role}") };
    details.push(words(format!("{}{shown_role}", step.work.kind())));
    details.extend(turns(&step.work).map(words));
    match step.join {
        Join::NoneFailed => {}
        Join::AllCompleted | Join::AnyCompleted => details.push(format!("join: {}", step.join.word())),
    }
    if step.always {
        details.push("always, even after a failure".to_owned());
    }
    details.extend(condition.map(|condition| format!("when {condition}")));
    NodeBox { name: words(step.name.as_str()), details, notes: Vec::new(), initial, terminal: false }
}

/// How often the work is done, when that is not once.
fn turns(work: &StepWork) -> Option<String> {
    match work {
        StepWork::ParallelAgents { items, max_concurrent, .. } => {
            let items = match items {
                FanOutItems::Variable(template) => {
                    template.fill(&|path| Some(format!("${{{path}}}"))).unwrap_or_else(|path| path.to_string())
                }
                FanOutItems::Listed(items) => format!("of {}", items.len()),
            };
            Some(format!("for each {items}, {max_concurrent} at a time"))
        }
        StepWork::AgentLoop { max_iterations, .. } => Some(format!("until content, at most {max_iterations}×")),
        StepWork::Task(task) => task.workflow.as_ref().map(|workflow| format!("lifecycle: {workflow}")),
        StepWork::Agent { .. } | StepWork::Script { .. } | StepWork::Gate { .. } => None,
    }
}

fn way_back(step: &Step, place: usize) -> impl Iterator<Item = GraphEdge> {
    step.loop_back.iter().map(move |way| {
        let then = match way.on_exhausted {
            OnExhausted::Fail => "",
            OnExhausted::Hold => ", then hold",
        };
        GraphEdge {
            from: place,
            to: index(way.to),
            gate: None,
            guard: Some(format!("again, at most {}×{then}", way.max)),
            hooks: Vec::new(),
            back: true,
        }
    })
}

fn subtitle(recipe: &Recipe) -> Vec<String> {
    let mut parts = Vec::new();
    if !recipe.version.is_empty() {
        parts.push(words(format!("version {}", recipe.version)));
    }
    match &recipe.trigger {
        Trigger::Manual => {}
        Trigger::Event { event, filter } => {
            let filter = filter.as_ref().map(|filter| format!(" [{filter}]")).unwrap_or_default();
            parts.push(label(format!("on {event}{filter}")));
        }
    }
    if let Some(repeat) = &recipe.repeat {
        parts.push(format!("again {} after its end", duration(repeat.every)));
    }
    parts
}

fn duration(length: Duration) -> String {
    let seconds = length.as_secs();
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let shown: String =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect();
    if shown.is_empty() { "0s".to_owned() } else { shown }
}
