//! Who does what in one group: a pure function from what waits and who is free to who gets what.
//!
//! Oldest first; a worker of exactly that role before one that does anything; for work in a scratch folder only workers that
//! know of it.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeWorker<'a> {
    /// What it is; `any` does anything.
    pub role: &'a str,
    pub knows_scratch: bool,
    pub room: usize,
}

/// What all that waits in one queue asks of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerNeed<'a> {
    pub role: &'a str,
    pub in_scratch: bool,
}

/// What is given, by its number, and the place in `free` of the worker that gets it. What waits is in one queue for each
/// need, oldest first; of those that get nothing only the first is looked at.
pub fn assign<'a, N: Ord, Q: Iterator<Item = N>>(
    waiting: impl Iterator<Item = (WorkerNeed<'a>, Q)>,
    free: &mut [FreeWorker<'_>],
) -> Vec<(N, usize)> {
    if free.is_empty() {
        return Vec::new();
    }
    let front = |(need, mut queue): (WorkerNeed<'a>, Q)| Some((queue.next()?, (need, queue)));
    let mut fronts: BTreeMap<N, (WorkerNeed<'a>, Q)> = waiting.filter_map(front).collect();
    let mut given = Vec::new();
    while let Some((oldest, (need, queue))) = fronts.pop_first() {
        // Room only becomes less here: where the first of a queue finds none, those behind it find none either.
        let Some(index) = able(need, free) else { continue };
        free[index].room -= 1;
        given.push((oldest, index));
        fronts.extend(front((need, queue)));
    }
    given
}

/// The worker that gets such work.
fn able(need: WorkerNeed<'_>, free: &[FreeWorker<'_>]) -> Option<usize> {
    let can = |worker: &FreeWorker<'_>| worker.room > 0 && (worker.knows_scratch || !need.in_scratch);
    let exact = |worker: &FreeWorker<'_>| can(worker) && worker.role == need.role;
    let any = |worker: &FreeWorker<'_>| can(worker) && (worker.role == "any" || need.role == "any");
    free.iter().position(exact).or_else(|| free.iter().position(any))
}
