//! The host takes up what it finds in the store, a task or a run, each by its own kind of definition.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use sluice_core::lifecycle::Lifecycle;
use sluice_core::machine::Moment;
use sluice_core::run::{self, Given, Mode, Plan};
use sluice_core::task::input::Room;
use sluice_core::task::state::{About, WorkspaceName};
use sluice_core::task::{Asker, Create, Evidence, Input};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, Source, Sources, load};
use sluice_engine::actor::Said;
use sluice_engine::host::{Clock, Definitions, Executor, Host, Parts, Reporter};
use sluice_engine::reactor::{Answer, Assignment, Message};
use sluice_engine::run_actor::RunActor;
use sluice_engine::task_actor::TaskActor;
use sluice_engine::workers::{Offer, WorkerId};
use sluice_store::{Digest, Store, StoreError, StreamId};

struct Still;

impl Clock for Still {
    fn now(&self) -> Moment {
        Moment(0)
    }
}

/// Says what it is given, and never does it.
struct Idle(Sender<String>);

impl Executor for Idle {
    fn perform(&mut self, it: Assignment, _: &Reporter) {
        self.0.send(format!("{} {}", it.stream, it.effect.id)).unwrap();
    }
}

struct Pinned;

fn definition(bytes: &[u8]) -> Result<Definition, String> {
    let loaded = load(&Source { path: "pinned.yml", bytes }, &mut NoPrompts, &mut Sources::default());
    loaded.definition.ok_or_else(|| "not a definition".into())
}

impl Definitions for Pinned {
    fn plan(&self, pinned: &[u8]) -> Result<Arc<Plan>, String> {
        match definition(pinned)? {
            Definition::Recipe(recipe) => Ok(Arc::new(Plan::new(recipe))),
            Definition::Lifecycle(_) => Err("a lifecycle, and not a recipe".into()),
        }
    }

    fn lifecycle(&self, pinned: &[u8]) -> Result<Arc<Lifecycle>, String> {
        match definition(pinned)? {
            Definition::Lifecycle(lifecycle) => Ok(Arc::new(lifecycle)),
            Definition::Recipe(_) => Err("a recipe, and not a lifecycle".into()),
        }
    }
}

fn start(store: &Store) -> Result<(Host, Receiver<String>), StoreError> {
    let (told, handed) = channel();
    let host = Host::start(Parts {
        store: store.clone(),
        owner: "test".into(),
        clock: Arc::new(Still),
        executor: Box::new(Idle(told)),
        definitions: Arc::new(Pinned),
    })?;
    let offer =
        Offer { id: WorkerId("w".into()), role: "any".into(), group: "coffee".into(), capacity: 9, lease: None };
    host.reporter().send(Message::Joined(offer));
    Ok((host, handed))
}

const RECIPE: &[u8] = b"name: one\nsteps:\n  - {name: a, type: script, command: 'true'}\n";

fn create_task(host: &Host, pinned: &[u8]) {
    let lifecycle = Pinned.lifecycle(default_lifecycle()).unwrap();
    let about = About { summary: "Fix it".into(), project: "coffee".into(), ..About::default() };
    let room = Room::Reserved(WorkspaceName("coffee-1".into()));
    let wanted = Create { status: None, about, by: Asker::Person, spawn: true, evidence: Evidence::default(), room };
    let digest = Digest([1; 32]);
    let (actor, change) =
        TaskActor::create(lifecycle, digest.to_string(), "task-1".into(), &wanted, Moment(0)).unwrap();
    let answer = host.ask(|token| Message::Create {
        token: Some(token),
        stream: StreamId::new("task-1"),
        actor: Box::new(actor),
        change,
        blobs: vec![(digest, pinned.to_vec())],
    });
    assert_eq!(answer.recv().unwrap(), Answer::Done);
}

fn create_run(host: &Host) {
    let given = Given {
        id: "run-1".into(),
        mode: Mode::Engine,
        inputs: Vec::new(),
        prompt: String::new(),
        workspace: String::new(),
        work_order: String::new(),
    };
    let digest = Digest([2; 32]);
    let plan = Pinned.plan(RECIPE).unwrap();
    let (actor, change) = RunActor::create(plan, digest.to_string(), "coffee".into(), given, Moment(0));
    let answer = host.ask(|token| Message::Create {
        token: Some(token),
        stream: StreamId::new("run-1"),
        actor: Box::new(actor),
        change,
        blobs: vec![(digest, RECIPE.to_vec())],
    });
    assert_eq!(answer.recv().unwrap(), Answer::Done);
}

fn default_lifecycle() -> &'static [u8] {
    sluice_dialect::builtin::ALL.iter().find(|it| it.file == "default.yml").unwrap().text.as_bytes()
}

#[test]
fn tasks_and_runs_are_taken_up_again() {
    let store = Store::open("memory:").unwrap();
    let (host, handed) = start(&store).unwrap();
    create_task(&host, default_lifecycle());
    assert_eq!(handed.recv().unwrap(), "task-1 write-4");
    create_run(&host);
    assert_eq!(handed.recv().unwrap(), "run-1 0.1.whole");
    host.stop().unwrap();

    let (host, handed) = start(&store).unwrap();
    let mut again = [handed.recv().unwrap(), handed.recv().unwrap()];
    again.sort();
    assert_eq!(again, ["run-1 0.1.whole", "task-1 write-4"]);
    let say = |stream: &str, said: Said| {
        host.ask(|token| Message::Say { token: Some(token), stream: StreamId::new(stream), said }).recv().unwrap()
    };
    let cancel = Input::Cancel { by: Asker::Person, evidence: Evidence::default() };
    assert_eq!(say("task-1", Said::Task(cancel.clone())), Answer::Done);
    assert!(matches!(say("run-1", Said::Task(cancel)), Answer::Refused(_)));
    assert_eq!(say("run-1", Said::Run(run::Input::Cancel { reason: String::new() })), Answer::Done);
    host.stop().unwrap();
}

#[test]
fn a_task_whose_definition_is_none_is_damage() {
    let store = Store::open("memory:").unwrap();
    let (host, _handed) = start(&store).unwrap();
    create_task(&host, RECIPE);
    host.stop().unwrap();
    match start(&store).map(|_| ()) {
        Err(StoreError::Corrupt { place, detail }) => {
            assert_eq!((place.as_str(), detail.as_str()), ("task-1", "a recipe, and not a lifecycle"));
        }
        other => panic!("{other:?}"),
    }
}
