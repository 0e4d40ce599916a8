//! Moves of tasks along a lifecycle, each with a hook that is done at once.

use std::sync::Arc;

use sluice_core::lifecycle::Lifecycle;
use sluice_core::name::StateName;
use sluice_core::task::input::WorkspaceReservation;
use sluice_core::task::state::TaskSubject;
use sluice_core::task::{Evidence, NewTask, TaskAsker, TaskInput};
use sluice_engine::actor::ActorInput;
use sluice_engine::host::EngineClock;
use sluice_engine::loader::pin;
use sluice_engine::reactor::ReactorMessage;
use sluice_engine::task_actor::TaskActor;
use sluice_store::StreamId;

use crate::definitions::RING;
use crate::engine::{Engine, GROUP, WallClock, lifecycle};
use crate::place::{Kind, Place};
use crate::table::Table;
use crate::turns::{each, take_turns};

const TASKS: usize = 1_000;
/// How often each task is moved; a round of all measurements makes 10,000 moves.
const MOVES: usize = 10;
const ALONE: usize = 100;

/// A move is stored, then that TASK.md has been written, then that the hook is done.
const COMMITS: u32 = 3;

/// Moves of many tasks in a second beside bare commits in a second, then moves of one task beside as many bare commits.
pub fn measure(table: &Table, place: &Place) {
    let lifecycle = lifecycle(RING);
    let what = |kind: Kind| format!("move: 10,000 moves of 1,000 tasks, {} / bare commits", kind.name());
    for kind in place.kinds(table, what) {
        let mut floor = place.floor(kind);
        let mut engine = Engine::start(&place.store(kind));
        let tasks: Vec<StreamId> = (0..TASKS).map(|at| create(&mut engine, &lifecycle, at)).collect();
        move_all(&mut engine, &tasks, "working");
        let turn = take_turns(3, &mut || floor.round(), &mut || {
            each(TASKS * MOVES, || {
                for _ in 0..MOVES / 2 {
                    move_all(&mut engine, &tasks, "checking");
                    move_all(&mut engine, &tasks, "working");
                }
            })
        });
        table.rate(&what(kind), turn, "");
        let one = &tasks[..1];
        let turn = take_turns(9, &mut || floor.round() * COMMITS, &mut || {
            each(ALONE, || {
                for _ in 0..ALONE / 2 {
                    move_all(&mut engine, one, "checking");
                    move_all(&mut engine, one, "working");
                }
            })
        });
        engine.stop();
        let what = format!("move: one task, a move and its hook, {} / 3 bare commits", kind.name());
        table.turn(&what, turn, "");
    }
}

fn create(engine: &mut Engine, lifecycle: &Arc<Lifecycle>, at: usize) -> StreamId {
    let about = TaskSubject { summary: "Move it".into(), project: GROUP.into(), ..TaskSubject::default() };
    let room = WorkspaceReservation::Unasked;
    let wanted = NewTask {
        status: None,
        about,
        by: TaskAsker::Person,
        spawn: false,
        evidence: Evidence::default(),
        room,
        sessions: 0,
    };
    let digest = pin(RING.as_bytes());
    let id = format!("task-{at:06}");
    let made = TaskActor::create(lifecycle.clone(), digest.to_string(), id.clone(), &wanted, WallClock.now());
    let (actor, change) = made.unwrap();
    let stream = StreamId::new(id);
    engine.host.handle().send(ReactorMessage::Create {
        token: None,
        stream: stream.clone(),
        actor: Box::new(actor),
        change,
        blobs: vec![(digest, RING.as_bytes().to_vec())],
    });
    stream
}

/// Moves each task, and waits until its hook is performed: the move is durable, and so is what came before the hook.
fn move_all(engine: &mut Engine, tasks: &[StreamId], to: &str) {
    engine.allow(tasks.len());
    for stream in tasks {
        let (by, to) = (TaskAsker::Person, StateName::new(to));
        let input = TaskInput::Move {
            by,
            to,
            evidence: Evidence::default(),
            room: WorkspaceReservation::Unasked,
            feedback: None,
        };
        engine.host.handle().send(ReactorMessage::Say {
            token: None,
            stream: stream.clone(),
            said: ActorInput::Task(input),
        });
    }
    engine.wait();
}
