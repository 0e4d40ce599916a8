//! A graph as an outline: each node in the order of the flow, with the arrows that leave it as a small tree.
//!
//! It draws any graph, in time and space linear in its size, and never more than the width: what does not fit goes
//! on in the next line.

use std::fmt::Write as _;

use super::{TextStyle, Tone};
use crate::layers::layers_of;
use crate::measure::{clip, width, wrap};
use crate::model::{Graph, GraphEdge, GraphKind};

/// Columns that hooks need to be worth a place behind the arrow.
const LEAST_FOR_HOOKS: usize = 24;

pub(super) fn outline(graph: &Graph, style: &TextStyle) -> String {
    let layer = layers_of(graph);
    let mut order: Vec<usize> = (0..graph.nodes.len()).collect();
    order.sort_by_key(|node| (graph.nodes[*node].terminal, layer[*node], *node));
    let leaving = graph.leaving();
    let mut out = String::new();
    let mut bare = false;
    for node in order {
        let edges: Vec<&GraphEdge> = leaving[node].iter().map(|edge| &graph.edges[*edge]).collect();
        let is_bare = edges.is_empty() && graph.nodes[node].notes.is_empty();
        if !(out.is_empty() || bare && is_bare) {
            out.push('\n');
        }
        bare = is_bare;
        heading(&mut out, graph, style, node);
        branches(&mut out, graph, style, &edges, !graph.nodes[node].notes.is_empty());
        for note in &graph.nodes[node].notes {
            note_lines(&mut out, style, note);
        }
    }
    out
}

/// The sign of a node, and its name.
pub(super) fn named(graph: &Graph, style: &TextStyle, node: usize, always: bool) -> String {
    let node = &graph.nodes[node];
    let sign = match (graph.kind, node.terminal, node.initial) {
        (GraphKind::Lifecycle, true, _) => style.sign("◉ ", "(*) "),
        (GraphKind::Lifecycle, false, true) if always => style.sign("● ", "* "),
        (GraphKind::Lifecycle | GraphKind::Recipe, false | true, false | true) if always => style.sign("○ ", "o "),
        (GraphKind::Lifecycle | GraphKind::Recipe, false | true, false | true) => "",
    };
    format!("{sign}{}", clip(&node.name, style.width / 2))
}

fn heading(out: &mut String, graph: &Graph, style: &TextStyle, node: usize) {
    let name = named(graph, style, node, true);
    let details = style.words(&graph.nodes[node].details.join(" · "));
    let room = style.width.saturating_sub(width(&name) + 3);
    let mut lines = wrap(&details, room, usize::MAX).into_iter();
    let first = lines.next().map(|line| format!("   {}", style.tone(&line, Tone::Dim))).unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}{first}", style.tone(&name, Tone::Strong));
    let bar = style.sign("│", "|");
    for line in lines {
        let _ = writeln!(out, "{bar}{}{}", " ".repeat(width(&name) + 2), style.tone(&line, Tone::Dim));
    }
}

fn branches(out: &mut String, graph: &Graph, style: &TextStyle, edges: &[&GraphEdge], goes_on: bool) {
    let most = style.width / 2 - 4;
    let labels: Vec<Vec<String>> =
        edges.iter().map(|edge| wrap(&style.words(&edge.label().join(" ")), most, usize::MAX)).collect();
    let names: Vec<String> =
        edges.iter().map(|edge| clip(&named(graph, style, edge.to, false), style.width / 3)).collect();
    let label_columns = labels.iter().flatten().map(|line| width(line)).max().unwrap_or(0);
    let name_columns = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let arm = if label_columns == 0 { 1 } else { label_columns + 4 };
    for (index, edge) in edges.iter().enumerate() {
        let last = index + 1 == edges.len() && !goes_on;
        let joint = if last { style.sign("╰", "`") } else { style.sign("├", "|") };
        let bar = if last { " " } else { style.sign("│", "|") };
        let dash = if edge.back { style.sign("╌", ".") } else { style.sign("─", "-") };
        let head = if edge.back { style.sign("↺", "<") } else { style.sign("▶", ">") };
        let mut start = format!("{joint}{dash}");
        let mut label = String::new();
        if let [above @ .., bottom] = labels[index].as_slice() {
            for line in above {
                let _ = writeln!(out, "{start} {line}");
                start = format!("{bar} ");
            }
            label = format!(" {bottom} ");
        }
        let fill = dash.repeat(arm.saturating_sub(width(&label)));
        let arrow = format!("{start}{label}{fill}{head} {}", names[index]);
        let hooks = style.words(&edge.hooks.join(" · "));
        with_hooks(out, style, &arrow, &hooks, 4 + arm + name_columns + 2, bar);
    }
}

/// Writes the arrow and its hooks, behind it or, when there is no room, below.
fn with_hooks(out: &mut String, style: &TextStyle, start: &str, hooks: &str, indent: usize, bar: &str) {
    if hooks.is_empty() {
        let _ = writeln!(out, "{start}");
        return;
    }
    let behind = style.width >= indent + LEAST_FOR_HOOKS;
    let indent = if behind { indent } else { 6 };
    let mut lines = wrap(hooks, style.width.saturating_sub(indent), usize::MAX).into_iter();
    let first = if behind { lines.next().unwrap_or_default() } else { String::new() };
    let gap = " ".repeat(if behind { indent.saturating_sub(width(start)) } else { 0 });
    let _ = writeln!(out, "{start}{gap}{}", style.tone(&first, Tone::Dim));
    for line in lines {
        let _ = writeln!(out, "{bar}{}{}", " ".repeat(indent - 1), style.tone(&line, Tone::Dim));
    }
}

fn note_lines(out: &mut String, style: &TextStyle, note: &str) {
    let lines = wrap(&style.words(note), style.width.saturating_sub(3), usize::MAX);
    for (index, line) in lines.iter().enumerate() {
        let start = if index == 0 { style.sign("╰╌ ", "`. ") } else { "   " };
        let _ = writeln!(out, "{start}{}", style.tone(line, Tone::Dim));
    }
}
