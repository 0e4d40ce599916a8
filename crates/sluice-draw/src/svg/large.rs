//! Graphs that are too large to be laid out with care: boxes on a grid, and lines from box to box.
//!
//! Boxes stand in the order of the flow, so that it can be read like a text: a layer of several boxes starts a new
//! row, and boxes that simply follow each other share one. Lines lie below the boxes and never round them, and what
//! a line says is its tooltip: with so many, nothing else would leave them legible. The time is linear.

use std::fmt::Write as _;

use super::{NodeMark, escaped, frame, open_node};
use crate::GraphTooLarge;
use crate::layers::{layers_of, within};
use crate::measure::clip;
use crate::model::{Graph, GraphEdge, NodeBox};

/// The most boxes: as many as the checker lets a definition have.
const MOST_NODES: usize = 10_000;
/// The most lines: more would be a grey area in a file of many megabytes.
const MOST_EDGES: usize = 100_000;
/// The boxes of a row, at least and at most; in between, a picture about as wide as it is high.
const ROW: (usize, usize) = (12, 60);
const BOX: (f64, f64) = (190.0, 60.0);
/// From a box to the next, and from a row to the next.
const CELL: (f64, f64) = (240.0, 112.0);
/// The columns of a line of text in a box, and how many lines say what it is.
const COLUMNS: usize = 26;
const DETAILS: usize = 2;
/// How far a long line is bent, so that it does not hide behind the boxes between.
const MOST_BENT: f64 = 46.0;

