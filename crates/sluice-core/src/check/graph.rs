//! Plain graph questions that both checks ask: what can be reached, which nodes lie on a cycle, and the cycle itself.
//!
//! Nodes are indices. Nothing recurses, so that no file can exhaust the stack.

use std::collections::VecDeque;

/// For each node, the nodes it leads to.
pub(super) type Edges = Vec<Vec<usize>>;

/// Which nodes can be reached from `starts`, these included.
pub(super) fn reachable(edges: &Edges, starts: impl IntoIterator<Item = usize>) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    let mut open: Vec<usize> = starts.into_iter().collect();
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut seen[node], true) {
            open.extend(edges[node].iter().copied().filter(|next| !seen[*next]));
        }
    }
    seen
}

pub(super) fn reversed(edges: &Edges) -> Edges {
    let mut back = vec![Vec::new(); edges.len()];
    for (from, targets) in edges.iter().enumerate() {
        for to in targets {
            back[*to].push(from);
        }
    }
    back
}

/// For each node the number of its strongly connected component (Tarjan's algorithm, with its own stack).
///
/// Components are numbered in reverse topological order: an edge never leads to a higher number.
pub(super) fn components(edges: &Edges) -> Vec<usize> {
    const NEW: usize = usize::MAX;
    let count = edges.len();
    let (mut index, mut low, mut component) = (vec![NEW; count], vec![0; count], vec![NEW; count]);
    let (mut stack, mut next_index, mut next_component) = (Vec::new(), 0, 0);
    let mut work: Vec<(usize, usize)> = Vec::new();
    for root in 0..count {
        if index[root] != NEW {
            continue;
        }
        work.push((root, 0));
        while let Some((node, edge)) = work.pop() {
            if edge == 0 {
                index[node] = next_index;
                low[node] = next_index;
                next_index += 1;
                stack.push(node);
            }
            if let Some(&next) = edges[node].get(edge) {
                work.push((node, edge + 1));
                if index[next] == NEW {
                    work.push((next, 0));
                } else if component[next] == NEW {
                    low[node] = low[node].min(index[next]);
                }
                continue;
            }
            if low[node] == index[node] {
                while let Some(member) = stack.pop() {
                    component[member] = next_component;
                    if member == node {
                        break;
                    }
                }
                next_component += 1;
            }
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[node]);
            }
        }
    }
    component
}

/// The shortest path from `from` to `to` through nodes that `allowed` admits; both ends included.
pub(super) fn shortest(edges: &Edges, from: usize, to: usize, allowed: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
    search(edges, [from], to, allowed)
}

/// The shortest way from `node` back to itself through nodes that `allowed` admits; without `node` at its beginning.
pub(super) fn round(edges: &Edges, node: usize, allowed: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
    search(edges, edges[node].iter().copied().filter(|next| allowed(*next)), node, &allowed)
}

/// The shortest path from one of `starts` to `to`.
fn search(
    edges: &Edges,
    starts: impl IntoIterator<Item = usize>,
    to: usize,
    allowed: impl Fn(usize) -> bool,
) -> Option<Vec<usize>> {
    let mut parent = vec![usize::MAX; edges.len()];
    let mut open: VecDeque<usize> = starts.into_iter().collect();
    open.iter().for_each(|start| parent[*start] = *start);
    while let Some(node) = open.pop_front() {
        if node == to {
            let mut path = vec![to];
            while parent[path[path.len() - 1]] != path[path.len() - 1] {
                path.push(parent[path[path.len() - 1]]);
            }
            path.reverse();
            return Some(path);
        }
        for &next in &edges[node] {
            if parent[next] == usize::MAX && allowed(next) {
                parent[next] = node;
                open.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_numbered_against_the_edges() {
        let edges: Edges = vec![vec![1], vec![2], vec![1, 3], vec![]];
        let found = components(&edges);
        assert_eq!(found[1], found[2]);
        assert!(found[3] < found[1] && found[1] < found[0]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let edges: Edges = (0..200_000).map(|node| if node == 199_999 { vec![0] } else { vec![node + 1] }).collect();
        assert!(components(&edges).iter().all(|component| *component == 0));
        assert_eq!(shortest(&edges, 0, 3, |_| true), Some(vec![0, 1, 2, 3]));
        assert!(reachable(&edges, [5]).iter().all(|seen| *seen));
        assert_eq!(round(&edges, 7, |_| true).map(|way| (way.len(), way[0], way[199_999])), Some((200_000, 8, 7)));
        assert_eq!(round(&vec![vec![0]], 0, |_| true), Some(vec![0]));
        assert_eq!(round(&vec![vec![1], vec![]], 0, |_| true), None);
    }
}
