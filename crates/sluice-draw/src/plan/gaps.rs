//! The lines between the layers of a plan: who shares a line, where lines leave and arrive, and their labels.
//!
//! Lines arrive at a box in *slots*, one for each net, so that two nets never touch at a target. Back edges that
//! cannot leave their layer sideways are nets here too, which lead out to the right.

use std::collections::{BTreeMap, BTreeSet};

use super::lanes::BackEdges;
use super::{ArrowHead, EdgeLabel, EdgeWire, GraphPlan, GridRow, LINE, LINES, PlacedBox, RowBases, WireEnd};
use crate::channel::{self, Channel, Net};
use crate::layers::{EdgeHop, LayeredGraph};
use crate::measure::{width, wrap};
use crate::model::Graph;

/// Columns from one arrow head to the next on the same box, without labels.
const SLOT: usize = 3;
/// Above this many pairs, a net is drawn as a star instead of pair by pair.
const MOST_PAIRS: usize = 64;

#[derive(Debug)]
struct GapSlot {
    nets: Vec<usize>,
    label: Vec<String>,
    columns: usize,
    column: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NetRole {
    /// Items above it are linked with items below.
    Flow(Vec<usize>),
    /// This back edge leaves this node.
    Exit(usize, usize),
    /// Back edges come in to this node.
    Entry(usize),
}

#[derive(Debug, Default)]
struct Gap {
    roles: Vec<NetRole>,
    nets: Vec<Net>,
    channel: Option<Channel>,
    label_rows: usize,
    arrives: bool,
}

/// All gaps of a plan; gap `n` lies above layer `n`.
#[derive(Debug)]
pub(super) struct Gaps {
    gaps: Vec<Gap>,
    slots: Vec<Vec<GapSlot>>,
}

impl Gaps {
    pub(super) fn new(graph: &Graph, layered: &LayeredGraph, ways: &BackEdges) -> Gaps {
        let mut gaps = Gaps {
            gaps: (0..=layered.layers.len()).map(|_| Gap::default()).collect(),
            slots: (0..layered.items.len()).map(|_| Vec::new()).collect(),
        };
        gaps.add_flow(graph, layered);
        for edge in &ways.low_exits {
            let from = graph.edges[*edge].from;
            gaps.gaps[layered.layer[from] + 1].roles.push(NetRole::Exit(*edge, from));
        }
        for node in &ways.high_entries {
            let gap = &mut gaps.gaps[layered.layer[*node]];
            gaps.slots[*node].push(GapSlot { nets: vec![gap.roles.len()], label: vec![], columns: SLOT, column: 0 });
            gap.roles.push(NetRole::Entry(*node));
            gap.arrives = true;
        }
        gaps
    }

    /// Joins the hops into nets: those of one source, and of all sources that lead to just the same targets.
    fn add_flow(&mut self, graph: &Graph, layered: &LayeredGraph) {
        let mut same: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        for hops in layered.hops.chunk_by(|a, b| a.upper == b.upper) {
            let upper = hops[0].upper;
            let gap = &mut self.gaps[layered.layer[upper] + 1];
            let fresh = gap.roles.len();
            let plain = hops.iter().all(|hop| hop.label.is_none());
            let net = match plain {
                true => *same.entry(hops.iter().map(|hop| hop.lower).collect()).or_insert(fresh),
                false => fresh,
            };
            match gap.roles.get_mut(net) {
                Some(NetRole::Flow(uppers)) => uppers.push(upper),
                Some(NetRole::Exit(..) | NetRole::Entry(_)) | None => gap.roles.push(NetRole::Flow(vec![upper])),
            }
            if net == fresh {
                gap.arrives = true;
                hops.iter().for_each(|hop| self.add_slot(graph, layered, net, hop));
            }
        }
    }

    fn add_slot(&mut self, graph: &Graph, layered: &LayeredGraph, net: usize, hop: &EdgeHop) {
        let label: Vec<String> = hop
            .label
            .map(|edge| graph.edges[edge].label().iter().flat_map(|line| wrap(line, LINE, LINES)).collect())
            .unwrap_or_default();
        let item = layered.items[hop.lower];
        let slots = &mut self.slots[hop.lower];
        let meets = label.is_empty() && (item.node.is_none() || item.rail);
        let shared = slots.iter_mut().find(|slot| meets && slot.label.is_empty());
        if let Some(slot) = shared {
            slot.nets.push(net);
            return;
        }
        let gap = &mut self.gaps[layered.layer[hop.lower]];
        gap.label_rows = gap.label_rows.max(label.len());
        let columns = label.iter().map(|line| width(line) + 2).max().unwrap_or(0).max(SLOT);
        slots.push(GapSlot { nets: vec![net], label, columns, column: 0 });
    }

