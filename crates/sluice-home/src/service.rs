//! What can be asked of a home. Each question is answered when its answer is durable; a person's also waits until what
//! follows from it has settled.

mod access;
mod change;
mod control;
mod create;
mod file;
mod grimoires;
pub(crate) mod keys;
mod look;
mod merge;
mod page;
mod runs;
mod settle;
mod start;
mod who;
mod workspaces;

pub use access::{Bearer, DeniedBearer, DeniedRequest};
pub(crate) use create::{create_task, usual_reviewer};
pub use grimoires::{Intervention, StartGrimoire};
pub use keys::{IdempotencyKey, KeyStatus, KeyedId};
pub use look::{Census, TaskFilter};
pub use page::{ListPage, PageQuery};
pub use runs::by_hand;
pub(crate) use runs::say;
pub use sluice_worker::process::ProcessIdentity;
pub(crate) use start::{EngineStart, LOCAL, burrow, repeat, start_again, start_as, startable};
pub use who::{RequestAccess, Requester};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_core::machine::{ASKED, Refusal, RefusalCode};
use sluice_core::task::input::WorkspaceReservation;
use sluice_core::task::{TaskAsker, TaskInput};
use sluice_engine::actor::ActorInput;
use sluice_engine::host::{EngineHandle, Host, HostParts, PendingAnswer, RetentionTerm, StoreClaim};
use sluice_engine::reactor::{EventRange, ReactorAnswer, ReactorMessage};
use sluice_engine::workers::{WorkerId, WorkerOffer};
use sluice_store::{Meaning, Store, StoreError};
use sluice_worker::process::{HomeNesting, StrayProcesses};

use crate::attached;
use crate::clock::WallClock;
use crate::config::{ConfigFile, HomeConfig};
use crate::definitions::PinnedDefinitions;
use crate::fence::HomeFence;
use crate::ground::Home;
use crate::hands::LocalExecutor;
use crate::house::Registry;
use crate::identity::HomeIdentity;
use crate::log::HomeLog;
use crate::places::HomePaths;
use crate::projects::{Projects, described};
use crate::tasks::{ReadModel, STORE, TaskSnapshot, stream};
use crate::tokens::Tokens;
use crate::workbench::PerformContext;

/// How long a session waits for the answer of a person.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// How long the engine may take to answer before what was asked is given up.
const GIVE_UP: Duration = Duration::from_secs(30);
/// How long it may take before it is asked whether something is in the store's way.
const PATIENCE: Duration = Duration::from_secs(2);

/// A store of so many bytes is looked through before anything is answered.
const LARGEST_AT_ONCE: u64 = 16 << 20;

/// The worker that is this machine's own hands.
pub(crate) const OWN: &str = "own";

/// So many steps of runs are carried out at once on this machine.
const MOST_PERFORMANCES: usize = 64;

/// A home that is open.
pub struct Service {
    ground: Arc<Home>,
    tokens: Tokens,
    host: Mutex<Option<Host>>,
    store: Store,
}