const STYLE: &str = "\
.thin { fill: none; stroke: #6e7781; stroke-width: 1.1; stroke-opacity: 0.55; marker-end: url(#h); }
.thin.back { stroke: #9a6700; stroke-dasharray: 5 4; marker-end: url(#b); }
@media (prefers-color-scheme: dark) { .thin { stroke: #8b949e; } .thin.back { stroke: #d29922; } }
";

/// The boxes and lines, their size, and the rules that they need beside the usual ones.
pub(super) fn drawn(graph: &Graph, marks: &[NodeMark]) -> Result<(String, (f64, f64), &'static str), GraphTooLarge> {
    within("nodes", graph.nodes.len(), MOST_NODES)?;
    within("edges", graph.edges.len(), MOST_EDGES)?;
    let grid = Grid::new(graph);
    let mut body = String::with_capacity(400 * graph.nodes.len() + 120 * graph.edges.len());
    body.push_str("<defs>");
    for (id, class) in [("h", "head"), ("b", "back-head")] {
        // Writing to a string cannot fail.
        let _ = write!(
            body,
            "<marker id=\"{id}\" markerUnits=\"userSpaceOnUse\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" \
             refY=\"4\" orient=\"auto\"><path class=\"{class}\" d=\"M0 0L8 4L0 8z\"/></marker>"
        );
    }
    body.push_str("</defs>\n");
    for edge in &graph.edges {
        line(&mut body, edge, grid.cells[edge.from], grid.cells[edge.to]);
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        boxed(&mut body, node, marks.get(index), graph.marks_start(index), center(grid.cells[index]));
    }
    Ok((body, grid.size(), STYLE))
}

/// Which cell each node stands in: its column and its row.
struct Grid {
    cells: Vec<(usize, usize)>,
}

impl Grid {
    fn new(graph: &Graph) -> Grid {
        let layer = layers_of(graph);
        let mut order: Vec<usize> = (0..graph.nodes.len()).collect();
        order.sort_by_key(|node| (layer[*node], *node));
        let in_a_row = graph.nodes.len().isqrt().clamp(ROW.0, ROW.1);
        let mut cells = vec![(0, 0); graph.nodes.len()];
        let (mut column, mut row, mut single) = (0, 0, true);
        for nodes in order.chunk_by(|a, b| layer[*a] == layer[*b]) {
            let follows = single && nodes.len() == 1;
            single = nodes.len() == 1;
            if column > 0 && !follows {
                (column, row) = (0, row + 1);
            }
            for node in nodes {
                if column == in_a_row {
                    (column, row) = (0, row + 1);
                }
                cells[*node] = (column, row);
                column += 1;
            }
        }
        Grid { cells }
    }

    fn size(&self) -> (f64, f64) {
        let columns = self.cells.iter().map(|cell| cell.0 + 1).max().unwrap_or(0);
        let rows = self.cells.iter().map(|cell| cell.1 + 1).max().unwrap_or(0);
        (columns as f64 * CELL.0, rows as f64 * CELL.1)
    }
}

fn center(cell: (usize, usize)) -> (f64, f64) {
    ((cell.0 as f64 + 0.5) * CELL.0, (cell.1 as f64 + 0.5) * CELL.1)
}

/// A line between two cells, bent to its right unless they are neighbours: so a way and its way back are apart.
fn line(out: &mut String, edge: &GraphEdge, from: (usize, usize), to: (usize, usize)) {
    let (start, end) = (center(from), center(to));
    let class = if edge.back { "thin back" } else { "thin" };
    let _ = write!(out, "<path class=\"{class}\" d=\"");
    if from == to {
        let (x, y) = (start.0 + BOX.0 / 2.0, start.1);
        let _ = write!(out, "M{x} {:.1}c30 -14 30 30 0 16", y - 8.0);
    } else {
        let (dx, dy) = (end.0 - start.0, end.1 - start.1);
        let length = dx.hypot(dy);
        let near = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)) == 1;
        let bent = if near { 8.0 } else { (length * 0.12).min(MOST_BENT) * 2.0 };
        let over =
            (f64::midpoint(start.0, end.0) - dy / length * bent, f64::midpoint(start.1, end.1) + dx / length * bent);
        let (out_at, in_at) = (border(start, over), border(end, over));
        let _ =
            write!(out, "M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}", out_at.0, out_at.1, over.0, over.1, in_at.0, in_at.1);
    }
    let says: Vec<&str> = edge.label().into_iter().chain(edge.hooks.iter().map(String::as_str)).collect();
    match says.is_empty() {
        true => out.push_str("\"/>\n"),
        false => {
            let _ = writeln!(out, "\"><title>{}</title></path>", escaped(&clip(&says.join(" · "), 1_000)));
        }
    }
}

/// Where the way from the middle of a box towards `to` leaves the box.
fn border(middle: (f64, f64), to: (f64, f64)) -> (f64, f64) {
    let (dx, dy) = (to.0 - middle.0, to.1 - middle.1);
    let share = (BOX.0 / 2.0 / dx.abs()).min(BOX.1 / 2.0 / dy.abs()).min(1.0);
    (middle.0 + dx * share, middle.1 + dy * share)
}

fn boxed(out: &mut String, node: &NodeBox, mark: Option<&NodeMark>, starts: bool, middle: (f64, f64)) {
    let corner = (middle.0 - BOX.0 / 2.0, middle.1 - BOX.1 / 2.0);
    let says: Vec<&str> =
        [&node.name].into_iter().chain(&node.details).chain(&node.notes).map(String::as_str).collect();
    let close = open_node(out, node, mark, &says.join("; "));
    frame(out, node, starts, corner, BOX);
    let shown = 1 + node.details.len().min(DETAILS);
    let lines = [&node.name].into_iter().chain(&node.details).take(shown);
    for (row, line) in lines.enumerate() {
        let class = if row == 0 { "name" } else { "detail" };
        let baseline = middle.1 + 4.3 + (row as f64 - (shown - 1) as f64 / 2.0) * 17.0;
        let text = escaped(&clip(line, COLUMNS));
        let _ = write!(out, "<text class=\"{class}\" x=\"{}\" y=\"{baseline:.1}\">{text}</text>", middle.0);
    }
    out.push_str(close);
}
