//! The graph that all formats draw: boxes, and arrows with what stands on them.
//!
//! It holds only text that is ready to be shown, free of control characters; escaping is each format's own affair.

mod lifecycle;
mod recipe;

use crate::measure::{clean, clip};

/// The longest name, title or detail, in columns. A picture is for looking at; what is longer is read in the file,
/// and Graphviz takes no text of more than 16,384 bytes.
const LONGEST_WORDS: usize = 80;
/// The longest guard, condition or gate on an arrow.
const LONGEST_LABEL: usize = 240;
const LONGEST_NOTE: usize = 1_000;

/// What a graph was made from. It decides the words and the form of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphKind {
    Lifecycle,
    /// A graph of steps.
    Recipe,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    pub title: String,
    /// What else there is to say about the whole, in few words.
    pub subtitle: Vec<String>,
    pub kind: GraphKind,
    /// The boxes, in the order of the file.
    pub nodes: Vec<NodeBox>,
    /// The arrows, in the order of the file.
    pub edges: Vec<GraphEdge>,
}

/// A state or a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeBox {
    pub name: String,
    /// What it is: `agent · planner`. Belongs into its box.
    pub details: Vec<String>,
    /// What else happens there. Belongs beside the box, or into a tooltip.
    pub notes: Vec<String>,
    pub initial: bool,
    pub terminal: bool,
}

/// A transition, a need or a way back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEdge {
    /// From this node, by its place in [`Graph::nodes`],
    pub from: usize,
    pub to: usize,
    /// What an artifact must hold: `## Review: PASS`.
    pub gate: Option<String>,
    /// What else must hold, or how often: `[review_round < 2]`, `again, at most 3×`.
    pub guard: Option<String>,
    pub hooks: Vec<String>,
    /// Whether it leads back to where the flow has been.
    pub back: bool,
}

impl GraphEdge {
    pub fn label(&self) -> Vec<&str> {
        self.gate.iter().chain(&self.guard).map(String::as_str).collect()
    }
}

impl Graph {
    /// The main sentence about it: `recipe, version 1, 5 steps`.
    pub fn about(&self) -> String {
        let (kind, nodes, edges) = match self.kind {
            GraphKind::Lifecycle => ("lifecycle", ["state", "states"], Some(["transition", "transitions"])),
            GraphKind::Recipe => ("recipe", ["step", "steps"], None),
        };
        let plural = |count: usize, words: [&str; 2]| format!("{count} {}", words[usize::from(count != 1)]);
        let mut parts = vec![kind.to_owned(), plural(self.nodes.len(), nodes)];
        parts.extend(edges.map(|words| plural(self.edges.len(), words)));
        parts.extend(self.subtitle.iter().cloned());
        parts.join(" · ")
    }

    /// Whether `node` is shown as a start: only where that is not plain to see, as it is with the first steps.
    pub(crate) fn marks_start(&self, node: usize) -> bool {
        match self.kind {
            GraphKind::Lifecycle => self.nodes[node].initial,
            GraphKind::Recipe => false,
        }
    }

    /// The edges that leave each node, in the order of the file.
    pub(crate) fn leaving(&self) -> Vec<Vec<usize>> {
        let mut leaving = vec![Vec::new(); self.nodes.len()];
        for (index, edge) in self.edges.iter().enumerate() {
            leaving[edge.from].push(index);
        }
        leaving
    }

    /// Marks the edges that close a cycle when the flow is followed from the initial nodes, in file order.
    ///
    /// What remains has no cycle, which every layout relies on.
    fn mark_back_edges(&mut self) {
        let leaving = self.leaving();
        let (initial, other): (Vec<usize>, Vec<usize>) =
            (0..self.nodes.len()).partition(|node| self.nodes[*node].initial);
        let mut state = vec![NodeVisit::New; self.nodes.len()];
        for root in initial.into_iter().chain(other) {
            if state[root] != NodeVisit::New {
                continue;
            }
            state[root] = NodeVisit::Open;
            let mut stack = vec![(root, 0)];
            while let Some((node, next)) = stack.last_mut() {
                let Some(&index) = leaving[*node].get(*next) else {
                    state[*node] = NodeVisit::Closed;
                    stack.pop();
                    continue;
                };
                *next += 1;
                let edge = &mut self.edges[index];
                if edge.back {
                    continue;
                }
                match state[edge.to] {
                    NodeVisit::New => {
                        state[edge.to] = NodeVisit::Open;
                        stack.push((edge.to, 0));
                    }
                    NodeVisit::Open => edge.back = true,
                    NodeVisit::Closed => {}
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeVisit {
    New,
    Open,
    Closed,
}

fn words(text: impl AsRef<str>) -> String {
    shown(text.as_ref(), LONGEST_WORDS)
}

fn label(text: impl AsRef<str>) -> String {
    shown(text.as_ref(), LONGEST_LABEL)
}

fn note(text: impl AsRef<str>) -> String {
    shown(text.as_ref(), LONGEST_NOTE)
}

fn shown(text: &str, columns: usize) -> String {
    // Marks that take no column of their own are characters too, and there may be any number of them.
    let bounded: String = clean(text).chars().take(4 * columns).collect();
    clip(&bounded, columns)
}
