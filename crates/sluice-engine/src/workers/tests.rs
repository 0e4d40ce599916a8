//! Who gets what: scripts, and the queues beside a walk over everything that waits.

use sluice_store::Effect;

use super::*;
use crate::actor::WorkerRequirement;

fn job(stream: usize, effect: usize, role: &str, group: &str) -> QueuedEffect {
    let effect = Effect { id: effect.to_string(), kind: "perform".into(), data: Vec::new() };
    let wanted = WorkerRequirement { role: role.into(), group: group.into(), since: 0, in_scratch: false };
    QueuedEffect { stream: StreamId::new(stream.to_string()), effect, wanted }
}

fn join(queue: &mut WorkerQueue, index: usize, (role, group, capacity): (&str, &str, usize)) {
    let id = WorkerId(format!("{index:03}"));
    queue.join(
        WorkerOffer { id, role: role.into(), group: group.into(), capacity, lease: None, knows_scratch: false },
        0,
    );
}

/// What is handed out now: the stream, and the worker. The worker holds it under the stream's number.
fn hand_out(queue: &mut WorkerQueue) -> Vec<(usize, usize)> {
    let handed = queue.hand_out();
    let numbers = |(worker, job): &(WorkerId, QueuedEffect)| {
        (job.stream.as_str().parse().expect("a number"), worker.0.parse().expect("a number"))
    };
    handed.iter().for_each(|(worker, job)| queue.hold(worker, held(job)));
    handed.iter().map(numbers).collect()
}

fn held(job: &QueuedEffect) -> HeldEffect {
    (Dispatch(job.stream.as_str().parse().expect("a number")), job.stream.clone(), job.effect.id.clone())
}

/// For each of those that are wanted, in their order, which of the workers gets it.
fn assigned(waiting: &[(&str, &str)], free: &[(&str, &str, usize)]) -> Vec<Option<usize>> {
    let mut queue = WorkerQueue::default();
    free.iter().enumerate().for_each(|(index, offer)| join(&mut queue, index, *offer));
    waiting.iter().enumerate().for_each(|(stream, (role, group))| queue.wait(job(stream, 0, role, group)));
    let handed: BTreeMap<usize, usize> = hand_out(&mut queue).into_iter().collect();
    (0..waiting.len()).map(|stream| handed.get(&stream).copied()).collect()
}

#[test]
fn oldest_first_and_exact_before_any() {
    let free = [("any", "a", 1), ("planner", "a", 1)];
    assert_eq!(assigned(&[("planner", "a"), ("planner", "a"), ("planner", "a")], &free), [Some(1), Some(0), None]);
    assert_eq!(assigned(&[("any", "a")], &free), [Some(0)]);
    assert_eq!(assigned(&[("reviewer", "a"), ("planner", "a")], &free), [Some(0), Some(1)]);
    assert_eq!(assigned(&[("tester", "a"), ("reviewer", "a")], &[("any", "a", 1)]), [Some(0), None]);
}

#[test]
fn a_run_that_began_earlier_goes_before_a_later_one_that_waits_already() {
    let mut queue = WorkerQueue::default();
    join(&mut queue, 0, ("any", "a", 1));
    let of = |stream, effect, since| {
        let job = job(stream, effect, "any", "a");
        QueuedEffect { wanted: WorkerRequirement { since, ..job.wanted.clone() }, ..job }
    };
    [of(1, 0, 10), of(2, 0, 20), of(3, 0, 30)].into_iter().for_each(|job| queue.wait(job));
    assert_eq!(hand_out(&mut queue), [(1, 0)]);
    queue.wait(of(1, 1, 10));
    queue.free(&WorkerId("000".into()), &held(&of(1, 0, 10)));
    assert_eq!(hand_out(&mut queue), [(1, 0)], "its next step, before the first of the others");
    queue.free(&WorkerId("000".into()), &held(&of(1, 1, 10)));
    assert_eq!(hand_out(&mut queue), [(2, 0)]);
}

#[test]
fn work_in_a_scratch_folder_waits_for_a_worker_that_knows_of_it() {
    let mut queue = WorkerQueue::default();
    let offer = |id: &str, knows_scratch| {
        let (id, role, group) = (WorkerId(id.into()), "any".into(), "a".into());
        WorkerOffer { id, role, group, capacity: 1, lease: None, knows_scratch }
    };
    queue.join(offer("000", false), 0);
    for (stream, in_scratch) in [(1, true), (2, false)] {
        let job = job(stream, 0, "any", "a");
        queue.wait(QueuedEffect { wanted: WorkerRequirement { in_scratch, ..job.wanted.clone() }, ..job });
    }
    assert_eq!(hand_out(&mut queue), [(2, 0)]);
    queue.join(offer("001", true), 0);
    assert_eq!(hand_out(&mut queue), [(1, 1)]);
}

#[test]
fn work_of_one_group_is_never_given_to_anothers_worker() {
    assert_eq!(assigned(&[("any", "a")], &[("any", "b", 9)]), [None]);
}

