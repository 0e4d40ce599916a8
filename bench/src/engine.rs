//! An engine whose effects are all done at once, and nothing is. It performs as many steps as it is allowed, keeps what
//! comes after that, and says when the last allowed one is through.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sluice_core::lifecycle::Lifecycle;
use sluice_core::machine::Moment;
use sluice_core::run::{AttemptReport, RunMode, RunOrigin, RunParameters, RunPlan, StepOutcome};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, DefinitionFile, Sources, load};
use sluice_engine::actor::EffectOutcome;
use sluice_engine::host::{EngineClock, EngineHandle, Executor, Host, HostParts, NoObserver};
use sluice_engine::loader::{Definitions, pin};
use sluice_engine::reactor::{Assignment, ReactorAnswer, ReactorMessage};
use sluice_engine::run_actor::RunActor;
use sluice_engine::workers::{WorkerId, WorkerOffer};
use sluice_store::{Digest, Store, StreamId};

/// How long anything is waited for: longer than any disk takes.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// The group of everything that is measured.
pub const GROUP: &str = "bench";
/// A group without workers.
const NO_WORKERS: &str = "elsewhere";

/// The time of the system.
pub struct WallClock;

impl EngineClock for WallClock {
    fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// What may still be performed, and what was not allowed any more.
#[derive(Default)]
struct Allowed {
    steps: usize,
    kept: BTreeMap<StreamId, Vec<Assignment>>,
}

#[derive(Clone)]
struct NoOp {
    allowed: Arc<Mutex<Allowed>>,
    through: Sender<()>,
}

impl Executor for NoOp {
    fn perform(&mut self, it: Assignment, report: &EngineHandle) {
        let outcome = match it.effect.kind.as_str() {
            "perform" => EffectOutcome::Run(AttemptReport::Completed(StepOutcome::default())),
            "notify" => EffectOutcome::Done,
            _ => return report.send(ended(it, EffectOutcome::Done)),
        };
        let mut allowed = self.allowed.lock().unwrap();
        if allowed.steps == 0 {
            return allowed.kept.entry(it.stream.clone()).or_default().push(it);
        }
        allowed.steps -= 1;
        report.send(ended(it, outcome));
        // Only the last one is told: waking whoever waits for each would be measured too.
        if allowed.steps == 0 {
            let _ = self.through.send(());
        }
    }
}

fn ended(it: Assignment, outcome: EffectOutcome) -> ReactorMessage {
    ReactorMessage::Ended { token: None, stream: it.stream, effect: it.effect.id, dispatch: it.dispatch, outcome }
}

/// Definitions are stored as they were written.
struct Written;

impl Definitions for Written {
    fn plan(&self, pinned: &[u8]) -> Result<Arc<RunPlan>, String> {
        Ok(plan(std::str::from_utf8(pinned).unwrap()))
    }

