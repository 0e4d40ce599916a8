//! A task on a store, with the reactor driven by hand: no threads, no clock.
//!
//! A script is said line by line; below each line stands what the store has of it and what is handed out. After each
//! line the task is read back from the store and must be the one in memory, and the fold of its log.
//!
//! | line | means |
//! |---|---|
//! | `[WHO:] move STATE`, `cancel`, `changes TEXT`, `merge`, `merged`, `respawn`, `spawn` | WHO: `person` (or nobody), `s1` |
//! | `writes ## TITLE: TEXT` | TASK.md changes; nobody hears of it |
//! | `ok`, `fail REASON`, `gone`, `settle` | what is handed out ends; its holder goes away; all that follows ends well |
//! | `exit s1` | a session's process ended |
//! | `restart` | the engine ends, and begins again with what is stored |

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::sync::Arc;

use sluice_core::lifecycle::Lifecycle;
use sluice_core::machine::{Moment, RefusalCode};
use sluice_core::name::StateName;
use sluice_core::run;
use sluice_core::task::input::{
    TaskEffectOutcome, TaskEffectProduct, WorkEvidence, WorkHead, WorkStanding, WorkspaceReservation,
};
use sluice_core::task::session::{SessionExit, SessionNumber};
use sluice_core::task::state::{CommitId, TaskSubject, TreeId, WorktreePath};
use sluice_core::task::{Evidence, Instruction, NewTask, TaskAsker, TaskEvent, TaskInput, TaskState};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, DefinitionFile, Sources, load};
use sluice_engine::actor::{Actor, ActorInput, EffectOutcome};
use sluice_engine::codec::{outbox, task_effect, task_event, task_state};
use sluice_engine::reactor::{
    Assignment, LoadedStream, Reactor, ReactorAction, ReactorAnswer, ReactorMessage, ReactorToken,
};
use sluice_engine::task_actor::TaskActor;
use sluice_store::memory::Memory;
use sluice_store::{Query, Reader, StoredStream, StreamId, Writer};

const DIGEST: &str = "00000000000000000000000000000000000000000000000000000000000000d1";
/// The most bytes that a header of these scripts may have.
const LARGEST_HEADER: usize = 3000;

fn lifecycle(name: &str) -> Arc<Lifecycle> {
    let file = format!("{name}.yml");
    let text = sluice_dialect::builtin::ALL.iter().find(|it| it.file == file).unwrap().text;
    match load(&DefinitionFile { path: &file, bytes: text.as_bytes() }, &mut NoPrompts, &mut Sources::default())
        .definition
    {
        Some(Definition::Lifecycle(lifecycle)) => Arc::new(lifecycle),
        _ => panic!("{file} is not a lifecycle"),
    }
}

fn wanted(summary: &str) -> NewTask {
    let about = TaskSubject {
        summary: summary.into(),
        project: "coffee".into(),
        branch: "fix".into(),
        harness: "claude".into(),
        ..TaskSubject::default()
    };
    let room = WorkspaceReservation::Reserved(WorktreePath("coffee-1".into()));
    NewTask {
        status: None,
        about,
        by: TaskAsker::Person,
        spawn: true,
        evidence: Evidence::default(),
        room,
        sessions: 0,
    }
}

struct World {
    lifecycle: Arc<Lifecycle>,
    store: Memory,
    writer: Box<dyn Writer>,
    reactor: Reactor,
    /// The same task, told the same things, without a loop around it.
    twin: TaskActor,
    now: i64,
    epoch: u64,
    body: Vec<(String, String)>,
    handed: Vec<Assignment>,
    answers: Vec<ReactorAnswer>,
    /// How many events have been shown.
    shown: u64,
    text: String,
}

fn stream() -> StreamId {
    StreamId::new("task-1")
}

impl World {
    fn new(name: &str) -> World {
        let lifecycle = lifecycle(name);
        let create =
            || TaskActor::create(lifecycle.clone(), DIGEST.into(), "task-1".into(), &wanted("Fix it"), Moment(0));
        let ((actor, change), (twin, _)) = (create().unwrap(), create().unwrap());
        let store = Memory::new();
        let mut writer: Box<dyn Writer> = Box::new(store.writer());
        let epoch = writer.own("test", std::time::Duration::from_secs(60)).unwrap().epoch;
        let mut world = World {
            lifecycle,
            store,
            writer,
            reactor: Reactor::new(epoch),
            twin,
            now: 0,
            epoch,
            body: Vec::new(),
            handed: Vec::new(),
            answers: Vec::new(),
            shown: 0,
            text: String::new(),
        };
        let token = Some(ReactorToken(0));
        let message =
            ReactorMessage::Create { token, stream: stream(), actor: Box::new(actor), change, blobs: Vec::new() };
        world.receive(message);
        world.agree();
        world
    }