#[test]
fn a_worker_takes_no_more_than_it_has_room_for() {
    assert_eq!(assigned(&[("x", "a"), ("x", "a"), ("x", "a")], &[("x", "a", 2)]), [Some(0), Some(0), None]);
}

#[test]
fn room_that_comes_goes_to_the_oldest() {
    let mut queue = WorkerQueue::default();
    (0..3).for_each(|stream| queue.wait(job(stream, 0, "x", "a")));
    assert_eq!(hand_out(&mut queue), []);
    join(&mut queue, 7, ("any", "a", 1));
    assert_eq!(hand_out(&mut queue), [(0, 7)]);
    assert_eq!(hand_out(&mut queue), []);
    queue.forget(&StreamId::new("1"), "0");
    queue.free(&WorkerId("007".into()), &held(&job(0, 0, "x", "a")));
    assert_eq!(hand_out(&mut queue), [(2, 7)]);
    assert!(queue.waiting.is_empty());
}

#[test]
fn a_worker_that_changes_its_group_gets_work_of_that_group_only() {
    let mut queue = WorkerQueue::default();
    join(&mut queue, 7, ("any", "a", 9));
    join(&mut queue, 7, ("any", "b", 9));
    queue.wait(job(0, 0, "x", "a"));
    queue.wait(job(1, 0, "x", "b"));
    assert_eq!(hand_out(&mut queue), [(1, 7)]);
    queue.leave(&WorkerId("007".into()));
    queue.wait(job(2, 0, "x", "b"));
    assert_eq!(hand_out(&mut queue), []);
}

#[test]
fn an_effect_that_waits_twice_is_handed_out_once() {
    let mut queue = WorkerQueue::default();
    queue.wait(job(0, 0, "x", "a"));
    queue.wait(job(0, 0, "x", "a"));
    join(&mut queue, 7, ("any", "a", 9));
    assert_eq!(hand_out(&mut queue), [(0, 7)]);
}

/// What waits, walked through from the oldest to the newest: the meaning of the queues, at a cost that they do not have.
#[derive(Default)]
struct WholeWalk {
    workers: BTreeMap<usize, (&'static str, &'static str, usize)>,
    held: BTreeMap<usize, BTreeSet<usize>>,
    waiting: Vec<(usize, &'static str, &'static str)>,
}

impl WholeWalk {
    fn hand_out(&mut self) -> Vec<(usize, usize)> {
        let mut handed = Vec::new();
        let (workers, held) = (&self.workers, &mut self.held);
        self.waiting.retain(|(stream, role, group)| {
            let mut able = |exact: bool| {
                let fits = |of: &str| if exact { of == *role } else { of == "any" || *role == "any" };
                let mut found = workers.iter().filter(|(_, (of, in_group, _))| fits(of) && in_group == group);
                found.find(|(id, (_, _, capacity))| held.entry(**id).or_default().len() < *capacity).map(|(id, _)| *id)
            };
            let found = able(true).or_else(|| able(false));
            found.into_iter().for_each(|id| {
                held.entry(id).or_default().insert(*stream);
                handed.push((*stream, id));
            });
            found.is_none()
        });
        handed
    }
}

#[test]
fn the_queues_give_what_a_walk_over_everything_gives() {
    const ROLES: [&str; 4] = ["any", "planner", "reviewer", "tester"];
    const GROUPS: [&str; 3] = ["a", "b", "c"];
    let mut seed = 7_u64;
    let mut draw = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).expect("it fits") % below
    };
    let (mut queue, mut walk, mut given) = (WorkerQueue::default(), WholeWalk::default(), 0);
    for stream in 0..4_000 {
        let (role, group, worker) = (ROLES[draw(4)], GROUPS[draw(3)], draw(9));
        match draw(8) {
            0 => {
                let capacity = draw(4);
                join(&mut queue, worker, (role, group, capacity));
                walk.workers.insert(worker, (role, group, capacity));
            }
            1 => {
                queue.leave(&WorkerId(format!("{worker:03}")));
                walk.workers.remove(&worker);
            }
            2 | 3 => {
                let holds = walk.held.entry(worker).or_default();
                if let Some(ended) = holds.pop_first() {
                    queue.free(&WorkerId(format!("{worker:03}")), &held(&job(ended, 0, role, group)));
                }
            }
            4 if !walk.waiting.is_empty() => {
                let (settled, _, _) = walk.waiting.remove(draw(walk.waiting.len()));
                queue.forget_stream(&StreamId::new(settled.to_string()));
            }
            _ => {
                queue.wait(job(stream, 0, role, group));
                walk.waiting.push((stream, role, group));
            }
        }
        let handed = hand_out(&mut queue);
        assert_eq!(handed, walk.hand_out(), "after {stream} changes");
        given += handed.len();
    }
    assert!(given > 400, "only {given} were handed out");
}