impl Service {
    /// Opens a home: takes its store, takes up what was going on, looks after its sessions.
    pub fn open(
        places: HomePaths,
        address: Option<String>,
        program: PathBuf,
        log: Arc<HomeLog>,
    ) -> Result<Service, Problem> {
        // First of all: a home that is made now remembers what is around it.
        HomeNesting::enter(places.home());
        let settings = ConfigFile::open(places.config(), log.clone())?;
        let projects = Projects::read(places.projects(), places.home().to_owned())?;
        let tokens = Tokens::read(places.tokens())?;
        let choice = attached::choose(&places, &settings.config(), address)?;
        let store = Store::open(&choice.address).map_err(|error| closed(&error))?;
        attached::must_hold_what_was_saved(&choice, &store)?;
        attached::remember(&places, &choice)?;
        let clock = Arc::new(WallClock::default());
        let (tasks, observer) =
            ReadModel::start(&store, Arc::new(PinnedDefinitions)).map_err(|error| closed(&error))?;
        verify(&store, &tasks)?;
        let (owner, fence) = claim(&places, &settings.config(), &store, &log)?;
        let term = settings.config().retention.keep();
        let keep = term.map(|term| RetentionTerm::new(&mut *store.reader()?, &*clock, term)).transpose();
        let keep = keep.map_err(|error| closed(&error))?;
        let house = Registry::read(&tasks)?;
        let bench = PerformContext::open(places, settings, program, log)?.fenced(fence.clone());
        let ground = Home::new(bench, projects, tasks, clock.clone(), house, keep)
            .map_err(|error| Problem::fault(error.to_string()))?;
        let ground = Arc::new(ground);
        // Without it what a script leaves behind is recognised by its environment alone.
        let strays = StrayProcesses::adopt().unwrap_or_default();
        if let Some(fence) = fence {
            let weak = Arc::downgrade(&ground);
            fence.asks(move || weak.upgrade().is_some_and(|ground| !ground.sessions.living().is_empty()));
        }
        let host = Host::start(HostParts {
            store: store.clone(),
            owner,
            clock,
            executor: Box::new(LocalExecutor::new(ground.clone())),
            definitions: Arc::new(PinnedDefinitions),
            observer,
            keep,
        })
        .map_err(|error| closed(&error))?;
        ground.reach(&host.reporter());
        host.reporter().send(ReactorMessage::Joined(WorkerOffer {
            id: WorkerId(OWN.into()),
            role: "any".into(),
            group: LOCAL.into(),
            capacity: MOST_PERFORMANCES,
            lease: None,
        }));
        ground.crabs.take_up(&ground);
        let looking = Arc::downgrade(&ground);
        let thread = std::thread::Builder::new().name("exits".into());
        let look = move || crate::exits::keep_looking(looking, strays);
        thread.spawn(look).map_err(|error| Problem::fault(error.to_string()))?;
        let waiting = Arc::downgrade(&ground);
        let thread = std::thread::Builder::new().name("queue".into());
        thread.spawn(move || crate::queue::keep_going(waiting)).map_err(|error| Problem::fault(error.to_string()))?;
        crate::follower::start(&ground)?;
        let finishing = Arc::downgrade(&ground);
        let thread = std::thread::Builder::new().name("merges".into());
        let finish = move || crate::merges::keep_finishing(&finishing);
        thread.spawn(finish).map_err(|error| Problem::fault(error.to_string()))?;
        Ok(Service { ground, tokens, host: Mutex::new(Some(host)), store })
    }

    /// What everything here stands on.
    pub fn ground(&self) -> &Arc<Home> {
        &self.ground
    }

    /// What is known to be damaged in the store, and why.
    pub fn damage(&self) -> BTreeMap<String, String> {
        self.ground.tasks.damage()
    }

    /// Since when agents and scripts are paused because the store does not answer, if they are.
    pub fn paused(&self) -> Option<String> {
        self.ground.fence.as_ref().and_then(|fence| fence.paused())
    }

    /// Whether the engine has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.host.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_none_or(Host::has_ended)
    }

    /// Whether nothing is going on that the engine must be there for.
    pub fn is_idle(&self) -> bool {
        let tasks = self.ground.tasks.open();
        tasks
            .iter()
            .all(|seen| seen.state.turns.is_empty() && !seen.state.main.is_living() && !seen.state.beside.is_living())
            && !self.ground.tasks.runs_want_something()
    }

    /// What cannot be understood in the store, and why.
    pub fn faults(&self) -> Vec<(String, String)> {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        let faults = host.as_ref().map(Host::faults).unwrap_or_default();
        faults.into_iter().map(|(stream, why)| (stream.to_string(), why)).collect()
    }

    /// Ends the engine. Sessions go on, unless the store is another engine's now: then so is their work.
    pub fn close(&self) -> Result<(), Problem> {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stopped = host.map_or(Ok(()), Host::stop).map_err(|error| closed(&error));
        if self.ground.fence.as_ref().is_some_and(|fence| fence.is_lost()) {
            self.ground.end_everything();
        }
        stopped
    }

    /// Whether the store is still in its place.
    pub fn is_present(&self) -> bool {
        self.store.present().is_ok()
    }

    /// What became of a store that is not in its place any more. The engine hears of it now, and ends when what was stored is
    /// saved; a copy that takes longer than anybody waits is told as one that is being made.
    pub fn gone(&self) -> Problem {
        let heard = crate::house::settle(&self.ground).err();
        let known = self.store.present().err().map(|error| closed(&error));
        known.or(heard).unwrap_or_else(|| Problem::unavailable("the store was not in its place a moment ago"))
    }

    /// Copies the store to a file.
    pub fn backup(&self, who: &Requester, file: &std::path::Path) -> Result<(), Problem> {
        who.must_be_person("a backup")?;
        crate::backup::copy(&self.store, file)
    }
}

