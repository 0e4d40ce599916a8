//! The ways back: each runs in a lane of its own, right of the picture, from where it leaves up to where it enters.
//!
//! A node at the right end of its layer is left and entered through its side, any other one below and above. Lanes
//! cross other lines and never lie on one.

use std::collections::BTreeSet;

use super::gaps::Gaps;
use super::{ArrowHead, EdgeLabel, EdgeWire, GraphPlan, RowBases, WireEnd};
use crate::layers::LayeredGraph;
use crate::measure::width;
use crate::model::Graph;

/// Free columns between the picture and the first lane, and between a label and the next lane.
const APART: usize = 2;

/// Which back edges there are, and through where they go.
#[derive(Debug)]
pub(super) struct BackEdges {
    edges: Vec<usize>,
    layer: Vec<usize>,
    /// Those edges that leave below their box.
    pub(super) low_exits: Vec<usize>,
    /// The nodes that are entered from above.
    pub(super) high_entries: BTreeSet<usize>,
    /// How many lines of text each box must have, for its side to be wide enough.
    pub(super) least_lines: Vec<usize>,
}

struct BackRoute {
    edge: usize,
    start: Vec<(usize, usize)>,
    end: Vec<(usize, usize)>,
    head: ArrowHead,
}

impl BackEdges {
    pub(super) fn new(graph: &Graph, layered: &LayeredGraph) -> BackEdges {
        let ends: BTreeSet<usize> = layered.layers.iter().filter_map(|layer| layer.last().copied()).collect();
        let edges: Vec<usize> = (0..graph.edges.len()).filter(|edge| graph.edges[*edge].back).collect();
        let mut least_lines = vec![1; graph.nodes.len()];
        let (mut exits, mut entries) = (vec![0; graph.nodes.len()], vec![0; graph.nodes.len()]);
        let (mut low_exits, mut high_entries) = (Vec::new(), BTreeSet::new());
        for edge in &edges {
            let (from, to) = (graph.edges[*edge].from, graph.edges[*edge].to);
            if ends.contains(&from) {
                exits[from] += 1;
            } else {
                low_exits.push(*edge);
            }
            if ends.contains(&to) {
                entries[to] = 1;
            } else {
                high_entries.insert(to);
            }
        }
        for (node, least) in least_lines.iter_mut().enumerate() {
            *least = (exits[node] + entries[node]).max(1);
        }
        let layer = layered.layer[..graph.nodes.len()].to_vec();
        BackEdges { edges, layer, low_exits, high_entries, least_lines }
    }

    pub(super) fn draw(&self, graph: &Graph, gaps: &Gaps, bases: &RowBases, plan: &mut GraphPlan) {
        let mut left_through_side = vec![0; graph.nodes.len()];
        let mut ways: Vec<BackRoute> = Vec::new();
        for edge in &self.edges {
            let (from, to) = (graph.edges[*edge].from, graph.edges[*edge].to);
            let gap = self.layer[from] + 1;
            let bottom = plan.boxes[from].y + plan.boxes[from].h - 1;
            let start = match gaps.exit(gap, *edge, from) {
                Some((row, column)) => vec![(column, bottom), (column, bases.gap[gap] + row)],
                None => {
                    left_through_side[from] += 1;
                    vec![(plan.boxes[from].x + plan.boxes[from].w - 1, bottom - left_through_side[from])]
                }
            };
            let gap = self.layer[to];
            let (end, head) = match gaps.entry(gap, to) {
                Some((row, column)) => {
                    (vec![(column, bases.gap[gap] + row), (column, bases.layer[gap] - 1)], ArrowHead::Down)
                }
                None => (vec![(plan.boxes[to].x + plan.boxes[to].w, plan.boxes[to].y + 1)], ArrowHead::Left),
            };
            ways.push(BackRoute { edge: *edge, start, end, head });
        }
        // Short ways lie inside, so that long ones go around them.
        ways.sort_by_key(|way| (way.rows().1 - way.rows().0, way.rows().0, way.edge));
        let base = plan.wires.iter().map(|wire| wire.net + 1).max().unwrap_or(0);
        let lanes = lanes(&ways);
        let mut column = plan.columns + APART;
        let mut entered: Vec<Option<usize>> = vec![None; graph.nodes.len()];
        for lane in 0..lanes.iter().max().map_or(0, |last| last + 1) {
            let mut widest = 0;
            for (way, _) in ways.iter().zip(&lanes).filter(|(_, other)| **other == lane) {
                let lines: Vec<String> = graph.edges[way.edge].label().iter().map(|line| (*line).to_owned()).collect();
                widest = lines.iter().map(|line| width(line) + 1).max().unwrap_or(0).max(widest);
                let to = graph.edges[way.edge].to;
                plan.wires.push(way.wire(column, base + to, entered[to]));
                entered[to] = Some(column);
                if !lines.is_empty() {
                    plan.labels.push(EdgeLabel { lines, column: column + 2, row: way.rows().1, beside: true });
                }
            }
            plan.columns = column + 1 + widest;
            column = plan.columns + APART;
        }
    }
}

impl BackRoute {
    /// The upper and the lower end of its lane.
    fn rows(&self) -> (usize, usize) {
        let (start, end) = (self.start.last().map_or(0, |point| point.1), self.end.first().map_or(0, |point| point.1));
        (start.min(end), start.max(end))
    }

    /// The line in the lane at `column`. It joins the one in the lane `inside`, if that leads to the same node.
    fn wire(&self, column: usize, net: usize, inside: Option<usize>) -> EdgeWire {
        let mut points = self.start.clone();
        points.extend(self.start.last().map(|last| (column, last.1)));
        points.extend(self.end.first().map(|first| (column, first.1)));
        let end = match (inside, self.end.first()) {
            (Some(inside), Some(first)) => {
                points.push((inside, first.1));
                WireEnd::Joins
            }
            (Some(_) | None, Some(_) | None) => {
                points.extend(&self.end);
                WireEnd::Arrow(self.head)
            }
        };
        EdgeWire { net, points, back: true, from_box: true, end }
    }
}

/// The innermost lane for each way that no other way uses in the same rows.
fn lanes(ways: &[BackRoute]) -> Vec<usize> {
    let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut lanes = Vec::with_capacity(ways.len());
    for way in ways {
        let (top, bottom) = way.rows();
        let free = |lane: &Vec<(usize, usize)>| lane.iter().all(|(t, b)| bottom + 1 < *t || b + 1 < top);
        let lane = taken.iter().position(free).unwrap_or_else(|| {
            taken.push(Vec::new());
            taken.len() - 1
        });
        taken[lane].push((top, bottom));
        lanes.push(lane);
    }
    lanes
}
