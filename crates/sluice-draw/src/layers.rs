//! The first half of a layered layout: which layer each node is in, and in which order a layer stands.
//!
//! An edge over several layers gets a *way point* in each layer between, so that it never runs through a box. All
//! long edges of a node share theirs, as the branches of a tree share the trunk. Back edges are not laid out here:
//! they run outside, beside the picture.

use std::collections::{BTreeMap, BTreeSet};

use crate::GraphTooLarge;
use crate::model::Graph;

/// The most boxes of a layout. It is made with care, and that takes time.
pub(crate) const MOST_NODES: usize = 1_000;
pub(crate) const MOST_EDGES: usize = 4_000;
/// The most boxes and way points together.
pub(crate) const MOST_ITEMS: usize = 12_000;
/// Nodes without any edge stand in rows of so many.
const ALONE_IN_A_ROW: usize = 4;
/// So many edges without a label make it worth to let them share one line into their target.
const RAIL_FROM: usize = 3;
/// How often the layers are ordered anew.
const ROUNDS: usize = 12;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerItem {
    /// The node, or nothing for a way point.
    pub(crate) node: Option<usize>,
    /// Whether lines of several nodes may meet here.
    pub(crate) rail: bool,
}

/// A piece of an edge, from one layer to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EdgeHop {
    pub(crate) upper: usize,
    pub(crate) lower: usize,
    /// The edge whose label stands on this piece.
    pub(crate) label: Option<usize>,
}

/// A graph in layers. The items of the nodes come first, under the numbers of the nodes.
#[derive(Debug)]
pub(crate) struct LayeredGraph {
    pub(crate) items: Vec<LayerItem>,
    pub(crate) layer: Vec<usize>,
    /// The items of each layer, from left to right.
    pub(crate) layers: Vec<Vec<usize>>,
    /// Each once, in order.
    pub(crate) hops: Vec<EdgeHop>,
}

impl LayeredGraph {
    /// Layers for `graph`. With `rails`, edges without a label may share the line into their common target.
    pub(crate) fn new(graph: &Graph, rails: bool) -> Result<LayeredGraph, GraphTooLarge> {
        within("nodes", graph.nodes.len(), MOST_NODES)?;
        within("edges", graph.edges.len(), MOST_EDGES)?;
        let layer = layers_of(graph);
        let targets = if rails { rail_targets(graph, &layer) } else { vec![false; graph.nodes.len()] };
        let items =
            targets.iter().enumerate().map(|(node, rail)| LayerItem { node: Some(node), rail: *rail }).collect();
        let mut layered = LayeredGraph { items, layer, layers: Vec::new(), hops: Vec::new() };
        layered.add_hops(graph, &targets)?;
        layered.fill_layers(graph);
        layered.order();
        Ok(layered)
    }

    fn add_hops(&mut self, graph: &Graph, rail_targets: &[bool]) -> Result<(), GraphTooLarge> {
        let mut points: BTreeMap<(bool, usize, usize), usize> = BTreeMap::new();
        let mut hops = BTreeSet::new();
        for (index, edge) in graph.edges.iter().enumerate().filter(|(_, edge)| !edge.back) {
            let labelled = !edge.label().is_empty();
            let rail = !labelled && rail_targets[edge.to];
            let key = if rail { edge.to } else { edge.from };
            let mut upper = edge.from;
            for layer in self.layer[edge.from] + 1..self.layer[edge.to] {
                let point = *points.entry((rail, key, layer)).or_insert_with(|| {
                    self.items.push(LayerItem { node: None, rail });
                    self.layer.push(layer);
                    self.items.len() - 1
                });
                within("lines between the layers", self.items.len(), MOST_ITEMS)?;
                hops.insert(EdgeHop { upper, lower: point, label: None });
                upper = point;
            }
            hops.insert(EdgeHop { upper, lower: edge.to, label: labelled.then_some(index) });
        }
        self.hops = hops.into_iter().collect();
        Ok(())
    }

    /// Puts the items into their layers: rails to the left, nodes with a way back to the right.
    fn fill_layers(&mut self, graph: &Graph) {
        let depth = self.layer.iter().max().map_or(0, |deepest| deepest + 1);
        self.layers = vec![Vec::new(); depth];
        for (item, layer) in self.layer.iter().enumerate() {
            self.layers[*layer].push(item);
        }
        let mut returns = vec![false; self.items.len()];
        for edge in graph.edges.iter().filter(|edge| edge.back) {
            returns[edge.from] = true;
        }
        for layer in &mut self.layers {
            layer.sort_by_key(|item| (!self.items[*item].is_rail_point(), returns[*item], *item));
        }
    }

