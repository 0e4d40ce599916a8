//! Random inputs: nothing panics, decisions repeat, and no event leads out of the invariants.

use proptest::prelude::*;

use sluice_core::attention::{AttentionChannel, DialogKind, SessionSignal};
use sluice_core::lifecycle::Lifecycle;
use sluice_core::machine::Moment;
use sluice_core::name::StateName;
use sluice_core::task::input::{
    RunEnd, TaskEffectOutcome, TaskEffectProduct, TaskUpdate, WorkEvidence, WorkHead, WorkStanding,
    WorkspaceReservation,
};
use sluice_core::task::session::{SessionChange, SessionExit, SessionNumber};
use sluice_core::task::state::{CommitId, TaskPhase, TaskSubject, TreeId, WorktreePath};
use sluice_core::task::{
    EffectKey, Evidence, NewTask, TaskAsker, TaskEffect, TaskEvent, TaskInput, TaskState, create, decide,
};

use super::play::lifecycle;

/// An input before it is known which states, sessions and effects there are.
#[derive(Clone, Debug)]
struct Throw {
    kind: u8,
    who: u8,
    which: u8,
    body: u8,
    flag: bool,
}

fn throws() -> impl Strategy<Value = (u8, bool, Vec<Throw>)> {
    let throw = (0u8..18, 0u8..8, any::<u8>(), 0u8..6, any::<bool>())
        .prop_map(|(kind, who, which, body, flag)| Throw { kind, who, which, body, flag });
    (0u8..7, any::<bool>(), prop::collection::vec(throw, 0..80))
}

fn evidence(throw: &Throw) -> Evidence {
    let body = match throw.body {
        0 => "",
        1 => "## Plan\nAPPROACH: a\n",
        2 => "## Handoff\nDONE: a\n",
        3 => "## Handoff\nDONE: b\n\n## Review\nVerdict: FAIL\n",
        4 => "## Handoff\nDONE: b\n\n## Review\nVerdict: PASS\n",
        _ => "## Review\nVerdict: FAIL\nagain\n",
    };
    Evidence { body: body.to_owned(), work: work(throw), ..Evidence::default() }
}

fn work(throw: &Throw) -> WorkEvidence {
    let head = if throw.which.is_multiple_of(5) { WorkHead::Detached } else { WorkHead::Branch("fix".to_owned()) };
    let (commit, tree) = (CommitId(format!("c{}", throw.which % 3)), TreeId(format!("t{}", throw.which % 3)));
    let dirty = if throw.which.is_multiple_of(7) { "a file".to_owned() } else { String::new() };
    match throw.flag {
        true => WorkEvidence::Read(WorkStanding { head, commit, tree, dirty }),
        false if throw.which.is_multiple_of(2) => WorkEvidence::Unreadable("no".to_owned()),
        false => WorkEvidence::Unseen,
    }
}

fn room(throw: &Throw) -> WorkspaceReservation {
    match throw.which % 3 {
        0 => WorkspaceReservation::Unasked,
        1 => WorkspaceReservation::Full,
        _ => WorkspaceReservation::Reserved(WorktreePath("w".to_owned())),
    }
}

fn outcome(throw: &Throw) -> TaskEffectOutcome {
    match throw.body {
        0 => TaskEffectOutcome::Failed("no".to_owned()),
        1 => TaskEffectOutcome::Skipped("no".to_owned()),
        2 => TaskEffectOutcome::Ok(TaskEffectProduct::Workspace(WorktreePath("w".to_owned()))),
        3 | 4 => TaskEffectOutcome::Ok(TaskEffectProduct::Run {
            id: format!("r{}", throw.which % 3).parse().unwrap(),
            began: None,
        }),
        _ => TaskEffectOutcome::Ok(TaskEffectProduct::Nothing),
    }
}

fn signal(throw: &Throw) -> SessionSignal {
    let by = AttentionChannel::ALL[usize::from(throw.which) % AttentionChannel::ALL.len()];
    match throw.body {
        0 => SessionSignal::Quiet { seconds: 300 },
        1 | 2 => SessionSignal::Works { by },
        _ => SessionSignal::Waits { what: DialogKind::Trust, text: "trust?".to_owned(), by },
    }
}

fn to(lifecycle: &Lifecycle, throw: &Throw) -> StateName {
    let to = &lifecycle.states[usize::from(throw.which) % lifecycle.states.len()].name;
    if throw.which == 255 { StateName::new("nowhere") } else { to.clone() }
}