    fn receive(&mut self, message: ReactorMessage) {
        self.reactor.receive(message, Moment(self.now));
        loop {
            let actions = self.reactor.act(Moment(self.now));
            if actions.is_empty() {
                return;
            }
            for action in actions {
                match action {
                    ReactorAction::Commit(batch) => {
                        let results = self.writer.append(&batch).unwrap();
                        self.show_events();
                        self.reactor.receive(ReactorMessage::Committed(results), Moment(self.now));
                    }
                    ReactorAction::Load(stream) => {
                        let found = self.found();
                        self.reactor.receive(ReactorMessage::Loaded { stream, found }, Moment(self.now));
                    }
                    ReactorAction::Perform(it) => {
                        self.text.push_str(&format!("    → {}\n", it.effect.id));
                        self.handed.push(it);
                        assert_eq!(self.handed.len(), 1, "two effects of a task are handed out at once");
                    }
                    ReactorAction::Held(..) | ReactorAction::Withdrawn { .. } => {
                        panic!("a task has no lasting workers")
                    }
                    ReactorAction::Reply(_, answer) => {
                        if let ReactorAnswer::Refused(refusal) = &answer {
                            self.text.push_str(&format!("    refused: {refusal}\n"));
                        }
                        self.answers.push(answer);
                    }
                }
            }
        }
    }

    fn show_events(&mut self) {
        for (number, event) in self.store.reader().history(&stream(), self.shown, 1000).unwrap() {
            self.text.push_str(&format!("    {} ({})\n", event.kind, event.actor));
            self.shown = number;
        }
    }

    fn stored(&self) -> StoredStream {
        self.store.reader().load(&stream()).unwrap().unwrap()
    }

    fn found(&self) -> Option<LoadedStream> {
        let stored = self.stored();
        let actor = Box::new(TaskActor::restore(self.lifecycle.clone(), &stored).unwrap());
        Some(LoadedStream { actor, version: stored.version, effects: stored.effects, timers: stored.timers })
    }

    /// What is stored is what is in memory, and what the log adds up to.
    fn agree(&self) {
        let stored = self.stored();
        let restored = TaskActor::restore(self.lifecycle.clone(), &stored).unwrap();
        assert_eq!(restored.state(), self.twin.state(), "restored from the store, and in memory");
        assert_eq!(restored.image(), self.twin.image());
        assert_eq!(restored.image(), stored.header.data);
        assert_eq!(task_state::definition_of(&stored.header.data).unwrap(), DIGEST);
        let log = self.store.reader().history(&stream(), 0, 10_000).unwrap();
        let of_machine = log.iter().filter(|(_, it)| outbox::read(&it.kind, it.version, &it.data).unwrap().is_none());
        let events: Vec<TaskEvent> =
            of_machine.map(|(_, it)| task_event::read(it.version, &it.data).unwrap()).collect();
        assert_eq!(&TaskState::fold(&self.lifecycle, &events).unwrap(), restored.state(), "the fold of the log");
        let size = stored.header.data.len();
        assert!(size < LARGEST_HEADER, "a header of {size} bytes: put parts of it into rows");
        assert!(stored.rows.is_empty() && stored.timers.is_empty());
    }

    fn tell(&mut self, said: ActorInput) {
        let _ = self.twin.take(said.clone(), Moment(self.now));
        self.receive(ReactorMessage::Say { token: Some(ReactorToken(1)), stream: stream(), said });
    }

    fn evidence(&self) -> Evidence {
        let section = |(title, text): &(String, String)| format!("## {title}\n{text}\n\n");
        let (commit, tree) = (CommitId("c1".into()), TreeId("t1".into()));
        let standing = WorkStanding { head: WorkHead::Branch("fix".into()), commit, tree, dirty: String::new() };
        Evidence {
            body: self.body.iter().map(section).collect(),
            work: WorkEvidence::Read(standing),
            ..Evidence::default()
        }
    }

    fn end(&mut self, outcome: EffectOutcome) {
        let it = self.handed.remove(0);
        let _ = self
            .twin
            .take(ActorInput::Outcome { effect: it.effect.id.clone(), outcome: outcome.clone() }, Moment(self.now));
        self.receive(ReactorMessage::Ended {
            token: None,
            stream: stream(),
            effect: it.effect.id,
            dispatch: it.dispatch,
            outcome,
        });
    }

