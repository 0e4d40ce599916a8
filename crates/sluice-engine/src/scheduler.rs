//! Who does what: a pure function from what waits and who is free to who gets what.
//!
//! Oldest first; a worker of exactly that role before one that does anything; only workers of the right group, and for
//! work in a scratch folder only those that know of it.

use crate::actor::WorkerRequirement;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeWorker<'a> {
    /// What it is; `any` does anything.
    pub role: &'a str,
    pub group: &'a str,
    pub knows_scratch: bool,
    pub room: usize,
}

/// For each of those that are wanted, in their order, the place in `free` of the worker that gets the work.
pub fn assign<'a>(wanted: impl Iterator<Item = &'a WorkerRequirement>, free: &[FreeWorker<'_>]) -> Vec<Option<usize>> {
    let mut room: Vec<usize> = free.iter().map(|worker| worker.room).collect();
    let mut given = Vec::new();
    for wanted in wanted {
        let able = |exact: bool| {
            (0..free.len()).find(|index| {
                let worker = &free[*index];
                let fits = match exact {
                    true => worker.role == wanted.role,
                    false => worker.role == "any" || wanted.role == "any",
                };
                let understands = worker.knows_scratch || !wanted.in_scratch;
                room[*index] > 0 && worker.group == wanted.group && fits && understands
            })
        };
        let found = able(true).or_else(|| able(false));
        if let Some(index) = found {
            room[index] -= 1;
        }
        given.push(found);
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(waiting: &[(&str, &str)], free: &[(&str, &str, usize)]) -> Vec<Option<usize>> {
        let wanted: Vec<WorkerRequirement> = waiting
            .iter()
            .map(|(role, group)| WorkerRequirement { role: (*role).into(), group: (*group).into(), in_scratch: false })
            .collect();
        let free: Vec<FreeWorker<'_>> = free
            .iter()
            .map(|(role, group, room)| FreeWorker { role, group, knows_scratch: false, room: *room })
            .collect();
        assign(wanted.iter(), &free)
    }

    #[test]
    fn oldest_first_and_exact_before_any() {
        let free = [("any", "a", 1), ("planner", "a", 1)];
        assert_eq!(assigned(&[("planner", "a"), ("planner", "a"), ("planner", "a")], &free), [Some(1), Some(0), None]);
        assert_eq!(assigned(&[("any", "a")], &free), [Some(0)]);
        assert_eq!(assigned(&[("reviewer", "a"), ("planner", "a")], &free), [Some(0), Some(1)]);
    }

    #[test]
    fn work_of_one_group_is_never_given_to_anothers_worker() {
        assert_eq!(assigned(&[("any", "a")], &[("any", "b", 9)]), [None]);
    }

    #[test]
    fn work_in_a_scratch_folder_waits_for_a_worker_that_knows_of_it() {
        let wanted =
            [true, false].map(|in_scratch| WorkerRequirement { role: "any".into(), group: "a".into(), in_scratch });
        let free = [false, true].map(|knows_scratch| FreeWorker { role: "any", group: "a", knows_scratch, room: 1 });
        assert_eq!(assign(wanted.iter(), &free), [Some(1), Some(0)]);
        assert_eq!(assign(wanted.iter(), &free[..1]), [None, Some(0)]);
    }

    #[test]
    fn a_worker_takes_no_more_than_it_has_room_for() {
        assert_eq!(assigned(&[("x", "a"), ("x", "a"), ("x", "a")], &[("x", "a", 2)]), [Some(0), Some(0), None]);
    }
}
