//! The finished layout: boxes, lines, arrow heads and labels on a grid of columns and rows.
//!
//! Both pictures, on a terminal and as SVG, are drawn from it, so both are free of overlaps for the same reason. It
//! contains no characters of the drawing and no pixels.

mod gaps;
mod lanes;

use crate::GraphTooLarge;
use crate::layers::LayeredGraph;
use crate::layout;
use crate::measure::{width, wrap};
use crate::model::Graph;

use gaps::Gaps;

/// The columns of a label's or a box's line, at most.
const LINE: usize = 30;
/// The lines that one label or detail is given, at most.
const LINES: usize = 3;

/// The columns that a start's mark needs in its box, with as many on the other side.
const START_MARK: usize = 4;

/// What a row of the grid is for. It decides how high the row is in a picture with pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GridRow {
    Channel,
    Label,
    Arrow,
    Border,
    Content,
    Blank,
}

/// A box, in columns and rows, its frame included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacedBox {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) w: usize,
    pub(crate) h: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrowHead {
    Down,
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireEnd {
    Arrow(ArrowHead),
    /// Another continues it, downwards.
    GoesOn,
    /// In another line of its net, from the right.
    Joins,
}

#[derive(Clone, Debug)]
pub(crate) struct EdgeWire {
    /// Lines with the same number may touch.
    pub(crate) net: usize,
    /// Columns and rows, from the source on.
    pub(crate) points: Vec<(usize, usize)>,
    pub(crate) back: bool,
    /// Whether it starts at a box; otherwise it continues another.
    pub(crate) from_box: bool,
    pub(crate) end: WireEnd,
}

#[derive(Clone, Debug)]
pub(crate) struct EdgeLabel {
    pub(crate) lines: Vec<String>,
    /// The middle column, or the first one if `beside`.
    pub(crate) column: usize,
    /// The row of the first line; of the only one if `beside`.
    pub(crate) row: usize,
    /// It stands beside its line, not on it.
    pub(crate) beside: bool,
}

#[derive(Debug)]
pub(crate) struct GraphPlan {
    /// By the number of the node.
    pub(crate) boxes: Vec<PlacedBox>,
    /// The lines of text in each box.
    pub(crate) contents: Vec<Vec<String>>,
    pub(crate) wires: Vec<EdgeWire>,
    pub(crate) labels: Vec<EdgeLabel>,
    pub(crate) rows: Vec<GridRow>,
    pub(crate) columns: usize,
    /// Whether every line can be followed without a guess.
    pub(crate) clear: bool,
}

impl GraphPlan {
    /// Lays out `graph`; `rails` as in [`LayeredGraph::new`].
    pub(crate) fn new(graph: &Graph, rails: bool) -> Result<GraphPlan, GraphTooLarge> {
        let layered = LayeredGraph::new(graph, rails)?;
        let mut contents: Vec<Vec<String>> = graph
            .nodes
            .iter()
            .map(|node| {
                let details = node.details.iter().flat_map(|detail| wrap(detail, LINE, LINES));
                wrap(&node.name, LINE, 1).into_iter().chain(details).collect()
            })
            .collect();
        let ways = lanes::BackEdges::new(graph, &layered);
        for (lines, least) in contents.iter_mut().zip(&ways.least_lines) {
            while lines.len() < *least {
                lines.push(String::new());
            }
        }
        let mut gaps = Gaps::new(graph, &layered, &ways);
        let (box_widths, item_widths) = widths(graph, &layered, &contents, &gaps);
        let middle = layout::columns(&layered, &item_widths);
        let mut plan = GraphPlan {
            boxes: Vec::new(),
            contents,
            wires: Vec::new(),
            labels: Vec::new(),
            rows: Vec::new(),
            columns: middle.iter().zip(&item_widths).map(|(at, w)| at + w - w / 2).max().unwrap_or(0),
            clear: true,
        };
        let at = |node: usize| PlacedBox {
            x: middle[node].saturating_sub(box_widths[node] / 2),
            y: 0,
            w: box_widths[node],
            h: plan.contents[node].len() + 2,
        };
        let boxes: Vec<PlacedBox> = (0..graph.nodes.len()).map(at).collect();
        plan.boxes = boxes;
        gaps.place(&layered, &middle, &plan.boxes);
        let bases = plan.stack(&layered, &gaps);
        gaps.draw(&layered, &bases, &mut plan);
        ways.draw(graph, &gaps, &bases, &mut plan);
        Ok(plan)
    }

    /// Stacks layers and gaps, and notes where each begins.
    fn stack(&mut self, layered: &LayeredGraph, gaps: &Gaps) -> RowBases {
        let mut bases = RowBases { gap: Vec::new(), layer: Vec::new() };
        for index in 0..=layered.layers.len() {
            bases.gap.push(self.rows.len());
            self.rows.extend(gaps.rows(index));
            let Some(layer) = layered.layers.get(index) else { break };
            bases.layer.push(self.rows.len());
            let nodes = || layer.iter().filter_map(|item| layered.items[*item].node);
            let height = nodes().map(|node| self.boxes[node].h).max().unwrap_or(1);
            for node in nodes() {
                self.boxes[node].y = self.rows.len();
            }
            self.rows.push(GridRow::Border);
            self.rows.extend(std::iter::repeat_n(GridRow::Content, height.saturating_sub(2)));
            self.rows.push(GridRow::Border);
            self.clear &= gaps.is_clear(index);
        }
        bases
    }
}

/// The first row of each gap and each layer. Gap `n` lies above layer `n`.
pub(crate) struct RowBases {
    gap: Vec<usize>,
    layer: Vec<usize>,
}

/// The columns of each box, and of each item with the labels above it.
fn widths(graph: &Graph, layered: &LayeredGraph, contents: &[Vec<String>], gaps: &Gaps) -> (Vec<usize>, Vec<usize>) {
    let boxes: Vec<usize> = contents
        .iter()
        .enumerate()
        .map(|(node, lines)| {
            let mark = if graph.marks_start(node) { START_MARK } else { 0 };
            let text = lines.iter().map(|line| width(line)).max().unwrap_or(0) + mark;
            let ports = gaps.port_columns(node) + 2;
            // An odd width has a middle column, in which lines can leave and arrive.
            (text + 4).max(ports).max(9) | 1
        })
        .collect();
    let items = (0..layered.items.len())
        .map(|item| match layered.items[item].node {
            Some(node) => boxes[node].max(gaps.slot_columns(item)),
            None => 1,
        })
        .collect();
    (boxes, items)
}