    fn well(&self) -> EffectOutcome {
        let it = &self.handed[0].effect;
        let effect = task_effect::read(&it.id, &it.data).unwrap();
        assert_eq!(it.id, effect.key.to_string());
        assert_eq!(it.kind, effect.instruction.kind());
        match effect.instruction {
            Instruction::AcquireWorkspace { .. } => EffectOutcome::Task(TaskEffectOutcome::Ok(
                TaskEffectProduct::Workspace(WorktreePath("coffee-1".into())),
            )),
            Instruction::StartSession(_) => EffectOutcome::Task(TaskEffectOutcome::Ok(TaskEffectProduct::Nothing)),
            _ => EffectOutcome::Done,
        }
    }

    fn restart(&mut self) {
        self.epoch += 1;
        self.handed.clear();
        self.reactor = Reactor::new(self.epoch);
        self.twin = TaskActor::restore(self.lifecycle.clone(), &self.stored()).unwrap();
        let open = self.store.reader().open_streams(None, 10).unwrap();
        for stream in open {
            let found = self.found();
            self.receive(ReactorMessage::Loaded { stream, found });
        }
    }

    fn line(&mut self, line: &str) {
        self.now += 1;
        self.text.push_str(&format!("> {line}\n"));
        let (who, what) = line.split_once(": ").filter(|(who, _)| !who.contains(' ')).unwrap_or(("person", line));
        let (verb, rest) = what.split_once(' ').unwrap_or((what, ""));
        let by = match who.strip_prefix('s') {
            Some(number) => TaskAsker::Session(SessionNumber(number.parse().unwrap())),
            None => TaskAsker::Person,
        };
        let evidence = self.evidence();
        let room = WorkspaceReservation::Unasked;
        let input = match verb {
            "writes" => {
                let (title, text) = rest.strip_prefix("## ").and_then(|rest| rest.split_once(": ")).unwrap();
                self.body.retain(|(known, _)| known != title);
                return self.body.push((title.to_owned(), text.to_owned()));
            }
            "ok" => return self.end(self.well()),
            "fail" => return self.end(EffectOutcome::Failed(rest.to_owned())),
            "gone" => {
                let it = self.handed.remove(0);
                return self.tell(ActorInput::Lost { effect: it.effect.id });
            }
            "settle" => {
                while !self.handed.is_empty() {
                    self.end(self.well());
                }
                return;
            }
            "restart" => return self.restart(),
            "spawn" => TaskInput::Spawn { by, evidence, room },
            "move" => TaskInput::Move { by, to: StateName::new(rest), evidence, room, feedback: None },
            "cancel" => TaskInput::Cancel { by, evidence },
            "changes" => TaskInput::RequestChanges {
                by,
                message: rest.to_owned(),
                evidence,
                room: WorkspaceReservation::Unasked,
            },
            "merge" => TaskInput::Merge { by, force: false, evidence },
            "merged" => {
                TaskInput::Merged { by, commit: None, forced: false, push_failed: None, evidence, feedback: None }
            }
            "respawn" => TaskInput::Respawn { by, room: WorkspaceReservation::Unasked },
            "exit" => {
                let session = SessionNumber(rest.strip_prefix('s').unwrap().parse().unwrap());
                TaskInput::SessionExited { session, exit: SessionExit::Code(1), evidence }
            }
            other => panic!("a script cannot say `{other}`"),
        };
        self.tell(ActorInput::Task(input));
    }

    fn play(&mut self, script: &[&str]) {
        for line in script {
            self.line(line);
            self.agree();
        }
    }
}

const WHOLE_LIFE: &[&str] = &[
    "settle",
    "writes ## Handoff: DONE: it",
    "s1: move agent-review",
    "ok",
    "settle",
    "writes ## Review: Verdict: PASS",
    "s2: move reviewing",
    "settle",
    "merge",
    "merged",
    "settle",
];

#[test]
fn a_whole_life() {
    let mut world = World::new("default");
    world.play(WHOLE_LIFE);
    let card = world.stored().header.card;
    assert_eq!(
        (card.kind.as_str(), card.status.as_str(), card.group.as_str(), card.title.as_str(), card.open),
        ("task", "done", "coffee", "Fix it", false)
    );
    assert!(world.reactor.is_empty(), "what is over is not kept in memory");
    assert!(world.store.reader().open_streams(None, 10).unwrap().is_empty());
    assert!(world.answers.iter().all(|answer| matches!(answer, ReactorAnswer::Done(_))));
    insta::assert_snapshot!(world.text);
}

