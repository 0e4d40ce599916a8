//! A host with an executor that says what it is given, and the few things that are asked of it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use sluice_core::lifecycle::Lifecycle;
use sluice_core::machine::Moment;
use sluice_core::run::{AttemptReport, RunMode, RunOrigin, RunParameters, RunPlan, StepOutcome};
use sluice_core::task::input::WorkspaceReservation;
use sluice_core::task::state::{TaskSubject, WorktreePath};
use sluice_core::task::{Evidence, NewTask, TaskAsker};
use sluice_dialect::pin::DefinitionPin;
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, DefinitionFile, Sources, load};
use sluice_engine::actor::{ActorInput, EffectOutcome};
use sluice_engine::host::{EngineClock, EngineHandle, Executor, Host, HostParts, NoObserver, PendingAnswer};
use sluice_engine::loader::{Definitions, pin};
use sluice_engine::reactor::{Assignment, ReactorAnswer, ReactorMessage};
use sluice_engine::run_actor::RunActor;
use sluice_engine::task_actor::TaskActor;
use sluice_engine::workers::{Dispatch, WorkerId, WorkerOffer};
use sluice_store::{Store, StoreError, StreamId};

pub(crate) const RECIPE: &[u8] = b"name: one\nsteps:\n  - {name: a, type: script, command: 'true'}\n";

struct Still;

impl EngineClock for Still {
    fn now(&self) -> Moment {
        Moment(0)
    }
}

/// Says what it is given, and does it at once, or never.
struct Told {
    told: Sender<String>,
    does: bool,
}

impl Executor for Told {
    fn perform(&mut self, it: Assignment, report: &EngineHandle) {
        let _ = self.told.send(match &it.worker {
            Some(worker) if worker.0 == "crab" => format!("{} {} to crab as {}", it.stream, it.effect.id, it.dispatch),
            Some(_) | None => format!("{} {}", it.stream, it.effect.id),
        });
        if self.does {
            let outcome = EffectOutcome::Run(AttemptReport::Completed(StepOutcome::default()));
            report.send(ReactorMessage::Ended {
                token: None,
                stream: it.stream,
                effect: it.effect.id,
                dispatch: it.dispatch,
                outcome,
            });
        }
    }

    fn held(&mut self, it: Assignment, name: Option<String>, _: &EngineHandle) {
        let name = name.unwrap_or("nothing".into());
        let _ = self.told.send(format!("{} {}, {name}, held as {}", it.stream, it.effect.id, it.dispatch));
    }

    fn withdrawn(&mut self, worker: &WorkerId, dispatch: Dispatch, is_lost: bool) {
        let how = if is_lost { "lost by" } else { "withdrawn from" };
        let _ = self.told.send(format!("{how} {}: {dispatch}", worker.0));
    }
}

/// Definitions as the dialect pins them.
struct Dialect;

fn definition(bytes: &[u8]) -> Result<Definition, String> {
    let pinned = DefinitionPin::from_bytes(bytes).map_err(|error| error.to_string())?;
    pinned.load().definition.ok_or_else(|| "not a definition".into())
}

impl Definitions for Dialect {
    fn plan(&self, pinned: &[u8]) -> Result<Arc<RunPlan>, String> {
        match definition(pinned)? {
            Definition::Recipe(recipe) => Ok(Arc::new(RunPlan::new(recipe))),
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

/// What is kept of a file with this text.
pub(crate) fn pinned(text: &[u8]) -> Vec<u8> {
    let source = DefinitionFile { path: "some.yml", bytes: text };
    let loaded = load(&source, &mut NoPrompts, &mut Sources::default());
    DefinitionPin::of(&source, &loaded).unwrap().to_bytes()
}

pub(crate) fn default_lifecycle() -> &'static [u8] {
    sluice_dialect::builtin::ALL.iter().find(|it| it.file == "default.yml").unwrap().text.as_bytes()
}

/// A host that does what is to be done, or never does.
pub(crate) fn start(store: &Store, does: bool) -> Result<(Host, Receiver<String>), StoreError> {
    let (told, handed) = channel();
    let host = Host::start(HostParts {
        store: store.clone(),
        owner: "test".into(),
        clock: Arc::new(Still),
        executor: Box::new(Told { told, does }),
        definitions: Arc::new(Dialect),
        observer: Box::new(NoObserver),
        keep: None,
    })?;
    let offer = WorkerOffer {
        id: WorkerId("w".into()),
        role: "any".into(),
        group: "coffee".into(),
        knows_scratch: true,
        capacity: 9,
        lease: None,
    };
    host.handle().send(ReactorMessage::Joined(offer));
    Ok((host, handed))
}

/// Asks for a task by the default lifecycle, of which these bytes are kept.
pub(crate) fn create_task(host: &Host, kept: Vec<u8>) -> PendingAnswer {
    let lifecycle = Dialect.lifecycle(&pinned(default_lifecycle())).unwrap();
    let about = TaskSubject { summary: "Fix it".into(), project: "coffee".into(), ..TaskSubject::default() };
    let room = WorkspaceReservation::Reserved(WorktreePath("coffee-1".into()));
    let wanted = NewTask {
        status: None,
        about,
        by: TaskAsker::Person,
        spawn: true,
        evidence: Evidence::default(),
        room,
        sessions: 0,
    };
    let digest = pin(&kept);
    let (actor, change) =
        TaskActor::create(lifecycle, digest.to_string(), "task-1".into(), &wanted, Moment(0)).unwrap();
    let actor = Box::new(actor);
    let blobs = vec![(digest, kept)];
    host.ask(|token| ReactorMessage::Create {
        token: Some(token),
        stream: StreamId::new("task-1"),
        actor,
        change,
        blobs,
    })
}

/// Asks for a run of [`RECIPE`].
pub(crate) fn create_run(host: &Host, id: &str) -> PendingAnswer {
    let given = RunParameters {
        id: id.parse().unwrap(),
        mode: RunMode::Engine,
        inputs: Vec::new(),
        prompt: String::new(),
        workspace: String::new(),
        scratch: String::new(),
        work_order: String::new(),
        origin: RunOrigin::default(),
    };
    let kept = pinned(RECIPE);
    let digest = pin(&kept);
    let plan = Dialect.plan(&kept).unwrap();
    let (actor, change) = RunActor::create(plan, digest.to_string(), "coffee".into(), given, Moment(0));
    let actor = Box::new(actor);
    let blobs = vec![(digest, kept)];
    host.ask(|token| ReactorMessage::Create { token: Some(token), stream: StreamId::new(id), actor, change, blobs })
}

/// Says something and waits for the answer.
pub(crate) fn say(host: &Host, stream: &str, said: ActorInput) -> ReactorAnswer {
    host.ask(|token| ReactorMessage::Say { token: Some(token), stream: StreamId::new(stream), said }).recv().unwrap()
}

/// Whether something was done.
pub(crate) fn is_done(answer: &ReactorAnswer) -> bool {
    matches!(answer, ReactorAnswer::Done(_))
}
