//! A recipe as boxes and lines of characters.
//!
//! It gives nothing rather than a picture that is too wide, or in which two lines cannot be told apart.

use super::canvas::Canvas;
use super::{TextStyle, Tone};
use crate::measure::width;
use crate::model::{Graph, NodeBox};
use crate::plan::{ArrowHead, EdgeWire, GraphPlan, PlacedBox, WireEnd};

/// More boxes than this are easier to read as an outline.
const MOST_BOXES: usize = 60;

/// The picture of `graph`, if it is small enough and clear.
pub(super) fn picture(graph: &Graph, style: &TextStyle) -> Option<String> {
    if graph.nodes.len() > MOST_BOXES || graph.edges.len() > 4 * MOST_BOXES {
        return None;
    }
    let plan = GraphPlan::new(graph, false).ok()?;
    if !plan.clear || plan.columns > style.width {
        return None;
    }
    let mut canvas = Canvas::new(plan.columns, plan.rows.len());
    for wire in &plan.wires {
        // The cell in the frame of a box is drawn with the box.
        canvas.line(&inner(wire), wire.net, wire.back, (!leaves_sideways(wire), wire.end == WireEnd::GoesOn));
    }
    if !canvas.is_clear() {
        return None;
    }
    for (node, (placed, lines)) in graph.nodes.iter().zip(plan.boxes.iter().zip(&plan.contents)) {
        frame(&mut canvas, style, node, placed);
        for (row, line) in lines.iter().enumerate() {
            let tone = if row == 0 { Tone::Strong } else { Tone::Dim };
            let line = style.words(line);
            let left = placed.x + (placed.w.saturating_sub(width(&line))) / 2;
            canvas.write(left, placed.y + 1 + row, &line, tone);
        }
    }
    for wire in &plan.wires {
        ends(&mut canvas, style, wire);
    }
    for label in &plan.labels {
        let lines: Vec<String> = label.lines.iter().map(|line| style.words(line)).collect();
        if label.beside {
            canvas.write(label.column, label.row, &lines.join(" "), Tone::Plain);
            continue;
        }
        for (row, line) in lines.iter().enumerate() {
            canvas.write(label.column.saturating_sub(width(line) / 2), label.row + row, line, Tone::Plain);
        }
    }
    Some(canvas.render(style))
}

/// The points of `wire` without its start in the frame of a box.
fn inner(wire: &EdgeWire) -> Vec<(usize, usize)> {
    let mut points = wire.points.clone();
    if let (Some(first), true) = (points.first_mut(), wire.from_box) {
        *first = if leaves_sideways(wire) { (first.0 + 1, first.1) } else { (first.0, first.1 + 1) };
    }
    points.dedup();
    points
}

fn leaves_sideways(wire: &EdgeWire) -> bool {
    matches!(wire.points.as_slice(), [first, second, ..] if wire.back && first.1 == second.1)
}

fn frame(canvas: &mut Canvas, style: &TextStyle, node: &NodeBox, placed: &PlacedBox) {
    let [corners, along, across] = match (node.terminal, style.ascii) {
        (false, false) => ["╭╮╰╯", "─", "│"],
        (true, false) => ["╔╗╚╝", "═", "║"],
        (false, true) => ["++++", "-", "|"],
        (true, true) => ["####", "=", "#"],
    };
    let corner = |index: usize| corners.chars().nth(index).unwrap_or('+');
    let PlacedBox { x, y, w, h } = *placed;
    let middle = along.repeat(w.saturating_sub(2));
    canvas.write(x, y, &format!("{}{middle}{}", corner(0), corner(1)), Tone::Plain);
    canvas.write(x, y + h - 1, &format!("{}{middle}{}", corner(2), corner(3)), Tone::Plain);
    for row in y + 1..y + h - 1 {
        canvas.write(x, row, across, Tone::Plain);
        canvas.write(x + w - 1, row, across, Tone::Plain);
    }
}

fn ends(canvas: &mut Canvas, style: &TextStyle, wire: &EdgeWire) {
    if let (Some(first), true) = (wire.points.first(), wire.from_box) {
        let joint = if leaves_sideways(wire) { style.sign("├", "+") } else { style.sign("┬", "+") };
        canvas.write(first.0, first.1, joint, Tone::Plain);
    }
    let (WireEnd::Arrow(head), Some(last)) = (wire.end, wire.points.last()) else { return };
    let sign = match head {
        ArrowHead::Down => style.sign("▼", "v"),
        ArrowHead::Left => style.sign("◄", "<"),
    };
    canvas.write(last.0, last.1, sign, Tone::Plain);
}
