//! Graphs in the language of Graphviz.
//!
//! It decides fonts, frames and dashes and never positions: those are what Graphviz is for. Names never become
//! identifiers, so nothing that a definition says can end a statement.

use std::fmt::Write as _;

use crate::measure::clip;
use crate::model::{Graph, GraphEdge, NodeBox};

/// The longest tooltip, in columns: a transition may have any number of hooks.
const LONGEST_TIP: usize = 1_000;

const DEFAULTS: &str = "    graph [rankdir=TB, bgcolor=\"transparent\", fontname=\"Helvetica,Arial,sans-serif\", fontsize=14, nodesep=0.5, ranksep=0.55, labelloc=t];
    node [shape=box, style=\"rounded,filled\", fillcolor=\"#f6f8fa\", color=\"#57606a\", fontcolor=\"#1f2328\", fontname=\"Helvetica,Arial,sans-serif\", fontsize=12, margin=\"0.18,0.09\"];
    edge [color=\"#57606a\", fontcolor=\"#57606a\", fontname=\"Helvetica,Arial,sans-serif\", fontsize=10, arrowsize=0.7];
";

pub fn dot(graph: &Graph) -> String {
    let mut out = format!("digraph \"{}\" {{\n{DEFAULTS}", quoted(&graph.title));
    for (index, node) in graph.nodes.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "    n{index} [{}];", node_attributes(node));
    }
    for index in 0..graph.nodes.len() {
        if graph.marks_start(index) {
            let _ =
                writeln!(out, "    start{index} [shape=point, width=0.12, color=\"#57606a\", fillcolor=\"#57606a\"];");
            let _ = writeln!(out, "    start{index} -> n{index};");
        }
    }
    for edge in &graph.edges {
        let _ = writeln!(out, "    n{} -> n{}{};", edge.from, edge.to, edge_attributes(edge));
    }
    out.push_str("}\n");
    out
}

fn node_attributes(node: &NodeBox) -> String {
    let details: String = node
        .details
        .iter()
        .map(|detail| format!("<br/><font point-size=\"10\" color=\"#57606a\">{}</font>", markup(detail)))
        .collect();
    let frames = if node.terminal { ", peripheries=2" } else { "" };
    let notes = quoted(&clip(&node.notes.join("\n"), LONGEST_TIP));
    let tooltip = if notes.is_empty() { String::new() } else { format!(", tooltip=\"{notes}\"") };
    format!("label=<<b>{}</b>{details}>{frames}{tooltip}", markup(&node.name))
}

fn edge_attributes(edge: &GraphEdge) -> String {
    let mut attributes = Vec::new();
    let label = edge.label().join("\n");
    if !label.is_empty() {
        attributes.push(format!("label=\"{}\"", quoted(&label)));
    }
    if edge.back {
        attributes.push("style=dashed".to_owned());
    }
    if !edge.hooks.is_empty() {
        attributes.push(format!("tooltip=\"{}\"", quoted(&clip(&edge.hooks.join(", "), LONGEST_TIP))));
    }
    if attributes.is_empty() { String::new() } else { format!(" [{}]", attributes.join(", ")) }
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