#[test]
fn a_life_with_a_restart_at_every_moment_ends_the_same() {
    let mut world = World::new("default");
    world.play(WHOLE_LIFE);
    let whole = world.twin.state().clone();
    // One step at a time, and a restart after each: what was handed out is handed out again.
    let mut world = World::new("default");
    for line in WHOLE_LIFE {
        match *line {
            "settle" => {
                while !world.handed.is_empty() {
                    world.play(&["restart", "ok", "restart"]);
                }
            }
            line => world.play(&[line, "restart"]),
        }
    }
    let mut again = world.twin.state().clone();
    again.visit.since = whole.visit.since;
    assert_eq!(again, whole);
}

#[test]
fn crashes_failures_and_a_restart_in_the_middle() {
    let mut world = World::new("default");
    world.play(&[
        "settle",
        "exit s1",
        "restart",
        "settle",
        "respawn",
        "fail tmux is not there",
        "settle",
        "respawn",
        "settle",
        "s3: move agent-review",
        "writes ## Handoff: DONE: it",
        "s3: move agent-review",
        "restart",
        "gone",
        "restart",
        "settle",
        "cancel",
        "restart",
        "settle",
    ]);
    insta::assert_snapshot!(world.text);
}

#[test]
fn refusals_leave_nothing_behind() {
    let mut world = World::new("default");
    world.play(&["settle"]);
    let before = world.stored();
    world.play(&["s1: move agent-review", "s1: merge", "s9: move agent-review", "spawn", "respawn", "move nowhere"]);
    world.tell(ActorInput::Run(run::RunInput::Close { summary: String::new() }));
    assert_eq!(world.stored(), before);
    assert!(world.handed.is_empty());
    let refusals = world.answers.iter().filter(|answer| matches!(answer, ReactorAnswer::Refused(_)));
    assert_eq!(refusals.count(), 7);
    insta::assert_snapshot!(world.text.split("> s1: move").nth(1).unwrap());
}

#[test]
fn a_creation_that_is_refused_is_no_task() {
    let wanted = NewTask { status: Some(StateName::new("working")), ..wanted("Fix it") };
    let refused = TaskActor::create(lifecycle("default"), DIGEST.into(), "task-1".into(), &wanted, Moment(0));
    assert_eq!(refused.err().unwrap().code, RefusalCode::NoTransition);
}

#[test]
fn what_comes_late_or_is_not_meant_for_a_task_changes_nothing() {
    let mut world = World::new("default");
    world.play(&["ok"]);
    let before = world.stored();
    for said in [
        ActorInput::Timer("run".into()),
        ActorInput::Lost { effect: "0.1.whole".into() },
        ActorInput::Lost { effect: "write-4".into() },
        ActorInput::Outcome { effect: "write-4".into(), outcome: EffectOutcome::Failed("late".into()) },
        ActorInput::Outcome { effect: "turn-9/1 kill_session".into(), outcome: EffectOutcome::Done },
    ] {
        world.tell(said);
        assert_eq!(world.stored(), before);
    }
}

#[test]
fn a_summary_that_no_store_would_keep_is_shown_without_it() {
    let wanted = wanted("a\0b");
    let (_, change) =
        TaskActor::create(lifecycle("default"), DIGEST.into(), "task-1".into(), &wanted, Moment(0)).unwrap();
    assert_eq!(change.header.card.title, "a\u{fffd}b");
}

#[test]
fn a_header_that_does_not_fit_is_refused() {
    let world = World::new("default");
    let stored = world.stored();
    let restore =
        |stored: &StoredStream| TaskActor::restore(world.lifecycle.clone(), stored).err().map(|it| it.to_string());
    assert_eq!(restore(&stored), None);
    let with = |from: &str, to: &str| {
        let text = String::from_utf8(stored.header.data.clone()).unwrap();
        assert!(text.contains(from), "{text}");
        let mut changed = stored.clone();
        changed.header.data = text.replacen(from, to, 1).into_bytes();
        restore(&changed).unwrap()
    };
    assert!(with("\"version\":1", "\"version\":2").contains("version 2"));
    assert!(with("\"status\":", "\"status\":9").contains("not a state of the lifecycle"));
    assert!(with("\"write-", "\"write-9").contains("outbox"));
    assert!(with("\"waiting\":\"acquire_workspace\"", "\"waiting\":\"fly\"").contains("`fly`"));
    let mut lost = stored.clone();
    lost.effects.clear();
    assert!(restore(&lost).unwrap().contains("outbox"));
    let listed = world.store.reader().list(&Query { kind: Some("task".into()), ..Query::default() }).unwrap();
    assert_eq!(listed.items.len(), 1);
}