    pub(super) fn slot_columns(&self, item: usize) -> usize {
        self.slots[item].iter().map(|slot| slot.columns).sum()
    }

    /// The columns that the arrow heads on an item need, at most: the outer halves of its labels may overhang.
    pub(super) fn port_columns(&self, item: usize) -> usize {
        match self.slots[item].as_slice() {
            [] | [_] => 0,
            slots => slots.iter().map(|slot| slot.columns).sum::<usize>(),
        }
    }

    pub(super) fn rows(&self, index: usize) -> Vec<GridRow> {
        let gap = &self.gaps[index];
        let outer = index == 0 || index + 1 == self.gaps.len();
        let mut rows = vec![GridRow::Channel; gap.channel.as_ref().map_or(0, |channel| channel.rows)];
        if rows.is_empty() && gap.label_rows > 0 {
            // A label needs a piece of line above it, to be seen as the line's.
            rows.push(GridRow::Channel);
        }
        rows.extend(std::iter::repeat_n(GridRow::Label, gap.label_rows));
        if gap.arrives {
            rows.push(GridRow::Arrow);
        } else if !outer {
            rows.push(GridRow::Blank);
        }
        rows
    }

    pub(super) fn is_clear(&self, index: usize) -> bool {
        self.gaps[index].channel.as_ref().is_none_or(|channel| channel.clear)
    }

    /// The row, counted from the gap's first, and the column in which a back edge leaves `node`.
    pub(super) fn exit(&self, gap: usize, edge: usize, node: usize) -> Option<(usize, usize)> {
        let gap = &self.gaps[gap];
        let net = gap.roles.iter().position(|role| *role == NetRole::Exit(edge, node))?;
        Some((gap.channel.as_ref()?.row[net]?, *gap.nets[net].sources.first()?))
    }

    /// The row, counted from the gap's first, and the column in which back edges come in to `node`.
    pub(super) fn entry(&self, gap: usize, node: usize) -> Option<(usize, usize)> {
        let gap = &self.gaps[gap];
        let net = gap.roles.iter().position(|role| *role == NetRole::Entry(node))?;
        Some((gap.channel.as_ref()?.row[net]?, *gap.nets[net].targets.first()?))
    }

    /// Gives each net its columns and its row.
    pub(super) fn place(&mut self, layered: &LayeredGraph, middle: &[usize], boxes: &[PlacedBox]) {
        for index in 0..self.gaps.len() {
            let items = layered.layers.get(index).map_or(&[][..], Vec::as_slice);
            let mut nets: Vec<Net> = self.gaps[index].roles.iter().map(|role| role.net(middle)).collect();
            for item in items {
                place_slots(&mut self.slots[*item], &nets, &self.gaps[index].roles, middle[*item]);
            }
            for item in items {
                self.straighten(layered, *item, &mut nets, boxes);
            }
            let gap = &mut self.gaps[index];
            for slot in items.iter().flat_map(|item| &self.slots[*item]) {
                slot.nets.iter().for_each(|net| nets[*net].targets.push(slot.column));
            }
            place_exits(&gap.roles, &mut nets, boxes);
            gap.channel = Some(channel::route(&nets));
            gap.nets = nets;
        }
    }

    /// Lets a line that only links two run straight, if both ends can be moved along their boxes to do so.
    fn straighten(&mut self, layered: &LayeredGraph, item: usize, nets: &mut [Net], boxes: &[PlacedBox]) {
        let alone = self.slots[item].len() == 1;
        let gap = &self.gaps[layered.layer[item]];
        for slot in &mut self.slots[item] {
            let [net] = slot.nets.as_slice() else { continue };
            let NetRole::Flow(uppers) = &gap.roles[*net] else { continue };
            let ([upper], [source]) = (uppers.as_slice(), nets[*net].sources.as_slice()) else { continue };
            let inside = |node: usize, column: usize| {
                let PlacedBox { x, w, .. } = boxes[node];
                x + 2 <= column && column + 3 <= x + w
            };
            let only = layered.hops.partition_point(|hop| hop.upper < *upper);
            let only = layered.hops.get(only + 1).is_none_or(|next| next.upper != *upper);
            if !only {
                continue;
            }
            match (layered.items[*upper].node, layered.items[item].node) {
                (_, Some(node)) if alone && slot.label.is_empty() && inside(node, *source) => slot.column = *source,
                (Some(node), _) if inside(node, slot.column) => nets[*net].sources = vec![slot.column],
                (Some(_) | None, Some(_) | None) => {}
            }
        }
    }

    pub(super) fn draw(&self, layered: &LayeredGraph, bases: &RowBases, plan: &mut GraphPlan) {
        let mut id = 0;
        for (index, gap) in self.gaps.iter().enumerate() {
            let items = layered.layers.get(index).map_or(&[][..], Vec::as_slice);
            let groups = self.groups(index, items);
            for item in items {
                self.draw_slots(layered, bases, *item, plan, &|net| id + groups[net]);
            }
            id += gap.roles.len();
        }
    }

