//! The parts of the picture, from the grid of a plan to points on the page.
//!
//! It decides no place: columns and rows are the plan's, and here they only become lengths.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{COLUMN, NodeMark, escaped, frame, height, open_node};
use crate::measure::width;
use crate::model::Graph;
use crate::plan::{ArrowHead, EdgeWire, GraphPlan, GridRow, PlacedBox, WireEnd};

/// The radius of a line's bend.
const BEND: f64 = 7.0;
/// The length of an arrow head.
const HEAD: f64 = 8.0;
const LABEL_CHAR: f64 = 6.4;

pub(super) struct SvgPage {
    /// The top of each row, and the end of the last.
    tops: Vec<f64>,
}

impl SvgPage {
    pub(super) fn new(plan: &GraphPlan) -> SvgPage {
        let mut tops = vec![0.0];
        let mut at = 0.0;
        for row in &plan.rows {
            at += height(*row);
            tops.push(at);
        }
        SvgPage { tops }
    }

    pub(super) fn height(&self) -> f64 {
        self.tops.last().copied().unwrap_or(0.0)
    }

    fn top(&self, row: usize) -> f64 {
        self.tops.get(row).copied().unwrap_or_else(|| self.height())
    }

    fn middle(&self, row: usize) -> f64 {
        f64::midpoint(self.top(row), self.top(row + 1))
    }

    pub(super) fn boxes(&self, out: &mut String, graph: &Graph, plan: &GraphPlan, marks: &[NodeMark]) {
        for (index, (placed, lines)) in plan.boxes.iter().zip(&plan.contents).enumerate() {
            let node = &graph.nodes[index];
            let PlacedBox { x, y, w, h } = *placed;
            let (left, top) = (x as f64 * COLUMN, self.top(y));
            let (wide, high) = (w as f64 * COLUMN, self.top(y + h - 1) + height(GridRow::Border) - top);
            let starts = graph.marks_start(index);
            let close = open_node(out, node, marks.get(index), &node.notes.join("; "));
            frame(out, node, starts, (left, top), (wide, high));
            if starts {
                let _ = write!(
                    out,
                    "<circle class=\"start\" cx=\"{}\" cy=\"{}\" r=\"3.5\"/>",
                    left + 10.0,
                    f64::midpoint(top, top + high)
                );
            }
            let shown = lines.iter().filter(|line| !line.is_empty()).count();
            let spare = (lines.len() - shown) as f64 * 8.5;
            for (row, line) in lines.iter().take(shown).enumerate() {
                let class = if row == 0 { "name" } else { "detail" };
                let (column, baseline) = (left + wide / 2.0, self.middle(y + 1 + row) + 4.3 + spare);
                let _ =
                    write!(out, "<text class=\"{class}\" x=\"{column}\" y=\"{baseline:.1}\">{}</text>", escaped(line));
            }
            out.push_str(close);
        }
    }

    /// The lines, net by net; each net's halo interrupts what it crosses.
    pub(super) fn wires(&self, out: &mut String, plan: &GraphPlan) {
        let mut wires: Vec<&EdgeWire> = plan.wires.iter().collect();
        wires.sort_by_key(|wire| (wire.back, wire.net));
        let mut heads = BTreeSet::new();
        for net in wires.chunk_by(|a, b| (a.back, a.net) == (b.back, b.net)) {
            // One path for the whole net, so that shared pieces are drawn once.
            let path: String = net.iter().map(|wire| rounded(&self.points(wire, -0.25))).collect();
            let halo: String = net.iter().map(|wire| rounded(&self.points(wire, 4.0))).collect();
            let class = if net.iter().any(|wire| wire.back) { "wire back" } else { "wire" };
            let _ = writeln!(out, "<path class=\"halo\" d=\"{halo}\"/><path class=\"{class}\" d=\"{path}\"/>");
            for wire in net {
                if let (WireEnd::Arrow(head), Some(last)) = (wire.end, wire.points.last()) {
                    heads.insert((*last, wire.back, head == ArrowHead::Left));
                }
            }
        }
        for ((column, row), back, leftwards) in heads {
            let class = if back { "back-head" } else { "head" };
            let (x, y) = self.end(column, row, leftwards);
            let tip = match leftwards {
                true => format!("M{x} {y}l{HEAD} -4v8z"),
                false => format!("M{x} {y}l-4 -{HEAD}h8z"),
            };
            let _ = writeln!(out, "<path class=\"{class}\" d=\"{tip}\"/>");
        }
    }

