//! Anchors and their copies, within a budget.
//!
//! An alias becomes a copy of what it names, because the rest of the program knows only trees. Ten lines of aliases
//! to aliases can ask for more copies than there is memory, so every copy is paid for, in values and in bytes, and
//! so is every value that is kept for later copies. Sharing with `Rc` would save the memory and pass the same
//! explosion on to everyone who walks the tree.

use crate::source::MAX_FILE;
use crate::tree::{DEEPEST, MOST_NODES, Node, NodeValue};
use sluice_core::span::TextRun;
use std::collections::HashMap;

/// How many bytes of text all copies of a file may have together.
const MOST_COPIED: usize = 4 * MAX_FILE;

/// How many values of a file may have a name. Each is kept in case that it is asked for.
const MOST_ANCHORS: usize = 10_000;

#[derive(Default)]
pub(super) struct Anchors {
    kept: HashMap<usize, (Node, NodeCost)>,
    spent: NodeCost,
}

#[derive(Clone, Copy, Default)]
struct NodeCost {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

pub(super) enum AliasCopy {
    Node(Node),
    /// The value is not finished: the alias stands inside it.
    StillOpen,
    /// The budget is spent.
    TooMuch,
    /// The copy would reach deeper than a tree may.
    TooDeep,
}

pub(super) fn too_much() -> String {
    let mebibytes = MOST_COPIED / (1024 * 1024);
    format!("with its aliases written out the file holds more than {MOST_NODES} values or {mebibytes} MiB")
}

impl Anchors {
    /// Keeps `node` as what `anchor` names, or says why not.
    pub(super) fn keep(&mut self, anchor: usize, node: &Node) -> Result<(), String> {
        if self.kept.len() == MOST_ANCHORS {
            return Err(format!("more than {MOST_ANCHORS} values have a name with `&`"));
        }
        let size = measure(node);
        if !self.spent.pay(size) {
            return Err(too_much());
        }
        self.kept.insert(anchor, (node.clone(), size));
        Ok(())
    }

    /// A copy of what `anchor` names, to be put inside `depth` lists and tables.
    pub(super) fn copy(&mut self, anchor: usize, depth: usize) -> AliasCopy {
        match self.kept.get(&anchor) {
            None => AliasCopy::StillOpen,
            Some((_, size)) if depth + size.depth > DEEPEST => AliasCopy::TooDeep,
            Some((node, size)) if self.spent.pay(*size) => AliasCopy::Node(node.clone()),
            Some(_) => AliasCopy::TooMuch,
        }
    }
}

impl NodeCost {
    /// Adds what is spent; false once that is too much.
    fn pay(&mut self, size: NodeCost) -> bool {
        self.nodes += size.nodes;
        self.bytes += size.bytes;
        self.nodes <= MOST_NODES && self.bytes <= MOST_COPIED
    }
}

/// Recursion is safe: no tree is deeper than [`DEEPEST`].
fn measure(node: &Node) -> NodeCost {
    let (children, own): (Vec<NodeCost>, usize) = match &node.value {
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Integer(_) => {
            return NodeCost { nodes: 1, bytes: 0, depth: 0 };
        }
        NodeValue::Decimal(text) => return NodeCost { nodes: 1, bytes: text.len(), depth: 0 },
        NodeValue::Text(text) => {
            let bytes = text.value.len() + text.runs.len() * size_of::<TextRun>();
            return NodeCost { nodes: 1, bytes, depth: 0 };
        }
        NodeValue::List(items) => (items.iter().map(measure).collect(), 0),
        NodeValue::Table(entries) => (
            entries.iter().map(|entry| measure(&entry.value)).collect(),
            entries.iter().map(|entry| entry.key.value.len()).sum(),
        ),
    };
    NodeCost {
        nodes: 1 + children.iter().map(|size| size.nodes).sum::<usize>(),
        bytes: own + children.iter().map(|size| size.bytes).sum::<usize>(),
        depth: 1 + children.iter().map(|size| size.depth).max().unwrap_or(0),
    }
}
