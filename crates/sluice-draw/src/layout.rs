//! The second half of a layered layout: where in its layer each item stands.
//!
//! Positions are columns, so that a terminal and a picture can share them. Items never overlap: each pass solves its
//! layer exactly, as the positions closest to the wanted ones that keep every distance.

use crate::layers::LayeredGraph;

/// Free columns between two boxes.
const BETWEEN_BOXES: usize = 3;
/// Free columns beside a line that passes.
const BESIDE_LINES: usize = 2;
/// How often the wishes are balanced.
const ROUNDS: usize = 10;
/// A line bends rather than move an item further than this.
const SNAP: usize = 4;

/// The middle column of each item, where `widths` are the columns it needs.
pub(crate) fn columns(layered: &LayeredGraph, widths: &[usize]) -> Vec<usize> {
    let (above, below) = layered.neighbours();
    let mut middle = vec![0.0; layered.items.len()];
    for layer in &layered.layers {
        let gaps = distances(layered, widths, layer);
        let mut at = 0.0;
        for (item, gap) in layer.iter().zip(gaps) {
            at += gap as f64;
            middle[*item] = at;
        }
    }
    let both: Vec<Vec<usize>> = above.iter().zip(&below).map(|(up, down)| [up.as_slice(), down].concat()).collect();
    for round in 0..ROUNDS {
        for layer in &layered.layers {
            settle(layered, widths, layer, &above, &mut middle);
        }
        for layer in layered.layers.iter().rev() {
            settle(layered, widths, layer, if round + 2 < ROUNDS { &below } else { &both }, &mut middle);
        }
    }
    for layer in &layered.layers {
        settle(layered, widths, layer, &above, &mut middle);
    }
    let mut whole = whole_columns(layered, widths, &middle);
    snap(layered, widths, &above, &below, &mut whole);
    straighten_rails(layered, &mut whole);
    whole
}

/// Moves the rail at the left end of the layers as far left as it is anywhere; nothing stands in its way there.
fn straighten_rails(layered: &LayeredGraph, middle: &mut [usize]) {
    let outer: Vec<usize> = layered.layers.iter().filter_map(|layer| layer.first().copied()).collect();
    let rails = || outer.iter().copied().filter(|item| layered.items[*item].is_rail_point());
    let Some(left) = rails().map(|item| middle[item]).min() else { return };
    rails().for_each(|item| middle[item] = left);
}

/// For each item of a layer, how far its middle must stay from the one before it; for the first, from the edge.
fn distances(layered: &LayeredGraph, widths: &[usize], layer: &[usize]) -> Vec<usize> {
    let mut before: Option<usize> = None;
    let mut gaps = Vec::with_capacity(layer.len());
    for item in layer {
        gaps.push(before.map_or(0, |left| distance(layered, widths, left, *item)));
        before = Some(*item);
    }
    gaps
}

fn distance(layered: &LayeredGraph, widths: &[usize], left: usize, right: usize) -> usize {
    let boxes = layered.items[left].node.is_some() && layered.items[right].node.is_some();
    let free = if boxes { BETWEEN_BOXES } else { BESIDE_LINES };
    widths[left] - widths[left] / 2 + free + widths[right] / 2
}

/// Moves the items of a layer as close to their neighbours' mean as the distances allow.
///
/// This is isotonic regression: blocks of items that push each other move as one, to their common mean.
fn settle(layered: &LayeredGraph, widths: &[usize], layer: &[usize], near: &[Vec<usize>], middle: &mut [f64]) {
    let gaps = distances(layered, widths, layer);
    let mut blocks: Vec<Block> = Vec::with_capacity(layer.len());
    let mut offset = 0.0;
    for (item, gap) in layer.iter().zip(&gaps) {
        offset += *gap as f64;
        let others = &near[*item];
        // Those without a neighbour on this side only make room.
        let (wish, weight) = match others.as_slice() {
            [] => (middle[*item], 0.05),
            others => {
                let pulls: f64 = others.iter().map(|other| pull(layered, *item, *other)).sum();
                let sum: f64 = others.iter().map(|other| pull(layered, *item, *other) * middle[*other]).sum();
                // A line to a single other is worth most: it can be straight.
                let alone = if others.len() == 1 { 4.0 } else { 1.0 };
                (sum / pulls, if layered.items[*item].node.is_none() { 3.0 * alone } else { alone })
            }
        };
        let mut block = Block { sum: (wish - offset) * weight, weight, count: 1 };
        while let Some(last) = blocks.pop_if(|last| last.mean() > block.mean()) {
            block = Block {
                sum: block.sum + last.sum,
                weight: block.weight + last.weight,
                count: block.count + last.count,
            };
        }
        blocks.push(block);
    }
    let (mut offset, mut place) = (0.0, 0);
    for block in blocks {
        for _ in 0..block.count {
            offset += gaps[place] as f64;
            middle[layer[place]] = block.mean() + offset;
            place += 1;
        }
    }
}

/// How strongly `item` wants to stand below or above `other`. A rail is straight and pulls nobody aside.
fn pull(layered: &LayeredGraph, item: usize, other: usize) -> f64 {
    let (item, other) = (layered.items[item], layered.items[other]);
    match (item.is_rail_point(), other.is_rail_point()) {
        (true, true) => 4.0,
        (true, false) | (false, true) => 0.05,
        (false, false) if other.node.is_none() && item.node.is_some() => 0.4,
        (false, false) => 1.0,
    }
}

struct Block {
    sum: f64,
    weight: f64,
    count: usize,
}

impl Block {
    fn mean(&self) -> f64 {
        self.sum / self.weight
    }
}

/// Rounds, and moves everything so that the leftmost item begins at column 0. Rounding all down keeps the distances.
fn whole_columns(layered: &LayeredGraph, widths: &[usize], middle: &[f64]) -> Vec<usize> {
    let floors: Vec<i64> = middle.iter().map(|column| (column + 0.5).floor() as i64).collect();
    let left = |item: usize| floors[item] - (widths[item] / 2) as i64;
    let edge = (0..layered.items.len()).map(left).min().unwrap_or(0);
    floors.iter().map(|column| usize::try_from(column - edge).unwrap_or(0)).collect()
}

/// Takes out small bends: an item with one neighbour stands right below or above it if there is room.
fn snap(layered: &LayeredGraph, widths: &[usize], above: &[Vec<usize>], below: &[Vec<usize>], middle: &mut [usize]) {
    for layer in &layered.layers {
        snap_layer(layered, widths, layer, above, middle);
    }
    for layer in layered.layers.iter().rev() {
        snap_layer(layered, widths, layer, below, middle);
    }
}

fn snap_layer(layered: &LayeredGraph, widths: &[usize], layer: &[usize], near: &[Vec<usize>], middle: &mut [usize]) {
    for (place, item) in layer.iter().enumerate() {
        let [other] = near[*item].as_slice() else { continue };
        let wish = middle[*other];
        if wish.abs_diff(middle[*item]) > SNAP {
            continue;
        }
        let left = place.checked_sub(1).map(|place| layer[place]);
        let right = layer.get(place + 1).copied();
        let free_left = left.map_or(widths[*item] / 2, |left| middle[left] + distance(layered, widths, left, *item));
        let fits_left = wish >= free_left;
        let fits_right = right.is_none_or(|right| wish + distance(layered, widths, *item, right) <= middle[right]);
        if fits_left && fits_right {
            middle[*item] = wish;
        }
    }
}