    /// Where an arrow head touches its box.
    fn end(&self, column: usize, row: usize, leftwards: bool) -> (f64, f64) {
        match leftwards {
            true => (column as f64 * COLUMN + 1.0, self.middle(row)),
            false => ((column as f64 + 0.5) * COLUMN, self.top(row + 1) - 1.0),
        }
    }

    /// The points of `wire`, which keeps `apart` from what it continues and from what continues it.
    fn points(&self, wire: &EdgeWire, apart: f64) -> Vec<(f64, f64)> {
        let last = wire.points.len().saturating_sub(1);
        let place = |(index, (column, row)): (usize, &(usize, usize))| {
            let middle = ((*column as f64 + 0.5) * COLUMN, self.middle(*row));
            let sideways = wire.points.get(1).is_some_and(|second| second.1 == *row);
            match (index, wire.from_box, wire.end) {
                (0, true, _) if sideways => ((*column as f64 + 1.0) * COLUMN, middle.1),
                (0, true, _) => (middle.0, self.top(*row) + height(GridRow::Border)),
                (0, false, _) => (middle.0, self.top(*row) + apart),
                (index, ..) if index < last => middle,
                (_, _, WireEnd::Arrow(ArrowHead::Left)) => (self.end(*column, *row, true).0 + HEAD / 2.0, middle.1),
                (_, _, WireEnd::Arrow(ArrowHead::Down)) => (middle.0, self.top(*row + 1) - HEAD / 2.0),
                (_, _, WireEnd::GoesOn) => (middle.0, self.top(*row + 1) - apart),
                (_, _, WireEnd::Joins) => (middle.0 - BEND, middle.1),
            }
        };
        wire.points.iter().enumerate().map(place).collect()
    }

    pub(super) fn labels(&self, out: &mut String, plan: &GraphPlan) {
        for label in &plan.labels {
            let widest = label.lines.iter().map(|line| width(line)).max().unwrap_or(0) as f64 * LABEL_CHAR;
            let count = label.lines.len() as f64;
            let (x, top) = match label.beside {
                true => (label.column as f64 * COLUMN, self.middle(label.row) - count * 7.5),
                false => ((label.column as f64 + 0.5) * COLUMN, self.top(label.row)),
            };
            let step = if label.beside { 15.0 } else { 16.0 };
            if !label.beside {
                let (left, high) = (x - widest / 2.0 - 4.0, count * step);
                let _ = writeln!(
                    out,
                    "<rect class=\"pill\" x=\"{left:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{high}\" rx=\"4\"/>",
                    widest + 8.0
                );
            }
            let class = if label.beside { "label beside" } else { "label" };
            for (index, line) in label.lines.iter().enumerate() {
                let baseline = top + index as f64 * step + 12.0;
                let _ = writeln!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{baseline:.1}\">{}</text>", escaped(line));
            }
        }
    }
}

fn rounded(points: &[(f64, f64)]) -> String {
    let mut kept: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for point in points {
        if kept.last() != Some(point) {
            kept.push(*point);
        }
    }
    let mut path = String::new();
    for (index, (x, y)) in kept.iter().enumerate() {
        let neighbours = index.checked_sub(1).and_then(|before| kept.get(before)).zip(kept.get(index + 1));
        match neighbours {
            Some((before, after)) => {
                let toward = |(tx, ty): (f64, f64)| {
                    let length = (tx - x).abs() + (ty - y).abs();
                    let share = (BEND.min(length / 2.0)) / length;
                    (x + (tx - x) * share, y + (ty - y) * share)
                };
                let ((ax, ay), (bx, by)) = (toward(*before), toward(*after));
                let _ = write!(path, "L{ax:.1} {ay:.1}Q{x:.1} {y:.1} {bx:.1} {by:.1}");
            }
            None => {
                let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" });
            }
        }
    }
    path
}
