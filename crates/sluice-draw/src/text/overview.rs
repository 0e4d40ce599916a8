//! The main path of a lifecycle on one line, with the ways back along it below.
//!
//! It shows where a task usually goes, not every way: the outline has those. When it does not fit, there is none.

use std::collections::VecDeque;

use super::canvas::Canvas;
use super::outline::named;
use super::{TextStyle, Tone};
use crate::measure::width;
use crate::model::Graph;

/// More ways back than this would hide the path.
const MOST_ARCS: usize = 5;

pub(super) fn overview(graph: &Graph, style: &TextStyle) -> String {
    let path = main_path(graph);
    if path.len() < 3 {
        return String::new();
    }
    let arrow = style.sign(" ──▶ ", " --> ");
    let (mut column, mut spans) = (2, Vec::new());
    let names: Vec<String> =
        path.iter().enumerate().map(|(place, node)| named(graph, style, *node, place == 0)).collect();
    for name in &names {
        spans.push((column, width(name)));
        column += width(name) + width(arrow);
    }
    let columns = column - width(arrow);
    if columns > style.width {
        return String::new();
    }
    let arcs = arcs(graph, &path);
    let rows = if arcs.is_empty() { 1 } else { 2 + arcs.len() };
    let mut canvas = Canvas::new(columns, rows);
    let mut leaving = vec![0; path.len()];
    let mut heads = Vec::new();
    for (row, (from, to)) in arcs.iter().enumerate() {
        let place =
            |index: usize, offset: usize| spans[index].0 + (spans[index].1 / 2 + offset).min(spans[index].1 - 1);
        let start = place(*from, 1 + leaving[*from]);
        leaving[*from] += 2;
        let end = spans[*to].0 + (spans[*to].1 / 2).saturating_sub(1);
        canvas.line(&[(start, 1), (start, 2 + row), (end, 2 + row), (end, 1)], *to, true, (false, false));
        heads.push(end);
    }
    if !canvas.is_clear() {
        canvas = Canvas::new(columns, 1);
        heads.clear();
    }
    for (place, (name, span)) in names.iter().zip(&spans).enumerate() {
        if place > 0 {
            canvas.write(span.0 - width(arrow), 0, arrow, Tone::Plain);
        }
        canvas.write(span.0, 0, name, Tone::Strong);
    }
    for head in heads {
        canvas.write(head, 1, style.sign("▲", "^"), Tone::Plain);
    }
    format!("{}\n", canvas.render(style))
}

/// The shortest way from the usual start to the end that is furthest from it: the near ends are ways to give up.
fn main_path(graph: &Graph) -> Vec<usize> {
    let Some(start) = graph.nodes.iter().position(|node| node.initial) else { return Vec::new() };
    let leaving = graph.leaving();
    let mut from: Vec<Option<usize>> = vec![None; graph.nodes.len()];
    let mut far = vec![usize::MAX; graph.nodes.len()];
    far[start] = 0;
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for edge in leaving[node].iter().map(|edge| &graph.edges[*edge]) {
            if far[edge.to] == usize::MAX {
                far[edge.to] = far[node] + 1;
                from[edge.to] = Some(node);
                queue.push_back(edge.to);
            }
        }
    }
    let ends = (0..graph.nodes.len()).filter(|node| graph.nodes[*node].terminal && far[*node] != usize::MAX);
    let Some(end) = ends.rev().max_by_key(|node| far[*node]) else { return Vec::new() };
    let mut path = vec![end];
    let mut node = end;
    while let Some(before) = from[node] {
        path.push(before);
        node = before;
    }
    path.reverse();
    path
}

/// The back edges between nodes of the path, by their places on it, short ones first.
fn arcs(graph: &Graph, path: &[usize]) -> Vec<(usize, usize)> {
    let mut place = vec![None; graph.nodes.len()];
    for (index, node) in path.iter().enumerate() {
        place[*node] = Some(index);
    }
    let mut arcs: Vec<(usize, usize)> = graph
        .edges
        .iter()
        .filter_map(|edge| Some((place[edge.from]?, place[edge.to]?)))
        .filter(|(from, to)| from > to)
        .collect();
    arcs.sort_by_key(|(from, to)| (from - to, *from));
    arcs.dedup();
    if arcs.len() > MOST_ARCS { Vec::new() } else { arcs }
}