    fn lifecycle(&self, pinned: &[u8]) -> Result<Arc<Lifecycle>, String> {
        Ok(lifecycle(std::str::from_utf8(pinned).unwrap()))
    }
}

/// The recipe that is written there.
pub fn plan(file: &str) -> Arc<RunPlan> {
    match definition(file) {
        Definition::Recipe(recipe) => Arc::new(RunPlan::new(recipe)),
        Definition::Lifecycle(_) => panic!("a lifecycle, and not a recipe"),
    }
}

/// The lifecycle that is written there.
pub fn lifecycle(file: &str) -> Arc<Lifecycle> {
    match definition(file) {
        Definition::Lifecycle(lifecycle) => Arc::new(lifecycle),
        Definition::Recipe(_) => panic!("a recipe, and not a lifecycle"),
    }
}

fn definition(file: &str) -> Definition {
    let source = DefinitionFile { path: "bench.yml", bytes: file.as_bytes() };
    let loaded = load(&source, &mut NoPrompts, &mut Sources::new());
    loaded.definition.unwrap_or_else(|| panic!("not a definition: {:?}", loaded.problems.first()))
}

/// A run that starts now.
pub fn given(id: &str) -> RunParameters {
    RunParameters {
        id: id.parse().expect("an id"),
        mode: RunMode::Engine,
        inputs: Vec::new(),
        prompt: String::new(),
        workspace: String::new(),
        scratch: String::new(),
        work_order: String::new(),
        origin: RunOrigin::default(),
    }
}

/// A recipe, ready to be started.
#[derive(Clone)]
pub struct Recipe {
    /// As it is written.
    pub file: String,
    /// As it is run.
    pub plan: Arc<RunPlan>,
    /// What it is known by.
    pub digest: Digest,
}

impl Recipe {
    /// The recipe that is written there.
    pub fn new(file: String) -> Recipe {
        Recipe { plan: plan(&file), digest: pin(file.as_bytes()), file }
    }
}

/// An engine at work.
pub struct Engine {
    /// The loop.
    pub host: Host,
    /// The same hands as the loop's.
    hands: NoOp,
    through: Receiver<()>,
    next: usize,
}

impl Engine {
    /// An engine on this store.
    pub fn start(store: &Store) -> Engine {
        let (sender, through) = channel();
        let hands = NoOp { allowed: Arc::default(), through: sender };
        let host = Host::start(HostParts {
            store: store.clone(),
            owner: "bench".into(),
            clock: Arc::new(WallClock),
            executor: Box::new(hands.clone()),
            definitions: Arc::new(Written),
            observer: Box::new(NoObserver),
            keep: None,
        })
        .unwrap();
        host.handle().send(ReactorMessage::Joined(WorkerOffer {
            id: WorkerId("local".into()),
            role: "any".into(),
            group: GROUP.into(),
            knows_scratch: true,
            capacity: 1_000_000,
            lease: None,
        }));
        Engine { host, hands, through, next: 0 }
    }

    /// Starts this many runs of a group that has no worker. Their steps wait for ever.
    pub fn strand(&mut self, recipe: &Recipe, runs: usize) {
        for _ in 0..runs {
            let message = self.new_run_of(NO_WORKERS, recipe);
            self.host.handle().send(message);
        }
        self.settle(recipe);
    }

    /// Starts this many runs and waits until so many steps have been performed. Gives the stream of the last run.
    pub fn run(&mut self, recipe: &Recipe, runs: usize, steps: usize) -> StreamId {
        self.allow(steps);
        let mut last = StreamId::new("");
        for _ in 0..runs {
            let message = self.new_run(recipe);
            if let ReactorMessage::Create { stream, .. } = &message {
                last = stream.clone();
            }
            self.host.handle().send(message);
        }
        self.wait();
        last
    }

    /// Lets a run that was not allowed to go on perform this many steps more.
    pub fn go_on(&mut self, stream: &StreamId, steps: usize) {
        self.allow(steps);
        let kept = self.hands.allowed.lock().unwrap().kept.remove(stream).unwrap_or_default();
        for it in kept {
            self.hands.perform(it, &self.host.handle());
        }
        self.wait();
    }

    /// Waits until everything that has been reported is durable: a new run is stored behind it.
    pub fn settle(&mut self, recipe: &Recipe) {
        let mut message = self.new_run(recipe);
        let answer = self.host.ask(|asker| {
            if let ReactorMessage::Create { token, .. } = &mut message {
                *token = Some(asker);
            }
            message
        });
        assert!(matches!(answer.recv_timeout(PATIENCE).unwrap(), ReactorAnswer::Done(_)));
    }

    /// Ends it.
    pub fn stop(self) {
        self.host.stop().unwrap();
    }

    fn new_run(&mut self, recipe: &Recipe) -> ReactorMessage {
        self.new_run_of(GROUP, recipe)
    }

    fn new_run_of(&mut self, group: &str, recipe: &Recipe) -> ReactorMessage {
        self.next += 1;
        let id = format!("run-{:08}", self.next);
        let (actor, change) =
            RunActor::create(recipe.plan.clone(), recipe.digest.to_string(), group.into(), given(&id), WallClock.now());
        ReactorMessage::Create {
            token: None,
            stream: StreamId::new(id),
            actor: Box::new(actor),
            change,
            blobs: vec![(recipe.digest, recipe.file.clone().into_bytes())],
        }
    }

    /// Lets so many steps of runs or hooks of tasks be performed from now on.
    pub fn allow(&mut self, steps: usize) {
        self.hands.allowed.lock().unwrap().steps = steps;
    }

    /// Waits until the last that was allowed has been performed.
    pub fn wait(&mut self) {
        self.through.recv_timeout(PATIENCE).unwrap();
    }
}
