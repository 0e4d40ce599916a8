//! Who does what in one group: a pure function from what waits and who is free to who gets what.
//!
//! Oldest first; a worker of exactly that role before one that does anything.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeWorker<'a> {
    /// What it is; `any` does anything.
    pub role: &'a str,
    pub room: usize,
}

/// What is given, by its number, and the place in `free` of the worker that gets it. What waits is in one queue for each
/// role, oldest first; of those that get nothing only the first is looked at.
pub fn assign<'a, N: Ord, Q: Iterator<Item = N>>(
    waiting: impl Iterator<Item = (&'a str, Q)>,
    free: &mut [FreeWorker<'_>],
) -> Vec<(N, usize)> {
    if free.is_empty() {
        return Vec::new();
    }
    let front = |(role, mut queue): (&'a str, Q)| Some((queue.next()?, (role, queue)));
    let mut fronts: BTreeMap<N, (&str, Q)> = waiting.filter_map(front).collect();
    let mut given = Vec::new();
    while let Some((oldest, (role, queue))) = fronts.pop_first() {
        // Room only becomes less here: where the first of a role finds none, those behind it find none either.
        let Some(index) = able(role, free) else { continue };
        free[index].room -= 1;
        given.push((oldest, index));
        fronts.extend(front((role, queue)));
    }
    given
}

/// The worker that gets work of this role.
fn able(wanted: &str, free: &[FreeWorker<'_>]) -> Option<usize> {
    let exact = |worker: &FreeWorker<'_>| worker.room > 0 && worker.role == wanted;
    let any = |worker: &FreeWorker<'_>| worker.room > 0 && (worker.role == "any" || wanted == "any");
    free.iter().position(exact).or_else(|| free.iter().position(any))
}