    /// The hops' other ends: above and below each item.
    pub(crate) fn neighbours(&self) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let (mut above, mut below) = (vec![Vec::new(); self.items.len()], vec![Vec::new(); self.items.len()]);
        for hop in &self.hops {
            above[hop.lower].push(hop.upper);
            below[hop.upper].push(hop.lower);
        }
        (above, below)
    }

    /// Orders each layer by the middle of its neighbours, up and down, and keeps the order with the fewest crossings.
    fn order(&mut self) {
        let (above, below) = self.neighbours();
        let mut places = vec![0; self.items.len()];
        self.layers.iter().for_each(|layer| set_places(layer, &mut places));
        let mut best = (crossings(&self.layers, &places, &below), self.layers.clone());
        for round in 0..ROUNDS {
            if best.0 == 0 {
                break;
            }
            let (down, count) = (round % 2 == 0, self.layers.len());
            for step in 1..count {
                let index = if down { step } else { count - 1 - step };
                let near = if down { &above } else { &below };
                sort_layer(&mut self.layers[index], &self.items, &places, near);
                set_places(&self.layers[index], &mut places);
            }
            let crossed = crossings(&self.layers, &places, &below);
            if crossed < best.0 {
                best = (crossed, self.layers.clone());
            }
        }
        self.layers = best.1;
    }
}

impl LayerItem {
    pub(crate) fn is_rail_point(&self) -> bool {
        self.node.is_none() && self.rail
    }
}

pub(crate) fn within(what: &'static str, count: usize, limit: usize) -> Result<(), GraphTooLarge> {
    if count > limit { Err(GraphTooLarge { what, count, limit }) } else { Ok(()) }
}

/// The longest way to each node, with sources close to what they feed and lone nodes in rows at the end.
pub(crate) fn layers_of(graph: &Graph) -> Vec<usize> {
    let forward: Vec<(usize, usize)> =
        graph.edges.iter().filter(|edge| !edge.back).map(|edge| (edge.from, edge.to)).collect();
    let mut below = vec![Vec::new(); graph.nodes.len()];
    let mut waiting = vec![0usize; graph.nodes.len()];
    for (from, to) in &forward {
        below[*from].push(*to);
        waiting[*to] += 1;
    }
    let sources: Vec<usize> = (0..graph.nodes.len()).filter(|node| waiting[*node] == 0).collect();
    let mut layer = vec![0usize; graph.nodes.len()];
    let mut ready = sources.clone();
    while let Some(node) = ready.pop() {
        for next in &below[node] {
            layer[*next] = layer[*next].max(layer[node] + 1);
            waiting[*next] -= 1;
            if waiting[*next] == 0 {
                ready.push(*next);
            }
        }
    }
    for source in &sources {
        let first = below[*source].iter().map(|next| layer[*next]).min();
        layer[*source] = first.map_or(0, |first| first.saturating_sub(1));
    }
    let mut linked = vec![false; graph.nodes.len()];
    for edge in &graph.edges {
        linked[edge.from] = true;
        linked[edge.to] = true;
    }
    let end = (0..layer.len()).filter(|node| linked[*node]).map(|node| layer[node] + 1).max().unwrap_or(0);
    for (place, node) in (0..layer.len()).filter(|node| !linked[*node]).enumerate() {
        layer[node] = end + place / ALONE_IN_A_ROW;
    }
    layer
}

fn rail_targets(graph: &Graph, layer: &[usize]) -> Vec<bool> {
    let (mut count, mut long) = (vec![0; graph.nodes.len()], vec![false; graph.nodes.len()]);
    for edge in graph.edges.iter().filter(|edge| !edge.back && edge.label().is_empty()) {
        count[edge.to] += 1;
        long[edge.to] |= layer[edge.to] - layer[edge.from] > 1;
    }
    count.iter().zip(long).map(|(count, long)| *count >= RAIL_FROM && long).collect()
}

fn set_places(layer: &[usize], places: &mut [usize]) {
    for (place, item) in layer.iter().enumerate() {
        places[*item] = place;
    }
}

/// Sorts by the mean place of the neighbours; those without any keep their place.
fn sort_layer(layer: &mut [usize], items: &[LayerItem], places: &[usize], near: &[Vec<usize>]) {
    let mut keyed: Vec<(bool, f64, usize)> = layer
        .iter()
        .enumerate()
        .map(|(place, item)| {
            let sum: usize = near[*item].iter().map(|other| places[*other]).sum();
            let mean = match near[*item].len() {
                0 => place as f64,
                count => sum as f64 / count as f64,
            };
            (!items[*item].is_rail_point(), mean, *item)
        })
        .collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    for (slot, (_, _, item)) in layer.iter_mut().zip(keyed) {
        *slot = item;
    }
}

/// How many pairs of hops cross, counted with a binary indexed tree.
fn crossings(layers: &[Vec<usize>], places: &[usize], below: &[Vec<usize>]) -> usize {
    let mut crossed = 0;
    for pair in layers.windows(2) {
        let mut tree = vec![0usize; pair[1].len() + 1];
        let mut seen = 0;
        for upper in &pair[0] {
            // Hops of one node start at one point and never cross, so all are counted before any is added.
            for lower in &below[*upper] {
                let mut index = places[*lower] + 1;
                let mut left = 0;
                while index > 0 {
                    left += tree[index];
                    index &= index - 1;
                }
                crossed += seen - left;
            }
            for lower in &below[*upper] {
                let mut index = places[*lower] + 1;
                while index < tree.len() {
                    tree[index] += 1;
                    index += index & index.wrapping_neg();
                }
                seen += 1;
            }
        }
    }
    crossed
}