    /// For each net of a gap, the first of those that it meets on a rail.
    fn groups(&self, index: usize, items: &[usize]) -> Vec<usize> {
        let mut group: Vec<usize> = (0..self.gaps[index].roles.len()).collect();
        let slots = || items.iter().flat_map(|item| &self.slots[*item]).filter(|slot| slot.nets.len() > 1);
        // Two rails seldom share a net; a second round joins what the first left apart.
        for _ in 0..2 {
            for slot in slots() {
                let first = slot.nets.iter().map(|net| group[*net]).min().unwrap_or(0);
                slot.nets.iter().for_each(|net| group[*net] = first);
            }
        }
        group
    }

    fn draw_slots(
        &self,
        layered: &LayeredGraph,
        bases: &RowBases,
        item: usize,
        plan: &mut GraphPlan,
        id: &dyn Fn(usize) -> usize,
    ) {
        let index = layered.layer[item];
        let (gap, base) = (&self.gaps[index], bases.gap[index]);
        let arrow_row = bases.layer[index].saturating_sub(1);
        let is_node = layered.items[item].node.is_some();
        for slot in &self.slots[item] {
            for net in &slot.nets {
                let NetRole::Flow(uppers) = &gap.roles[*net] else { continue };
                let row = gap.channel.as_ref().and_then(|channel| channel.row[*net]).map(|row| base + row);
                let pairs = uppers.len() * gap.nets[*net].targets.len();
                let first = gap.nets[*net].targets.first() == Some(&slot.column);
                let drawn = if pairs <= MOST_PAIRS || first { uppers.len() } else { 1 };
                for (upper, column) in uppers.iter().zip(&gap.nets[*net].sources).take(drawn) {
                    let node = layered.items[*upper].node;
                    let start = node.map_or(bases.layer[index - 1], |node| plan.boxes[node].y + plan.boxes[node].h - 1);
                    let mut points = vec![(*column, start)];
                    points.extend(row.iter().flat_map(|row| [(*column, *row), (slot.column, *row)]));
                    points.push((slot.column, arrow_row));
                    let end = if is_node { WireEnd::Arrow(ArrowHead::Down) } else { WireEnd::GoesOn };
                    plan.wires.push(EdgeWire { net: id(*net), points, back: false, from_box: node.is_some(), end });
                }
            }
            if !slot.label.is_empty() {
                let row = arrow_row - slot.label.len();
                plan.labels.push(EdgeLabel { lines: slot.label.clone(), column: slot.column, row, beside: false });
            }
        }
    }
}

impl NetRole {
    /// The net's sources; its targets are added slot by slot.
    fn net(&self, middle: &[usize]) -> Net {
        match self {
            NetRole::Flow(uppers) => {
                Net { sources: uppers.iter().map(|upper| middle[*upper]).collect(), ..Net::default() }
            }
            NetRole::Exit(..) | NetRole::Entry(_) => Net { outside: true, ..Net::default() },
        }
    }
}

/// Back edges leave a box at its bottom, from the right on, beside the line of the flow.
fn place_exits(roles: &[NetRole], nets: &mut [Net], boxes: &[PlacedBox]) {
    let mut used: BTreeSet<usize> = nets.iter().flat_map(|net| net.sources.iter().copied()).collect();
    for (role, net) in roles.iter().zip(nets) {
        let NetRole::Exit(_, node) = role else { continue };
        let PlacedBox { x, w, .. } = boxes[*node];
        let free = (x + 1..x + w.saturating_sub(2)).rev().step_by(2).find(|column| !used.contains(column));
        let column = free.unwrap_or(x + 1);
        used.insert(column);
        net.sources.push(column);
    }
}

/// Puts the slots side by side above the middle of their item, in the order of where their lines come from.
fn place_slots(slots: &mut [GapSlot], nets: &[Net], roles: &[NetRole], middle: usize) {
    let from = |slot: &GapSlot| -> (bool, usize) {
        let outside = slot.nets.iter().any(|net| matches!(roles[*net], NetRole::Entry(_)));
        let sources: Vec<usize> = slot.nets.iter().flat_map(|net| nets[*net].sources.iter().copied()).collect();
        (outside, sources.iter().sum::<usize>() / sources.len().max(1))
    };
    slots.sort_by_key(from);
    let total: usize = slots.iter().map(|slot| slot.columns).sum();
    let mut left = middle.saturating_sub(total / 2);
    let alone = slots.len() == 1;
    for slot in slots {
        slot.column = if alone { middle } else { left + slot.columns / 2 };
        left += slot.columns;
    }
}
