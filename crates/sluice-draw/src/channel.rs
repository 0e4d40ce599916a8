//! The space between two layers: which line runs in which row, so that each can be followed by eye.
//!
//! Two lines never share a piece of a row, and a line that comes from above never runs into one that goes on below.
//! They may cross. It knows columns and rows only, neither nodes nor characters.

use std::collections::{BTreeMap, BTreeSet};

/// Above this many lines between two layers, no effort is made to cross fewer.
const MOST_COMPARED: usize = 300;

/// A line that branches: from all its sources to all its targets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Net {
    /// The columns it comes from, above.
    pub(crate) sources: Vec<usize>,
    /// The columns it goes to, below.
    pub(crate) targets: Vec<usize>,
    /// Whether it also leads out of the picture, to the right.
    pub(crate) outside: bool,
}

impl Net {
    /// The columns it covers sideways; nothing when it runs straight down.
    fn span(&self) -> Option<(usize, usize)> {
        let ends = || self.sources.iter().chain(&self.targets).copied();
        let (left, right) = (ends().min()?, ends().max()?);
        let right = if self.outside { usize::MAX } else { right };
        (left != right).then_some((left, right))
    }
}

#[derive(Debug)]
pub(crate) struct Channel {
    /// The row of each net; nothing for one that runs straight down.
    pub(crate) row: Vec<Option<usize>>,
    pub(crate) rows: usize,
    /// Whether no line runs into another.
    pub(crate) clear: bool,
}

/// Gives each net its row.
pub(crate) fn route(nets: &[Net]) -> Channel {
    let spans: Vec<Option<(usize, usize)>> = nets.iter().map(Net::span).collect();
    let after = must_follow(nets, &spans);
    let wishes = wishes(nets, &spans);
    let (order, clear) = order(&spans, &after, &wishes);
    let mut row: Vec<Option<usize>> = vec![None; nets.len()];
    let mut ends: Vec<(usize, usize, usize)> = Vec::new();
    let mut rows = 0;
    for net in order {
        let Some((left, right)) = spans[net] else { continue };
        let overlapped = ends.iter().filter(|(l, r, _)| *l <= right.saturating_add(1) && left <= r.saturating_add(1));
        let above = overlapped.map(|(_, _, row)| row + 1).max().unwrap_or(0);
        let forced = after[net].iter().filter_map(|before| row[*before]).map(|row| row + 1).max().unwrap_or(0);
        let chosen = above.max(forced);
        row[net] = Some(chosen);
        rows = rows.max(chosen + 1);
        ends.push((left, right, chosen));
    }
    Channel { row, rows, clear }
}

/// For each net, those that must run above it: they come down in a column where it goes on below.
fn must_follow(nets: &[Net], spans: &[Option<(usize, usize)>]) -> Vec<BTreeSet<usize>> {
    let mut coming: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, net) in nets.iter().enumerate().filter(|(index, _)| spans[*index].is_some()) {
        for column in &net.sources {
            coming.entry(*column).or_default().push(index);
        }
    }
    let mut after = vec![BTreeSet::new(); nets.len()];
    for (index, net) in nets.iter().enumerate().filter(|(index, _)| spans[*index].is_some()) {
        for column in &net.targets {
            let others = coming.get(column).into_iter().flatten().filter(|other| **other != index);
            after[index].extend(others.copied());
        }
    }
    after
}

/// For each net, those that would better run above it, because fewer lines then cross.
fn wishes(nets: &[Net], spans: &[Option<(usize, usize)>]) -> Vec<Vec<usize>> {
    let mut wishes = vec![Vec::new(); nets.len()];
    if nets.len() > MOST_COMPARED {
        return wishes;
    }
    let within = |columns: &[usize], (left, right): (usize, usize)| {
        columns.iter().filter(|column| left <= **column && **column <= right).count()
    };
    for (a, net) in nets.iter().enumerate() {
        for (b, other) in nets.iter().enumerate().skip(a + 1) {
            let (Some(span), Some(other_span)) = (spans[a], spans[b]) else { continue };
            let a_above = within(&other.sources, span) + within(&net.targets, other_span);
            let b_above = within(&net.sources, other_span) + within(&other.targets, span);
            match a_above.cmp(&b_above) {
                std::cmp::Ordering::Less => wishes[b].push(a),
                std::cmp::Ordering::Greater => wishes[a].push(b),
                std::cmp::Ordering::Equal => {}
            }
        }
    }
    wishes
}

/// An order from the top that keeps what must be kept, and whether it could.
fn order(spans: &[Option<(usize, usize)>], after: &[BTreeSet<usize>], wishes: &[Vec<usize>]) -> (Vec<usize>, bool) {
    let mut waiting: Vec<usize> = after.iter().map(BTreeSet::len).collect();
    let mut wanting: Vec<usize> = wishes.iter().map(Vec::len).collect();
    let (mut frees, mut pleases) = (vec![Vec::new(); spans.len()], vec![Vec::new(); spans.len()]);
    for net in 0..spans.len() {
        after[net].iter().for_each(|before| frees[*before].push(net));
        wishes[net].iter().for_each(|before| pleases[*before].push(net));
    }
    let key = |net: usize, waiting: &[usize], wanting: &[usize]| (waiting[net], wanting[net], spans[net], net);
    let mut queue: BTreeSet<_> = (0..spans.len()).map(|net| key(net, &waiting, &wanting)).collect();
    let (mut order, mut clear) = (Vec::with_capacity(spans.len()), true);
    while let Some(first) = queue.pop_first() {
        let net = first.3;
        // With a cycle of musts, two lines will share a piece of a column.
        clear &= first.0 == 0;
        order.push(net);
        for (others, is_must) in [(&frees[net], true), (&pleases[net], false)] {
            for other in others {
                let queued = queue.remove(&key(*other, &waiting, &wanting));
                let counts = if is_must { &mut waiting } else { &mut wanting };
                counts[*other] = counts[*other].saturating_sub(1);
                if queued {
                    queue.insert(key(*other, &waiting, &wanting));
                }
            }
        }
    }
    (order, clear)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(sources: &[usize], targets: &[usize]) -> Net {
        Net { sources: sources.into(), targets: targets.into(), outside: false }
    }

    #[test]
    fn straight_lines_need_no_row_and_apart_lines_share_one() {
        let channel = route(&[net(&[3], &[3]), net(&[5], &[9]), net(&[20, 30], &[25])]);
        assert_eq!((channel.row, channel.rows, channel.clear), (vec![None, Some(0), Some(0)], 1, true));
    }

    #[test]
    fn a_line_from_above_ends_before_another_goes_on_below_it() {
        let channel = route(&[net(&[0], &[5]), net(&[5], &[9])]);
        assert_eq!((channel.row, channel.clear), (vec![Some(1), Some(0)], true));
        assert!(!route(&[net(&[0], &[5]), net(&[5], &[0])]).clear);
    }
}