/// Says something to a task and waits until it is durable.
pub(crate) fn ask(ground: &Home, task: &str, input: TaskInput) -> Result<EventRange, Problem> {
    let Some(reporter) = ground.reporter.get() else { return Err(Problem::unavailable("the engine is starting")) };
    let said = ActorInput::Task(ground.clean().task_input(input));
    let answer = reporter.ask(|token| ReactorMessage::Say { token: Some(token), stream: stream(task), said });
    wait(reporter, &answer, task)
}

/// Waits for the engine's answer, but not long where it is known why there is none. What is given up is taken back, so that
/// it is not done later all the same; where that is too late, whoever asked hears that it will be done.
pub(crate) fn wait(reporter: &EngineHandle, asked: &PendingAnswer, id: &str) -> Result<EventRange, Problem> {
    let began = Instant::now();
    loop {
        match asked.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(answer) => return answered(Some(answer), id),
            Err(RecvTimeoutError::Disconnected) => {
                // The engine has ended, or ends. What it ended of is known by now.
                let none = answered(None, id);
                return reporter.hindrance().map_or(none, |why| Err(Problem::unavailable(why)));
            }
        }
        let hindrance = reporter.hindrance();
        if hindrance.is_none() && began.elapsed() < GIVE_UP {
            continue;
        }
        let why = hindrance.unwrap_or_else(|| "the engine has no answer from its store yet".into());
        if reporter.withdraw(asked) {
            return Err(Problem::unavailable(why).hint("nothing was done; ask again when that has passed"));
        }
        // It may have been answered a moment ago.
        return match asked.try_recv() {
            Ok(answer) => answered(Some(answer), id),
            Err(_) => Err(Problem::accepted(id, &why)),
        };
    }
}

/// What an answer of the engine means to whoever asked.
fn answered(answer: Option<ReactorAnswer>, id: &str) -> Result<EventRange, Problem> {
    match answer {
        Some(ReactorAnswer::Done(recorded)) => Ok(recorded),
        Some(ReactorAnswer::Refused(refusal)) => {
            let problem = refused(&refusal);
            let hint = problem.hint.map(|hint| hint.replace(ASKED, id));
            Err(Problem { hint, ..problem })
        }
        Some(ReactorAnswer::NotFound) => Err(Problem::not_found(format!("there is no `{id}`"))),
        Some(ReactorAnswer::Conflict) => {
            let message = format!("{id} was changed by somebody else at the same time");
            Err(Problem::new(ProblemStatus::Conflict, "conflict", message).hint("look at it, and ask again"))
        }
        Some(ReactorAnswer::Fault(why)) => Err(Problem::fault(format!("{id} has stopped: {why}"))
            .hint("what is stored of it stays as it is; `sluice doctor` tells more")),
        None => Err(Problem::unavailable("the engine does not answer").hint("see `sluice doctor`")),
    }
}

pub(crate) fn refused(refusal: &Refusal) -> Problem {
    let status = match refusal.code {
        RefusalCode::NotYours => ProblemStatus::Forbidden,
        RefusalCode::LeaseLost => ProblemStatus::Conflict,
        _ => ProblemStatus::Refused,
    };
    Problem { hint: refusal.hint.clone(), ..Problem::new(status, refusal.code.as_str(), refusal.message.clone()) }
}