fn input(lifecycle: &Lifecycle, state: &TaskState, known: &[TaskEffect], throw: &Throw) -> TaskInput {
    let session =
        SessionNumber(u32::from(throw.which % 4).max(state.sessions_asked.saturating_sub(1)) + u32::from(throw.flag));
    let by = match throw.who {
        0..3 => TaskAsker::Person,
        3 => TaskAsker::Engine,
        4 => TaskAsker::Stranger,
        _ => TaskAsker::Session(session),
    };
    let evidence = evidence(throw);
    match throw.kind {
        0 => TaskInput::Spawn { by, evidence, room: room(throw) },
        4 if throw.which < 128 => TaskInput::Verdict { by, to: to(lifecycle, throw), evidence },
        1..5 => TaskInput::Move { by, to: to(lifecycle, throw), evidence, room: room(throw), feedback: None },
        5 if throw.which < 32 => TaskInput::Cancel { by, evidence },
        5 => TaskInput::RequestChanges { by, message: "more".to_owned(), evidence, room: room(throw) },
        6 => TaskInput::Merge { by, force: throw.flag, evidence },
        7 if throw.which < 64 => {
            let push_failed = throw.flag.then(|| "no".to_owned());
            TaskInput::Merged { by, commit: None, forced: throw.flag, push_failed, evidence, feedback: None }
        }
        8 if throw.which < 64 => TaskInput::Retry { by, room: room(throw) },
        7 | 8 => TaskInput::Respawn { by, room: room(throw) },
        9 if throw.flag => TaskInput::Update { by, update: TaskUpdate::Summary("x".to_owned()) },
        9 if throw.which < 128 => TaskInput::ClearAttention { by },
        9 => TaskInput::Signal { session, signal: signal(throw) },
        10 | 11 => TaskInput::SessionExited { session, exit: SessionExit::Code(1), evidence },
        12 if throw.flag => {
            let workspace = WorktreePath("w".to_owned());
            TaskInput::Lend { workspace, events: state.events, work: evidence.work }
        }
        12 if throw.who < 4 => TaskInput::TakeUp { room: room(throw) },
        12 => TaskInput::SessionAdopted { session },
        13 | 14 => {
            let end = [RunEnd::Completed, RunEnd::Failed, RunEnd::Cancelled][usize::from(throw.body % 3)];
            let run =
                state.run.as_ref().filter(|_| throw.flag).map_or_else(|| "r0".parse().unwrap(), |run| run.id.clone());
            match throw.which % 4 {
                0 => TaskInput::RunReopened { run },
                _ => TaskInput::RunEnded { run, end, why: String::new(), own: throw.flag, evidence },
            }
        }
        _ => {
            let newest = known.iter().rev().find(|effect| matches!(effect.key, EffectKey::Job { .. }));
            let any = known.get(usize::from(throw.which) % known.len().max(1));
            let key = if throw.flag { any } else { newest.or(any) };
            let key = key.map_or(EffectKey::Write { events: 0 }, |effect| effect.key);
            TaskInput::EffectDone { key, outcome: outcome(throw) }
        }
    }
}

/// Applies the events, each of which must leave the task sound: hooks settle in the order in which they were queued, a
/// session is asked for only where none lives, and one input makes one move at most.
fn apply(lifecycle: &Lifecycle, state: &mut TaskState, events: &[TaskEvent], settled: &mut Vec<(u32, u32)>) {
    for event in events {
        match event {
            TaskEvent::HookSettled { turn, step, .. } => {
                assert!(settled.last().is_none_or(|last| *last < (*turn, *step)), "hooks settle in order: {settled:?}");
                settled.push((*turn, *step));
            }
            TaskEvent::Session { place, change: SessionChange::Asked(agent), .. } => {
                assert!(!state.session(*place).is_living(), "{place:?} is taken");
                assert_eq!(agent.id.0, state.sessions_asked + 1, "sessions are counted");
            }
            _ => {}
        }
        state.apply(lifecycle, event);
    }
    let moves = events.iter().filter(|event| matches!(event, TaskEvent::Moved(_))).count();
    assert!(moves <= 1, "one input, one move");
}

/// Those that are played.
const LIFECYCLES: [&str; 7] = ["default", "minimal", "persistent", "hooks", "running", "reviewed", "takers"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_inputs_never_break_a_task((which, spawn, throws) in throws()) {
        let lifecycle = lifecycle(LIFECYCLES[usize::from(which)]);
        let about = TaskSubject { summary: if spawn { "x".to_owned() } else { String::new() }, ..TaskSubject::default() };
        let room = WorkspaceReservation::Reserved(WorktreePath("w".to_owned()));
        let wanted = NewTask { status: None, about, by: TaskAsker::Person, spawn, evidence: Evidence::default(), room, sessions: 0 };
        let first = create(&lifecycle, &wanted, Moment(0)).unwrap();
        let mut known = first.effects.clone();
        let mut history = first.events.clone();
        let mut settled = Vec::new();
        let mut state = TaskState::fold(&lifecycle, &history).unwrap();
        for (now, throw) in (1i64..).zip(&throws) {
            let input = input(&lifecycle, &state, &known, throw);
            let answer = decide(&lifecycle, &state, &input, Moment(now));
            prop_assert_eq!(&answer, &decide(&lifecycle, &state, &input, Moment(now)));
            let Ok(decision) = answer else { continue };
            if state.phase(&lifecycle) == TaskPhase::Finished {
                // What is over only settles what it owes.
                let settles = matches!(input, TaskInput::ClearAttention { .. } | TaskInput::Retry { .. });
                prop_assert!(settles || decision.events.is_empty() && decision.effects.is_empty());
                prop_assert!(!decision.events.iter().any(|event| matches!(event, TaskEvent::Moved(_))));
            }
            let asked: Vec<EffectKey> = decision.effects.iter().map(|effect| effect.key).collect();
            prop_assert!(asked.iter().all(|key| known.iter().all(|effect| effect.key != *key)), "keys are unique");
            apply(&lifecycle, &mut state, &decision.events, &mut settled);
            history.extend(decision.events);
            known.extend(decision.effects);
            prop_assert_eq!(state.check_invariants(&lifecycle), Ok(()));
            let recorded = state.attention.as_ref().map(|raised| raised.why.clone());
            if recorded.as_ref().is_none_or(|why| !why.is_mark()) {
                prop_assert_eq!(recorded, state.derived_attention(&lifecycle), "what follows is recorded");
            }
            prop_assert_eq!(TaskState::fold(&lifecycle, &history), Some(state.clone()));
        }
    }
}