/// Begins a task that waits, if there is a worktree for it.
pub(crate) fn begin(ground: &Home, seen: &TaskSnapshot, by: TaskAsker) -> Result<EventRange, Problem> {
    let evidence = ground.evidence(seen)?;
    let room = room(ground, seen)?;
    let asked = ask(ground, &seen.id, TaskInput::Spawn { by, evidence, room: room.clone() });
    ground.tasks.refresh(&stream(&seen.id));
    ground.rooms.answered(&seen.id, &room, &asked);
    asked
}

/// A worktree for a task that may need one.
pub(crate) fn room(ground: &Home, seen: &TaskSnapshot) -> Result<WorkspaceReservation, Problem> {
    if crate::rooms::had(&seen.state.workspace).is_some() {
        return Ok(WorkspaceReservation::Unasked);
    }
    let (project, pool) = ground.pool_of(seen)?;
    ground.branches.look(ground);
    Ok(ground.rooms.reserve(ground, &pool, project.pool_size, &seen.id))
}

/// Compares everything in the store with its sums. Damage that hits a key makes something seem not to be there, which no
/// single answer notices. A large store is looked through beside what is asked of it.
fn verify(store: &Store, tasks: &Arc<ReadModel>) -> Result<(), Problem> {
    let Some(bytes) = store.bytes() else { return Ok(()) };
    let (store, tasks) = (store.clone(), tasks.clone());
    let look = move || match store.verify() {
        Ok(found) => found.into_iter().for_each(|damage| tasks.note(damage)),
        Err(error) => match error.meaning() {
            Meaning::Damaged => tasks.note_damage(STORE.to_owned(), described(&error)),
            // It says nothing about what is stored; each read looks at what it reads all the same.
            Meaning::Unavailable(_) | Meaning::Refused | Meaning::Unusable => {}
        },
    };
    if bytes <= LARGEST_AT_ONCE {
        look();
        return Ok(());
    }
    let thread = std::thread::Builder::new().name("verify".into());
    thread.spawn(look).map(drop).map_err(|error| Problem::fault(error.to_string()))
}

/// Why a store cannot be used.
pub(crate) fn closed(error: &StoreError) -> Problem {
    match error {
        StoreError::Address(_) => Problem::bad_request(described(error)),
        // Whoever opens a store asks once.
        StoreError::Unavailable { place, why, source, .. } => {
            Problem::unavailable(format!("the store {place} {why}: {source}"))
        }
        StoreError::Owned { by, remaining } => {
            let seconds = remaining.as_secs() + 1;
            let message =
                format!("another engine ({by}) owns the store, for {seconds} seconds after its last sign of life");
            Problem::unavailable(message)
                .hint("one engine at a time works on a store: end that one, or wait until it is gone")
        }
        StoreError::LostOwnership => {
            let message = "another engine has taken the store over: this one ends, and so do its agents and scripts";
            Problem::unavailable(message)
                .hint("what is stored goes on there; start this one again when that one has ended")
        }
        other => Problem::unavailable(described(other)),
    }
}

/// Who owns the store, and what stops when it is another's. A store of this machine's alone is owned by the home: whoever
/// opens a home holds its lock, so an engine that still seems to own the store is dead, and need not be waited for.
/// Elsewhere a machine that was copied, with the home on it, may be at work: there the start of the machine counts too.
fn claim(
    places: &HomePaths,
    config: &HomeConfig,
    store: &Store,
    log: &Arc<HomeLog>,
) -> Result<(StoreClaim, Option<Arc<HomeFence>>), Problem> {
    let identity = HomeIdentity::of_original(places.home())?;
    if !store.is_shared() {
        // As engines before this one called themselves.
        let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let formerly = vec![format!("{}:{}", machine.trim(), places.home().display())];
        return Ok((StoreClaim { formerly, ..StoreClaim::from(identity.home.as_str()) }, None));
    }
    let fence = Arc::new(HomeFence::new(places.fence(), &identity, log.clone())?);
    let (name, term) = (identity.name(), config.engine.term());
    Ok((StoreClaim { name, formerly: Vec::new(), term, fence: fence.clone() }, Some(fence)))
}
